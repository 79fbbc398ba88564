//! The lists of decisions in the home folder, which several processes change: files with one JSON object per line.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

use crate::config::Config;
use crate::error::{Error, Result};
use verbatim_base::files;
use verbatim_base::private::{self, FileLock};
use verbatim_chats::db;

/// A line of a list.
pub(crate) trait Decision: Serialize + DeserializeOwned {
    /// The name of the list's file, without its ending.
    const LIST: &'static str;
    /// The content of the list, for errors.
    const CONTENT: &'static str;

    /// Returns whether the line still decides something. Others are removed at the next change.
    fn is_made(&self) -> bool {
        true
    }
}

pub(crate) fn path<T: Decision>(config: &Config) -> PathBuf {
    config.home.join(T::LIST).with_extension("jsonl")
}

/// Reads a list of a home; without a file, the list is empty.
pub(crate) fn read<T: Decision>(config: &Config) -> Result<Vec<T>> {
    let path = path::<T>(config);
    parsed(&path).map_err(|source| Error::OwnFile { what: T::CONTENT, path, source })
}

/// Changes a list of a home while its lock is held. Returns the result of `change`.
pub(crate) fn change<T: Decision, R>(
    config: &Config,
    change: impl FnOnce(&mut Vec<T>) -> R,
) -> Result<R> {
    let path = path::<T>(config);
    changed(&path, change).map_err(|source| Error::OwnFile { what: T::CONTENT, path, source })
}

fn parsed<T: Decision>(path: &Path) -> io::Result<Vec<T>> {
    let text = match files::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn changed<T: Decision, R>(path: &Path, change: impl FnOnce(&mut Vec<T>) -> R) -> io::Result<R> {
    path.parent().map_or(Ok(()), private::create_dir_all)?;
    let _lock = FileLock::wait(&path.with_extension("lock"))?;
    let mut list = parsed(path)?;
    let result = change(&mut list);
    let mut text = Vec::new();
    for line in list.iter().filter(|line| line.is_made()) {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    db::write_whole(path, &text)?;
    Ok(result)
}
