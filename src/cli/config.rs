//! `verbatim config`: the value of each setting, and the source of the value.

use std::thread::available_parallelism;

use serde_json::{Value, json};

use super::{
    engine_config::{self, PlaceArgs},
    environment::Terminal,
    error::Result,
    output::{FOUND, harmless},
    settings::{self, SetBy, SettingValue},
    settings_file::{self, Setting},
};
use verbatim_engine::Engine;

pub(super) const NAMES: usize = 20;

/// Show each setting, its value, and what set it
///
/// A flag overrides an environment variable, which overrides the configuration file. That is
/// verbatim/config.toml in the platform's configuration folder; VERBATIM_CONFIG names another file,
/// or none if it is empty. Secrets are shown as "set".
///
///     verbatim config
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(
    args: &Args,
    places: &PlaceArgs,
    engine: &Engine,
    terminal: Terminal<'_>,
) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let file = environment.settings.path.as_deref();
    let settings = settings_file::ALL.iter().map(|setting| {
        let given = settings::resolve(setting, engine_config::flag(setting, places), environment);
        (*setting, values(setting, &given, engine), given.by)
    });
    if args.json {
        let settings: Vec<Value> =
            settings.map(|(setting, values, by)| setting_json(setting, values, &by)).collect();
        let exists = file.is_some_and(|file| file.is_file());
        let json = json!({"file": file, "exists": exists, "settings": settings});
        writeln!(out, "{json:#}")?;
        return Ok(FOUND);
    }
    let file = match file {
        None => "none".to_owned(),
        Some(file) if file.is_file() => engine_config::short(file, environment),
        Some(file) => format!("{} (not there)", engine_config::short(file, environment)),
    };
    writeln!(out, "{:NAMES$}{file}", "file")?;
    for (setting, values, by) in settings {
        let by = match by {
            SetBy::File(_, line) => format!("line {line}"),
            by => by.to_string(),
        };
        let values = if values.is_empty() { "none".to_owned() } else { values.join(", ") };
        writeln!(out, "{:NAMES$}{}  ({by})", setting.key, harmless(&values))?;
    }
    Ok(FOUND)
}

fn values(setting: &Setting, given: &SettingValue, engine: &Engine) -> Vec<String> {
    let config = engine.config();
    let texts = |given: &SettingValue| -> Vec<String> {
        given.values.iter().map(|value| value.to_string_lossy().into_owned()).collect()
    };
    if given.by != SetBy::Default {
        return if setting.is_secret() { vec!["set".to_owned()] } else { texts(given) };
    }
    if let Some(default) = setting.default {
        return vec![default.to_owned()];
    }
    let path = |path: &std::path::Path| vec![path.display().to_string()];
    match setting.key {
        "home" => path(&config.home),
        "db" => config.export_store().map(|it| vec![it.to_string()]).unwrap_or_default(),
        "index" => path(&config.index_folder()),
        "archives" => config.archives.iter().map(|it| it.display().to_string()).collect(),
        "vector-share" => vec![engine.all_sources().vector_share().to_string()],
        "threads" => vec![available_parallelism().map_or(1, usize::from).to_string()],
        _ => Vec::new(),
    }
}

fn setting_json(setting: &Setting, values: Vec<String>, by: &SetBy) -> Value {
    let value = if setting.is_list() { json!(values) } else { json!(values.first()) };
    let (from, name, line) = match by {
        SetBy::Flag(name) => ("flag", Some(*name), None),
        SetBy::Variable(name) => ("variable", Some(*name), None),
        SetBy::File(_, line) => ("file", None, Some(*line)),
        SetBy::Default => ("default", None, None),
    };
    json!({"key": setting.key, "value": value, "from": from, "name": name, "line": line})
}
