//! Keeps the indexes current in the background, by deciding which work is due, and when. The work itself
//! is in [`refresh`](super::refresh), [`merge`](super::merge) and [`enrich`](super::enrich).
//!
//! No answer depends on the maintainer, because every question checks whether the index is current. The
//! maintainer only makes answers fast. So a failure is reported once and tried again later.
//!
//! Invariant: a database is not read for an index during writes, unless the writes never pause.
//! Invariant: one process refreshes an index at a time. Other processes wait for its result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{collections::HashSet, fs, sync::Arc};

use super::enrich::{self, EnrichOptions, EnrichProgress};
use super::follow::{self, Follower};
use super::refresh::{Reindex, Reindexed};
use super::{encode::EncoderThread, events::UpkeepEvent, merge};
use crate::source::{Source, SourceKind, Sources, Task};
use crate::{config::Config, error::Error};
use verbatim_base::call::Call;
use verbatim_chats::db::{self, State};
use verbatim_chats::import::Export;
use verbatim_index::Resources;

/// Memory and threads of a refresh, which must not slow down the machine. 60 bytes per message are extra.
const RESOURCES: Resources = Resources { memory: 64 << 20, threads: 1 };

/// Time without writes after which a database is indexed. Copies and downloads write more often. The
/// transactions of an import follow each other within milliseconds.
const QUIET: Duration = Duration::from_millis(400);

/// Time without writes for an export that a program has open in WAL mode. Such a program removes the log
/// when it closes the database, but not while it is read. Most programs close it soon after writing.
const QUIET_WITH_LOG: Duration = Duration::from_secs(2);

/// Time after which a database is indexed even if the writes do not pause.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Pause after a refresh: three times its duration, at most a minute. So a database with constant
/// writes costs at most a quarter of a core.
const PAUSE_FACTOR: u32 = 3;
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Time after which building terms and vectors always stops if the database changes. A slow provider may
/// take hours, and the work continues later.
const MAX_ENRICHING: Duration = Duration::from_secs(300);

/// Number of times that building terms and vectors stops because the database changed.
const MAX_INTERRUPTIONS: u32 = 3;

/// Wait between two checks whether another process has finished its build.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// Maximum wait for another process that builds the same words and vectors. Other work is waiting too.
const WORDS_WAIT: Duration = Duration::from_millis(200);

/// Share of all work that building the index takes. Terms and vectors take the rest.
pub(super) const INDEX_SHARE: f64 = 0.5;

/// The wait after the first failure, and the longest wait. Each failure doubles the wait.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
const MAX_BACKOFF: Duration = Duration::from_secs(600);

/// Background task that keeps the indexes of an engine current.
#[derive(Debug)]
pub struct Maintainer {
    sources: Arc<Sources>,
    follower: Follower,
    states: [SourceState; SourceKind::ALL.len()],
    encoder: EncoderThread,
    reported: HashSet<PathBuf>,
}

/// The maintainer's knowledge of one source between two polls.
#[derive(Debug, Default)]
struct SourceState {
    path: PathBuf,
    /// The state of the database at the last poll.
    state: Option<State>,
    /// The time since which the database has been in this state.
    since: Option<Instant>,
    /// The time since which the index has been stale.
    stale: Option<Instant>,
    /// The time before which no work is tried.
    not_before: Option<Instant>,
    failures: u32,
    /// The last report, so that it is not repeated.
    reported: Option<String>,
    /// A state of the database that cannot be indexed, so that it is not tried again.
    hopeless: Option<State>,
    /// Whether this process refreshed or merged the index in use, and so must build its terms and vectors.
    is_ours: bool,
    enriched: Option<String>,
    postponed: Postponed,
}

/// The state of postponed work on terms and vectors.
#[derive(Clone, Copy, Debug, Default)]
struct Postponed {
    until: Option<Instant>,
    failures: u32,
    /// Number of times that the work stopped because the database changed.
    interruptions: u32,
    is_reported: bool,
}

impl Maintainer {
    pub(crate) fn new(sources: Arc<Sources>) -> Maintainer {
        sources.upkeep_state().begin();
        Maintainer {
            encoder: EncoderThread::start(Arc::clone(&sources)),
            sources,
            follower: Follower::default(),
            states: Default::default(),
            reported: HashSet::new(),
        }
    }

