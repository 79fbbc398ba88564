//! A question to some sources, with the limits of its answer.

use std::time::Duration;

use super::question::Question;
use crate::source::Sources;
use verbatim_base::call::Call;
use verbatim_text::snippet;

/// Time that a question waits for indexes to become current.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(5);

/// Time that a quick question waits for indexes to become current.
const QUICK_WAIT: Duration = Duration::from_secs(1);

/// Maximum size in bytes of a database that is indexed or read in about a second.
pub(super) const SMALL: u64 = 8 << 20;

/// A question to some sources, with the limits of its answer. It is what every step of ranking knows.
pub struct Ranker<'a> {
    pub(super) sources: &'a Sources,
    pub(super) question: &'a Question,
    pub(super) call: &'a Call,
    /// The time limit for waiting for indexes.
    pub(super) in_time: Call,
    /// Whether large sources without an index are left out.
    pub(super) is_quick: bool,
    /// The share of vectors in scores, if the words of the best messages cover the question.
    pub(super) vector_share: f32,
    /// The number of conversations to find; 0 if messages are to be found.
    pub(super) wanted: usize,
}

impl<'a> Ranker<'a> {
    /// Makes a ranker. Its time limit begins now.
    pub fn new(sources: &'a Sources, question: &'a Question, call: &'a Call) -> Ranker<'a> {
        Ranker {
            sources,
            question,
            call,
            in_time: call.within(MAX_WAIT),
            is_quick: false,
            vector_share: sources.vector_share(),
            wanted: 0,
        }
    }

    /// Makes the question quick: it waits less for indexes, and leaves out large sources without an index.
    pub(crate) fn quick(self) -> Ranker<'a> {
        Ranker { in_time: self.call.within(QUICK_WAIT), is_quick: true, ..self }
    }

    /// Returns the concepts of the question that are not empty.
    pub(super) fn concepts(&self) -> Vec<&'a str> {
        let concepts = self.question.concepts.iter().map(|concept| snippet::trim(concept));
        concepts.filter(|concept| !concept.is_empty()).collect()
    }

    pub(super) fn check_stop(&self) -> crate::error::Result<()> {
        Ok(self.call.stop.check(verbatim_chats::db::Error::Stopped)?)
    }
}
