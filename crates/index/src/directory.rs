//! Index directories: the snapshots of one database, and the right to write them.
//!
//! ```text
//! INDEX/NAME-HASH/    one folder per database
//!     lock            held by the process that writes
//!     database        where the database is, for [`IndexDir::adopt`]
//!     current         the name of the current snapshot, and the checksum of its manifest
//!     snapshot-9/     the list of its segments, and files that are derived from it ([`kept`](super::kept))
//!     segment-7/, segment-9/
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::activity::{Activity, Begun, Last};
use super::segment::SEGMENT;
use super::snapshot::{SnapshotBuilder, SnapshotManifest};
use super::vectors;
use super::{Result, Snapshot, artifact, write_error};
use verbatim_base::private::{self, FileLock};
use verbatim_base::{failpoint, files};
use verbatim_text::hash::fnv1a;

const CURRENT: &str = "current";
const DATABASE: &str = "database";
const LOCK: &str = "lock";
const SNAPSHOT: &str = "snapshot-";

/// The number of attempts to take the lock. A child process that was just forked shares its parent's lock,
/// even after the parent releases it, until the child runs its own program.
const ATTEMPTS: u32 = 20;

/// The folder with the snapshots of one database.
#[derive(Clone, Debug)]
pub struct IndexDir {
    folder: PathBuf,
    /// Where the database is: relative to the folder that holds the index folder, if it is in there, else its
    /// absolute path. A home that was moved or copied has the same places.
    place: PathBuf,
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

/// Returns whether an entry of an index directory is made and removed by writers.
pub(super) fn is_ours(name: &str) -> bool {
    [SNAPSHOT, SEGMENT, artifact::TEMPORARY].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the folder that holds the index folder, without symbolic links.
fn base(index: &Path) -> Option<PathBuf> {
    let index = std::path::absolute(index).ok()?;
    dunce::canonicalize(index.parent()?).ok()
}

/// Returns the index directories in the index folder.
fn folders_in(index: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(index).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|folder| IndexDir::is_at(folder))
}

/// Returns where the database of an index directory is.
fn place_in(folder: &Path) -> Option<PathBuf> {
    files::read_to_string(&folder.join(DATABASE)).ok().map(PathBuf::from)
}

impl IndexDir {
    /// Returns the index directory of a database below the index folder. `database` is an absolute path without
    /// symbolic links. The directory's name is derived from the place of the database in the home, so that it is
    /// the same after the home was moved; for a database elsewhere, from its path.
    pub fn for_database(index: &Path, database: &Path) -> IndexDir {
        let base = base(index);
        let place = base.and_then(|base| database.strip_prefix(base).ok()).unwrap_or(database);
        let stem = database.file_stem().unwrap_or_default().to_string_lossy();
        let stem: String = stem
            .chars()
            .take(40)
            .map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' })
            .collect();
        // Databases of the same name in different folders get different hashes.
        let hash = fnv1a(place.as_os_str().as_encoded_bytes());
        let folder = index.join(format!("{stem}-{hash:016x}"));
        IndexDir { folder, place: place.to_owned() }
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

    /// Returns all index directories in the index folder that say where their database is.
    pub fn all(index: &Path) -> Vec<IndexDir> {
        let folders = folders_in(index);
        folders.filter_map(|folder| Some(IndexDir { place: place_in(&folder)?, folder })).collect()
    }

    /// Returns the index directories that no program asks: their database is gone, or they have not the name of its
    /// index, or do not say which database it is.
    pub fn strays(index: &Path) -> Vec<IndexDir> {
        let mut strays = Vec::new();
        for folder in folders_in(index) {
            let place = place_in(&folder);
            let is_asked = place.is_some();
            let dir = IndexDir { folder, place: place.unwrap_or_default() };
            let own = IndexDir::for_database(index, &dir.database());
            if !is_asked || dir.is_orphan() || own.folder.file_name() != dir.folder.file_name() {
                strays.push(dir);
            }
        }
        strays
    }

    /// Returns what is in the place of the folder or of its lock, so that the index cannot be written.
    pub fn obstacle(&self) -> Option<PathBuf> {
        let lock = self.folder.join(LOCK);
        if files::is_there(&self.folder) && !self.folder.is_dir() {
            return Some(self.folder.clone());
        }
        files::check(&lock).is_err_and(|error| files::is_no_file(&error)).then_some(lock)
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        let base = self.folder.parent().and_then(base).unwrap_or_default();
        base.join(&self.place)
    }

    /// Returns whether there is no file where the database was. Then no program can ask this index.
    pub fn is_orphan(&self) -> bool {
        // A link to a disk that is not mounted stays the place of the database.
        let gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        fs::symlink_metadata(self.database()).is_err_and(|error| gone.contains(&error.kind()))
    }

    /// Returns the state of the database from which the current snapshot was made.
    pub fn state(&self) -> Option<String> {
        let current = self.current()?;
        let folder = self.folder.join(&current.name);
        Some(SnapshotManifest::read(&folder, current.manifest_checksum).ok()?.state().to_owned())
    }

    /// Makes the index in another directory that of this database, which has none, because it is where the other
    /// database was moved to. Returns false if this directory exists, or the other one is in use.
    pub fn adopt(&self, other: &IndexDir) -> bool {
        if self.folder.exists() || other.activity().is_some() {
            return false;
        }
        let is_moved = fs::rename(&other.folder, &self.folder).is_ok();
        if is_moved {
            self.record_place();
        }
        is_moved
    }

    /// Writes down where the database is.
    fn record_place(&self) {
        let file = self.folder.join(DATABASE);
        if let Some(place) = self.place.to_str()
            && files::read_to_string(&file).ok().as_deref() != Some(place)
            && let Ok(next) = artifact::write_beside(&self.folder, place.as_bytes())
        {
            // Without the file, the index is built again if the database is moved.
            drop(private::replace(next.into_temp_path(), &file));
        }
    }

    /// Returns the current snapshot; `None` if there is none or its name cannot be read.
    pub fn current(&self) -> Option<CommitId> {
        let text = files::read_to_string(&self.folder.join(CURRENT)).ok()?;
        let (name, checksum) = text.trim_end().split_once(' ')?;
        let number = name.strip_prefix(SNAPSHOT)?;
        let manifest_checksum = u32::from_str_radix(checksum, 16).ok()?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(CommitId { name: name.to_owned(), manifest_checksum })
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

    /// Returns the names of a snapshot's folders: its own, and those of its segments.
    pub(super) fn used_by(&self, commit: &CommitId) -> Result<BTreeSet<String>> {
        let folder = self.folder.join(&commit.name);
        let manifest = SnapshotManifest::read(&folder, commit.manifest_checksum)?;
        let segments = manifest.segments().iter().map(|segment| segment.name.clone());
        Ok(segments.chain([commit.name.clone()]).collect())
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
        private::create_dir_all(&self.folder).map_err(write_error(&self.folder))?;
        private::tighten(&self.folder);
        self.check_trusted()?;
        failpoint::pass("folder of the index made");
        let lock = FileLock::try_acquire(&self.folder.join(LOCK), ATTEMPTS)
            .map_err(write_error(&self.folder))?;
        Ok(lock.map(|lock| {
            self.record_place();
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
        made.map_err(write_error(&folder))?;
        Ok(folder)
    }

    /// Removes every snapshot and segment; returns whether all of them are gone. What [`KeptVectors`](super::KeptVectors) keeps of
    /// them stays.
    pub fn wipe(&self) -> bool {
        drop(fs::remove_file(self.index_dir.folder.join(CURRENT)));
        self.clean();
        !self.entries().iter().any(|name| is_ours(name) || name == CURRENT)
    }

    /// Records the work since the lock was taken, for [`IndexDir::last`].
    pub fn record(&self, what: &str, messages: u64) {
        self.begun.record(&self.index_dir.folder, what, messages);
    }

    /// Returns a number greater than those of all snapshots and segments in the directory.
    fn next_number(&self) -> u64 {
        let current = self.index_dir.current().map(|current| current.name);
        let numbers = self.entries().into_iter().chain(current).filter_map(|name| {
            let digits = name.strip_prefix(SNAPSHOT).or_else(|| name.strip_prefix(SEGMENT))?;
            digits.parse::<u64>().ok()
        });
        numbers.max().unwrap_or(0) + 1
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.index_dir.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Makes a snapshot current for all processes in one step, and removes older snapshots.
    fn publish(&self, snapshot: &SnapshotBuilder) -> Result<()> {
        let name = format!("{SNAPSHOT}{}", self.next_number());
        let folder = self.index_dir.folder.join(&name);
        self.put_in_use(snapshot, &name, &folder).map_err(write_error(&folder))?;
        failpoint::pass("snapshot in use for good");
        self.clean();
        failpoint::pass("older snapshots removed");
        Ok(())
    }

    fn put_in_use(&self, snapshot: &SnapshotBuilder, name: &str, folder: &Path) -> io::Result<()> {
        private::create_dir(folder)?;
        failpoint::pass("folder of a snapshot made");
        let checksum = snapshot.write(folder)?;
        let next = format!("{name} {checksum:08x}\n");
        let next = artifact::write_beside(&self.index_dir.folder, next.as_bytes())?;
        next.as_file().sync_all()?;
        failpoint::pass("next commit written");
        private::replace(next.into_temp_path(), &self.index_dir.folder.join(CURRENT))?;
        failpoint::pass("snapshot in use");
        artifact::sync_folder(&self.index_dir.folder)
    }

    /// Removes all snapshots and segments that the current snapshot does not use.
    ///
    /// A reader of an older snapshot can still read its open files. If the system cannot remove open files, a
    /// later call removes them.
    pub fn clean(&self) {
        let current = self.index_dir.current();
        let used = current.as_ref().and_then(|current| self.index_dir.used_by(current).ok());
        let used = used.unwrap_or_default();
        for name in self.entries() {
            let path = self.index_dir.folder.join(&name);
            let is_used = used.contains(&name)
                || current.as_ref().is_some_and(|current| current.name == name);
            if name.starts_with(artifact::TEMPORARY) {
                drop(fs::remove_file(path));
            } else if is_ours(&name) && !is_used {
                vectors::keep(&path);
                drop(fs::remove_dir_all(path));
                failpoint::pass("folder removed");
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
