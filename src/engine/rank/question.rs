//! Questions to rank by, and ranked answers.

use crate::{
    engine::source::{About, Scope, SourceKind},
    model::Hit,
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
