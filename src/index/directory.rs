//! Where the snapshots of one database lie, and who may write there.
//!
//! ```text
//! INDEX/NAME-HASH/    one folder a database
//!     lock            held by whoever writes
//!     current         the name and the checksum of the manifest of the snapshot in use
//!     snapshot-9/   which parts it consists of
//!     part-7/, part-9/
//! ```

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use super::{
    Error, Snapshot,
    activity::Begun,
    segment::{identity, manifest_checksum, read_manifest, sync_folder},
    snapshot::{Manifest, SnapshotBuilder},
};
use crate::failpoint;

const CURRENT: &str = "current";
pub(super) const LOCK: &str = "lock";
const GENERATION: &str = "generation-";
pub(super) const PART: &str = "part-";

/// How often and at what distance the lock is asked for. A lock that was given up is held a moment
/// longer by a process that another thread is just starting, until that is another program.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// The folder of one database's snapshots.
#[derive(Clone, Debug)]
pub struct IndexDir {
    folder: PathBuf,
}

/// A sign of when the snapshot in use was put into use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitStamp(Option<String>);

/// What a index directory says is in use: compared to see whether it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitId {
    name: String,
    manifest_checksum: u32,
}

impl CommitId {
    /// The name of the snapshot's folder.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn manifest_checksum(&self) -> u32 {
        self.manifest_checksum
    }
}

/// Returns whether a folder or file of that name is made and removed by whoever writes.
pub(super) fn is_ours(name: &str) -> bool {
    [GENERATION, PART, "current-"].iter().any(|prefix| name.starts_with(prefix))
}

impl IndexDir {
    /// Returns the index directory of a database, named by its absolute path, under the index folder.
    pub fn of(index: &Path, database: &Path) -> IndexDir {
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
        IndexDir { folder: index.join(format!("{stem}-{hash:016x}")) }
    }

    /// The folder of the snapshots.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns which snapshot is in use; `None` where there is none or the note is unreadable.
    pub fn current(&self) -> Option<CommitId> {
        let note = fs::read_to_string(self.folder.join(CURRENT)).ok()?;
        let (name, checksum) = note.trim_end().split_once(' ')?;
        let number = name.strip_prefix(GENERATION)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let manifest_checksum = u32::from_str_radix(checksum, 16).ok()?;
        is_number.then(|| CommitId { name: name.to_owned(), manifest_checksum })
    }

    /// Returns what changes whenever [`IndexDir::current`] does, for a single system call.
    pub fn note(&self) -> CommitStamp {
        CommitStamp(fs::metadata(self.folder.join(CURRENT)).ok().as_ref().map(identity))
    }

    /// Opens a snapshot for searching.
    pub fn open(&self, current: &CommitId) -> Result<Arc<Snapshot>, Error> {
        let folder = self.folder.join(&current.name);
        Snapshot::open(&folder, &current.name, current.manifest_checksum).map(Arc::new)
    }

    /// Takes the right to write, over all processes; `None` while another has it.
    pub fn lock(&self) -> Result<Option<Writing>, Error> {
        let failed = |error| Error::Write { path: self.folder.clone(), error };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let path = self.folder.join(LOCK);
        failpoint::pass("folder of the index made");
        let file = File::options().create(true).append(true).open(path).map_err(failed)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => {
                    let writing =
                        Writing { index_dir: self.clone(), begun: Begun::now(), _lock: file };
                    writing.announce();
                    return Ok(Some(writing));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Ok(None)
    }
}

/// The right to write to a index directory, given back when dropped.
#[derive(Debug)]
pub struct Writing {
    index_dir: IndexDir,
    pub(super) begun: Begun,
    _lock: File,
}

impl Writing {
    pub(super) fn index_dir(&self) -> &IndexDir {
        &self.index_dir
    }

    /// Removes what earlier builds left unfinished, and makes an empty folder for a new part.
    pub fn begin(&self) -> Result<PathBuf, Error> {
        self.clean();
        let folder = self.index_dir.folder.join(format!("{PART}{}", self.next_number()));
        let made = fs::create_dir(&folder);
        failpoint::pass("folder of a part made");
        match made {
            Ok(()) => Ok(folder),
            Err(error) => Err(Error::Write { path: folder, error }),
        }
    }

    /// The number after every one that is in use or was left behind.
    fn next_number(&self) -> u64 {
        let number = |name: &str| {
            let digits = name.strip_prefix(GENERATION).or_else(|| name.strip_prefix(PART))?;
            digits.parse::<u64>().ok()
        };
        let current = self.index_dir.current().and_then(|current| number(&current.name));
        let left = self.entries().into_iter().filter_map(|name| number(&name)).max();
        current.max(left).unwrap_or(0) + 1
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.index_dir.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Puts a snapshot into use, for every process at once, and removes older ones.
    pub(super) fn publish(&self, manifest: &SnapshotBuilder) -> Result<(), Error> {
        let name = format!("{GENERATION}{}", self.next_number());
        let folder = self.index_dir.folder.join(&name);
        let failed = |error| Error::Write { path: folder.clone(), error };
        fs::create_dir(&folder).map_err(failed)?;
        failpoint::pass("folder of a generation made");
        manifest.write(&folder).map_err(failed)?;
        let checksum = manifest_checksum(&folder).map_err(failed)?;
        let mut file = tempfile::Builder::new()
            .prefix("current-")
            .tempfile_in(&self.index_dir.folder)
            .map_err(failed)?;
        writeln!(file, "{name} {checksum:08x}").map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        failpoint::pass("next note written");
        file.persist(self.index_dir.folder.join(CURRENT)).map_err(|error| failed(error.error))?;
        failpoint::pass("generation in use");
        sync_folder(&self.index_dir.folder).map_err(failed)?;
        failpoint::pass("generation in use for good");
        self.clean();
        failpoint::pass("older generations removed");
        Ok(())
    }

    /// Removes everything but the snapshot in use and its parts; a reader of an older one keeps
    /// its open files, and where the system forbids removing those, a later call does.
    pub fn clean(&self) {
        let mut used = BTreeSet::new();
        if let Some(current) = self.index_dir.current() {
            let folder = self.index_dir.folder.join(&current.name);
            let manifest = read_manifest::<Manifest>(&folder, current.manifest_checksum);
            used.extend(manifest.iter().flat_map(Manifest::part_names));
            used.insert(current.name);
        }
        for name in self.entries() {
            let path = self.index_dir.folder.join(&name);
            if (name.starts_with(GENERATION) || name.starts_with(PART)) && !used.contains(&name) {
                drop(fs::remove_dir_all(path));
                failpoint::pass("folder removed");
            } else if name.starts_with("current-") {
                drop(fs::remove_file(path));
            }
        }
    }
}
