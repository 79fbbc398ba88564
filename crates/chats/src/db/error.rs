//! An error of a database.

use std::{io, path::PathBuf, time::Duration};

use super::layout;
use verbatim_text::expression::ExpressionError;

pub(super) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a database.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// The file does not exist.
    #[error("Database not found: {}", path.display())]
    NotFound { path: PathBuf },
    /// The file is not a database.
    #[error("{}: not an SQLite database", path.display())]
    NotADatabase { path: PathBuf },
    /// The database does not hold conversations.
    #[error("{}: no {missing} (looked for {})", path.display(), layout::LOOKED_FOR)]
    NotCanonical { path: PathBuf, missing: String },
    /// Another program kept the database locked.
    #[error("{}: the database is locked by another program, which writes to it; try again", path.display())]
    Busy { path: PathBuf },
    /// Another program changed the database at each attempt.
    #[error("{}: changed at every attempt to read it; try again later", path.display())]
    Unsteady { path: PathBuf },
    /// A regular expression of the request is wrong or too large.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The [`Stop`](verbatim_base::call::Stop) was requested.
    #[error("stopped")]
    Stopped,
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A value of the database is longer than SQLite can read.
    #[error(
        "{}: a message is longer than SQLite can read, which is 1 GB; nothing is searched as long as \
         the database has it",
        path.display()
    )]
    TooLong { path: PathBuf },
    /// SQLite failed.
    #[error("{}: {source}", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}
