//! Snapshots: the segments that together hold one state of a database.
//!
//! A snapshot is a list of segments and of their deleted documents: messages that the database no longer has,
//! or has in another form. The file `deleted-0` has one bit per document of the first segment. A full build
//! makes a snapshot of one segment. A refresh keeps the segments and adds a segment with the new and changed
//! messages, like the runs of a log-structured merge tree (O'Neil and others, 1996).
//!
//! Invariant: a snapshot that opens without an error has the bytes that its build wrote.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Result;
use super::artifact::{FileRecord, damaged, read_manifest, write_file, write_manifest};
use super::postings::DocBits;
use super::segment::{FORMAT, SEGMENT, Segment, Size};
use verbatim_base::failpoint;
use verbatim_text::grams::CommonGrams;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SnapshotManifest {
    format: u32,
    state: String,
    reading: Reading,
    segments: Vec<SegmentRecord>,
}

/// The way in which rows were read. A refresh can compare only rows that were read in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Whether contents were decoded as JSON parts.
    pub decoded: bool,
    /// Whether SQLite compares the roles of this database byte for byte.
    pub bytewise_roles: bool,
    /// Whether rows can be compared and ordered without SQLite: every id is a text and belongs to one
    /// conversation, and every position is an integer or NULL.
    pub plain: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SegmentRecord {
    pub(super) name: String,
    pub(super) manifest_checksum: u32,
    pub(super) deleted: Option<FileRecord>,
}

impl SnapshotManifest {
    pub(super) fn read(folder: &Path, checksum: u32) -> Result<SnapshotManifest> {
        read_manifest(folder, FORMAT, Some(checksum))
    }

    pub(super) fn segments(&self) -> &[SegmentRecord] {
        &self.segments
    }

    pub(super) fn state(&self) -> &str {
        &self.state
    }
}

/// A snapshot that is not written yet.
#[derive(Debug)]
pub struct SnapshotBuilder {
    state: String,
    reading: Reading,
    segments: Vec<SegmentToName>,
}

#[derive(Debug)]
struct SegmentToName {
    folder: PathBuf,
    manifest_checksum: u32,
    deleted: Option<DocBits>,
}

impl SnapshotBuilder {
    /// Makes a builder without segments. `state` names the state of the database that is indexed.
    pub fn new(state: &str, reading: Reading) -> SnapshotBuilder {
        SnapshotBuilder { state: state.to_owned(), reading, segments: Vec::new() }
    }

    /// Adds a segment that was just built.
    pub fn add(&mut self, folder: &Path, size: &Size) {
        self.segments.push(SegmentToName {
            folder: folder.to_owned(),
            manifest_checksum: size.manifest_checksum,
            deleted: None,
        });
    }

    /// Adds a segment of another snapshot. Its deleted documents stay deleted. The documents in `deleted`
    /// (doc ids of the other snapshot) become deleted too.
    pub fn keep(&mut self, snapshot: &Snapshot, segment: usize, deleted: &[u32]) {
        let reader = &snapshot.segments[segment];
        let messages = reader.data.store.messages();
        let mut bits = reader.deleted.clone().unwrap_or_else(|| DocBits::new(messages));
        let doc_ids = reader.first..reader.first + messages;
        for doc_id in deleted.iter().filter(|doc_id| doc_ids.contains(doc_id)) {
            bits.insert(doc_id - reader.first);
        }
        self.segments.push(SegmentToName {
            folder: reader.data.folder.clone(),
            manifest_checksum: reader.data.manifest_checksum,
            deleted: if bits.count() > 0 { Some(bits) } else { None },
        });
    }

    pub(super) fn write(&self, folder: &Path) -> io::Result<u32> {
        let mut segments = Vec::new();
        for (number, segment) in self.segments.iter().enumerate() {
            let deleted = match &segment.deleted {
                None => None,
                Some(bits) => {
                    let name = format!("deleted-{number}");
                    failpoint::pass("deleted documents to be written");
                    let file = write_file(folder, &name, &bits.to_bytes())?;
                    failpoint::pass("deleted documents written");
                    Some(FileRecord::sync(folder, file)?)
                }
            };
            let name = segment.folder.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            let manifest_checksum = segment.manifest_checksum;
            segments.push(SegmentRecord { name, manifest_checksum, deleted });
        }
        let state = self.state.clone();
        let reading = self.reading;
        write_manifest(folder, &SnapshotManifest { format: FORMAT, state, reading, segments })
    }
}

