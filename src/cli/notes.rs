//! What the engine's notes say to a person, with the command that helps.

use crate::engine::Note;

/// Writes the lines of some notes to standard error.
pub(super) fn print(notes: &[Note]) {
    for note in notes {
        anstream::eprintln!("verbatim: {}", line(note));
    }
}

/// Returns the lines of some notes.
pub(super) fn lines(notes: &[Note]) -> Vec<String> {
    notes.iter().map(line).collect()
}

fn line(note: &Note) -> String {
    let advice = match note {
        Note::NotIndexed { can_be: true, .. }
        | Note::NotEmbedded { .. }
        | Note::OlderIndex { .. } => "`verbatim reindex` helps",
        Note::TranscriptsNotRead => "`verbatim reindex` reads them",
        Note::Building { .. } | Note::ReadingTranscripts => "try again in a moment",
        Note::Ambiguous { .. } => "give more of it",
        _ => return note.to_string(),
    };
    format!("{note}; {advice}")
}
