//! The index of a database: posting lists of n-grams, a document store, term indexes and vectors.
//!
//! Documents are in result order: doc id 0 is the newest message. So the first verified candidates are the
//! answer, a range of dates is an interval of doc ids, and a search stops at its limit.
//!
//! Invariant: everything in the index can be rebuilt from the database.
//! Invariant: every match is among the candidates.

mod activity;
mod aggregate;
mod artifact;
mod build;
mod check;
mod cursor;
mod directory;
mod documents;
mod invert;
mod lists;
mod pairs;
mod plan;
mod postings;
mod role;
mod scan;
mod scored;
mod search;
mod segment;
mod signature;
mod snapshot;
mod store;
mod terms;
mod trace;
mod uuid;
pub(crate) mod varint;
mod vectors;
mod verify;
mod wildcards;

use std::{io, path::PathBuf};

use crate::text::expression::ExpressionError;

pub use activity::{Activity, Last};
pub use aggregate::TextMatch;
pub use build::{Build, BuildPlan};
pub use directory::{CommitStamp, IndexDir, Writing};
pub use documents::SegmentRef;
pub use invert::Resources;
#[cfg(feature = "internals")]
pub use scored::ScoredDoc;
pub use search::Found;
pub use segment::Size;
pub use snapshot::{Reading, Snapshot, SnapshotBuilder};
pub use store::{ConversationTitle, Document, DocumentBuffer};
pub use terms::{Bm25, DocSet, Norms, TermIndex, WeightedTerm, build_terms, frequencies, holding};
pub(crate) use terms::{rounded_length, speaker};
pub use trace::Trace;
pub(crate) use vectors::{PackedQuery, pack};
pub use vectors::{VectorBuilder, VectorOptions, VectorTable, Vectors};

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of an index. The database can still be searched without the index.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// A file could not be written.
    #[error("writing the index in {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
    /// A file differs from the content that was written.
    #[error("{path}: the index is damaged: {reason}")]
    Damaged { path: PathBuf, reason: String },
    /// The index was written by an earlier or later version of the program.
    #[error("{path}: the index has format {found}, which this version does not read")]
    Format { path: PathBuf, found: u32 },
    /// Another user may have written the index.
    #[error(
        "{path}: this index is not used: {reason}; make its files writable by you only, or delete \
         them"
    )]
    Untrusted { path: PathBuf, reason: &'static str },
    /// Files of the index could not be read.
    #[error("reading the index: {0}")]
    Read(#[from] io::Error),
    /// The file of a segment's vectors could not be written.
    #[error("writing vectors in {}: {error}", path.display())]
    WriteVectors { path: PathBuf, error: io::Error },
    /// The vectors cannot be opened although they were just written.
    #[error("{}: the vectors that were just written cannot be read back", path.display())]
    Vanished { path: PathBuf },
    /// The vector of a query and the vectors of the messages have different dimensions.
    #[error(
        "the embedding model's vectors have {theirs} dimensions now, and those of the messages \
         have {ours}"
    )]
    Lengths { ours: usize, theirs: usize },
    /// A regular expression of the request is wrong or too large.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The work was stopped.
    #[error("the search was stopped")]
    Stopped,
}
