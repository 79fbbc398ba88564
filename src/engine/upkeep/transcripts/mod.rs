//! Synchronises the transcript store with the transcripts of coding agents.
//!
//! Each file is read once; later only what was appended to it. A file that changed in another way is
//! read again: it is shorter, another file, or different where reading ended.
//!
//! Invariant: the messages of a file do not depend on how often it was read while it grew.
//! Invariant: nothing outside the archives is read, wherever links lead.

mod fnv;
mod pass;
mod report;
mod sink;
mod sync;
mod walk;

pub use self::report::{ArchiveProgress, ArchiveReport};
pub(crate) use self::{fnv::fingerprint, report::SyncError, sync::sync};
use crate::{
    engine::{Config, Engine, Error},
    model::Stop,
};

impl Config {
    /// Returns the archives as one text, which names the transcript store.
    pub(crate) fn archive_name(&self) -> String {
        let mut names: Vec<_> = self.archives.iter().map(|path| path.to_string_lossy()).collect();
        names.sort();
        names.dedup();
        names.join("\n")
    }
}

impl Engine {
    /// Brings the transcript store up to date. If nothing changed, this only looks at the size and
    /// the times of each file.
    ///
    /// One process does this at a time; the report tells another one so.
    pub fn sync_transcripts(
        &self,
        stop: &Stop,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<ArchiveReport, Error> {
        let config = self.config();
        Ok(sync(&config.archive_database(), &config.archives, stop, progress)?)
    }
}

impl From<SyncError> for Error {
    fn from(error: SyncError) -> Error {
        match error {
            SyncError::Store(error) => Error::Transcripts(error),
            SyncError::Read(error) => Error::Transcript(error),
        }
    }
}