    /// Checks every source, and refreshes stale indexes whose databases are quiet. Returns the wait until
    /// the next poll; `None` to wait for a file event.
    ///
    /// If everything is current, a poll takes about ten system calls per source.
    pub fn poll(&mut self, call: &Call, report: &mut dyn FnMut(UpkeepEvent)) -> Option<Duration> {
        let mut next = self.follower.poll(&self.sources.current_config(), call, report);
        if !call.stop.requested() {
            self.sources.upkeep_state().set_transcripts_read();
        }
        let present = self.sources.present();
        for kind in SourceKind::ALL {
            if call.stop.requested() {
                return None;
            }
            let state = &mut self.states[kind as usize];
            let Some(source) = present.iter().find(|source| source.kind == kind) else {
                *state = SourceState::default();
                continue;
            };
            let wait = state.poll(&mut SourcePoll { source, call, report: &mut *report });
            if matches!(source.task(), Task::Building { .. }) {
                source.set_task(Task::Idle);
            }
            next = next.into_iter().chain(wait).min();
        }
        self.encoder.wake();
        self.report_exports(&present, report);
        next
    }

    /// Reports exports in `db/` that are newer than the searched database. Only databases are searched
    /// there, so the user must import these exports.
    fn report_exports(&mut self, present: &[Source], report: &mut dyn FnMut(UpkeepEvent)) {
        for path in unimported(self.sources.config(), present) {
            if !self.reported.contains(&path) {
                if Export::open_outer(&path).is_ok() {
                    report(UpkeepEvent::NotImported { path: path.clone() });
                }
                self.reported.insert(path);
            }
        }
    }
}

impl Drop for Maintainer {
    fn drop(&mut self) {
        self.sources.upkeep_state().end();
    }
}

struct SourcePoll<'a> {
    source: &'a Source,
    call: &'a Call,
    report: &'a mut dyn FnMut(UpkeepEvent),
}

impl SourceState {
    fn poll(&mut self, poll: &mut SourcePoll<'_>) -> Option<Duration> {
        let SourcePoll { source, call, .. } = *poll;
        // A cluster maintains its own index.
        let path = source.database()?;
        if self.path != path {
            *self = SourceState { path: path.to_owned(), ..SourceState::default() };
        }
        let state = match db::state(path) {
            Ok(state) => state,
            // The file was removed just now; the next poll finds its replacement.
            Err(db::Error::NotFound { .. }) => return Some(QUIET),
            Err(error) => {
                let wait = self.not_before.and_then(|at| at.checked_duration_since(Instant::now()));
                return wait.or_else(|| Some(self.fail(error.to_string(), poll)));
            }
        };
        self.note_state(&state);
        if source.current_index(call).is_ok() {
            source.set_task(Task::Idle);
            self.note_current();
            let wait = self.merge_if_due(poll);
            let is_next = !call.stop.requested() && wait.is_none();
            return if is_next { self.enrich(&state, poll) } else { wait };
        }
        if self.hopeless.as_ref() == Some(&state) {
            source.set_task(Task::Failed);
            return None;
        }
        let has_log = source.kind == SourceKind::Export && db::has_log(path);
        let wait = self.wait_for_quiet(if has_log { QUIET_WITH_LOG } else { QUIET });
        if wait.is_some() { wait } else { self.refresh(state, poll) }
    }

    /// Stores the state of the database, and the time since which it has been in this state.
    fn note_state(&mut self, state: &State) {
        if self.state.as_ref() == Some(state) && self.since.is_some() {
            return;
        }
        let is_first = self.state.is_none();
        self.state = Some(state.clone());
        // At the first poll, a file counts as quiet since its last change.
        let quiet = if is_first { age(&self.path) } else { None };
        let now = Instant::now();
        self.since = now.checked_sub(quiet.unwrap_or_default()).or(Some(now));
    }

    fn note_current(&mut self) {
        *self = SourceState {
            path: std::mem::take(&mut self.path),
            state: self.state.take(),
            since: self.since,
            not_before: self.not_before,
            is_ours: self.is_ours,
            enriched: self.enriched.take(),
            postponed: self.postponed,
            ..SourceState::default()
        };
    }

    /// Returns how long a refresh must wait until the database is quiet; `None` if it is due.
    fn wait_for_quiet(&mut self, quiet: Duration) -> Option<Duration> {
        let now = Instant::now();
        let stale = *self.stale.get_or_insert(now);
        let quiet_at = self.since.unwrap_or(now) + quiet;
        let mut due =
            if db::is_whole(&self.path) { quiet_at.min(stale + MAX_WAIT) } else { quiet_at };
        due = due.max(self.not_before.unwrap_or(due));
        (due > now).then(|| due - now)
    }

