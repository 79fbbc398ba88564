//! Files of vectors: written beside, put in place whole, and mapped into memory.
//!
//! ```text
//! PART/vectors-MODEL/
//!     manifest        what it holds, and the length, checksum and identity of the other file
//!     rows            count × dimensions int8; padding; count × float32, the scales;
//!                     where there are cells: count × uint32, the doc id of each row;
//!                     count × uint32, the row of each doc id; cells + 1 × uint32, the first row of
//!                     each; cells × float32, the scales of their centres; cells × dimensions int8
//! ```
//!
//! Numbers are little-endian.
//!
//! Invariant: what opens is what was written; anything else is taken for absent, and made anew.

#![allow(unsafe_code)]

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    ops::{Deref, Range},
    path::{Path, PathBuf},
    time::Duration,
};

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::Error;

/// The version of both files.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest";
const ROWS: &str = "rows";

/// What a folder of vectors holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) format: u32,
    pub(super) model: String,
    pub(super) dimensions: usize,
    pub(super) count: u32,
    pub(super) cells: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    shape: Shape,
    length: u64,
    checksum: u32,
    identity: String,
}

/// Where each section of the file is.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    pub(super) rows: Range<usize>,
    pub(super) scales: Range<usize>,
    pub(super) doc_ids: Range<usize>,
    pub(super) places: Range<usize>,
    pub(super) starts: Range<usize>,
    pub(super) centre_scales: Range<usize>,
    pub(super) centres: Range<usize>,
}

impl Shape {
    pub(super) fn new(model: &str, dimensions: usize, count: u32, cells: u32) -> Shape {
        Shape { format: FORMAT, model: model.to_owned(), dimensions, count, cells }
    }

    /// Returns where the sections are; `None` for a file larger than memory can address.
    pub(super) fn sections(&self) -> Option<Sections> {
        let count = self.count as usize;
        let cells = self.cells as usize;
        let (listed, starts) = if cells == 0 { (0, 0) } else { (count, cells.checked_add(1)?) };
        let mut end = 0_usize;
        let mut section = |numbers: usize, size: usize| {
            let start = end.checked_next_multiple_of(4)?;
            end = start.checked_add(numbers.checked_mul(size)?)?;
            Some(start..end)
        };
        Some(Sections {
            rows: section(count, self.dimensions)?,
            scales: section(count, 4)?,
            doc_ids: section(listed, 4)?,
            places: section(listed, 4)?,
            starts: section(starts, 4)?,
            centre_scales: section(cells, 4)?,
            centres: section(cells, self.dimensions)?,
        })
    }
}

/// The prefix of folders under construction.
const UNFINISHED: &str = "vectors-new-";

/// How long it takes at most to make a file in a folder that was just made.
const MOMENT: Duration = Duration::from_secs(60);

/// The folder of a part's vectors by one model.
pub(super) fn folder_of(part: &Path, model: &str) -> PathBuf {
    part.join(format!("vectors-{model}"))
}

