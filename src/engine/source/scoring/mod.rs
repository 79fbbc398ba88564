//! One source's part in a ranked search: term statistics, candidates and scores.
//!
//! Scores of several sources can be compared because they are computed in two steps, as in a
//! distributed search engine: every source first gives its statistics and its best candidates;
//! with the sums and the best values of all sources, each then scores its own messages.

mod clustered;
mod filter;
mod formula;
mod score;
mod scorer;
mod searcher;
mod titles;

pub(super) use clustered::ClusterScorer;
pub(crate) use formula::longness;
pub(super) use score::IndexedScorer;
pub use scorer::{
    Candidates, Concept, ConceptScorer, Nearness, Scale, Scorer, Statistics, TitleQuery,
    TitleScores,
};
pub(crate) use searcher::Searcher;
