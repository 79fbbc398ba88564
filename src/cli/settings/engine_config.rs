//! The engine's configuration and the paths of the data, from flags, the environment and defaults.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::environment::{Environment, is_off};
use super::settings_file::{self, Setting};
use super::values::parse_share;
use super::{SetBy, SettingValue, resolve};
use crate::cli::terminal::output::harmless;
use verbatim_base::private;
use verbatim_engine::{
    COWORK_FOLDER, Config, Key, Provider, StoreAddress, StoredTranscripts, UnknownProvider,
};
use verbatim_text::shell::quoted;

/// The flags that say where the data is.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Places")]
pub(crate) struct PlaceArgs {
    /// Use this database
    ///
    /// Or an index of OpenSearch, such as opensearch+https://HOST:9200/INDEX. By default VERBATIM_DB,
    /// CONVERSATION_DB or ORIGIN_CONVERSATION_DB names it; else it is the newest *.db with chats in the
    /// working folder's db/, or in the home folder's db/.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
    /// Use this home folder
    ///
    /// It holds db/ and index/, unless VERBATIM_INDEX names another folder for the index. By default
    /// VERBATIM_HOME names it; else it is verbatim/ in the platform's local data folder.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) home: Option<PathBuf>,
    /// Search the transcripts of coding agents in this folder (repeatable)
    ///
    /// The default ones are not searched then: those that VERBATIM_ARCHIVE names, or else those of Claude
    /// Code and Codex in the user's home.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) archive: Vec<PathBuf>,
    /// Search no transcripts of coding agents
    #[arg(long, global = true)]
    pub(crate) no_archive: bool,
}

impl PlaceArgs {
    /// Replaces a leading `~/`, which shells leave as it is in `--home=~/chats`, by the user's folder.
    pub(crate) fn expand(&mut self, environment: &Environment) {
        let one = [&mut self.db, &mut self.home].into_iter().flatten();
        for path in one.chain(&mut self.archive) {
            *path = expand_home(path, environment);
        }
    }

    /// Returns a hint whose commands have the flags of this command, so that they can be pasted.
    pub(crate) fn in_commands(&self, hint: &str) -> String {
        let home = flags("home", self.home.as_slice());
        let all = format!("{home}{}", flags("db", self.db.as_slice()));
        let none = if self.no_archive { " --no-archive" } else { "" };
        let reads = format!("{all}{}{none}", flags("archive", &self.archive));
        let commands = [
            ("search", &reads),
            ("reindex", &all),
            ("status", &reads),
            ("doctor", &all),
            ("import", &home),
            ("forget", &home),
        ];
        commands.iter().fold(hint.to_owned(), |hint, (name, flags)| {
            hint.replace(&format!("verbatim {name}"), &format!("verbatim {name}{flags}"))
        })
    }
}

/// Returns the flag of a name for each path, to be pasted after a command.
fn flags(name: &str, paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!(" --{name} {}", quoted(&path.to_string_lossy()))).collect()
}

/// Returns the configuration: flags override the environment, which overrides the configuration
/// file, which overrides defaults. An empty variable counts as absent.
pub(crate) fn config(places: &PlaceArgs, environment: &Environment) -> Config {
    let named = given(&settings_file::HOME, places, environment).path();
    let local_databases = named.is_none().then(|| environment.working_folder.join("db"));
    let home = named.unwrap_or_else(|| default_home(environment));
    let patterns = environment.setting(&settings_file::EXCLUDE).values.into_iter();
    let archives = given(&settings_file::ARCHIVES, places, environment);
    let stored_transcripts = match archives.by {
        SetBy::Default => StoredTranscripts::All,
        _ if archives.values.is_empty() => StoredTranscripts::None,
        SetBy::Flag(_) => StoredTranscripts::OfArchives,
        // They say what is read. What was read before may be of other folders.
        SetBy::Variable(_) | SetBy::File(..) => StoredTranscripts::All,
    };
    let (archives, absent_archives) = match archives.paths() {
        Some(archives) => (archives, Vec::new()),
        None => all_agents_folders(environment).into_iter().partition(|folder| folder.is_dir()),
    };
    let forget_deleted = environment.filled("VERBATIM_FORGET_DELETED");
    Config {
        db: given(&settings_file::DB, places, environment).path().map(StoreAddress::from),
        local_databases: local_databases.filter(|folder| *folder != home.join("db")),
        home,
        index: environment.setting(&settings_file::INDEX).path(),
        archives,
        absent_archives,
        stored_transcripts,
        forget_deleted: forget_deleted.is_some_and(|it| !is_off(Some(it))),
        cluster_ca: environment.setting(&settings_file::CLUSTER_CA).path(),
        exclude: patterns.map(|pattern| pattern.to_string_lossy().into_owned()).collect(),
        ..Config::default()
    }
}

