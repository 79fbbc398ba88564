//! Lists in the home folder that several processes change: files with one JSON object per line.

use std::{fs, io, path::Path};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, Result};
use verbatim_base::private::{self, FileLock};
use verbatim_chats::db;

/// The suffix of the file that is locked while a list is changed.
const LOCK: &str = "lock";

/// A list in the home folder.
pub(super) struct ListFile {
    /// The name of the file.
    pub(super) name: &'static str,
    /// The content of the list, for errors.
    pub(super) what: &'static str,
}

impl ListFile {
    /// Reads the list of a home; without a file, the list is empty.
    pub(super) fn read<T: DeserializeOwned>(&self, home: &Path) -> Result<Vec<T>> {
        let path = home.join(self.name);
        read(&path).map_err(|source| Error::OwnFile { what: self.what, path, source })
    }

    /// Changes the list of a home while its lock is held. Returns the result of `change`.
    pub(super) fn change<T: Serialize + DeserializeOwned, R>(
        &self,
        home: &Path,
        change: impl FnOnce(&mut Vec<T>) -> R,
    ) -> Result<R> {
        let path = home.join(self.name);
        self::change(&path, change).map_err(|source| Error::OwnFile {
            what: self.what,
            path,
            source,
        })
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn change<T: Serialize + DeserializeOwned, R>(
    path: &Path,
    change: impl FnOnce(&mut Vec<T>) -> R,
) -> io::Result<R> {
    path.parent().map_or(Ok(()), private::create_dir_all)?;
    let _lock = FileLock::wait(&path.with_extension(LOCK))?;
    let mut list = read(path)?;
    let changed = change(&mut list);
    let mut text = Vec::new();
    for entry in &list {
        serde_json::to_writer(&mut text, entry)?;
        text.push(b'\n');
    }
    db::write_whole(path, &text)?;
    Ok(changed)
}
