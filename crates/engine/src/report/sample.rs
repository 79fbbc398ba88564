//! Compares a sample of an index with its database. Compares messages in both directions, and answers of
//! the index with answers of `LIKE`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::finding::Finding;
use crate::source::{SearchPlan, Source, sink::Rendered};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Request};
use verbatim_chats::db::{self, RowReader};
use verbatim_index::Snapshot;

/// Number of messages that are compared in each direction.
const MESSAGES: usize = 200;

/// Number of queries whose answers from the index and from LIKE are compared.
const QUERIES: usize = 8;

/// Time after which no further query begins, unless all queries are requested.
const MAX_COMPARING: Duration = Duration::from_millis(1_200);

/// Time limit of all queries together.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// Number of hits per query that are compared.
const HITS: usize = 50;

/// How to repair an index that differs from its database.
const MEND: &str = "verbatim reindex --full, and please report it";

/// Compares a current index with its database. Reports nothing if the database changes meanwhile.
///
/// If `full` is set, compares all queries, else only for a moment. Calls `begin` before each step.
pub(crate) fn compare(
    source: &Source,
    snapshot: &Snapshot,
    full: bool,
    call: &Call,
    begin: &mut dyn FnMut(&str),
) -> Vec<Finding> {
    let about = source.address().to_string();
    begin("comparing messages of the index with the database");
    let (sampled, mut differences) = match messages(source, snapshot, call) {
        Ok(sample) => sample,
        Err(error) => return vec![Finding::note(about, error.to_string(), "")],
    };
    let mut compared = 0;
    let begun = Instant::now();
    for query in queries(snapshot) {
        if !full && begun.elapsed() > MAX_COMPARING {
            break;
        }
        begin(&format!("comparing answers of the index with the database: {compared} done"));
        match query_twice(source, &query, call) {
            Some(true) => compared += 1,
            Some(false) => differences.push(format!("{query:?} has another answer")),
            None => break,
        }
    }
    let is_same = source.current_index(call).is_ok_and(|now| now.name() == snapshot.name());
    if !is_same {
        return Vec::new();
    }
    if differences.is_empty() {
        let what = format!(
            "the index equals the database: {sampled} messages and {compared} searches \
             compared"
        );
        return vec![Finding::well(about, what)];
    }
    let shown = differences.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
    let what = format!("the index differs from the database: {shown}");
    vec![Finding::wrong(about, what, MEND)]
}

/// Returns the number of sampled messages, and those that differ between the index and the database.
fn messages(source: &Source, snapshot: &Snapshot, call: &Call) -> db::Result<(usize, Vec<String>)> {
    db::read(source.path()?, call, |database| {
        let Some(mut feed) = RowReader::open(database)? else { return Ok((0, Vec::new())) };
        let keys = db::sample_keys(database, MESSAGES)?;
        let joined: Vec<i64> =
            feed.with_conversations(&keys)?.into_iter().map(|[key, _]| key).collect();
        let step = (snapshot.max_doc() as usize).div_ceil(MESSAGES).max(1);
        let mut doc_id_of: HashMap<i64, Option<u32>> =
            joined.into_iter().map(|key| (key, None)).collect();
        for doc_id in (0..snapshot.max_doc()).filter(|doc_id| snapshot.is_alive(*doc_id)) {
            let key = snapshot.key(doc_id);
            if (doc_id as usize).is_multiple_of(step) || doc_id_of.contains_key(&key) {
                doc_id_of.insert(key, Some(doc_id));
            }
        }
        let sampled = doc_id_of.len();
        let mut differences = Vec::new();
        for (key, doc_id) in doc_id_of {
            let stored = feed.message(key, |row| {
                let content = row.decoded.map(str::as_bytes).or(row.stored).unwrap_or_default();
                (
                    row.id.to_owned(),
                    row.role.to_owned(),
                    row.time,
                    String::from_utf8_lossy(content).into_owned(),
                )
            })?;
            let indexed = doc_id.map(|doc_id| {
                let hit = snapshot.hit(doc_id, false);
                let content = hit.content.into_owned();
                (hit.message_id.into_owned(), hit.role.into_owned(), hit.time, content)
            });
            if indexed != stored {
                let id = stored.or(indexed).map(|message| message.0).unwrap_or_default();
                differences.push(format!("message {id} differs"));
            }
        }
        Ok((sampled, differences))
    })
}

/// Returns short substrings of random messages.
fn queries(snapshot: &Snapshot) -> Vec<String> {
    if snapshot.max_doc() == 0 {
        return Vec::new();
    }
    let random = RandomState::new();
    let doc_ids = u64::from(snapshot.max_doc());
    let mut pieces = Vec::new();
    for number in 0..QUERIES {
        let doc_id = (random.hash_one(number) % doc_ids) as u32;
        if !snapshot.is_alive(doc_id) {
            continue;
        }
        let text = snapshot.content(doc_id);
        let count = text.chars().count().max(1) as u64;
        let start = (random.hash_one((number, "start")) % count) as usize;
        let length = 3 + (random.hash_one((number, "length")) % 12) as usize;
        let piece: String = text.chars().skip(start).take(length).collect();
        let piece = piece.trim();
        if !piece.is_empty() && !piece.contains('\0') {
            pieces.push(piece.to_owned());
        }
    }
    pieces
}

/// Returns whether index and `LIKE` give the same answer; `None` if one of them takes too long.
fn query_twice(source: &Source, query: &str, call: &Call) -> Option<bool> {
    let request = Request { text: query.to_owned(), limit: Some(HITS), ..Request::default() };
    let until = call.within(MAX_WAIT / QUERIES as u32);
    // Hashes of hits are compared, because the texts may be too long for memory.
    let state = RandomState::new();
    let mut by_index = Vec::new();
    let mut sink = Rendered::new(
        |hit: Hit<'_>| Some(hash(&state, &hit)),
        |hit| {
            by_index.push(hit);
            ControlFlow::Continue(())
        },
    );
    let answered = source.search(&request, &until, &mut sink);
    if !matches!(answered, Ok(SearchPlan::ByIndex { .. })) {
        return None;
    }
    let path = source.path().ok()?;
    let left_out = source.left_out(&until).ok()?;
    let hits = db::read(path, &until, |database| {
        db::search_without(database, &request, left_out.as_ref().clone())
    });
    let hits = hits.ok()?;
    let by_like: Vec<_> = hits.iter().map(|hit| hash(&state, hit)).collect();
    Some(by_index == by_like)
}

fn hash(state: &RandomState, hit: &Hit<'_>) -> u64 {
    let names = (&*hit.message_id, &*hit.conversation_id, &*hit.title, &*hit.role);
    state.hash_one((names, hit.time, hit.position, &*hit.content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    #[test]
    fn an_index_without_messages_is_as_its_database() {
        let export = TestExport::indexed(&[]);
        let (source, call) = (export.engine.sources().remove(0), Call::default());
        let snapshot = source.current_index(&call).unwrap();
        let mut steps = 0;
        let found = compare(&source, &snapshot, true, &call, &mut |_| steps += 1);
        let what = "the index equals the database: 0 messages and 0 searches compared";
        assert_eq!((found[0].what.as_str(), found.len(), steps), (what, 1, 1));
    }
}
