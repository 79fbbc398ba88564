//! Events of the background upkeep, with sentences for a log.

use std::{fmt, path::PathBuf, time::Duration};

use super::{enrich::Enriched, refresh::Reindexed, transcripts::ArchiveReport};
use crate::source::Source;

/// An event of the background upkeep of indexes and the transcript store.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum UpkeepEvent {
    /// This process refreshed an index.
    Refreshed { source: Source, done: Reindexed },
    /// This process merged the segments of an index into one.
    Merged { source: Source, took: Duration },
    /// This process made terms and vectors that an index lacked.
    Enriched { source: Source, done: Enriched, took: Duration },
    /// Terms or vectors could not be made. The work is tried again later.
    NotEnriched { source: Source, reason: String },
    /// Another process is building an index.
    Elsewhere { source: Source },
    /// An index could not be refreshed. This is reported only once for the same reason.
    Failed { source: Source, reason: String },
    /// The transcript store was brought up to date.
    Synced(Box<ArchiveReport>),
    /// Some or all transcripts could not be read. This is reported only once for the same reason.
    NotSynced { reason: String },
    /// An export in `db/` was not imported.
    NotImported { path: PathBuf },
}

impl fmt::Display for UpkeepEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |source: &Source| source.address().to_string();
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
                "{}: merged its index into one part in {:.1} s",
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
                write!(
                    f,
                    "{}: some messages are ranked without words or vectors: {reason}",
                    name(source)
                )
            }
            UpkeepEvent::Elsewhere { source } => {
                write!(f, "{}: its index is being built already", name(source))
            }
            UpkeepEvent::Failed { source, reason } => {
                write!(f, "{}: its index stays as it is: {reason}", name(source))
            }
            UpkeepEvent::Synced(report) => report.fmt(f),
            UpkeepEvent::NotSynced { reason } => f.write_str(reason),
            UpkeepEvent::NotImported { path } => {
                write!(f, "{}: an export that was not imported", path.display())
            }
        }
    }
}
