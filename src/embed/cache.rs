//! Vectors that a provider made, kept by text: what was paid for is not asked for again.
//!
//! ```text
//! SHELF/embedded-MODEL        "verbatim vectors", dimensions (uint32), then one record a text:
//!                             CRC-32 of the rest, FNV-1a of the text (uint128), scale (float32),
//!                             dimensions × int8
//! ```
//!
//! Work that was interrupted goes on from its last whole record, and texts that were embedded for
//! one part need not be for the next. Texts that no message has any more are forgotten once they are
//! the larger part, and caches of models that were not used for a while.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, TryLockError},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use super::{Error, Texts};
use crate::model::Stop;

const MAGIC: &[u8; 16] = b"verbatim vectors";
const HEADER: usize = MAGIC.len() + 4;

/// The bytes of a record before its numbers.
const HEAD: usize = 4 + 16 + 4;

/// How often a cache that another process writes is looked at.
const POLL: Duration = Duration::from_millis(50);

/// How long the cache of a model is kept that is no longer used.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

const PREFIX: &str = "embedded-";

/// FNV-1a over 128 bits: the same text has the same in every version.
pub(super) fn hash(text: &str) -> u128 {
    let step = |hash: u128, byte: &u8| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
    };
    text.as_bytes().iter().fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, step)
}

/// The vectors of one model, for one process at a time.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    file: File,
    /// 0 until the first vector.
    dimensions: usize,
    /// Where each text's record begins.
    records: HashMap<u128, u64>,
    end: u64,
}

impl Cache {
    /// Opens the cache of a model in a folder, or begins one.
    pub(super) fn open(folder: &Path, model: &str, stop: &Stop) -> Result<Cache, Error> {
        let path = folder.join(format!("{PREFIX}{model}"));
        let failed = |error| Error::Write { path: path.clone(), error };
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(failed)?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if stop.requested() => return Err(Error::Stopped),
                Err(TryLockError::WouldBlock) => thread::sleep(POLL),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        // Where that fails, its last change counts for its last use.
        let _ = file.set_modified(SystemTime::now());
        let records = HashMap::new();
        let mut cache = Cache { path: path.clone(), file, dimensions: 0, records, end: 0 };
        cache.read().map_err(failed)?;
        Ok(cache)
    }

    /// Reads every whole record, and closes the gaps between them.
    fn read(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        let mut header = [0; HEADER];
        if length < HEADER as u64 {
            return self.clear();
        }
        reader.read_exact(&mut header)?;
        let (magic, dimensions) = header.split_at(MAGIC.len());
        let dimensions = u32::from_le_bytes(dimensions.try_into().expect("four bytes")) as usize;
        if magic != MAGIC || dimensions == 0 || dimensions > super::MOST_DIMENSIONS {
            return self.clear();
        }
        let mut record = vec![0; HEAD + dimensions];
        let mut end = HEADER as u64;
        while length - end >= record.len() as u64 {
            reader.read_exact(&mut record)?;
            let (checksum, rest) = record.split_at(4);
            if checksum == crc32fast::hash(rest).to_le_bytes() {
                let hash = u128::from_le_bytes(rest[..16].try_into().expect("sixteen bytes"));
                self.records.insert(hash, end);
            }
            end += record.len() as u64;
        }
        (self.dimensions, self.end) = (dimensions, end);
        if self.records.is_empty() { self.clear() } else { self.close_gaps() }
    }

    /// Moves the last records to where there are none, and cuts off what comes after all.
    ///
    /// Killed in between, it leaves one record that is none, or one twice.
    fn close_gaps(&mut self) -> io::Result<()> {
        let size = HEAD + self.dimensions;
        let end = (HEADER + self.records.len() * size) as u64;
        let taken: HashSet<u64> = self.records.values().copied().collect();
        let places = (HEADER as u64..end).step_by(size);
        let mut free = places.filter(|place| !taken.contains(place));
        let mut record = vec![0; size];
        let mut file = &self.file;
        for place in self.records.values_mut().filter(|place| **place >= end) {
            file.seek(SeekFrom::Start(*place))?;
            file.read_exact(&mut record)?;
            *place = free.next().expect("as many are free before the end as stand after it");
            file.seek(SeekFrom::Start(*place))?;
            file.write_all(&record)?;
        }
        file.sync_data()?;
        file.set_len(end)?;
        self.end = end;
        Ok(())
    }

