//! Scores of conversations by their titles and summaries.

use super::{
    scorer::{TitleQuery, TitleScores},
    searcher::Searcher,
};
use crate::{
    error::Result,
    source::{Scope, catalogue::Origins},
    summaries::{self, SummaryFeatures},
};
use verbatim_base::model::Stop;
use verbatim_text::summary::SUMMARY_WEIGHT;

pub(super) fn scores(
    searcher: &Searcher,
    scope: &Scope,
    origins: Option<&Origins>,
    queries: &[TitleQuery<'_>],
    stop: &Stop,
) -> Result<TitleScores> {
    let catalogue = &searcher.catalogue;
    let features = summaries::features(catalogue, &searcher.model, stop)?;
    let conversations = catalogue.within(scope, origins);
    let terms = queries.iter().map(|query| {
        let weight = |conversation: &u32| weight_in(query, &features, *conversation as usize);
        conversations.iter().map(weight).collect()
    });
    let terms = terms.collect();
    let cosines = queries.iter().map(|query| {
        let all = query.vector.map_or_else(Vec::new, |vector| features.vectors().scores(vector));
        let cosine = |conversation: &u32| all.get(*conversation as usize).copied();
        conversations.iter().map(|it| cosine(it).unwrap_or(f32::NEG_INFINITY)).collect()
    });
    let cosines = cosines.collect();
    Ok(TitleScores { conversations, terms, cosines, missing: features.missing })
}

/// Returns the weight of the query's terms that a conversation's title and summary contain.
fn weight_in(query: &TitleQuery<'_>, features: &SummaryFeatures, at: usize) -> f32 {
    let [of_title, of_summary] = features.terms(at);
    let weight = |(term, weight): &(u32, f32)| match () {
        () if of_title.contains(term) => *weight,
        () if of_summary.contains(term) => SUMMARY_WEIGHT * weight,
        () => 0.0,
    };
    query.terms.iter().map(weight).sum()
}
