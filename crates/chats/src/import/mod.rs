//! Exports of chat services and transcripts of coding agents, read into [`verbatim_base::model`].
//!
//! A zip is read without unpacking it. A file's format is detected from its content; its name only decides
//! the order of reading.
//!
//! Invariant: memory holds at most one conversation of an export at a time.
//! Invariant: a broken export gives an error or a line in the [`ImportTally`], never a panic.

mod attached;
pub mod beside;
mod brackets;
mod builder;
mod chatgpt;
pub mod citations;
mod claude;
mod claude_code;
mod codex;
pub mod compressed;
mod downloads;
mod export;
mod fields;
mod file;
mod foreign;
mod format;
mod formats;
mod found;
mod head;
mod inline;
mod json;
mod package;
mod page;
mod plain;
pub mod repeats;
pub mod results;
mod scan;
mod sources;
mod tally;
pub mod tool;
pub mod transcript;

use std::{io, path::PathBuf};

pub use self::downloads::undownloaded;
pub use self::export::Export;
pub use self::format::Format;
pub use self::formats::ALL as FORMATS;
pub use self::found::{ExpandedPath, FoundExport, expanded, exports_in, missing_parts};
pub use self::tally::OTHER_BRANCHES;
pub use self::tally::{Branches, ImportTally, Skipped};

/// An error that ends the reading of an export.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// The path does not exist or cannot be opened.
    #[error("{path}: cannot read the export: {source}")]
    Open { path: PathBuf, source: io::Error },
    /// The zip cannot be read.
    #[error("{path}: cannot read the zip: {reason}")]
    Zip { path: PathBuf, reason: String },
    /// A part of the export is missing between its other parts.
    #[error(
        "{path}: this part of the export is missing; download it, or ask for the export again, and \
         import it too"
    )]
    MissingPart { path: PathBuf },
    /// The zip would unpack to a size far beyond that of any export.
    #[error(
        "{path}: refused: unpacks to {} MB, more than {ratio} times its size, which no export does",
        unpacked / 1_000_000
    )]
    Bomb { path: PathBuf, unpacked: u64, ratio: u64 },
    /// The file holds no conversation.
    #[error("{path}: not an export we know: {found}")]
    NotAnExport { path: PathBuf, found: String },
    /// The file only lists the zips of an export.
    #[error("{path}: {reason}")]
    OnlyLinks { path: PathBuf, reason: String },
    /// The file is an export, but no conversation could be read.
    #[error("{path}: no conversation could be read: {reason}")]
    NothingReadable { path: PathBuf, reason: String },
}

impl Error {
    /// Returns whether the file only lists the zips of an export.
    pub fn is_only_links(&self) -> bool {
        matches!(self, Error::OnlyLinks { .. })
    }
}
