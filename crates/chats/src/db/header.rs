//! Reads the bytes of a database file without releasing SQLite's locks.
//!
//! When a process closes any descriptor of a file, POSIX drops all locks of the process on the file, even
//! locks taken through other descriptors. So a database file that this program reads itself is opened once,
//! shared, and kept open as long as one of its connections may hold a lock on the file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use verbatim_base::{files, lock::lock, private};

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
        !Stamp::from_path(&self.path).is_ok_and(|there| there.identity == self.identity)
    }
}

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

/// Identity, size and times of a file. A file with an equal stamp is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The identity of the file, which a rename does not change.
    pub identity: Identity,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last write; `None` if the system does not report it.
    pub modified: Option<SystemTime>,
    changed: (i64, i64),
}

impl Identity {
    /// Returns the device number and the inode number, or the numbers that Windows has in their place.
    pub fn numbers(self) -> [u64; 2] {
        [self.0, self.1]
    }
}

impl Stamp {
    /// Returns the stamp of the file at `path`.
    #[cfg(unix)]
    pub fn from_path(path: &Path) -> io::Result<Stamp> {
        std::fs::metadata(path).map(|metadata| Stamp::new(&metadata))
    }

    #[cfg(unix)]
    pub(crate) fn from_file(file: &File) -> io::Result<Stamp> {
        file.metadata().map(|metadata| Stamp::new(&metadata))
    }

    #[cfg(unix)]
    fn new(metadata: &std::fs::Metadata) -> Stamp {
        use std::os::unix::fs::MetadataExt;
        Stamp {
            identity: Identity(metadata.dev(), metadata.ino()),
            size: metadata.len(),
            modified: metadata.modified().ok(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    #[cfg(windows)]
    pub(crate) fn from_path(path: &Path) -> io::Result<Stamp> {
        Stamp::from_file(winapi_util::Handle::from_path_any(path)?.as_file())
    }

    /// Returns the stamp of an open file.
    ///
    /// The time of creation does not identify a file: Windows gives a new file the time of the file that had
    /// the same name a few seconds before.
    #[cfg(windows)]
    pub(crate) fn from_file(file: &File) -> io::Result<Stamp> {
        let numbers = winapi_util::file::information(file)?;
        Ok(Stamp {
            identity: Identity(numbers.volume_serial_number(), numbers.file_index()),
            size: numbers.file_size(),
            modified: file.metadata()?.modified().ok(),
            changed: (0, 0),
        })
    }

    /// Returns the time of the last change of the file or its metadata, in seconds and nanoseconds.
    pub fn changed(&self) -> (i64, i64) {
        self.changed
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    file: Arc<File>,
    identity: Identity,
}

pub(crate) fn shared_file(path: &Path) -> io::Result<SharedFile> {
    let mut files = lock(&OPEN_FILES);
    let identity = Stamp::from_path(path)?.identity;
    if let Some(entry) = files.iter().find(|entry| entry.identity == identity) {
        return Ok(SharedFile { file: entry.file.clone(), identity });
    }
    let file = files::open(path)?;
    let identity = Stamp::from_file(&file)?.identity;
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
        Stamp::from_file(&self.file)
    }
}

/// Returns the stamp of the file at `path`; `None` if there is nothing. SQLite would wait for a pipe.
pub(crate) fn stamp_at(path: &Path) -> io::Result<Option<Stamp>> {
    match private::until_free(|| Stamp::from_path(path))
        .and_then(|it| files::check(path).map(|()| it))
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files::is_link(path) => Ok(None),
        stamp => stamp.map(Some),
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    file.read_at(buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::os::windows::fs::FileExt;
    file.seek_read(buffer, offset)
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    #[test]
    fn a_new_file_with_the_name_of_another_has_another_identity() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        let old = Stamp::from_path(&path).unwrap();
        fs::rename(&path, &aside).unwrap();
        fs::write(&path, "new").unwrap();
        let [new, renamed] = [&path, &aside].map(|path| Stamp::from_path(path).unwrap());
        assert_eq!(renamed.identity, old.identity);
        assert_ne!(new.identity, old.identity);
        let file = File::open(&path).unwrap();
        assert_eq!(Stamp::from_file(&file).unwrap(), new);
        assert_eq!(stamp_at(&folder.path().join("c")).unwrap(), None);
    }
}
