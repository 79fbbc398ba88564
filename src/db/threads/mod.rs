//! The database of threads: conversations that are recorded turn by turn, while they go on.
//!
//! A canonical database like any other, with one more table for the state of each thread.
//!
//! Invariant: a turn is on disk before its recording is confirmed.
//! Invariant: if several writers continue a thread from the same point, one succeeds.

mod database;
mod read;
mod record;
mod saved;

pub use self::{
    database::{Error, Threads},
    read::{Analytics, Turn},
    record::{Start, Thread},
    saved::{Save, Saved},
};
