//! The generations of an index: each import makes a new index behind the alias.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, HttpRequest};
use super::error::{Error, Result};
use super::features::model as vector_model;
use super::layout::{FORMAT, META, copied_settings, finished_settings, new_index};
use verbatim_base::call::Stop;

const DIGITS: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) name: String,
    /// The hash that identifies the import.
    pub(super) import: String,
    pub(super) base: String,
    is_copy: bool,
    /// The name of the vectors' model; empty if the vectors come from several models.
    pub(super) model: String,
    format: u64,
}

impl Generation {
    /// Returns whether the index has the current format, and vectors of the current model.
    pub(super) fn is_current(&self) -> bool {
        self.format == FORMAT && self.model == vector_model().name()
    }
}

#[derive(Deserialize)]
struct IndexDescription {
    mappings: Mappings,
}

#[derive(Deserialize)]
struct Mappings {
    #[serde(default, rename = "_meta")]
    meta: BTreeMap<String, Value>,
}

/// Returns the name of the index behind the alias; `None` if the alias does not exist.
pub(super) fn current(client: &Client, stop: &Stop) -> Result<Option<String>> {
    match behind_alias(client, stop)? {
        Some(found) => require_current(client, found).map(|found| Some(found.name)),
        None => Ok(None),
    }
}

fn aliased(client: &Client, stop: &Stop) -> Result<BTreeMap<String, IndexDescription>> {
    let path = format!("/{}/_mapping", client.address().index());
    Ok(client.find(HttpRequest::get("look up the index", path), stop)?.unwrap_or_default())
}

/// Returns the index behind the alias, even if an earlier version wrote it.
pub(super) fn behind_alias(client: &Client, stop: &Stop) -> Result<Option<Generation>> {
    let alias = client.address().index();
    let found = aliased(client, stop)?;
    if found.len() > 1 {
        return Err(client.foreign(several(&found)));
    }
    let Some((name, described)) = found.into_iter().next() else { return Ok(None) };
    match generation(&name, &described).filter(|_| name != alias) {
        Some(found) if found.format <= FORMAT => Ok(Some(found)),
        Some(found) => require_current(client, found).map(Some),
        None => Err(client.foreign("an index of another program has this name")),
    }
}

/// Returns what is wrong with several indexes behind one alias.
fn several(found: &BTreeMap<String, IndexDescription>) -> String {
    let are_ours = found.iter().all(|(name, described)| generation(name, described).is_some());
    let names = found.keys().map(String::as_str).collect::<Vec<_>>().join(" and ");
    if are_ours {
        format!("two imports made an index at the same time, {names}; delete one and import again")
    } else {
        format!("an alias of another program has this name, for {names}; choose another name")
    }
}

/// Reads the metadata of an index; returns `None` if another program made the index.
fn generation(name: &str, described: &IndexDescription) -> Option<Generation> {
    let meta = described.mappings.meta.get(META)?;
    let text = |key: &str| meta[key].as_str().unwrap_or_default().to_owned();
    Some(Generation {
        name: name.to_owned(),
        import: text("import"),
        base: text("base"),
        is_copy: meta["copy"] == true,
        model: text("model"),
        format: meta["format"].as_u64().filter(|format| *format > 0)?,
    })
}

/// Returns the given index if it has the format of this version, otherwise an error.
fn require_current(client: &Client, found: Generation) -> Result<Generation> {
    match found.format {
        FORMAT => Ok(found),
        format if format > FORMAT => Err(client.foreign(format!(
            "a later version of verbatim wrote this index (format {format}, this one knows \
             {FORMAT}); update verbatim"
        ))),
        format => Err(Error::Older { address: client.address().to_string(), format }),
    }
}

pub(super) fn described(client: &Client, name: &str, stop: &Stop) -> Result<Generation> {
    let call = HttpRequest::get("look up the index", format!("/{name}/_mapping"));
    let found = client.find::<BTreeMap<String, IndexDescription>>(call, stop)?.unwrap_or_default();
    match found.get(name).and_then(|described| generation(name, described)) {
        Some(found) => require_current(client, found),
        None => Err(Error::Replaced { address: client.address().to_string() }),
    }
}

