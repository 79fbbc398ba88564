//! Rebuilds an index from its own documents, and removes conversations from an index for good.

use std::{collections::HashSet, time::Duration};

use serde_json::{Value, json};

use super::client::{Client, HttpRequest};
use super::error::{Error, Result};
use super::import::Importer;
use super::view::{self, ClusterConversation};
use super::{document, generation};
use verbatim_base::call::Stop;

/// The maximum number of requests to remove deleted documents. Shards keep deleted documents for a while, for
/// replicas that lag behind.
const ATTEMPTS: u32 = 40;

const PAUSE: Duration = Duration::from_secs(3);

/// The maximum number of attempts to delete conversations. An attempt leaves documents behind if a node is
/// lost.
const DELETIONS: u32 = 4;

const MOST_DELETED: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Whether the index was rebuilt; false if it was up to date.
    pub is_written: bool,
    pub conversations: u64,
    pub messages: u64,
}

/// Rebuilds an index behind its alias, if an earlier version wrote the index, its vectors are from another
/// model, or `is_forced` is set. Readers see the old index until the new index is complete. Calls `progress`
/// with the number of finished messages and of all messages.
pub fn rebuild(
    client: &Client,
    is_forced: bool,
    stop: &Stop,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Rebuilt> {
    let current = generation::behind_alias(client, stop)?
        .ok_or_else(|| Error::Empty { address: client.address().to_string() })?;
    let all = view::conversations(client, &current.name, stop)?;
    let messages = all.iter().map(|it| it.turns as u64).sum();
    let is_written = is_forced || !current.is_current();
    let rebuilt = Rebuilt { is_written, conversations: all.len() as u64, messages };
    if !is_written {
        return Ok(rebuilt);
    }
    write_all(client, &current.name, &all, stop, &mut |done| progress(done, messages)).map_err(
        |error| error.with_advice("searches use the old index; do it again to continue"),
    )?;
    Ok(rebuilt)
}

fn write_all(
    client: &Client,
    current: &str,
    all: &[ClusterConversation],
    stop: &Stop,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut importer = Importer::for_rebuild(client, current, all, stop)?;
    let wanted = importer.ids_to_put();
    let mut done = 0;
    for conversation in all {
        if wanted.contains(&conversation.stored.id) {
            let messages = view::messages(client, current, conversation, stop)?;
            let messages = messages.into_iter().map(|(_, message)| message);
            importer.put(&conversation.stored, messages.collect())?;
        }
        done += conversation.turns as u64;
        progress(done);
    }
    importer.finish().map(drop)
}

/// The result of forgetting conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgot {
    /// The index had none of the conversations.
    None,
    /// The conversations are removed, from the files of the index too.
    Clean,
    /// The conversations are removed, but the files of shards keep their texts for a while.
    Kept,
}

/// Removes conversations from an index. Deletes the older indexes, because they have the texts too.
pub fn forget(client: &Client, ids: &[String], stop: &Stop) -> Result<Forgot> {
    let Some(current) = generation::current(client, stop)? else { return Ok(Forgot::None) };
    let wanted: HashSet<&String> = ids.iter().collect();
    let all = view::conversations(client, &current, stop)?;
    let found: Vec<ClusterConversation> =
        all.into_iter().filter(|it| wanted.contains(&it.stored.id)).collect();
    if found.is_empty() {
        // An earlier attempt may have been killed before it deleted the older indexes.
        generation::keep_only(client, &current, stop)?;
        return Ok(Forgot::None);
    }
    let what = "forget conversations";
    let work = document::conversation_name(&format!("without {ids:?}"));
    let target = generation::begin(client, Some(&current), &work, true, stop)?;
    let prepared = delete(client, &target.name, &found, stop).and_then(|forgot| {
        generation::wait_for(client, &target.name, "green", stop)?;
        let (there, expected) = view::messages_there(client, &target.name, stop)?;
        if there == expected {
            Ok(forgot)
        } else {
            Err(client.failed(what, format!("there are {there} of {expected} messages")))
        }
    });
    let forgot = prepared.map_err(|error| {
        // No later attempt would use this index, so it is deleted.
        let _ = generation::delete(client, &target.name, &Stop::never());
        error.with_advice("nothing was changed; do it again")
    })?;
    // If this fails, the alias may already lead to the new index, so the new index is kept.
    generation::publish(client, &target, stop)
        .and_then(|()| generation::keep_only(client, &target.name, stop))
        .map_err(|error| {
            error.with_advice("earlier states of the index may be left; do it again")
        })?;
    Ok(forgot)
}

/// Deletes conversations from an index, and their texts from its files.
fn delete(
    client: &Client,
    index: &str,
    found: &[ClusterConversation],
    stop: &Stop,
) -> Result<Forgot> {
    let what = "delete conversations";
    // Segments with few deleted documents are rewritten too.
    let settings = json!({ "index.merge.policy.expunge_deletes_allowed": 0 });
    let call = HttpRequest::import(what, "PUT", format!("/{index}/_settings"));
    client.ask::<Value>(call.with(&settings), stop)?;
    for some in found.chunks(MOST_DELETED) {
        let hashes: Vec<i64> = some.iter().map(|it| document::hash(&it.stored.id)).collect();
        let query = json!({ "terms": { "c": hashes } });
        let path = "_delete_by_query?refresh=true&wait_for_active_shards=1&conflicts=proceed";
        let call = HttpRequest::import(what, "POST", format!("/{index}/{path}"));
        let call = call.with(&json!({ "query": query }));
        for attempt in 1.. {
            client.ask::<Value>(call.clone(), stop)?;
            match view::count(client, what, index, &query, stop)? {
                0 => break,
                left if attempt == DELETIONS => {
                    let why = format!("{left} documents are still there");
                    return Err(client.failed(what, why));
                }
                _ => client.pause(attempt, stop)?,
            }
        }
    }
    for attempt in 0..ATTEMPTS {
        let path = format!("/{index}/_forcemerge?only_expunge_deletes=true");
        client.ask::<Value>(HttpRequest::import(what, "POST", path), stop)?;
        let path = format!("/{index}/_stats/docs");
        let stats: Value = client.ask(HttpRequest::import(what, "GET", path), stop)?;
        if stats["_all"]["total"]["docs"]["deleted"] == 0 {
            return Ok(Forgot::Clean);
        }
        if attempt + 1 < ATTEMPTS {
            stop.pause(PAUSE, Error::Stopped)?;
        }
    }
    Ok(Forgot::Kept)
}
