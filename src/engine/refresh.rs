//! Keeps the index a mirror of the database: builds it, and says whether it is one.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use super::{Engine, Error, Source};
use crate::{
    db::{self, Database, Feed, Probe, Row, State},
    index::{self, Build, Document, Generation, Note, Plan, Resources, Shelf, Size},
    model::Stop,
};

/// Messages sampled to see which grams are common, and the bytes kept of each.
const SAMPLE: (usize, usize) = (20_000, 4 << 10);

/// How long the database is read in one transaction: a writer waits no longer than that.
const SLICE: Duration = Duration::from_millis(200);

/// Builds begun because the database changed while it was read.
const ATTEMPTS: u32 = 3;

/// How to build an index.
#[derive(Clone, Copy, Debug)]
pub struct Reindex {
    /// Memory and threads to use.
    pub resources: Resources,
    /// Whether to build even if the index mirrors the database already.
    pub full: bool,
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// The messages are put into result order.
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

/// Why `LIKE` answers and not the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is none for this database.
    NoIndex,
    /// It mirrors another state of the database.
    Stale,
    /// It cannot be read; the reason.
    Unreadable(String),
    /// The request is one that it does not answer.
    NotForIndex,
}

/// The database that was searched last, with its index.
#[derive(Debug)]
pub(super) struct Held {
    probe: Probe,
    shelf: Shelf,
    note: Note,
    generation: Result<(Arc<Generation>, State), Why>,
}

impl Held {
    fn of(engine: &Engine, path: &Path) -> Result<Held, db::Error> {
        let probe = Probe::of(path)?;
        let shelf = Shelf::of(&engine.config().index_folder(), probe.real());
        let note = shelf.note();
        let generation = match shelf.current().map(|current| shelf.open(&current)) {
            None => Err(Why::NoIndex),
            Some(Err(error)) => Err(Why::Unreadable(error.to_string())),
            Some(Ok(generation)) => {
                // A state that cannot be read is equal to none.
                let state = generation.state().parse().unwrap_or_default();
                Ok((generation, state))
            }
        };
        Ok(Held { probe, shelf, note, generation })
    }

    /// Returns the generation if it mirrors the state that the database is in now.
    fn mirror(&self, now: &State) -> Result<Arc<Generation>, Why> {
        match &self.generation {
            Ok((generation, state)) if state == now => Ok(Arc::clone(generation)),
            Ok(_) => Err(Why::Stale),
            Err(why) => Err(why.clone()),
        }
    }
}

impl Engine {
    /// Returns the generation that mirrors a source's database as it is now.
    pub(super) fn mirror(&self, source: &Source) -> Result<Arc<Generation>, Why> {
        let path = source.path.as_path();
        let held = &self.held[source.kind as usize];
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*held
            && known.probe.path() == path
            && known.note == known.shelf.note()
            && let Ok(Some(now)) = known.probe.state()
        {
            return known.mirror(&now);
        }
        // Another database, or another generation, or another file under the same name.
        let found = Held::of(self, path).map_err(|_| Why::NoIndex)?;
        let now = found.probe.state();
        let found = held.insert(found);
        match now {
            Ok(Some(now)) => found.mirror(&now),
            _ => Err(Why::Stale),
        }
    }

