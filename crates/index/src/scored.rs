//! A document with its score.

use std::cmp::Ordering;

/// A doc id and the score of its message for a query, ordered by score. If scores are equal, the lower doc id
/// is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredDoc {
    /// The doc id. Vectors number the documents of their segment from 0.
    pub doc_id: u32,
    /// The score. Vectors give the cosine, from -1 to 1, with the rounding errors of int8.
    pub score: f32,
}

impl Eq for ScoredDoc {}

impl PartialOrd for ScoredDoc {
    fn partial_cmp(&self, other: &ScoredDoc) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScoredDoc {
    fn cmp(&self, other: &ScoredDoc) -> Ordering {
        self.score.total_cmp(&other.score).then(other.doc_id.cmp(&self.doc_id))
    }
}
