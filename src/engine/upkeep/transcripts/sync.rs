//! Brings the transcript store up to date, one process at a time.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
    time::Instant,
};

use super::{
    pass::Pass,
    report::{ArchiveProgress, ArchiveReport, SyncError},
    walk::walk,
};
use crate::{
    db::transcripts::{self, TranscriptStore},
    engine::{
        attachments::{AttachmentStore, TranscriptFiles},
        config::Config,
        withheld::Withheld,
    },
    index::IndexDir,
    model::Stop,
    private,
};

/// Brings the transcript store of a configuration up to date with the transcripts in its folders, but
/// for those that are withheld.
///
/// If another process does this already, the report says so.
pub(crate) fn sync(
    config: &Config,
    stop: &Stop,
    progress: &dyn Fn(ArchiveProgress),
) -> Result<ArchiveReport, SyncError> {
    let begun = Instant::now();
    let mut report = ArchiveReport::default();
    if !config.has_transcripts() {
        return Ok(report);
    }
    let database = config.archive_database();
    let walk = walk(config, &mut report);
    // Without transcripts and without a store there is nothing to do: no file is made.
    if walk.found.is_empty() && !database.is_file() {
        return Ok(report);
    }
    let Some(_lock) = lock(&database)? else {
        report.elsewhere = true;
        return Ok(report);
    };
    // The list is read while the lock is held: a process that forgets something changes the list first,
    // and then waits for the lock.
    let withheld = &withheld_by(config)?;
    if !database.is_file() {
        remove_old(&config.index_folder());
    }
    let failures = (report.failures.clone(), report.failed);
    let mut set_aside = Vec::new();
    let attachments = AttachmentStore::of_transcripts(config);
    for is_last in [false, true] {
        (report.failures, report.failed) = failures.clone();
        let store = TranscriptStore::open(&database, &mut |path| set_aside.push(path))?;
        let forgets = config.forget_deleted;
        let files = TranscriptFiles::new(&attachments, stop);
        let pass = Pass::new(&store, withheld, files, forgets, stop, &mut report);
        match pass.telling(progress).run(&walk).and_then(|()| Ok(store.close()?)) {
            Ok(()) => break,
            // The damaged store is read again from the files once.
            Err(SyncError::Store(error)) if error.is_damage() && !is_last => {
                set_aside.extend(TranscriptStore::set_aside(&database)?);
            }
            Err(error) => return Err(error),
        }
    }
    for path in set_aside {
        let reason = "the transcript store was damaged. It has been rebuilt from the transcripts that \
                      are there; this file may still hold those that were deleted";
        report.fail(&path, &reason);
    }
    report.took = begun.elapsed();
    Ok(report)
}

/// Removes what is withheld from the store at `database`, so that no byte of it is left in its files.
/// While another process synchronises it, calls `wait` again and again, until that returns false: then
/// the removal is called off. `None` if the store never had one of these conversations, and nothing was
/// written; `always` cleans the files all the same. A store of an earlier version is removed.
///
/// Otherwise returns whether the log is clean too: somebody may still read an older state.
pub(crate) fn withhold(
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
    let withheld = &withheld_by(config)?;
    let store = match TranscriptStore::connect(database) {
        Ok(Some(store)) => store,
        Ok(None) if database.parent() == Some(&config.index_folder()) => {
            remove_index_of(database, &config.index_folder());
            TranscriptStore::remove(database)?;
            return Ok(None);
        }
        Err(error) if !error.is_damage() => return Err(error.into()),
        // A store that was set aside may still hold the text; the command that forgets it says so.
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
    let (mut report, stop) = (ArchiveReport::default(), Stop::never());
    let attachments = AttachmentStore::of_transcripts(config);
    let files = TranscriptFiles::new(&attachments, &stop);
    Pass::new(&store, withheld, files, config.forget_deleted, &stop, &mut report).withhold()?;
    let is_clean = store.scrub()?;
    store.close()?;
    Ok(Some(is_clean))
}

fn withheld_by(config: &Config) -> Result<Withheld, SyncError> {
    Withheld::of(config).map_err(|error| SyncError::Withheld(Box::new(error)))
}

/// Removes the stores of earlier versions, which had one in the index folder for each set of folders,
/// and their indexes. What cannot be removed stays; nothing reads it.
fn remove_old(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("archive-") || !path.is_file() {
            continue;
        }
        if name.ends_with(".db") {
            remove_index_of(&path, folder);
        }
        drop(fs::remove_file(&path));
    }
}

/// Removes the index of a store that nothing reads.
fn remove_index_of(store: &Path, folder: &Path) {
    if let Ok(real) = store.canonicalize() {
        drop(fs::remove_dir_all(IndexDir::of(folder, &real).folder()));
    }
}

/// The lock of the store's only writer.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that was just forked shares the lock until it runs
        // its program.
        let _ = self.0.unlock();
    }
}

/// Takes the lock of the store's only writer; `None` if another process holds it.
fn lock(database: &Path) -> Result<Option<Lock>, SyncError> {
    let path = database.with_extension("lock");
    let failed = |source| SyncError::Store(transcripts::Error::Io { path: path.clone(), source });
    if let Some(folder) = path.parent() {
        private::create_dir_all(folder).map_err(failed)?;
    }
    let file = private::open_file(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_a_forked_process_shares_is_free_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let held = lock(&database).unwrap().unwrap();
        // As a child process has it before it runs its program.
        let _shared = held.0.try_clone().unwrap();
        assert!(lock(&database).unwrap().is_none());
        drop(held);
        assert!(lock(&database).unwrap().is_some());
    }
}
