//! The index of a database: posting lists of n-grams, a document store, term indexes and vectors.
//!
//! Documents are in result order: doc id 0 is the newest message. So the first verified candidates are the
//! answer, a range of dates is an interval of doc ids, and a search stops at its limit. An index directory
//! holds segments, which never change, and snapshots, each a list of segments and their deleted documents.
//!
//! ```
//! use std::{ops::ControlFlow, path::Path};
//! use verbatim_base::{call::Stop, model::Request};
//! use verbatim_index::{
//!     Build, BuildPlan, ConversationTitle, Document, IndexDir, Reading, Resources, SnapshotBuilder,
//! };
//!
//! # let home = tempfile::tempdir()?;
//! // Where the index of a database is kept; the database itself is never opened.
//! let index = IndexDir::for_database(home.path(), Path::new("chats.db"));
//! let writing = index.lock()?.expect("nobody else writes");
//! let folder = writing.begin()?;
//! let conversations = [ConversationTitle { id: "c1".to_owned(), title: Some(b"Baking".to_vec()) }];
//! let texts = ["Four hours, or a night in the fridge.", "How long does a sourdough proof?"];
//! let sample = texts.map(str::to_owned);
//! let plan = BuildPlan {
//!     conversations: &conversations, sample: &sample, beside: None, messages: 2, text_bytes: 70,
//! };
//! let mut build = Build::start(&folder, plan, Resources { memory: 64 << 20, threads: 1 })?;
//! for (key, (id, text)) in (0..).zip(["m2", "m1"].into_iter().zip(texts)) {
//!     build.add(&Document {
//!         key, id, conversation: 0, role: "user", is_text_role: true, time: None,
//!         position: None, shown: Some(text.as_bytes()), stored: None,
//!     })?;
//! }
//! let size = build.finish(&Stop::never(), |_share| {})?;
//! let mut snapshot = SnapshotBuilder::new("state of the database", Reading::default());
//! snapshot.add(&folder, &size);
//! snapshot.publish(&writing)?;
//!
//! let snapshot = index.open(&index.current().expect("it was published"))?;
//! let request = Request { text: "SOURDOUGH".to_owned(), ..Request::default() };
//! let mut found = Vec::new();
//! snapshot.search(&request, &Stop::never(), &mut |hit| {
//!     found.push(hit.hit().message_id.into_owned());
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(found, ["m1"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It uses `verbatim-text` for grams and verification, `verbatim-base` for files, and is the only crate that
//! names tantivy. It knows no SQL: whoever reads the database gives it documents in result order.
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
mod kept;
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
pub mod varint;
mod vectors;
mod verify;
mod wildcards;

use std::io;
use std::path::{Path, PathBuf};

use verbatim_base::call::Stop;
use verbatim_text::expression::ExpressionError;

pub use activity::{Activity, Last};
pub use aggregate::TextMatch;
pub use build::{Build, BuildPlan};
pub use directory::{CommitStamp, IndexDir, Writing};
pub use documents::SegmentRef;
pub use invert::Resources;
pub use kept::KeptFile;
pub use scored::ScoredDoc;
pub use search::Found;
pub use segment::Size;
pub use snapshot::{Reading, Snapshot, SnapshotBuilder};
pub use store::{ConversationTitle, Document, DocumentBuffer};
pub use terms::{Bm25, DocSet, Norms, TermIndex, WeightedTerm, build_terms, frequencies, holding};
pub use terms::{rounded_length, speaker};
pub use trace::Trace;
pub use vectors::{KeptVectors, KeyedCode, PackedQuery, VectorPartWriter, VectorParts, pack};
pub use vectors::{VectorBuilder, VectorOptions, Vectors};

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

fn write_error(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::Write { path: path.to_owned(), error }
}

/// As [`write_error`], but a requested stop is the reason of any error.
fn write_error_unless_stopped(path: &Path, stop: &Stop) -> impl Fn(io::Error) -> Error {
    move |error| {
        if stop.requested() { Error::Stopped } else { write_error(path)(error) }
    }
}
