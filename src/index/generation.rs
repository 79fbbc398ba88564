//! Generations: an index that mirrors one state of one database, written once and swapped in whole.
//!
//! ```text
//! INDEX/NAME-HASH/            one folder a database
//!     lock                    held by whoever writes
//!     current                 the name and the checksum of the manifest of the generation in use
//!     generation-7/
//!         manifest            what it mirrors, and length, checksum and identity of each file
//!         rows, columns       the sidecar
//!         common              the grams that were common
//!         grams/              the tantivy index
//! ```
//!
//! A file whose length, identity and times are as the manifest has them is trusted; of any other
//! the checksum is taken before it is used.
//!
//! Invariant: a generation that opens holds what its build wrote.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use serde::{Deserialize, Serialize};

use super::{
    Error,
    postings::Postings,
    rows::{Layout, Rows},
};
use crate::text::grams::CommonGrams;

/// The version of everything in a generation; another one is not read but built anew.
const FORMAT: u32 = 1;

pub(super) const ROWS: &str = "rows";
pub(super) const COLUMNS: &str = "columns";
pub(super) const COMMON: &str = "common";
pub(super) const GRAMS: &str = "grams";
const MANIFEST: &str = "manifest";
const CURRENT: &str = "current";
const LOCK: &str = "lock";

/// What a generation is and of which files it consists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    state: String,
    text_bytes: u64,
    layout: Layout,
    pub(super) files: Vec<FileRecord>,
}

/// A file of a generation as its build left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    pub(super) name: String,
    pub(super) length: u64,
    checksum: u32,
    identity: String,
}

impl Manifest {
    /// Records every file in a folder, makes them durable, and writes the manifest beside them.
    pub(super) fn seal(
        folder: &Path,
        state: &str,
        layout: Layout,
        text_bytes: u64,
    ) -> io::Result<Manifest> {
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
        let manifest =
            Manifest { format: FORMAT, state: state.to_owned(), text_bytes, layout, files };
        let mut file = File::create_new(folder.join(MANIFEST))?;
        file.write_all(&serde_json::to_vec_pretty(&manifest)?)?;
        file.sync_all()?;
        sync_folder(folder)?;
        Ok(manifest)
    }
}

impl FileRecord {
    /// Makes a file durable and records it.
    fn seal(name: String, path: &Path) -> io::Result<FileRecord> {
        // Not for what is in the file: on some systems only a writer may flush it.
        let file = File::options().read(true).append(true).open(path)?;
        file.sync_all()?;
        let metadata = file.metadata()?;
        let identity = identity(&metadata);
        Ok(FileRecord { name, length: metadata.len(), identity, checksum: checksum(file)? })
    }
}

/// Returns what changes when a file is written to or replaced, but for its length.
fn identity(metadata: &fs::Metadata) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (modified, changed) = (metadata.mtime_nsec(), metadata.ctime_nsec());
        format!("{}:{}.{modified}:{}.{changed}", metadata.ino(), metadata.mtime(), metadata.ctime())
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

/// An index that is open for searching.
#[derive(Debug)]
pub struct Generation {
    pub(super) rows: Rows,
    pub(super) postings: Postings,
    pub(super) common: CommonGrams,
    pub(super) folder: PathBuf,
    name: String,
    state: String,
}

impl Generation {
    /// The state of the database that it mirrors.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The name of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many messages it holds.
    pub fn messages(&self) -> u32 {
        self.rows.messages()
    }

    /// How many conversations it holds.
    pub fn conversations(&self) -> u32 {
        self.rows.conversations()
    }

    fn open(folder: &Path, name: &str, manifest_checksum: u32) -> Result<Generation, Error> {
        let damaged =
            |what: &str| Error::Damaged { path: folder.to_owned(), reason: what.to_owned() };
        let unreadable = |error: io::Error| damaged(&error.to_string());
        let bytes = fs::read(folder.join(MANIFEST)).map_err(unreadable)?;
        if crc32fast::hash(&bytes) != manifest_checksum {
            return Err(damaged("its manifest is not as it was written"));
        }
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let format: Format =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.into()))?;
        if format.format != FORMAT {
            return Err(Error::Format { path: folder.to_owned(), found: format.format });
        }
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.into()))?;
        for record in &manifest.files {
            let file = File::open(folder.join(&record.name)).map_err(unreadable)?;
            let metadata = file.metadata().map_err(unreadable)?;
            let as_written = metadata.len() == record.length
                && (identity(&metadata) == record.identity
                    || checksum(file).map_err(unreadable)? == record.checksum);
            if !as_written {
                return Err(damaged(&format!("{} is not as it was written", record.name)));
            }
        }
        let messages = manifest.layout.messages();
        let rows = Rows::open(&folder.join(ROWS), &folder.join(COLUMNS), manifest.layout)
            .map_err(unreadable)?
            .ok_or_else(|| damaged("the sidecar has another length than the manifest says"))?;
        let postings = Postings::open(&folder.join(GRAMS), messages)
            .map_err(|error| damaged(&error.to_string()))?
            .ok_or_else(|| damaged("the posting lists are of another number of messages"))?;
        let packed = fs::read(folder.join(COMMON)).map_err(unreadable)?;
        let packed: Vec<u64> = packed
            .chunks_exact(8)
            .map(|eight| u64::from_le_bytes(eight.try_into().expect("chunks of eight")))
            .collect();
        Ok(Generation {
            rows,
            postings,
            common: CommonGrams::from_packed(&packed),
            folder: folder.to_owned(),
            name: name.to_owned(),
            state: manifest.state,
        })
    }
}

