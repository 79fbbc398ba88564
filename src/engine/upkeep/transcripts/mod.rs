//! Synchronises the transcript store with the transcripts of coding agents.
//!
//! Each file is read once; later only what was appended to it. A file that changed in another way is
//! read again: it is shorter, another file, or different where reading ended. What was read of a file
//! that is deleted is kept, and marked as such; its messages count as repeated in files that go on from
//! it, as they did before. A file that was moved is the same file.
//!
//! Invariant: the messages of a file do not depend on how often it was read while it grew.
//! Invariant: nothing outside the archives is read, wherever links lead.

mod pass;
mod report;
mod sink;
mod sync;
mod walk;

pub use self::report::{ArchiveProgress, ArchiveReport};
pub(crate) use self::{
    report::SyncError,
    sync::{sync, withhold},
};
use crate::{db, engine::error::Error};

impl From<SyncError> for Error {
    fn from(error: SyncError) -> Error {
        match error {
            SyncError::Store(error) => Error::Transcripts(error),
            SyncError::Read(error) => Error::Transcript(error),
            SyncError::Withheld(error) => *error,
            SyncError::Stopped => Error::Db(db::Error::Stopped),
        }
    }
}
