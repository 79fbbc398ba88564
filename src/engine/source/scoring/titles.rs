//! Scores of conversations by their titles and summaries.

use super::{
    scorer::{ConversationScore, TitleQuery},
    searcher::Searcher,
};
use crate::{
    engine::{
        error::Error,
        source::{
            catalogue::Origins,
            scope::Scope,
            summaries::{self, SummaryFeatures},
        },
    },
    model::Stop,
};

/// The weight of a term that occurs in the summary and not in the title.
const SUMMARY_WEIGHT: f32 = 0.8;

/// Returns the conversations in a scope with their scores, and how many have no summary yet.
pub(super) fn scores(
    searcher: &Searcher,
    scope: &Scope,
    origins: Option<&Origins>,
    queries: &[TitleQuery<'_>],
    stop: &Stop,
) -> Result<(Vec<ConversationScore>, usize), Error> {
    let catalogue = &searcher.catalogue;
    let features = summaries::features(catalogue, &searcher.model, stop)?;
    let cosines: Vec<Vec<f32>> = queries
        .iter()
        .map(|query| query.vector.map_or_else(Vec::new, |it| features.vectors().scores(it)))
        .collect();
    let score = |conversation: u32| {
        let at = conversation as usize;
        let cosine = |cosines: &Vec<f32>| cosines.get(at).copied().unwrap_or(f32::NEG_INFINITY);
        ConversationScore {
            conversation,
            terms: queries.iter().map(|query| weight_in(query, &features, at)).collect(),
            cosines: cosines.iter().map(cosine).collect(),
        }
    };
    let found = catalogue.within(scope, origins).into_iter().map(score).collect();
    Ok((found, features.missing))
}

/// Returns the weight of the terms that a conversation's title and summary have.
fn weight_in(query: &TitleQuery<'_>, features: &SummaryFeatures, at: usize) -> f32 {
    let [of_title, of_summary] = features.terms(at);
    let weight = |(term, weight): &(u32, f32)| match () {
        () if of_title.contains(term) => *weight,
        () if of_summary.contains(term) => SUMMARY_WEIGHT * weight,
        () => 0.0,
    };
    query.terms.iter().map(weight).sum()
}