/// Returns an error if the home of `--home` does not exist. A command that reads must not make it.
pub(crate) fn check_home(places: &PlaceArgs, environment: &Environment) -> Result<(), ConfigError> {
    let given = given(&settings_file::HOME, places, environment);
    // A home of the environment or of the configuration file is the usual one of its user, as the default is.
    let SetBy::Flag(_) = given.by else { return Ok(()) };
    match given.path().filter(|home| !home.is_dir()) {
        Some(home) => Err(ConfigError::NoHome {
            command: pasted(&home, environment),
            home: short(&home, environment),
        }),
        None => Ok(()),
    }
}

/// A value that the configuration cannot have; `by` is the variable or the file that gives it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("there is no such home: {home}; `verbatim import --home {command}` makes it")]
    NoHome { home: String, command: String },
    #[error("{by}: {source}")]
    Provider { by: String, source: UnknownProvider },
    #[error(
        "{by}: {text:?} is not a share of vectors; write a number from 0 to 1, such as 0.4, or a \
         percentage, such as 40%"
    )]
    Share { by: String, text: String },
    #[error("{by}: cannot read the password of the cluster from {}: {source}", path.display())]
    UnreadableLogin { by: String, path: PathBuf, source: std::io::Error },
    #[error(
        "{by}: other users may read {}, and the login of the cluster is a secret; make the file readable \
         for you only (chmod 600)", path.display()
    )]
    ExposedLogin { by: String, path: PathBuf },
    /// The text does not show the password.
    #[error("{by}: the login of the cluster must be one line, user:password or ApiKey KEY")]
    Login { by: String },
}

/// Returns the values of a setting if a flag for paths gives them.
pub(crate) fn flag(setting: &Setting, places: &PlaceArgs) -> Option<Vec<OsString>> {
    let paths = match setting.key {
        "home" => places.home.as_slice(),
        "db" => places.db.as_slice(),
        "archives" if places.no_archive => return Some(Vec::new()),
        "archives" => &places.archive,
        _ => &[],
    };
    if paths.is_empty() {
        return None;
    }
    Some(paths.iter().map(|path| path.clone().into_os_string()).collect())
}

fn given(setting: &Setting, places: &PlaceArgs, environment: &Environment) -> SettingValue {
    resolve(setting, flag(setting, places), environment)
}

pub(crate) fn local_note(config: &Config) -> Option<String> {
    config.local_folder()?;
    let database = config.export_store().ok()?;
    Some(format!(
        "searches {}, because the working folder has it; it is only read, and indexes go to {}",
        database,
        config.index_folder().display()
    ))
}

pub(crate) fn passed_over_note(config: &Config) -> Option<String> {
    let others = config.passed_over();
    let others = others.iter().filter(|(_, is_canonical)| *is_canonical);
    let names: Vec<String> = others.map(|(path, _)| path.display().to_string()).collect();
    let searched = config.export_store().ok().filter(|_| !names.is_empty())?;
    Some(format!(
        "searched the newest database, {}; not searched: {} (name one with --db)",
        searched,
        names.join(", ")
    ))
}

/// Returns a path in a form for people, with `~` for the user's folder.
pub(crate) fn short(path: &Path, environment: &Environment) -> String {
    let path = path.display().to_string();
    match user_prefix(environment).and_then(|user| path.strip_prefix(user.as_str())) {
        Some(rest) => harmless(&format!("~/{rest}")),
        None => harmless(&path),
    }
}

/// Returns a path with a leading `~/` replaced by the user's folder.
pub(crate) fn expand_home(path: &Path, environment: &Environment) -> PathBuf {
    match (path.strip_prefix("~"), &environment.user_folder) {
        (Ok(rest), Some(home)) if !path.exists() => home.join(rest),
        _ => path.to_owned(),
    }
}

/// Returns a path as a word of a command for people, with `~` for the user's folder.
pub(crate) fn pasted(path: &Path, environment: &Environment) -> String {
    let path = path.to_string_lossy();
    match user_prefix(environment).and_then(|user| path.strip_prefix(user.as_str())) {
        Some(rest) if !rest.is_empty() => format!("~/{}", quoted(rest)),
        _ => quoted(&path),
    }
}

