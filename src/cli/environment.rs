//! The environment of the program.

use std::{ffi::OsString, fmt, path::PathBuf};

/// The environment of the program; read once, in `main.rs`.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `CONVERSATION_DB`.
    pub conversation_db: Option<OsString>,
    /// `ORIGIN_CONVERSATION_DB`.
    pub origin_conversation_db: Option<OsString>,
    /// `VERBATIM_HOME`.
    pub verbatim_home: Option<OsString>,
    /// `VERBATIM_INDEX`.
    pub verbatim_index: Option<OsString>,
    /// `VERBATIM_TOOLS`.
    pub verbatim_tools: Option<OsString>,
    /// `COMPACT_RESPONSES`.
    pub compact_responses: Option<OsString>,
    /// `ENABLE_CONVERSATIONS`.
    pub enable_conversations: Option<OsString>,
    /// `VERBATIM_EMBEDDINGS`.
    pub verbatim_embeddings: Option<OsString>,
    /// `VERBATIM_EMBEDDINGS_KEY`; shown nowhere.
    pub verbatim_embeddings_key: Option<Secret>,
    /// `OPENAI_API_KEY`; shown nowhere.
    pub openai_api_key: Option<Secret>,
    /// `VERBATIM_WORKSPACE`.
    pub verbatim_workspace: Option<OsString>,
    /// `VERBATIM_ARCHIVE`.
    pub verbatim_archive: Option<OsString>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<OsString>,
    /// `CODEX_HOME`.
    pub codex_home: Option<OsString>,
    /// The user's home folder, where coding agents have their folders.
    pub user_folder: Option<PathBuf>,
    /// The program's file, for the configuration of clients that start it.
    pub program: PathBuf,
    /// The working folder.
    pub working_folder: PathBuf,
    /// The platform's folder for a user's data.
    pub data_folder: Option<PathBuf>,
    /// The platform's folder for a user's configuration.
    pub config_folder: Option<PathBuf>,
    /// `PATH`.
    pub path: Option<OsString>,
    /// Whether questions can be asked: standard input and standard error are a terminal.
    pub can_ask: bool,
    /// Whether output goes to a terminal that shows colours.
    pub colours: bool,
    /// Whether output goes to a terminal.
    pub terminal: bool,
    /// Whether standard error is a terminal; progress is shown there.
    pub progress: bool,
}

/// A value that `Debug` does not show.
#[derive(Clone)]
pub struct Secret(pub OsString);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
