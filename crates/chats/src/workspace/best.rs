//! The best lines of a search, up to its limit.

use std::collections::BTreeMap;

use super::{Line, layout::Rank};

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

    /// Returns whether a file of this rank can still add a line.
    pub(super) fn wants(&self, rank: &Rank) -> bool {
        !self.is_full() || self.files.last_key_value().is_some_and(|(worst, _)| rank < worst)
    }

    pub(super) fn is_full(&self) -> bool {
        self.lines >= self.limit
    }

    /// Adds the lines of a file, and drops the worst files beyond the limit.
    pub(super) fn add(&mut self, rank: Rank, lines: Vec<Line>) {
        self.lines += lines.len();
        self.files.insert(rank, lines);
        while let Some(worst) = self.files.last_entry()
            && self.lines - worst.get().len() >= self.limit
        {
            self.lines -= worst.remove().len();
        }
    }

    pub(super) fn into_lines(self) -> Vec<Line> {
        self.files.into_values().flatten().take(self.limit).collect()
    }
}
