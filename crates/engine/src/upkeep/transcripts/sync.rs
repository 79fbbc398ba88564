//! Updates the transcript store. Only one process does so at a time.

use std::time::{Duration, Instant};
use std::{path::Path, thread};

use super::archive_walk::{ArchiveWalk, walk_archives};
use super::pass::Pass;
use super::report::{ArchiveProgress, ArchiveReport, SyncError};
use crate::attachments::{AttachmentStore, TranscriptFiles};
use crate::decisions::Decisions;
use crate::decisions::forgotten::ForgottenId;
use crate::{config::Config, source::wipe_indexes};
use verbatim_base::call::Call;
use verbatim_base::private::{self, FileLock};
use verbatim_chats::db::transcripts::{self, TranscriptStore};
use verbatim_chats::db::{self, State};

/// Wait between two checks whether another process has finished its build.
const ELSEWHERE: Duration = Duration::from_millis(50);

/// The inputs of the last update of the transcript store that left nothing to do. As long as they are the
/// same, another update would change nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    walk: ArchiveWalk,
    exclude: Vec<String>,
    forgotten: Vec<ForgottenId>,
    store: State,
}

/// Updates the transcript store of a configuration from the transcripts in its folders, without those
/// that are left out.
///
/// If another process is updating the store, does nothing, and the report says so. Also does nothing if the
/// inputs are those in `settled`, because opening the store creates files, which would wake the watchers of
/// its folder. Otherwise updates `settled`.
pub(crate) fn sync(
    config: &Config,
    settled: &mut Option<Settled>,
    call: &Call,
    progress: &dyn Fn(ArchiveProgress),
) -> Result<ArchiveReport, SyncError> {
    let begun = Instant::now();
    let mut report = ArchiveReport::default();
    if !config.has_transcripts() {
        return Ok(report);
    }
    let database = config.archive_database();
    let walk = walk_archives(config, &mut report);
    // If there are neither transcripts nor a store, no file is created.
    if walk.transcripts.is_empty() && !database.is_file() {
        return Ok(report);
    }
    if let Some(known) = settled.take()
        && known.walk == walk
        && known.exclude == config.exclude
        && Decisions::of(config)?.forgotten() == known.forgotten
        && db::state(&database).is_ok_and(|state| state == known.store)
    {
        report.files = walk.transcripts.len() as u64;
        *settled = Some(known);
        return Ok(report);
    }
    let Some(_lock) = lock(&database)? else {
        report.elsewhere = true;
        return Ok(report);
    };
    // The list is read under the lock, because a process that forgets a conversation first changes the
    // list and then waits for the lock.
    let decisions = &Decisions::of(config)?;
    let walked = report.clone();
    let mut set_aside = Vec::new();
    let attachments = AttachmentStore::of_transcripts(config);
    for is_last in [false, true] {
        report.failures.clone_from(&walked.failures);
        report.failed = walked.failed;
        let store = TranscriptStore::open(&database, &mut |path| set_aside.push(path))?;
        let forgets = config.forget_deleted;
        let files = TranscriptFiles::new(&attachments, call);
        if forgets {
            store.delete_securely()?;
        }
        let pass = Pass::new(&store, decisions, files, forgets, call, progress, &mut report);
        let done = pass.run(&walk).and_then(|()| {
            if forgets && report.removed > 0 {
                store.scrub()?;
            }
            Ok(store.close()?)
        });
        match done {
            Ok(()) => break,
            // A damaged store was set aside, so the files are read once more into a new store.
            Err(SyncError::Store(error)) if error.is_damage() && !is_last => {
                set_aside.extend(TranscriptStore::set_aside(&database)?);
            }
            Err(error) => return Err(error),
        }
    }
    if config.forget_deleted && report.removed > 0 {
        wipe_indexes(config, &database, true, &mut |_| {
            thread::sleep(ELSEWHERE);
            !call.stop.requested()
        })?;
    }
    for path in set_aside {
        let reason = "the transcript store was damaged. It has been rebuilt from the transcripts that \
                      are there; this file may still hold those that were deleted";
        report.fail(&path, &reason);
    }
    if report.failed == walked.failed
        && !call.stop.requested()
        && let Ok(store) = db::state(&database)
    {
        let forgotten = decisions.forgotten().to_vec();
        *settled = Some(Settled { walk, exclude: config.exclude.clone(), forgotten, store });
    }
    report.took = begun.elapsed();
    Ok(report)
}

/// Removes conversations that are left out from the store at `database`, so that its files have none of their text.
/// While another process synchronises the store, calls `wait` repeatedly. Stops if `wait` returns false.
/// Returns `None`, and writes nothing, if the store never had one of the conversations. If `always` is set,
/// cleans the files in any case.
///
/// Otherwise returns whether the log is clean too, because another program may read an older state.
pub(crate) fn leave_out(
    database: &Path,
    config: &Config,
    ids: &[String],
    always: bool,
    wait: &mut dyn FnMut() -> bool,
) -> Result<Option<bool>, SyncError> {
    let _lock = loop {
        match lock(database)? {
            Some(lock) => break lock,
            None if wait() => {}
            None => return Err(SyncError::Stopped),
        }
    };
    let decisions = &Decisions::of(config)?;
    let store = match TranscriptStore::connect(database) {
        Ok(Some(store)) => store,
        Err(error) if !error.is_damage() => return Err(error.into()),
        // A store that was set aside may still contain the text. The command that forgets the text says so.
        Ok(None) | Err(_) => {
            TranscriptStore::set_aside(database)?;
            return Ok(None);
        }
    };
    let mut is_there = always;
    for id in ids {
        is_there |= store.has_file_of(id)?;
    }
    if !is_there {
        return Ok(None);
    }
    store.delete_securely()?;
    let mut report = ArchiveReport::default();
    let call = Call::default();
    let attachments = AttachmentStore::of_transcripts(config);
    let files = TranscriptFiles::new(&attachments, &call);
    let forgets = config.forget_deleted;
    let mut pass = Pass::new(&store, decisions, files, forgets, &call, &|_| {}, &mut report);
    pass.leave_out()?;
    let is_clean = store.scrub()?;
    store.close()?;
    Ok(Some(is_clean))
}

/// Locks the store for writing; `None` if another process holds the lock.
fn lock(database: &Path) -> Result<Option<FileLock>, SyncError> {
    let path = database.with_extension("lock");
    path.parent()
        .map_or(Ok(()), private::create_dir_all)
        .and_then(|()| FileLock::try_acquire(&path, 1))
        .map_err(|source| SyncError::Store(transcripts::Error::Io { path, source }))
}
