//! The database of threads: conversations that are recorded turn by turn as they happen.
//!
//! It is a canonical database with an additional table for the state of each thread.
//!
//! Invariant: a turn is on disk before its recording is confirmed.
//! Invariant: if several writers continue a thread from the same turn, exactly one succeeds.

mod database;
mod read;
mod record;
mod saved;

pub use self::database::{Error, Threads};
pub(super) use self::database::{obstacle, other_version};
pub use self::read::{Analytics, Turn};
pub use self::record::{Start, Thread};
pub use self::saved::{Save, Saved};
