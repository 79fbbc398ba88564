//! The settings of a command. The value of one comes from a flag, else the environment, else the configuration
//! file, else a default.

pub(super) mod engine_config;
pub(super) mod environment;
pub(super) mod settings_file;
pub(super) mod settings_report;
pub(super) mod values;

use std::{env, ffi::OsString, fmt, path::PathBuf};

use self::environment::Environment;
use self::settings_file::{Error, FILE_VARIABLE, Setting, SettingKind, SettingsFile};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetBy {
    Flag(&'static str),
    Variable(&'static str),
    /// The configuration file, with the number of the line.
    File(PathBuf, usize),
    Default,
}

impl fmt::Display for SetBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetBy::Flag(name) | SetBy::Variable(name) => f.write_str(name),
            SetBy::File(path, line) => write!(f, "{}:{line}", path.display()),
            SetBy::Default => f.write_str("default"),
        }
    }
}

/// The values of a setting, and their source. Without values, the default applies.
#[derive(Clone, Debug)]
pub(crate) struct SettingValue {
    pub(crate) values: Vec<OsString>,
    pub(crate) by: SetBy,
}

impl SettingValue {
    pub(crate) fn path(self) -> Option<PathBuf> {
        self.values.into_iter().next().map(PathBuf::from)
    }

    /// Returns the values as paths; `None` if the setting has no value.
    pub(crate) fn paths(self) -> Option<Vec<PathBuf>> {
        (self.by != SetBy::Default).then(|| self.values.into_iter().map(PathBuf::from).collect())
    }

    pub(crate) fn text(&self) -> Option<String> {
        self.values.first().map(|value| value.to_string_lossy().into_owned())
    }
}

/// Returns the values of a setting: from the flag, else the environment, else the file.
pub(crate) fn resolve(
    setting: &Setting,
    flag: Option<Vec<OsString>>,
    environment: &Environment,
) -> SettingValue {
    if let (Some(values), Some(name)) = (flag, setting.flag) {
        return SettingValue { values, by: SetBy::Flag(name) };
    }
    // An empty variable counts as absent, unless it can mean an empty list.
    let may_be_empty = matches!(setting.kind, SettingKind::Folders | SettingKind::Names);
    for name in setting.variables {
        let value = environment.variable(name).filter(|it| may_be_empty || !it.is_empty());
        let Some(value) = value else { continue };
        let values = match setting.kind {
            SettingKind::Folders => {
                let folders = env::split_paths(value).map(PathBuf::into_os_string);
                folders.filter(|folder| !folder.is_empty()).collect()
            }
            _ => vec![value.to_owned()],
        };
        return SettingValue { values, by: SetBy::Variable(name) };
    }
    match environment.settings.entry(setting) {
        Some((path, entry)) => {
            let by = SetBy::File(path.to_owned(), entry.line);
            SettingValue { values: entry.values.clone(), by }
        }
        None => SettingValue { values: Vec::new(), by: SetBy::Default },
    }
}

impl Environment {
    /// Returns the values of a setting that has no flag here.
    pub(crate) fn setting(&self, setting: &Setting) -> SettingValue {
        resolve(setting, None, self)
    }

    pub(crate) fn with_settings(&self) -> Result<Environment, Error> {
        let settings = SettingsFile::read(
            self.variable(FILE_VARIABLE),
            self.config_folder.as_deref(),
            self.user_folder.as_deref(),
        )?;
        Ok(Environment { settings, ..self.clone() })
    }
}
