//! The scorer of one source in a ranked search.

use std::{borrow::Cow, collections::BTreeMap};

use crate::{
    engine::{error::Error, source::scope::About},
    index::WeightedTerm,
    model::{Hit, Stop},
    text::query::Query,
};

/// A part of a question that is ranked by itself: all concepts must occur in a conversation.
#[derive(Debug)]
pub struct Concept {
    /// The parsed text: words, quoted phrases, excluded words.
    pub query: Query,
    /// The query's terms that occur somewhere, with their IDF.
    pub terms: Vec<WeightedTerm>,
    /// The average length of the messages that are ranked, in terms.
    pub average: f32,
    /// The query's vector, unless it is all zeros.
    pub vector: Option<Vec<f32>>,
    /// The share of the query that the model knows, from 0 to 1.
    pub known: f32,
    /// The author that the query names, if it names exactly one.
    pub author: Option<String>,
}

/// Term statistics of a source, within the conversation if a scope names one.
#[derive(Debug, Default)]
pub struct Statistics {
    /// How many messages have each term.
    pub frequencies: Vec<u32>,
    /// How many messages there are.
    pub messages: u64,
    /// The sum of the messages' lengths, in terms.
    pub tokens: u64,
}

/// The best messages of a source: (doc id, score), the best first.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Scores by BM25.
    pub by_terms: Vec<(u32, f32)>,
    /// Scores by the cosine of the vectors.
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
    /// The cosines among which nearness is measured.
    pub nearness: Nearness,
}

/// Places a cosine between the worst and the best of the best cosines: from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Nearness {
    first: f32,
    last: f32,
}

impl Nearness {
    /// Returns the nearness among cosines that are sorted, the highest first.
    pub fn among(best: &[f32]) -> Nearness {
        Nearness {
            first: best.first().copied().unwrap_or(1.0),
            last: best.last().copied().unwrap_or(0.0),
        }
    }

    /// Returns the nearness of a cosine. A single cosine has no range: it is the best there is.
    pub(crate) fn of(self, cosine: f32) -> f32 {
        let range = self.first - self.last;
        match range > 1e-6 {
            true => ((cosine - self.last) / range).max(0.0),
            false => f32::from(cosine >= self.first),
        }
    }
}

/// Ranks the messages of one source that are in a scope. Messages are known by their doc ids and
/// conversations by their numbers; both mean something to this scorer only.
pub trait Scorer: Send + Sync {
    /// How many messages have no term index yet, and how many have no vector.
    fn missing(&self) -> (u32, u32);

    /// Returns the names of the people who wrote messages, where roles are names.
    fn authors(&self) -> Vec<&str>;

    /// Returns the statistics of some terms.
    fn statistics(&self, terms: &[String]) -> Result<Statistics, Error>;

    /// Looks up some terms together, where each alone would be a request.
    fn look_up(&self, _: &[String]) -> Result<(), Error> {
        Ok(())
    }

    /// Returns whether a message of the source has a term, in the scope or not.
    fn has_term(&self, term: &str) -> Result<bool, Error>;

    /// Adds the terms that a term can be a slip of, with the numbers of messages that have them.
    fn corrections(&self, term: &str, found: &mut BTreeMap<String, u32>) -> Result<(), Error>;

    /// Opens a concept: finds out which messages its quoted and excluded phrases leave.
    fn open<'a>(
        &'a self,
        concept: &'a Concept,
        stop: &Stop,
    ) -> Result<Box<dyn ConceptScorer + 'a>, Error>;

    /// Returns the conversations in the scope, scored by their titles and summaries.
    fn titles(&self, queries: &[TitleQuery<'_>], stop: &Stop) -> Result<TitleScores, Error>;

    /// Returns the number of a message's conversation.
    fn conversation(&self, doc_id: u32) -> Option<u32>;

    /// Returns what is known of a conversation.
    fn about(&self, conversation: u32) -> About;

    /// Returns a message.
    fn hit(&self, doc_id: u32) -> Hit<'_>;

    /// Returns the text of a message.
    fn content(&self, doc_id: u32) -> Cow<'_, str>;

    /// Returns the bytes of a message's text, without reading it.
    fn content_length(&self, doc_id: u32) -> usize;

    /// Returns the role of a message.
    fn role(&self, doc_id: u32) -> &str;

    /// Returns the place of a message in the reading order of its conversation, from 0.
    fn turn(&self, doc_id: u32) -> Option<u32>;
}

/// Ranks the messages of one source by one concept.
pub trait ConceptScorer {
    /// Returns the best messages, at most `depth` by each measure.
    fn candidates(&self, depth: usize, stop: &Stop) -> Result<Candidates, Error>;

    /// Returns the scores, above 0, of some candidates and of their neighbouring messages.
    fn scores(
        &self,
        candidates: &mut dyn Iterator<Item = u32>,
        scale: &Scale,
        stop: &Stop,
    ) -> Result<Vec<(u32, f32)>, Error>;
}

/// The terms and the vector that titles and summaries are compared with.
#[derive(Debug)]
pub struct TitleQuery<'a> {
    /// Hashes of the query's terms with their weights, whose sum is 1.
    pub terms: Vec<(u32, f32)>,
    /// The query's vector.
    pub vector: Option<&'a [f32]>,
    /// The share of the query that the model knows.
    pub known: f32,
}

/// How the conversations in a scope compare with each query by their titles and summaries.
#[derive(Debug, Default)]
pub struct TitleScores {
    /// The conversations' numbers.
    pub conversations: Vec<u32>,
    /// By query, then by conversation: the weight of the terms that its title and summary have.
    pub terms: Vec<Vec<f32>>,
    /// By query, then by conversation: the cosine of its vector; minus infinity without vectors.
    pub cosines: Vec<Vec<f32>>,
    /// How many conversations of the source have no summary yet.
    pub missing: usize,
}
