//! Sources, and their open indexes and caches.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, TryLockError},
    thread,
    time::{Duration, Instant},
};

use super::{
    catalogue::Catalogue,
    handle::{FallbackReason, IndexHandle},
    hidden::HiddenIds,
    kind::SourceKind,
    note::Note,
    scoring::Searcher,
    store::Store,
    work::{Task, Tended},
};
use crate::{
    config::Config,
    error::{Error, Result},
    exclusions::{CurrentExclusions, Exclusions},
    store_address::StoreAddress,
};
use verbatim_base::{
    lock::lock,
    model::{Origin, Stop},
};
use verbatim_chats::db::{self, Database, Outline, Probe, State};
use verbatim_embed::Model;
use verbatim_index::{IndexDir, Snapshot};

/// Wait between two checks whether another question has opened the index.
const RETRY: Duration = Duration::from_millis(1);

/// A source whose store exists: an export, the transcript store or the recorded threads.
///
/// Clones share open indexes and caches.
#[derive(Clone)]
pub struct Source {
    /// The kind of the source.
    pub kind: SourceKind,
    /// The place where the source is stored.
    store: Store,
    /// Whether the question is to only one of the sources that may have the same conversations.
    /// Then answers leave out only transcripts that another configuration of the home follows.
    pub(super) is_alone: bool,
    state: Arc<SharedState>,
}

/// The state that all questions to one kind of source share.
#[derive(Debug)]
struct SharedState {
    config: Arc<Config>,
    index: Mutex<Option<IndexHandle>>,
    /// Lock that is held while an index is opened. Opening checks every byte of new files, which is slow.
    opening: Mutex<()>,
    catalogue: Mutex<Option<Arc<Catalogue>>>,
    /// The last opened term and vector indexes.
    searcher: Mutex<Option<Arc<Searcher>>>,
    /// The time until which no question tries to refresh the index, because the last try took too long.
    refresh_again: Mutex<Option<Instant>>,
    /// The current background work for the source.
    task: Mutex<Task>,
    tended: Arc<Tended>,
    /// The conversations that answers leave out, shared by all sources.
    hidden: Arc<HiddenIds>,
    model: Model,
    exclusions: Arc<CurrentExclusions>,
    /// Cache of the excluded conversations, for one state of a database.
    excluded: Mutex<Option<Excluded>>,
    /// Cache of the conversations without times, for one state of a database.
    timeless: Mutex<Option<Timeless>>,
}

/// The excluded conversations of one state of a database.
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
pub(super) struct Timeless {
    pub(super) path: PathBuf,
    pub(super) state: State,
    pub(super) outlines: Arc<HashMap<String, Outline>>,
}

#[derive(Debug)]
pub struct Sources {
    config: Arc<Config>,
    states: [Arc<SharedState>; SourceKind::ALL.len()],
    /// The store that the user named. A cluster stays open as long as the sources.
    named: Option<Store>,
    tended: Arc<Tended>,
    /// The model that turns texts into vectors. It is loaded at the first text.
    model: Model,
    exclusions: Arc<CurrentExclusions>,
}

impl Sources {
    /// Returns the sources of a configuration. Opens nothing.
    pub(crate) fn new(config: Config) -> Sources {
        let config = Arc::new(config);
        let model = Model::new(&config.embeddings);
        let (tended, hidden) = (Arc::new(Tended::default()), Arc::new(HiddenIds::default()));
        let exclusions = Arc::new(CurrentExclusions::new(Arc::clone(&config)));
        let named = config.db.clone().map(|address| Store::at(address, &config));
        let states = SourceKind::ALL.map(|_| {
            Arc::new(SharedState {
                config: Arc::clone(&config),
                index: Mutex::default(),
                opening: Mutex::default(),
                catalogue: Mutex::default(),
                searcher: Mutex::default(),
                refresh_again: Mutex::default(),
                task: Mutex::default(),
                tended: Arc::clone(&tended),
                hidden: Arc::clone(&hidden),
                model: model.clone(),
                exclusions: Arc::clone(&exclusions),
                excluded: Mutex::default(),
                timeless: Mutex::default(),
            })
        });
        Sources { config, states, named, tended, model, exclusions }
    }

