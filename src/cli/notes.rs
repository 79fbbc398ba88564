//! The text of the engine's notes for people, with the command that helps.

use super::output::complain;
use crate::engine::Note;

/// Writes notes to standard error, one line each.
pub(super) fn print(notes: &[Note]) {
    for note in notes {
        complain(&line(note));
    }
}

pub(super) fn lines(notes: &[Note]) -> Vec<String> {
    notes.iter().map(line).collect()
}

fn line(note: &Note) -> String {
    let advice = match note {
        Note::NotIndexed { can_be: true, .. }
        | Note::NotEmbedded { .. }
        | Note::OlderIndex { .. } => "`verbatim reindex` helps",
        Note::TranscriptsNotRead => "`verbatim reindex` reads them",
        Note::SetAside { .. } => "name it with --db to search it, or delete it",
        Note::Building { .. } | Note::ReadingTranscripts => "try again in a moment",
        Note::Ambiguous { .. } => "give more characters of it",
        _ => return note.to_string(),
    };
    format!("{note}; {advice}")
}
