//! Gives a database, or another file of this program, a temporary name until it is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::{PathPersistError, TempPath};

use super::header::Stamp;
use verbatim_base::{files, private};

const PREFIX: &str = ".verbatim-";
const SUFFIX: &str = ".tmp";

/// A database under a temporary name. Dropping the value removes the file.
///
/// The creator marks the file as in use ([`mark_in_use`]), so that other processes notice if the creator was
/// killed.
#[derive(Debug)]
pub(super) struct TemporaryDatabase {
    // Fields are dropped in order, and on Windows the file must be closed before it can be removed.
    file: File,
    path: TempPath,
}

impl TemporaryDatabase {
    /// Creates an empty file in a folder. Removes temporary files there whose creators are gone.
    pub(super) fn begin(folder: &Path) -> io::Result<TemporaryDatabase> {
        remove_abandoned(folder);
        let mut named = tempfile::Builder::new();
        named.prefix(PREFIX).suffix(SUFFIX);
        loop {
            let (file, path) = named.tempfile_in(folder)?.into_parts();
            // Another process could remove the file as abandoned before it is marked as in use.
            let file = match mark_in_use(file, &path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let ours = Stamp::from_file(&file)?.identity;
            if Stamp::from_path(&path).is_ok_and(|there| there.identity == ours) {
                return Ok(TemporaryDatabase { file, path });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Renames the file to `path`. Fails if another file has this name.
    pub(super) fn take_place(self, path: &Path) -> Result<(), PathPersistError> {
        drop(self.file);
        self.path.persist_noclobber(path)
    }

    pub(super) fn replace(self, path: &Path) -> io::Result<()> {
        drop(self.file);
        private::replace(self.path, path)
    }
}

/// Marks a file as in use: from now on, [`is_abandoned`] is false in other processes.
///
/// On Unix the file is locked. On Windows a lock would also block SQLite, so the file is opened in a way
/// that prevents its removal.
#[cfg(unix)]
fn mark_in_use(file: File, _: &Path) -> io::Result<File> {
    file.lock().map(|()| file)
}

#[cfg(windows)]
fn mark_in_use(file: File, path: &Path) -> io::Result<File> {
    drop(file);
    private::until_free(|| private::open_unremovable(path))
}

fn is_abandoned(path: &Path) -> bool {
    // Windows needs no check, because it refuses to remove a file that is in use.
    cfg!(windows) || files::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Writes a file under a temporary name, syncs it to disk, and then renames it to `path`.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
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

/// Returns whether a file name has the form of the temporary databases of this program.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Returns whether a process makes a database in a folder. Windows does not tell.
pub fn is_being_made(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|it| is_temporary(&it.file_name().to_string_lossy()) && !is_abandoned(&it.path()))
}

/// Removes temporary databases from a folder if their creators are gone.
pub fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_temporary(&entry.file_name().to_string_lossy()) && is_abandoned(&entry.path()) {
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
        assert!(is_being_made(folder.path()) || cfg!(windows));
        if cfg!(windows) {
            assert!(fs::remove_file(first.path()).is_err(), "it is kept");
        }
        let place = folder.path().join("place");
        first.take_place(&place).expect("its place");
        assert!(second.take_place(&place).is_err(), "the place is taken");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2);
    }
}
