//! The index of a database: posting lists of n-grams, a document store, term indexes and vectors.
//!
//! Documents stand in result order: doc id 0 is the newest message. So the first verified candidates
//! are the answer, a range of dates is an interval of doc ids, and a search ends with its last hit.
//!
//! Invariant: holds nothing that cannot be built again from the database.
//! Invariant: may propose too many candidates, never too few.

mod activity;
mod artifact;
mod build;
mod check;
mod cursor;
mod directory;
mod documents;
mod invert;
mod lists;
mod postings;
mod search;
mod segment;
mod snapshot;
mod store;
mod terms;
mod varint;
mod wildcards;

use std::{io, path::PathBuf};

pub use activity::{Activity, Last, now};
pub use build::{Build, BuildPlan, Size};
pub use directory::{CommitId, CommitStamp, IndexDir, Writing};
pub use documents::SegmentRef;
pub use invert::Resources;
pub use search::{GramUse, Trace};
pub use snapshot::{Reading, Snapshot, SnapshotBuilder};
pub use store::{Conversation, Document};
pub use terms::{DocSet, Norms, TermIndex, WeightedTerm, best, build_terms, frequencies, holding};

/// What can go wrong with an index; none of it keeps a database from being searched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be written.
    #[error("writing the index in {path}: {error}")]
    Write {
        /// The folder of the snapshot.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A snapshot is not as it was written.
    #[error("{path}: the index is damaged: {reason}; `verbatim reindex --full` builds it anew")]
    Damaged {
        /// The folder of the snapshot.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A snapshot of an earlier or later version of the program.
    #[error(
        "{path}: the index has format {found}, which this version does not read; `verbatim reindex` builds it anew"
    )]
    Format {
        /// The folder of the snapshot.
        path: PathBuf,
        /// The format's number.
        found: u32,
    },
    /// A posting list could not be read.
    #[error("reading the index: {0}")]
    Read(#[from] io::Error),
    /// The search was cancelled, or its time was over.
    #[error("the search was stopped")]
    Stopped,
}
