//! Keeps the indexes current in the background: decides what is stale, waits until its data rest,
//! and refreshes it, one source after the other.
//!
//! Nothing here makes an answer right; every question sees to that itself. It makes answers fast
//! again, so whatever goes wrong is said once and tried again later.
//!
//! Invariant: a database is not read for an index while it is written to, unless it never rests.
//! Invariant: of all processes one refreshes an index; the others wait for what it makes.

use std::{
    collections::HashSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use crate::engine::{
    Engine, Error, Reindex, Reindexed, Source, SourceKind, UpkeepEvent,
    upkeep::follow::{self, Follower},
};
use crate::{
    db::{self, Probe, State},
    import::Export,
    index::{IndexDir, Resources},
    model::Stop,
};

/// What refreshing may use, beside 60 bytes a message: a server is a guest on its machine.
const RESOURCES: Resources = Resources { memory: 64 << 20, threads: 1 };

/// How long a database must be left alone before it is indexed. Copies and downloads write more
/// often; the transactions of an import follow each other within milliseconds.
const QUIET: Duration = Duration::from_millis(400);

/// How long a database that is never left alone goes without: then it is indexed between writes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The rest after a refresh, in times of what it took, and the longest: a database that is written
/// to all day costs a quarter of a core at most.
const REST: (u32, Duration) = (3, Duration::from_secs(60));

/// How long words and vectors are made before they give way whatever was before; a provider far
/// away may take hours, and goes on where it was.
const ENRICHING: Duration = Duration::from_secs(300);
/// How many times making words and vectors gives way to a database that changes.
const MOST_CHANGES: u32 = 3;

/// How often a build by another process is looked for.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// The waits after failures: the first, doubled each time up to the last.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));

/// What is known of one source from look to look.
#[derive(Debug, Default)]
struct SourceState {
    path: PathBuf,
    state: Option<State>,
    /// When that state was seen first, or set, where the file says so.
    since: Option<Instant>,
    /// Since when the index has not been current.
    stale: Option<Instant>,
    /// Before then nothing is tried.
    not_before: Option<Instant>,
    failures: u32,
    /// What was said last, so as not to say it again.
    said: Option<String>,
    /// The state that cannot be indexed, however often that is tried.
    hopeless: Option<State>,
    /// Whether the index in use was refreshed or folded here, so that the rest is to be made too.
    is_ours: bool,
    /// The snapshot that has all there is to derive from it.
    enriched: Option<String>,
    put_off: PutOff,
}

/// Deriving words and vectors that was put off.
#[derive(Clone, Copy, Debug, Default)]
struct PutOff {
    until: Option<Instant>,
    failures: u32,
    /// How many times that was because the database changed.
    changes: u32,
    has_told: bool,
}

/// Looks after the indexes of an engine.
#[derive(Debug)]
pub struct Maintainer {
    engine: Arc<Engine>,
    follower: Follower,
    cares: [SourceState; SourceKind::ALL.len()],
    /// Exports that were spoken of.
    spoken_of: HashSet<PathBuf>,
}

impl Engine {
    /// Returns the folders in which a change may be one of a source, there or not.
    pub fn watched(&self) -> Vec<PathBuf> {
        let config = self.config();
        let mut folders = follow::folders(&config.archives);
        folders.push(config.db_folder());
        let named = config.db.iter().cloned().chain([config.threads_database()]);
        for path in named.chain(self.database().ok()) {
            let real = fs::canonicalize(&path).ok();
            let path = std::path::absolute(&path).unwrap_or(path);
            folders.extend(path.parent().map(Path::to_owned));
            folders.extend(real.and_then(|real| Some(real.parent()?.to_owned())));
        }
        folders.sort();
        folders.dedup();
        folders
    }
}

impl Maintainer {
    /// Returns a keeper that knows nothing yet.
    pub fn new(engine: Arc<Engine>) -> Maintainer {
        Maintainer {
            engine,
            follower: Follower::default(),
            cares: Default::default(),
            spoken_of: HashSet::new(),
        }
    }

    /// Looks at every source and refreshes those that are stale and rest; returns after how long
    /// there is reason to look again, `None` if only a change is one.
    ///
    /// Where everything is current this takes some ten system calls a source.
    pub fn look(&mut self, stop: &Stop, tell: &mut dyn FnMut(UpkeepEvent)) -> Option<Duration> {
        let mut next = self.follower.look(self.engine.config(), stop, tell);
        let sources = self.engine.sources();
        for kind in SourceKind::ALL {
            if stop.requested() {
                return None;
            }
            let care = &mut self.cares[kind as usize];
            let Some(source) = sources.iter().find(|source| source.kind == kind) else {
                *care = SourceState::default();
                continue;
            };
            let wait = care.look(&self.engine, source, stop, tell);
            next = next.into_iter().chain(wait).min();
        }
        self.look_for_exports(&sources, tell);
        next
    }

    /// Speaks of exports beside the databases that came after the one that is searched: databases
    /// are searched there, and everything else is for the user to import.
    fn look_for_exports(&mut self, sources: &[Source], tell: &mut dyn FnMut(UpkeepEvent)) {
        for path in beside(&self.engine, sources) {
            if !self.spoken_of.contains(&path) {
                if Export::open(&path).is_ok() {
                    tell(UpkeepEvent::NotImported { path: path.clone() });
                }
                self.spoken_of.insert(path);
            }
        }
    }
}

/// Returns the files beside the databases that have names of exports, came after the database that
/// is searched, and are not being written.
pub(crate) fn beside(engine: &Engine, sources: &[Source]) -> impl Iterator<Item = PathBuf> {
    let export = sources.iter().find(|source| source.kind == SourceKind::Export);
    let searched = export.and_then(|export| modified(&export.path));
    let entries = fs::read_dir(engine.config().db_folder()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(move |path| {
        is_named_as_export(path)
            && modified(path) > searched
            && age(path).is_none_or(|age| age > QUIET)
    })
}

impl SourceState {
    fn look(
        &mut self,
        engine: &Engine,
        source: &Source,
        stop: &Stop,
        tell: &mut dyn FnMut(UpkeepEvent),
    ) -> Option<Duration> {
        let path = &source.path;
        if self.path != *path {
            *self = SourceState { path: path.clone(), ..SourceState::default() };
        }
        let state = match db::state(path) {
            Ok(state) => state,
            // It went away since; the next look finds what took its place.
            Err(db::Error::NotFound { .. }) => return Some(QUIET),
            Err(error) => {
                let wait = self.not_before.and_then(|at| at.checked_duration_since(Instant::now()));
                return wait.or_else(|| Some(self.fail(source, &error.to_string(), tell)));
            }
        };
        let now = Instant::now();
        if self.state.as_ref() != Some(&state) || self.since.is_none() {
            let is_first = self.state.is_none();
            self.state = Some(state.clone());
            // A file that lay there before we looked has been quiet for as long as it says.
            let quiet = if is_first { age(path) } else { None };
            self.since = now.checked_sub(quiet.unwrap_or_default()).or(Some(now));
        }
        if engine.current_index(source).is_ok() {
            *self = SourceState {
                path: path.clone(),
                state: self.state.take(),
                since: self.since,
                not_before: self.not_before,
                is_ours: self.is_ours,
                enriched: self.enriched.take(),
                put_off: self.put_off,
                ..SourceState::default()
            };
            let wait = self.fold(engine, source, stop, tell);
            let is_next = !stop.requested() && wait.is_none();
            return if is_next { self.enrich(engine, source, &state, stop, tell) } else { wait };
        }
        if self.hopeless.as_ref() == Some(&state) {
            return None;
        }
        let stale = *self.stale.get_or_insert(now);
        let quiet_at = self.since.unwrap_or(now) + QUIET;
        let mut due = if db::is_whole(path) { quiet_at.min(stale + PATIENCE) } else { quiet_at };
        due = due.max(self.not_before.unwrap_or(due));
        if due > now {
            return Some(due - now);
        }
        self.refresh(engine, source, state, stop, tell)
    }

    /// Makes one part of an index that is current and has grown many, once its database rests.
    fn fold(
        &mut self,
        engine: &Engine,
        source: &Source,
        stop: &Stop,
        tell: &mut dyn FnMut(UpkeepEvent),
    ) -> Option<Duration> {
        if !engine.is_merge_due(source) {
            return None;
        }
        let now = Instant::now();
        let due = (self.since.unwrap_or(now) + QUIET).max(self.not_before.unwrap_or(now));
        if due > now {
            return Some(due - now);
        }
        match engine.merge_at_rest(source, RESOURCES, stop) {
            Ok(is_folded) => {
                if is_folded {
                    self.is_ours = true;
                    tell(UpkeepEvent::Merged { source: source.clone(), took: now.elapsed() });
                }
                Some(Duration::ZERO)
            }
            Err(Error::Indexing { .. }) => Some(ELSEWHERE),
            Err(error) => {
                self.fail(source, &error.to_string(), tell);
                // Searches are fast enough meanwhile.
                self.not_before = Some(Instant::now() + BACKOFF.1);
                Some(BACKOFF.1)
            }
        }
    }

    /// Makes the words, vectors and summaries that a current index lacks. Gives way to a database
    /// that changes, but not each time: else one that is written to all day would never have them.
    fn enrich(
        &mut self,
        engine: &Engine,
        source: &Source,
        state: &State,
        stop: &Stop,
        tell: &mut dyn FnMut(UpkeepEvent),
    ) -> Option<Duration> {
        let snapshot = engine.current_index(source).ok()?;
        if self.enriched.as_deref() == Some(snapshot.name()) {
            return None;
        }
        let now = Instant::now();
        if let Some(until) = self.put_off.until.filter(|until| *until > now) {
            return Some(until - now);
        }
        if !self.is_ours && !engine.is_lacking(source) {
            self.enriched = Some(snapshot.name().to_owned());
            return None;
        }
        let index_dir =
            IndexDir::of(&engine.config().index_folder(), Probe::of(&source.path).ok()?.real());
        let Ok(Some(_writing)) = index_dir.lock() else { return Some(ELSEWHERE) };
        let halt = Stop::never();
        let is_patient = self.put_off.changes < MOST_CHANGES;
        let mut looked = now;
        let mut look = |_, _| {
            let gives_way = is_patient || now.elapsed() > ENRICHING;
            let is_moved = gives_way && looked.elapsed() > QUIET && {
                looked = Instant::now();
                db::state(&source.path).ok().as_ref() != Some(state)
            };
            if is_moved || stop.requested() {
                halt.request();
            }
        };
        let work = AssertUnwindSafe(|| engine.enrich(source, RESOURCES, &halt, &mut look));
        let reason = match catch_unwind(work) {
            Ok(Ok(done)) => {
                self.put_off = PutOff::default();
                self.is_ours = false;
                self.enriched = Some(snapshot.name().to_owned());
                if done.words > 0 || done.vectors > 0 {
                    tell(UpkeepEvent::Enriched {
                        source: source.clone(),
                        done,
                        took: now.elapsed(),
                    });
                }
                return None;
            }
            Ok(Err(_)) if halt.requested() => {
                self.put_off.changes += 1;
                return Some(Duration::ZERO);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "making words and vectors failed; please report this".to_owned(),
        };
        if !std::mem::replace(&mut self.put_off.has_told, true) {
            tell(UpkeepEvent::NotEnriched { source: source.clone(), reason });
        }
        let wait = BACKOFF.0.saturating_mul(1 << self.put_off.failures.min(16)).min(BACKOFF.1);
        self.put_off.failures += 1;
        self.put_off.until = Some(Instant::now() + wait);
        Some(wait)
    }

    fn refresh(
        &mut self,
        engine: &Engine,
        source: &Source,
        state: State,
        stop: &Stop,
        tell: &mut dyn FnMut(UpkeepEvent),
    ) -> Option<Duration> {
        let begun = Instant::now();
        let options = Reindex { resources: RESOURCES, full: false };
        let work = AssertUnwindSafe(|| engine.reindex_source(source, options, stop, &mut |_| {}));
        let Ok(result) = catch_unwind(work) else {
            return Some(self.fail(source, "indexing it failed; please report this", tell));
        };
        match result {
            Ok(done) => {
                self.failures = 0;
                self.said = None;
                self.stale = None;
                let rest = (begun.elapsed() * REST.0).min(REST.1);
                self.not_before = Some(Instant::now() + rest);
                if !matches!(done, Reindexed::Current { .. }) {
                    self.is_ours = true;
                    tell(UpkeepEvent::Refreshed { source: source.clone(), done });
                }
                // At once: searches should hold on to the new snapshot, and the data may have changed.
                Some(Duration::ZERO)
            }
            Err(error) if error.is_stopped() => None,
            Err(Error::Indexing { .. }) => {
                let said = "elsewhere".to_owned();
                if self.said.as_ref() != Some(&said) {
                    tell(UpkeepEvent::Elsewhere { source: source.clone() });
                    self.said = Some(said);
                }
                self.not_before = Some(Instant::now() + ELSEWHERE);
                Some(ELSEWHERE)
            }
            // A busy database is nobody's fault, and nothing to speak of.
            Err(Error::Db(db::Error::Unsteady { .. } | db::Error::Busy { .. })) => {
                Some(self.back_off())
            }
            Err(error) => {
                if is_hopeless(&error) {
                    self.hopeless = Some(state);
                }
                Some(self.fail(source, &error.to_string(), tell))
            }
        }
    }

    fn fail(
        &mut self,
        source: &Source,
        reason: &str,
        tell: &mut dyn FnMut(UpkeepEvent),
    ) -> Duration {
        if self.said.as_deref() != Some(reason) {
            tell(UpkeepEvent::Failed { source: source.clone(), reason: reason.to_owned() });
            self.said = Some(reason.to_owned());
        }
        self.back_off()
    }

    fn back_off(&mut self) -> Duration {
        let wait = BACKOFF.0.saturating_mul(1 << self.failures.min(16)).min(BACKOFF.1);
        self.failures += 1;
        self.not_before = Some(Instant::now() + wait);
        wait
    }
}

/// Whether it is the database that cannot be indexed, and not the moment.
fn is_hopeless(error: &Error) -> bool {
    matches!(
        error,
        Error::NoKeys { .. }
            | Error::TooMany { .. }
            | Error::Db(
                db::Error::NotADatabase { .. }
                    | db::Error::NotCanonical { .. }
                    | db::Error::Sqlite { .. }
            )
    )
}

/// Whether a file has a name that exports have as they come.
fn is_named_as_export(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".zip") || name.starts_with("conversations") && name.ends_with(".json")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// How long ago a file, or the log of a database, was written to; `None` where the clock was set.
fn age(path: &Path) -> Option<Duration> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let last = modified(path).into_iter().chain(modified(Path::new(&log))).max()?;
    SystemTime::now().duration_since(last).ok()
}
