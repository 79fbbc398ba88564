//! Where conversations come from. Every source is a canonical database with an index of its own;
//! what can be done to one can be done to each.

pub(crate) mod catalogue;
pub(crate) mod current;
pub(crate) mod exact;
pub(crate) mod list;
mod neighbours;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod summaries;

use std::path::PathBuf;

use crate::engine::{Config, Engine, upkeep::transcripts::fingerprint};

/// The kinds of sources; there is at most one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// The user's export, read-only: what `conversation_search` asks.
    Export,
    /// Transcripts of coding agents, mirrored from their files into a database of ours.
    Archive,
    /// Threads that `manage_conversation` recorded.
    Threads,
}

impl SourceKind {
    /// Every kind, in the order in which sources are asked.
    pub const ALL: [SourceKind; 3] = [SourceKind::Export, SourceKind::Archive, SourceKind::Threads];

    /// The name by which it is asked for and shown.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Export => "export",
            SourceKind::Archive => "archive",
            SourceKind::Threads => "threads",
        }
    }
}

/// A source that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Its canonical database.
    pub path: PathBuf,
}

impl Config {
    /// Returns the database that transcripts are mirrored into; derived, so beside the indexes.
    ///
    /// Other archives have another: else two that share a home would take turns mirroring all.
    pub fn archive_database(&self) -> PathBuf {
        let name = match self.archive_name() {
            none if none.is_empty() => "archive.db".to_owned(),
            names => format!("archive-{:016x}.db", fingerprint(names.as_bytes())),
        };
        self.index_folder().join(name)
    }

    /// Returns the database that threads are recorded in. Not in `db/`, where the newest file is
    /// taken for an export.
    pub fn threads_database(&self) -> PathBuf {
        self.home.join("threads.db")
    }
}

impl Engine {
    /// Returns the sources that are there now, the export first; looked up anew each time.
    pub fn sources(&self) -> Vec<Source> {
        let path_of = |kind| match kind {
            SourceKind::Export => self.database().ok(),
            SourceKind::Archive => Some(self.config().archive_database()),
            SourceKind::Threads => Some(self.config().threads_database()),
        };
        let there = |kind| {
            let path = path_of(kind).filter(|path| path.is_file())?;
            Some(Source { kind, path })
        };
        SourceKind::ALL.into_iter().filter_map(there).collect()
    }

    /// Returns the export.
    pub(crate) fn export(&self) -> Result<Source, crate::engine::Error> {
        Ok(Source { kind: SourceKind::Export, path: self.database()? })
    }
}
