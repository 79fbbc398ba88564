//! Finds what has changed in a database since a snapshot of its index was built.
//!
//! Every row is compared with the document store, byte for byte. Nothing else would show all changes,
//! because other programs write the database, and it has no change log. Rows are scanned by rowid.

use std::time::{Duration, Instant};
use std::{cmp::Reverse, collections::HashMap, ops::ControlFlow, path::Path};

use crate::error::{Error, Result};
use crate::source::is_same;
use verbatim_base::{call::Call, model};
use verbatim_chats::db::{self, Database, Layout, RowReader};
use verbatim_index::Snapshot;

/// The longest read transaction. Writers of the database never wait longer.
pub(crate) const SLICE: Duration = Duration::from_millis(200);

/// Share of new and changed messages above which a full build is as cheap as a refresh.
const MOST: f64 = 0.25;

/// The sort key of a message in result order: time, position and rowid, all descending.
pub(crate) type ResultPlace = Reverse<(Option<model::Instant>, Option<i64>, i64)>;

/// Returns a reader that fetches rows of a database by their keys.
pub(crate) fn row_reader(database: &Database) -> Result<RowReader<'_>> {
    RowReader::open(database)?.ok_or_else(|| Error::NoKeys { path: database.path().to_owned() })
}

#[derive(Debug)]
pub(crate) struct Difference {
    /// Doc ids of messages that were deleted or changed, ascending.
    pub(crate) dead: Vec<u32>,
    /// The sort keys of new and changed messages, unsorted.
    pub(crate) fresh: Vec<ResultPlace>,
}

#[derive(Debug)]
pub(crate) enum Compared {
    By(Difference),
    /// The database changed so much, or in such a way, that a full build is better.
    TooMuch,
    /// The database changed during the comparison.
    Unsteady,
}

/// Compares a database with a snapshot of one of its earlier states.
pub(crate) fn compare(
    path: &Path,
    snapshot: &Snapshot,
    is_same_state: &dyn Fn() -> Result<bool>,
    call: &Call,
) -> Result<Compared> {
    let Some(known) = comparable(path, snapshot, call)? else { return Ok(Compared::TooMuch) };
    let most = (f64::from(snapshot.messages()) * MOST) as usize + 1_000;
    let mut difference = Difference { dead: known.dead, fresh: Vec::new() };
    let mut rest = known.doc_ids.iter().peekable();
    let mut after = None;
    loop {
        let database = db::open_again(path, &known.layout, call)?;
        let feed = row_reader(&database)?;
        let slice = Instant::now();
        let mut scanned = 0u32;
        let mut is_plain = true;
        let done = feed.scan(after, &mut |row| {
            after = Some(row.key);
            is_plain &= row.is_plain;
            while let Some((_, doc_id)) = rest.next_if(|(key, _)| *key < row.key) {
                difference.dead.push(*doc_id);
            }
            let doc_id = rest.next_if(|(key, _)| *key == row.key).map(|(_, doc_id)| *doc_id);
            if !doc_id.is_some_and(|doc_id| is_same(snapshot, doc_id, &row)) {
                difference.dead.extend(doc_id);
                // A message without a conversation is not searched.
                if row.conversation_id.is_some() {
                    difference.fresh.push(Reverse((row.time, row.position, row.key)));
                }
            }
            scanned += 1;
            let is_over = !is_plain
                || difference.fresh.len() > most
                || scanned.is_multiple_of(64) && (call.stop.requested() || slice.elapsed() > SLICE);
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        drop(feed);
        drop(database);
        call.stop.check(db::Error::Stopped)?;
        if !is_same_state()? {
            return Ok(Compared::Unsteady);
        }
        if !is_plain || difference.fresh.len() > most {
            return Ok(Compared::TooMuch);
        }
        if done {
            break;
        }
    }
    difference.dead.extend(rest.map(|(_, doc_id)| *doc_id));
    difference.dead.sort_unstable();
    Ok(Compared::By(difference))
}

/// The messages of a snapshot, prepared for the comparison.
struct ComparedMessages {
    layout: Layout,
    /// Keys and doc ids of the messages in unchanged conversations, sorted by key.
    doc_ids: Vec<(i64, u32)>,
    /// Doc ids of the messages whose conversation is gone, or has another title.
    dead: Vec<u32>,
}

/// Returns the messages of a snapshot; `None` if their rows cannot be compared one by one.
fn comparable(path: &Path, snapshot: &Snapshot, call: &Call) -> Result<Option<ComparedMessages>> {
    let reading = snapshot.reading();
    if !reading.plain {
        return Ok(None);
    }
    let database = db::open(path, call)?;
    let layout = database.layout();
    let feed = row_reader(&database)?;
    let is_read_alike =
        layout.parts == reading.decoded && layout.bytewise_roles == reading.bytewise_roles;
    if !is_read_alike || !feed.has_unique_ids()? {
        return Ok(None);
    }
    let conversations = feed.conversations()?;
    if conversations.iter().any(|conversation| !conversation.is_plain) {
        return Ok(None);
    }
    let titles: HashMap<&[u8], Option<&[u8]>> = conversations
        .iter()
        .map(|conversation| (conversation.id.as_bytes(), conversation.title.as_deref()))
        .collect();
    let mut doc_ids = Vec::with_capacity(snapshot.messages() as usize);
    let mut dead = Vec::new();
    for (part, segment) in snapshot.segments().into_iter().enumerate() {
        let is_as_it_was: Vec<bool> = (0..snapshot.conversations_in(part))
            .map(|number| {
                let (id, title) = snapshot.conversation_in(part, number);
                titles.get(id) == Some(&title)
            })
            .collect();
        for doc_id in segment.doc_ids.filter(|doc_id| snapshot.is_alive(*doc_id)) {
            if is_as_it_was[snapshot.conversation(doc_id) as usize] {
                doc_ids.push((snapshot.key(doc_id), doc_id));
            } else {
                dead.push(doc_id);
            }
        }
    }
    doc_ids.sort_unstable();
    Ok(Some(ComparedMessages { layout: layout.clone(), doc_ids, dead }))
}
