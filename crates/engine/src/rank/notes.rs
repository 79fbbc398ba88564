//! The notes of an answer in the making.

use crate::source::Note;

/// Notes in their order, each once. Notes about words that no message has come first.
#[derive(Debug, Default)]
pub(super) struct Notes(pub(super) Vec<Note>);

impl Notes {
    /// Adds a note, unless it is known.
    pub(super) fn add(&mut self, note: Note) {
        if self.0.contains(&note) {
            return;
        }
        let mut place = self.0.len();
        if !note.absent_words().is_empty() {
            place = self.0.iter().take_while(|known| !known.absent_words().is_empty()).count();
        }
        self.0.insert(place, note);
    }

    pub(super) fn extend(&mut self, notes: impl IntoIterator<Item = Note>) {
        notes.into_iter().for_each(|note| self.add(note));
    }

    pub(super) fn has(&self, is_wanted: fn(&Note) -> bool) -> bool {
        self.0.iter().any(is_wanted)
    }

    /// Returns the notes of an answer. If it is empty, none of them says that something is shown.
    pub(super) fn of_answer(mut self, is_empty: bool) -> Vec<Note> {
        // A filter that names nothing leaves no message, and says so.
        if self.has(|note| matches!(note, Note::Unknown { .. })) {
            self.0.retain(|note| note.absent_words().is_empty());
        }
        for note in &mut self.0 {
            if let Note::NoWord { by_meaning, by_words, .. } = note {
                *by_meaning &= !is_empty;
                *by_words &= !is_empty;
            }
        }
        self.0
    }
}
