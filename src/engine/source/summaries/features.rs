//! The features that rank whole conversations: the terms of titles and summaries, and one vector for
//! both.

use crate::index::VectorTable;

/// The summary of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// A title, if the conversation has none of its own; else empty.
    pub(crate) title: String,
    /// One or two of the conversation's own sentences; empty if none is worth showing.
    pub(crate) text: String,
}

/// The features of every conversation of a catalogue, in its order: some 400 bytes each.
#[derive(Clone, Debug, Default)]
pub(crate) struct SummaryFeatures {
    /// Hashes of terms: for each conversation the terms of its title, then the terms of its summary.
    terms: Vec<u32>,
    /// For each conversation, where the terms of the title end, and where the terms of the summary end.
    ends: Vec<[u32; 2]>,
    vectors: VectorTable,
    /// How many conversations have no summary yet, or lack their vector.
    pub(crate) missing: usize,
}

impl SummaryFeatures {
    /// Returns the features of no conversations; `dimensions` is the length of the vectors.
    pub(crate) fn new(dimensions: usize) -> SummaryFeatures {
        SummaryFeatures { vectors: VectorTable::new(dimensions), ..SummaryFeatures::default() }
    }

    /// Adds the next conversation's terms and, by `vector`, its vector.
    pub(crate) fn push(
        &mut self,
        title: &[u32],
        summary: &[u32],
        vector: impl FnOnce(&mut VectorTable),
    ) {
        self.terms.extend_from_slice(title);
        let of_title = self.terms.len() as u32;
        self.terms.extend_from_slice(summary);
        self.ends.push([of_title, self.terms.len() as u32]);
        vector(&mut self.vectors);
    }

    /// Gives a conversation another vector.
    pub(crate) fn set(&mut self, at: usize, vector: &[f32]) {
        self.vectors.set(at, vector);
    }

    /// The hashes of the terms of a conversation's title, and of its summary.
    pub(crate) fn terms(&self, at: usize) -> [&[u32]; 2] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before][1]) as usize;
        let [of_title, of_summary] = self.ends[at].map(|end| end as usize);
        [&self.terms[start..of_title], &self.terms[of_title..of_summary]]
    }

    pub(crate) fn vectors(&self) -> &VectorTable {
        &self.vectors
    }
}
