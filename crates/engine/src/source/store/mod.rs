//! A source of conversations, and the trait [`Store`] of the places where sources are stored.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use super::kind::SourceKind;
use super::reader::catalogue::Catalogue;
use super::reader::{OrderedIds, Reader};
use crate::config::{Config, StoreAddress};
use crate::decisions::exclusions::{CurrentExclusions, Exclusions};
use crate::decisions::superseded::SupersededIds;
use crate::{error::Result, scoring::Searcher};
use handle::{FallbackReason, IndexHandle};
use verbatim_base::call::{Call, Freshness};
use verbatim_base::lock::lock;
use verbatim_base::model::{Hit, Provenance};
use verbatim_chats::db::{self, Database, Outline, Probe, State};
#[cfg(feature = "cluster")]
use verbatim_cluster::Cluster;
use verbatim_embed::Model;
use verbatim_index::{IndexDir, Snapshot};
use work::{Task, UpkeepState};

pub(super) mod changed;
#[cfg(feature = "cluster")]
pub(super) mod cluster;
pub(super) mod database;
pub(super) mod facts;
pub(super) mod handle;
pub(super) mod snapshot_cache;
pub(super) mod wipe;
pub(super) mod work;

/// Wait between two checks whether another question has opened the index.
const RETRY: Duration = Duration::from_millis(1);

/// A place where sources are stored. It answers all that depends on the kind of place.
pub(crate) trait Store: fmt::Debug + Send + Sync {
    fn address(&self) -> StoreAddress;

    /// Returns the path of a canonical SQLite database, which has an index on this computer.
    fn database(&self) -> Option<&Path> {
        None
    }

    /// Returns the cluster that stores the source, and keeps its own index current.
    #[cfg(feature = "cluster")]
    fn cluster(&self) -> Option<&Cluster> {
        None
    }

    /// Returns the size of the store in bytes; 0 if it cannot be read. A cluster never counts as small.
    fn bytes(&self) -> u64;

    /// Returns the best reader for the current state, which leaves out nothing.
    fn reader(&self, source: &Source, call: &Call) -> Arc<dyn Reader>;

    /// Returns the reader of an exact search, which checks the files of an index after it has read them. If
    /// they changed, it lets `LIKE` answer.
    fn searcher(&self, source: &Source, call: &Call) -> Arc<dyn Reader> {
        self.reader(source, call)
    }

    /// Fails if the source cannot be read.
    fn check(&self, source: &Source, call: &Call) -> Result<()>;

    /// Returns whether an index can answer, either in the cluster or a current index on this computer.
    fn is_indexed(&self, source: &Source, call: &Call) -> bool;

    /// Returns whether the store has row ids, which an index on this computer needs.
    fn can_be_indexed(&self, _: &Source, _: &Call) -> bool {
        false
    }

    /// Returns a text that changes whenever the store or its index changes. This takes some system calls, or
    /// a request to a cluster.
    fn stamp(&self, source: &Source, call: &Call) -> String;

    /// Returns the number of messages in the index, and its size in bytes with terms and vectors.
    fn indexed(&self, source: &Source, call: &Call) -> (u64, u64);

    /// Returns the number of messages in the index that have a vector of the source's model.
    fn embedded(&self, source: &Source, call: &Call) -> u64;

    /// Returns the ids of the conversations whose origins are excluded.
    fn excluded(
        &self,
        source: &Source,
        exclusions: &Arc<Exclusions>,
        call: &Call,
    ) -> Result<Arc<HashSet<String>>>;

    /// Returns the models that answered in each conversation, by conversation id.
    fn models(&self, source: &Source, call: &Call) -> Result<HashMap<String, Vec<String>>>;

    /// Returns the services that conversations are from, by conversation id. Without `ids`, returns all.
    fn provenance(
        &self,
        source: &Source,
        ids: Option<&[&str]>,
        call: &Call,
    ) -> Result<HashMap<String, Provenance>>;