/// Returns all indexes that imports made for the alias, including unfinished indexes.
pub(super) fn all(client: &Client, stop: &Stop) -> Result<Vec<Generation>> {
    let pattern = format!("/{}-v*/_mapping", client.address().index());
    let call = HttpRequest::import("list the indexes", "GET", pattern);
    let found = client.find::<BTreeMap<String, IndexDescription>>(call, stop)?.unwrap_or_default();
    let ours = found.iter().filter_map(|(name, described)| {
        let rest = name.strip_prefix(client.address().index())?;
        let (number, _) = rest.strip_prefix("-v")?.split_once('-')?;
        let is_ours = number.len() == DIGITS && number.parse::<u32>().is_ok();
        if is_ours { generation(name, described) } else { None }
    });
    Ok(ours.collect())
}

/// Makes the index that will replace the current index: a copy of the current index, or an empty index.
pub(super) fn begin(
    client: &Client,
    current: Option<&str>,
    import: &str,
    is_copy: bool,
    stop: &Stop,
) -> Result<Generation> {
    let base = current.unwrap_or_default();
    let number = base
        .strip_prefix(client.address().index())
        .and_then(|rest| rest.strip_prefix("-v")?.split('-').next()?.parse::<u32>().ok());
    let number = number.unwrap_or(0) + 1;
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|error| client.failed("make random numbers", error.to_string()))?;
    let random = u32::from_be_bytes(random);
    let name = format!("{}-v{number:0DIGITS$}-{random:08x}", client.address().index());
    // Vectors of two models cannot be compared.
    let copied = current.filter(|_| is_copy);
    let model = match copied {
        Some(current) => described(client, current, stop)?.model,
        None => vector_model().name().to_owned(),
    };
    let model = if model == vector_model().name() { model } else { String::new() };
    let meta = json!({ "format": FORMAT, "import": import, "base": base, "copy": copied.is_some(), "model": model });
    let what = "make an index";
    match copied {
        None => {
            let call = HttpRequest::import(what, "PUT", format!("/{name}")).with(&new_index(&meta));
            make(client, call, stop)?;
        }
        Some(current) => {
            // The copy shares the current index's files, because that index is blocked for writing.
            let call = HttpRequest::import(what, "POST", format!("/{current}/_clone/{name}"));
            make(client, call.with(&json!({ "settings": copied_settings() })), stop)?;
            let call = HttpRequest::import(what, "PUT", format!("/{name}/_mapping"));
            let call = call.with(&json!({ "_meta": { META: meta } }));
            if let Err(error) = client.ask::<Value>(call, stop) {
                // The index is deleted at once, because no later attempt would find it.
                let _ = delete(client, &name, &Stop::never());
                return Err(error);
            }
        }
    }
    wait_for(client, &name, "yellow", stop)?;
    Ok(Generation {
        name,
        import: import.to_owned(),
        base: base.to_owned(),
        is_copy: copied.is_some(),
        model,
        format: FORMAT,
    })
}

/// Makes an index. Its name is random: if the index exists already, a node made it in an earlier attempt and
/// stopped before it could answer.
fn make(client: &Client, call: HttpRequest, stop: &Stop) -> Result<()> {
    match client.ask::<Value>(call, stop) {
        Err(Error::Failed { why, .. }) if why.contains("resource_already_exists") => Ok(()),
        made => made.map(drop),
    }
}

/// Waits until the shards of an index are available: one copy of each for `yellow`, all for `green`.
pub(super) fn wait_for(client: &Client, name: &str, status: &str, stop: &Stop) -> Result<()> {
    const SECONDS: u32 = 20;
    const TIMES: u32 = 9;

    #[derive(Deserialize)]
    struct Health {
        timed_out: bool,
    }
    for _ in 0..TIMES {
        let path = format!("/_cluster/health/{name}?wait_for_status={status}&timeout={SECONDS}s");
        let call = HttpRequest::import("see the health of the index", "GET", path);
        // A health request that timed out has the status 408.
        match client.ask::<Health>(call, stop) {
            Ok(Health { timed_out: false }) => return Ok(()),
            Ok(_) => {}
            Err(Error::Failed { why, .. }) if why.starts_with("status 408") => {}
            Err(error) => return Err(error),
        }
    }
    let why = "some of its shards have no node after three minutes; what was written stays, and \
               the same import goes on with it";
    Err(client.failed("finish the index", why))
}

const LARGE: u64 = 64 << 20;

/// The maximum number of checks for retention leases. The cluster updates its leases every 30 seconds.
const LEASE_CHECKS: u32 = 25;

