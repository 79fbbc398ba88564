//! Folders of files that are written once and then only read: segments, term indexes, vectors.
//!
//! Writers and readers of all such folders follow one protocol:
//!
//! 1. The writer fills a folder that no reader opens yet: one with a new number, or an [`Unfinished`] one.
//! 2. [`seal`] syncs every file and records its length, checksum and identity. [`ArtifactFile`] computes the
//!    checksum before the file system gets the bytes; `seal` compares it with the file.
//! 3. [`write_manifest`] writes these records as the last file, and syncs the file and the folder.
//! 4. The folder comes into use in one step: [`Unfinished::publish`] renames the folder, or another manifest
//!    records its name and checksum.
//! 5. A reader opens each file with [`FileRecord::open`]. A file with the recorded length and identity is
//!    trusted. For any other file, the reader compares the checksum, and of a large file notes the identity in the
//!    folder: a file that was copied or restored is checked once. The identity is recorded only if the file's
//!    times are so old that every later change alters them, as in git's index ("racy git").
//!
//! Invariant: an artifact that opens without an error has the bytes that its writer wrote.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tempfile::{NamedTempFile, TempDir};

use super::{Error, Result};
use verbatim_base::call::Stop;
use verbatim_base::failpoint;
use verbatim_base::files;
use verbatim_base::map_faults::Mapped;
use verbatim_base::private::{self, FileLock};

const MANIFEST: &str = "manifest";

/// The file with the identities of files that were found to be as written after they were copied: a line each, with
/// the checksum, the length and the identity.
const CHECKED: &str = "checked";

/// The name of the lock file in an unfinished folder. The folder's writer holds the lock.
const LOCK: &str = "lock";

const UNFINISHED: &str = "new-";

pub(super) const TEMPORARY: &str = "current-";

/// Age at which an unfinished folder without a lock counts as abandoned. A live writer takes the lock right
/// after it makes the folder.
const ABANDONED: Duration = Duration::from_secs(60);

/// The age from which a file's times are trusted. Two changes within a few milliseconds can get the same
/// time, because the clocks of file systems tick slowly.
const RACY: Duration = Duration::from_millis(100);

const CLOCK_TICK: Duration = Duration::from_millis(10);

/// The minimum length of a file for which `seal` waits until the file's times are trusted. Without the wait,
/// every opening would compute the checksum.
const WORTH_A_WAIT: u64 = 1 << 20;

const BUFFER: usize = 1 << 18;

/// A file of an artifact under construction. Computes the checksum of the written bytes, so that [`seal`]
/// notices if another program changed the file.
#[derive(Debug)]
pub(super) struct ArtifactFile {
    name: String,
    hasher: crc32fast::Hasher,
    file: BufWriter<File>,
}

impl ArtifactFile {
    pub(super) fn begin(folder: &Path, name: &str) -> io::Result<ArtifactFile> {
        let file = BufWriter::with_capacity(BUFFER, private::create_file(&folder.join(name))?);
        Ok(ArtifactFile { name: name.to_owned(), hasher: crc32fast::Hasher::new(), file })
    }

    pub(super) fn finish(mut self) -> io::Result<WrittenFile> {
        self.file.flush()?;
        Ok(WrittenFile { name: self.name, checksum: self.hasher.finalize() })
    }
}

impl Write for ArtifactFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[derive(Clone, Debug)]
pub(super) struct WrittenFile {
    name: String,
    checksum: u32,
}

pub(super) fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<WrittenFile> {
    let mut file = ArtifactFile::begin(folder, name)?;
    file.write_all(bytes)?;
    file.finish()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// The path of the file relative to the folder, with `/` as the separator.
    pub(super) name: String,
    pub(super) length: u64,
    checksum: u32,
    identity: String,
}

/// Makes all files below a folder durable, and returns their records sorted by name. Files that are not in
/// `written` come from tantivy, which puts its own checksums into them.
pub(super) fn seal(folder: &Path, written: &[WrittenFile]) -> io::Result<Vec<FileRecord>> {
    let mut names = Vec::new();
    list(folder, "", &mut names)?;
    names.sort_unstable();
    // One thread per file, so that some compute checksums while others wait for the disk.
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for name in names {
            threads.push(scope.spawn(move || {
                let path = folder.join(&name);
                let known = written.iter().find(|file| file.name == name);
                FileRecord::seal(name, &path, known.map(|file| file.checksum))
            }));
        }
        let mut records = Vec::new();
        for thread in threads {
            let record = thread.join().map_err(|_| io::Error::other("a thread panicked"))?;
            records.push(record?);
        }
        Ok(records)
    })
}

