//! The formula for scores of messages: terms, vectors, neighbouring messages and authors.
//!
//! ```text
//! B(i) = BM25(i) / the best BM25;   V(i) = nearness of the mean of the cosines of i by all models
//! c = the largest share of the query's IDF that the terms of a message cover / 0.35, at most 1
//! f(i) = (1 - x) B(i) + x V(i);   x = 1 - (1 - v) c²;   v = 0.3 for the models of the program
//! g(i) = f(i) + context(i) (0.4 f(i-1) + 0.2 f(i-2) + 0.15 f(i+1) + 0.1 f(i+2))
//! score(i) = g(i) + 0.15 if the query names exactly one author, who wrote i
//! ```
//!
//! The best K messages by terms and the best K by vectors are scored, with their neighbours in the
//! conversation. The longer a message, the smaller the share of its context, because a long message says
//! enough itself. The less the words of the best message cover, the less they say, so that a message which
//! shares no word with the query is found by its meaning. v is smaller if a model does not know all words of
//! the query, and x is 0 if no model knows its language.

use std::{collections::HashMap, ops::Range};

use super::scorer::Concept;
use verbatim_base::model::Instant;
use verbatim_index::Norms;
use verbatim_text::words::Tokenizer;

/// Context weights: (offset of the neighbour, share of its score that is added).
const CONTEXT: [(i64, f32); 4] = [(-1, 0.4), (-2, 0.2), (1, 0.15), (2, 0.1)];

/// The number of messages before a candidate, and of those after it, that are scored with it.
const CONTEXT_REACH: usize = 2;

/// The length, in terms, up to which a message gets the full share of its context: about 60 words.
const SHORT_MESSAGE: f32 = 32.0;

/// Bonus for messages of the author whom the query names.
const AUTHOR_BONUS: f32 = 0.15;

/// Bonus if the title contains all query terms. If it contains only some, it gets a share of the bonus.
const TITLE_BONUS: f32 = 0.05;

/// Bonus of the newest message.
const RECENCY_BONUS: f32 = 0.01;

/// Age in seconds at which the recency bonus is half: half a year.
const RECENCY_HALF_LIFE: f32 = 182.0 * 86_400.0;

/// The highest possible sum, which becomes the score 1.
const MAX_SCORE: f32 = 1.0 + 0.4 + 0.2 + 0.15 + 0.1 + AUTHOR_BONUS + TITLE_BONUS + RECENCY_BONUS;

/// Average lengths, in terms, below which messages count as short and above which they count as long:
/// about 25 and 180 words.
const SHORT_AVERAGE: f32 = 15.0;
const LONG_AVERAGE: f32 = 100.0;

/// Returns the parameters of BM25 for messages of an average length.
///
/// Lengths of short messages differ by chance, but long answers are long because they say more.
pub(super) fn norms(average: f32) -> Norms {
    // The position of the average between short and long, on a logarithmic scale.
    let share = (average / SHORT_AVERAGE).ln() / (LONG_AVERAGE / SHORT_AVERAGE).ln();
    let share = share.clamp(0.0, 1.0);
    Norms { k1: 0.9 + 0.3 * share, b: 0.4 + 0.35 * share, average }
}

/// Parameters of BM25 with which a score is the sum of the weights of the terms that a message contains.
pub(super) const PRESENCE: Norms = Norms { k1: 0.0, b: 0.0, average: 1.0 };

