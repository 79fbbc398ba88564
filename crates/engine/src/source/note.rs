//! Notes: what an answer leaves out, and how it differs from the request.

use std::{fmt, path::PathBuf};

use super::kind::SourceKind;
use verbatim_text::{
    amount::grouped,
    snippet::{echo, names},
};

/// Maximum number of known names that a note about an unknown name lists.
pub(crate) const MAX_KNOWN: usize = 10;

/// Maximum number of words that a note about absent words lists.
const MAX_ABSENT: usize = 4;

/// A fact that an answer left something out, or differs from the request.
///
/// Its text states the fact in one sentence. The CLI and the tools add what the user can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A source has no current index to rank by, so its messages with the question's words were found, the newest
    /// first.
    NotRanked {
        /// The kind of the source.
        source: SourceKind,
        /// The state of its index.
        index: IndexState,
    },
    /// The index of a source has no vectors of some messages yet, and is being completed.
    Building {
        /// The kind of the source.
        source: SourceKind,
        /// The finished share of the work, from 0 to 100; `None` if unknown.
        percent: Option<u8>,
        /// The estimated rest of the time in seconds; `None` if unknown.
        seconds_left: Option<u64>,
    },
    /// The transcripts of coding agents are being read for the first time.
    ReadingTranscripts,
    /// The transcripts of coding agents were never read.
    TranscriptsNotRead,
    /// A damaged transcript store was set aside and still exists.
    SetAside {
        /// The new path of the damaged store.
        path: PathBuf,
    },
    /// Some messages lack the vectors for ranking.
    NotEmbedded {
        /// The kind of the source.
        source: SourceKind,
        /// The number of messages.
        count: u64,
    },
    /// The sentence encoder has not read all messages of a source yet. The others are compared by words and by
    /// the model of all messages, so the answer is complete.
    Encoding {
        /// The kind of the source.
        source: SourceKind,
        /// The number of messages that the encoder has read: the newest ones.
        made: u64,
        /// The number of all messages.
        total: u64,
    },
    /// A source could not be read.
    Unreadable {
        /// The kind of the source.
        source: SourceKind,
        /// The error message.
        reason: String,
    },
    /// A source does not say which models answered, so a filter by model accepts none of its messages.
    NoModels {
        /// The kind of the source.
        source: SourceKind,
    },
    /// A filter names something that no conversation has: a project, a session, a role, a model. The most
    /// similar known name is first.
    Unknown {
        /// The kind of name, such as `project`.
        what: &'static str,
        /// The name in the filter.
        given: String,
        /// Names that conversations have; empty if none are listed.
        known: Vec<String>,
        /// The number of further names.
        more: usize,
    },
    /// The beginning of an id fits several conversations.
    Ambiguous {
        /// The beginning of an id, as given by the user.
        given: String,
        /// The first ids that it fits, at most 10.
        ids: Vec<String>,
    },
    /// A word that occurs in no message was replaced by a similar word.
    Slip {
        /// The word of the question.
        word: String,
        /// The similar word that was searched.
        meant: String,
    },
    /// No message has some words of the question.
    NoWord {
        /// Whether the scope of the question has filters, so that other messages may have the words.
        is_filtered: bool,
        /// The words as they are in the question.
        words: Vec<String>,
        /// Whether the answer has messages that were found by their meaning.
        by_meaning: bool,
        /// Whether the answer has messages that were found by other words of the question.
        by_words: bool,
    },
    /// No message has a quoted phrase, so the words of the phrase were ranked instead.
    NoPhrase {
        /// The phrases in quotation marks, joined with “and”.
        phrases: String,
    },
    /// No message has a word of the question, but some have its text within other words. These were found.
    WithinWords {
        /// The text that was found within words.
        text: String,
    },
    /// The question has only words that are too frequent to rank messages by, or no words at all. Messages with
    /// its text were found.
    NoWords {
        /// The text of the question that was searched as it is.
        text: String,
    },
    /// No model knows the language of the question, so messages were ranked by words only.
    UnknownLanguage {
        /// The question.
        text: String,
    },
    /// The question could not be encoded as a vector, so messages were ranked by words only.
    ProviderAway {
        /// The error of the provider.
        reason: String,
    },
}

/// The state of the index of a source that is not ranked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It is being built.
    Building {
        /// The finished share of the work, from 0 to 100; `None` if unknown.
        percent: Option<u8>,
        /// The estimated rest of the time in seconds; `None` if unknown.
        seconds_left: Option<u64>,
    },
    /// There is none of the current state of the database, and nothing builds one.
    Missing,
    /// It cannot be read.
    Unreadable {
        /// The error.
        reason: String,
    },
    /// There cannot be one: the database has views, or tables without row ids.
    Impossible,
}

impl IndexState {
    /// Returns what a note says of a source with this index.
    fn of(&self, source: SourceKind) -> String {
        let is = if source.is_plural() { "are" } else { "is" };
        match self {
            IndexState::Impossible => "cannot be ranked".to_owned(),
            IndexState::Unreadable { reason } => format!("{is} not ranked, because {reason}"),
            IndexState::Missing | IndexState::Building { percent: None, .. } => {
                format!("{is} not ranked yet")
            }
            IndexState::Building { percent: Some(percent), .. } => {
                format!("{is} not ranked yet, {percent} % indexed")
            }
        }
    }
}