/// Waits until a large index has no retention leases for copies of its shards that lag behind. For such
/// copies, the cluster stores each document a second time with all its fields. A merge drops this second
/// version only if no lease covers it.
fn wait_for_leases(client: &Client, name: &str, stop: &Stop) -> Result<()> {
    let what = "prepare the merge";
    let flush = HttpRequest::import(what, "POST", format!("/{name}/_flush"));
    client.ask::<Value>(flush, stop)?;
    for _ in 0..LEASE_CHECKS {
        let call = HttpRequest::import(what, "GET", format!("/{name}/_stats/store?level=shards"));
        let stats: Value = client.ask(call, stop)?;
        let shards = stats["indices"][name]["shards"].as_object();
        let shards = shards.into_iter().flat_map(|it| it.values()).filter_map(Value::as_array);
        let bytes = stats["_all"]["primaries"]["store"]["size_in_bytes"].as_u64();
        if bytes.unwrap_or(0) < LARGE
            || !shards.flatten().any(|shard| {
                let last = shard["seq_no"]["max_seq_no"].as_i64();
                let leases = shard["retention_leases"]["leases"].as_array();
                leases.into_iter().flatten().any(|it| it["retaining_seq_no"].as_i64() <= last)
            })
        {
            break;
        }
        client.pause(4, stop)?;
    }
    Ok(())
}

/// Merges the segments of an index, unless it began as a copy, and waits for the replicas of its shards.
pub(super) fn complete(client: &Client, written: &Generation, stop: &Stop) -> Result<()> {
    let name = &written.name;
    if !written.is_copy {
        wait_for_leases(client, name, stop)?;
        // After a refresh and a flush, the cluster deletes the files that the merge replaced.
        for step in ["_forcemerge?max_num_segments=1", "_refresh", "_flush"] {
            let path = format!("/{name}/{step}");
            let call = HttpRequest::import("merge the segments of the index", "POST", path);
            // Errors are ignored: after a timeout the merge continues, and no answer depends on it.
            if let Err(Error::Stopped) = client.ask::<Value>(call, stop) {
                return Err(Error::Stopped);
            }
        }
    }
    let call =
        HttpRequest::import("make copies of the shards", "PUT", format!("/{name}/_settings"));
    client.ask::<Value>(call.with(&finished_settings()), stop)?;
    wait_for(client, name, "green", stop)
}

pub(super) fn delete(client: &Client, name: &str, stop: &Stop) -> Result<()> {
    let call = HttpRequest::import("delete an index", "DELETE", format!("/{name}"));
    client.find::<Value>(call, stop).map(drop)
}

/// Blocks an index for writing, and moves the alias to the index.
pub(super) fn publish(client: &Client, done: &Generation, stop: &Stop) -> Result<()> {
    let what = "finish the index";
    let call = HttpRequest::import(what, "PUT", format!("/{}/_settings", done.name));
    client.ask::<Value>(call.with(&json!({ "index.blocks.write": true })), stop)?;
    let alias = client.address().index();
    let mut actions = vec![json!({ "add": { "index": done.name, "alias": alias } })];
    if !done.base.is_empty() {
        // The request fails if another import has moved the alias meanwhile.
        let old = json!({ "index": done.base, "alias": alias, "must_exist": true });
        actions.push(json!({ "remove": old }));
    }
    let call = HttpRequest::import(what, "POST", "/_aliases".to_owned());
    let moved = client.find::<Value>(call.with(&json!({ "actions": actions })), stop);
    // The alias is checked, because the answer of a successful attempt may have been lost.
    let found = aliased(client, stop)?;
    match (found.contains_key(&done.name), found.len()) {
        (true, 1) => return Ok(()),
        // Two simultaneous first imports both add their index. An import that sees both removes its own
        // index.
        (true, _) => {
            let actions = json!([{ "remove": { "index": done.name, "alias": alias } }]);
            let call = HttpRequest::import(what, "POST", "/_aliases".to_owned());
            client.find::<Value>(call.with(&json!({ "actions": actions })), stop)?;
        }
        (false, _) => drop(moved?),
    }
    Err(client.failed(what, "another import was finished meanwhile; run this one again"))
}

/// Deletes the indexes that no reader needs. Keeps the current index, the previous index, and indexes that
/// other imports began meanwhile.
pub(super) fn tidy(client: &Client, done: &Generation, stop: &Stop) -> Result<()> {
    for old in all(client, stop)? {
        let is_beside = old.base == done.base || old.base == done.name;
        if old.name != done.base && !is_beside {
            delete(client, &old.name, stop)?;
        }
    }
    Ok(())
}

/// Deletes all indexes of the alias except one.
pub(super) fn keep_only(client: &Client, kept: &str, stop: &Stop) -> Result<()> {
    for old in all(client, stop)?.into_iter().filter(|old| old.name != kept) {
        delete(client, &old.name, stop)?;
    }
    Ok(())
}