    /// Returns the configuration that the sources were created with.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the configuration with the current exclusions.
    pub fn current_config(&self) -> Arc<Config> {
        self.exclusions.now().0
    }

    pub fn exclusions(&self) -> &CurrentExclusions {
        &self.exclusions
    }

    /// Returns the model that turns texts into vectors.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the share of vectors in ranked search, if the words of the best messages cover a question.
    pub fn vector_share(&self) -> f32 {
        match self.config.vector_share {
            Some(percent) => f32::from(percent) / 100.0,
            None => self.model.vector_share(),
        }
    }

    /// Returns the sources that exist now, the export first. Looks them up at every call.
    pub(crate) fn present(&self) -> Vec<Source> {
        self.present_of(&SourceKind::ALL)
    }

    /// Returns the sources of some kinds that exist now, in this order.
    pub fn present_of(&self, kinds: &[SourceKind]) -> Vec<Source> {
        kinds.iter().filter_map(|kind| self.found(*kind).ok().flatten()).collect()
    }

    /// Returns the sources that exist now, the export first. Returns an error for each source that is
    /// configured but missing, or that cannot be looked up.
    pub(crate) fn all(&self) -> Vec<Result<Source>> {
        SourceKind::ALL.into_iter().filter_map(|kind| self.found(kind).transpose()).collect()
    }

    /// Returns the source of a kind, if it exists, for a question to this source alone.
    pub(crate) fn of_kind(&self, kind: SourceKind) -> Result<Option<Source>> {
        Ok(self.found(kind)?.map(|source| Source { is_alone: true, ..source }))
    }

