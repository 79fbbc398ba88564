//! The scorer of one source in a ranked search.

use std::{borrow::Cow, collections::BTreeMap};

use crate::{error::Result, source::scope::About};
use verbatim_base::model::{Hit, Stop};
use verbatim_index::WeightedTerm;
use verbatim_text::query::PhraseSearch;
use verbatim_text::query::Query;

/// A part of a question that is ranked separately. A conversation must contain all concepts.
#[derive(Debug)]
pub struct Concept {
    /// The parsed text: words, quoted phrases, excluded words.
    pub query: Query,
    /// The query's terms that occur in a message, with their IDF.
    pub terms: Vec<WeightedTerm>,
    /// The average length of the messages that are ranked, in terms.
    pub average: f32,
    /// The query's vector; `None` if it is all zeros.
    pub vector: Option<Vec<f32>>,
    /// Degree to which the model knows the query, from 0 to 1. The vector's share is multiplied by it.
    pub known: f32,
    /// The author that the query names; `None` if it names several or none.
    pub author: Option<String>,
}

/// Term statistics of a source. If the scope names a conversation, only its messages count.
#[derive(Debug, Default)]
pub struct Statistics {
    /// The number of messages that contain each term.
    pub frequencies: Vec<u32>,
    /// The number of messages.
    pub messages: u64,
    /// The sum of the messages' lengths, in terms.
    pub tokens: u64,
}

/// The best messages of a source: (doc id, score), the best first.
#[derive(Debug, Default)]
pub struct Candidates {
    /// The best messages by BM25.
    pub by_terms: Vec<(u32, f32)>,
    /// The best messages by the cosine of the vectors.
    pub by_vector: Vec<(u32, f32)>,
    /// The reason why the vectors could not be compared.
    pub vector_error: Option<String>,
}

/// The scale that makes the scores of all sources comparable.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The weight of BM25 in a score.
    pub term_share: f32,
    /// The weight of the cosine in a score.
    pub vector_share: f32,
    /// The best BM25 score of all candidates.
    pub best_terms: f32,
    /// The scale that turns a cosine into nearness.
    pub nearness: Nearness,
}

/// A linear scale for cosines. The worst of the best cosines becomes 0, the best becomes 1.
#[derive(Clone, Copy, Debug)]
pub struct Nearness {
    first: f32,
    last: f32,
}

impl Nearness {
    /// Returns the scale for the best cosines, which are sorted, highest first.
    pub fn among(best: &[f32]) -> Nearness {
        Nearness {
            first: best.first().copied().unwrap_or(1.0),
            last: best.last().copied().unwrap_or(0.0),
        }
    }

    /// Returns the nearness of a cosine. If the scale has no range, the best cosine becomes 1.
    pub(crate) fn of(self, cosine: f32) -> f32 {
        let range = self.first - self.last;
        match range > 1e-6 {
            true => ((cosine - self.last) / range).max(0.0),
            false => f32::from(cosine >= self.first),
        }
    }
}

/// A scorer of the messages of one source in a scope. It identifies messages by doc ids and
/// conversations by numbers. Both are valid only for this scorer.
pub trait Scorer: Send + Sync {
    /// Returns the number of messages without a term index, and the number without a vector.
    fn missing(&self) -> (u32, u32);

    /// Returns the names of the people who wrote messages, if roles are names.
    fn authors(&self) -> Vec<&str>;

    /// Returns the statistics of some terms.
    fn statistics(&self, terms: &[String]) -> Result<Statistics>;

    /// Looks up several terms in one request, for stores that would need a request per term.
    fn look_up(&self, _: &[String]) -> Result<()> {
        Ok(())
    }

    /// Returns whether a message of the source contains a term. The message may be outside the scope.
    fn has_term(&self, term: &str) -> Result<bool>;

    /// Adds the terms of which `term` may be a misspelling, with the numbers of messages that contain them.
    fn corrections(&self, term: &str, found: &mut BTreeMap<String, u32>) -> Result<()>;

    /// Returns the messages in the scope that a search for a phrase finds, the newest first, at most `most`.
    fn containing(&self, phrase: &PhraseSearch, most: usize, stop: &Stop) -> Result<Vec<u32>>;

    /// Opens a concept, and applies its quoted and excluded phrases.
    fn open<'a>(&'a self, concept: &'a Concept, stop: &Stop)
    -> Result<Box<dyn ConceptScorer + 'a>>;

    /// Returns the conversations in the scope, scored by their titles and summaries.
    fn titles(&self, queries: &[TitleQuery<'_>], stop: &Stop) -> Result<TitleScores>;

    /// Returns the number of a message's conversation.
    fn conversation(&self, doc_id: u32) -> Option<u32>;

    /// Returns the description of a conversation.
    fn about(&self, conversation: u32) -> About;

    /// Returns the message with a doc id.
    fn hit(&self, doc_id: u32) -> Hit<'_>;

    /// Returns the text of a message.
    fn content(&self, doc_id: u32) -> Cow<'_, str>;

    /// Returns the length of a message's text in bytes, without reading the text.
    fn content_length(&self, doc_id: u32) -> usize;

    /// Returns the role of a message.
    fn role(&self, doc_id: u32) -> &str;

    /// Returns the place of a message in the reading order of its conversation, from 0.
    fn turn(&self, doc_id: u32) -> Option<u32>;
}

/// A scorer of the messages of one source for one concept.
pub trait ConceptScorer {
    /// Returns the best messages, at most `depth` by terms and at most `depth` by vectors.
    fn candidates(&self, depth: usize, stop: &Stop) -> Result<Candidates>;

    /// Returns the scores, above 0, of some candidates and of their neighbouring messages.
    fn scores(
        &self,
        candidates: &mut dyn Iterator<Item = u32>,
        scale: &Scale,
        stop: &Stop,
    ) -> Result<Vec<(u32, f32)>>;
}

/// The terms and the vector that titles and summaries are compared with.
#[derive(Debug)]
pub struct TitleQuery<'a> {
    /// Hashes of the query's terms with their weights, whose sum is 1.
    pub terms: Vec<(u32, f32)>,
    /// The query's vector.
    pub vector: Option<&'a [f32]>,
    /// Degree to which the model knows the query, from 0 to 1.
    pub known: f32,
}

/// Scores of the titles and summaries of conversations for each query.
#[derive(Debug, Default)]
pub struct TitleScores {
    /// The numbers of the conversations.
    pub conversations: Vec<u32>,
    /// By query, then by conversation: the weight of the query's terms that the title and summary contain.
    pub terms: Vec<Vec<f32>>,
    /// By query, then by conversation: the cosine of the vectors; minus infinity without a vector.
    pub cosines: Vec<Vec<f32>>,
    /// The number of conversations of the source without a summary.
    pub missing: usize,
}
