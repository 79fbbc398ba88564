//! Progress, outcome and errors of synchronising the transcripts.

use std::{fmt, io, path::Path, time::Duration};

use crate::{db::transcripts, engine::error::Error};

/// How many failures are described.
const MOST_FAILURES: usize = 20;

/// The outcome of synchronising the transcripts.
#[derive(Clone, Debug, Default)]
pub struct ArchiveReport {
    /// Transcripts found.
    pub files: u64,
    /// Transcripts that were read, from the start or further on.
    pub read: u64,
    /// Transcripts that were found to be gone.
    pub removed: u64,
    /// How many of the removed transcripts are kept in the store.
    pub kept: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Messages added.
    pub messages: u64,
    /// Lines that could not be read, in the bytes read.
    pub malformed: u64,
    /// The first failures, a sentence each.
    pub failures: Vec<String>,
    /// How many files and folders could not be read.
    pub failed: u64,
    /// Whether another process is synchronising, so that nothing was done here.
    pub elsewhere: bool,
    /// The duration of the synchronisation.
    pub took: Duration,
}

/// The progress of synchronising.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveProgress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read in all.
    pub total: u64,
}

/// An error that ends the synchronisation of transcripts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] transcripts::Error),
    /// The files of messages cannot be written or removed.
    #[error(transparent)]
    Files(Box<Error>),
    /// The list of withheld conversations cannot be read.
    #[error(transparent)]
    Withheld(Box<Error>),
    /// The [`Stop`](crate::model::Stop) was requested.
    #[error("stopped")]
    Stopped,
    /// A transcript cannot be read to its end.
    #[error("the transcript cannot be read: {0}")]
    Read(#[from] io::Error),
}

impl ArchiveReport {
    /// Counts a failure, and describes it if it is one of the first.
    pub(super) fn fail(&mut self, path: &Path, reason: &dyn fmt::Display) {
        self.failed += 1;
        if self.failures.len() < MOST_FAILURES {
            // A name may have a line break.
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