/// Removes the files of writers that are gone.
fn clean(part: &Path) {
    for entry in fs::read_dir(part).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let is_left = match File::open(entry.path().join(ROWS)) {
            Ok(file) => file.try_lock().is_ok(),
            // Its writer makes one in a moment, if there still is a writer.
            Err(_) => {
                let made = entry.metadata().and_then(|metadata| metadata.modified()).ok();
                made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age > MOMENT)
            }
        };
        if is_left {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// A file of vectors on its way.
#[derive(Debug)]
pub(super) struct Writer {
    folder: tempfile::TempDir,
    file: BufWriter<File>,
    hasher: crc32fast::Hasher,
    length: u64,
}

impl Writer {
    /// Begins a file in a folder of its own beside those in use, and removes what others left who
    /// did not come to their end.
    pub(super) fn begin(part: &Path) -> Result<Writer, Error> {
        let failed = |error| Error::Write { path: part.to_owned(), error };
        clean(part);
        let folder =
            tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(part).map_err(failed)?;
        let file = File::create_new(folder.path().join(ROWS)).map_err(failed)?;
        // Held as long as it is written to. Without a lock it may be taken for what was left, and
        // then writing it fails.
        drop(file.try_lock());
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(Writer { folder, file, hasher: crc32fast::Hasher::new(), length: 0 })
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Write { path: self.folder.path().to_owned(), error }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| self.failed(error))
    }

    /// Writes whole numbers of four bytes, at a multiple of four.
    pub(super) fn write_numbers(
        &mut self,
        numbers: impl Iterator<Item = [u8; 4]>,
    ) -> Result<(), Error> {
        let padding = self.length.next_multiple_of(4) - self.length;
        self.write(&[0; 3][..padding as usize])?;
        let mut buffer = Vec::with_capacity(1 << 16);
        for number in numbers {
            buffer.extend(number);
            if buffer.len() == buffer.capacity() {
                self.write(&buffer)?;
                buffer.clear();
            }
        }
        self.write(&buffer)
    }

    /// Returns a file of no name beside it, for what has to be written before its order is known.
    pub(super) fn spool(&self) -> Result<Spool, Error> {
        let folder = self.folder.path().to_owned();
        match tempfile::tempfile_in(&folder) {
            Ok(file) => Ok(Spool { folder, file: BufWriter::with_capacity(1 << 20, file) }),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Makes the file durable and puts it in the place of any earlier one.
    pub(super) fn publish(mut self, part: &Path, shape: Shape) -> Result<(), Error> {
        let target = folder_of(part, &shape.model);
        self.file.flush().map_err(|error| self.failed(error))?;
        self.seal(shape).map_err(|error| self.failed(error))?;
        // A folder cannot be put over another: what is there was found to be of no use.
        if target.exists() {
            fs::remove_dir_all(&target).map_err(|error| self.failed(error))?;
        }
        drop(self.file);
        let from = self.folder.keep();
        let moved = fs::rename(&from, &target).and_then(|()| sync_folder(part));
        moved.map_err(|error| {
            drop(fs::remove_dir_all(&from));
            Error::Write { path: target, error }
        })
    }

    fn seal(&self, shape: Shape) -> io::Result<()> {
        self.file.get_ref().sync_all()?;
        let identity = identity(&self.file.get_ref().metadata()?);
        let checksum = self.hasher.clone().finalize();
        let manifest = Manifest { shape, length: self.length, checksum, identity };
        let mut file = File::create_new(self.folder.path().join(MANIFEST))?;
        file.write_all(&serde_json::to_vec_pretty(&manifest)?)?;
        file.sync_all()?;
        sync_folder(self.folder.path())
    }
}

/// A file that goes away when it is dropped.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    file: BufWriter<File>,
}

impl Spool {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let failed = |error| Error::Write { path: self.folder.clone(), error };
        self.file.write_all(bytes).map_err(failed)
    }

    /// Returns what was written.
    pub(super) fn read(self) -> Result<Mapped, Error> {
        let failed = |error| Error::Write { path: self.folder.clone(), error };
        let file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        Mapped::of(&file).map_err(failed)
    }
}

/// Opens a part's vectors by one model; `None` unless they are there, and as they were written.
pub(super) fn open(part: &Path, model: &str, count: u32) -> Option<(Shape, Mapped)> {
    let folder = folder_of(part, model);
    let manifest = fs::read(folder.join(MANIFEST)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&manifest).ok()?;
    let Manifest { shape, length, checksum, identity: known } = manifest;
    let expected = Shape::new(model, shape.dimensions, count, shape.cells);
    let file = File::open(folder.join(ROWS)).ok()?;
    let metadata = file.metadata().ok()?;
    let end = shape.sections()?.centres.end as u64;
    if shape != expected || shape.dimensions == 0 || metadata.len() != length || length != end {
        return None;
    }
    // Its identity and times are cheap to read; of a file that was copied or written to, the
    // checksum says whether it is the same all the same.
    if identity(&metadata) != known && self::checksum(&file).ok()? != checksum {
        return None;
    }
    Some((shape, Mapped::of(&file).ok()?))
}

fn checksum(mut file: &File) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// Returns what changes when a file is written to or replaced, but for its length.
fn identity(metadata: &fs::Metadata) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let [modified, changed] =
            [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())];
        format!("{}:{}.{}:{}.{}", metadata.ino(), modified.0, modified.1, changed.0, changed.1)
    }
    #[cfg(not(unix))]
    {
        let modified = metadata.modified().ok();
        let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        format!("{:?}:{:?}", since, metadata.created().ok())
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// The bytes of a file; the operating system reads and drops them as it sees fit.
#[derive(Debug)]
pub(super) struct Mapped {
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl Mapped {
    pub(super) fn of(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped { map: None });
        }
        // SAFETY: files of vectors are written in a folder of another name, put in place whole and
        // only then opened, and a spool has no name; nothing of ours changes or shortens either
        // after it is mapped.
        let map = unsafe { Mmap::map(file)? };
        Ok(Mapped { map: Some(map) })
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
