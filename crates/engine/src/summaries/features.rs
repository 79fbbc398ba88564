//! The features that rank whole conversations: the terms of titles and summaries, and one vector for
//! both.

use verbatim_index::VectorTable;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// A generated title; empty if the conversation has its own title.
    pub(crate) title: String,
    /// One or two sentences from the conversation; empty if none is worth showing.
    pub(crate) text: String,
}

/// The features of all conversations in a catalogue, in the same order. They take about 400 bytes each.
#[derive(Clone, Debug, Default)]
pub(crate) struct SummaryFeatures {
    /// Hashes of terms. For each conversation, the terms of the title are before those of the summary.
    terms: Vec<u32>,
    /// The end of the title's terms and the end of the summary's terms, for each conversation.
    ends: Vec<[u32; 2]>,
    vectors: VectorTable,
    /// The number of conversations without a summary, or without its vector.
    pub(crate) missing: usize,
}

impl SummaryFeatures {
    /// Returns an empty list of features. `dimensions` is the number of dimensions of vectors.
    pub(crate) fn new(dimensions: usize) -> SummaryFeatures {
        SummaryFeatures { vectors: VectorTable::new(dimensions), ..SummaryFeatures::default() }
    }

    /// Adds the terms of the next conversation, and calls `vector` to add its vector.
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

    pub(crate) fn set(&mut self, at: usize, vector: &[f32]) {
        self.vectors.set(at, vector);
    }

    /// Returns the hashes of the terms in a conversation's title, and of those in its summary.
    pub(crate) fn terms(&self, at: usize) -> [&[u32]; 2] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before][1]) as usize;
        let [of_title, of_summary] = self.ends[at].map(|end| end as usize);
        [&self.terms[start..of_title], &self.terms[of_title..of_summary]]
    }

    pub(crate) fn vectors(&self) -> &VectorTable {
        &self.vectors
    }
}
