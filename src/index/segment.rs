//! Parts: sidecar and posting lists of some messages, written once.
//!
//! ```text
//! part-7/
//!     manifest        length, checksum and identity of each file
//!     rows, columns   the sidecar
//!     common          the grams that were common
//!     grams/          the tantivy index
//! ```
//!
//! A file whose length, identity and times are as the manifest has them is trusted; of any other
//! the checksum is taken before it is used.
//!
//! Invariant: a part that opens holds what its build wrote.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    thread,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    Error,
    postings::Postings,
    store::{Layout, Rows},
};
use crate::failpoint;
use crate::model::Stop;

/// The version of everything in a part and in a snapshot; another is not read but built anew.
pub(super) const FORMAT: u32 = 2;

pub(super) const ROWS: &str = "rows";
pub(super) const COLUMNS: &str = "columns";
pub(super) const COMMON: &str = "common";
pub(super) const GRAMS: &str = "grams";
pub(super) const MANIFEST: &str = "manifest";

/// Of which files a part consists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    text_bytes: u64,
    layout: Layout,
    files: Vec<FileRecord>,
}

/// A file as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    pub(super) name: String,
    pub(super) length: u64,
    checksum: u32,
    identity: String,
}

impl Manifest {
    /// Records every file in a folder, makes them durable, and writes the manifest beside them.
    pub(super) fn seal(folder: &Path, layout: Layout, text_bytes: u64) -> io::Result<Manifest> {
        let mut paths = Vec::new();
        for part in ["", GRAMS] {
            for entry in fs::read_dir(folder.join(part))? {
                let entry = entry?;
                if !entry.file_type()?.is_dir() {
                    let name = Path::new(part).join(entry.file_name());
                    paths.push((name.to_string_lossy().replace('\\', "/"), entry.path()));
                }
            }
        }
        // Two files are large, and the disk and the checksum take turns within each.
        let files = thread::scope(|scope| {
            let threads: Vec<_> = paths
                .into_iter()
                .map(|(name, path)| scope.spawn(move || FileRecord::seal(name, &path)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| io::Error::other("a thread panicked"))?)
                .collect::<io::Result<Vec<_>>>()
        })?;
        sync_folder(&folder.join(GRAMS))?;
        let manifest = Manifest { format: FORMAT, text_bytes, layout, files };
        write_manifest(folder, &manifest)?;
        Ok(manifest)
    }

    /// Returns the records of the part's files.
    pub(super) fn files(&self) -> &[FileRecord] {
        &self.files
    }

    /// Returns the bytes of the sidecar, or else of the posting lists.
    pub(super) fn bytes(&self, of_sidecar: bool) -> u64 {
        let part = |name: &str| (name == ROWS || name == COLUMNS) == of_sidecar;
        self.files.iter().filter(|file| part(&file.name)).map(|file| file.length).sum()
    }
}

impl FileRecord {
    /// Makes a file durable and records it.
    pub(super) fn seal(name: String, path: &Path) -> io::Result<FileRecord> {
        // Not for what is in the file: on some systems only a writer may flush it.
        let file = File::options().read(true).append(true).open(path)?;
        file.sync_all()?;
        let metadata = file.metadata()?;
        let identity = identity(&metadata);
        Ok(FileRecord { name, length: metadata.len(), identity, checksum: checksum(file)? })
    }

    /// Reads the file to its end to see whether it is as it was written; returns its length.
    pub(super) fn check(&self, folder: &Path, stop: &Stop) -> Result<u64, Error> {
        let failed = |error: io::Error| match stop.requested() {
            true => Error::Stopped,
            false => damaged(folder, &format!("{}: {error}", self.name)),
        };
        let file = File::open(folder.join(&self.name)).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length != self.length || checksum_unless(file, stop).map_err(failed)? != self.checksum {
            return Err(damaged(folder, &format!("{} is not as it was written", self.name)));
        }
        Ok(length)
    }

    /// Opens the file if it is as it was written.
    pub(super) fn open(&self, folder: &Path) -> Result<Watched, Error> {
        let failed = |error: io::Error| damaged(folder, &format!("{}: {error}", self.name));
        let file = File::open(folder.join(&self.name)).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let now = identity(&metadata);
        let mut is_as_written = metadata.len() == self.length;
        if is_as_written && now != self.identity {
            let again = file.try_clone().map_err(failed)?;
            is_as_written = checksum(again).map_err(failed)? == self.checksum;
        }
        if !is_as_written {
            return Err(damaged(folder, &format!("{} is not as it was written", self.name)));
        }
        Ok(Watched { file, length: self.length, stamp: stamp(&metadata) })
    }
}

/// Writes the manifest of a folder and makes both durable.
pub(super) fn write_manifest(folder: &Path, manifest: &impl Serialize) -> io::Result<()> {
    failpoint::pass("manifest to be made");
    let mut file = File::create_new(folder.join(MANIFEST))?;
    failpoint::pass("manifest empty");
    file.write_all(&serde_json::to_vec_pretty(manifest)?)?;
    failpoint::pass("manifest written");
    file.sync_all()?;
    sync_folder(folder)?;
    failpoint::pass("manifest durable");
    Ok(())
}

