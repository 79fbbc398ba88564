//! An error of an evaluation.

use std::{io, path::PathBuf};

use crate::{
    engine::{self, StoreAddress, WriterError, import::Error as ImportError},
    tools::hint::Explained,
};

/// An error of an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The path of the file of messages or questions.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A line has no message or question.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The path of the file of messages or questions.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason why the file cannot be read.
        reason: String,
    },
    /// A file has no messages or questions.
    #[error("{}: {what}", path.display())]
    Empty {
        /// The path of the file of messages or questions.
        path: PathBuf,
        /// The missing field or record.
        what: &'static str,
    },
    /// The folder for the index cannot be made.
    #[error("cannot make a temporary folder: {0}")]
    Temporary(#[source] io::Error),
    /// The messages cannot be stored.
    #[error(transparent)]
    Database(#[from] WriterError),
    /// The messages cannot be imported into a cluster.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// An index in a cluster has other messages.
    #[error(
        "{address}: has {messages} messages that are not those of the corpus; name an index that is \
         not there yet"
    )]
    InUse {
        /// The address of the index.
        address: StoreAddress,
        /// The number of messages in the index.
        messages: u64,
    },
    /// The messages cannot be indexed or ranked.
    #[error("{}", Explained(.0))]
    Engine(#[from] engine::Error),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}
