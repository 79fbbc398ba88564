//! The engine's notes as lines, with advice for a person or for a model.

use verbatim_engine::{IndexState, Note};
use verbatim_text::amount::grouped;

/// The seconds until the next attempt if the duration of the work is unknown.
const SOON: u64 = 10;

/// The step to which seconds are rounded up.
const STEP: u64 = 5;

/// Who reads the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A person at a terminal.
    Person,
    /// A model that can call again.
    Model,
}

/// Returns a line for each note.
pub fn lines<'a>(notes: impl IntoIterator<Item = &'a Note>, reader: Audience) -> Vec<String> {
    notes.into_iter().map(|note| line(note, reader)).collect()
}

/// Returns the lines as sentences in one text; `None` if there are no lines.
pub fn message(lines: &[String]) -> Option<String> {
    let sentences: Vec<String> =
        lines.iter().map(|line| format!("{}.", line.trim_end_matches(['.', ':']))).collect();
    if sentences.is_empty() { None } else { Some(sentences.join(" ")) }
}

/// Returns the text of a note, with what helps.
pub fn line(note: &Note, reader: Audience) -> String {
    let advice = match (note, reader) {
        (
            Note::Building { .. }
            | Note::NotRanked { index: IndexState::Building { .. }, .. }
            | Note::ReadingTranscripts,
            Audience::Person,
        ) => "try again in a moment".to_owned(),
        (
            Note::Building { seconds_left, .. }
            | Note::NotRanked { index: IndexState::Building { seconds_left, .. }, .. },
            Audience::Model,
        ) => {
            let seconds = seconds_left.unwrap_or(SOON).max(1).next_multiple_of(STEP);
            format!("search with mode text is complete; ask again in about {seconds} s")
        }
        (Note::ReadingTranscripts, Audience::Model) => format!("ask again in about {SOON} s"),
        (Note::TranscriptsNotRead, _) => "`verbatim reindex` reads them".to_owned(),
        (Note::SetAside { .. }, _) => "name it with --db to search it, or delete it".to_owned(),
        (Note::NotRanked { index: IndexState::Missing, .. }, _) => {
            "`verbatim reindex` makes the index".to_owned()
        }
        (Note::NotEmbedded { .. }, _) => "`verbatim reindex` makes them".to_owned(),
        (Note::Ambiguous { .. }, _) => "give more characters of it".to_owned(),
        (
            Note::NotRanked {
                index: IndexState::Impossible | IndexState::Unreadable { .. }, ..
            }
            | Note::Encoding { .. }
            | Note::Unreadable { .. }
            | Note::NoModels { .. }
            | Note::Unknown { .. }
            | Note::Slip { .. }
            | Note::NoWord { .. }
            | Note::NoPhrase { .. }
            | Note::WithinWords { .. }
            | Note::NoWords { .. }
            | Note::UnknownLanguage { .. }
            | Note::ProviderAway { .. },
            _,
        ) => return note.to_string(),
    };
    format!("{note}; {advice}")
}

/// Returns a line with the number of given and of all conversations; `None` if all are given.
pub fn more(given: usize, total: usize, is_exact: bool) -> Option<String> {
    let at_least = if is_exact { "" } else { "at least " };
    if given < total {
        Some(format!("{given} of {at_least}{} conversations", grouped(total)))
    } else if is_exact {
        None
    } else {
        let best = "only the best matches were compared, so there may be more conversations";
        Some(best.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_more() {
        assert_eq!(more(10, 10, true), None);
        assert_eq!(more(10, 1204, true).as_deref(), Some("10 of 1,204 conversations"));
        assert!(more(10, 10, false).is_some_and(|more| more.contains("there may be more")));
        assert_eq!(more(1, 57, false).as_deref(), Some("1 of at least 57 conversations"));
    }
}
