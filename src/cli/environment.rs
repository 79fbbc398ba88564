//! The environment of the program.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    io::{self, IsTerminal},
    path::PathBuf,
};

use anstream::{AutoStream, ColorChoice};

use super::settings_file::SettingsFile;

/// The environment variable with which a shell requests completions. Its value names the shell.
pub(super) const COMPLETED_SHELL: &str = "VERBATIM_COMPLETE";

/// The variables, the folders and the terminal of the program's process.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub conversation_db: Option<OsString>,
    pub origin_conversation_db: Option<OsString>,
    pub verbatim_db: Option<OsString>,
    /// The environment variable `VERBATIM_CLUSTER_LOGIN`, which is never printed.
    pub verbatim_cluster_login: Option<Secret>,
    pub verbatim_cluster_login_file: Option<OsString>,
    pub verbatim_cluster_ca: Option<OsString>,
    pub verbatim_home: Option<OsString>,
    pub verbatim_index: Option<OsString>,
    pub verbatim_tools: Option<OsString>,
    pub compact_responses: Option<OsString>,
    pub enable_conversations: Option<OsString>,
    pub verbatim_token: Option<Secret>,
    pub verbatim_embeddings: Option<OsString>,
    /// The environment variable `VERBATIM_EMBEDDINGS_KEY`, which is never printed.
    pub verbatim_embeddings_key: Option<Secret>,
    /// The environment variable `OPENAI_API_KEY`, which is never printed.
    pub openai_api_key: Option<Secret>,
    pub verbatim_workspace: Option<OsString>,
    pub verbatim_archive: Option<OsString>,
    pub verbatim_config: Option<OsString>,
    /// The platform's folder for a user's configuration; `None` if the process does not know the user.
    pub settings_folder: Option<PathBuf>,
    /// The content of the configuration file; empty until a command reads the file.
    pub settings: SettingsFile,
    pub verbatim_forget_deleted: Option<OsString>,
    pub claude_config_dir: Option<OsString>,
    pub codex_home: Option<OsString>,
    /// The home folder of the user, in which coding agents have their folders.
    pub user_folder: Option<PathBuf>,
    /// The path of this program, for the configurations of clients that start it.
    pub program: PathBuf,
    pub working_folder: PathBuf,
    /// The platform's folder for user data that is not copied to other machines.
    pub data_folder: Option<PathBuf>,
    /// The platform's roaming data folder, if it differs from the local data folder. Older versions
    /// kept their home there.
    pub roaming_folder: Option<PathBuf>,
    /// The folder in which browsers store downloads.
    pub download_folder: Option<PathBuf>,
    /// The platform's folder for a user's configuration.
    pub config_folder: Option<PathBuf>,
    pub path: Option<OsString>,
    /// Whether questions can be asked: standard input and standard error are a terminal.
    pub can_ask: bool,
    /// Whether output goes to a terminal that shows colours.
    pub colours: bool,
    /// Whether output goes to a terminal.
    pub terminal: bool,
    /// Whether the whole screen can be used: standard input and output are a terminal that is not dumb.
    pub full_screen: bool,
    pub columns: Option<usize>,
    /// Whether the terminal is known to support links.
    pub shows_links: bool,
    /// The environment variable `VERBATIM_PAGER`, or else `PAGER`.
    pub pager: Option<OsString>,
    pub less: Option<OsString>,
    /// The environment variable `VERBATIM_COMPLETE`, which names the shell that requests completions.
    pub completed_shell: Option<OsString>,
    /// Whether times are shown and read in the time zone of this computer, not in UTC.
    pub local_time: bool,
    /// Whether standard error is a terminal; progress is shown there.
    pub progress: bool,
}

impl Environment {
    pub fn of_process() -> io::Result<Environment> {
        let stdout = io::stdout();
        let working_folder = env::current_dir()
            .map_err(|error| io::Error::new(error.kind(), "the working folder is gone"))?;
        // If `HOME` is not set, the home folder in the system's user database must not be used.
        let user_folder =
            dirs::home_dir().filter(|_| cfg!(windows) || env::var_os("HOME").is_some());
        let downloads = || Some(user_folder.as_ref()?.join("Downloads"));
        Ok(Environment {
            conversation_db: env::var_os("CONVERSATION_DB"),
            origin_conversation_db: env::var_os("ORIGIN_CONVERSATION_DB"),
            verbatim_db: env::var_os("VERBATIM_DB"),
            verbatim_cluster_login: env::var_os("VERBATIM_CLUSTER_LOGIN").map(Secret),
            verbatim_cluster_login_file: env::var_os("VERBATIM_CLUSTER_LOGIN_FILE"),
            verbatim_cluster_ca: env::var_os("VERBATIM_CLUSTER_CA"),
            verbatim_home: env::var_os("VERBATIM_HOME"),
            verbatim_index: env::var_os("VERBATIM_INDEX"),
            verbatim_tools: env::var_os("VERBATIM_TOOLS"),
            compact_responses: env::var_os("COMPACT_RESPONSES"),
            enable_conversations: env::var_os("ENABLE_CONVERSATIONS"),
            verbatim_token: env::var_os("VERBATIM_TOKEN").map(Secret),
            verbatim_embeddings: env::var_os("VERBATIM_EMBEDDINGS"),
            verbatim_embeddings_key: env::var_os("VERBATIM_EMBEDDINGS_KEY").map(Secret),
            openai_api_key: env::var_os("OPENAI_API_KEY").map(Secret),
            verbatim_workspace: env::var_os("VERBATIM_WORKSPACE"),
            verbatim_archive: env::var_os("VERBATIM_ARCHIVE"),
            verbatim_config: env::var_os("VERBATIM_CONFIG"),
            settings_folder: dirs::config_dir()
                .filter(|_| user_folder.is_some() || env::var_os("XDG_CONFIG_HOME").is_some()),
            settings: SettingsFile::default(),
            verbatim_forget_deleted: env::var_os("VERBATIM_FORGET_DELETED"),
            claude_config_dir: env::var_os("CLAUDE_CONFIG_DIR"),
            codex_home: env::var_os("CODEX_HOME"),
            data_folder: dirs::data_local_dir(),
            roaming_folder: dirs::data_dir()
                .filter(|it| Some(it) != dirs::data_local_dir().as_ref()),
            download_folder: dirs::download_dir().or_else(downloads),
            user_folder,
            program: env::current_exe().unwrap_or_else(|_| "verbatim".into()),
            working_folder,
            config_folder: dirs::config_dir(),
            path: env::var_os("PATH"),
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
            colours: AutoStream::choice(&stdout) != ColorChoice::Never,
            terminal: stdout.is_terminal(),
            full_screen: io::stdin().is_terminal()
                && stdout.is_terminal()
                && env::var_os("TERM").is_none_or(|name| name != "dumb"),
            columns: terminal_size::terminal_size_of(&stdout).map(|(width, _)| width.0.into()),
            shows_links: supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout),
            pager: env::var_os("VERBATIM_PAGER").or_else(|| env::var_os("PAGER")),
            less: env::var_os("LESS"),
            completed_shell: env::var_os(COMPLETED_SHELL),
            local_time: true,
            progress: io::stderr().is_terminal(),
        })
    }
}

/// Returns whether the value of a variable switches something off.
pub(super) fn is_off(variable: Option<&OsStr>) -> bool {
    let value = variable.and_then(OsStr::to_str).unwrap_or_default().trim().to_ascii_lowercase();
    ["false", "0", "no", "off"].contains(&value.as_str())
}

/// A value that `Debug` hides.
#[derive(Clone)]
pub struct Secret(pub OsString);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
