//! Generations: parts that together mirror one state of one database, swapped in whole.
//!
//! A snapshot is a manifest: which parts, and which of their messages are in the database no
//! more, or not as they are there (`dead-0` for the first part, a bit a message). A build of the
//! whole database makes a snapshot of one part; a refresh keeps the parts and adds one of what is
//! new and changed, as the runs of a log-structured merge tree (O'Neil and others, 1996).
//!
//! Invariant: a snapshot that opens holds what its build wrote.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    Error,
    directory::{PART, Writing},
    postings::DocBits,
    segment::{
        FORMAT, FileRecord, Segment, damaged, manifest_checksum, read_manifest, write_manifest,
    },
};
use crate::{failpoint, text::grams::CommonGrams};

/// What a snapshot is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    state: String,
    reading: Reading,
    parts: Vec<SegmentRecord>,
}

/// How the rows were read: only what was read alike can be refreshed row by row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Whether contents were decoded as JSON parts.
    pub decoded: bool,
    /// Whether rows can be told apart and put in order without asking SQLite: ids are texts and
    /// name one conversation each, positions are integers or NULL.
    pub plain: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SegmentRecord {
    name: String,
    manifest_checksum: u32,
    dead: Option<FileRecord>,
}

impl Manifest {
    pub(super) fn part_names(&self) -> impl Iterator<Item = String> {
        self.parts.iter().map(|part| part.name.clone())
    }

    /// Returns each part's name, the checksum of its manifest, and the record of its dead messages.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&str, u32, Option<&FileRecord>)> {
        self.parts.iter().map(|part| (&*part.name, part.manifest_checksum, part.dead.as_ref()))
    }
}

/// A snapshot that is not written yet.
#[derive(Debug)]
pub struct SnapshotBuilder {
    state: String,
    reading: Reading,
    parts: Vec<(PathBuf, Option<DocBits>)>,
}

impl SnapshotBuilder {
    /// Begins a snapshot that mirrors `state`.
    pub fn new(state: &str, reading: Reading) -> SnapshotBuilder {
        SnapshotBuilder { state: state.to_owned(), reading, parts: Vec::new() }
    }

    /// Adds a part that was just built.
    pub fn add(&mut self, folder: &Path) {
        self.parts.push((folder.to_owned(), None));
    }

    /// Adds a part of another snapshot, without the messages in `dead`, which are doc ids of that
    /// snapshot, and without those that were dead there.
    pub fn keep(&mut self, snapshot: &Snapshot, part: usize, dead: &[u32]) {
        let member = &snapshot.members[part];
        let messages = member.part.rows.messages();
        let mut bits = member.dead.clone().unwrap_or_else(|| DocBits::new(messages));
        let doc_ids = member.first..member.first + messages;
        for doc_id in dead.iter().filter(|doc_id| doc_ids.contains(doc_id)) {
            bits.insert(doc_id - member.first);
        }
        self.parts.push((member.part.folder.clone(), (bits.count() > 0).then_some(bits)));
    }

    /// Makes it durable and puts it into use.
    pub fn publish(self, writing: &Writing) -> Result<(), Error> {
        writing.publish(&self)
    }

    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut parts = Vec::new();
        for (number, (part, dead)) in self.parts.iter().enumerate() {
            let dead = match dead {
                None => None,
                Some(bits) => {
                    let name = format!("dead-{number}");
                    let path = folder.join(&name);
                    failpoint::pass("dead to be marked");
                    File::create_new(&path)?.write_all(&bits.to_bytes())?;
                    failpoint::pass("dead marked");
                    Some(FileRecord::seal(name, &path)?)
                }
            };
            let name = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
            parts.push(SegmentRecord { name, manifest_checksum: manifest_checksum(part)?, dead });
        }
        let (state, reading) = (self.state.clone(), self.reading);
        write_manifest(folder, &Manifest { format: FORMAT, state, reading, parts })
    }
}

/// A part as a snapshot has it.
#[derive(Debug)]
pub(super) struct SegmentReader {
    pub(super) part: Segment,
    /// Its messages that are there no more; `None` for none.
    pub(super) dead: Option<DocBits>,
    /// The doc id of its first message.
    pub(super) first: u32,
}

/// An index that is open for searching.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) members: Vec<SegmentReader>,
    pub(super) common: Arc<CommonGrams>,
    name: String,
    state: String,
    reading: Reading,
    dead: u32,
    bytes: u64,
}

impl Snapshot {
    /// The state of the database that it mirrors.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The name of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the rows in it were read.
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// How many messages it holds.
    pub fn messages(&self) -> u32 {
        self.max_doc() - self.dead
    }

    /// How many messages each part holds, and how many of them are dead.
    pub fn sizes(&self) -> Vec<(u32, u32)> {
        let size = |member: &SegmentReader| {
            let dead = member.dead.as_ref().map_or(0, DocBits::count);
            (member.part.rows.messages(), dead)
        };
        self.members.iter().map(size).collect()
    }

    /// How many bytes its files take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many bytes of text it holds, those of dead messages included.
    pub fn text_bytes(&self) -> u64 {
        self.members.iter().map(|member| member.part.text_bytes).sum()
    }

    /// Returns whether its files are as they were when it was opened: a system call a file.
    pub fn is_intact(&self) -> bool {
        self.members.iter().all(|member| member.part.is_intact())
    }

    pub(super) fn open(
        folder: &Path,
        name: &str,
        manifest_checksum: u32,
    ) -> Result<Snapshot, Error> {
        let manifest: Manifest = read_manifest(folder, manifest_checksum)?;
        let mut members: Vec<SegmentReader> = Vec::new();
        let (mut first, mut all_dead, mut bytes) = (0u32, 0, 0);
        for record in &manifest.parts {
            let is_part = record.name.strip_prefix(PART);
            if !is_part.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
                return Err(damaged(folder, "it names a part that is none"));
            }
            let part =
                Segment::open(&folder.with_file_name(&record.name), record.manifest_checksum)?;
            let messages = part.rows.messages();
            let dead = match &record.dead {
                None => None,
                Some(record) => {
                    record.open(folder)?;
                    let bytes = fs::read(folder.join(&record.name))
                        .map_err(|error| damaged(folder, &error.to_string()))?;
                    let bits = DocBits::from_bytes(&bytes, messages)
                        .ok_or_else(|| damaged(folder, "marks are of another part"))?;
                    Some(bits)
                }
            };
            if members.first().is_some_and(|base| base.part.common != part.common) {
                return Err(damaged(folder, "its parts do not belong together"));
            }
            all_dead += dead.as_ref().map_or(0, DocBits::count);
            bytes += part.bytes;
            members.push(SegmentReader { part, dead, first });
            first = first
                .checked_add(messages)
                .ok_or_else(|| damaged(folder, "its parts are too large"))?;
        }
        let Some(base) = members.first() else { return Err(damaged(folder, "it has no parts")) };
        Ok(Snapshot {
            common: Arc::new(CommonGrams::from_packed(&base.part.common)),
            members,
            name: name.to_owned(),
            state: manifest.state,
            reading: manifest.reading,
            dead: all_dead,
            bytes,
        })
    }
}
