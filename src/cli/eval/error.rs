//! An error of an evaluation.

use std::{io, path::PathBuf};

use verbatim_answer::hint::Explained;
use verbatim_engine::{self as engine, StoreAddress, WriterError, import::Error as ImportError};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{}:{line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    /// A file of a published set is damaged, or is none.
    #[error("{}: not a file of {form}: {reason}", path.display())]
    Form { path: PathBuf, form: &'static str, reason: String },
    #[error(
        "{}: has no messages; name their file with --corpus (only files of LongMemEval and LoCoMo and \
         folders of BEAM have both)",
        path.display()
    )]
    NoCorpus { path: PathBuf },
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
    /// A question was not ranked by the whole mode, so its figures would be those of another one.
    #[error("cannot measure the mode {mode}: {reason}")]
    Incomplete { mode: &'static str, reason: String },
    #[error("{}", Explained(.0))]
    Engine(#[from] engine::Error),
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}
