//! Gives a database, or another file of this program, a temporary name until it is complete.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use tempfile::{PathPersistError, TempPath};

use super::header::Stamp;
use crate::private;

const PREFIX: &str = ".verbatim-";
const SUFFIX: &str = ".tmp";

/// A database under a temporary name. Dropping the value removes the file.
///
/// Its creator holds a lock on the file, so that other processes notice if the creator was killed.
#[derive(Debug)]
pub(super) struct TemporaryDatabase {
    path: TempPath,
    file: File,
}

impl TemporaryDatabase {
    /// Creates an empty file in a folder. Removes temporary files there whose creators are gone.
    pub(super) fn begin(folder: &Path) -> io::Result<TemporaryDatabase> {
        remove_abandoned(folder);
        let mut named = tempfile::Builder::new();
        named.prefix(PREFIX).suffix(SUFFIX);
        loop {
            let (file, path) = named.tempfile_in(folder)?.into_parts();
            if cfg!(unix) {
                file.lock()?;
            }
            let ours = Stamp::of(&file.metadata()?).identity;
            // Another process could remove the file as abandoned before it was locked.
            if fs::metadata(&path).is_ok_and(|there| Stamp::of(&there).identity == ours) {
                return Ok(TemporaryDatabase { path, file });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the content is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Renames the file to `path`. Fails if another file has this name.
    pub(super) fn take_place(self, path: &Path) -> Result<(), PathPersistError> {
        self.path.persist_noclobber(path)
    }

    /// Renames the file to `path`, and replaces a file with this name.
    pub(super) fn replace(self, path: &Path) -> Result<(), PathPersistError> {
        self.path.persist(path)
    }
}

/// Writes a file under a temporary name, syncs it to disk, and then renames it to `path`.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let temporary = TemporaryDatabase::begin(folder)?;
    let mut file = private::open_file(temporary.path())?;
    file.write_all(content)?;
    file.sync_all()?;
    temporary.replace(path)?;
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Removes temporary databases from a folder if their creators are gone.
pub(crate) fn remove_abandoned(folder: &Path) {
    // The lock is tested on Unix only: on other systems, open files cannot be removed anyway.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_temporary(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let is_free =
            !cfg!(unix) || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_free {
            drop(fs::remove_file(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_left_behind_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let left = folder.path().join(".verbatim-left.tmp");
        let other = folder.path().join(".other.tmp");
        for path in [&left, &other] {
            fs::write(path, "something").expect("a file");
        }
        let first = TemporaryDatabase::begin(folder.path()).expect("a file");
        let second = TemporaryDatabase::begin(folder.path()).expect("a file");
        assert!(first.path().exists() && second.path().exists() && other.exists());
        assert!(!left.exists());
        let place = folder.path().join("place");
        first.take_place(&place).expect("its place");
        assert!(second.take_place(&place).is_err(), "the place is taken");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2);
    }
}
