//! The settings, and the configuration file that sets them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use toml_edit::{Document, Item, Value};

use super::values::{parse_share, parse_size};
use verbatim_base::{files, private};
use verbatim_engine::{Exclusions, StoreAddress};

/// The variable that names the configuration file; an empty value means no file.
pub(super) const FILE_VARIABLE: &str = "VERBATIM_CONFIG";

/// The minimum similarity of an unknown key to a known key that the error suggests.
const LIKENESS: f64 = 0.7;

const MAX_THREADS: i64 = 256;

#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(crate) flag: Option<&'static str>,
    /// The variables of the setting; the first variable that is set is used.
    pub(crate) variables: &'static [&'static str],
    pub(crate) kind: SettingKind,
    /// The default; `None` if it depends on the computer, or if there is none.
    pub(crate) default: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Path,
    Folders,
    Patterns,
    Names,
    Text,
    Secret,
    Switch,
    Size,
    Threads,
    Share,
}

macro_rules! settings {
    ($($name:ident $key:literal $kind:ident $flag:expr, $variables:expr, $default:expr;)*) => {
        $(pub(crate) static $name: Setting = Setting {
            key: $key,
            flag: $flag,
            variables: &$variables,
            kind: SettingKind::$kind,
            default: $default,
        };)*

        pub(crate) static ALL: &[&Setting] = &[$(&$name),*];
    };
}

settings! {
    HOME "home" Path Some("--home"), ["VERBATIM_HOME"], None;
    DB "db" Path Some("--db"), ["VERBATIM_DB", "CONVERSATION_DB", "ORIGIN_CONVERSATION_DB"], None;
    CLUSTER_LOGIN "cluster-login" Secret None, ["VERBATIM_CLUSTER_LOGIN"], None;
    CLUSTER_LOGIN_FILE "cluster-login-file" Path None, ["VERBATIM_CLUSTER_LOGIN_FILE"], None;
    CLUSTER_CA "cluster-ca" Path None, ["VERBATIM_CLUSTER_CA"], None;
    INDEX "index" Path None, ["VERBATIM_INDEX"], None;
    ARCHIVES "archives" Folders Some("--archive"), ["VERBATIM_ARCHIVE"], None;
    EXCLUDE "exclude" Patterns None, [], None;
    WORKSPACES "workspaces" Folders Some("--workspace"), ["VERBATIM_WORKSPACE"], None;
    EMBEDDINGS "embeddings" Text Some("--model"), ["VERBATIM_EMBEDDINGS"], Some("built-in");
    EMBEDDINGS_KEY "embeddings-key" Secret None, ["VERBATIM_EMBEDDINGS_KEY"], None;
    VECTOR_SHARE "vector-share" Share None, ["VERBATIM_VECTOR_SHARE"], None;
    TOOLS "tools" Names Some("--tools"), ["VERBATIM_TOOLS"], Some("default");
    WATCH "watch" Switch None, [], Some("true");
    MEMORY "memory" Size None, [], Some("1G");
    THREADS "threads" Threads None, [], None;
}

#[derive(Clone, Debug, Default)]
pub struct SettingsFile {
    /// The path, even if the file does not exist; `None` if no file is used.
    pub(crate) path: Option<PathBuf>,
    /// The length in bytes of the file that was read.
    pub(crate) length: u64,
    entries: Vec<SettingEntry>,
}

#[derive(Clone)]
pub(crate) struct SettingEntry {
    setting: &'static Setting,
    pub(crate) line: usize,
    pub(crate) values: Vec<OsString>,
}

impl fmt::Debug for SettingEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values are left out, because a value may be a secret.
        write!(f, "{}:{}", self.setting.key, self.line)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: cannot read the configuration file: {source}{}", path.display(), hint(*is_named))]
    Unreadable {
        path: PathBuf,
        source: io::Error,
        /// Whether an environment variable names the file.
        is_named: bool,
    },
    #[error("{}:{line}: {reason}", path.display())]
    Wrong { path: PathBuf, line: usize, reason: String },
}

fn hint(is_named: bool) -> String {
    if is_named { format!("; {FILE_VARIABLE} names it") } else { String::new() }
}

