//! Scores of conversations by their titles and summaries.
//!
//! ```text
//! T(c) = the share of the query's weight in the title, plus 0.8 of the share only in the summary
//! V(c) = nearness of the cosine of c
//! score(c) = (1 - v) T(c) + v V(c);   v = 0.4; 0 by terms alone, 1 by vectors alone
//! ```
//!
//! v is smaller if the model does not know all words of the query.

use std::collections::HashMap;

use super::{find::ScoredMessages, fuse::ConversationPlace, question::Mode};
use crate::{
    error::Result,
    scoring::{Concept, Nearness, TitleQuery},
    source::{Lacking, Note},
};
use verbatim_text::{summary::term_hash, words::Tokenizer};

/// The share of vectors in the score. Terms have the rest.
const VECTOR_SHARE: f32 = 0.4;

/// Number of nearest conversations that define the scale of nearness.
const MAX_TITLES: usize = 100;

/// The scores, between 0 and 1, of the conversations whose titles and summaries answer every concept.
#[derive(Default)]
pub(super) struct ScoredTitles {
    pub(super) scores: HashMap<ConversationPlace, f32>,
    pub(super) notes: Vec<Note>,
}

pub(super) fn scored(found: &ScoredMessages<'_>) -> Result<ScoredTitles> {
    let ranker = found.opened.scoped.ranker;
    let with_terms = ranker.question.mode != Mode::Vector;
    let queries: Vec<TitleQuery<'_>> =
        found.concepts.iter().map(|concept| title_query(concept, with_terms)).collect();
    let mut conversations: Vec<ConversationPlace> = Vec::new();
    // The outer vectors are by concept, the inner ones by conversation.
    let mut scores: Vec<Vec<f32>> = vec![Vec::new(); queries.len()];
    let mut cosines: Vec<Vec<f32>> = vec![Vec::new(); queries.len()];
    let mut notes = Vec::new();
    for (place, source) in found.opened.ranked.iter().enumerate() {
        let titles = source.scorer.titles(&queries, ranker.stop)?;
        if titles.missing > 0 {
            let (source, count) = (source.kind, titles.missing as u64);
            notes.push(Note::NotEmbedded { source, count, what: Lacking::Summaries });
        }
        conversations.extend(titles.conversations.into_iter().map(|number| (place, number)));
        scores.iter_mut().zip(titles.terms).for_each(|(all, here)| all.extend(here));
        cosines.iter_mut().zip(titles.cosines).for_each(|(all, here)| all.extend(here));
    }
    for ((query, scores), cosines) in queries.iter().zip(&mut scores).zip(&cosines) {
        add_vectors(query, scores, cosines);
    }
    let least = |at: usize| scores.iter().map(|scores| scores[at]).fold(1.0, f32::min);
    let scored = conversations.into_iter().enumerate().map(|(at, key)| (key, least(at)));
    let scored = scored.filter(|(_, score)| *score > 0.0 && !queries.is_empty());
    Ok(ScoredTitles { scores: scored.collect(), notes })
}

/// Combines the scores by terms with the cosines, by the formula at the top of this file.
fn add_vectors(query: &TitleQuery<'_>, scores: &mut [f32], cosines: &[f32]) {
    let mut best: Vec<f32> = cosines.iter().copied().filter(|cosine| *cosine > 0.0).collect();
    if best.is_empty() {
        return;
    }
    if best.len() > MAX_TITLES {
        best.select_nth_unstable_by(MAX_TITLES - 1, |a, b| b.total_cmp(a));
        best.truncate(MAX_TITLES);
    }
    best.sort_unstable_by(|a, b| b.total_cmp(a));
    let share = if query.terms.is_empty() { 1.0 } else { VECTOR_SHARE * query.known };
    let nearness = Nearness::among(&best);
    for (score, cosine) in scores.iter_mut().zip(cosines) {
        *score = (1.0 - share) * *score + share * nearness.normalise(*cosine);
    }
}

/// Returns the terms and the vector with which titles and summaries are compared.
fn title_query(concept: &Concept, with_terms: bool) -> TitleQuery<'_> {
    // A term that occurs in no message may occur in a title, and then it is rare.
    let rarest = concept.terms.iter().map(|term| term.weight).fold(1.0, f32::max);
    let is_known = |term: &String| concept.terms.iter().any(|known| known.term == *term);
    let others = Tokenizer::default().question(&concept.query.text).into_iter();
    let others = others.filter(|term| !is_known(term)).map(|term| (term_hash(&term), rarest));
    let known = concept.terms.iter().map(|term| (term_hash(&term.term), term.weight));
    let mut terms: Vec<(u32, f32)> = known.chain(others).filter(|_| with_terms).collect();
    let total: f32 = terms.iter().map(|(_, weight)| weight).sum();
    terms.iter_mut().for_each(|(_, weight)| *weight /= total.max(f32::MIN_POSITIVE));
    TitleQuery { terms, vector: concept.vector.as_deref(), known: concept.known }
}