/// Returns the checksum by which a manifest is referred to.
pub(super) fn manifest_checksum(folder: &Path) -> io::Result<u32> {
    Ok(crc32fast::hash(&fs::read(folder.join(MANIFEST))?))
}

/// Reads a manifest of our format that has the checksum.
pub(super) fn read_manifest<M: DeserializeOwned>(folder: &Path, checksum: u32) -> Result<M, Error> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let unreadable = |error: io::Error| damaged(folder, &error.to_string());
    let bytes = fs::read(folder.join(MANIFEST)).map_err(unreadable)?;
    if crc32fast::hash(&bytes) != checksum {
        return Err(damaged(folder, "its manifest is not as it was written"));
    }
    let parse = |error: serde_json::Error| unreadable(error.into());
    let format: Format = serde_json::from_slice(&bytes).map_err(parse)?;
    if format.format != FORMAT {
        return Err(Error::Format { path: folder.to_owned(), found: format.format });
    }
    serde_json::from_slice(&bytes).map_err(parse)
}

/// Returns the error that a folder of the index is not as it was written.
pub(super) fn damaged(folder: &Path, reason: &str) -> Error {
    Error::Damaged { path: folder.to_owned(), reason: reason.to_owned() }
}

/// Returns what changes when a file is written to or replaced, but for its length.
pub(super) fn identity(metadata: &fs::Metadata) -> String {
    stamp(metadata).map(|number| number.to_string()).join(":")
}

/// Returns the same as numbers: which file it is, and when it and its notes were changed.
fn stamp(metadata: &fs::Metadata) -> [i64; 5] {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        [
            metadata.ino() as i64,
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        ]
    }
    #[cfg(not(unix))]
    {
        let nanos = |time: io::Result<std::time::SystemTime>| {
            let since = time.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            since.map_or(0, |since| since.as_nanos() as i64)
        };
        [nanos(metadata.modified()), nanos(metadata.created()), 0, 0, 0]
    }
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn checksum(file: File) -> io::Result<u32> {
    checksum_unless(file, &Stop::never())
}

fn checksum_unless(mut file: File, stop: &Stop) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        if stop.requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// An open file that nobody should write to.
#[derive(Debug)]
pub(super) struct Watched {
    file: File,
    length: u64,
    stamp: [i64; 5],
}

impl Watched {
    /// Returns whether the file is as it was when it was opened, for a system call.
    ///
    /// Removing a file changes its times too, and does no harm to who has it open.
    fn is_intact(&self) -> bool {
        let Ok(metadata) = self.file.metadata() else { return false };
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            if metadata.nlink() == 0 {
                return metadata.len() == self.length;
            }
        }
        metadata.len() == self.length && stamp(&metadata) == self.stamp
    }
}

/// A part that is open for searching.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) rows: Rows,
    pub(super) postings: Postings,
    /// The grams that were common when it was built, packed.
    pub(super) common: Vec<u64>,
    pub(super) folder: PathBuf,
    pub(super) text_bytes: u64,
    /// What its files take.
    pub(super) bytes: u64,
    /// The files that are mapped, as long as the part is open.
    mapped: Vec<Watched>,
}

impl Segment {
    pub(super) fn open(folder: &Path, manifest_checksum: u32) -> Result<Segment, Error> {
        let unreadable = |error: io::Error| damaged(folder, &error.to_string());
        let manifest: Manifest = read_manifest(folder, manifest_checksum)?;
        let mut mapped = Vec::new();
        for record in &manifest.files {
            let file = record.open(folder)?;
            // What else tantivy writes is read when it is opened and not again.
            let is_read_later = [ROWS, COLUMNS].contains(&record.name.as_str())
                || [".term", ".idx"].iter().any(|end| record.name.ends_with(end));
            if is_read_later {
                mapped.push(file);
            }
        }
        let messages = manifest.layout.messages();
        let bytes = manifest.bytes(true) + manifest.bytes(false);
        let rows = Rows::open(&folder.join(ROWS), &folder.join(COLUMNS), manifest.layout)
            .map_err(unreadable)?
            .ok_or_else(|| damaged(folder, "the sidecar has another length than recorded"))?;
        let postings = Postings::open(&folder.join(GRAMS), messages)
            .map_err(|error| damaged(folder, &error.to_string()))?
            .ok_or_else(|| damaged(folder, "the posting lists have other messages"))?;
        let packed = fs::read(folder.join(COMMON)).map_err(unreadable)?;
        let common = packed
            .chunks_exact(8)
            .map(|eight| u64::from_le_bytes(eight.try_into().expect("chunks of eight")))
            .collect();
        Ok(Segment {
            rows,
            postings,
            common,
            folder: folder.to_owned(),
            text_bytes: manifest.text_bytes,
            bytes,
            mapped,
        })
    }

    /// Returns whether the files are as they were when they were opened.
    pub(super) fn is_intact(&self) -> bool {
        self.mapped.iter().all(Watched::is_intact)
    }
}
