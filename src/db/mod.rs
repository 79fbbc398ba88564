//! Canonical SQLite databases: opened for reading, and searched with SQLite's own `LIKE`.
//!
//! Invariant: a user's database is never written to, and no file is added to its folder.
//! Invariant: other writers of the database wait at most for the duration of one query of this program.

mod branches;
mod canonical;
mod carry;
mod error;
mod examine;
mod functions;
pub(crate) mod header;
mod layout;
mod long_column;
mod long_content;
mod open;
mod outline;
mod relocate;
mod row_reader;
mod rows;
mod scan;
mod schema;
mod scrub;
mod search;
mod spill;
mod state;
pub mod tally;
mod temporary;
pub mod threads;
pub mod transcripts;
mod whole;
pub mod writer;

/// A connection that writes, for the engine's unit tests.
#[cfg(test)]
pub(crate) use rusqlite::Connection as TestConnection;

pub(crate) use branches::branches;
pub(crate) use carry::{carry, obstacle};
pub use error::{Error, Result};
pub(crate) use examine::newest_titles;
pub use examine::{counts, faults, imports, is_imported, sample_keys, span, strays};
pub use layout::Layout;
pub use long_content::LongContent;
pub(crate) use long_content::{LongContents, LongTexts};
pub(crate) use open::beside;
pub use open::{Database, open, open_again, read, read_tables};
pub use outline::{Outline, origins, outline};
pub(crate) use outline::{
    conversation_rows, last_changes, provenance, reader_of, reading_states, withheld,
};
pub(crate) use relocate::relocate;
pub(crate) use row_reader::Scanned as ScannedRow;
pub use row_reader::{ConversationEntry, Row, RowReader};
pub use rows::Heading;
pub(crate) use rows::conversation;
pub use scan::{ScanFilter, ScanPlace, ScannedMessage, Skeleton, fetch, scan, skeletons, titles};
pub use search::search;
pub(crate) use search::search_without;
pub use spill::Hits;
pub(crate) use state::settled;
pub use state::{Probe, State, state};
pub(crate) use temporary::{is_temporary, remove_abandoned, write_whole};
pub use whole::{has_log, is_canonical, is_whole};
