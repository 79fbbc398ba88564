//! Scores of conversations by their titles and summaries.
//!
//! ```text
//! T(c) = the query's weight in the title, and 0.8 of its weight in the summary alone
//! V(c) = nearness of the cosine of c
//! score(c) = (1 - v) T(c) + v V(c);   v = 0.4; 0 by terms alone, 1 by meaning alone
//! ```
//!
//! v is smaller if the model does not know all words of the query.

use std::collections::HashMap;

use super::{
    answer::{ConversationKey, ScoredMessages},
    question::Mode,
    ranker::Ranker,
};
use crate::{
    engine::{
        error::Error,
        source::{
            scoring::{Concept, Nearness, TitleQuery},
            summaries::hash,
        },
    },
    text::words::Tokenizer,
};

/// The weight of the vector; terms have the rest.
const VECTOR_SHARE: f32 = 0.4;

/// How many of the nearest conversations nearness is measured among.
const MAX_TITLES: usize = 100;

impl Ranker<'_> {
    /// Returns the scores, between 0 and 1, of the conversations whose titles and summaries answer
    /// every concept.
    pub(super) fn score_titles(
        &mut self,
        found: &ScoredMessages,
    ) -> Result<HashMap<ConversationKey, f32>, Error> {
        let with_terms = self.question.mode != Mode::Vector;
        let queries: Vec<TitleQuery<'_>> =
            found.concepts.iter().map(|concept| title_query(concept, with_terms)).collect();
        // For each conversation, a score for each concept.
        let mut all: Vec<(ConversationKey, Vec<f32>)> = Vec::new();
        // For each concept, a cosine for each conversation.
        let mut cosines: Vec<Vec<f32>> = vec![Vec::new(); queries.len()];
        for (place, source) in found.sources.iter().enumerate() {
            let (scores, missing) = source.scorer.titles(&queries, self.stop)?;
            if missing > 0 {
                self.notes.push(format!(
                    "{missing} conversations of the {} have no summary to rank by yet; \
                     `verbatim reindex` makes them",
                    source.kind.name()
                ));
            }
            for score in scores {
                all.push(((place, score.conversation), score.terms));
                for (cosines, cosine) in cosines.iter_mut().zip(score.cosines) {
                    cosines.push(cosine);
                }
            }
        }
        for ((number, query), cosines) in queries.iter().enumerate().zip(&cosines) {
            let mut best = cosines.clone();
            best.sort_unstable_by(|a, b| b.total_cmp(a));
            best.retain(|cosine| *cosine > 0.0);
            best.truncate(MAX_TITLES);
            let share = match (query.terms.is_empty(), best.is_empty()) {
                (_, true) => 0.0,
                (true, false) => 1.0,
                (false, false) => VECTOR_SHARE * query.known,
            };
            let nearness = Nearness::among(&best);
            for ((_, scores), cosine) in all.iter_mut().zip(cosines) {
                let by_vector = if best.is_empty() { 0.0 } else { nearness.of(*cosine) };
                scores[number] = (1.0 - share) * scores[number] + share * by_vector;
            }
        }
        let least = |scores: Vec<f32>| scores.into_iter().fold(1.0, f32::min);
        let scored = all.into_iter().map(|(conversation, scores)| (conversation, least(scores)));
        Ok(scored.filter(|(_, score)| *score > 0.0 && !queries.is_empty()).collect())
    }
}

/// Returns what titles and summaries are compared with.
fn title_query(concept: &Concept, with_terms: bool) -> TitleQuery<'_> {
    // A term that no message has may occur in a title; it is rare.
    let rarest = concept.terms.iter().map(|term| term.weight).fold(1.0, f32::max);
    let is_known = |term: &String| concept.terms.iter().any(|known| known.term == *term);
    let others = Tokenizer::default().question(&concept.query.text).into_iter();
    let others = others.filter(|term| !is_known(term)).map(|term| (hash(&term), rarest));
    let known = concept.terms.iter().map(|term| (hash(&term.term), term.weight));
    let mut terms: Vec<(u32, f32)> = known.chain(others).filter(|_| with_terms).collect();
    let total: f32 = terms.iter().map(|(_, weight)| weight).sum();
    terms.iter_mut().for_each(|(_, weight)| *weight /= total.max(f32::MIN_POSITIVE));
    TitleQuery { terms, vector: concept.vector.as_deref(), known: concept.known }
}
