//! What has changed in a database since a generation of its index was built.
//!
//! The rows are compared with the sidecar, every one and byte for byte: a database need not have been
//! written by us, and keeps no record of its changes. That is a scan in the order in which rows lie.

use std::{
    cmp::Reverse,
    collections::HashMap,
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use crate::engine::{Error, upkeep::refresh::feed};
use crate::{
    db,
    index::{Document, Generation},
    model::{self, Stop},
};

/// How long the database is read in one transaction: a writer waits no longer than that.
pub(crate) const SLICE: Duration = Duration::from_millis(200);

/// The share of the messages that may be new or changed: beyond it building anew is no dearer.
const MOST: f64 = 0.25;

/// Where a message stands in an answer: in the order of the derived `Ord`, reversed.
pub(crate) type Place = Reverse<(Option<model::Instant>, Option<i64>, i64)>;

/// What has changed.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Slots of the generation whose messages are gone, or are not as they were, ascending.
    pub(crate) dead: Vec<u32>,
    /// Where the messages stand that are new or not as they were; in no order.
    pub(crate) fresh: Vec<Place>,
}

/// What came of comparing.
#[derive(Debug)]
pub(crate) enum Compared {
    /// The difference.
    By(Difference),
    /// So much differs, or is of such a kind, that building anew is better.
    TooMuch,
    /// The database changed meanwhile.
    Unsteady,
}

/// Compares a database with a generation that was built of an earlier state of it.
pub(crate) fn compare(
    path: &Path,
    generation: &Generation,
    is_same_state: &dyn Fn() -> Result<bool, Error>,
    stop: &Stop,
) -> Result<Compared, Error> {
    if !generation.reading().plain {
        return Ok(Compared::TooMuch);
    }
    let (mut known, layout) = {
        let database = db::open(path, stop)?;
        let feed = feed(&database)?;
        if database.layout().parts != generation.reading().decoded || !feed.has_unique_ids()? {
            return Ok(Compared::TooMuch);
        }
        let conversations = feed.conversations()?;
        if conversations.iter().any(|conversation| !conversation.is_plain) {
            return Ok(Compared::TooMuch);
        }
        (Known::of(generation, &conversations), database.layout().clone())
    };
    let most = (f64::from(generation.messages()) * MOST) as usize + 1_000;
    let mut difference =
        Difference { dead: std::mem::take(&mut known.dead), ..Difference::default() };
    let mut rest = known.slots.iter().peekable();
    let mut after = None;
    loop {
        let database = db::open_again(path, &layout, stop)?;
        let feed = feed(&database)?;
        let slice = Instant::now();
        let mut scanned = 0u32;
        let mut is_plain = true;
        let done = feed.scan(after, &mut |row| {
            after = Some(row.key);
            is_plain &= row.is_plain;
            while let Some((_, slot)) = rest.next_if(|(key, _)| *key < row.key) {
                difference.dead.push(*slot);
            }
            let document = Document {
                key: row.key,
                id: &row.id,
                conversation: 0,
                role: &row.role,
                time: row.time,
                position: row.position,
                shown: None,
                stored: row.stored,
            };
            let slot = rest.next_if(|(key, _)| *key == row.key).map(|(_, slot)| *slot);
            let is_same = slot.is_some_and(|slot| {
                let id = row.conversation_id.unwrap_or_default();
                generation.is_same(slot, &document, id)
            });
            if !is_same {
                difference.dead.extend(slot);
                // Without a conversation a message is not searched.
                if row.conversation_id.is_some() {
                    difference.fresh.push(Reverse((row.time, row.position, row.key)));
                }
            }
            scanned += 1;
            let is_over = !is_plain
                || difference.fresh.len() > most
                || scanned.is_multiple_of(64) && (stop.requested() || slice.elapsed() > SLICE);
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        drop(feed);
        drop(database);
        if stop.requested() {
            return Err(db::Error::Stopped.into());
        }
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
    difference.dead.extend(rest.map(|(_, slot)| *slot));
    difference.dead.sort_unstable();
    Ok(Compared::By(difference))
}

/// The messages of a generation, sorted to be compared.
struct Known {
    /// Keys and slots of the messages whose conversations are as they were, by key.
    slots: Vec<(i64, u32)>,
    /// The others: their conversation is gone, or has another title.
    dead: Vec<u32>,
}

impl Known {
    fn of(generation: &Generation, conversations: &[db::Conversation]) -> Known {
        let titles: HashMap<&[u8], Option<&[u8]>> = conversations
            .iter()
            .map(|conversation| (conversation.id.as_bytes(), conversation.title.as_deref()))
            .collect();
        let mut known =
            Known { slots: Vec::with_capacity(generation.messages() as usize), dead: Vec::new() };
        for (part, found) in generation.parts().into_iter().enumerate() {
            let is_as_it_was: Vec<bool> = (0..generation.conversations_in(part))
                .map(|number| {
                    let (id, title) = generation.conversation_in(part, number);
                    titles.get(id) == Some(&title)
                })
                .collect();
            for slot in found.slots.filter(|slot| generation.is_live(*slot)) {
                if is_as_it_was[generation.conversation(slot) as usize] {
                    known.slots.push((generation.key(slot), slot));
                } else {
                    known.dead.push(slot);
                }
            }
        }
        known.slots.sort_unstable();
        known
    }
}
