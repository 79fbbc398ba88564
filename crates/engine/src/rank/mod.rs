//! Ranked search for messages and conversations, best first.
//!
//! An answer is made in steps. Each takes what the step before returns, with the notes so far:
//!
//! ```text
//! Ranker               the question, its sources and its time
//! ReadableSources      the sources that can be read, with the scope in their names
//! OpenedSources        those with an index, and those without one
//!     Concept          for each concept of the question: its terms and vectors
//!     ConceptScores    the scores of the messages that answer it
//! ScoredMessages       the messages that answer all concepts
//! Ranking              the answer, with passages and descriptions
//! ```
//!
//! A question for a text, and the sources without an index, take a shorter way: a `TextSearch` finds the
//! messages, the newest first.

mod all_concepts;
mod answer;
mod concept;
mod distance;
mod find;
mod fuse;
mod notes;
mod passage;
mod passages;
mod question;
mod ranker;
mod scoped;
mod sources;
mod substring;
mod titles;
mod word_request;

use super::{error::Result, source::Note};
use find::find;

pub use question::{ConversationMatch, Fields, Match, Mode, Question, Ranking};
pub use ranker::Ranker;

impl Ranker<'_> {
    /// Returns the messages that answer best. Messages with the same text are returned once, with their
    /// number.
    pub(crate) fn messages(&self) -> Result<Ranking<Match>> {
        answer::messages(find(self)?)
    }

    /// Returns the ids of the messages that answer best, and the notes. Messages with the same text all count.
    pub fn message_ids(&self) -> Result<(Vec<String>, Vec<Note>)> {
        answer::message_ids(find(self)?)
    }

    /// Returns the conversations that answer best.
    pub(crate) fn conversations(self) -> Result<Ranking<ConversationMatch>> {
        let ranker = Ranker { wanted: self.question.limit, ..self };
        answer::conversations(find(&ranker)?)
    }
}
