//! Canonical SQLite databases: opened for reading, searched by SQLite's own `LIKE`.
//!
//! Invariant: a user's database is never written to, and no file is left beside it.
//! Invariant: another writer of the database waits no longer than one of our queries takes.

mod canonical;
mod examine;
mod functions;
pub(crate) mod header;
mod layout;

mod open;
mod outline;
mod row_reader;
mod rows;
mod schema;
mod search;
mod spill;
mod state;
pub mod tally;
mod temporary;
pub mod threads;
pub mod transcripts;
mod whole;
pub mod writer;

use std::{io, path::PathBuf};

pub use crate::model::Origin as StoredOrigin;
pub use examine::{counts, faults, sample_keys, span, strays};
pub use layout::Layout;
pub use open::{Database, open, open_again, read};
pub use outline::{Outline, origins, outline};
pub use row_reader::{Conversation, Row, RowReader, Scanned};
pub use rows::{Heading, conversation};
pub use search::search;
pub use spill::Hits;
pub(crate) use state::settled;
pub use state::{Probe, State, state};
pub use whole::is_whole;

/// What can go wrong with a database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("Database not found: {}", path.display())]
    NotFound {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file is no database.
    #[error("{}: not an SQLite database", path.display())]
    NotADatabase {
        /// The path of the file.
        path: PathBuf,
    },
    /// The database does not hold conversations.
    #[error("{}: no {missing} (looked for {})", path.display(), layout::LOOKED_FOR)]
    NotCanonical {
        /// The path of the file.
        path: PathBuf,
        /// The missing table or column.
        missing: String,
    },
    /// Another program kept the database locked.
    #[error("{}: locked by another program for {} seconds; try again when it is done", path.display(), open::PATIENCE.as_secs())]
    Busy {
        /// The path of the file.
        path: PathBuf,
    },
    /// Another program changed the database at each attempt.
    #[error("{}: kept changing while it was read; try again when it is quiet", path.display())]
    Unsteady {
        /// The path of the file.
        path: PathBuf,
    },
    /// The [`Stop`](crate::model::Stop) was requested.
    #[error("stopped")]
    Stopped,
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Hits could not be spilled to a temporary file.
    #[error("cannot keep the hits in a temporary file: {0}")]
    Spill(#[source] io::Error),
    /// SQLite failed.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The path of the file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}
