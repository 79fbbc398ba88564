//! Compares messages of an index with the rows of the database, which may be newer.

use verbatim_chats::db::ScannedRow;
use verbatim_index::{Document, Snapshot};

/// Returns whether a message of a snapshot equals a row of the database.
pub(crate) fn is_same(snapshot: &Snapshot, doc_id: u32, row: &ScannedRow<'_>) -> bool {
    let document = Document {
        key: row.key,
        id: &row.id,
        conversation: 0,
        role: &row.role,
        is_text_role: row.is_text_role,
        time: row.time,
        position: row.position,
        shown: None,
        stored: row.stored,
    };
    snapshot.is_same(doc_id, &document, row.conversation_id.unwrap_or_default())
}
