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
mod gaps;
mod generation;
mod invert;
mod map;
mod part;
mod postings;
mod rows;
mod search;
mod shelf;
mod slots;
mod varint;
mod words;

use std::{io, path::PathBuf};

pub use activity::{Activity, Last, now};
pub use build::{Build, Plan, Size};
pub use generation::{Draft, Generation, Reading};
pub use invert::Resources;
pub use rows::{Conversation, Document};
pub use search::{GramUse, Trace};
pub use shelf::{Current, Note, Shelf, Writing};
pub use slots::Part;
pub use words::{Among, Norms, Weighted, Words, best, build_words, frequencies, holding};

/// What can go wrong with an index; none of it keeps a database from being searched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be written.
    #[error("writing the index in {path}: {error}")]
    Write {
        /// The folder of the generation.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A generation is not as it was written.
    #[error("{path}: the index is damaged: {reason}; `verbatim reindex --full` builds it anew")]
    Damaged {
        /// The folder of the generation.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A generation of an earlier or later version of the program.
    #[error(
        "{path}: the index has format {found}, which this version does not read; `verbatim reindex` builds it anew"
    )]
    Format {
        /// The folder of the generation.
        path: PathBuf,
        /// The format's number.
        found: u32,
    },
    /// The words of a part are not there or not as they were written.
    #[error("{path}: no words to rank by: {reason}")]
    Words {
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
