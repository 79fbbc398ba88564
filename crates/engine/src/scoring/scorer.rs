//! The scorer of one source in a ranked search.

use std::{borrow::Cow, collections::BTreeMap};

use crate::{error::Result, source::About};
use verbatim_base::{call::Call, model::Hit};
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
    /// The sum of the IDFs of all terms of the query, also of those that occur in no message.
    pub weight: f32,
    /// The average length of the messages that are ranked, in terms.
    pub average: f32,
    /// The query's vector by the model of all messages; `None` if it is all zeros.
    pub vector: Option<Vec<f32>>,
    /// Degree to which the model knows the query, from 0 to 1. The vector's share is multiplied by it.
    pub known: f32,
    /// The query's vector by the encoder, whose vectors of messages may still be in the making.
    pub encoded: Option<Vec<f32>>,
    /// Whether the encoder has made vectors of messages.
    pub is_encoded: bool,
    /// Degree to which the encoder knows the query, from 0 to 1.
    pub encoded_known: f32,
    /// The author that the query names; `None` if it names several or none.
    pub author: Option<String>,
}

impl Concept {
    /// Returns the concept of a text, before terms, vectors and an author are found for it.
    pub(crate) fn new(text: &str) -> Concept {
        Concept {
            query: Query::parse(text),
            terms: Vec::new(),
            weight: 0.0,
            average: 1.0,
            vector: None,
            known: 1.0,
            encoded: None,
            is_encoded: false,
            encoded_known: 1.0,
            author: None,
        }
    }

    pub(crate) fn has_vector(&self) -> bool {
        self.vector.is_some() || self.encoded.is_some()
    }

    /// Returns the mean degree to which the models know the query.
    pub(crate) fn known_to_models(&self) -> f32 {
        if self.is_encoded { f32::midpoint(self.known, self.encoded_known) } else { self.known }
    }

    /// Returns the degree to which a model that has made a vector of the query knows the query.
    pub(crate) fn known_to_any(&self) -> f32 {
        let by_model = self.vector.as_ref().map_or(0.0, |_| self.known);
        by_model.max(self.encoded.as_ref().map_or(0.0, |_| self.encoded_known))
    }
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

/// The best messages of a source by their terms.
#[derive(Debug, Default)]
pub struct TermCandidates {
    /// The best messages by BM25: (doc id, score), the best first.
    pub messages: Vec<(u32, f32)>,
    /// The largest sum of the IDFs of the terms that one of these messages contains.
    pub covered: f32,
}

/// The best messages of a source by their vectors: (doc id, similarity), the best first.
#[derive(Debug, Default)]
pub struct VectorCandidates {
    /// The best messages.
    pub messages: Vec<(u32, f32)>,
    /// The best messages that the encoder has not read yet, by the other vectors.
    pub not_encoded: Vec<(u32, f32)>,
}

/// The weights of the cosines in the similarity of a message to a query.
#[derive(Clone, Copy, Debug)]
pub struct VectorWeights {
    /// The weight of the model of all messages.
    pub model: f32,
    /// The weight of the encoder.
    pub encoder: f32,
}

/// The terms of a query that conversations contain, spread over their messages and in their titles.
#[derive(Debug, Default)]
pub struct Coverage {
    /// The best conversations with the sum of the IDFs of the terms that each contains.
    pub conversations: Vec<(u32, f32)>,
    /// The messages of these conversations that contain a term.
    pub doc_ids: Vec<u32>,
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
    /// The weights of the cosines in a similarity.
    pub vectors: VectorWeights,
    /// The scale that turns a similarity into nearness.
    pub nearness: Nearness,
    /// The scale for messages that the encoder has not read yet.
    pub nearness_not_encoded: Nearness,
}

/// The similarity of a message to a query.
#[derive(Clone, Copy, Debug)]
pub struct Similarity {
    /// The mean of the cosines by all models.
    pub cosine: f32,
    /// Whether the encoder has not read the message yet.
    pub is_partial: bool,
}

impl Scale {
    pub(crate) fn nearness_of(&self, similarity: Similarity) -> f32 {
        let scale = if similarity.is_partial { self.nearness_not_encoded } else { self.nearness };
        scale.normalise(similarity.cosine)
    }
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
    pub(crate) fn normalise(self, cosine: f32) -> f32 {
        let range = self.first - self.last;
        if range > 1e-6 {
            ((cosine - self.last) / range).max(0.0)
        } else {
            f32::from(cosine >= self.first)
        }
    }
}

/// A scorer of the messages of one source in a scope. It identifies messages by doc ids and
/// conversations by numbers. Both are valid only for this scorer.
pub trait Scorer: Send + Sync {
    /// Returns the number of messages without a term index, and the number without a vector.
    fn missing(&self) -> (u32, u32);

    /// Returns the number of messages whose vectors by the encoder are made, and the number of those that get
    /// one.
    fn encoded(&self) -> (u32, u32) {
        (0, 0)
    }

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

    /// Returns which of some terms a message in the scope contains.
    fn has_in_scope(&self, terms: &[String]) -> Result<Vec<bool>>;

    /// Adds the terms of which `term` may be a misspelling, with the numbers of messages that contain them.
    fn corrections(&self, term: &str, found: &mut BTreeMap<String, u32>) -> Result<()>;

    /// Returns the messages in the scope that a search for a phrase finds, the newest first, at most `most`.
    fn containing(&self, phrase: &PhraseSearch, most: usize, call: &Call) -> Result<Vec<u32>>;

    /// Opens a concept, and applies its quoted and excluded phrases.
    fn open<'a>(&'a self, concept: &'a Concept, call: &Call)
    -> Result<Box<dyn ConceptScorer + 'a>>;

    /// Returns the conversations in the scope, scored by their titles and summaries.
    fn titles(&self, queries: &[TitleQuery], call: &Call) -> Result<TitleScores>;

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
    /// Returns the best messages by BM25, at most `depth`.
    fn by_terms(&self, depth: usize, call: &Call) -> Result<TermCandidates>;

    /// Returns the best messages by vectors, at most `depth` in each list.
    fn by_vector(
        &self,
        weights: VectorWeights,
        depth: usize,
        call: &Call,
    ) -> Result<VectorCandidates>;

    /// Returns the conversations that contain most of the query's terms, not necessarily in one message; none
    /// if the source cannot tell.
    fn coverage(&self, _: &Call) -> Result<Coverage> {
        Ok(Coverage::default())
    }

    /// Returns the scores, above 0, of some candidates and of their neighbouring messages.
    fn scores(
        &self,
        candidates: &mut dyn Iterator<Item = u32>,
        scale: &Scale,
        call: &Call,
    ) -> Result<Vec<(u32, f32)>>;
}

/// The terms that titles and summaries are compared with: their hashes, and their weights, whose sum is 1.
pub type TitleQuery = Vec<(u32, f32)>;

/// Scores of the titles and summaries of conversations for each query.
#[derive(Debug, Default)]
pub struct TitleScores {
    /// The numbers of the conversations.
    pub conversations: Vec<u32>,
    /// By query, then by conversation: the weight of the query's terms that the title and summary contain.
    pub terms: Vec<Vec<f32>>,
}
