//! The vectors of a provider, cached by text: no text is paid for twice.
//!
//! ```text
//! INDEX/NAME-HASH/embedded-MODEL
//!     "verbatim vectors", dimensions (uint32), then one record per text:
//!     CRC-32 of the rest, FNV-1a of the text (uint128), scale (float32), dimensions × int8
//! ```
//!
//! Work that was interrupted continues after the last whole record, and all segments share the cache.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{Error, Result, Texts};
use verbatim_base::{call::Stop, private};

const MAGIC: &[u8; 16] = b"verbatim vectors";
const HEADER: usize = MAGIC.len() + 4;

const HEAD: usize = 4 + 16 + 4;

/// Time between two attempts to open a cache that another process has open.
const POLL: Duration = Duration::from_millis(50);

const PREFIX: &str = "embedded-";

/// Returns the FNV-1a hash of a text, which is the same in every version of the program.
pub fn hash(text: &str) -> u128 {
    text.bytes().fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
    })
}

/// A text's int8 row with its scale.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedRow {
    /// The hash of the text.
    pub text: u128,
    /// The factor of the row's components.
    pub scale: f32,
    /// The components.
    pub row: Vec<u8>,
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
        let file = match private::open_file(&path) {
            Ok(file) => file,
            Err(error) => return Err(Error::Write { path, error }),
        };
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if stop.requested() => return Err(Error::Stopped),
                Err(TryLockError::WouldBlock) => thread::sleep(POLL),
                Err(TryLockError::Error(error)) => return Err(Error::Write { path, error }),
            }
        }
        let records = HashMap::new();
        let mut cache = Cache { path, file, dimensions: 0, records, end: 0 };
        match cache.read_records() {
            Ok(()) => Ok(cache),
            Err(error) => Err(cache.failed(error)),
        }
    }

    /// Reads all intact records. Cuts off half a record at the end, which would shift all later ones.
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
        if self.records.is_empty() {
            return self.clear();
        }
        self.dimensions = dimensions;
        self.end = end;
        self.file.set_len(end)
    }

    /// Moves the records of some texts to the front and drops all others.
    ///
    /// If the process is killed during the move, one record may be damaged or stored twice.
    fn retain(&mut self, some: &HashSet<u128>) -> io::Result<()> {
        let mut kept: Vec<(u64, u128)> =
            self.records.drain().map(|(text, start)| (start, text)).collect();
        kept.retain(|(_, text)| some.contains(text));
        if kept.is_empty() {
            return self.clear();
        }
        kept.sort_unstable();
        let mut record = vec![0; HEAD + self.dimensions];
        self.end = HEADER as u64;
        for (start, text) in kept {
            self.file.seek(SeekFrom::Start(start))?;
            self.file.read_exact(&mut record)?;
            self.file.seek(SeekFrom::Start(self.end))?;
            self.file.write_all(&record)?;
            self.records.insert(text, self.end);
            self.end += record.len() as u64;
        }
        self.file.set_len(self.end)?;
        self.file.sync_data()
    }

    fn clear(&mut self) -> io::Result<()> {
        self.records.clear();
        self.dimensions = 0;
        self.end = 0;
        self.file.set_len(0)
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

    /// Adds the vectors of some texts, which have `dimensions` components, and makes them durable.
    pub fn add(&mut self, dimensions: usize, rows: &[CachedRow]) -> Result<()> {
        let mut bytes = Vec::new();
        if self.dimensions == 0 {
            self.dimensions = dimensions;
            bytes.extend(MAGIC);
            bytes.extend((dimensions as u32).to_le_bytes());
        } else if self.dimensions != dimensions {
            let path = self.path.clone();
            return Err(Error::Lengths { path, ours: self.dimensions, theirs: dimensions });
        }
        let mut added = Vec::new();
        for CachedRow { text, scale, row } in rows {
            added.push((*text, self.end + bytes.len() as u64));
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
            // Half a record would shift all later records.
            let _ = self.file.set_len(self.end);
            return Err(self.failed(error));
        }
        self.end += bytes.len() as u64;
        self.records.extend(added);
        Ok(())
    }
}

/// Removes all texts except the given ones from the caches of providers in a folder, whatever the model.
pub fn prune_caches(folder: &Path, texts: &Texts<'_>, stop: &Stop) -> Result<()> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let models: Vec<String> =
        names.filter_map(|name| Some(name.to_str()?.strip_prefix(PREFIX)?.to_owned())).collect();
    if models.is_empty() {
        return Ok(());
    }
    let needed = (0..texts.count).map(|doc_id| hash(&(texts.text)(doc_id))).collect();
    for model in models {
        let mut cache = Cache::open(folder, &model, stop)?;
        cache.retain(&needed).map_err(|error| cache.failed(error))?;
    }
    Ok(())
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
