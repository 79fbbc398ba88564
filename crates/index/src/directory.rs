//! Index directories: the snapshots of one database, and the right to write them.
//!
//! ```text
//! INDEX/NAME-HASH/    one folder per database
//!     lock            held by the process that writes
//!     current         the name of the current snapshot, and the checksum of its manifest
//!     snapshot-9/     the list of its segments, and files that are derived from it ([`kept`](super::kept))
//!     segment-7/, segment-9/
//! ```

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Error, Result, Snapshot,
    activity::{Activity, Begun, Last},
    artifact,
    segment::SEGMENT,
    snapshot::{SnapshotBuilder, SnapshotManifest},
    vectors::{self, KEPT, KeptVectors},
};
use verbatim_base::{
    failpoint,
    private::{self, FileLock},
};

const CURRENT: &str = "current";
const LOCK: &str = "lock";
const SNAPSHOT: &str = "snapshot-";

/// The prefix of snapshots up to format 2. Opening such a snapshot fails because of its format number.
const OLD_SNAPSHOT: &str = "generation-";

const OLD_SEGMENT: &str = "part-";

/// The number of attempts to take the lock. A child process that was just forked shares its parent's lock,
/// even after the parent releases it, until the child runs its own program.
const ATTEMPTS: u32 = 20;

/// The folder with the snapshots of one database.
#[derive(Clone, Debug)]
pub struct IndexDir {
    folder: PathBuf,
}

/// The identity of the file that names the current snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitStamp(Option<String>);

/// The name of a snapshot, and the checksum of its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitId {
    name: String,
    manifest_checksum: u32,
}

impl CommitId {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn manifest_checksum(&self) -> u32 {
        self.manifest_checksum
    }
}

fn is_folder_of_ours(name: &str) -> bool {
    [SNAPSHOT, SEGMENT, OLD_SNAPSHOT, OLD_SEGMENT].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether an entry of an index directory is made and removed by writers.
pub(super) fn is_ours(name: &str) -> bool {
    is_folder_of_ours(name) || name.starts_with(artifact::TEMPORARY)
}

impl IndexDir {
    /// Returns the index directory of a database below the index folder. The directory's name is derived from
    /// the database's absolute path.
    pub fn for_database(index: &Path, database: &Path) -> IndexDir {
        let stem = database.file_stem().unwrap_or_default().to_string_lossy();
        let plain = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
        let stem: String = stem.chars().take(40).map(plain).collect();
        // FNV-1a, 64 bits: databases of the same name in different folders get different hashes.
        let hash = database
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
            });
        IndexDir { folder: index.join(format!("{stem}-{hash:016x}")) }
    }

    /// Returns whether a folder is an index directory: its name ends with a hash, and it has a lock file.
    pub fn is_at(folder: &Path) -> bool {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let hash = name.rsplit_once('-').map_or("", |(_, hash)| hash);
        let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash && folder.join(LOCK).is_file()
    }

    /// Returns the path of the directory, which may not exist yet.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the index directories beside this one whose databases have the same file name. If the home
    /// folder was moved, the database's own earlier index is among them.
    pub fn namesakes(&self) -> Vec<IndexDir> {
        let stem = |folder: &Path| {
            let name = folder.file_name()?.to_string_lossy().into_owned();
            Some(name.rsplit_once('-')?.0.to_owned())
        };
        let beside = self.folder.parent().and_then(|folder| fs::read_dir(folder).ok());
        let beside = beside.into_iter().flatten().flatten().map(|entry| entry.path());
        let is_namesake = |folder: &PathBuf| {
            *folder != self.folder && IndexDir::is_at(folder) && stem(folder) == stem(&self.folder)
        };
        beside.filter(is_namesake).map(|folder| IndexDir { folder }).collect()
    }

    /// Returns the current snapshot; `None` if there is none or its name cannot be read.
    pub fn current(&self) -> Option<CommitId> {
        let text = fs::read_to_string(self.folder.join(CURRENT)).ok()?;
        let (name, checksum) = text.trim_end().split_once(' ')?;
        let number = name.strip_prefix(SNAPSHOT).or_else(|| name.strip_prefix(OLD_SNAPSHOT))?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let manifest_checksum = u32::from_str_radix(checksum, 16).ok()?;
        is_number.then(|| CommitId { name: name.to_owned(), manifest_checksum })
    }

    /// Returns a value that changes whenever [`IndexDir::current`] does; costs one system call.
    pub fn note(&self) -> CommitStamp {
        let metadata = fs::metadata(self.folder.join(CURRENT)).ok();
        CommitStamp(metadata.as_ref().map(artifact::identity))
    }

    /// Opens a snapshot. Fails if it is damaged, or if other users may have written to it.
    pub fn open(&self, current: &CommitId) -> Result<Arc<Snapshot>> {
        self.check_trusted()?;
        let folder = self.folder.join(&current.name);
        Snapshot::open(&folder, &current.name, current.manifest_checksum).map(Arc::new)
    }

    fn check_trusted(&self) -> Result<()> {
        for path in [self.folder.clone(), self.folder.join(CURRENT)] {
            if let Ok(metadata) = fs::metadata(&path) {
                artifact::check_trusted(&self.folder, &metadata)?;
            }
        }
        Ok(())
    }

    /// Returns the process that writes now, if there is one.
    pub fn activity(&self) -> Option<Activity> {
        FileLock::is_held(&self.folder.join(LOCK)).then(|| Activity::read(&self.folder))
    }

    /// Returns the last refresh, if one was recorded.
    pub fn last(&self) -> Option<Last> {
        Last::read(&self.folder)
    }

    /// Takes the lock for writing. Returns `None` if another process holds the lock.
    pub fn lock(&self) -> Result<Option<Writing>> {
        let failed = |error| Error::Write { path: self.folder.clone(), error };
        private::create_dir_all(&self.folder).map_err(failed)?;
        private::tighten(&self.folder);
        self.check_trusted()?;
        failpoint::pass("folder of the index made");
        let lock = FileLock::try_acquire(&self.folder.join(LOCK), ATTEMPTS).map_err(failed)?;
        Ok(lock.map(|lock| {
            Activity::begin(&self.folder);
            Writing { index_dir: self.clone(), begun: Begun::now(), _lock: lock }
        }))
    }
}

