//! Scores of conversations by their titles and summaries.

use super::{
    scorer::{TitleQuery, TitleScores},
    searcher::Searcher,
};
use crate::{
    error::Result,
    source::{
        Scope,
        catalogue::{Origins, TitleTerms},
    },
};
use verbatim_base::call::Call;
use verbatim_text::summary::SUMMARY_WEIGHT;

pub(super) fn scores(
    searcher: &Searcher,
    scope: &Scope,
    origins: Option<&Origins>,
    queries: &[TitleQuery],
    call: &Call,
) -> Result<TitleScores> {
    let titles = searcher.catalogue.title_terms(&call.stop)?;
    let conversations = searcher.catalogue.within(scope, origins);
    let terms = queries
        .iter()
        .map(|query| {
            conversations.iter().map(|it| weight_in(query, &titles[*it as usize])).collect()
        })
        .collect();
    Ok(TitleScores { conversations, terms })
}

/// Returns the weight of the query's terms that a conversation's title and summary contain.
fn weight_in(query: &TitleQuery, titles: &TitleTerms) -> f32 {
    query
        .iter()
        .map(|(term, weight)| {
            if titles.of_title.contains(term) {
                *weight
            } else if titles.of_summary.contains(term) {
                SUMMARY_WEIGHT * weight
            } else {
                0.0
            }
        })
        .sum()
}