fn checksum(mut file: File) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// The folder of one database's generations.
#[derive(Clone, Debug)]
pub struct Shelf {
    folder: PathBuf,
}

/// A sign of when the generation in use was put into use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note(Option<String>);

/// What a shelf says is in use: compared to see whether it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    name: String,
    manifest_checksum: u32,
}

impl Shelf {
    /// Returns the shelf of a database, named by its absolute path, under the index folder.
    pub fn of(index: &Path, database: &Path) -> Shelf {
        let stem = database.file_stem().unwrap_or_default().to_string_lossy();
        let plain = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
        let stem: String = stem.chars().take(40).map(plain).collect();
        // FNV-1a, 64 bits: only to tell databases of one name apart.
        let hash = database
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
            });
        Shelf { folder: index.join(format!("{stem}-{hash:016x}")) }
    }

    /// The folder of the generations.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns which generation is in use; `None` where there is none or the note is unreadable.
    pub fn current(&self) -> Option<Current> {
        let note = fs::read_to_string(self.folder.join(CURRENT)).ok()?;
        let (name, checksum) = note.trim_end().split_once(' ')?;
        let number = name.strip_prefix("generation-")?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let manifest_checksum = u32::from_str_radix(checksum, 16).ok()?;
        is_number.then(|| Current { name: name.to_owned(), manifest_checksum })
    }

    /// Returns what changes whenever [`Shelf::current`] does, for a single system call.
    pub fn note(&self) -> Note {
        Note(fs::metadata(self.folder.join(CURRENT)).ok().as_ref().map(identity))
    }

    /// Opens a generation for searching.
    pub fn open(&self, current: &Current) -> Result<Arc<Generation>, Error> {
        let folder = self.folder.join(&current.name);
        Generation::open(&folder, &current.name, current.manifest_checksum).map(Arc::new)
    }

    /// Takes the right to write, over all processes; `None` while another has it.
    pub fn lock(&self) -> Result<Option<Writing>, Error> {
        let failed = |error| Error::Write { path: self.folder.clone(), error };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let path = self.folder.join(LOCK);
        let file = File::options().create(true).append(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Writing { shelf: self.clone(), _lock: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// The right to write to a shelf, given back when dropped.
#[derive(Debug)]
pub struct Writing {
    shelf: Shelf,
    _lock: File,
}

impl Writing {
    /// Removes what earlier builds left unfinished, and makes an empty folder for a new one.
    pub fn begin(&self) -> Result<PathBuf, Error> {
        self.clean();
        let folder = self.shelf.folder.join(format!("generation-{}", self.next_number()));
        match fs::create_dir(&folder) {
            Ok(()) => Ok(folder),
            Err(error) => Err(Error::Write { path: folder, error }),
        }
    }

    /// The number after every one that is in use or was left behind.
    fn next_number(&self) -> u64 {
        let number = |name: &str| name.strip_prefix("generation-")?.parse::<u64>().ok();
        let current = self.shelf.current().and_then(|current| number(&current.name));
        let left = self.entries().into_iter().filter_map(|name| number(&name)).max();
        current.max(left).unwrap_or(0) + 1
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.shelf.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Puts a finished generation into use, for every process at once, and removes older ones.
    pub fn publish(&self, folder: &Path) -> Result<(), Error> {
        let failed = |error| Error::Write { path: folder.to_owned(), error };
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let manifest = fs::read(folder.join(MANIFEST)).map_err(failed)?;
        let note = format!("{name} {:08x}\n", crc32fast::hash(&manifest));
        let mut file = tempfile::Builder::new()
            .prefix("current-")
            .tempfile_in(&self.shelf.folder)
            .map_err(failed)?;
        file.write_all(note.as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(self.shelf.folder.join(CURRENT)).map_err(|error| failed(error.error))?;
        sync_folder(&self.shelf.folder).map_err(failed)?;
        self.clean();
        Ok(())
    }

    /// Removes everything but the generation in use; a reader of an older one keeps its open
    /// files, and where the system forbids removing those, a later call does.
    fn clean(&self) {
        let current = self.shelf.current().map(|current| current.name);
        for name in self.entries() {
            let path = self.shelf.folder.join(&name);
            if name.starts_with("generation-") && Some(&name) != current.as_ref() {
                drop(fs::remove_dir_all(path));
            } else if name.starts_with("current-") {
                drop(fs::remove_file(path));
            }
        }
    }
}