/// Returns the user's folder with a slash at its end, for which a shell reads `~/`; `None` on Windows.
pub(crate) fn user_prefix(environment: &Environment) -> Option<String> {
    let user = environment.user_folder.as_deref().filter(|user| user.parent().is_some())?;
    (!cfg!(windows)).then(|| format!("{}/", user.display().to_string().trim_end_matches('/')))
}

pub(crate) fn default_home(environment: &Environment) -> PathBuf {
    let data = environment.data_folder.as_ref().map(|data| data.join("verbatim"));
    data.unwrap_or_else(|| environment.working_folder.clone())
}

pub(crate) fn agents_folders(environment: &Environment) -> Vec<PathBuf> {
    let mut folders = all_agents_folders(environment);
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Returns the folder of an agent: that of its variable, or else one in the user's folder.
pub(crate) fn agent_folder(
    variable: &str,
    name: &str,
    environment: &Environment,
) -> Option<PathBuf> {
    let named = environment.filled(variable).map(PathBuf::from);
    named.or_else(|| Some(environment.user_folder.as_ref()?.join(name)))
}

/// Returns all folders in which coding agents may keep their transcripts, even if they do not exist.
fn all_agents_folders(environment: &Environment) -> Vec<PathBuf> {
    let user = environment.user_folder.iter();
    let mut claude = Vec::from_iter(agent_folder("CLAUDE_CONFIG_DIR", ".claude", environment));
    if environment.variable("CLAUDE_CONFIG_DIR").is_none() {
        // Claude Code uses this folder on some systems.
        claude.extend(user.clone().map(|folder| folder.join(".config/claude")));
    }
    let mut codex = Vec::from_iter(agent_folder("CODEX_HOME", ".codex", environment));
    // Claude's desktop app may keep the transcripts of Claude Cowork here, on any system.
    let mut desktop: Vec<PathBuf> = environment.config_folder.iter().cloned().collect();
    for inner in ["Library/Application Support", ".config", "AppData/Roaming"] {
        desktop.extend(user.clone().map(|folder| folder.join(inner)));
    }
    for home in &environment.windows_homes {
        claude.push(home.join(".claude"));
        codex.push(home.join(".codex"));
        desktop.push(home.join("AppData/Roaming"));
    }
    let claude = claude.into_iter().map(|folder| folder.join("projects"));
    let codex = codex
        .into_iter()
        .flat_map(|folder| ["sessions", "archived_sessions"].map(|inner| folder.join(inner)));
    let cowork = desktop.into_iter().map(|folder| folder.join("Claude").join(COWORK_FOLDER));
    let mut folders = Vec::new();
    for folder in claude.chain(codex).chain(cowork) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

pub(crate) fn embeddings(
    flag: Option<&str>,
    environment: &Environment,
) -> Result<Provider, ConfigError> {
    let flag = flag.map(|name| vec![name.into()]);
    let named = resolve(&settings_file::EMBEDDINGS, flag, environment);
    let Some(name) = named.text() else { return Ok(Provider::BuiltIn) };
    let key = environment.setting(&settings_file::EMBEDDINGS_KEY);
    let provider: Provider = name
        .parse()
        .map_err(|source| ConfigError::Provider { by: named.by.to_string(), source })?;
    Ok(provider.with_key(key.text().and_then(|key| Key::new(&key))))
}

/// Returns the share of vectors from the environment or the configuration file, in percent.
pub(crate) fn vector_share(environment: &Environment) -> Result<Option<u8>, ConfigError> {
    let given = environment.setting(&settings_file::VECTOR_SHARE);
    let Some(text) = given.text() else { return Ok(None) };
    match parse_share(&text) {
        Some(percent) => Ok(Some(percent)),
        None => Err(ConfigError::Share { by: given.by.to_string(), text }),
    }
}

pub(crate) fn cluster_login(environment: &Environment) -> Result<Option<Key>, ConfigError> {
    let given = environment.setting(&settings_file::CLUSTER_LOGIN);
    let (text, by) = match given.text() {
        Some(text) => (text, given.by.to_string()),
        None => {
            let file = environment.setting(&settings_file::CLUSTER_LOGIN_FILE);
            let by = file.by.to_string();
            let Some(path) = file.path() else { return Ok(None) };
            let metadata = std::fs::metadata(&path);
            if metadata.is_ok_and(|file| file.is_file() && private::is_open_to_others(&file)) {
                return Err(ConfigError::ExposedLogin { by, path });
            }
            match std::fs::read_to_string(&path) {
                Ok(text) => (text, by),
                Err(source) => return Err(ConfigError::UnreadableLogin { by, path, source }),
            }
        }
    };
    Key::new(&text).map(Some).ok_or(ConfigError::Login { by })
}

pub(crate) fn named_by(places: &PlaceArgs, environment: &Environment) -> Option<&'static str> {
    match given(&settings_file::DB, places, environment).by {
        SetBy::Flag(name) | SetBy::Variable(name) => Some(name),
        SetBy::File(..) => Some("db in config.toml"),
        SetBy::Default => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(flags: [Option<&str>; 2]) -> PlaceArgs {
        let [db, home] = flags.map(|flag| flag.map(PathBuf::from));
        PlaceArgs { db, home, ..PlaceArgs::default() }
    }

    #[test]
    fn flags_come_before_environment() {
        let environment = Environment {
            variables: [
                ("CONVERSATION_DB", ""),
                ("ORIGIN_CONVERSATION_DB", "origin.db"),
                ("VERBATIM_HOME", "home"),
                ("VERBATIM_INDEX", "index"),
            ]
            .into(),
            data_folder: Some("data".into()),
            working_folder: "nowhere".into(),
            ..Environment::default()
        };
        let expected = Config {
            db: Some("origin.db".into()),
            home: "home".into(),
            index: Some("index".into()),
            ..Config::default()
        };
        assert_eq!(config(&places([None; 2]), &environment), expected);
        let flags = places([Some("a"), Some("b")]);
        let expected = Config { db: Some("a".into()), home: "b".into(), ..expected };
        assert_eq!(config(&flags, &environment), expected);
        let bare = Environment { variables: [].into(), ..environment };
        let config = config(&places([None; 2]), &bare);
        assert_eq!(config.home, PathBuf::from("data/verbatim"));
        assert_eq!(config.local_databases, Some(PathBuf::from("nowhere/db")));
    }

    #[cfg(unix)]
    #[test]
    fn a_login_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("temporary folders can be made");
        let file = folder.path().join("login");
        std::fs::write(&file, "anna:a secret\n").expect("a file");
        let variables =
            [("VERBATIM_CLUSTER_LOGIN_FILE", file.to_str().expect("a plain path"))].into();
        let environment = Environment { variables, ..Environment::default() };
        for (mode, is_taken) in [(0o644, false), (0o640, false), (0o600, true)] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&file, permissions).expect("a file of ours");
            match cluster_login(&environment) {
                Ok(login) => assert!(is_taken && login.is_some(), "{mode:o}"),
                Err(error) => assert!(!is_taken && error.to_string().contains("chmod 600")),
            }
        }
    }

    #[test]
    fn archives_by_flag_environment_and_home() {
        let user = tempfile::tempdir().expect("temporary folders can be made");
        let claude = user.path().join(".claude/projects");
        let codex = user.path().join("elsewhere/sessions");
        for folder in [&claude, &codex] {
            std::fs::create_dir_all(folder).expect("folders can be made");
        }
        let mut environment = Environment {
            user_folder: Some(user.path().to_owned()),
            variables: [("CODEX_HOME", &*user.path().join("elsewhere").to_string_lossy())].into(),
            ..Environment::default()
        };
        let found = config(&places([None; 2]), &environment);
        assert_eq!(found.archives, [claude, codex]);
        // Folders that do not exist now are read once they do.
        let absent = [
            ".config/claude/projects",
            "elsewhere/archived_sessions",
            "Library/Application Support/Claude/local-agent-mode-sessions",
            ".config/Claude/local-agent-mode-sessions",
            "AppData/Roaming/Claude/local-agent-mode-sessions",
        ];
        assert_eq!(found.absent_archives, absent.map(|folder| user.path().join(folder)));
        // In WSL, agents that run in Windows have their folders there.
        let windows = user.path().join("windows");
        std::fs::create_dir_all(windows.join(".codex/sessions")).expect("folders can be made");
        environment.windows_homes = vec![windows.clone()];
        let found = config(&places([None; 2]), &environment).archives;
        assert_eq!(found.last(), Some(&windows.join(".codex/sessions")));
        assert_eq!(found.len(), 3);
        environment.variables = [("VERBATIM_ARCHIVE", "a")].into();
        assert_eq!(config(&places([None; 2]), &environment).archives, [PathBuf::from("a")]);
        let mut flags = places([None; 2]);
        flags.archive = vec!["b".into(), "c".into()];
        assert_eq!(config(&flags, &environment).archives, ["b", "c"].map(PathBuf::from));
        let none = PlaceArgs { no_archive: true, ..places([None; 2]) };
        assert!(config(&none, &environment).archives.is_empty());
        assert!(config(&places([None; 2]), &Environment::default()).archives.is_empty());
    }
}
