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
pub mod header;
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

pub use branches::branches;
pub use carry::{carry, obstacle};
pub use error::{Error, Result};
pub use examine::newest_titles;
pub use examine::{counts, faults, imports, is_imported, sample_keys, span, strays};
pub use layout::Layout;
pub use long_content::LongContent;
pub use long_content::{LongContents, LongTexts};
pub use open::beside;
pub use open::{Database, open, open_again, read, read_tables};
pub use outline::{Outline, origins, outline};
pub use outline::{
    conversation_rows, last_changes, provenance, reader_of, reading_states, withheld,
};
pub use relocate::relocate;
pub use row_reader::Scanned as ScannedRow;
pub use row_reader::{ConversationEntry, Row, RowReader};
pub use rows::Heading;
pub use rows::conversation;
pub use scan::{ScanFilter, ScanPlace, ScannedMessage, Skeleton, fetch, scan, skeletons, titles};
pub use search::search;
pub use search::search_without;
pub use spill::Hits;
pub use state::settled;
pub use state::{Probe, State, state};
pub use temporary::{is_temporary, remove_abandoned, write_whole};
pub use whole::{has_log, is_canonical, is_whole};
