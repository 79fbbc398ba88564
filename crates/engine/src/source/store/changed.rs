//! Compares messages of an index with the rows of the database, which may be newer.

use verbatim_chats::db::{self, ScannedRow};
use verbatim_index::{Document, Snapshot};

/// Returns whether a message of a snapshot equals a row of the database.
pub(crate) fn is_same(snapshot: &Snapshot, doc_id: u32, row: &ScannedRow<'_>) -> db::Result<bool> {
    let long = row.long.map(|long| (long, snapshot.stored(doc_id)));
    let stored = match &long {
        Some((long, stored)) if long.equals(stored)? => Some(&**stored),
        Some(_) => return Ok(false),
        None => row.stored,
    };
    let document = Document {
        key: row.key,
        id: &row.id,
        conversation: 0,
        role: &row.role,
        is_text_role: row.is_text_role,
        time: row.time,
        position: row.position,
        shown: None,
        stored,
    };
    Ok(snapshot.is_same(doc_id, &document, row.conversation_id.unwrap_or_default()))
}
