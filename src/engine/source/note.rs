//! Notes: what an answer leaves out, or did in another way than it was asked to.

use std::{fmt, path::PathBuf};

use super::kind::SourceKind;
use crate::text::snippet::echo;

/// The most known names that a note about an unknown name lists.
pub(crate) const MAX_KNOWN: usize = 10;

/// What an answer leaves out, or did in another way than it was asked to.
///
/// Its text states the fact in one sentence; each face adds what the user can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A source has no index, so its messages were ranked by a scan for the words of the question.
    NotIndexed {
        /// The source without an index.
        source: SourceKind,
        /// Whether the source can have an index: views and tables without row ids cannot.
        can_be: bool,
    },
    /// The index of a source, or its words and vectors, are being made.
    Building {
        /// The source.
        source: SourceKind,
        /// The percentage that is done, if it is known.
        percent: Option<u8>,
        /// The estimated seconds until the work is done, if they are known.
        seconds_left: Option<u64>,
    },
    /// The transcripts of coding agents are being read for the first time.
    ReadingTranscripts,
    /// The transcripts of coding agents were never read.
    TranscriptsNotRead,
    /// A damaged transcript store was set aside, and nobody has deleted it since.
    SetAside {
        /// The path of the damaged store.
        path: PathBuf,
    },
    /// The index of a source is older than its database.
    OlderIndex {
        /// The source.
        source: SourceKind,
    },
    /// Some messages, or conversations, lack what they are ranked by.
    NotEmbedded {
        /// The source of the messages or conversations.
        source: SourceKind,
        /// The number of messages or conversations that lack something.
        count: u64,
        /// The kind of data that they lack.
        what: Lacking,
    },
    /// A source cannot be read.
    Unreadable {
        /// The source.
        source: SourceKind,
        /// The error, which names the path.
        reason: String,
    },
    /// A source does not say which models answered, so a filter by model takes nothing from it.
    NoModels {
        /// The source.
        source: SourceKind,
    },
    /// A filter names something that no conversation has.
    Unknown {
        /// What is named: a project, a session, a role, a model.
        what: &'static str,
        /// The name that was given.
        given: String,
        /// Names that conversations have, the nearest first.
        known: Vec<String>,
    },
    /// The beginning of an id fits several conversations.
    Ambiguous {
        /// The beginning that was given.
        given: String,
        /// The ids that it fits.
        ids: Vec<String>,
    },
    /// A word that no message has was replaced by a similar one.
    Slip {
        /// The word of the question.
        word: String,
        /// The similar word that replaced it.
        meant: String,
    },
    /// No message has a quoted phrase, so its words were ranked by.
    NoPhrase {
        /// The phrases, in quotation marks.
        phrases: String,
    },
    /// There are no vectors of the question, so only words were ranked by.
    ProviderAway {
        /// The error.
        reason: String,
    },
}

/// The data that messages or conversations lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// Messages without indexed words.
    Words,
    /// Messages without vectors.
    Vectors,
    /// Conversations without summaries.
    Summaries,
}

impl Note {
    /// Returns whether the note says that something was not searched as it was asked for.
    pub(crate) fn is_gap(&self) -> bool {
        !matches!(
            self,
            Note::Unknown { .. }
                | Note::Ambiguous { .. }
                | Note::Slip { .. }
                | Note::NoPhrase { .. }
        )
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NotIndexed { source, can_be } => {
                let (has, it_was) = match source {
                    SourceKind::Threads => ("have", "they were"),
                    SourceKind::Export | SourceKind::Archive => ("has", "it was"),
                };
                let source = source.name();
                match can_be {
                    true => write!(f, "the {source} {has} no index")?,
                    false => write!(f, "the {source} cannot have an index")?,
                }
                write!(f, ": {it_was} searched for the words of the query only")
            }
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
            Note::OlderIndex { source } => {
                let source = source.name();
                write!(
                    f,
                    "the index of the {source} is older than its database: what was written or \
                     changed since is not ranked"
                )
            }
            Note::NotEmbedded { source, count, what } => {
                let (items, what) = match what {
                    Lacking::Words => ("messages", "words"),
                    Lacking::Vectors => ("messages", "vectors"),
                    Lacking::Summaries => ("conversations", "summary"),
                };
                let source = source.name();
                write!(f, "{count} {items} of the {source} have no {what} to rank by yet")
            }
            Note::Unreadable { source, reason } => {
                write!(f, "the {} cannot be read and was left out: {reason}", source.name())
            }
            Note::NoModels { source } => {
                let source = source.name();
                write!(
                    f,
                    "it is not known which models answered in the {source}: none of it is in the answer"
                )
            }
            Note::Unknown { what, given, known } => {
                write!(f, "no conversation has the {what} {:?}", echo(given))?;
                match known.as_slice() {
                    [] => Ok(()),
                    known => write!(f, "; known: {}", known.join(", ")),
                }
            }
            Note::Ambiguous { given, ids } => {
                let given = echo(given);
                write!(f, "{given:?} may be any of the conversations {}", ids.join(", "))
            }
            Note::Slip { word, meant } => {
                let word = echo(word);
                write!(f, "no message has “{word}”; searched for “{meant}” instead")
            }
            Note::NoPhrase { phrases } => {
                let phrases = echo(phrases);
                write!(f, "no message has {phrases}; searched for its words instead")
            }
            Note::ProviderAway { reason } => {
                write!(f, "ranked by words alone, not by meaning: {reason}")
            }
        }
    }
}