impl SettingsFile {
    /// Reads the named configuration file, or else the file in `folder`. Without a file, the
    /// settings are empty. `user` is the user's folder, which replaces `~`.
    pub(crate) fn read(
        named: Option<&OsStr>,
        folder: Option<&Path>,
        user: Option<&Path>,
    ) -> Result<SettingsFile, Error> {
        let (path, is_named) = match named {
            Some(name) if name.is_empty() || name == "/dev/null" => {
                return Ok(SettingsFile::default());
            }
            Some(name) => (PathBuf::from(name), true),
            None => match folder {
                Some(folder) => (folder.join("verbatim").join("config.toml"), false),
                None => return Ok(SettingsFile::default()),
            },
        };
        let text = match files::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => {
                return Ok(SettingsFile { path: Some(path), ..SettingsFile::default() });
            }
            Err(source) => return Err(Error::Unreadable { path, source, is_named }),
        };
        let entries = match parse(&text, user) {
            Ok(entries) => entries,
            Err((line, reason)) => return Err(Error::Wrong { path, line, reason }),
        };
        if let Some(secret) = entries.iter().find(|entry| entry.setting.is_secret())
            && fs::metadata(&path).is_ok_and(|file| private::is_open_to_others(&file))
        {
            let reason = format!(
                "{} is a secret, and other users may read this file; make the file readable for \
                 you only (chmod 600), or set {} instead",
                secret.setting.key, secret.setting.variables[0]
            );
            return Err(Error::Wrong { path, line: secret.line, reason });
        }
        Ok(SettingsFile { path: Some(path), length: text.len() as u64, entries })
    }

    pub(crate) fn entry(&self, setting: &Setting) -> Option<(&Path, &SettingEntry)> {
        let entry = self.entries.iter().find(|entry| entry.setting.key == setting.key)?;
        Some((self.path.as_deref()?, entry))
    }
}

/// Returns the entries of a configuration file; the error is the number of a line and a reason.
fn parse(text: &str, user: Option<&Path>) -> Result<Vec<SettingEntry>, (usize, String)> {
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (line_of(text, at), error.message().to_owned())
    })?;
    let mut entries = Vec::new();
    for (name, value) in document.as_table() {
        let span = document.as_table().key(name).and_then(|key| key.span());
        let line = line_of(text, span.map_or(0, |span| span.start));
        let Some(&setting) = ALL.iter().find(|setting| setting.key == name) else {
            return Err((line, unknown_key(name)));
        };
        let values = values(setting, value, user);
        let values = values.map_err(|reason| (line, format!("{name} {reason}")))?;
        entries.push(SettingEntry { setting, line, values });
    }
    Ok(entries)
}

fn unknown_key(name: &str) -> String {
    let keys: Vec<&str> = ALL.iter().map(|setting| setting.key).collect();
    let likenesses = keys.iter().map(|key| (strsim::jaro_winkler(name, key), key));
    match likenesses.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((likeness, key)) if likeness >= LIKENESS => {
            format!("unknown key {name:?}; did you mean {key:?}?")
        }
        _ => format!("unknown key {name:?}; the keys are {}", keys.join(", ")),
    }
}

/// Returns the values of a setting in the file. The error names the expected kind of value.
fn values(setting: &Setting, value: &Item, user: Option<&Path>) -> Result<Vec<OsString>, String> {
    let wanted = match setting.kind {
        SettingKind::Path => "a path",
        SettingKind::Folders => "a list of folders",
        SettingKind::Patterns => "a list of projects and folders",
        SettingKind::Names => "a list of names",
        SettingKind::Text | SettingKind::Secret => "a text in quotation marks",
        SettingKind::Switch => "true or false",
        SettingKind::Size => "a size of 16M or more, such as \"512M\"",
        SettingKind::Threads => "a number from 1 to 256",
        SettingKind::Share => "a number from 0 to 1 or a percentage, such as 0.4 or \"40%\"",
    };
    let wrong = format!("takes {wanted}, not {}", kind_of_value(value));
    let text = value.as_str().filter(|text| !text.is_empty());
    let texts: Option<Vec<&str>> = match value {
        Item::Value(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().filter(|text| !text.is_empty())).collect()
        }
        _ => text.map(|text| vec![text]),
    };
    let value = match setting.kind {
        SettingKind::Folders => {
            let folders = texts.ok_or(wrong)?.into_iter();
            return folders.map(|text| whole_path(text, user).map(Into::into)).collect();
        }
        SettingKind::Patterns => {
            let texts = texts.ok_or(wrong)?.into_iter();
            let patterns = texts.map(|text| from_user_folder(text, user));
            let patterns = patterns.collect::<Result<Vec<String>, _>>()?;
            Exclusions::parse(&patterns)?;
            return Ok(patterns.into_iter().map(Into::into).collect());
        }
        SettingKind::Path => whole_path(text.ok_or(wrong)?, user)?.into(),
        SettingKind::Names => texts.ok_or(wrong)?.join(",").into(),
        SettingKind::Text | SettingKind::Secret => text.ok_or(wrong)?.into(),
        SettingKind::Switch => value.as_bool().ok_or(wrong)?.to_string().into(),
        SettingKind::Size => text.filter(|text| parse_size(text).is_ok()).ok_or(wrong)?.into(),
        SettingKind::Threads => {
            let number = value.as_integer().filter(|number| (1..=MAX_THREADS).contains(number));
            number.ok_or(wrong)?.to_string().into()
        }
        SettingKind::Share => {
            let number = value.as_float().or_else(|| value.as_integer().map(|it| it as f64));
            let number = number.map(|number| number.to_string());
            let text = number.as_deref().or(text).filter(|text| parse_share(text).is_some());
            text.ok_or(wrong)?.into()
        }
    };
    Ok(vec![value])
}