    /// Merges the segments of a current index if a merge is due and the database is quiet. Returns how long to wait
    /// until the next poll; `None` if no merge is due.
    fn merge_if_due(&mut self, poll: &mut SourcePoll<'_>) -> Option<Duration> {
        let SourcePoll { source, call, .. } = *poll;
        if !source.is_merge_due(call) {
            return None;
        }
        let now = Instant::now();
        let due = (self.since.unwrap_or(now) + QUIET).max(self.not_before.unwrap_or(now));
        if due > now {
            return Some(due - now);
        }
        match merge::merge_at_rest(source, RESOURCES, call) {
            Ok(is_merged) => {
                if is_merged {
                    self.is_ours = true;
                    (poll.report)(UpkeepEvent::Merged {
                        source: source.clone(),
                        took: now.elapsed(),
                    });
                }
                Some(Duration::ZERO)
            }
            Err(Error::Indexing { .. }) => Some(ELSEWHERE),
            Err(error) => {
                self.fail(error.to_string(), poll);
                // Without the merge, searches are fast enough.
                self.not_before = Some(Instant::now() + MAX_BACKOFF);
                Some(MAX_BACKOFF)
            }
        }
    }

    /// Builds the terms and vectors that a current index lacks. Stops if the database changes,
    /// but only a few times, because otherwise a database with constant writes would never get them.
    fn enrich(&mut self, state: &State, poll: &mut SourcePoll<'_>) -> Option<Duration> {
        let SourcePoll { source, call, .. } = *poll;
        let snapshot = source.current_index(call).ok()?;
        if self.enriched.as_deref() == Some(snapshot.name()) {
            return None;
        }
        let begun = Instant::now();
        if let Some(until) = self.postponed.until.filter(|until| *until > begun) {
            source.set_task(Task::Failed);
            return Some(until - begun);
        }
        if !self.is_ours && !enrich::is_lacking(source, true, call) {
            self.enriched = Some(snapshot.name().to_owned());
            return None;
        }
        let Ok(Some(_writing)) = source.index_dir().ok()?.lock() else {
            source.set_task(Task::Elsewhere);
            return Some(ELSEWHERE);
        };
        let task = Task::begun_at(INDEX_SHARE);
        source.set_task(task);
        let halt = Call::default();
        let may_wait = self.postponed.interruptions < MAX_INTERRUPTIONS;
        let mut checked = begun;
        let mut check = |progress: EnrichProgress| {
            source.set_task(task.at(INDEX_SHARE + (1.0 - INDEX_SHARE) * progress.share()));
            let gives_way = may_wait || begun.elapsed() > MAX_ENRICHING;
            let has_changed = gives_way && checked.elapsed() > QUIET && {
                checked = Instant::now();
                source.path().and_then(db::state).ok().as_ref() != Some(state)
            };
            if has_changed || call.stop.requested() {
                halt.stop.request();
            }
        };
        let options = EnrichOptions { patience: WORDS_WAIT, ..EnrichOptions::all(RESOURCES) };
        let work = AssertUnwindSafe(|| enrich::enrich(source, options, &halt, &mut check));
        let reason = match catch_unwind(work) {
            Ok(Ok(done)) => {
                self.postponed = Postponed::default();
                self.is_ours = false;
                self.enriched = Some(snapshot.name().to_owned());
                source.set_task(Task::Idle);
                if done.words > 0 || done.vectors > 0 {
                    let took = begun.elapsed();
                    (poll.report)(UpkeepEvent::Enriched { source: source.clone(), done, took });
                }
                return None;
            }
            Ok(Err(Error::Indexing { .. })) => {
                source.set_task(Task::Elsewhere);
                return Some(ELSEWHERE);
            }
            Ok(Err(_)) if halt.stop.requested() => {
                self.postponed.interruptions += 1;
                return Some(Duration::ZERO);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "making words and vectors failed; please report this".to_owned(),
        };
        Some(self.postpone(reason, poll))
    }

    /// Postpones building terms and vectors after a failure. Returns the wait.
    fn postpone(&mut self, reason: String, poll: &mut SourcePoll<'_>) -> Duration {
        poll.source.set_task(Task::Failed);
        if !std::mem::replace(&mut self.postponed.is_reported, true) {
            (poll.report)(UpkeepEvent::NotEnriched { source: poll.source.clone(), reason });
        }
        let wait = backoff(self.postponed.failures);
        self.postponed.failures += 1;
        self.postponed.until = Some(Instant::now() + wait);
        wait
    }

    fn refresh(&mut self, state: State, poll: &mut SourcePoll<'_>) -> Option<Duration> {
        let SourcePoll { source, call, .. } = *poll;
        let begun = Instant::now();
        let options = Reindex { resources: RESOURCES, full: false };
        let task = Task::begun_at(0.0);
        source.set_task(task);
        let work = AssertUnwindSafe(|| {
            source.reindex(options, call, &mut |step| {
                source.set_task(task.at(INDEX_SHARE * step.share()));
            })
        });
        let Ok(result) = catch_unwind(work) else {
            let reason = "indexing it failed; please report this".to_owned();
            return Some(self.fail(reason, poll));
        };
        match result {
            Ok(done) => {
                self.failures = 0;
                self.reported = None;
                self.stale = None;
                let pause = (begun.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE);
                self.not_before = Some(Instant::now() + pause);
                if !matches!(done, Reindexed::Current { .. }) {
                    self.is_ours = true;
                    (poll.report)(UpkeepEvent::Refreshed { source: source.clone(), done });
                }
                // The next poll is due at once, because the database may have changed during the refresh. It
                // also opens the new snapshot before a question needs it.
                Some(Duration::ZERO)
            }
            Err(error) if error.is_stopped() => None,
            Err(Error::Indexing { .. }) => {
                let elsewhere = "elsewhere".to_owned();
                if self.reported.as_ref() != Some(&elsewhere) {
                    (poll.report)(UpkeepEvent::Elsewhere { source: source.clone() });
                    self.reported = Some(elsewhere);
                }
                self.not_before = Some(Instant::now() + ELSEWHERE);
                source.set_task(Task::Elsewhere);
                Some(ELSEWHERE)
            }
            // A busy database is not a failure, so it is not reported.
            Err(error) if error.is_contention() => {
                source.set_task(Task::Failed);
                Some(self.back_off())
            }
            Err(error) => {
                if is_hopeless(&error) {
                    self.hopeless = Some(state);
                }
                Some(self.fail(error.to_string(), poll))
            }
        }
    }

    /// Reports a failure, unless it is the same as in the last report. Returns the wait.
    fn fail(&mut self, reason: String, poll: &mut SourcePoll<'_>) -> Duration {
        poll.source.set_task(Task::Failed);
        if self.reported.as_ref() != Some(&reason) {
            self.reported = Some(reason.clone());
            (poll.report)(UpkeepEvent::Failed { source: poll.source.clone(), reason });
        }
        self.back_off()
    }

    fn back_off(&mut self) -> Duration {
        let wait = backoff(self.failures);
        self.failures += 1;
        self.not_before = Some(Instant::now() + wait);
        wait
    }
}

fn backoff(failures: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << failures.min(16)).min(MAX_BACKOFF)
}

