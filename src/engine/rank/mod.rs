//! Ranked search: messages and conversations by how well they answer, best first.

mod answer;
mod concept;
mod passage;
mod prepare;
mod score;
mod substring;
mod titles;

use std::path::PathBuf;

use crate::engine::SourceKind;
use crate::model::{Hit, Instant};

pub use prepare::Enriched;
pub(crate) use prepare::Searcher;

/// How to rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only messages that hold the text as `LIKE` finds it.
    Exact,
    /// By words: BM25.
    Text,
    /// By meaning: vectors.
    Vector,
    /// By both, fused.
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
    /// What to look for; every one of several must be found in a conversation.
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

/// Where to look; applied before ranking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Kinds of sources; empty for all.
    pub sources: Vec<SourceKind>,
    /// Roles, as stored; empty for all.
    pub roles: Vec<String>,
    /// The earliest instant, inclusive.
    pub since: Option<Instant>,
    /// The latest instant, inclusive.
    pub until: Option<Instant>,
    /// The id of one conversation.
    pub conversation: Option<String>,
    /// A project of coding agents' transcripts.
    pub project: Option<String>,
    /// A session of coding agents' transcripts.
    pub session: Option<String>,
}

/// A message that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Where it is from.
    pub source: SourceKind,
    /// The message.
    pub hit: Hit,
    /// How well it answers, 0 to 1; falls from the first match to the last.
    pub score: f64,
    /// The number of its line in its conversation's file or, in an export, of itself in its
    /// conversation, from 1.
    pub line: u32,
    /// What of its text answers best, about 300 characters.
    pub passage: String,
    /// How many messages have the same text, itself included; it stands for all of them.
    pub copies: u32,
}

/// A conversation that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationMatch {
    /// What is known of it.
    pub about: About,
    /// How well it answers, 0 to 1; falls from the first match to the last.
    pub score: f64,
    /// Its messages that answer best, the best first.
    pub matches: Vec<Match>,
}

/// What is known of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Where it is from.
    pub source: SourceKind,
    /// `conversations.id`.
    pub id: String,
    /// `conversations.title`; empty where it is NULL.
    pub title: String,
    /// One or two of its own sentences that tell what it is about; empty where it has none.
    pub summary: String,
    /// How many messages it has.
    pub turns: u32,
    /// When its first message was written.
    pub begun: Option<Instant>,
    /// When its last message was written.
    pub last: Option<Instant>,
    /// The transcript's file, of a coding agent's conversation.
    pub file: Option<PathBuf>,
    /// The project, of a coding agent's conversation.
    pub project: Option<String>,
    /// The session, of a coding agent's conversation.
    pub session: Option<String>,
}

/// An answer by rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking<T> {
    /// The best first.
    pub items: Vec<T>,
    /// What the reader should know of how they were found, such as a provider that did not answer.
    pub notes: Vec<String>,
}