    /// Forgets all texts but some.
    fn retain(&mut self, some: &HashSet<u128>) -> Result<(), Error> {
        self.records.retain(|text, _| some.contains(text));
        let kept = if self.records.is_empty() { self.clear() } else { self.close_gaps() };
        kept.map_err(|error| self.failed(error))
    }

    /// Forgets everything.
    fn clear(&mut self) -> io::Result<()> {
        self.records.clear();
        (self.dimensions, self.end) = (0, 0);
        self.file.set_len(0)
    }

    /// Begins anew, because the model answers with other vectors than before.
    pub(super) fn reset(&mut self) -> Result<(), Error> {
        self.clear().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Write { path: self.path.clone(), error }
    }

    /// How many numbers the vectors have; `None` while there are none.
    pub(super) fn dimensions(&self) -> Option<usize> {
        Some(self.dimensions).filter(|dimensions| *dimensions > 0)
    }

    pub(super) fn has(&self, text: u128) -> bool {
        self.records.contains_key(&text)
    }

    /// Reads the row of a text and returns its scale; `None` for a text that is not there.
    pub(super) fn get(&mut self, text: u128, row: &mut [u8]) -> Result<Option<f32>, Error> {
        let Some(start) = self.records.get(&text).copied() else { return Ok(None) };
        let mut head = [0; HEAD];
        let read = self
            .file
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.file.read_exact(&mut head))
            .and_then(|()| self.file.read_exact(row));
        read.map_err(|error| self.failed(error))?;
        Ok(Some(f32::from_le_bytes(head[20..].try_into().expect("four bytes"))))
    }

    /// Keeps the vectors of some texts, durably.
    pub(super) fn add(
        &mut self,
        dimensions: usize,
        vectors: impl Iterator<Item = (u128, f32, Vec<u8>)>,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        if self.dimensions == 0 {
            self.dimensions = dimensions;
            bytes.extend(MAGIC);
            bytes.extend((dimensions as u32).to_le_bytes());
        } else if self.dimensions != dimensions {
            return Err(Error::Lengths { ours: self.dimensions, theirs: dimensions });
        }
        let mut added = Vec::new();
        for (text, scale, row) in vectors {
            added.push((text, self.end + bytes.len() as u64));
            let start = bytes.len();
            bytes.extend([0; 4]);
            bytes.extend(text.to_le_bytes());
            bytes.extend(scale.to_le_bytes());
            bytes.extend(row);
            let checksum = crc32fast::hash(&bytes[start + 4..]);
            bytes[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        }
        let written = self
            .file
            .seek(SeekFrom::Start(self.end))
            .and_then(|_| self.file.write_all(&bytes))
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a record is worse than none: the next one would begin in its middle.
            let _ = self.file.set_len(self.end);
            return Err(self.failed(error));
        }
        self.end += bytes.len() as u64;
        self.records.extend(added);
        Ok(())
    }
}

/// Forgets the texts of a model that are none of these, where they are the larger part of its
/// cache, and the caches of other models that were not used for a month.
pub(super) fn tidy(
    folder: &Path,
    model: &str,
    texts: &Texts<'_>,
    stop: &Stop,
) -> Result<(), Error> {
    let failed = |error| Error::Write { path: folder.to_owned(), error };
    for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if name == model {
            // To read all of it is dear, and seldom of use.
            if records_of(&entry.path()).is_some_and(|count| count > 2 * u64::from(texts.count)) {
                let needed = (0..texts.count).map(|doc_id| hash(&(texts.text)(doc_id))).collect();
                Cache::open(folder, model, stop)?.retain(&needed)?;
            }
        } else if is_unused(&entry.path()) {
            // What cannot be removed now is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Returns how many records a cache has, as its length says.
fn records_of(path: &Path) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    let dimensions = u32::from_le_bytes(header[MAGIC.len()..].try_into().expect("four bytes"));
    let bytes = file.metadata().ok()?.len() - HEADER as u64;
    Some(bytes / (HEAD as u64 + u64::from(dimensions)))
}

fn is_unused(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let used = file.metadata().and_then(|metadata| metadata.modified());
    let age = used.ok().and_then(|used| used.elapsed().ok());
    age.is_some_and(|age| age > UNUSED) && file.try_lock().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_fnv() {
        assert_eq!(hash(""), 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D);
        assert_eq!(hash("a"), 0xD228_CB69_6F1A_8CAF_7891_2B70_4E4A_8964);
    }
}
