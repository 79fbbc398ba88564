//! The progress, the report and the errors of synchronising the transcripts.

use std::{fmt, io, path::Path, time::Duration};

use crate::error::Error;
use verbatim_chats::db::transcripts;

/// Maximum number of failures that a report describes.
const MOST_FAILURES: usize = 20;

/// The report on a synchronisation of the transcripts.
#[derive(Clone, Debug, Default)]
pub struct ArchiveReport {
    /// Number of transcripts that were found.
    pub files: u64,
    /// Number of transcripts that were read, from the start or from an earlier position.
    pub read: u64,
    /// Number of transcripts whose files are gone.
    pub removed: u64,
    /// Number of transcripts whose files are gone but whose messages stay in the store.
    pub kept: u64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Number of messages added.
    pub messages: u64,
    /// Number of lines among the bytes read that could not be parsed.
    pub malformed: u64,
    /// The first failures, a sentence each.
    pub failures: Vec<String>,
    /// Number of files and folders that could not be read.
    pub failed: u64,
    /// Whether nothing was done, because another process is synchronising the transcripts.
    pub elsewhere: bool,
    /// The duration of the synchronisation.
    pub took: Duration,
}

/// The progress of a synchronisation.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveProgress {
    /// Number of bytes read so far.
    pub done: u64,
    /// Number of bytes to read.
    pub total: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error(transparent)]
    Store(#[from] transcripts::Error),
    #[error(transparent)]
    Engine(Box<Error>),
    /// The work was stopped by the [`Stop`](verbatim_base::call::Stop).
    #[error("stopped")]
    Stopped,
    #[error("the transcript cannot be read: {0}")]
    Read(#[from] io::Error),
}

impl From<Error> for SyncError {
    fn from(error: Error) -> SyncError {
        SyncError::Engine(Box::new(error))
    }
}

impl ArchiveReport {
    /// Counts a failure, and describes it if it is one of the first.
    pub(super) fn fail(&mut self, path: &Path, reason: &dyn fmt::Display) {
        self.failed += 1;
        if self.failures.len() < MOST_FAILURES {
            // File names may contain line breaks.
            let path = path.display().to_string().replace(['\n', '\r'], " ");
            self.failures.push(format!("{path}: {reason}"));
        }
    }
}

impl fmt::Display for ArchiveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} transcripts read, {} messages added in {:.1} s",
            self.read,
            self.files,
            self.messages,
            self.took.as_secs_f64()
        )?;
        if self.removed > 0 {
            write!(f, ", {} gone", self.removed)?;
        }
        if self.kept > 0 {
            write!(f, ", {} of them kept", self.kept)?;
        }
        if self.malformed > 0 {
            write!(f, ", {} lines cannot be read", self.malformed)?;
        }
        Ok(())
    }
}
