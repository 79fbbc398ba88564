//! An error of a command.

use std::{io, path::PathBuf};

use clap::error::ErrorKind;

use super::{
    commands::{connect::error::Error as ConnectError, import::error::Error as ImportError},
    settings::{engine_config::ConfigError, settings_file},
};
use verbatim_answer::{hint::Explained, json_lines};
use verbatim_base::map_faults::FaultWatch;
use verbatim_engine::{self as engine, Engine, import::is_being_made};
use verbatim_server::{http, mcp, tools};
use verbatim_text::shell::quoted;

/// The message of commands that read chats while the first import is at work.
pub(super) const IMPORTING: &str =
    "the first import is at work: its chats can be searched when it has ended";

/// Returns the text of an engine error with a hint. If there are no chats, the hint to import comes first.
fn explained(error: &engine::Error) -> String {
    let says = Explained(error);
    match error {
        engine::Error::NoDatabase { folder } if is_being_made(folder) => IMPORTING.to_owned(),
        engine::Error::NoDatabase { folder } => format!(
            "no chats are imported yet; `verbatim import` finds the exports in your downloads, \
             `verbatim demo` shows a sample\n(looked for a database in {}; --db names another)",
            folder.display()
        ),
        engine::Error::SameId { keys, .. } => {
            let commands = keys.iter().map(|(_, key)| format!("`verbatim show {key}`"));
            format!("{says}, as in {}", commands.collect::<Vec<_>>().join(" or "))
        }
        // A search for the text of a link or a path would hardly help.
        engine::Error::NoConversation { word } if !word.contains('/') => {
            format!("{says}; `verbatim search {}` finds messages with that text", quoted(word))
        }
        _ if error.is_not_found() => error.to_string(),
        _ => says.to_string(),
    }
}

pub(super) fn usage(message: String) -> Error {
    Error::Usage(clap::Error::raw(ErrorKind::ValueValidation, format!("{message}\n")))
}

/// Returns an error if what was printed may be torn.
pub(super) fn refuse_torn(engine: &Engine) -> Result<()> {
    if FaultWatch::default().has_noticed() {
        let folder = engine.config().index_folder();
        return Err(engine::Error::Torn { folder }.into());
    }
    Ok(())
}

impl From<json_lines::Error> for Error {
    fn from(error: json_lines::Error) -> Error {
        match error {
            json_lines::Error::Engine(error) => error.into(),
            json_lines::Error::Io(error) => error.into(),
        }
    }
}

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Usage(clap::Error),
    #[error("{}", explained(.0))]
    Engine(#[from] engine::Error),
    #[error(transparent)]
    Serve(#[from] mcp::Error),
    #[error(transparent)]
    Http(#[from] http::Error),
    #[error("{by}: {source}")]
    Tools { by: String, source: tools::OfferError },
    #[error(transparent)]
    Settings(#[from] settings_file::Error),
    /// Nothing was forgotten; the text is a hint.
    #[error("{0}")]
    Forget(String),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error("cannot start to watch: {0}")]
    Watch(#[source] io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{}: cannot be written: {source}", path.display())]
    Export { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A part of the program that was left out when it was built.
    #[cfg(not(all(feature = "page", feature = "picker")))]
    #[error("this program was built without {what}; build it with the feature `{feature}`")]
    NotBuilt { what: &'static str, feature: &'static str },
    #[error("cannot use the terminal for the search: {0}")]
    Terminal(#[source] io::Error),
    #[error("cannot start {what}: {source}")]
    Start { what: String, source: io::Error },
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}