/// Returns the inverse document frequency of a term that `frequency` of so many messages contain.
pub fn idf(messages: f32, frequency: f32) -> f32 {
    (1.0 + (messages - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}

/// The score of a message that has the quoted text, and no word and no meaning of the question.
pub(super) const LEAST: f32 = 1e-6;

/// Scores of messages by doc id.
pub(super) type Scores = HashMap<u32, f32>;

/// Keeps the best scores, best first. Among equal scores, smaller numbers come first: they are newer.
pub(super) fn keep_best(scores: &mut Vec<(u32, f32)>, most: usize) {
    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if scores.len() > most {
        scores.select_nth_unstable_by(most, order);
        scores.truncate(most);
    }
    scores.sort_unstable_by(order);
}

/// Returns the turns that are scored with the one at `turn` in a conversation of `turns`.
pub(super) fn context(turn: u32, turns: usize) -> Range<usize> {
    let turn = turn as usize;
    turn.saturating_sub(CONTEXT_REACH)..turns.min(turn + CONTEXT_REACH + 1)
}

/// What the score of a message depends on, apart from the messages' own scores.
pub(super) struct Surroundings<'a> {
    pub(super) conversation: u32,
    pub(super) title: &'a str,
    /// The place in the reading order of the conversation, from 0.
    pub(super) turn: u32,
    /// Length in terms.
    pub(super) length: u32,
    pub(super) role: &'a str,
    pub(super) time: Option<Instant>,
}

pub(super) struct Formula<'a> {
    concept: &'a Concept,
    /// `f` in the formula, by doc id; 0 for messages that are not in it.
    own: &'a Scores,
    /// The time of the newest message of all.
    newest: Option<Instant>,
    /// The sum of the terms' weights, above 0.
    total: f32,
    tokenizer: Tokenizer,
    /// The shares of the concept's weight in titles, by conversation number.
    title_shares: HashMap<u32, f32>,
}

impl<'a> Formula<'a> {
    pub(super) fn new(concept: &'a Concept, own: &'a Scores, newest: Option<Instant>) -> Self {
        let total: f32 = concept.terms.iter().map(|term| term.weight).sum();
        let total = total.max(f32::MIN_POSITIVE);
        let tokenizer = Tokenizer::default();
        Formula { concept, own, newest, total, tokenizer, title_shares: HashMap::new() }
    }

    /// Returns the score of a message with context and bonuses, from 0 to 1; `None` if `f` and the context
    /// are 0. `doc_id_at` returns the doc id of a turn in the same conversation.
    pub(super) fn score(
        &mut self,
        doc_id: u32,
        message: &Surroundings<'_>,
        doc_id_at: &dyn Fn(usize) -> Option<u32>,
    ) -> Option<f32> {
        let length = message.length.max(1) as f32;
        let context = (SHORT_MESSAGE / length).min(1.0);
        let mut score = self.own.get(&doc_id).copied().unwrap_or(0.0);
        for (offset, share) in CONTEXT {
            let turn = usize::try_from(i64::from(message.turn) + offset).ok();
            let neighbour = turn.and_then(doc_id_at).and_then(|doc_id| self.own.get(&doc_id));
            score += context * share * neighbour.copied().unwrap_or(0.0);
        }
        if score <= 0.0 {
            return None;
        }
        if self.concept.author.as_deref() == Some(message.role) {
            score += AUTHOR_BONUS;
        }
        score += TITLE_BONUS * self.title_share(message.conversation, message.title);
        if let Some((newest, time)) = self.newest.zip(message.time) {
            let age = (newest.seconds.saturating_sub(time.seconds)).max(0) as f32;
            score += RECENCY_BONUS * (-age / RECENCY_HALF_LIFE).exp2();
        }
        Some((score / MAX_SCORE).clamp(0.0, 1.0))
    }

    fn title_share(&mut self, conversation: u32, title: &str) -> f32 {
        *self.title_shares.entry(conversation).or_insert_with(|| {
            let of_title = self.tokenizer.question(title);
            let found = self.concept.terms.iter().filter(|term| of_title.contains(&term.term));
            found.map(|term| term.weight).sum::<f32>() / self.total
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_counts_more_where_messages_are_long() {
        let [short, middle, long] = [9.0, 38.7, 160.0].map(norms);
        assert_eq!((short.k1, short.b), (0.9, 0.4));
        assert_eq!((long.k1, long.b), (1.2, 0.75));
        assert!((middle.k1 - 1.05).abs() < 0.01 && (middle.b - 0.575).abs() < 0.01);
    }
}
