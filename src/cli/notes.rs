//! The text of the engine's notes for people, with the command that helps.

use super::{error::Result, output::complain};
use verbatim_base::model::Stop;
use verbatim_engine::{Engine, Note};

/// The message of commands that read chats if there are none.
pub(super) const NO_CHATS: &str = "there are no chats; `verbatim import` brings in the exports of \
     ChatGPT and Claude in your downloads; `verbatim demo` shows a sample";

/// Returns whether no source has a message, excluded messages included.
pub(super) fn has_no_chats(engine: &Engine, stop: &Stop) -> Result<bool> {
    Ok(is_without_chats(engine, engine.size(stop)?.0))
}

/// Returns the same for a number of messages of all sources.
pub(super) fn is_without_chats(engine: &Engine, messages: u64) -> bool {
    messages == 0 && engine.config().exclude.is_empty()
}

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
