//! What happens to indexes in the background, in sentences for a log.

use std::{fmt, path::PathBuf, time::Duration};

use super::{enrich::Enriched, refresh::Reindexed, transcripts::ArchiveReport};
use crate::engine::source::Source;

/// What happened to an index, for a log.
#[derive(Debug)]
pub enum UpkeepEvent {
    /// It was refreshed here.
    Refreshed {
        /// The source.
        source: Source,
        /// What came of it.
        done: Reindexed,
    },
    /// Its parts were folded into one here.
    Merged {
        /// The source.
        source: Source,
        /// How long that took.
        took: Duration,
    },
    /// Words and vectors were made here that it lacked.
    Enriched {
        /// The source.
        source: Source,
        /// For how many messages.
        done: Enriched,
        /// How long that took.
        took: Duration,
    },
    /// They could not be made, and will be tried again.
    NotEnriched {
        /// The source.
        source: Source,
        /// Why.
        reason: String,
    },
    /// It is being built by another process.
    Elsewhere {
        /// The source.
        source: Source,
    },
    /// It could not be refreshed; said once as long as the reason stays.
    Failed {
        /// The source.
        source: Source,
        /// Why.
        reason: String,
    },
    /// Transcripts were mirrored.
    Mirrored(Box<ArchiveReport>),
    /// A transcript, or all of them, could not be mirrored; said once as long as the reason stays.
    NotMirrored {
        /// Why.
        reason: String,
    },
    /// An export lies where databases are looked for, and was not imported.
    NotImported {
        /// The export.
        path: PathBuf,
    },
}

impl fmt::Display for UpkeepEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |source: &Source| source.path.display().to_string();
        match self {
            UpkeepEvent::Refreshed { source, done } => match done {
                Reindexed::Current { messages } => {
                    write!(f, "{}: the index of {messages} messages is current", name(source))
                }
                Reindexed::Refreshed { added, removed, took } => write!(
                    f,
                    "{}: refreshed in {:.1} s, {added} messages added and {removed} removed",
                    name(source),
                    took.as_secs_f64()
                ),
                Reindexed::Built { size, took, .. } => write!(
                    f,
                    "{}: indexed {} messages in {:.1} s",
                    name(source),
                    size.messages,
                    took.as_secs_f64()
                ),
            },
            UpkeepEvent::Merged { source, took } => write!(
                f,
                "{}: made one part of its index again in {:.1} s",
                name(source),
                took.as_secs_f64()
            ),
            UpkeepEvent::Enriched { source, done, took } => write!(
                f,
                "{}: words of {} and vectors of {} messages made in {:.1} s",
                name(source),
                done.words,
                done.vectors,
                took.as_secs_f64()
            ),
            UpkeepEvent::NotEnriched { source, reason } => {
                write!(f, "{}: ranked without what could not be made: {reason}", name(source))
            }
            UpkeepEvent::Elsewhere { source } => {
                write!(f, "{}: another process is building its index", name(source))
            }
            UpkeepEvent::Failed { source, reason } => {
                write!(f, "{}: its index stays as it is: {reason}", name(source))
            }
            UpkeepEvent::Mirrored(report) => report.fmt(f),
            UpkeepEvent::NotMirrored { reason } => f.write_str(reason),
            UpkeepEvent::NotImported { path } => write!(
                f,
                "{}: an export, which is searched once `verbatim import` has read it",
                path.display()
            ),
        }
    }
}
