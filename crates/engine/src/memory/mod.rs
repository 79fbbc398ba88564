//! Threads that are recorded turn by turn, and the passages that are recalled for each turn.

pub(crate) mod database;
pub(crate) mod recall;
pub(crate) mod threads;
