//! Questions to rank by, and ranked answers.

use crate::source::{About, Note, Scope, SourceKind};
use verbatim_base::model::{Hit, Matching};

/// Maximum number of messages that are shown of a conversation.
pub(super) const MAX_MATCHES: usize = 5;

/// The mode of ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only messages that contain the text, the newest first.
    Exact,
    /// Ranks by terms, with BM25.
    Text,
    /// Ranks by meaning, with vectors.
    Vector,
    /// Ranks by terms and vectors, and fuses the scores.
    #[default]
    Both,
}

/// The fields of a conversation that are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fields {
    /// The messages of a conversation.
    #[default]
    Messages,
    /// The summary and the title of a conversation.
    Summaries,
    /// Messages, summaries and titles.
    Both,
    /// The messages of a conversation, without the summary that it was saved with.
    Turns,
}

/// A question to rank by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The concepts to find. A conversation must contain all of them.
    pub concepts: Vec<String>,
    /// How messages are found: by their text, by terms, by vectors, or by terms and vectors.
    pub mode: Mode,
    /// How the concepts match in [`Mode::Exact`]; `None` for [`Matching::Literal`].
    pub matching: Option<Matching>,
    /// Whether accents and width are ignored in [`Mode::Exact`].
    pub ignore_accents: bool,
    /// The fields that are ranked.
    pub fields: Fields,
    /// The scope of the search.
    pub scope: Scope,
    /// The maximum number of matches to return.
    pub limit: usize,
}

/// A message that fits the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// The kind of the message's source.
    pub source: SourceKind,
    /// The message. If its text is longer than 4 MB, 4 MB are kept, with `[…]` at the cut.
    pub hit: Hit<'static>,
    /// How well the message fits, from 0 to 1. Scores fall from the first match to the last.
    pub score: f64,
    /// The line of the message in its transcript's file. In an export, the number of the message in its
    /// conversation, from 1.
    pub line: u32,
    /// The part of the message's text that answers best, about 300 characters.
    pub passage: String,
    /// Whether the score is far below the first match's and the message has no word of the question. The
    /// matches of a conversation are never far.
    pub is_far: bool,
    /// Whether only the conversation's title contains the searched text, and the message does not.
    pub is_title_only: bool,
    /// The number of messages with this text, including this message. The other messages are not listed.
    pub copies: u32,
}

/// A conversation that fits the question.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationMatch {
    /// The description of the conversation.
    pub about: About,
    /// How well the conversation fits, from 0 to 1. Scores fall from the first match to the last.
    pub score: f64,
    /// The conversation's best messages, the best first.
    pub matches: Vec<Match>,
}

/// A ranked answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking<T> {
    /// The matches, the best first.
    pub items: Vec<T>,
    /// Lower bound of the number of matching messages or conversations. It may exceed the length of `items`.
    pub total: usize,
    /// Whether [`total`](Ranking::total) is the exact number.
    pub is_total_exact: bool,
    /// Notes about what the answer leaves out, and how it differs from the request.
    pub notes: Vec<Note>,
}

impl<T> Ranking<T> {
    /// Returns one sentence for each thing that the answer leaves out, or in which it differs from the
    /// request.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().map(ToString::to_string).collect()
    }

    /// Returns the words of the question that no message has, as they were typed.
    pub fn absent_words(&self) -> Vec<&str> {
        self.notes.iter().flat_map(Note::absent_words).map(String::as_str).collect()
    }

    /// Returns whether everything was searched that the question asks for, in the requested way.
    pub fn is_complete(&self) -> bool {
        !self.notes.iter().any(Note::is_gap)
    }
}
