//! Reads the bytes of a database file without releasing SQLite's locks.
//!
//! When a process closes any descriptor of a file, POSIX drops all locks of the process on the file, even
//! locks taken through other descriptors. So a database file that this program reads itself is opened once,
//! shared, and kept open as long as one of its connections may hold a lock on the file.

use std::{
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::SystemTime,
};

use crate::lock::lock;

/// Above this number of open files, unused files that no path names any more are closed.
const MANY: usize = 64;

static OPEN_FILES: Mutex<Vec<OpenDescriptor>> = Mutex::new(Vec::new());

struct OpenDescriptor {
    path: PathBuf,
    identity: Identity,
    file: Arc<File>,
    /// Further descriptors of the same file, opened concurrently. Closing one would drop the locks.
    spare: Vec<File>,
}

impl OpenDescriptor {
    /// Returns whether the path no longer names this file. While the path still names it, SQLite may hold
    /// locks on it.
    fn is_gone(&self) -> bool {
        !fs::metadata(&self.path).is_ok_and(|there| identity(&there) == self.identity)
    }
}

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

/// Identity, size and times of a file. A file with an equal stamp is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) identity: Identity,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    changed: (i64, i64),
}

impl Identity {
    /// Returns the device number and the inode number.
    pub(crate) fn numbers(self) -> [u64; 2] {
        [self.0, self.1]
    }
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            identity: identity(metadata),
            size: metadata.len(),
            modified: metadata.modified().ok(),
            changed: changed(metadata),
        }
    }

    /// Returns the time of the last change of the file or its metadata, in seconds and nanoseconds.
    pub(crate) fn changed(&self) -> (i64, i64) {
        self.changed
    }
}

/// An open file that all readers share.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    file: Arc<File>,
    identity: Identity,
}

/// Returns the file at `path` for reading. All calls for one file share one descriptor.
pub(crate) fn shared_file(path: &Path) -> io::Result<SharedFile> {
    let mut files = lock(&OPEN_FILES);
    let identity = identity(&fs::metadata(path)?);
    if let Some(entry) = files.iter().find(|entry| entry.identity == identity) {
        return Ok(SharedFile { file: entry.file.clone(), identity });
    }
    let file = File::open(path)?;
    let identity = self::identity(&file.metadata()?);
    if let Some(entry) = files.iter_mut().find(|entry| entry.identity == identity) {
        entry.spare.push(file);
        return Ok(SharedFile { file: entry.file.clone(), identity });
    }
    let file = Arc::new(file);
    files.retain(|entry| entry.path != path || Arc::strong_count(&entry.file) > 1);
    if files.len() >= MANY {
        files.retain(|entry| Arc::strong_count(&entry.file) > 1 || !entry.is_gone());
    }
    files.push(OpenDescriptor {
        path: path.to_owned(),
        identity,
        file: file.clone(),
        spare: Vec::new(),
    });
    Ok(SharedFile { file, identity })
}

impl SharedFile {
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Reads into `buffer` from `offset` until it is full or the file ends; returns the bytes read.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match read_at(&self.file, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    pub(crate) fn stamp(&self) -> io::Result<Stamp> {
        Ok(Stamp::of(&self.file.metadata()?))
    }
}

/// Returns the stamp of the file at `path`; `None` if there is no file.
pub(crate) fn stamp_at(path: &Path) -> io::Result<Option<Stamp>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(Stamp::of(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity(metadata.dev(), metadata.ino())
}

#[cfg(unix)]
fn changed(metadata: &Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    file.read_at(buffer, offset)
}

#[cfg(windows)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::windows::fs::MetadataExt;
    Identity(metadata.creation_time(), 0)
}

#[cfg(windows)]
fn changed(_: &Metadata) -> (i64, i64) {
    (0, 0)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::os::windows::fs::FileExt;
    file.seek_read(buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_stays_open() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, name).unwrap();
            path
        };
        let path = make("first");
        let first = Arc::downgrade(&shared_file(&path).unwrap().file);
        let open_many = |from: usize| {
            for number in from..from + MANY {
                shared_file(&make(&number.to_string())).unwrap();
            }
        };
        open_many(0);
        assert!(first.upgrade().is_some(), "closing it would drop the locks of a connection");
        fs::remove_file(&path).unwrap();
        open_many(MANY);
        assert!(first.upgrade().is_none());
    }
}
