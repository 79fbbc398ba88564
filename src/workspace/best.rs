//! The best lines so far: no more are kept than are asked for.

use std::collections::BTreeMap;

use super::{Line, layout::Rank};

/// The first `limit` lines of those that were added, in order of rank.
#[derive(Debug)]
pub(super) struct Best {
    limit: usize,
    files: BTreeMap<Rank, Vec<Line>>,
    lines: usize,
}

impl Best {
    pub(super) fn new(limit: usize) -> Best {
        Best { limit, files: BTreeMap::new(), lines: 0 }
    }

    /// Returns whether a file of this rank could still add a line.
    pub(super) fn wants(&self, rank: &Rank) -> bool {
        !self.is_full() || self.files.last_key_value().is_some_and(|(worst, _)| rank < worst)
    }

    /// Returns whether there are as many lines as were asked for.
    pub(super) fn is_full(&self) -> bool {
        self.lines >= self.limit
    }

    /// Adds the lines of a file, and lets go of those that are too many now.
    pub(super) fn add(&mut self, rank: Rank, lines: Vec<Line>) {
        self.lines += lines.len();
        self.files.insert(rank, lines);
        while let Some(worst) = self.files.last_entry()
            && self.lines - worst.get().len() >= self.limit
        {
            self.lines -= worst.remove().len();
        }
    }

    /// Returns the lines in order.
    pub(super) fn into_lines(self) -> Vec<Line> {
        self.files.into_values().flatten().take(self.limit).collect()
    }
}
