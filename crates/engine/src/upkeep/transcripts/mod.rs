//! Synchronises the transcript store with the transcripts of coding agents.
//!
//! Each file is read once, and later only the appended text. A file is read again if it became
//! shorter, was replaced, or differs at the place where reading ended. The messages of a deleted
//! file are kept, and files that continue it still leave out the messages that they repeat. The
//! deleted file is marked as gone. If a file now lacks some of the text that was read from it, the
//! stored messages are kept in the same way. A file that was moved is recognised as the same file.
//!
//! Invariant: the messages of a file do not depend on how often it was read while it grew.
//! Invariant: no file outside the archives is read, even if links lead there.

mod archive_walk;
mod earlier_states;
mod pass;
mod report;
mod sink;
mod sync;
mod unread_parts;

pub use self::report::{ArchiveProgress, ArchiveReport};
pub(crate) use self::sync::{Settled, leave_out, sync};
pub(crate) use self::{report::SyncError, unread_parts::unread_parts};
use crate::error::Error;
use verbatim_chats::db;

impl From<SyncError> for Error {
    fn from(error: SyncError) -> Error {
        match error {
            SyncError::Store(error) => Error::Transcripts(error),
            SyncError::Read(error) => Error::Transcript(error),
            SyncError::Engine(error) => *error,
            SyncError::Stopped => Error::Db(db::Error::Stopped),
        }
    }
}
