//! Questions to rank by, and ranked answers.

use crate::error::{Error, Result};
use crate::source::{About, Note, Scope, SourceKind};
use verbatim_base::model::{Hit, Matching};
use verbatim_text::{
    like::MOST_PATTERN_BYTES,
    query::{PhraseSearch, Query},
};

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

/// Maximum number of quoted and excluded texts in the concepts of a question. Each is looked for by itself.
const MOST_PIECES: usize = 32;

impl Question {
    /// Checks the size of a question to rank by. The texts of an exact search have limits of their own.
    pub(super) fn check_size(&self) -> Result<()> {
        let bytes: usize = self.concepts.iter().map(String::len).sum();
        if bytes > MOST_PATTERN_BYTES {
            return Err(Error::TextTooLong { bytes });
        }
        let count: usize = if self.concepts.len() > 1 && self.mode != Mode::Vector {
            self.concepts.iter().map(|concept| PhraseSearch::all_of(concept).len()).sum()
        } else {
            self.concepts.iter().map(|concept| Query::parse(concept).pieces()).sum()
        };
        if count > MOST_PIECES {
            return Err(Error::TooManyTexts { count, most: MOST_PIECES });
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;
    use verbatim_base::call::Call;

    #[test]
    fn the_size_of_a_question_is_limited_in_all_modes() {
        let export = TestExport::indexed(&["red", "blue"]);
        let refused = |concepts: &[&str], mode| {
            let concepts = concepts.iter().map(|concept| (*concept).to_owned()).collect();
            let question = Question { concepts, mode, limit: 5, ..Question::default() };
            let one = export.engine.rank_conversations(&question, &Call::default());
            one.err().map(|error| error.to_string())
        };
        let many: String = (0..40).map(|n| format!("\"a{n}\" ")).collect();
        let same = "\"red\" ".repeat(1_000);
        let words: String = (0..40).map(|n| format!("w{n} ")).collect();
        let long = "red ".repeat(20_000);
        for mode in [Mode::Text, Mode::Vector, Mode::Both] {
            let error = refused(&[&many], mode).unwrap();
            assert_eq!(error, "40 texts are looked for at once, and at most 32 can be");
            assert!(refused(&["red", &many], mode).is_some(), "{mode:?}");
            assert!(refused(&[&"-wrong ".repeat(99), &same], mode).is_none(), "{mode:?}");
            assert!(refused(&[&long], mode).unwrap().contains("80000 bytes"), "{mode:?}");
            let beside = refused(&[&format!("\"red\" {words}"), "blue"], mode);
            assert_eq!(beside.is_some(), mode != Mode::Vector, "{mode:?}");
            assert_eq!(refused(&[&words], mode), None, "words are looked up in the index");
        }
    }
}
