//! The trace of an exact search: what was looked up and read, and how long it took.

use std::time::Duration;

/// The counts and the duration of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The number of posting lists that the search used.
    pub lists: u64,
    /// The number of gaps (`_`, or `.` in an expression) that were expanded to narrow the candidates.
    pub gaps: u64,
    /// The number of threads that read all messages, if no gram narrows the candidates; otherwise 0.
    pub scan_threads: usize,
    /// Messages that the lists proposed, within the dates and roles of the request.
    pub candidates: u64,
    /// Messages that matched.
    pub verified: u64,
    /// Time to find, intersect and verify, without the time to make hits and to pass them to the caller.
    pub took: Duration,
}
