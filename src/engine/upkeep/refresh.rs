//! Makes the index a mirror of the database again: of what has changed, or of all.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::engine::{
    Engine, Error, Source,
    upkeep::diff::{self, Compared, Difference, SLICE},
};
use crate::{
    db::{self, Database, Layout, Probe, Row, RowReader, State},
    index::{
        self, Build, BuildPlan, Document, IndexDir, Reading, Resources, Size, Snapshot,
        SnapshotBuilder, Writing,
    },
    map_faults,
    model::Stop,
};

/// Messages sampled to see which grams are common, and the bytes kept of each.
pub(crate) const SAMPLE: (usize, usize) = (20_000, 4 << 10);

/// Refreshes begun because the database changed while it was read.
const ATTEMPTS: u32 = 3;

/// How many times the messages to be added another part of that kind may have to be taken up with
/// them. Parts then grow by such steps, and there are as many as the logarithm of their messages.
const TAKEN_UP: usize = 2;

/// How to refresh an index.
#[derive(Clone, Copy, Debug)]
pub struct Reindex {
    /// Memory and threads to use.
    pub resources: Resources,
    /// Whether to build all of it even if the index mirrors the database already.
    pub full: bool,
}

/// How far a refresh is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// The messages are put into result order, or compared with those of the index.
    Ordering,
    /// Messages are read, cut into grams and sorted.
    Reading {
        /// Messages read.
        done: u64,
        /// Messages there are.
        total: u64,
        /// Bytes of text read.
        bytes: u64,
    },
    /// The posting lists are merged and written; the share of them that is.
    Writing(f64),
}

/// What came of asking for an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Reindexed {
    /// It mirrored the database already.
    Current {
        /// Messages in it.
        messages: u32,
    },
    /// What had changed was added to it.
    Refreshed {
        /// Messages that were new or not as they had been.
        added: u32,
        /// Messages that were there no more, or not as they had been.
        removed: u32,
        /// How long that took.
        took: Duration,
    },
    /// It was built.
    Built {
        /// What it holds and takes.
        size: Size,
        /// Conversations in it.
        conversations: usize,
        /// How long that took.
        took: Duration,
        /// Its folder.
        folder: PathBuf,
    },
}

/// A refresh at work, with the right to write.
struct Work<'a> {
    path: &'a Path,
    state: State,
    writing: &'a Writing,
    resources: Resources,
    stop: &'a Stop,
    /// How many pages of maps had been missing before.
    faults: u64,
}

