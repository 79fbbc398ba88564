//! Lists in the home folder that several processes change: files with one JSON object per line.

use std::{fs, io, path::Path};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    db,
    private::{self, FileLock},
};

/// The suffix of the file that is locked while a list is changed.
pub(super) const LOCK: &str = "lock";

/// Reads a list; without a file, the list is empty.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Changes a list while its lock is held. Returns the result of `change`.
pub(super) fn change<T: Serialize + DeserializeOwned, R>(
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
