//! Refreshes an index: adds the changes of the database, or builds the whole index.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{collections::HashMap, fs, panic::resume_unwind, sync::Arc, thread};

use super::diff::{self, Compared, Difference, SLICE, row_reader};
use crate::error::{Error, Result};
use crate::source::Source;
use verbatim_base::call::Call;
use verbatim_base::map_faults::FaultWatch;
use verbatim_chats::db::{self, Layout, Row, State};
#[cfg(feature = "cluster")]
use verbatim_cluster as cluster;
use verbatim_index::{
    self as index, Build, BuildPlan, Document, IndexDir, Reading, Resources, Size, Snapshot,
    SnapshotBuilder, Writing,
};

/// Number of messages that are sampled to find the common grams.
const MAX_SAMPLES: usize = 20_000;

/// Maximum and minimum number of bytes that are read of a sampled message.
const SAMPLE_BYTES: usize = 4 << 10;
const LEAST_SAMPLED: usize = 100;

/// The sample takes this fraction of the memory. Counting its grams takes six times as much.
const SAMPLE_SHARE: usize = 16;

/// Number of places at which a sampled long content is read.
const LONG_SAMPLES: usize = 16;

/// The size of a content that is sampled at several places.
const LONG: usize = 4 << 20;

/// Number of attempts to refresh an index if the database changes during the refresh.
const ATTEMPTS: u32 = 3;

/// Merge factor. A small segment is merged into the new segment if it has at most this many times as
/// many messages. So the number of segments grows with the logarithm of the number of added messages.
const MERGE_FACTOR: usize = 2;

/// Finished shares of a build after ordering the messages, and after reading them.
const ORDERED: f64 = 0.1;
const READ: f64 = 0.9;

/// Pause between two reports of the progress of ordering.
const ORDERING_TOLD: Duration = Duration::from_millis(50);

/// The number of new texts that are encoded while a new index takes over the vectors of the others: a second of
/// work, so that a few new messages do not keep all others waiting.
const MOST_NEW: u32 = 500;

/// Options for refreshing an index.
#[derive(Clone, Copy, Debug)]
pub struct Reindex {
    /// The memory and threads to use.
    pub resources: Resources,
    /// Whether to build all of the index even if it is current.
    pub full: bool,
}

/// The progress of a refresh.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants say what the fields hold")]
pub enum Progress {
    /// The messages are sorted into result order: `done` of `total`, which is 0 while it is unknown.
    Ordering { done: u64, total: u64 },
    /// The messages are compared with the index.
    Comparing,
    /// Messages are read, and their grams are sorted: `done` of `total`, with `bytes` of text.
    Reading { done: u64, total: u64, bytes: u64 },
    /// The posting lists are being merged and written. The number is the finished share, from 0 to 1.
    Writing(f64),
}

impl Progress {
    /// Returns the share of a build that is done, from 0 to 1.
    pub(crate) fn share(self) -> f64 {
        match self {
            Progress::Comparing => 0.0,
            Progress::Ordering { done, total } => ORDERED * done as f64 / total.max(1) as f64,
            Progress::Reading { done, total, .. } => {
                ORDERED + (READ - ORDERED) * done as f64 / total.max(1) as f64
            }
            Progress::Writing(share) => READ + (1.0 - READ) * share,
        }
    }
}

/// The result of a refresh.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Reindexed {
    /// The index, with so many messages, was current already.
    Current { messages: u32 },
    /// The changes were added to the index. A changed message counts as added and as removed.
    Refreshed { added: u32, removed: u32, took: Duration },
    /// The index was built again, in a new folder.
    Built { size: Size, conversations: usize, took: Duration, folder: PathBuf },
}

/// A refresh that holds the lock of the index.
struct Work<'a> {
    path: &'a Path,
    state: State,
    writing: &'a Writing,
    resources: Resources,
    call: &'a Call,
    faults: FaultWatch,
}

