//! Mirrors the transcripts of coding agents into a canonical database, as far as they have grown.
//!
//! Each file is read once; later only what was added to it. What changes a file otherwise (it is
//! shorter, another file, or not what it was where reading ended) has it read anew.
//!
//! Invariant: what is mirrored of a file, however often it grew, is what one reading of it tells.
//! Invariant: nothing outside the archives is read, wherever links lead.

mod pass;
mod sink;
mod walk;

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use self::{pass::Pass, walk::walk};
use crate::engine::{Config, Engine, Error};
use crate::{
    db::transcripts::{self, TranscriptStore},
    model::Stop,
};

/// Failures that are told.
const TOLD: usize = 20;

/// What mirroring did.
#[derive(Clone, Debug, Default)]
pub struct ArchiveReport {
    /// Transcripts there are.
    pub files: u64,
    /// Those that were read, from the start or further on.
    pub read: u64,
    /// Those that are gone.
    pub removed: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Messages added.
    pub messages: u64,
    /// Lines that could not be read, in what was read.
    pub malformed: u64,
    /// What could not be read, a sentence each; the first few.
    pub failures: Vec<String>,
    /// How many could not be read.
    pub failed: u64,
    /// Whether another process is at it, so that nothing was done here.
    pub elsewhere: bool,
    /// How long it took.
    pub took: Duration,
}

/// How far mirroring is.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveProgress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read in all.
    pub total: u64,
}

impl ArchiveReport {
    fn fail(&mut self, path: &Path, reason: &dyn std::fmt::Display) {
        self.failed += 1;
        if self.failures.len() < TOLD {
            self.failures.push(format!("{}: {reason}", path.display()));
        }
    }
}

impl Config {
    /// Returns the archives as one text, which names the database they are mirrored into.
    pub(crate) fn archive_name(&self) -> String {
        let mut names: Vec<_> = self.archives.iter().map(|path| path.to_string_lossy()).collect();
        names.sort();
        names.dedup();
        names.join("\n")
    }
}

impl Engine {
    /// Brings the store of the transcripts up to date; where nothing changed, that takes a look at
    /// each file's size and times.
    ///
    /// One process does it at a time; another one that comes meanwhile is told so.
    pub fn sync_transcripts(
        &self,
        stop: &Stop,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<ArchiveReport, Error> {
        self.sync_within(None, stop, progress)
    }

    /// Does as [`Engine::sync_transcripts`] does, looking at the files that changed alone, and below
    /// the folders that did.
    pub fn sync_changed(&self, changed: &[PathBuf], stop: &Stop) -> Result<ArchiveReport, Error> {
        self.sync_within(Some(changed), stop, &|_| {})
    }

    fn sync_within(
        &self,
        changed: Option<&[PathBuf]>,
        stop: &Stop,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<ArchiveReport, Error> {
        let begun = Instant::now();
        let mut report = ArchiveReport::default();
        let database = self.config().archive_database();
        let archives = &self.config().archives;
        if archives.is_empty() {
            return Ok(report);
        }
        let walk = walk(archives, changed, &mut report);
        // Nothing there, and nothing was: no files of ours in anybody's folder for that.
        if walk.found.is_empty() && !database.is_file() {
            return Ok(report);
        }
        let Some(_lock) = lock(&database)? else {
            report.elsewhere = true;
            return Ok(report);
        };
        let failures = (report.failures.clone(), report.failed);
        for is_last in [false, true] {
            (report.failures, report.failed) = failures.clone();
            let store = TranscriptStore::open(&database)?;
            let pass = Pass { store: &store, stop, report: &mut report };
            match pass.run(&walk, progress).and_then(|()| Ok(store.close()?)) {
                Ok(()) => break,
                // It holds nothing that the files do not: made anew, once.
                Err(Error::Transcripts(error)) if error.is_damage() && !is_last => {
                    TranscriptStore::remove(&database)?;
                }
                Err(error) => return Err(error),
            }
        }
        report.took = begun.elapsed();
        Ok(report)
    }
}

/// Takes the lock that one writer of the store holds; `None` where another process does.
fn lock(database: &Path) -> Result<Option<File>, Error> {
    let path = database.with_extension("lock");
    let failed = |source| Error::Transcripts(transcripts::Error::Io { path: path.clone(), source });
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let file =
        File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// FNV-1a, which does not change with the version of a library.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