impl Engine {
    /// Refreshes the index of the export, unless it mirrors it already.
    pub fn reindex(
        &self,
        options: Reindex,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed, Error> {
        self.reindex_source(&self.export()?, options, stop, progress)
    }

    /// Refreshes the index of a source, unless it mirrors it already.
    ///
    /// The database can be searched all the while, and written to: if it is, this begins anew.
    pub fn reindex_source(
        &self,
        source: &Source,
        options: Reindex,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed, Error> {
        let begun = Instant::now();
        let path = &source.path;
        let index_dir = IndexDir::of(&self.config().index_folder(), Probe::of(path)?.real());
        if !options.full
            && let Ok(snapshot) = self.current_index(source)
        {
            // Who put it into use may have been killed before it tidied up.
            if let Ok(Some(writing)) = index_dir.lock() {
                writing.clean();
            }
            return Ok(Reindexed::Current { messages: snapshot.messages() });
        }
        let writing = lock(&index_dir)?;
        for _ in 0..ATTEMPTS {
            let state = db::settled(path)?;
            let resources = options.resources;
            let faults = map_faults::count();
            let work = Work { path, state, writing: &writing, resources, stop, faults };
            let earlier = (!options.full)
                .then(|| index_dir.current().and_then(|current| index_dir.open(&current).ok()))
                .flatten();
            if let Some(snapshot) = earlier {
                // Another process may have been at it while the lock was waited for.
                if snapshot.state() == work.state.to_string() {
                    return Ok(Reindexed::Current { messages: snapshot.messages() });
                }
                progress(Progress::Ordering);
                let compared = diff::compare(path, &snapshot, &|| work.is_same(), stop);
                match work.steady(compared.map(Some))? {
                    None | Some(Compared::Unsteady) => continue,
                    Some(Compared::TooMuch) => {}
                    Some(Compared::By(difference)) => {
                        let added = difference.fresh.len() as u32;
                        let removed = difference.dead.len() as u32;
                        let done = work.add(&snapshot, difference, progress);
                        if !work.steady(done.map(Some))?.unwrap_or(false) {
                            continue;
                        }
                        writing.record("refreshed", added.into());
                        return Ok(Reindexed::Refreshed { added, removed, took: begun.elapsed() });
                    }
                }
            }
            if let Some((size, conversations, folder)) = work.steady(work.build(progress))? {
                let took = begun.elapsed();
                writing.record("built", size.messages.into());
                return Ok(Reindexed::Built { size, conversations, took, folder });
            }
        }
        Err(db::Error::Unsteady { path: path.clone() }.into())
    }
}

pub(crate) fn lock(index_dir: &IndexDir) -> Result<Writing, Error> {
    index_dir.lock()?.ok_or_else(|| Error::Indexing { folder: index_dir.folder().to_owned() })
}

/// Runs `work` with the folder of a new part, which is removed again unless something comes of it.
pub(crate) fn within<T>(
    writing: &Writing,
    work: impl FnOnce(&Path) -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let folder = writing.begin()?;
    let outcome = work(&folder);
    if !matches!(outcome, Ok(Some(_))) {
        // What was begun is of no use to anyone; where it cannot be removed, the next build does.
        drop(fs::remove_dir_all(&folder));
    }
    outcome
}

impl Work<'_> {
    /// Returns whether the database is still in the state that this is of, and all that was read of
    /// the index was there.
    fn is_same(&self) -> Result<bool, Error> {
        Ok(map_faults::count() == self.faults && db::state(self.path)? == self.state)
    }

    /// Returns what came of reading the database; `None` where it failed and the database changed
    /// meanwhile, which may be why.
    fn steady<T>(&self, outcome: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
        match outcome {
            Err(error) if !error.is_stopped() && matches!(self.is_same(), Ok(false)) => Ok(None),
            outcome => outcome,
        }
    }

    /// Builds a snapshot of the whole database; `None` if that changed meanwhile.
    fn build(
        &self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<(Size, usize, PathBuf)>, Error> {
        progress(Progress::Ordering);
        let database = db::open(self.path, self.stop)?;
        let mut feed = feed(&database)?;
        let order = feed.order()?;
        let conversations = feed.conversations()?;
        let mut reading = Reading {
            decoded: database.layout().parts,
            plain: feed.has_unique_ids()? && conversations.iter().all(|one| one.is_plain),
        };
        let messages = u32::try_from(order.len())
            .ok()
            .filter(|messages| *messages < u32::MAX)
            .ok_or_else(|| Error::TooMany { path: self.path.to_owned() })?;
        let mut sample = Vec::new();
        let mut sample_bytes = 0;
        for [message, _] in order.iter().step_by(order.len().div_ceil(SAMPLE.0).max(1)) {
            let text = feed.message(*message, |row| {
                let text = shown(&row);
                sample_bytes += text.len();
                String::from_utf8_lossy(&text[..text.len().min(SAMPLE.1)]).into_owned()
            });
            sample.push(text?.unwrap_or_default());
        }
        drop(feed);
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
            let mut draft = SnapshotBuilder::new(&self.state.to_string(), reading);
            draft.add(folder);
            draft.publish(self.writing)?;
            Ok(Some((size, conversations.len(), folder.to_owned())))
        })
    }

