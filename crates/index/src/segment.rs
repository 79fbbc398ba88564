//! Segments: the document store and the posting lists of some messages, written once.
//!
//! ```text
//! segment-7/
//!     manifest        length, checksum and identity of each file
//!     rows, columns   the document store
//!     common          the grams that are common
//!     plain           a bit per message: whether folding changes only ASCII letters of its text
//!     signatures        the signatures of long messages
//!     grams/          the tantivy index
//! ```
//!
//! Invariant: a segment that opens without an error has the bytes that its build wrote.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::artifact::{
    self, FileRecord, OpenFile, WrittenFile, damaged, read_manifest, unreadable,
};
use super::postings::{DocBits, Postings};
use super::signature::Signatures;
use super::store::{DocStore, RowLayout};
use super::{Result, lists};

/// The format version of segments and snapshots. An index of another version is built again.
pub(super) const FORMAT: u32 = 11;

pub(super) const SEGMENT: &str = "segment-";

pub(super) const ROWS: &str = "rows";
pub(super) const COLUMNS: &str = "columns";
pub(super) const COMMON: &str = "common";
pub(super) const GRAMS: &str = "grams";
pub(super) const PLAIN: &str = "plain";
pub(super) const SIGNATURES: &str = "signatures";

/// The size of a finished segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Messages indexed.
    pub messages: u32,
    /// Bytes of text in the messages.
    pub text_bytes: u64,
    /// Bytes of posting lists.
    pub index_bytes: u64,
    /// Bytes of the document store.
    pub store_bytes: u64,
    /// The checksum of the segment's manifest. Snapshots record it.
    pub manifest_checksum: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SegmentManifest {
    format: u32,
    text_bytes: u64,
    layout: RowLayout,
    files: Vec<FileRecord>,
}

impl SegmentManifest {
    /// Makes every file of a segment durable, and writes the manifest. Returns the manifest and its checksum.
    /// `written` has all files except tantivy's.
    pub(super) fn seal(
        folder: &Path,
        layout: RowLayout,
        text_bytes: u64,
        written: &[WrittenFile],
    ) -> io::Result<(SegmentManifest, u32)> {
        let files = artifact::seal(folder, written)?;
        lists::check(&folder.join(GRAMS))?;
        let manifest = SegmentManifest { format: FORMAT, text_bytes, layout, files };
        let checksum = artifact::write_manifest(folder, &manifest)?;
        Ok((manifest, checksum))
    }

    pub(super) fn read(folder: &Path, checksum: u32) -> Result<SegmentManifest> {
        read_manifest(folder, FORMAT, Some(checksum))
    }

    pub(super) fn files(&self) -> &[FileRecord] {
        &self.files
    }

    pub(super) fn store_bytes(&self) -> u64 {
        self.bytes(|name| name == ROWS || name == COLUMNS)
    }

    pub(super) fn index_bytes(&self) -> u64 {
        self.bytes(|_| true) - self.store_bytes()
    }

    fn bytes(&self, counts: impl Fn(&str) -> bool) -> u64 {
        self.files.iter().filter(|file| counts(&file.name)).map(|file| file.length).sum()
    }
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) store: DocStore,
    pub(super) postings: Postings,
    pub(super) signatures: Signatures,
    /// The messages whose text equals its loose form, and in which folding changes only ASCII letters. If
    /// such a message has a gram, its text contains this gram.
    pub(super) plain: DocBits,
    /// The packed grams that were common when the segment was built.
    pub(super) common: Vec<u64>,
    pub(super) folder: PathBuf,
    pub(super) text_bytes: u64,
    pub(super) manifest_checksum: u32,
    /// The files that stay mapped while the segment is open.
    mapped: Vec<OpenFile>,
}

impl Segment {
    pub(super) fn open(folder: &Path, manifest_checksum: u32) -> Result<Segment> {
        let manifest = SegmentManifest::read(folder, manifest_checksum)?;
        let mut mapped = Vec::new();
        let mut rows = None;
        let mut columns = None;
        let mut signatures = None;
        let mut plain = Vec::new();
        let mut packed = Vec::new();
        for record in &manifest.files {
            match record.name.as_str() {
                PLAIN => plain = record.read(folder)?,
                COMMON => packed = record.read(folder)?,
                _ => {}
            }
            let file = record.open(folder)?;
            match record.name.as_str() {
                ROWS => rows = Some(file.map().map_err(unreadable(folder))?),
                COLUMNS => columns = Some(file.map().map_err(unreadable(folder))?),
                SIGNATURES => signatures = Some(file.map().map_err(unreadable(folder))?),
                name if lists::is_read_later(name) => {}
                _ => continue,
            }
            mapped.push(file);
        }
        let store = rows
            .zip(columns)
            .and_then(|(rows, columns)| DocStore::open(rows, columns, manifest.layout))
            .ok_or_else(|| {
                damaged(folder, "the document store has another length than recorded")
            })?;
        let messages = store.messages();
        let signatures = signatures
            .and_then(|signatures| Signatures::open(signatures, messages))
            .ok_or_else(|| damaged(folder, "the signatures are of other messages"))?;
        let plain = DocBits::from_bytes(&plain, messages)
            .ok_or_else(|| damaged(folder, "the plain messages are of another segment"))?;
        let postings = Postings::open(&folder.join(GRAMS))
            .map_err(unreadable(folder))?
            .ok_or_else(|| damaged(folder, "it has no posting lists"))?;
        let common = packed.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
        Ok(Segment {
            store,
            postings,
            signatures,
            plain,
            common,
            folder: folder.to_owned(),
            text_bytes: manifest.text_bytes,
            manifest_checksum,
            mapped,
        })
    }

    pub(super) fn is_intact(&self) -> bool {
        self.mapped.iter().all(OpenFile::is_intact)
    }
}
