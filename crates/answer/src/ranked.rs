//! The best messages or conversations for a question, with what is to be said about them.

use super::{marks::Marks, words::Words};
use verbatim_base::call::Call;
use verbatim_base::map_faults::FaultWatch;
use verbatim_base::model::{Matching, Request};
use verbatim_engine::{
    ConversationMatch, Engine, Error, Match, Mode, Note, Question, Ranking, Result,
};

/// The sentence above messages that have none of the question's words.
const BY_MEANING: &str = "no message has these words; nearest by meaning:";

/// The best matches for a question.
#[derive(Debug)]
pub struct Ranked<T> {
    /// The matches, the best first.
    pub items: Vec<T>,
    /// What to mark in the matches.
    pub marks: Marks,
    /// The notes, with words as they are written in messages. Notes about words that no
    /// message has come first.
    pub notes: Vec<Note>,
    /// The number of messages or conversations that were found.
    pub total: usize,
    /// Whether there are no more.
    pub is_total_exact: bool,
    /// Whether a heading says so if no message has a word of the question.
    may_have_heading: bool,
}

/// The best messages for a question.
pub type RankedMessages = Ranked<Match>;

/// The best conversations for a question.
pub type RankedConversations = Ranked<ConversationMatch>;

impl RankedMessages {
    /// Ranks the messages for a question of one concept. Fails if an index changed while it was read.
    pub fn find(engine: &Engine, question: &Question, call: &Call) -> Result<RankedMessages> {
        let faults = FaultWatch::begin();
        let ranking = engine.rank(question, call)?;
        if faults.has_noticed() {
            return Err(Error::Torn { folder: engine.config().index_folder() });
        }
        Ranked::of(ranking, engine, question, call)
    }

    /// Returns the messages that are near to the question, and those that are far from it.
    pub fn near_and_far(&self) -> (&[Match], &[Match]) {
        self.items.split_at(self.items.partition_point(|one| !one.is_far))
    }

    /// Returns a sentence to show above the messages, if they have none of the question's words. Reads them.
    pub fn heading(&self) -> Option<&'static str> {
        if !self.may_have_heading || self.items.is_empty() {
            return None;
        }
        let mut texts = self.items.iter().flat_map(|one| [&one.hit.content, &one.hit.title]);
        let has_word = texts.any(|text| !self.marks.spans(text, 1).is_empty());
        if has_word { None } else { Some(BY_MEANING) }
    }
}

impl RankedConversations {
    /// Ranks the conversations for a question. The caller runs again if an index changed while it was read.
    pub fn find(engine: &Engine, question: &Question, call: &Call) -> Result<RankedConversations> {
        Ranked::of(engine.rank_conversations(question, call)?, engine, question, call)
    }
}

impl<T> Ranked<T> {
    fn of(
        ranking: Ranking<T>,
        engine: &Engine,
        question: &Question,
        call: &Call,
    ) -> Result<Ranked<T>> {
        let mut words = Words::of(&question.concepts);
        let mut notes = Vec::new();
        for note in &ranking.notes {
            notes.push(words.as_written(note, engine, call)?);
            words.heed(note);
        }
        let is_said = notes.iter().any(|note| matches!(note, Note::NoWord { .. }));
        let marks = if question.mode == Mode::Exact {
            Marks::of(&exact_request(question))?
        } else {
            Marks::Words(words)
        };
        Ok(Ranked {
            may_have_heading: question.mode == Mode::Both && ranking.is_complete() && !is_said,
            items: ranking.items,
            marks,
            notes,
            total: ranking.total,
            is_total_exact: ranking.is_total_exact,
        })
    }

    /// Returns whether everything was searched that the question asks for.
    pub fn is_complete(&self) -> bool {
        !self.notes.iter().any(Note::is_gap)
    }

    /// Returns the notes that are true for what was found. Without messages, none is shown for its text.
    pub fn true_notes(&self) -> impl Iterator<Item = &Note> {
        let is_empty = self.items.is_empty();
        self.notes.iter().filter(move |note| !is_empty || !matches!(note, Note::NoWords { .. }))
    }

    /// Returns the words of the question that no message has.
    pub fn absent_words(&self) -> Vec<&str> {
        self.notes.iter().flat_map(Note::absent_words).map(String::as_str).collect()
    }
}

/// Returns the exact search for the texts of a question.
pub fn exact_request(question: &Question) -> Request {
    let mut texts = question.concepts.iter().cloned();
    Request {
        text: texts.next().unwrap_or_default(),
        and: texts.collect(),
        matching: question.matching.unwrap_or(Matching::Literal),
        ignore_accents: question.ignore_accents,
        ..Request::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;

    #[test]
    fn notes_and_marks_are_those_of_written_words() {
        let export = TestExport::indexed(&["two queries wait", "three queries run", "red"]);
        let question = Question {
            concepts: vec!["quereis".to_owned()],
            mode: Mode::Text,
            limit: 5,
            ..Question::default()
        };
        let call = Call::default();
        let said = "no message has “quereis”; searched for “queries” instead";
        let messages = RankedMessages::find(&export.engine, &question, &call).unwrap();
        let conversations = RankedConversations::find(&export.engine, &question, &call).unwrap();
        assert_eq!((messages.items.len(), conversations.items.len()), (2, 2));
        for (notes, marks) in
            [(&messages.notes, &messages.marks), (&conversations.notes, &conversations.marks)]
        {
            assert_eq!(notes.iter().map(ToString::to_string).collect::<Vec<_>>(), [said]);
            assert_eq!(marks.spans("queries, two queries", 9), [0..7, 13..20]);
        }
        let concepts = vec!["ueri".to_owned(), "TWO".to_owned()];
        let exact = Question { concepts, mode: Mode::Exact, ..question };
        let found = RankedConversations::find(&export.engine, &exact, &call).unwrap();
        assert_eq!((found.items.len(), found.is_complete()), (1, true));
        assert_eq!(found.marks.spans("two queries wait", 9), [0..3, 5..9]);
    }
}