/// Returns the folders in which a change may concern a source, whether they exist or not.
pub(crate) fn watched_folders(config: &Config) -> Vec<PathBuf> {
    let mut folders = follow::folders(config.archives.iter().chain(&config.absent_archives));
    folders.extend(config.database_folders());
    let stores = config.db.iter().cloned().chain(config.export_store().ok());
    let databases = stores.filter_map(|store| store.path().map(Path::to_owned));
    for path in databases.chain([config.threads_database()]) {
        let real = dunce::canonicalize(&path).ok();
        let path = std::path::absolute(&path).unwrap_or(path);
        folders.extend(path.parent().map(Path::to_owned));
        folders.extend(real.and_then(|real| Some(real.parent()?.to_owned())));
    }
    folders.sort();
    folders.dedup();
    folders
}

/// Returns the files in `db/` that have names of exports, are newer than the searched database, and are
/// not being written.
pub(crate) fn unimported(config: &Config, present: &[Source]) -> impl Iterator<Item = PathBuf> {
    let export = present.iter().find(|source| source.kind == SourceKind::Export);
    // For a cluster, the time of the last import is unknown.
    let is_known = export.is_none_or(|export| export.database().is_some());
    let searched = export.and_then(|export| modified(export.database()?));
    let folders = config.database_folders().filter(move |_| is_known);
    let folders = folders.filter_map(|folder| fs::read_dir(folder).ok());
    folders.flatten().flatten().map(|entry| entry.path()).filter(move |path| {
        is_named_as_export(path)
            && modified(path) > searched
            && age(path).is_none_or(|age| age > QUIET)
    })
}

/// Returns whether the error is caused by the database itself, so that another try does not help.
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

fn is_named_as_export(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".zip") || name.starts_with("conversations") && name.ends_with(".json")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Returns the time since a file or its write-ahead log was last written to; `None` if the clock was
/// set back.
fn age(path: &Path) -> Option<Duration> {
    let last = modified(path).into_iter().chain(modified(&db::beside(path, "-wal"))).max()?;
    SystemTime::now().duration_since(last).ok()
}
