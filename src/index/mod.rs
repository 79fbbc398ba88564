//! Candidate lookup over n-grams, and the sidecar that candidates are verified on.
//!
//! Documents stand in result order: doc id 0 is the newest message. The first verified candidates
//! are then the answer, a range of dates is an interval of doc ids, and a search ends with its
//! last row.
//!
//! Invariant: holds nothing that `db` cannot rebuild.
//! Invariant: may propose too many candidates, never too few.

mod activity;
mod build;
mod check;
mod cursor;
mod directory;
mod documents;
mod invert;
mod map;
mod plan;
mod postings;
mod search;
mod segment;
mod snapshot;
mod store;
mod terms;
mod trace;
mod varint;
mod wildcards;

use std::{io, path::PathBuf};

pub use activity::{Activity, Last, now};
pub use build::{Build, BuildPlan, Size};
pub use directory::{CommitId, CommitStamp, IndexDir, Writing};
pub use documents::SegmentRef;
pub use invert::Resources;
pub use snapshot::{Reading, Snapshot, SnapshotBuilder};
pub use store::{Conversation, Document};
pub use terms::{DocSet, Norms, TermIndex, WeightedTerm, best, build_terms, frequencies, holding};
pub use trace::{GramUse, Trace};

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
    /// The words of a part are not there or not as they were written.
    #[error("{path}: no words to rank by: {reason}")]
    TermIndex {
        /// Their folder.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A posting list could not be read.
    #[error("reading the index: {0}")]
    Read(#[from] io::Error),
    /// The search was cancelled, or its time was over.
    #[error("the search was stopped")]
    Stopped,
}
