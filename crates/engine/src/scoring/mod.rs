//! The scorer of one source in a ranked search: term statistics, candidates and scores.
//!
//! Scores of several sources are comparable because they are computed in two steps, as in a distributed
//! search engine. First, every source gives its statistics and best candidates. Then every source scores
//! its messages with the sums of the statistics and the best values of all sources.

#[cfg(feature = "cluster")]
mod clustered;
mod filter;
mod formula;
mod score;
mod scorer;
mod searcher;

#[cfg(feature = "cluster")]
pub(crate) use clustered::ClusterScorer;
pub use formula::idf;
pub(crate) use score::IndexedScorer;
pub use scorer::{
    Concept, ConceptScorer, Coverage, Nearness, Scale, Scorer, Similarity, Statistics,
    TermCandidates, TitleQuery, TitleScores, VectorCandidates, VectorWeights,
};
pub(crate) use searcher::Searcher;
