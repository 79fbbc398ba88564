//! Threads that are recorded turn by turn, and what is recalled for each turn.

pub(crate) mod database;
pub(crate) mod recall;
pub(crate) mod threads;