/// Adds the names of all files below a folder, and makes its subfolders durable.
fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
            sync_folder(&entry.path())?;
        } else if name != LOCK {
            names.push(name);
        }
    }
    Ok(())
}

impl FileRecord {
    fn seal(name: String, path: &Path, written: Option<u32>) -> io::Result<FileRecord> {
        // Some systems can sync a file only if it is open for writing.
        let file = File::options().read(true).append(true).open(path)?;
        // A library may have created the file with permissions for other users.
        private::protect(&file)?;
        file.sync_all()?;
        let before = file.metadata()?;
        if before.len() >= WORTH_A_WAIT
            && let Ok(age) = before.modified()?.elapsed()
            && age <= RACY
        {
            thread::sleep(RACY.saturating_sub(age) + CLOCK_TICK);
        }
        let checksum = checksum(&file, &Stop::never())?;
        let metadata = file.metadata()?;
        if written.is_some_and(|written| written != checksum) || stamp(&metadata) != stamp(&before)
        {
            let text = format!("{name} was changed by something else while it was written");
            return Err(io::Error::other(text));
        }
        let is_old = metadata.modified()?.elapsed().is_ok_and(|age| age > RACY);
        let identity = if is_old { identity(&metadata) } else { String::new() };
        Ok(FileRecord { name, length: metadata.len(), identity, checksum })
    }

    /// Makes a file of a folder durable, and returns its record.
    pub(super) fn sync(folder: &Path, file: WrittenFile) -> io::Result<FileRecord> {
        let path = folder.join(&file.name);
        FileRecord::seal(file.name, &path, Some(file.checksum))
    }

    /// Reads the whole file; fails if the file has changed since it was written.
    pub(super) fn read(&self, folder: &Path) -> Result<Vec<u8>> {
        let mut file = self.open(folder)?.file;
        let mut bytes = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        read.map_err(|error| self.unreadable(folder, error))?;
        if crc32fast::hash(&bytes) == self.checksum { Ok(bytes) } else { Err(self.changed(folder)) }
    }

    pub(super) fn open(&self, folder: &Path) -> Result<OpenFile> {
        let (file, metadata) =
            self.open_file(folder).map_err(|error| self.unreadable(folder, error))?;
        // Nobody else can change a file in a folder that only its owner can enter.
        if !fs::metadata(folder).is_ok_and(|folder| private::is_private(&folder)) {
            check_trusted(folder, &metadata)?;
        }
        if metadata.len() != self.length {
            return Err(self.changed(folder));
        }
        let identity = identity(&metadata);
        if identity != self.identity {
            let line = format!("{:08x} {} {identity}\n", self.checksum, self.length);
            let checked = folder.join(CHECKED);
            let known = files::read_to_string(&checked).unwrap_or_default();
            if self.length < WORTH_A_WAIT || !known.split_inclusive('\n').any(|it| it == line) {
                let checksum = checksum(&file, &Stop::never());
                if checksum.map_err(|error| self.unreadable(folder, error))? != self.checksum {
                    return Err(self.changed(folder));
                }
                let is_old =
                    metadata.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > RACY));
                if self.length >= WORTH_A_WAIT && is_old {
                    // If it cannot be noted, the next reader checks the file again.
                    drop(note_checked(folder, &known, &line));
                }
            }
        }
        Ok(OpenFile { stamp: stamp(&metadata), length: self.length, file })
    }

    /// Reads the whole file and compares it with its checksum; returns its length.
    pub(super) fn check(&self, folder: &Path, stop: &Stop) -> Result<u64> {
        let checked = self.open_file(folder).and_then(|(file, metadata)| {
            Ok(metadata.len() == self.length && checksum(&file, stop)? == self.checksum)
        });
        match checked {
            Ok(true) => Ok(self.length),
            Ok(false) => Err(self.changed(folder)),
            Err(_) if stop.requested() => Err(Error::Stopped),
            Err(error) => Err(self.unreadable(folder, error)),
        }
    }

    fn open_file(&self, folder: &Path) -> io::Result<(File, fs::Metadata)> {
        let file = files::open(&folder.join(&self.name))?;
        let metadata = file.metadata()?;
        Ok((file, metadata))
    }

    fn unreadable(&self, folder: &Path, error: io::Error) -> Error {
        damaged(folder, &format!("{}: {error}", self.name))
    }

    fn changed(&self, folder: &Path) -> Error {
        damaged(folder, &format!("{} is not as it was written", self.name))
    }
}

