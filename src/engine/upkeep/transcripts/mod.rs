//! Synchronises the transcript store with the transcripts of coding agents.
//!
//! Each file is read once; later only the appended text is read. A file that changed in another way is
//! read again: it is shorter, another file, or different where reading ended. The messages of a deleted
//! file are kept, and the file is marked as deleted; files that continue it still leave out the
//! messages that they repeat. A file that was moved is the same file.
//!
//! Invariant: the messages of a file do not depend on how often it was read while it grew.
//! Invariant: nothing outside the archives is read, wherever links lead.

mod partly;
mod pass;
mod report;
mod sink;
mod sync;
mod walk;

pub use self::report::{ArchiveProgress, ArchiveReport};
pub(crate) use self::{
    partly::partly_read,
    report::SyncError,
    sync::{sync, withhold},
};
use crate::{db, engine::error::Error};

impl From<SyncError> for Error {
    fn from(error: SyncError) -> Error {
        match error {
            SyncError::Store(error) => Error::Transcripts(error),
            SyncError::Read(error) => Error::Transcript(error),
            SyncError::Withheld(error) | SyncError::Files(error) => *error,
            SyncError::Stopped => Error::Db(db::Error::Stopped),
        }
    }
}
