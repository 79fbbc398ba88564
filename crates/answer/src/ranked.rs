//! The best messages for a question, with what is to be said about them.

use super::{marks::Marks, words::Words};
use verbatim_base::{map_faults, model::Stop};
use verbatim_engine::{Engine, Error, Match, Mode, Note, Question, Result};

/// The sentence above messages that have none of the question's words.
const BY_MEANING: &str = "no message has these words; nearest by meaning:";

/// The best messages for a question.
#[derive(Debug)]
pub struct RankedMessages {
    /// The messages, the best first.
    pub items: Vec<Match>,
    /// What to mark in the messages.
    pub marks: Marks,
    /// The notes, with words as they are written in the question and in messages.
    pub notes: Vec<Note>,
    /// The number of messages that were found.
    pub total: usize,
    /// Whether there are no more messages.
    pub is_total_exact: bool,
    /// Whether a heading says so if no message has a word of the question.
    may_have_heading: bool,
}

impl RankedMessages {
    /// Ranks the messages for a question of one concept. Fails if an index changed while it was read.
    pub fn find(engine: &Engine, question: &Question, stop: &Stop) -> Result<RankedMessages> {
        let text = question.concepts[0].as_str();
        let faults = map_faults::count();
        let ranking = engine.rank(question, stop)?;
        if map_faults::count() > faults {
            return Err(Error::Torn { folder: engine.config().index_folder() });
        }
        let mut words = Words::of(text);
        let mut notes = Vec::new();
        for note in &ranking.notes {
            notes.push(words.as_written(note, text, engine)?);
            words.heed(note);
        }
        let is_said = notes.iter().any(|note| matches!(note, Note::NoWord { .. }));
        let may_have_heading = question.mode == Mode::Both && ranking.is_complete() && !is_said;
        Ok(RankedMessages {
            items: ranking.items,
            marks: Marks::Words(words),
            notes,
            total: ranking.total,
            is_total_exact: ranking.is_total_exact,
            may_have_heading,
        })
    }

    /// Returns the notes that are true for what was found. Without messages, none is shown for its text.
    pub fn true_notes(&self) -> impl Iterator<Item = &Note> {
        let is_empty = self.items.is_empty();
        let is_true = move |note: &&Note| !is_empty || !matches!(note, Note::NoWords { .. });
        self.notes.iter().filter(is_true)
    }

    /// Returns the messages that are near to the question, and those that are far from it.
    pub fn near_and_far(&self) -> (&[Match], &[Match]) {
        self.items.split_at(self.items.partition_point(|one| !one.is_far))
    }

    /// Returns a sentence to show above the messages, if they have none of the question's words. Reads them.
    pub fn heading(&self) -> Option<&'static str> {
        let has_word = |one: &Match| {
            let texts = [&one.hit.content, &one.hit.title];
            texts.iter().any(|text| !self.marks.spans(text, 1).is_empty())
        };
        let has_none = || !self.items.is_empty() && !self.items.iter().any(has_word);
        (self.may_have_heading && has_none()).then_some(BY_MEANING)
    }

    /// Returns the words of the question that no message has.
    pub fn absent_words(&self) -> Vec<&str> {
        self.notes.iter().flat_map(Note::absent_words).map(String::as_str).collect()
    }
}
