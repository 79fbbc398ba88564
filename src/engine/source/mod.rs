//! Sources of conversations, and the seam through which all of them are asked.
//!
//! A [`Source`] is a place that messages come from. What can be asked of it is the trait
//! [`Reader`]; [`Source::reader`] chooses the best reader for the state that the source is in. No
//! other code decides between index and `LIKE`.

pub(crate) mod catalogue;
mod handle;
mod indexed;
mod live;
mod reader;
pub(crate) mod request;
pub(crate) mod scoring;
mod session;
pub(crate) mod sink;
pub(crate) mod summaries;

use std::{
    fmt,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{config::Config, error::Error};
use crate::{
    db::{self, Probe},
    embed::Model,
    index::{IndexDir, Snapshot},
    model::{Hit, Request, Stop},
};

use catalogue::Catalogue;
use handle::IndexHandle;
use scoring::Searcher;
use sink::{Rendered, Sink};

pub use handle::FallbackReason;
pub use indexed::IndexedReader;
pub use live::LiveReader;
pub use reader::{About, Counts, Listing, Messages, Reader, Scope, SearchPlan};
pub use session::Session;
pub(crate) use session::line_number;

/// The kinds of sources; there is at most one source of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// The user's export, read-only: the source of `conversation_search`.
    Export,
    /// Transcripts of coding agents, copied from their files into a database of ours.
    Archive,
    /// Threads that `manage_conversation` recorded.
    Threads,
}

impl SourceKind {
    /// Every kind, in the order in which sources are asked.
    pub const ALL: [SourceKind; 3] = [SourceKind::Export, SourceKind::Archive, SourceKind::Threads];

    /// Returns the name that users see and type.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Export => "export",
            SourceKind::Archive => "archive",
            SourceKind::Threads => "threads",
        }
    }
}

/// A source whose database exists: an export, the transcript store or the recorded threads.
///
/// Clones share what is open.
#[derive(Clone)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Its canonical database.
    pub path: PathBuf,
    state: Arc<State>,
}

/// What the questions about one kind of source share.
#[derive(Debug)]
struct State {
    config: Arc<Config>,
    /// The index that was used last.
    index: Mutex<Option<IndexHandle>>,
    /// Held while an index is opened: that checks every byte of new files, which can take long.
    opening: Mutex<()>,
    /// The catalogue that was made last.
    catalogue: Mutex<Option<Arc<Catalogue>>>,
    /// The term and vector indexes that were opened last.
    searcher: Mutex<Option<Arc<Searcher>>>,
    /// Until when no question tries to refresh the index, because that took too long.
    refresh_again: Mutex<Option<Instant>>,
    model: Model,
}

/// The sources of one configuration.
#[derive(Debug)]
pub(crate) struct Sources {
    config: Arc<Config>,
    /// By kind.
    states: [Arc<State>; SourceKind::ALL.len()],
    /// Turns texts into vectors; does nothing before the first text.
    model: Model,
}

impl Sources {
    /// Returns the sources that a configuration leads to; opens nothing.
    pub(crate) fn new(config: Config) -> Sources {
        let config = Arc::new(config);
        let model = Model::of(&config.embeddings);
        let states = SourceKind::ALL.map(|_| {
            Arc::new(State {
                config: Arc::clone(&config),
                index: Mutex::default(),
                opening: Mutex::default(),
                catalogue: Mutex::default(),
                searcher: Mutex::default(),
                refresh_again: Mutex::default(),
                model: model.clone(),
            })
        });
        Sources { config, states, model }
    }

    /// The configuration.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The model that turns texts into vectors.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the sources that exist now, the export first; looked up at every call.
    pub(crate) fn present(&self) -> Vec<Source> {
        let found = SourceKind::ALL.into_iter().filter_map(|kind| {
            let path = located(&self.config, kind).ok().filter(|path| path.is_file())?;
            Some(self.at(kind, path))
        });
        found.collect()
    }

    /// Returns the source of a kind, if it exists.
    pub(crate) fn of_kind(&self, kind: SourceKind) -> Option<Source> {
        self.present().into_iter().find(|source| source.kind == kind)
    }

    /// Returns the export; the error says where it was looked for.
    pub(crate) fn export(&self) -> Result<Source, Error> {
        Ok(self.at(SourceKind::Export, self.config.export_database()?))
    }

    /// Returns the sources in a scope. That there is no source at all is an error.
    pub(crate) fn within(&self, scope: &Scope) -> Result<Vec<Source>, Error> {
        let wanted = |kind| scope.sources.is_empty() || scope.sources.contains(&kind);
        let mut sources = self.present();
        if sources.is_empty() && wanted(SourceKind::Export) {
            sources.push(self.export()?);
        }
        sources.retain(|source| wanted(source.kind));
        Ok(sources)
    }

    /// Returns what is known of a conversation; `None` if the source has no conversation of that id
    /// that has messages.
    pub(crate) fn about(
        &self,
        kind: SourceKind,
        id: &str,
        stop: &Stop,
    ) -> Result<Option<About>, Error> {
        let scope =
            Scope { sources: vec![kind], conversation: Some(id.to_owned()), ..Scope::default() };
        let Some(source) = self.within(&scope)?.pop() else { return Ok(None) };
        let listing = source.reader(stop).list(&scope, stop)?;
        Ok((!listing.is_empty()).then(|| listing.about(0)))
    }