impl Source {
    /// Refreshes the index of the source, unless it is current. It is an error if another process is building
    /// the index.
    ///
    /// The database can be searched and written to meanwhile. If it is written to, the refresh begins again.
    pub fn reindex(
        &self,
        options: Reindex,
        call: &Call,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed> {
        let done = follow(self, options, true, call, progress)?;
        take_over(self, done.as_ref(), call);
        done.ok_or_else(|| db::Error::Unsteady { path: self.address().to_string().into() }.into())
    }
}

/// Adds the changes of a database to the index of a source. Returns false if a full build is needed.
pub(crate) fn refresh_changes(source: &Source, resources: Resources, call: &Call) -> Result<bool> {
    let options = Reindex { resources, full: false };
    let done = follow(source, options, false, call, &mut |_| ())?;
    take_over(source, done.as_ref(), call);
    Ok(done.is_some())
}

/// Lets new segments have the vectors that equal texts had before. An error does no harm: they are made later.
fn take_over(source: &Source, done: Option<&Reindexed>, call: &Call) {
    if source.database().is_none() {
        return;
    }
    match done {
        Some(Reindexed::Refreshed { .. }) => drop(source.take_over_vectors(0, call)),
        Some(Reindexed::Built { .. }) if source.has_kept_vectors() => {
            drop(source.take_over_vectors(MOST_NEW, call));
            // The index may have been removed because it had texts that must be forgotten.
            drop(source.prune_vectors(call));
        }
        _ => {}
    }
}

/// Refreshes an index. Returns `None` if a full build is needed and not allowed.
fn follow(
    source: &Source,
    options: Reindex,
    may_build: bool,
    call: &Call,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Reindexed>> {
    let begun = Instant::now();
    #[cfg(feature = "cluster")]
    if let Some(cluster) = source.store().cluster() {
        if !may_build {
            return Ok(None);
        }
        let done =
            cluster::rebuild(cluster.client()?, options.full, &call.stop, &mut |done, total| {
                progress(Progress::Reading { done, total, bytes: 0 });
            })?;
        let messages = u32::try_from(done.messages).unwrap_or(u32::MAX);
        if !done.is_written {
            return Ok(Some(Reindexed::Current { messages }));
        }
        return Ok(Some(Reindexed::Built {
            size: Size { messages, ..Size::default() },
            conversations: usize::try_from(done.conversations).unwrap_or(usize::MAX),
            took: begun.elapsed(),
            folder: source.address().to_string().into(),
        }));
    }
    let path = source.path()?;
    let index_dir = source.index_dir()?;
    if !options.full
        && let Ok(snapshot) = source.current_index(call)
    {
        // The process that published the snapshot may have been killed before it cleaned up.
        if let Ok(Some(writing)) = index_dir.lock() {
            writing.clean();
        }
        return Ok(Some(Reindexed::Current { messages: snapshot.messages() }));
    }
    let writing = lock(&index_dir)?;
    for _ in 0..ATTEMPTS {
        let state = db::settled(path)?;
        let resources = options.resources;
        let faults = FaultWatch::begin();
        let work = Work { path, state, writing: &writing, resources, call, faults };
        if !options.full
            && let Some(current) = index_dir.current()
            && let Ok(snapshot) = index_dir.open(&current)
        {
            // Another process may have refreshed the index while this one waited for the lock.
            if snapshot.state() == work.state.to_string() {
                return Ok(Some(Reindexed::Current { messages: snapshot.messages() }));
            }
            progress(Progress::Comparing);
            let compared = diff::compare(path, &snapshot, &|| work.is_same_as(&snapshot), call);
            match work.steady(compared.map(Some))? {
                None | Some(Compared::Unsteady) => continue,
                Some(Compared::TooMuch) => {}
                Some(Compared::By(difference)) => {
                    let added = difference.fresh.len() as u32;
                    let removed = difference.dead.len() as u32;
                    let is_added = work.add(&snapshot, difference, progress);
                    if work.steady(is_added.map(Some))? != Some(true) {
                        continue;
                    }
                    writing.record("refreshed", added.into());
                    let took = begun.elapsed();
                    return Ok(Some(Reindexed::Refreshed { added, removed, took }));
                }
            }
        }
        if !may_build {
            return Ok(None);
        }
        if let Some((size, conversations, folder)) = work.steady(work.build(progress))? {
            let took = begun.elapsed();
            writing.record("built", size.messages.into());
            return Ok(Some(Reindexed::Built { size, conversations, took, folder }));
        }
    }
    Err(db::Error::Unsteady { path: path.to_owned() }.into())
}

pub(crate) fn lock(index_dir: &IndexDir) -> Result<Writing> {
    index_dir.lock()?.ok_or_else(|| Error::Indexing { folder: index_dir.folder().to_owned() })
}

/// Runs `work` with the folder of a new segment. Removes the folder if `work` fails or returns `None`.
pub(crate) fn within<T>(
    writing: &Writing,
    work: impl FnOnce(&Path) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let folder = writing.begin()?;
    let outcome = work(&folder);
    if !matches!(outcome, Ok(Some(_))) {
        // If the folder cannot be removed now, the next build removes it.
        drop(fs::remove_dir_all(&folder));
    }
    outcome
}

impl Work<'_> {
    /// Returns whether the database is still in the state in which the refresh found it, and no mapped
    /// index file had a fault.
    fn is_same(&self) -> Result<bool> {
        Ok(!self.faults.has_noticed() && db::state(self.path)? == self.state)
    }

    /// Does the same as [`Work::is_same`], but also returns false if the files of `snapshot` have changed
    /// since they were opened.
    fn is_same_as(&self, snapshot: &Snapshot) -> Result<bool> {
        Ok(snapshot.is_intact() && self.is_same()?)
    }

    /// Returns the outcome of reading the database; `None` if reading failed and the database changed
    /// meanwhile, which may have caused the failure.
    fn steady<T>(&self, outcome: Result<Option<T>>) -> Result<Option<T>> {
        match outcome {
            Err(error) if !error.is_stopped() && matches!(self.is_same(), Ok(false)) => Ok(None),
            outcome => outcome,
        }
    }

    /// Builds a snapshot of the whole database; `None` if the database changed meanwhile.
    fn build(&self, progress: &mut dyn FnMut(Progress)) -> Result<Option<(Size, usize, PathBuf)>> {
        let order = self.order(progress)?;
        let database = db::open(self.path, self.call)?;
        let mut rows = row_reader(&database)?;
        let conversations = rows.conversations()?;
        let mut reading = Reading {
            decoded: database.layout().parts,
            bytewise_roles: database.layout().bytewise_roles,
            plain: rows.has_unique_ids()? && conversations.iter().all(|one| one.is_plain),
        };
        let messages = u32::try_from(order.len()).unwrap_or(u32::MAX);
        if messages == u32::MAX {
            return Err(Error::TooMany { path: self.path.to_owned() });
        }
        let mut sample = Sample::new(order.len(), self.resources);
        let mut sample_bytes = 0;
        for [message, _] in order.iter().step_by(sample.step(order.len())) {
            let most = sample.bytes();
            let text = rows.message(*message, |row| {
                let text = shown_bytes(&row);
                sample_bytes += text.len();
                sampled(text, most)
            })?;
            sample.add(text.unwrap_or_default());
        }
        let sample = sample.texts;
        drop(rows);
        drop(database);
        if !self.is_same()? {
            return Ok(None);
        }
        let text_bytes = (sample_bytes * order.len() / sample.len().max(1)) as u64;
        let (keys, conversations) = named(conversations);
        let plan = BuildPlan {
            conversations: &conversations,
            sample: &sample,
            beside: None,
            messages,
            text_bytes,
        };
        within(self.writing, |folder| {
            let filled = self.fill(folder, plan, &keys, &order, progress)?;
            let Some((size, is_plain)) = filled else { return Ok(None) };
            reading.plain &= is_plain;
            let mut builder = SnapshotBuilder::new(&self.state.to_string(), reading);
            builder.add(folder, &size);
            builder.publish(self.writing)?;
            Ok(Some((size, conversations.len(), folder.to_owned())))
        })
    }

    /// Returns the keys of the messages and their conversations in result order. SQLite sorts them in one
    /// call, so progress is reported from another thread.
    fn order(&self, progress: &mut dyn FnMut(Progress)) -> Result<Vec<[i64; 2]>> {
        let seen = Arc::<AtomicU64>::default();
        let total = AtomicU64::new(0);
        progress(Progress::Ordering { done: 0, total: 0 });
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let seen = &seen;
            let total = &total;
            // Sending cannot fail, because the receiver exists until this thread has ended.
            let sorting = scope.spawn(move || drop(sender.send(self.sorted(seen, total))));
            loop {
                match receiver.recv_timeout(ORDERING_TOLD) {
                    Ok(order) => return order,
                    Err(RecvTimeoutError::Timeout) => {
                        let total = total.load(Ordering::Relaxed);
                        let done = seen.load(Ordering::Relaxed).min(total);
                        progress(Progress::Ordering { done, total });
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            match sorting.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => Err(db::Error::Stopped.into()),
            }
        })
    }

    /// Does the same as [`Work::order`]. `total` gets the number of messages, and `seen` that of those read so far.
    fn sorted(&self, seen: &Arc<AtomicU64>, total: &AtomicU64) -> Result<Vec<[i64; 2]>> {
        let database = db::open(self.path, self.call)?;
        let rows = row_reader(&database)?;
        total.store(rows.count()?, Ordering::Relaxed);
        Ok(rows.order(seen)?)
    }

    /// Publishes a snapshot with the segments of an earlier one and the changes since then. Returns false
    /// if the database changed meanwhile.
    fn add(
        &self,
        snapshot: &Snapshot,
        mut difference: Difference,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool> {
        let kept = merge_small(snapshot, &mut difference);
        let mut builder = SnapshotBuilder::new(&self.state.to_string(), snapshot.reading());
        for part in 0..kept {
            builder.keep(snapshot, part, &difference.dead);
        }
        if !self.is_same_as(snapshot)? {
            return Ok(false);
        }
        if difference.fresh.is_empty() {
            builder.publish(self.writing)?;
            return Ok(true);
        }
        difference.fresh.sort_unstable();
        let database = db::open(self.path, self.call)?;
        let rows = row_reader(&database)?;
        let keys: Vec<i64> = difference.fresh.iter().map(|place| place.0.2).collect();
        let conversation_of: HashMap<i64, i64> =
            rows.with_conversations(&keys)?.into_iter().map(|[key, of]| (key, of)).collect();
        let order: Vec<[i64; 2]> =
            keys.into_iter().filter_map(|key| Some([key, *conversation_of.get(&key)?])).collect();
        let mut used: Vec<i64> = conversation_of.into_values().collect();
        used.sort_unstable();
        used.dedup();
        let mut conversations = rows.conversations()?;
        conversations.retain(|conversation| used.binary_search(&conversation.key).is_ok());
        drop(rows);
        drop(database);
        if !self.is_same_as(snapshot)? {
            return Ok(false);
        }
        if order.is_empty() {
            builder.publish(self.writing)?;
            return Ok(true);
        }
        let (keys, conversations) = named(conversations);
        let mean = snapshot.text_bytes() / u64::from(snapshot.max_doc().max(1));
        let plan = BuildPlan {
            conversations: &conversations,
            sample: &[],
            beside: Some(snapshot),
            messages: order.len() as u32,
            text_bytes: mean * order.len() as u64,
        };
        let added = within(self.writing, |folder| {
            let filled = self.fill(folder, plan, &keys, &order, progress)?;
            // The comparison has checked that every row is plain.
            let Some((size, true)) = filled else { return Ok(None) };
            if !self.is_same_as(snapshot)? {
                return Ok(None);
            }
            builder.add(folder, &size);
            builder.publish(self.writing)?;
            Ok(Some(size))
        })?;
        Ok(added.is_some())
    }

    /// Builds a segment of the messages in `order`, which has the keys of messages and conversations.
    /// `keys` are the keys of the plan's conversations. Returns also whether all positions are integers or
    /// NULL; `None` if the database changed meanwhile.
    fn fill(
        &self,
        folder: &Path,
        plan: BuildPlan<'_>,
        keys: &[i64],
        order: &[[i64; 2]],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<(Size, bool)>> {
        let mut build = Build::start(folder, plan, self.resources)?;
        let total = order.len() as u64;
        let mut order = order.iter();
        let mut done = 0;
        let mut bytes = 0;
        let mut is_plain = true;
        let mut layout: Option<Layout> = None;
        while !order.as_slice().is_empty() {
            let database = match &layout {
                Some(layout) => db::open_again(self.path, layout, self.call)?,
                None => db::open(self.path, self.call)?,
            };
            layout.get_or_insert_with(|| database.layout().clone());
            let mut rows = row_reader(&database)?;
            let slice = Instant::now();
            for [message, conversation] in order.by_ref() {
                let Ok(conversation) = keys.binary_search(conversation) else { return Ok(None) };
                let added = rows.message(*message, |row| {
                    is_plain &= row.is_plain;
                    bytes += shown_bytes(&row).len() as u64;
                    build.add(&document(&row, conversation as u32)).map_err(Error::from)
                })?;
                let Some(added) = added else { return Ok(None) };
                added?;
                done += 1;
                if done % 256 == 0 {
                    self.call.stop.check(db::Error::Stopped)?;
                    if slice.elapsed() > SLICE {
                        break;
                    }
                }
            }
            drop(rows);
            drop(database);
            if !self.is_same()? {
                return Ok(None);
            }
            progress(Progress::Reading { done, total, bytes });
        }
        let size = build.finish(&self.call.stop, |share| progress(Progress::Writing(share)))?;
        Ok(Some((size, is_plain)))
    }
}

/// Adds the messages of small segments to the new messages, the last segment first. Returns the number of
/// segments that stay. The messages of small segments were just compared with the database.
fn merge_small(snapshot: &Snapshot, difference: &mut Difference) -> usize {
    let mut kept = snapshot.segments().len();
    for segment in snapshot.segments().into_iter().skip(1).rev() {
        let alive = segment.doc_ids.filter(|doc_id| {
            snapshot.is_alive(*doc_id) && difference.dead.binary_search(doc_id).is_err()
        });
        let alive: Vec<u32> = alive.collect();
        if alive.len() > MERGE_FACTOR * difference.fresh.len() {
            break;
        }
        kept -= 1;
        difference.fresh.extend(alive.into_iter().map(|doc_id| {
            let key = snapshot.key(doc_id);
            std::cmp::Reverse((snapshot.time(doc_id), snapshot.position(doc_id), key))
        }));
    }
    kept
}

/// Sampled texts in which common grams are counted. They take at most a share of the memory.
pub(super) struct Sample {
    pub(super) texts: Vec<String>,
    left: usize,
    left_bytes: usize,
}

impl Sample {
    /// Returns an empty sample for a number of messages.
    pub(super) fn new(messages: usize, resources: Resources) -> Sample {
        let left_bytes = resources.memory / SAMPLE_SHARE;
        Sample { texts: Vec::new(), left: messages.min(MAX_SAMPLES), left_bytes }
    }

    pub(super) fn step(&self, messages: usize) -> usize {
        messages.div_ceil(MAX_SAMPLES).max(1)
    }

    /// Returns how many bytes to read of the next message: its share of the bytes that are left, within
    /// limits.
    pub(super) fn bytes(&self) -> usize {
        (self.left_bytes / self.left.max(1)).clamp(LEAST_SAMPLED, SAMPLE_BYTES)
    }

    pub(super) fn add(&mut self, text: String) {
        self.left = self.left.saturating_sub(1);
        self.left_bytes = self.left_bytes.saturating_sub(text.len());
        self.texts.push(text);
    }
}

/// Returns the first `most` bytes of a text; of a long text, bytes from several places.
fn sampled(text: &[u8], most: usize) -> String {
    if text.len() <= LONG {
        return String::from_utf8_lossy(&text[..text.len().min(most)]).into_owned();
    }
    let places = text.chunks(text.len() / LONG_SAMPLES);
    let samples =
        places.map(|place| String::from_utf8_lossy(&place[..place.len().min(SAMPLE_BYTES)]));
    samples.collect::<Vec<_>>().join("\n")
}

/// Splits conversations, which are sorted by key, into their keys and the entries for an index.
fn named(conversations: Vec<db::ConversationEntry>) -> (Vec<i64>, Vec<index::ConversationTitle>) {
    conversations
        .into_iter()
        .map(|db::ConversationEntry { key, id, title, .. }| {
            (key, index::ConversationTitle { id, title })
        })
        .unzip()
}

/// Returns the bytes of a message that answers show.
fn shown_bytes<'a>(row: &Row<'a>) -> &'a [u8] {
    row.decoded.map(str::as_bytes).or(row.stored).unwrap_or_default()
}

fn document<'a>(row: &Row<'a>, conversation: u32) -> Document<'a> {
    Document {
        key: row.key,
        id: row.id,
        conversation,
        role: row.role,
        is_text_role: row.is_text_role,
        time: row.time,
        position: row.position,
        shown: row.decoded.map(str::as_bytes).or(row.stored),
        stored: row.decoded.and(row.stored).filter(|stored| *stored != shown_bytes(row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    #[test]
    fn how_far_the_order_is_can_be_told() {
        let export = TestExport::of(&["red", "green", "blue"]);
        let (source, call) = (export.engine.sources().remove(0), Call::default());
        let database = db::open(source.path().unwrap(), &call).unwrap();
        let (rows, seen) = (row_reader(&database).unwrap(), Arc::default());
        assert_eq!(rows.count().unwrap(), 3);
        assert_eq!(rows.order(&seen).unwrap().len(), 3);
        assert_eq!(seen.load(Ordering::Relaxed), 3);
        drop(rows);
        drop(database);
        let mut told = Vec::new();
        let resources = Resources { memory: 64 << 20, threads: 1 };
        let options = Reindex { resources, full: false };
        source.reindex(options, &call, &mut |now| told.push(now)).unwrap();
        assert_eq!(told[0], Progress::Ordering { done: 0, total: 0 });
        assert!(told.iter().map(|now| now.share()).is_sorted(), "{told:?}");
        assert!(told.iter().any(|now| matches!(now, Progress::Reading { total: 3, .. })));
        export.add(3, "white");
        let mut told = Vec::new();
        source.reindex(options, &call, &mut |now| told.push(now)).unwrap();
        assert_eq!(told[0], Progress::Comparing);
    }
}
