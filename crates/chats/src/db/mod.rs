//! Canonical SQLite databases: opened for reading, and searched with SQLite's own `LIKE`.
//!
//! Invariant: a user's database is never written to, and no file is added to its folder.
//! Invariant: other writers of the database wait at most for the duration of one query of this program.

mod branches;
mod canonical;
mod detect;
mod error;
mod examine;
mod functions;
pub mod header;
mod layout;
mod open;
mod outline;
mod row_reader;
mod rows;
mod schema;
mod scrub;
mod search;
mod skeletons;
mod state;
mod stored_conversations;
pub mod tally;
mod temporary;
pub mod threads;
pub mod transcripts;
pub mod writer;

pub use branches::branches;
pub use detect::{has_log, is_canonical, is_whole};
pub use error::{Error, Result};
pub use examine::{OwnDatabase, why_not_written};
pub use examine::{counts, faults, imports, is_imported, newest_titles, sample_keys, span, strays};
pub use layout::Layout;
pub use open::{Database, beside, open, open_again, read, read_tables};
pub use outline::{
    Outline, conversation_rows, last_changes, not_stored, origins, outline, provenance,
    reader_state, reading_states,
};
pub use row_reader::{ConversationEntry, Row, RowReader, Scanned as ScannedRow};
pub use rows::{Heading, conversation};
pub use search::{search, search_without};
pub use skeletons::{Skeleton, skeletons};
pub use state::{Probe, State, settled, state};
pub use stored_conversations::{each_conversation, obstacle};
pub use temporary::{is_being_made, is_temporary, remove_abandoned, write_whole};