fn kind_of_value(value: &Item) -> String {
    match value {
        Item::Value(Value::String(text)) if text.value().is_empty() => "an empty text".to_owned(),
        Item::Value(Value::String(_)) => "this text".to_owned(),
        Item::Value(Value::Integer(_) | Value::Float(_)) => "this number".to_owned(),
        Item::Value(Value::Boolean(is_on)) => is_on.value().to_string(),
        Item::Value(Value::Datetime(_)) => "a date".to_owned(),
        Item::Value(Value::Array(list)) if list.iter().any(|one| one.as_str() == Some("")) => {
            "a list with an empty text".to_owned()
        }
        Item::Value(Value::Array(_)) | Item::ArrayOfTables(_) => "such a list".to_owned(),
        Item::Value(Value::InlineTable(_)) | Item::Table(_) | Item::None => "a table".to_owned(),
    }
}

/// Returns a path from the file. Returns an error if the path is relative.
fn whole_path(text: &str, user: Option<&Path>) -> Result<PathBuf, String> {
    let path = PathBuf::from(from_user_folder(text, user)?);
    if path.is_absolute() || StoreAddress::from(&path).path().is_none() {
        Ok(path)
    } else {
        Err(format!("takes a whole path, or one that begins with ~/, not {text:?}"))
    }
}

/// Returns a text in which the user's folder replaces a `~` at the beginning.
fn from_user_folder(text: &str, user: Option<&Path>) -> Result<String, String> {
    let Some(rest) =
        text.strip_prefix('~').filter(|it| it.is_empty() || it.starts_with(['/', '\\']))
    else {
        return Ok(text.to_owned());
    };
    let user = user.ok_or("begins with ~, and the system does not say where your folder is")?;
    Ok(format!("{}{rest}", user.display()))
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

impl Setting {
    pub(super) fn is_secret(&self) -> bool {
        self.kind == SettingKind::Secret
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.kind, SettingKind::Folders | SettingKind::Patterns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_takes_its_kind() {
        let text = "home = '~/chats'\ndb = '/a.db'\nindex = '/i'\narchives = []\n\
                    exclude = ['secret', '~/private/*']\nworkspaces = '/w'\nembeddings = 'built-in'\n\
                    embeddings-key = 'k'\ntools = ['search', 'read']\nwatch = false\nmemory = '64M'\n\
                    threads = 2\ncluster-login = 'u:p'\n\
                    cluster-login-file = '/l'\ncluster-ca = '/ca'\nvector-share = 0.4\n";
        let entries = parse(text, Some(Path::new("/u"))).expect("the file is right");
        let values = |key: &str| {
            let entry = entries.iter().find(|entry| entry.setting.key == key).expect("the key");
            let texts = entry.values.iter().map(|value| value.to_string_lossy().into_owned());
            texts.collect::<Vec<_>>().join("|")
        };
        for (key, expected) in [
            ("home", "/u/chats"),
            ("archives", ""),
            ("exclude", "secret|/u/private/*"),
            ("workspaces", "/w"),
            ("tools", "search,read"),
            ("watch", "false"),
            ("threads", "2"),
            ("vector-share", "0.4"),
        ] {
            assert_eq!(values(key), expected, "{key}");
        }
        assert_eq!(entries.len(), ALL.len());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, part) in [
            ("\nhomes = '/a'", 2, "unknown key \"homes\"; did you mean \"home\"?"),
            ("colour = 1", 1, "unknown key \"colour\"; the keys are home, db"),
            (
                "[exclude]\nprojects = []",
                1,
                "exclude takes a list of projects and folders, not a table",
            ),
            (
                "exclude = ['a', '']",
                1,
                "exclude takes a list of projects and folders, not a list with",
            ),
            ("home = 1", 1, "home takes a path, not this number"),
            ("db = ''", 1, "db takes a path, not an empty text"),
            ("db = 'chats.db'", 1, "db takes a whole path, or one that begins with ~/"),
            (
                "# a\n# b\narchives = ['/a', 2]",
                3,
                "archives takes a list of folders, not such a list",
            ),
            ("watch = 'no'", 1, "watch takes true or false, not this text"),
            ("memory = '1M'", 1, "memory takes a size of 16M or more"),
            ("vector-share = 40", 1, "vector-share takes a number from 0 to 1 or a percentage"),
            ("vector-share = '140%'", 1, "such as 0.4 or \"40%\", not this text"),
            ("vector-share = true", 1, "vector-share takes a number from 0 to 1 or a percentage"),
            ("threads = 0", 1, "threads takes a number from 1 to 256"),
            ("exclude = ['{a']", 1, "exclude"),
            ("home = '/a'\nhome = '/b'", 2, "duplicate key"),
            ("home = ", 1, ""),
        ] {
            let (at, reason) = parse(text, Some(Path::new("/u"))).expect_err("an error");
            assert!(at == line && reason.contains(part), "{text}: {at} {reason}");
        }
        assert!(parse("home = '~'", None).is_err());
    }
}
