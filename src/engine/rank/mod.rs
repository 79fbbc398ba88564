//! Ranked search: messages and conversations by how well they answer, best first.

mod answer;
mod concept;
mod fuse;
mod passage;
mod prepare;
mod substring;
mod titles;

use super::{
    error::Error,
    source::{About, Scope, SourceKind, Sources},
};
use crate::{
    model::{Hit, Stop},
    text::snippet,
};

/// How to rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only messages that contain the text as `LIKE` finds it, the newest first.
    Exact,
    /// By terms: BM25.
    Text,
    /// By meaning: vectors.
    Vector,
    /// By terms and vectors, fused.
    #[default]
    Both,
}

/// What of a conversation is ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fields {
    /// Its messages.
    #[default]
    Messages,
    /// Its summary and its title.
    Summaries,
    /// All of these.
    Both,
}

/// A question to rank by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// What to look for; every concept must be found in a conversation.
    pub concepts: Vec<String>,
    /// How to rank.
    pub mode: Mode,
    /// What is ranked.
    pub fields: Fields,
    /// Where to look.
    pub scope: Scope,
    /// The most matches to return.
    pub limit: usize,
}

/// A message that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Where it is from.
    pub source: SourceKind,
    /// The message.
    pub hit: Hit<'static>,
    /// How well it answers, from 0 to 1; falls from the first match to the last.
    pub score: f64,
    /// The line of the message in its transcript's file or, in an export, its number in its
    /// conversation, from 1.
    pub line: u32,
    /// The part of its text that answers best, about 300 characters.
    pub passage: String,
    /// How many messages have this text, this message included; it stands for all of them.
    pub copies: u32,
}

/// A conversation that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationMatch {
    /// What is known of it.
    pub about: About,
    /// How well it answers, from 0 to 1; falls from the first match to the last.
    pub score: f64,
    /// Its messages that answer best, the best first.
    pub matches: Vec<Match>,
}

/// A ranked answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking<T> {
    /// The best first.
    pub items: Vec<T>,
    /// What limits the answer, a sentence each; for example that a provider did not answer.
    pub notes: Vec<String>,
}

/// Answers one question.
pub(crate) struct Ranker<'a> {
    sources: &'a Sources,
    question: &'a Question,
    stop: &'a Stop,
    notes: Vec<String>,
}

impl<'a> Ranker<'a> {
    pub(crate) fn new(sources: &'a Sources, question: &'a Question, stop: &'a Stop) -> Ranker<'a> {
        Ranker { sources, question, stop, notes: Vec::new() }
    }

    /// Returns the concepts of the question that are not empty.
    fn concepts(&self) -> Vec<&'a str> {
        let concepts = self.question.concepts.iter().map(|concept| snippet::trim(concept));
        concepts.filter(|concept| !concept.is_empty()).collect()
    }

    /// Returns the messages that answer best. A text that several messages have is returned once,
    /// with their number.
    pub(crate) fn messages(mut self) -> Result<Ranking<Match>, Error> {
        let items = match self.find()? {
            Some(found) => self.matches(&found, &found.scored, self.question.limit),
            None => return self.messages_by_substring(),
        };
        Ok(Ranking { items, notes: self.notes })
    }

    /// Returns the ids of the messages that answer best, duplicate texts included.
    pub(crate) fn message_ids(mut self) -> Result<Vec<String>, Error> {
        let Some(found) = self.find()? else {
            let ranking = self.messages_by_substring()?;
            let id = |item: Match| item.hit.message_id.into_owned();
            return Ok(ranking.items.into_iter().map(id).collect());
        };
        let best = found.scored.iter().take(self.question.limit);
        let id = |scored: &fuse::Scored| {
            let scorer = &found.sources[scored.source].scorer;
            scorer.hit(scored.doc_id).message_id.into_owned()
        };
        Ok(best.map(id).collect())
    }

    /// Returns the conversations that answer best.
    pub(crate) fn conversations(mut self) -> Result<Ranking<ConversationMatch>, Error> {
        let items = match self.find()? {
            Some(found) => self.ranked_conversations(&found)?,
            None => return self.conversations_by_substring(),
        };
        Ok(Ranking { items, notes: self.notes })
    }
}
