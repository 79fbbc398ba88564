//! The state of ranking one question.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use super::question::{Fields, Question};
use crate::{
    error::Result,
    source::{Note, Scope, SourceKind, Sources},
    summary::SAVED,
};
use verbatim_base::model::Stop;
use verbatim_text::snippet;

/// Time that a question waits for indexes to become current.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(5);

/// Time that a quick question waits for indexes to become current.
const QUICK_WAIT: Duration = Duration::from_secs(1);

/// Maximum number of chunks of messages that the encoder reads to find the passages of an answer. It reads
/// a chunk of 130 bytes in .7 to 4 ms, and the best messages come first.
const MAX_ENCODED: usize = 16;

/// Maximum size in bytes of a database that is indexed or scanned in about a second.
pub(super) const SMALL: u64 = 8 << 20;

/// A conversation: the position of its source among the ranked sources, and its number in that source.
pub(super) type ConversationPlace = (usize, u32);

/// The ids of the conversations that contain every concept, by source.
pub(super) type InCommon = HashMap<SourceKind, HashSet<String>>;

/// The process of answering one ranked question.
pub struct Ranker<'a> {
    pub(super) sources: &'a Sources,
    pub(super) question: &'a Question,
    /// The scope of the question, with the full names of its project and session.
    pub(super) scope: Scope,
    pub(super) stop: &'a Stop,
    /// The time limit for waiting for indexes.
    pub(super) in_time: Stop,
    /// Whether large sources without an index are left out.
    pub(super) is_quick: bool,
    /// The share of vectors in scores, if the words of the best messages cover the question.
    pub(super) vector_share: f32,
    /// The number of conversations to find; 0 if messages are to be found.
    pub(super) wanted: usize,
    /// Whether only the best candidates of a concept were scored.
    pub(super) is_cut: bool,
    /// The conversations that contain every concept; `None` if there is only one concept, or if the mode
    /// does not match text.
    pub(super) common: Option<Arc<InCommon>>,
    /// The share of the question's IDF that conversations cover with all their messages and their titles, by
    /// source and number.
    pub(super) covered: HashMap<ConversationPlace, f32>,
    /// The number of chunks of messages that the encoder may still read to find passages.
    pub(super) chunks_left: Cell<usize>,
    pub(super) notes: Vec<Note>,
}

impl<'a> Ranker<'a> {
    /// Makes a ranker. Its time limit begins now.
    pub fn new(sources: &'a Sources, question: &'a Question, stop: &'a Stop) -> Ranker<'a> {
        let (scope, in_time) = (question.scope.clone(), stop.within(MAX_WAIT));
        Ranker {
            sources,
            question,
            scope,
            stop,
            in_time,
            is_quick: false,
            vector_share: sources.vector_share(),
            wanted: 0,
            is_cut: false,
            common: None,
            covered: HashMap::new(),
            chunks_left: Cell::new(MAX_ENCODED),
            notes: Vec::new(),
        }
    }

    /// Makes the question quick: it waits less for indexes, and does not scan large sources.
    pub(crate) fn quick(self) -> Ranker<'a> {
        Ranker { in_time: self.stop.within(QUICK_WAIT), is_quick: true, ..self }
    }

    /// Returns the concepts of the question that are not empty.
    pub(super) fn concepts(&self) -> Vec<&'a str> {
        let concepts = self.question.concepts.iter().map(|concept| snippet::trim(concept));
        concepts.filter(|concept| !concept.is_empty()).collect()
    }

    /// Returns the roles to find in a source; empty for all. The summary that a conversation was saved
    /// with has the role [`SAVED`], which the turns of threads hardly ever have.
    pub(super) fn roles_in(&self, kind: SourceKind) -> Cow<'_, [String]> {
        let roles = &self.scope.roles;
        if self.question.fields != Fields::Turns || kind != SourceKind::Threads {
            return Cow::Borrowed(roles);
        }
        let turns = || ["user", "assistant"].map(str::to_owned).to_vec();
        let is_turn = |role: &&String| *role != SAVED;
        match roles.is_empty() {
            true => Cow::Owned(turns()),
            false => Cow::Owned(roles.iter().filter(is_turn).cloned().collect()),
        }
    }

    /// If nothing was found, adds a note about a role that no message has.
    pub(super) fn note_unknown_role(&mut self, is_empty: bool) -> Result<()> {
        if is_empty && let Some(note) = self.sources.unknown_role(&self.scope, self.stop)? {
            self.note(note);
        }
        Ok(())
    }

    /// If nothing was found, says in no note that something is shown.
    pub(super) fn settle_notes(&mut self, is_empty: bool) {
        for note in self.notes.iter_mut().filter(|_| is_empty) {
            if let Note::NoWord { by_meaning, by_words, .. } = note {
                (*by_meaning, *by_words) = (false, false);
            }
        }
    }

    /// Adds a note, unless it was added before. Notes about words that no message has come first.
    pub(super) fn note(&mut self, note: Note) {
        let is_of_absent = |note: &Note| !note.absent_words().is_empty();
        if self.notes.contains(&note) {
            return;
        }
        let place = match is_of_absent(&note) {
            true => self.notes.iter().take_while(|known| is_of_absent(known)).count(),
            false => self.notes.len(),
        };
        self.notes.insert(place, note);
    }
}
