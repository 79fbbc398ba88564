//! An error of an evaluation.

use std::{io, path::PathBuf};

use verbatim_engine::{self as engine, StoreAddress, WriterError, import::Error as ImportError};
use verbatim_server::tools::hint::Explained;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{}:{line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    /// A file has no messages or questions.
    #[error("{}: {what}", path.display())]
    Empty { path: PathBuf, what: &'static str },
    #[error("cannot make a temporary folder: {0}")]
    Temporary(#[source] io::Error),
    #[error(transparent)]
    Database(#[from] WriterError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(
        "{address}: has {messages} messages that are not in the corpus; name an index that does \
         not exist yet"
    )]
    InUse { address: StoreAddress, messages: u64 },
    #[error("{}", Explained(.0))]
    Engine(#[from] engine::Error),
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}
