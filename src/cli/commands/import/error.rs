//! An error of an import.

use std::{io, path::PathBuf};

use verbatim_engine::{self as engine, import};
use verbatim_text::shell::quoted;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Import(#[from] import::Error),
    /// The user named standard input, but an import must read its input twice.
    #[error("-: an export is read from files, not from standard input; save it, and name the file")]
    Stdin,
    #[error(
        "{}: not written to, because another program made it; leave out {named}, or write into it \
         with --out {}",
        path.display(),
        quoted(&path.to_string_lossy())
    )]
    Foreign { path: PathBuf, named: &'static str },
    #[error(transparent)]
    Database(#[from] engine::Error),
    #[error("{}: cannot write the sample: {source}; name another folder with --home", path.display())]
    Sample { path: PathBuf, source: io::Error },
    #[error("cannot write the report: {0}")]
    Output(#[from] io::Error),
}
