//! Compares messages of an index with the rows of the database, which may be newer.

use std::collections::HashSet;

use super::Source;
use crate::error::Result;
use verbatim_base::model::Stop;
use verbatim_chats::db::{self, Database, RowReader, ScannedRow};
use verbatim_index::{Document, Snapshot};

impl Source {
    /// Returns the given messages of a snapshot that were changed in the database or deleted from it since.
    pub(crate) fn changed_or_deleted(
        &self,
        snapshot: &Snapshot,
        doc_ids: &[u32],
        stop: &Stop,
    ) -> Result<HashSet<u32>> {
        self.read_database(stop, |database| changed_or_deleted(database, snapshot, doc_ids, stop))
    }
}

fn changed_or_deleted(
    database: &Database,
    snapshot: &Snapshot,
    doc_ids: &[u32],
    stop: &Stop,
) -> db::Result<HashSet<u32>> {
    let mut changed: HashSet<u32> = doc_ids.iter().copied().collect();
    let Some(reader) = RowReader::open(database)? else { return Ok(changed) };
    let keys: Vec<i64> = doc_ids.iter().map(|doc_id| snapshot.key(*doc_id)).collect();
    let pairs = reader.with_conversations(&keys)?;
    let kept: HashSet<i64> = pairs.into_iter().map(|[message, _]| message).collect();
    for (doc_id, key) in doc_ids.iter().zip(keys).filter(|(_, key)| kept.contains(key)) {
        stop.check(db::Error::Stopped)?;
        let mut is_as_it_was = false;
        reader.scan(key.checked_sub(1), &mut |row| {
            is_as_it_was = is_same(snapshot, *doc_id, &row);
            std::ops::ControlFlow::Break(())
        })?;
        if is_as_it_was {
            changed.remove(doc_id);
        }
    }
    Ok(changed)
}

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