/// The right to write to an index directory. The right ends when this value is dropped.
#[derive(Debug)]
pub struct Writing {
    index_dir: IndexDir,
    begun: Begun,
    _lock: FileLock,
}

impl Writing {
    /// Removes the files of unfinished builds, and makes an empty folder for a new segment.
    pub fn begin(&self) -> Result<PathBuf> {
        self.clean();
        let folder = self.index_dir.folder.join(format!("{SEGMENT}{}", self.next_number()));
        let made = private::create_dir(&folder);
        failpoint::pass("folder of a segment made");
        match made {
            Ok(()) => Ok(folder),
            Err(error) => Err(Error::Write { path: folder, error }),
        }
    }

    /// Removes every snapshot and segment; returns whether all of them are gone.
    pub fn wipe(&self) -> bool {
        drop(fs::remove_file(self.index_dir.folder.join(CURRENT)));
        self.clean();
        KeptVectors::remove(&self.index_dir.folder);
        !self
            .entries()
            .iter()
            .any(|name| is_ours(name) || name.starts_with(KEPT) || name == CURRENT)
    }

    /// Records the work since the lock was taken, for [`IndexDir::last`].
    pub fn record(&self, what: &str, messages: u64) {
        self.begun.record(&self.index_dir.folder, what, messages);
    }

    /// Returns a number greater than those of all snapshots and segments in the directory.
    fn next_number(&self) -> u64 {
        let number = |name: &str| {
            let digits = name.strip_prefix(SNAPSHOT).or_else(|| name.strip_prefix(SEGMENT))?;
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

    /// Makes a snapshot current for all processes in one step, and removes older snapshots.
    fn publish(&self, snapshot: &SnapshotBuilder) -> Result<()> {
        let name = format!("{SNAPSHOT}{}", self.next_number());
        let folder = self.index_dir.folder.join(&name);
        let failed = |error| Error::Write { path: folder.clone(), error };
        private::create_dir(&folder).map_err(failed)?;
        failpoint::pass("folder of a snapshot made");
        let checksum = snapshot.write(&folder).map_err(failed)?;
        let next = format!("{name} {checksum:08x}\n");
        let next = artifact::write_beside(&self.index_dir.folder, next.as_bytes());
        let next = next.map_err(failed)?;
        next.as_file().sync_all().map_err(failed)?;
        failpoint::pass("next commit written");
        private::replace(next.into_temp_path(), &self.index_dir.folder.join(CURRENT))
            .map_err(failed)?;
        failpoint::pass("snapshot in use");
        artifact::sync_folder(&self.index_dir.folder).map_err(failed)?;
        failpoint::pass("snapshot in use for good");
        self.clean();
        failpoint::pass("older snapshots removed");
        Ok(())
    }

    /// Removes all snapshots and segments that the current snapshot does not use.
    ///
    /// A reader of an older snapshot can still read its open files. If the system cannot remove open files, a
    /// later call removes them.
    pub fn clean(&self) {
        let mut used = BTreeSet::new();
        if let Some(current) = self.index_dir.current() {
            let folder = self.index_dir.folder.join(&current.name);
            if let Ok(manifest) = SnapshotManifest::read(&folder, current.manifest_checksum) {
                used.extend(manifest.segments().iter().map(|segment| segment.name.clone()));
            }
            used.insert(current.name);
        }
        for name in self.entries() {
            let path = self.index_dir.folder.join(&name);
            if is_folder_of_ours(&name) && !used.contains(&name) {
                vectors::keep(&path);
                drop(fs::remove_dir_all(path));
                failpoint::pass("folder removed");
            } else if name.starts_with(artifact::TEMPORARY) {
                drop(fs::remove_file(path));
            }
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        Activity::end(&self.index_dir.folder);
    }
}

impl SnapshotBuilder {
    /// Makes the snapshot durable and current.
    pub fn publish(self, writing: &Writing) -> Result<()> {
        writing.publish(&self)
    }
}