impl Note {
    /// Returns whether the note says that the search was less complete than the user asked.
    pub fn is_gap(&self) -> bool {
        !matches!(
            self,
            Note::Unknown { .. }
                | Note::Ambiguous { .. }
                | Note::Encoding { .. }
                | Note::Slip { .. }
                | Note::NoWord { .. }
                | Note::NoPhrase { .. }
                | Note::WithinWords { .. }
                | Note::NoWords { .. }
                | Note::UnknownLanguage { .. }
        )
    }

    /// Returns the words of the question that no message has, if the note is about them.
    pub fn absent_words(&self) -> &[String] {
        match self {
            Note::NoWord { words, .. } => words,
            _ => &[],
        }
    }

    /// Returns whether the note says that the words of some messages are not in an index.
    pub(crate) fn lacks_words(&self) -> bool {
        match self {
            Note::NotEmbedded { .. } | Note::NoModels { .. } | Note::ProviderAway { .. } => false,
            note => note.is_gap(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NotRanked { source, index } => write!(
                f,
                "the {} {}: messages with the words of the query are shown, the newest first",
                source.name(),
                index.of(*source)
            ),
            Note::Building { source, percent, .. } => {
                write!(f, "the index of the {} is being built", source.name())?;
                match percent {
                    Some(percent) => write!(f, ", {percent} %"),
                    None => Ok(()),
                }
            }
            Note::ReadingTranscripts => {
                f.write_str("the transcripts of coding agents are still being read")
            }
            Note::TranscriptsNotRead => {
                f.write_str("the transcripts of coding agents were not read yet")
            }
            Note::SetAside { path } => {
                let path = path.display();
                write!(
                    f,
                    "a damaged transcript store was set aside: transcripts that their programs \
                     deleted may only be in {path}"
                )
            }
            Note::NotEmbedded { source, count } => {
                let source = source.name();
                write!(f, "{count} messages of the {source} have no vectors to rank by yet")
            }
            Note::Encoding { source, made, total } => {
                write!(
                    f,
                    "the sentence model has read {} of {} messages of the {}, the newest \
                     first; the others are found by words and the small model",
                    grouped(*made),
                    grouped(*total),
                    source.name()
                )
            }
            Note::Unreadable { source, reason } => {
                let was = if source.is_plural() { "were" } else { "was" };
                write!(f, "the {} cannot be read and {was} left out: {reason}", source.name())
            }
            Note::NoModels { source } => {
                let source = source.name();
                write!(
                    f,
                    "it is not known which models answered in the {source}: none of it is in the answer"
                )
            }
            Note::Unknown { what, given, known, more } => {
                write!(f, "no conversation has the {what} {:?}", echo(given))?;
                if !known.is_empty() {
                    write!(f, "; known: {}", names(known))?;
                }
                if *more > 0 {
                    write!(f, " and {} more", grouped(*more as u64))?;
                }
                Ok(())
            }
            Note::Ambiguous { given, ids } => {
                let given = echo(given);
                write!(f, "{given:?} may be any of the conversations {}", names(ids))
            }
            Note::Slip { word, meant } => {
                write!(f, "no message has “{}”; searched for “{meant}” instead", echo(word))
            }
            Note::NoWord { is_filtered, words, by_meaning, by_words } => {
                let scope = if *is_filtered { "with these filters, " } else { "" };
                write!(f, "{scope}{}", no_word(words, *by_meaning, *by_words))
            }
            Note::NoPhrase { phrases } => {
                write!(f, "no message has {}; searched for its words instead", echo(phrases))
            }
            Note::WithinWords { text } => {
                let text = echo(text);
                write!(f, "no message has “{text}” as a word; found it within other words")
            }
            Note::NoWords { text } => write!(
                f,
                "“{}” has no word to rank by; messages with this text are shown, the newest first",
                echo(text)
            ),
            Note::UnknownLanguage { text } => write!(
                f,
                "the model for meaning does not know the language of “{}”; ranked by words alone",
                echo(text)
            ),
            Note::ProviderAway { reason } => {
                write!(f, "ranked by words alone, not by meaning: {reason}")
            }
        }
    }
}

/// Returns the text of [`Note::NoWord`].
fn no_word(words: &[String], by_meaning: bool, by_words: bool) -> String {
    // One more word is shorter than its number.
    let listed = if words.len() == MAX_ABSENT + 1 { MAX_ABSENT + 1 } else { MAX_ABSENT };
    let rest = words.len().saturating_sub(listed);
    let mut words: Vec<String> =
        words.iter().take(listed).map(|word| format!("“{}”", echo(word))).collect();
    if rest > 0 {
        words.push(format!("{rest} more words"));
    }
    let instead = match (by_meaning, by_words) {
        (true, false) => "; nearest by meaning:",
        (true, true) => "; nearest by meaning and by the other words:",
        (false, true) => "; searched for the other words",
        (false, false) => "",
    };
    format!("no message has {}{instead}", words.join(" or "))
}
