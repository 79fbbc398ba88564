//! The state of ranking one question.

use super::question::Question;
use crate::{engine::source::Sources, model::Stop, text::snippet};

/// Answers one question.
pub(crate) struct Ranker<'a> {
    pub(super) sources: &'a Sources,
    pub(super) question: &'a Question,
    pub(super) stop: &'a Stop,
    pub(super) notes: Vec<String>,
}

impl<'a> Ranker<'a> {
    pub(crate) fn new(sources: &'a Sources, question: &'a Question, stop: &'a Stop) -> Ranker<'a> {
        Ranker { sources, question, stop, notes: Vec::new() }
    }

    /// Returns the concepts of the question that are not empty.
    pub(super) fn concepts(&self) -> Vec<&'a str> {
        let concepts = self.question.concepts.iter().map(|concept| snippet::trim(concept));
        concepts.filter(|concept| !concept.is_empty()).collect()
    }
}
