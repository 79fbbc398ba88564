//! Compares an index with its database on a sample: messages both ways, and answers with `LIKE`.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    ops::ControlFlow,
    time::Duration,
};

use crate::engine::{Answered, Engine, Source, report::doctor::Finding};
use crate::{
    db::{self, Feed},
    index::Generation,
    model::{Hit, Request, Stop},
};

/// Messages compared each way.
const MESSAGES: usize = 200;

/// Queries answered twice, and how long the slower way may take for all of them.
const QUERIES: usize = 8;
const PATIENCE: Duration = Duration::from_secs(15);

/// The most hits that are compared.
const HITS: usize = 50;

/// What the index may say otherwise than the database.
const MEND: &str = "verbatim reindex --full, and please report it";

/// Compares an index that mirrors its database; says nothing of what changed meanwhile.
pub(crate) fn compare(
    engine: &Engine,
    source: &Source,
    generation: &Generation,
    stop: &Stop,
) -> Vec<Finding> {
    let about = source.path.display().to_string();
    let mut differences = match messages(source, generation, stop) {
        Ok(differences) => differences,
        Err(error) => return vec![Finding::note(about, error.to_string(), "")],
    };
    let mut compared = 0;
    for query in queries(generation) {
        match query_twice(engine, source, &query, stop) {
            Some(true) => compared += 1,
            Some(false) => differences.push(format!("{query:?} is answered otherwise")),
            None => break,
        }
    }
    let is_same = engine.mirror(source).is_ok_and(|now| now.name() == generation.name());
    if !is_same {
        return Vec::new();
    }
    if differences.is_empty() {
        let what = format!(
            "the index has the same as the database: {} messages and {compared} searches compared",
            2 * MESSAGES.min(generation.messages() as usize)
        );
        return vec![Finding::well(about, what)];
    }
    let shown = differences.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
    let what = format!("the index is not as the database: {shown}");
    vec![Finding::wrong(about, what, MEND)]
}

/// Returns the messages of a sample that index and database have differently.
fn messages(
    source: &Source,
    generation: &Generation,
    stop: &Stop,
) -> Result<Vec<String>, db::Error> {
    db::read(&source.path, stop, |database| {
        let Some(mut feed) = Feed::of(database)? else { return Ok(Vec::new()) };
        let keys = db::sample_keys(database, MESSAGES)?;
        let joined: Vec<i64> =
            feed.conversations_of(&keys)?.into_iter().map(|[key, _]| key).collect();
        let step = (generation.slots() as usize).div_ceil(MESSAGES).max(1);
        let mut slot_of: HashMap<i64, Option<u32>> =
            joined.into_iter().map(|key| (key, None)).collect();
        for slot in (0..generation.slots()).filter(|slot| generation.is_live(*slot)) {
            let key = generation.key(slot);
            if (slot as usize).is_multiple_of(step) || slot_of.contains_key(&key) {
                slot_of.insert(key, Some(slot));
            }
        }
        let mut differences = Vec::new();
        for (key, slot) in slot_of {
            let indexed = slot.map(|slot| generation.hit(slot, false));
            let stored = feed.message(key, |row| {
                let content = row.decoded.map(str::as_bytes).or(row.stored).unwrap_or_default();
                (
                    row.id.to_owned(),
                    row.role.to_owned(),
                    row.time,
                    String::from_utf8_lossy(content).into_owned(),
                )
            })?;
            let indexed = indexed.map(|hit| (hit.message_id, hit.role, hit.time, hit.content));
            if indexed != stored {
                let id = stored.or(indexed).map(|message| message.0).unwrap_or_default();
                differences.push(format!("message {id} differs"));
            }
        }
        Ok(differences)
    })
}

/// Returns short pieces of messages, others each time.
fn queries(generation: &Generation) -> Vec<String> {
    let random = RandomState::new();
    let slots = u64::from(generation.slots().max(1));
    let piece = |number: usize| {
        let slot = (random.hash_one(number) % slots) as u32;
        let text = generation.is_live(slot).then(|| generation.content(slot))?;
        let count = text.chars().count().max(1) as u64;
        let start = (random.hash_one((number, "start")) % count) as usize;
        let length = 3 + (random.hash_one((number, "length")) % 12) as usize;
        let piece: String = text.chars().skip(start).take(length).collect();
        let piece = piece.trim().to_owned();
        (!piece.is_empty() && !piece.contains('\0')).then_some(piece)
    };
    (0..QUERIES).filter_map(piece).collect()
}

/// Returns whether index and `LIKE` answer alike; `None` where one of them does not in time.
fn query_twice(engine: &Engine, source: &Source, query: &str, stop: &Stop) -> Option<bool> {
    let request = Request { text: query.to_owned(), limit: Some(HITS), ..Request::default() };
    let until = stop.within(PATIENCE / QUERIES as u32);
    let mut by_index: Vec<Hit> = Vec::new();
    let answered = engine.exact_in(source, &request, &until, &mut |hit| {
        by_index.push(hit);
        ControlFlow::Continue(())
    });
    if !matches!(answered, Ok(Answered::ByIndex { .. })) {
        return None;
    }
    let hits = db::read(&source.path, &until, |database| db::search(database, &request)).ok()?;
    let mut by_like: Vec<Hit> = Vec::new();
    hits.hand_over(&mut |hit| {
        by_like.push(hit);
        ControlFlow::Continue(())
    })
    .ok()?;
    Some(by_index == by_like)
}