/// An open file of an artifact. No program should write to the file.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: File,
    length: u64,
    stamp: [i64; 5],
}

impl OpenFile {
    pub(super) fn map(&self) -> io::Result<Mapped> {
        Mapped::new(&self.file)
    }

    /// Returns whether the file is unchanged since it was opened. Costs one system call.
    pub(super) fn is_intact(&self) -> bool {
        let Ok(metadata) = self.file.metadata() else { return false };
        // Removing a file changes its times too, but does not harm a process that has it open.
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

/// Adds a line to the file of checked identities, in the place of those for the same content.
fn note_checked(folder: &Path, known: &str, line: &str) -> io::Result<()> {
    let content = line.rsplit_once(' ').map_or(line, |(content, _)| content);
    let others = known.split_inclusive('\n').filter(|it| !it.starts_with(content));
    let next = others.chain([line]).collect::<String>();
    let next = write_beside(folder, next.as_bytes())?.into_temp_path();
    private::replace(next, &folder.join(CHECKED))
}

/// Writes the manifest of a folder and makes both durable. Returns the manifest's checksum, which other
/// manifests record.
pub(super) fn write_manifest(folder: &Path, manifest: &impl Serialize) -> io::Result<u32> {
    failpoint::pass("manifest to be made");
    let mut file = private::create_file(&folder.join(MANIFEST))?;
    failpoint::pass("manifest empty");
    let bytes = serde_json::to_vec_pretty(manifest)?;
    file.write_all(&bytes)?;
    failpoint::pass("manifest written");
    file.sync_all()?;
    sync_folder(folder)?;
    failpoint::pass("manifest durable");
    Ok(crc32fast::hash(&bytes))
}

pub(super) fn manifest_checksum(folder: &Path) -> io::Result<u32> {
    Ok(crc32fast::hash(&files::read(&folder.join(MANIFEST))?))
}

/// Reads a manifest. Fails if its format differs from `format`, or its checksum from a given one.
pub(super) fn read_manifest<M: DeserializeOwned>(
    folder: &Path,
    format: u32,
    checksum: Option<u32>,
) -> Result<M> {
    #[derive(Deserialize)]
    struct ArtifactFormat {
        format: u32,
    }
    check_trusted(folder, &fs::metadata(folder).map_err(unreadable(folder))?)?;
    let bytes = files::read(&folder.join(MANIFEST)).map_err(unreadable(folder))?;
    if checksum.is_some_and(|checksum| checksum != crc32fast::hash(&bytes)) {
        return Err(damaged(folder, "its manifest is not as it was written"));
    }
    let ArtifactFormat { format: found } =
        serde_json::from_slice(&bytes).map_err(unreadable(folder))?;
    if found != format {
        return Err(Error::Format { path: folder.to_owned(), found });
    }
    serde_json::from_slice(&bytes).map_err(unreadable(folder))
}

/// Checks that no other user can have written to a file or folder of the index and so forged answers.
pub(super) fn check_trusted(folder: &Path, metadata: &fs::Metadata) -> Result<()> {
    match private::distrust(metadata) {
        Some(reason) => Err(Error::Untrusted { path: folder.to_owned(), reason }),
        None => Ok(()),
    }
}

/// Returns how an error of reading a folder's files is told.
pub(super) fn unreadable<E: std::fmt::Display>(folder: &Path) -> impl Fn(E) -> Error {
    move |error| damaged(folder, &error.to_string())
}

pub(super) fn damaged(folder: &Path, reason: &str) -> Error {
    Error::Damaged { path: folder.to_owned(), reason: reason.to_owned() }
}

/// A folder under construction, next to its final place. Removed when dropped, unless it was published.
#[derive(Debug)]
pub(super) struct Unfinished {
    /// `None` on file systems without locks. In this case another writer may remove the folder, and this
    /// writer fails.
    lock: Option<FileLock>,
    folder: TempDir,
    target: PathBuf,
}

impl Unfinished {
    /// Makes an empty folder that will be published as `parent/name`, and removes the unfinished
    /// folders of writers that died.
    pub(super) fn begin(parent: &Path, name: &str) -> io::Result<Unfinished> {
        remove_abandoned(parent);
        let prefix = format!("{UNFINISHED}{name}-");
        let folder = private::temporary_dir_in(parent, &prefix)?;
        let lock = FileLock::try_acquire(&folder.path().join(LOCK), 1).ok().flatten();
        Ok(Unfinished { lock, folder, target: parent.join(name) })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the manifest and moves the folder to its place. Replaces a folder that is already there.
    /// Processes that have its files open can still read them.
    pub(super) fn publish(self, manifest: &impl Serialize) -> io::Result<()> {
        let Unfinished { lock, folder, target } = self;
        write_manifest(folder.path(), manifest)?;
        if target.exists() {
            private::until_free(|| fs::remove_dir_all(&target))?;
        }
        // Windows does not rename a folder while a file in it is open, and the lock file is open.
        let lock = lock.filter(|_| cfg!(unix));
        private::until_free(|| fs::rename(folder.path(), &target))?;
        // The folder has moved, so its old path must not be removed.
        let _ = folder.keep();
        drop(lock);
        drop(fs::remove_file(target.join(LOCK)));
        target.parent().map_or(Ok(()), sync_folder)
    }
}

fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let lock = entry.path().join(LOCK);
        let is_abandoned = if lock.exists() {
            !FileLock::is_held(&lock)
        } else {
            let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            changed.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > ABANDONED)
        };
        if is_abandoned {
            // A later writer tries again.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

pub(super) fn write_beside(folder: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Syncs a folder, so that the names of its files are durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Returns a text that changes when a file is written to or replaced.
pub(super) fn identity(metadata: &fs::Metadata) -> String {
    stamp(metadata).map(|number| number.to_string()).join(":")
}

/// Returns the identity as numbers: the inode, and the times of the last changes.
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
        let [modified, created] = [metadata.modified(), metadata.created()].map(|time| {
            let since = time.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            since.map_or(0, |since| since.as_nanos() as i64)
        });
        [modified, created, 0, 0, 0]
    }
}

pub(super) fn checksum(mut file: impl Read, stop: &Stop) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        stop.check(io::ErrorKind::Interrupted)?;
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_changed_before_it_is_sealed_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_file(folder.path(), "rows", b"what was said").unwrap();
        assert_eq!(seal(folder.path(), std::slice::from_ref(&written)).unwrap().len(), 1);
        fs::write(folder.path().join("rows"), b"what was sold").unwrap();
        let error = seal(folder.path(), &[written]).unwrap_err().to_string();
        assert!(error.contains("rows was changed by something else"), "{error}");
    }

    #[test]
    fn the_times_of_a_file_count_once_they_are_old() {
        let folder = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3600);
        let now = std::time::SystemTime::now();
        for (name, modified, counts) in [("young", now + hour, false), ("old", now - hour, true)] {
            let written = write_file(folder.path(), name, b"what was said").unwrap();
            let path = folder.path().join(name);
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(modified).unwrap();
            let record = FileRecord::sync(folder.path(), written).unwrap();
            let identity = identity(&file.metadata().unwrap());
            assert_eq!(record.identity, if counts { &*identity } else { "" });
            assert_eq!(record.read(folder.path()).unwrap(), b"what was said");
            fs::write(&path, b"what was sold").unwrap();
            assert!(record.open(folder.path()).is_err() && record.read(folder.path()).is_err());
        }
    }

    #[test]
    fn a_large_file_is_trusted_from_its_first_opening_on() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_file(folder.path(), "rows", &vec![7; WORTH_A_WAIT as usize]).unwrap();
        let record = FileRecord::sync(folder.path(), written).unwrap();
        let metadata = fs::metadata(folder.path().join("rows")).unwrap();
        assert_eq!(record.identity, identity(&metadata));
    }
}