    /// Returns the messages of a conversation that its service does not show, like `db::branches`. A
    /// cluster does not store which messages these are.
    fn branches(&self, _: &Source, _id: &str, _: &Call) -> Result<HashMap<String, String>> {
        Ok(HashMap::new())
    }

    /// Returns the ids of messages of conversations in reading order; `None` if they are read for each
    /// conversation.
    fn orders(&self, _ids: &[&str], _: &Call) -> Result<Option<HashMap<String, OrderedIds>>> {
        Ok(None)
    }

    /// Returns the first messages of conversations that have messages.
    fn first_messages(
        &self,
        source: &Source,
        ids: &[&str],
        call: &Call,
    ) -> Result<Vec<Hit<'static>>>;

    /// Returns the id of the conversation that a transcript continues, if it names one.
    fn forked_from(&self, _: &Source, _id: &str, _: &Call) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the ids of the conversations whose transcripts are known but not stored.
    fn not_stored(&self, _: &Source, _: &Call) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// A source whose store exists: an export, the transcript store or the recorded threads.
///
/// Clones share open indexes and caches.
#[derive(Clone)]
pub struct Source {
    /// The kind of the source.
    pub kind: SourceKind,
    pub(super) store: Arc<dyn Store>,
    /// Whether the question is to only one of the sources that may have the same conversations.
    /// Then answers leave out only transcripts that another configuration of the home follows.
    pub(crate) is_alone: bool,
    pub(super) shared: Arc<SharedState>,
    pub(super) state: Arc<KindState>,
}

/// The state that all sources share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(super) config: Arc<Config>,
    pub(super) upkeep_state: UpkeepState,
    pub(super) superseded: SupersededIds,
    /// The model that turns texts into vectors. It is loaded at the first text.
    pub(super) model: Model,
    pub(super) exclusions: CurrentExclusions,
}

/// The state that all questions to one kind of source share.
#[derive(Debug, Default)]
pub(crate) struct KindState {
    index: Mutex<Option<IndexHandle>>,
    /// Lock that is held while an index is opened. Opening checks every byte of new files, which is slow.
    opening: Mutex<()>,
    catalogue: Mutex<Option<Arc<Catalogue>>>,
    searcher: Mutex<Option<Arc<Searcher>>>,
    /// The time until which no question tries to refresh the index, because the last try took too long.
    refresh_again: Mutex<Option<Instant>>,
    task: Mutex<Task>,
    /// Cache of the excluded conversations, for one state of a database.
    excluded: Mutex<Option<Excluded>>,
    /// Cache of the conversations without times, for one state of a database.
    pub(super) timeless: Mutex<Option<Timeless>>,
}

#[derive(Debug)]
struct Excluded {
    path: PathBuf,
    state: State,
    by: Arc<Exclusions>,
    ids: Arc<HashSet<String>>,
}

/// The conversations in which no message has a time, by id, for one state of a database. Their times are
/// from the rows of the conversations.
#[derive(Debug)]
pub(crate) struct Timeless {
    pub(crate) path: PathBuf,
    pub(crate) state: State,
    pub(crate) outlines: Arc<HashMap<String, Outline>>,
}

impl KindState {
    pub(crate) fn close(&self) {
        *lock(&self.index) = None;
        *lock(&self.catalogue) = None;
        *lock(&self.searcher) = None;
    }
}

impl Source {
    /// Returns the source for a question to it alone, or to several.
    pub(crate) fn asked_alone(self, is_alone: bool) -> Source {
        Source { is_alone, ..self }
    }

    /// Returns the catalogue of a snapshot of this source. It is built once for each snapshot.
    pub(crate) fn catalogue(&self, snapshot: &Arc<Snapshot>) -> Arc<Catalogue> {
        let mut made = lock(&self.state.catalogue);
        if let Some(known) = made.as_ref().filter(|known| known.is_of(snapshot)) {
            return Arc::clone(known);
        }
        Arc::clone(made.insert(Arc::new(Catalogue::open(self.kind, Arc::clone(snapshot)))))
    }

