//! Scores of conversations by their titles and summaries.
//!
//! The score is the share of the query's weight in the title, plus 0.8 of the share only in the summary.

use std::collections::HashMap;

use super::{find::ScoredMessages, fuse::ConversationPlace};
use crate::error::Result;
use crate::scoring::{Concept, TitleQuery};
use verbatim_text::{summary::term_hash, words::Tokenizer};

/// Returns the scores, between 0 and 1, of the conversations whose titles and summaries answer every concept.
pub(super) fn scored(found: &ScoredMessages<'_>) -> Result<HashMap<ConversationPlace, f32>> {
    let queries: Vec<TitleQuery> = found.concepts.iter().map(title_query).collect();
    let mut all = HashMap::new();
    if queries.is_empty() {
        return Ok(all);
    }
    let call = found.opened.scoped.ranker.call;
    for (place, source) in found.opened.ranked.iter().enumerate() {
        let titles = source.scorer.titles(&queries, call)?;
        for (at, conversation) in titles.conversations.into_iter().enumerate() {
            let score = titles.terms.iter().map(|scores| scores[at]).fold(1.0, f32::min);
            if score > 0.0 {
                all.insert((place, conversation), score);
            }
        }
    }
    Ok(all)
}

/// Returns the terms with which titles and summaries are compared.
fn title_query(concept: &Concept) -> TitleQuery {
    // A term that occurs in no message may occur in a title, and then it is rare.
    let rarest = concept.terms.iter().map(|term| term.weight).fold(1.0, f32::max);
    let terms = concept.terms.iter().map(|term| (term_hash(&term.term), term.weight));
    let mut terms: TitleQuery = terms.collect();
    for term in Tokenizer::default().question(&concept.query.text) {
        let hash = term_hash(&term);
        if terms.iter().all(|(known, _)| *known != hash) {
            terms.push((hash, rarest));
        }
    }
    let total: f32 = terms.iter().map(|(_, weight)| weight).sum();
    terms.iter_mut().for_each(|(_, weight)| *weight /= total.max(f32::MIN_POSITIVE));
    terms
}