#[derive(Debug)]
pub(super) struct SegmentReader {
    pub(super) data: Segment,
    /// The segment's deleted documents; `None` if there are none.
    pub(super) deleted: Option<DocBits>,
    /// The doc id of the segment's first message.
    pub(super) first: u32,
}

impl SegmentReader {
    pub(super) fn is_alive(&self, doc: u32) -> bool {
        self.deleted.as_ref().is_none_or(|deleted| !deleted.contains(doc))
    }

    fn open(folder: &Path, record: &SegmentRecord, first: u32) -> Result<SegmentReader> {
        let is_segment = record.name.strip_prefix(SEGMENT);
        if !is_segment.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(damaged(folder, "a segment in it has an invalid name"));
        }
        let path = folder.with_file_name(&record.name);
        let data = Segment::open(&path, record.manifest_checksum)?;
        let deleted = match &record.deleted {
            None => None,
            Some(record) => {
                let bits = DocBits::from_bytes(&record.read(folder)?, data.store.messages())
                    .ok_or_else(|| damaged(folder, "deleted documents are of another segment"))?;
                Some(bits)
            }
        };
        Ok(SegmentReader { data, deleted, first })
    }
}

/// An index that is open for searching.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) segments: Vec<SegmentReader>,
    pub(super) common: Arc<CommonGrams>,
    folder: PathBuf,
    manifest_checksum: u32,
    name: String,
    state: String,
    reading: Reading,
    deleted: u32,
}

impl Snapshot {
    pub(super) fn open(folder: &Path, name: &str, manifest_checksum: u32) -> Result<Snapshot> {
        let manifest = SnapshotManifest::read(folder, manifest_checksum)?;
        let mut segments: Vec<SegmentReader> = Vec::new();
        let mut first = 0u32;
        let mut deleted = 0;
        for record in &manifest.segments {
            let reader = SegmentReader::open(folder, record, first)?;
            if segments.first().is_some_and(|base| base.data.common != reader.data.common) {
                return Err(damaged(folder, "its segments do not belong together"));
            }
            deleted += reader.deleted.as_ref().map_or(0, DocBits::count);
            first = first
                .checked_add(reader.data.store.messages())
                .ok_or_else(|| damaged(folder, "its segments are too large"))?;
            segments.push(reader);
        }
        let Some(base) = segments.first() else {
            return Err(damaged(folder, "the index has no segments"));
        };
        Ok(Snapshot {
            common: Arc::new(CommonGrams::from_packed(&base.data.common)),
            segments,
            folder: folder.to_owned(),
            manifest_checksum,
            name: name.to_owned(),
            state: manifest.state,
            reading: manifest.reading,
            deleted,
        })
    }

    /// Returns the state of the indexed database, as given to [`SnapshotBuilder::new`].
    pub fn state(&self) -> &str {
        &self.state
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of the index directory.
    pub fn index_folder(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    pub(super) fn manifest_checksum(&self) -> u32 {
        self.manifest_checksum
    }

    /// Returns the name of the snapshot, which is the name of its folder in the index directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how the snapshot's rows were read.
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// Returns the number of messages, without deleted documents.
    pub fn messages(&self) -> u32 {
        self.max_doc() - self.deleted
    }

    /// Returns the number of messages with these doc ids, without deleted documents.
    pub fn messages_in(&self, doc_ids: Range<u32>) -> u32 {
        if self.deleted == 0 {
            return doc_ids.len() as u32;
        }
        doc_ids.into_iter().filter(|doc_id| self.is_alive(*doc_id)).count() as u32
    }

    /// Returns for each segment the number of documents, and how many of them are deleted.
    pub fn sizes(&self) -> Vec<(u32, u32)> {
        let sizes = self.segments.iter().map(|reader| {
            let deleted = reader.deleted.as_ref().map_or(0, DocBits::count);
            (reader.data.store.messages(), deleted)
        });
        sizes.collect()
    }

    /// Returns the size of the texts in bytes, including deleted documents.
    pub fn text_bytes(&self) -> u64 {
        self.segments.iter().map(|reader| reader.data.text_bytes).sum()
    }

    /// Gives back the memory of the texts that were read, which counts as memory of the process.
    pub fn release(&self) {
        self.segments.iter().for_each(|reader| reader.data.store.release());
    }

    /// Returns whether the files are unchanged since they were opened. Costs a system call per file.
    pub fn is_intact(&self) -> bool {
        self.segments.iter().all(|reader| reader.data.is_intact())
    }
}
