//! An error of a command.

use std::{io, path::PathBuf};

use super::{
    connect, eval, import,
    places::{WrongLogin, WrongProvider},
    settings_file,
};
use crate::{
    engine::{self, WriterError},
    http, mcp,
    tools::{self, hint::Explained},
};

/// Returns the text of an engine error with a hint. If there are no chats, the hint to import comes first.
fn explained(error: &engine::Error) -> String {
    let says = Explained(error);
    match error {
        engine::Error::NoDatabase { .. } => format!(
            "there are no chats yet; `verbatim import` finds the exports in your downloads, \
             `verbatim demo` shows a sample\n{says}"
        ),
        engine::Error::SameId { keys, .. } => {
            let commands = keys.iter().map(|(_, key)| format!("`verbatim show {key}`"));
            format!("{says}, as in {}", commands.collect::<Vec<_>>().join(" or "))
        }
        _ if error.is_not_found() => error.reason(),
        _ => says.to_string(),
    }
}

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(clap::Error),
    /// The engine could not answer.
    #[error("{}", explained(.0))]
    Engine(#[from] engine::Error),
    /// The server could not serve.
    #[error(transparent)]
    Serve(#[from] mcp::Error),
    /// The server could not serve over HTTP.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// The named thread does not exist, or the turns to record cannot be read.
    #[error("{0}")]
    Threads(String),
    /// The named tools cannot be offered.
    #[error("{by}: {source}")]
    Tools {
        /// The flag or variable that names the tools.
        by: String,
        /// The reason.
        source: tools::OfferError,
    },
    /// The configuration file cannot be read, or has a wrong key or value.
    #[error(transparent)]
    Settings(#[from] settings_file::Error),
    /// Nothing was forgotten; the text is a hint.
    #[error("{0}")]
    Forget(String),
    /// The import failed.
    #[error(transparent)]
    Import(#[from] import::Error),
    /// Nothing could be watched.
    #[error("cannot start to watch: {0}")]
    Watch(#[source] io::Error),
    /// An unknown provider is named.
    #[error(transparent)]
    Embeddings(#[from] WrongProvider),
    /// The login of the cluster cannot be read.
    #[error(transparent)]
    Login(#[from] WrongLogin),
    /// A chart could not be written.
    #[error("{}: cannot write the chart: {source}", path.display())]
    Drawing {
        /// The path of the file that cannot be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The evaluation failed.
    #[error(transparent)]
    Eval(#[from] eval::Error),
    /// A conversation could not be exported.
    #[error("{}: cannot be written: {source}", path.display())]
    Export {
        /// The path of the folder or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The manual pages could not be written.
    #[error("{}: cannot write the manual pages: {source}", folder.display())]
    Pages {
        /// The folder that cannot be written.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A home of an older version could not be moved.
    #[error("the chats of an older version could not be moved: {0}")]
    Move(#[from] WriterError),
    /// A client's configuration could not be changed.
    #[error(transparent)]
    Connect(#[from] connect::Error),
    /// The terminal could not be used.
    #[error("cannot use the terminal for the search: {0}")]
    Terminal(#[source] io::Error),
    /// A program could not be started.
    #[error("cannot start {what}: {source}")]
    Start {
        /// The program and its purpose.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}
