//! What `verbatim status` says of the settings: the value of each, and what set it.

use std::io::{self, Write};
use std::path::Path;
use std::thread::available_parallelism;

use schemars::JsonSchema;
use serde::Serialize;

use super::engine_config::{self, PlaceArgs};
use super::environment::Environment;
use super::settings_file::{self, Setting};
use super::{SetBy, SettingValue, resolve};
use crate::cli::terminal::output::harmless;
use verbatim_engine::Engine;

/// The width of the names of settings and the space after them.
pub(crate) const NAMES: usize = 20;

/// The settings, in the order of the documentation.
pub(crate) struct SettingsReport<'a> {
    environment: &'a Environment,
    settings: Vec<ReportedSetting>,
}

struct ReportedSetting {
    setting: &'static Setting,
    values: Vec<String>,
    by: SetBy,
}

impl<'a> SettingsReport<'a> {
    pub(crate) fn new(
        places: &PlaceArgs,
        engine: &Engine,
        environment: &'a Environment,
    ) -> SettingsReport<'a> {
        let settings = settings_file::ALL.iter().map(|setting| {
            let given = resolve(setting, engine_config::flag(setting, places), environment);
            ReportedSetting { setting, values: values(setting, &given, engine), by: given.by }
        });
        SettingsReport { environment, settings: settings.collect() }
    }

    fn file(&self) -> Option<&'a Path> {
        self.environment.settings.path.as_deref()
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let file = match self.file() {
            None => "none".to_owned(),
            Some(file) if file.is_file() => engine_config::short(file, self.environment),
            Some(file) => format!("{} (not there)", engine_config::short(file, self.environment)),
        };
        writeln!(out, "{:NAMES$}{file}", "file")?;
        for ReportedSetting { setting, values, by } in &self.settings {
            let by = match by {
                SetBy::File(_, line) => format!("line {line}"),
                by => by.to_string(),
            };
            let values = if values.is_empty() { "none".to_owned() } else { values.join(", ") };
            writeln!(out, "{:NAMES$}{}  ({by})", setting.key, harmless(&values))?;
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> JsonSettings<'_> {
        let settings = self.settings.iter().map(ReportedSetting::json).collect();
        JsonSettings { settings_file: self.file(), settings }
    }
}

impl ReportedSetting {
    fn json(&self) -> JsonSetting<'_> {
        let ReportedSetting { setting, values, by } = self;
        let value = if setting.is_list() {
            JsonValue::List(values)
        } else {
            JsonValue::One(values.first().map(String::as_str))
        };
        let (from, name, line) = match by {
            SetBy::Flag(name) => ("flag", Some(*name), None),
            SetBy::Variable(name) => ("variable", Some(*name), None),
            SetBy::File(_, line) => ("file", None, Some(*line)),
            SetBy::Default => ("default", None, None),
        };
        JsonSetting { key: setting.key, value, from, name, line }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct JsonSettings<'a> {
    /// The configuration file, which need not exist; null if none is read.
    settings_file: Option<&'a Path>,
    /// Every setting.
    settings: Vec<JsonSetting<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct JsonSetting<'a> {
    /// Its key in the file.
    key: &'static str,
    /// Its value; `set` for a secret.
    value: JsonValue<'a>,
    /// `flag`, `variable`, `file` or `default`.
    from: &'static str,
    /// The flag or variable.
    name: Option<&'static str>,
    /// The line of the file.
    line: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum JsonValue<'a> {
    One(Option<&'a str>),
    List(&'a [String]),
}

fn values(setting: &Setting, given: &SettingValue, engine: &Engine) -> Vec<String> {
    if given.by != SetBy::Default {
        if setting.is_secret() {
            return vec!["set".to_owned()];
        }
        return given.values.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    }
    if let Some(default) = setting.default {
        return vec![default.to_owned()];
    }
    let config = engine.config();
    match setting.key {
        "home" => vec![config.home.display().to_string()],
        "db" => config.export_store().map(|it| vec![it.to_string()]).unwrap_or_default(),
        "index" => vec![config.index_folder().display().to_string()],
        "archives" => config.archives.iter().map(|it| it.display().to_string()).collect(),
        "vector-share" => vec![engine.all_sources().vector_share().to_string()],
        "threads" => vec![available_parallelism().map_or(1, usize::from).to_string()],
        _ => Vec::new(),
    }
}