    /// Closes every index that is open; the next question opens what is there then.
    pub(crate) fn close(&self) {
        for state in &self.states {
            *lock(&state.index) = None;
            *lock(&state.catalogue) = None;
            *lock(&state.searcher) = None;
        }
    }

    fn at(&self, kind: SourceKind, path: PathBuf) -> Source {
        Source { kind, path, state: Arc::clone(&self.states[kind as usize]) }
    }
}

impl Source {
    /// Returns the best reader of the state that the source is in now: the index if it is current,
    /// else the database itself.
    pub fn reader(&self, stop: &Stop) -> Arc<dyn Reader> {
        match self.current_index(stop) {
            Ok(snapshot) => Arc::new(IndexedReader::new(self.clone(), snapshot)),
            Err(reason) => Arc::new(LiveReader::new(self.clone(), reason)),
        }
    }

    /// Hands the messages that match a request to `sink`, newest first, until it breaks off.
    ///
    /// The hits are those of SQLite's `LIKE '%text%'` over contents and titles, whichever reader
    /// finds them. An index that turns out to be damaged while it is read gives way to `LIKE`.
    pub fn search(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan, Error> {
        let request = request::checked(request)?;
        // An empty role means NULL in the index and a text without characters in SQLite.
        if request.roles.iter().any(String::is_empty) {
            let live = LiveReader::new(self.clone(), FallbackReason::EmptyRole);
            return live.search(&request, stop, sink);
        }
        match self.current_index(stop) {
            Ok(snapshot) => {
                IndexedReader::new(self.clone(), snapshot).search_or_fall_back(&request, stop, sink)
            }
            Err(reason) => LiveReader::new(self.clone(), reason).search(&request, stop, sink),
        }
    }

    /// Does as [`Source::search`] does, and hands over copies of the hits.
    pub fn exact(
        &self,
        request: &Request,
        stop: &Stop,
        show: &mut dyn FnMut(Hit<'static>) -> ControlFlow<()>,
    ) -> Result<SearchPlan, Error> {
        self.search(request, stop, &mut Rendered::new(|hit: Hit<'_>| Some(hit.into_owned()), show))
    }

    /// Returns the catalogue of a snapshot of this source; made once for each snapshot.
    pub(crate) fn catalogue(&self, snapshot: &Arc<Snapshot>) -> Arc<Catalogue> {
        let mut made = lock(&self.state.catalogue);
        match &*made {
            Some(known) if Arc::ptr_eq(known.snapshot(), snapshot) => Arc::clone(known),
            _ => {
                let catalogue = Catalogue::of(self.kind, Arc::clone(snapshot));
                Arc::clone(made.insert(Arc::new(catalogue)))
            }
        }
    }

    /// The model that turns texts into vectors.
    pub(crate) fn model(&self) -> &Model {
        &self.state.model
    }

    /// Returns the reader of the index in use, whichever state of the database it is of.
    pub(crate) fn latest_reader(&self, stop: &Stop) -> Option<Arc<dyn Reader>> {
        let snapshot = self.latest_index(stop)?;
        Some(Arc::new(IndexedReader::new(self.clone(), snapshot)))
    }

    /// Returns whether a question's refresh did not finish in time a short while ago.
    pub(crate) fn is_refresh_slow(&self) -> bool {
        lock(&self.state.refresh_again).is_some_and(|until| until > Instant::now())
    }

    /// Lets questions not try to refresh the index for a time.
    pub(crate) fn postpone_refresh(&self, pause: Duration) {
        *lock(&self.state.refresh_again) = Some(Instant::now() + pause);
    }

    /// Returns the index directory of the source's database.
    pub(crate) fn index_dir(&self) -> Result<IndexDir, db::Error> {
        let probe = Probe::of(&self.path)?;
        Ok(IndexDir::of(&self.state.config.index_folder(), probe.real()))
    }

    /// Runs `work` on the database. An export that is replaced meanwhile is looked up again.
    pub(crate) fn on_database<T>(
        &self,
        mut work: impl FnMut(&Path) -> Result<T, db::Error>,
    ) -> Result<T, Error> {
        /// How many replacements of the database one question follows.
        const MAX_REPLACEMENTS: u32 = 4;

        let mut path = self.path.clone();
        for _ in 0..MAX_REPLACEMENTS {
            match work(&path) {
                Err(db::Error::NotFound { .. }) if self.kind == SourceKind::Export => {
                    path = self.state.config.export_database()?;
                }
                answer => return Ok(answer?),
            }
        }
        Err(db::Error::NotFound { path }.into())
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        self.kind == other.kind && self.path == other.path
    }
}

impl Eq for Source {}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("kind", &self.kind)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn located(config: &Config, kind: SourceKind) -> Result<PathBuf, Error> {
    match kind {
        SourceKind::Export => config.export_database(),
        SourceKind::Archive => Ok(config.archive_database()),
        SourceKind::Threads => Ok(config.threads_database()),
    }
}

/// Locks a mutex whose value stays usable when a thread panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
