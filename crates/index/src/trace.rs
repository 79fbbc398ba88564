//! The trace of an exact search: what was looked up and read, and how long the steps took.

use std::time::Duration;

use verbatim_text::grams::Gram;

/// A gram that a search looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GramUse {
    pub gram: Gram,
    /// Whether the gram was looked up in the titles and not in the texts.
    pub in_titles: bool,
    /// The number of messages (or titles) with the gram, in the segments in which it was looked up. In later
    /// segments, only the rarest grams are looked up.
    pub messages: u32,
}

/// The steps and counts of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The grams whose posting lists the search used.
    pub grams: Vec<GramUse>,
    /// The number of gaps (`_`, or `.` in an expression) that were expanded to narrow the candidates.
    pub gaps: u64,
    /// The number of threads that read all messages, if no gram narrows the candidates; otherwise 0.
    pub scan_threads: usize,
    /// Messages that the lists proposed, within the dates and roles of the request.
    pub candidates: u64,
    /// Messages that matched.
    pub verified: u64,
    /// Time to find the posting lists.
    pub lookup: Duration,
    /// Time to intersect the lists and to verify candidates.
    pub search: Duration,
    /// Time to make hits and to pass them to the caller.
    pub rows: Duration,
}

impl Trace {
    /// Returns the grams whose posting lists the search used, with ASCII letters in lower case.
    pub fn grams(&self) -> impl Iterator<Item = String> {
        self.grams.iter().map(|used| used.gram.to_string())
    }
}