    pub(crate) fn model(&self) -> &Model {
        &self.shared.model
    }

    pub(crate) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(crate) fn exclusions(&self) -> Arc<Exclusions> {
        self.shared.exclusions.now().1
    }

    /// Returns the path of the source's canonical database; `None` if the source is in a cluster. Without
    /// a database, a source has no index on this computer either.
    pub fn database(&self) -> Option<&Path> {
        self.store.database()
    }

    /// Returns the path of the database. It is an error if there is none.
    pub(crate) fn path(&self) -> db::Result<&Path> {
        self.database()
            .ok_or_else(|| db::Error::NotFound { path: self.address().to_string().into() })
    }

    /// Returns the path of the database or the address of the index in a cluster.
    pub fn address(&self) -> StoreAddress {
        self.store.address()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Returns whether a maintainer keeps the index current in the background.
    pub(crate) fn is_maintained(&self) -> bool {
        self.shared.upkeep_state.is_running()
    }

    pub(crate) fn task(&self) -> Task {
        *lock(&self.state.task)
    }

    pub(crate) fn set_task(&self, task: Task) {
        *lock(&self.state.task) = task;
    }

    /// Returns whether questions should not try a refresh now, because one did not finish in time.
    pub(crate) fn is_refresh_slow(&self) -> bool {
        lock(&self.state.refresh_again).is_some_and(|until| until > Instant::now())
    }

    /// Keeps questions from refreshing the index for some time.
    pub(crate) fn postpone_refresh(&self, pause: Duration) {
        *lock(&self.state.refresh_again) = Some(Instant::now() + pause);
    }

    /// Returns the snapshot of the index if it holds the current state of the database.
    pub(crate) fn current_index(&self, call: &Call) -> Result<Arc<Snapshot>, FallbackReason> {
        self.index(call, true)
    }

    /// Does the same as [`Source::current_index`]. If `checks_files` is not set, the caller checks the files of the
    /// index itself, after it has read them.
    pub(crate) fn index(
        &self,
        call: &Call,
        checks_files: bool,
    ) -> Result<Arc<Snapshot>, FallbackReason> {
        let Some(path) = self.database() else { return Err(FallbackReason::NoIndex) };
        if call.freshness == Freshness::NoIndex {
            let reason = "files of the index changed again and again while they were read";
            return Err(FallbackReason::Unreadable(reason.to_owned()));
        }
        if let Some(answer) = self.open_index(path, call, checks_files) {
            return answer;
        }
        // Opening reads all bytes of files that were copied or restored. Questions that need the index wait
        // for this, but not longer than their time limit.
        let _opening = loop {
            match self.state.opening.try_lock() {
                Ok(guard) => break guard,
                Err(TryLockError::Poisoned(guard)) => break guard.into_inner(),
                Err(TryLockError::WouldBlock) if call.stop.requested() => {
                    return Err(FallbackReason::Stale);
                }
                Err(TryLockError::WouldBlock) => thread::sleep(RETRY),
            }
        };
        if let Some(answer) = self.open_index(path, call, checks_files) {
            return answer;
        }
        let handle = IndexHandle::open(&self.shared.config.index_folder(), path)
            .map_err(|_| FallbackReason::NoIndex)?;
        lock(&self.state.index).insert(handle).opened_for(call.freshness)
    }

    /// Returns the snapshot of the open index; `None` if the index must be opened again.
    fn open_index(
        &self,
        path: &Path,
        call: &Call,
        checks_files: bool,
    ) -> Option<Result<Arc<Snapshot>, FallbackReason>> {
        lock(&self.state.index).as_mut()?.snapshot(path, call.freshness, checks_files)
    }

    /// Returns the snapshot of the index in use, even if it is out of date.
    pub(crate) fn latest_index(&self, call: &Call) -> Option<Arc<Snapshot>> {
        if let Ok(snapshot) = self.current_index(call) {
            return Some(snapshot);
        }
        if call.freshness == Freshness::NoIndex {
            return None;
        }
        let index = lock(&self.state.index);
        let (snapshot, _) = index.as_ref()?.opened.as_ref().ok()?;
        Some(Arc::clone(snapshot))
    }

    /// Returns the searcher of a catalogue. Reuses the open searcher if it lacks no terms or vectors.
    pub(crate) fn searcher(&self, catalogue: &Arc<Catalogue>) -> Arc<Searcher> {
        let known = lock(&self.state.searcher).clone();
        if let Some(known) = known
            && Arc::ptr_eq(&known.catalogue, catalogue)
            && known.missing() == (0, 0)
        {
            return match known.extended() {
                Some(extended) => Arc::clone(lock(&self.state.searcher).insert(Arc::new(extended))),
                None => known,
            };
        }
        let opened = Arc::new(Searcher::open(Arc::clone(catalogue), self.model()));
        Arc::clone(lock(&self.state.searcher).insert(opened))
    }

    pub(crate) fn index_dir(&self) -> db::Result<IndexDir> {
        let probe = Probe::new(self.path()?)?;
        Ok(handle::index_dir_of(&self.shared.config.index_folder(), &probe))
    }

    /// Runs `work` on the database. If an export is replaced meanwhile, finds the new one and repeats.
    pub(crate) fn on_database<T>(&self, mut work: impl FnMut(&Path) -> db::Result<T>) -> Result<T> {
        /// Maximum number of replacements of the database that one question follows.
        const MAX_REPLACEMENTS: u32 = 4;

        let mut path = self.path()?.to_owned();
        for _ in 0..MAX_REPLACEMENTS {
            match work(&path) {
                Err(db::Error::NotFound { .. }) if self.kind == SourceKind::Export => {
                    if let StoreAddress::Database(now) = self.shared.config.export_store()? {
                        path = now;
                    }
                }
                answer => return Ok(answer?),
            }
        }
        Err(db::Error::NotFound { path }.into())
    }

    /// Reads one state of the database, as [`db::read`] does.
    pub(crate) fn read_database<T>(
        &self,
        call: &Call,
        mut work: impl FnMut(&Database) -> db::Result<T>,
    ) -> Result<T> {
        self.on_database(|path| db::read(path, call, &mut work))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        self.kind == other.kind && self.address() == other.address()
    }
}

impl Eq for Source {}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("kind", &self.kind)
            .field("store", &self.address())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    #[test]
    fn a_call_compares_the_index_with_the_database_once() {
        let export = TestExport::indexed(&["red"]);
        let source = export.engine.sources().remove(0);
        let call = Call::default().reading();
        let later = Call::default().reading();
        let snapshot = source.current_index(&call).unwrap();
        export.add(1, "blue");
        let again = source.current_index(&call.within(Duration::from_secs(60))).unwrap();
        assert!(Arc::ptr_eq(&snapshot, &again));
        // Other calls compare again, and so does work outside of calls.
        for call in [Call::default(), later.clone(), later] {
            assert_eq!(source.current_index(&call).err(), Some(FallbackReason::Stale));
        }
    }

    #[test]
    fn a_question_waits_for_an_index_that_another_opens_no_longer_than_it_may() {
        let export = TestExport::indexed(&["red"]);
        let source = export.engine.sources().remove(0);
        export.engine.close();
        let opening = lock(&source.state.opening);
        let (sender, answer) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let call = Call::default().within(Duration::from_millis(50));
                sender.send(source.current_index(&call).map(drop)).unwrap();
            });
            let stale = answer.recv_timeout(Duration::from_secs(10));
            let waiting = scope.spawn(|| source.current_index(&Call::default()).map(drop));
            drop(opening);
            assert_eq!(stale, Ok(Err(FallbackReason::Stale)));
            assert_eq!(waiting.join().unwrap(), Ok(()));
        });
    }
}
