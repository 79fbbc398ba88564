//! A document with its score, and the documents with the best scores.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

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

/// The documents with the best scores so far.
pub(crate) struct BestDocs {
    heap: BinaryHeap<Reverse<ScoredDoc>>,
    most: usize,
    /// The score that a further document must have.
    pub(crate) threshold: f32,
}

impl BestDocs {
    /// Begins with no documents. Documents with a score below `threshold` are never among the best.
    pub(crate) fn new(most: usize, threshold: f32) -> BestDocs {
        BestDocs { heap: BinaryHeap::new(), most, threshold }
    }

    /// Adds a document that is among the best, if `accepts` does not refuse it.
    #[inline]
    pub(crate) fn offer(&mut self, scored: ScoredDoc, accepts: impl FnOnce() -> bool) {
        // A score that is not a number is never among the best.
        let enters = scored.score >= self.threshold
            && (self.heap.len() < self.most
                || self.heap.peek().is_some_and(|Reverse(worst)| scored > *worst));
        if !enters || !accepts() {
            return;
        }
        if self.heap.len() == self.most {
            self.heap.pop();
        }
        self.heap.push(Reverse(scored));
        if self.heap.len() == self.most
            && let Some(Reverse(worst)) = self.heap.peek()
        {
            self.threshold = worst.score;
        }
    }

    /// Returns the documents, the best first.
    pub(crate) fn sorted(self) -> Vec<ScoredDoc> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(scored)| scored).collect()
    }
}
