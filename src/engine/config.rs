//! The paths of databases, indexes and transcripts.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::error::Error;
use crate::{db, embed::Provider, text::hash::fnv1a};

/// The paths and the model that flags and the environment choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The database, if the user named one; it must exist.
    pub db: Option<PathBuf>,
    /// The folder that holds `db/` and `index/`.
    pub home: PathBuf,
    /// The index folder, if the user named one.
    pub index: Option<PathBuf>,
    /// Folders of dated conversations that may be searched.
    pub workspaces: Vec<PathBuf>,
    /// The folders of coding agents' transcripts.
    pub archives: Vec<PathBuf>,
    /// The provider of vectors.
    pub embeddings: Provider,
    /// Whether questions leave the indexes as they are. Otherwise they refresh them where that is quick.
    pub leave_indexes: bool,
}

impl Config {
    /// Returns the folder in which databases are looked for and imports are written.
    pub fn db_folder(&self) -> PathBuf {
        self.home.join("db")
    }

    /// Returns the folder of everything that is derived and can be rebuilt.
    pub fn index_folder(&self) -> PathBuf {
        self.index.clone().unwrap_or_else(|| self.home.join("index"))
    }

    /// Returns the database of the export: the one configured, else the newest `*.db` in `db/`.
    ///
    /// It is looked up at every call, so that a file that was added since is found.
    pub fn export_database(&self) -> Result<PathBuf, Error> {
        if let Some(path) = &self.db {
            return match fs::metadata(path) {
                Ok(metadata) if metadata.is_file() => Ok(path.clone()),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    Err(db::Error::Io { path: path.clone(), source: error }.into())
                }
                _ => Err(db::Error::NotFound { path: path.clone() }.into()),
            };
        }
        let folder = self.db_folder();
        match newest(&folder) {
            Ok(Some(path)) => Ok(path),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(db::Error::Io { path: folder, source: error }.into())
            }
            _ => Err(Error::NoDatabase { folder }),
        }
    }

    /// Returns the database of the transcript store. It is derived, so it is in the index folder.
    ///
    /// Its name depends on the transcript folders: two configurations that share a home folder
    /// would otherwise rewrite each other's store.
    pub fn archive_database(&self) -> PathBuf {
        let name = match self.archive_names() {
            none if none.is_empty() => "archive.db".to_owned(),
            names => format!("archive-{:016x}.db", fnv1a(names.as_bytes())),
        };
        self.index_folder().join(name)
    }

    /// Returns the database that threads are recorded in. It is not in `db/`, where the newest file
    /// counts as the export.
    pub fn threads_database(&self) -> PathBuf {
        self.home.join("threads.db")
    }

    /// Returns the transcript folders, sorted and without duplicates, one a line.
    fn archive_names(&self) -> String {
        let mut names: Vec<_> = self.archives.iter().map(|path| path.to_string_lossy()).collect();
        names.sort();
        names.dedup();
        names.join("\n")
    }
}

/// Returns the last changed `*.db` file of a folder; of equally old files, the last by name.
///
/// A file that is still being copied is skipped if there is a complete one.
fn newest(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut found = Vec::new();
    let mut failure = None;
    for path in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|name| name != "db") {
            continue;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                found.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), path));
            }
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    found.sort();
    let complete = found.iter().rposition(|(_, path)| db::is_whole(path));
    match (found.len().checked_sub(1), failure) {
        (Some(last), _) => Ok(Some(found.swap_remove(complete.unwrap_or(last)).1)),
        (None, Some(failure)) => Err(failure),
        (None, None) => Ok(None),
    }
}
