//! The vectors of a provider, cached by text: no text is paid for twice.
//!
//! ```text
//! INDEX/NAME-HASH/embedded-MODEL
//!     "verbatim vectors", dimensions (uint32), then one record per text:
//!     CRC-32 of the rest, FNV-1a of the text (uint128), scale (float32), dimensions × int8
//! ```
//!
//! Work that was interrupted continues after the last whole record, and all segments share the cache.
//! Texts of deleted messages are removed once they are more than half of the cache. The cache of another
//! model is removed after a month without use.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, TryLockError},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use super::{Error, Result, Texts};
use verbatim_base::{model::Stop, private};

const MAGIC: &[u8; 16] = b"verbatim vectors";
const HEADER: usize = MAGIC.len() + 4;

const HEAD: usize = 4 + 16 + 4;

/// Time between two attempts to open a cache that another process has open.
const POLL: Duration = Duration::from_millis(50);

/// Time after which the unused cache of another model is removed.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

const PREFIX: &str = "embedded-";

/// Returns the FNV-1a hash of a text, which is the same in every version of the program.
pub fn hash(text: &str) -> u128 {
    let step = |hash: u128, byte: &u8| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
    };
    text.as_bytes().iter().fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, step)
}

/// The cache of one model, open in one process at a time.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    file: File,
    /// 0 while the cache is empty.
    dimensions: usize,
    /// Byte offset of each record, by the hash of the text.
    records: HashMap<u128, u64>,
    end: u64,
}

impl Cache {
    /// Opens or makes the cache of a model in a folder. Waits while another process has it open.
    pub fn open(folder: &Path, model: &str, stop: &Stop) -> Result<Cache> {
        let path = folder.join(format!("{PREFIX}{model}"));
        let failed = |error| Error::Write { path: path.clone(), error };
        let file = private::open_file(&path).map_err(failed)?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if stop.requested() => return Err(Error::Stopped),
                Err(TryLockError::WouldBlock) => thread::sleep(POLL),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        // If setting the time fails, the last change counts as the last use.
        let _ = file.set_modified(SystemTime::now());
        let records = HashMap::new();
        let mut cache = Cache { path: path.clone(), file, dimensions: 0, records, end: 0 };
        cache.read_records().map_err(failed)?;
        Ok(cache)
    }

    /// Reads all intact records, and closes the gaps that damaged records leave.
    fn read_records(&mut self) -> io::Result<()> {
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

    /// Moves the last records into gaps and truncates the file.
    ///
    /// If the process is killed during the move, one record may be damaged or stored twice.
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

    fn retain(&mut self, some: &HashSet<u128>) -> Result<()> {
        self.records.retain(|text, _| some.contains(text));
        let kept = if self.records.is_empty() { self.clear() } else { self.close_gaps() };
        kept.map_err(|error| self.failed(error))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.records.clear();
        (self.dimensions, self.end) = (0, 0);
        self.file.set_len(0)
    }

    /// Removes the records of all texts, because the provider's model has changed.
    pub(super) fn reset(&mut self) -> Result<()> {
        self.clear().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Write { path: self.path.clone(), error }
    }

    /// Returns the number of dimensions; `None` while the cache is empty.
    pub fn dimensions(&self) -> Option<usize> {
        Some(self.dimensions).filter(|dimensions| *dimensions > 0)
    }

    pub(super) fn has(&self, text: u128) -> bool {
        self.records.contains_key(&text)
    }

    /// Reads a text's int8 row and returns its scale; `None` if the cache does not have the text.
    pub fn get(&mut self, text: u128, row: &mut [u8]) -> Result<Option<f32>> {
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

    /// Adds the vectors of some texts and makes them durable.
    pub fn add(
        &mut self,
        dimensions: usize,
        vectors: impl Iterator<Item = (u128, f32, Vec<u8>)>,
    ) -> Result<()> {
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
            // A partial record would shift all later records.
            let _ = self.file.set_len(self.end);
            return Err(self.failed(error));
        }
        self.end += bytes.len() as u64;
        self.records.extend(added);
        Ok(())
    }
}

/// Removes unneeded texts from a model's cache if they are more than half of the cache. Removes the caches
/// of other models that were not used for a month.
pub(super) fn tidy(folder: &Path, model: &str, texts: &Texts<'_>, stop: &Stop) -> Result<()> {
    let failed = |error| Error::Write { path: folder.to_owned(), error };
    for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if name == model {
            // Reading the whole cache is slow and seldom useful, so its length is checked first.
            if count_records(&entry.path()).is_some_and(|count| count > 2 * u64::from(texts.count))
            {
                let needed = (0..texts.count).map(|doc_id| hash(&(texts.text)(doc_id))).collect();
                Cache::open(folder, model, stop)?.retain(&needed)?;
            }
        } else if is_unused(&entry.path()) {
            // A later call tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Removes all texts except the given ones from the caches of every model.
pub(super) fn prune(folder: &Path, texts: &Texts<'_>, stop: &Stop) -> Result<()> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let models: Vec<String> =
        names.filter_map(|name| Some(name.to_str()?.strip_prefix(PREFIX)?.to_owned())).collect();
    if models.is_empty() {
        return Ok(());
    }
    let needed = (0..texts.count).map(|doc_id| hash(&(texts.text)(doc_id))).collect();
    models.iter().try_for_each(|model| Cache::open(folder, model, stop)?.retain(&needed))
}

fn count_records(path: &Path) -> Option<u64> {
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