    /// Builds the index of the export, unless it mirrors it already.
    pub fn reindex(
        &self,
        options: Reindex,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed, Error> {
        self.reindex_source(&self.export()?, options, stop, progress)
    }

    /// Builds the index of a source, unless it mirrors it already.
    ///
    /// The database can be searched all the while, and written to: if it is, the build begins anew.
    pub fn reindex_source(
        &self,
        source: &Source,
        options: Reindex,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed, Error> {
        let begun = Instant::now();
        let path = &source.path;
        if !options.full
            && let Ok(generation) = self.mirror(source)
        {
            return Ok(Reindexed::Current { messages: generation.messages() });
        }
        let shelf = Shelf::of(&self.config().index_folder(), Probe::of(path)?.real());
        let Some(writing) = shelf.lock()? else {
            return Err(Error::Indexing { folder: shelf.folder().to_owned() });
        };
        for _ in 0..ATTEMPTS {
            let folder = writing.begin()?;
            let built = build(path, &folder, options.resources, stop, progress);
            if let Ok(Some((size, conversations))) = built {
                writing.publish(&folder)?;
                return Ok(Reindexed::Built { size, conversations, took: begun.elapsed(), folder });
            }
            // What was begun is of no use to anyone; where it cannot be removed, the next build does.
            drop(std::fs::remove_dir_all(&folder));
            built?;
        }
        Err(db::Error::Unsteady { path: path.clone() }.into())
    }
}

/// Builds a generation in an empty folder; `None` if the database changed meanwhile.
fn build(
    path: &Path,
    folder: &Path,
    resources: Resources,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<(Size, usize)>, Error> {
    let state = db::settled(path)?;
    let is_same = || Ok::<bool, Error>(db::state(path)? == state);
    progress(Progress::Ordering);
    let database = db::open(path, stop)?;
    let mut feed = feed(&database)?;
    let order = feed.order()?;
    let conversations = feed.conversations()?;
    let messages = u32::try_from(order.len())
        .ok()
        .filter(|messages| *messages < u32::MAX)
        .ok_or_else(|| Error::TooMany { path: path.to_owned() })?;
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
    if !is_same()? {
        return Ok(None);
    }
    let keys: Vec<i64> = conversations.iter().map(|conversation| conversation.key).collect();
    let conversations: Vec<index::Conversation> = conversations
        .into_iter()
        .map(|db::Conversation { id, title, .. }| index::Conversation { id, title })
        .collect();
    let text_bytes = (sample_bytes * order.len() / sample.len().max(1)) as u64;
    let plan = Plan { conversations: &conversations, sample: &sample, messages, text_bytes };
    let mut build = Build::start(folder, plan, resources)?;
    let mut order = order.into_iter();
    let (mut done, mut bytes) = (0, 0);
    while !order.as_slice().is_empty() {
        let database = db::open(path, stop)?;
        let mut feed = self::feed(&database)?;
        let slice = Instant::now();
        for [message, conversation] in order.by_ref() {
            let Ok(conversation) = keys.binary_search(&conversation) else { return Ok(None) };
            let added = feed.message(message, |row| {
                bytes += shown(&row).len() as u64;
                build.add(&document(&row, conversation as u32))
            })?;
            match added {
                Some(added) => added?,
                None => return Ok(None),
            }
            done += 1;
            if done % 256 == 0 {
                if stop.requested() {
                    return Err(db::Error::Stopped.into());
                }
                if slice.elapsed() > SLICE {
                    break;
                }
            }
        }
        drop(feed);
        drop(database);
        if !is_same()? {
            return Ok(None);
        }
        progress(Progress::Reading { done, total: messages.into(), bytes });
    }
    let size = build.finish(&state.to_string(), |share| progress(Progress::Writing(share)))?;
    Ok(Some((size, conversations.len())))
}

fn feed(database: &Database) -> Result<Feed<'_>, Error> {
    Feed::of(database)?.ok_or_else(|| Error::NoKeys { path: database.path().to_owned() })
}

/// The bytes that are shown of a message.
fn shown<'a>(row: &Row<'a>) -> &'a [u8] {
    row.decoded.map(str::as_bytes).or(row.stored).unwrap_or_default()
}

fn document<'a>(row: &Row<'a>, conversation: u32) -> Document<'a> {
    Document {
        id: row.id,
        conversation,
        role: row.role,
        time: row.time,
        position: row.position,
        shown: row.decoded.map(str::as_bytes).or(row.stored),
        stored: row.decoded.and(row.stored).filter(|stored| *stored != shown(row)),
    }
}