    /// Makes a snapshot of an earlier one and what has changed since; returns false if the
    /// database changed meanwhile.
    fn add(
        &self,
        snapshot: &Snapshot,
        mut difference: Difference,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, Error> {
        let mut kept = snapshot.parts().len();
        // Small parts are taken up again, the latest first; what is in them has just been compared.
        for part in snapshot.parts().into_iter().skip(1).rev() {
            let is_dead = |doc_id: &u32| difference.dead.binary_search(doc_id).is_ok();
            let live: Vec<u32> = part
                .doc_ids
                .filter(|doc_id| snapshot.is_live(*doc_id) && !is_dead(doc_id))
                .collect();
            if live.len() > TAKEN_UP * difference.fresh.len() {
                break;
            }
            kept -= 1;
            difference.fresh.extend(live.into_iter().map(|doc_id| {
                let key = snapshot.key(doc_id);
                std::cmp::Reverse((snapshot.time(doc_id), snapshot.position(doc_id), key))
            }));
        }
        let mut draft = SnapshotBuilder::new(&self.state.to_string(), snapshot.reading());
        for part in 0..kept {
            draft.keep(snapshot, part, &difference.dead);
        }
        if difference.fresh.is_empty() {
            draft.publish(self.writing)?;
            return Ok(true);
        }
        difference.fresh.sort_unstable();
        let database = db::open(self.path, self.stop)?;
        let feed = feed(&database)?;
        let keys: Vec<i64> = difference.fresh.iter().map(|place| place.0.2).collect();
        let conversation_of: HashMap<i64, i64> =
            feed.conversations_of(&keys)?.into_iter().map(|[key, of]| (key, of)).collect();
        let order: Vec<[i64; 2]> =
            keys.into_iter().filter_map(|key| Some([key, *conversation_of.get(&key)?])).collect();
        let mut used: Vec<i64> = conversation_of.into_values().collect();
        used.sort_unstable();
        used.dedup();
        let mut conversations = feed.conversations()?;
        conversations.retain(|conversation| used.binary_search(&conversation.key).is_ok());
        drop(feed);
        drop(database);
        if !self.is_same()? {
            return Ok(false);
        }
        if order.is_empty() {
            draft.publish(self.writing)?;
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
            // The comparison has seen to it that all is plain.
            let Some((size, true)) = filled else { return Ok(None) };
            if !self.is_same()? {
                return Ok(None);
            }
            draft.add(folder);
            draft.publish(self.writing)?;
            Ok(Some(size))
        })?;
        Ok(added.is_some())
    }

    /// Builds a part of the messages and conversations whose keys `order` has, in that order;
    /// `keys` are those of the plan's conversations. Returns whether all positions were plain too;
    /// `None` if the database changed meanwhile.
    fn fill(
        &self,
        folder: &Path,
        plan: BuildPlan<'_>,
        keys: &[i64],
        order: &[[i64; 2]],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<(Size, bool)>, Error> {
        let mut build = Build::start(folder, plan, self.resources)?;
        let total = order.len() as u64;
        let mut order = order.iter();
        let (mut done, mut bytes) = (0, 0);
        let mut is_plain = true;
        let mut layout: Option<Layout> = None;
        while !order.as_slice().is_empty() {
            let database = match &layout {
                Some(layout) => db::open_again(self.path, layout, self.stop)?,
                None => db::open(self.path, self.stop)?,
            };
            layout.get_or_insert_with(|| database.layout().clone());
            let mut feed = feed(&database)?;
            let slice = Instant::now();
            for [message, conversation] in order.by_ref() {
                let Ok(conversation) = keys.binary_search(conversation) else { return Ok(None) };
                let added = feed.message(*message, |row| {
                    bytes += shown(&row).len() as u64;
                    is_plain &= row.is_plain;
                    build.add(&document(&row, conversation as u32))
                })?;
                match added {
                    Some(added) => added?,
                    None => return Ok(None),
                }
                done += 1;
                if done % 256 == 0 {
                    if self.stop.requested() {
                        return Err(db::Error::Stopped.into());
                    }
                    if slice.elapsed() > SLICE {
                        break;
                    }
                }
            }
            drop(feed);
            drop(database);
            if !self.is_same()? {
                return Ok(None);
            }
            progress(Progress::Reading { done, total, bytes });
        }
        let size = build.finish(self.stop, |share| progress(Progress::Writing(share)))?;
        Ok(Some((size, is_plain)))
    }
}

/// Returns the keys of conversations, by key, and the conversations as an index takes them.
fn named(conversations: Vec<db::Conversation>) -> (Vec<i64>, Vec<index::Conversation>) {
    conversations
        .into_iter()
        .map(|db::Conversation { key, id, title, .. }| (key, index::Conversation { id, title }))
        .unzip()
}

pub(crate) fn feed(database: &Database) -> Result<RowReader<'_>, Error> {
    RowReader::of(database)?.ok_or_else(|| Error::NoKeys { path: database.path().to_owned() })
}

/// The bytes that are shown of a message.
fn shown<'a>(row: &Row<'a>) -> &'a [u8] {
    row.decoded.map(str::as_bytes).or(row.stored).unwrap_or_default()
}

fn document<'a>(row: &Row<'a>, conversation: u32) -> Document<'a> {
    Document {
        key: row.key,
        id: row.id,
        conversation,
        role: row.role,
        time: row.time,
        position: row.position,
        shown: row.decoded.map(str::as_bytes).or(row.stored),
        stored: row.decoded.and(row.stored).filter(|stored| *stored != shown(row)),
    }
}