    fn found(&self, kind: SourceKind) -> Result<Option<Source>> {
        match located(&self.config, kind) {
            Ok(path) => Ok(path.map(|path| self.at(kind, path))),
            Err(Error::NoDatabase { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the source of a kind that this question has read before, for a question to it alone.
    ///
    /// It is an error if the source no longer exists, because its part of the answer would be missing.
    pub(crate) fn again(&self, kind: SourceKind) -> Result<Source> {
        let gone = || Error::NoDatabase { folder: self.config.db_folder() };
        self.of_kind(kind)?.ok_or_else(gone)
    }

    /// Returns the export. If there is none, the error names the folder that was searched.
    pub fn export(&self) -> Result<Source> {
        Ok(self.at(SourceKind::Export, self.config.export_store()?))
    }

    /// Returns the state of the background upkeep.
    pub(crate) fn tended(&self) -> &Tended {
        &self.tended
    }

    /// Runs `work` for each source of some kinds (of all kinds if none is named), the export first. If a
    /// source is configured but missing, or cannot be read, adds a note and goes on with the next one.
    ///
    /// It is an error if there is nothing to ask, or if no source can be read.
    pub(crate) fn each<T>(
        &self,
        kinds: &[SourceKind],
        mut work: impl FnMut(Source) -> Result<T>,
    ) -> Result<(Vec<T>, Vec<Note>)> {
        let (mut done, mut notes, mut first) = (Vec::new(), Vec::new(), None);
        let wanted = |kind: &SourceKind| kinds.is_empty() || kinds.contains(kind);
        let is_alone = is_alone(kinds);
        for kind in SourceKind::ALL.into_iter().filter(wanted) {
            let outcome = match self.found(kind) {
                Ok(Some(source)) => work(Source { is_alone, ..source }),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(one) => done.push(one),
                Err(error) if error.is_of_source() => {
                    notes.push(Note::Unreadable { source: kind, reason: error.reason() });
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = first.filter(|_| done.is_empty()) {
            return Err(error);
        }
        if wanted(&SourceKind::Archive) {
            notes.extend(self.unread_transcripts());
            notes.extend(self.set_aside());
        }
        let may_be_empty = done.is_empty() && notes.is_empty() && wanted(&SourceKind::Export);
        if may_be_empty && self.all().is_empty() {
            self.export()?;
        }
        Ok((done, notes))
    }

    /// Returns the sources of some kinds that can be read, and notes about the others.
    pub(crate) fn readable(
        &self,
        kinds: &[SourceKind],
        stop: &Stop,
    ) -> Result<(Vec<Source>, Vec<Note>)> {
        self.each(kinds, |source| source.check(stop).map(|()| source))
    }

    /// Returns notes about the sources that cannot be read.
    pub fn problems(&self, stop: &Stop) -> Vec<Note> {
        let of_kind = |kind| match self.readable(&[kind], stop) {
            Ok((_, notes)) => notes,
            Err(error) if error.is_of_source() => {
                vec![Note::Unreadable { source: kind, reason: error.reason() }]
            }
            Err(_) => Vec::new(),
        };
        SourceKind::ALL.into_iter().flat_map(of_kind).collect()
    }

    /// Returns a note if the transcripts were never read.
    fn unread_transcripts(&self) -> Option<Note> {
        if self.config.archives.is_empty() {
            return None;
        }
        if self.tended.is_tended() {
            return (!self.tended.are_transcripts_read()).then_some(Note::ReadingTranscripts);
        }
        let is_unread = self.config.leave_indexes && !self.config.archive_database().is_file();
        is_unread.then_some(Note::TranscriptsNotRead)
    }

    /// Returns a note if a damaged transcript store was set aside. It may have the only copy of
    /// transcripts that their programs deleted.
    fn set_aside(&self) -> Option<Note> {
        let path = db::transcripts::first_aside(&self.config.archive_database());
        path.exists().then_some(Note::SetAside { path })
    }

    /// Returns the sources of some kinds (of all kinds if none is named). It is an error if there is no
    /// source at all.
    pub(crate) fn within(&self, kinds: &[SourceKind]) -> Result<Vec<Source>> {
        let wanted = |kind| kinds.is_empty() || kinds.contains(&kind);
        let mut sources = self.present();
        if sources.is_empty() && wanted(SourceKind::Export) {
            sources.push(self.export()?);
        }
        sources.retain(|source| wanted(source.kind));
        let is_alone = is_alone(kinds);
        Ok(sources.into_iter().map(|source| Source { is_alone, ..source }).collect())
    }

    /// Closes all open indexes. The next question opens them again.
    pub(crate) fn close(&self) {
        for state in &self.states {
            *lock(&state.index) = None;
            *lock(&state.catalogue) = None;
            *lock(&state.searcher) = None;
        }
    }

    fn at(&self, kind: SourceKind, address: StoreAddress) -> Source {
        let state = Arc::clone(&self.states[kind as usize]);
        let known = self.named.clone().filter(|named| named.address() == address);
        let store = known.unwrap_or_else(|| Store::at(address, &self.config));
        Source { kind, store, is_alone: false, state }
    }
}

impl Source {
    /// Returns the catalogue of a snapshot of this source. It is built once for each snapshot.
    pub(crate) fn catalogue(&self, snapshot: &Arc<Snapshot>) -> Arc<Catalogue> {
        let mut made = lock(&self.state.catalogue);
        match &*made {
            Some(known) if known.is_of(snapshot) => Arc::clone(known),
            _ => {
                let catalogue = Catalogue::of(self.kind, Arc::clone(snapshot));
                Arc::clone(made.insert(Arc::new(catalogue)))
            }
        }
    }

    /// Returns the model that turns texts into vectors.
    pub(crate) fn model(&self) -> &Model {
        &self.state.model
    }

    pub(super) fn config(&self) -> &Config {
        &self.state.config
    }

    /// Returns the conversations that answers leave out, for all sources.
    pub(super) fn hidden_ids(&self) -> &HiddenIds {
        &self.state.hidden
    }

    pub(super) fn timeless_cache(&self) -> &Mutex<Option<Timeless>> {
        &self.state.timeless
    }

    /// Returns the ids of the conversations that the user excludes from all answers.
    pub(crate) fn excluded(&self, stop: &Stop) -> Result<Arc<HashSet<String>>> {
        let SharedState { exclusions, excluded, .. } = &*self.state;
        let (_, exclusions) = exclusions.now();
        if self.kind == SourceKind::Threads || exclusions.is_empty() {
            return Ok(Arc::default());
        }
        match &self.store {
            #[cfg(feature = "cluster")]
            Store::Cluster { cluster, .. } => {
                let is_excluded = |origin: &Origin| exclusions.excludes(origin);
                return Ok(Arc::new(super::clustered::excluded(cluster, &is_excluded, stop)?));
            }
            Store::Database(_) => {}
        }
        self.on_database(|path| {
            let state = db::state(path)?;
            if let Some(known) = &*lock(excluded)
                && known.path == path
                && known.state == state
                && Arc::ptr_eq(&known.by, &exclusions)
            {
                return Ok(Arc::clone(&known.ids));
            }
            let origins = db::read_tables(path, stop, db::origins)?;
            let ids = origins.into_iter().filter(|(_, origin)| exclusions.excludes(origin));
            let ids: Arc<HashSet<String>> = Arc::new(ids.map(|(id, _)| id).collect());
            let by = Arc::clone(&exclusions);
            let known = Excluded { path: path.to_owned(), state, by, ids: Arc::clone(&ids) };
            *lock(excluded) = Some(known);
            Ok(ids)
        })
    }

    /// Returns whether the user's exclusions may concern the source.
    pub(crate) fn may_exclude(&self) -> bool {
        self.kind != SourceKind::Threads && !self.state.exclusions.now().1.is_empty()
    }

    /// Returns the path of the source's canonical database; `None` if the source is in a cluster. Without
    /// a database, a source has no index on this computer either.
    pub fn database(&self) -> Option<&Path> {
        match &self.store {
            Store::Database(path) => Some(path),
            #[cfg(feature = "cluster")]
            Store::Cluster { .. } => None,
        }
    }

    /// Returns the path of the database. It is an error if there is none.
    pub(crate) fn path(&self) -> db::Result<&Path> {
        let missing = || db::Error::NotFound { path: self.address().to_string().into() };
        self.database().ok_or_else(missing)
    }

    /// Returns the path of the database or the address of the index in a cluster.
    pub fn address(&self) -> StoreAddress {
        self.store.address()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns whether a maintainer keeps the index current in the background.
    pub(crate) fn is_tended(&self) -> bool {
        self.state.tended.is_tended()
    }

    /// Returns the current background work for the source.
    pub(crate) fn task(&self) -> Task {
        *lock(&self.state.task)
    }

    /// Sets the current background work for the source.
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
    pub(crate) fn current_index(&self, stop: &Stop) -> Result<Arc<Snapshot>, FallbackReason> {
        self.index(stop, true)
    }

    /// Does the same for a search that checks the files of the index itself, after it has read them.
    pub(super) fn index_to_check(&self, stop: &Stop) -> Result<Arc<Snapshot>, FallbackReason> {
        self.index(stop, false)
    }

    fn index(&self, stop: &Stop, checks_files: bool) -> Result<Arc<Snapshot>, FallbackReason> {
        let Some(path) = self.database() else { return Err(FallbackReason::NoIndex) };
        if stop.avoids_indexes() {
            let reason = "files of the index changed again and again while they were read";
            return Err(FallbackReason::Unreadable(reason.to_owned()));
        }
        let known = || lock(&self.state.index).as_mut()?.snapshot(path, stop.call(), checks_files);
        if let Some(answer) = known() {
            return answer;
        }
        // Opening reads all bytes of files that were copied or restored. Questions that need the index wait
        // for this, but not longer than their time limit.
        let _opening = loop {
            match self.state.opening.try_lock() {
                Ok(guard) => break guard,
                Err(TryLockError::Poisoned(guard)) => break guard.into_inner(),
                Err(TryLockError::WouldBlock) if stop.requested() => {
                    return Err(FallbackReason::Stale);
                }
                Err(TryLockError::WouldBlock) => thread::sleep(RETRY),
            }
        };
        if let Some(answer) = known() {
            return answer;
        }
        let handle = IndexHandle::open(&self.state.config.index_folder(), path)
            .map_err(|_| FallbackReason::NoIndex)?;
        let now = handle.probe.state();
        lock(&self.state.index).insert(handle).opened_for(now, stop.call())
    }

    /// Returns the snapshot of the index in use, even if it is out of date.
    pub(crate) fn latest_index(&self, stop: &Stop) -> Option<Arc<Snapshot>> {
        if let Ok(snapshot) = self.current_index(stop) {
            return Some(snapshot);
        }
        if stop.avoids_indexes() {
            return None;
        }
        let index = lock(&self.state.index);
        let (snapshot, _) = index.as_ref()?.opened.as_ref().ok()?;
        Some(Arc::clone(snapshot))
    }

    /// Returns the searcher of a catalogue. Reuses the open searcher if it lacks no terms or vectors.
    pub(crate) fn searcher(&self, catalogue: &Arc<Catalogue>) -> Arc<Searcher> {
        let known = lock(&self.state.searcher).clone();
        let is_complete = |known: &Arc<Searcher>| {
            Arc::ptr_eq(&known.catalogue, catalogue) && known.missing() == (0, 0)
        };
        if let Some(known) = known.filter(is_complete) {
            return match known.extended() {
                Some(extended) => Arc::clone(lock(&self.state.searcher).insert(Arc::new(extended))),
                None => known,
            };
        }
        let opened = Arc::new(Searcher::open(Arc::clone(catalogue), self.model()));
        Arc::clone(lock(&self.state.searcher).insert(opened))
    }

    /// Returns the index directory of the source's database.
    pub(crate) fn index_dir(&self) -> db::Result<IndexDir> {
        let probe = Probe::new(self.path()?)?;
        Ok(IndexDir::for_database(&self.state.config.index_folder(), probe.real()))
    }

    /// Runs `work` on the database. If an export is replaced meanwhile, finds the new one and repeats.
    pub(crate) fn on_database<T>(&self, mut work: impl FnMut(&Path) -> db::Result<T>) -> Result<T> {
        /// Maximum number of replacements of the database that one question follows.
        const MAX_REPLACEMENTS: u32 = 4;

        let mut path = self.path()?.to_owned();
        for _ in 0..MAX_REPLACEMENTS {
            match work(&path) {
                Err(db::Error::NotFound { .. }) if self.kind == SourceKind::Export => {
                    if let StoreAddress::Database(now) = self.state.config.export_store()? {
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
        stop: &Stop,
        mut work: impl FnMut(&Database) -> db::Result<T>,
    ) -> Result<T> {
        self.on_database(|path| db::read(path, stop, &mut work))
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

/// Returns whether these sources include at most one of the two that may have the same conversations: the
/// export and the transcript store. False if no source is named.
fn is_alone(kinds: &[SourceKind]) -> bool {
    let has_both = kinds.contains(&SourceKind::Export) && kinds.contains(&SourceKind::Archive);
    !kinds.is_empty() && !has_both
}

/// Returns the address of a source's store; `None` if the source does not exist.
fn located(config: &Config, kind: SourceKind) -> Result<Option<StoreAddress>> {
    let path = match kind {
        SourceKind::Export => return config.export_store().map(Some),
        SourceKind::Archive => config.archive_database(),
        SourceKind::Threads => config.threads_database(),
    };
    Ok(path.is_file().then(|| path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    #[test]
    fn a_call_compares_the_index_with_the_database_once() {
        let export = TestExport::indexed(&["red"]);
        let source = export.engine.sources().remove(0);
        let (call, later) = (Stop::never().for_call(), Stop::never().for_call());
        let snapshot = source.current_index(&call).unwrap();
        export.add(1, "blue");
        let again = source.current_index(&call.within(Duration::from_secs(60))).unwrap();
        assert!(Arc::ptr_eq(&snapshot, &again));
        // Other calls compare again, and so does work outside of calls.
        for stop in [Stop::never(), later.clone(), later] {
            assert_eq!(source.current_index(&stop).err(), Some(FallbackReason::Stale));
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
                let stop = Stop::after(Duration::from_millis(50));
                sender.send(source.current_index(&stop).map(drop)).unwrap();
            });
            let stale = answer.recv_timeout(Duration::from_secs(10));
            let waiting = scope.spawn(|| source.current_index(&Stop::never()).map(drop));
            drop(opening);
            assert_eq!(stale, Ok(Err(FallbackReason::Stale)));
            assert_eq!(waiting.join().unwrap(), Ok(()));
        });
    }
}
