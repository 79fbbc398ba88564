//! Which database is meant.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::engine::{Engine, Error, Source, SourceKind};
use crate::{db, embed::Provider};

/// Databases that may go away under one question.
const REPLACEMENTS: u32 = 4;

/// Where things are, as flags and environment say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The database, where one was named; it must be there.
    pub db: Option<PathBuf>,
    /// The folder that holds `db/` and `index/`.
    pub home: PathBuf,
    /// The folder of what is derived, where one was named.
    pub index: Option<PathBuf>,
    /// Folders of dated conversations that may be searched.
    pub workspaces: Vec<PathBuf>,
    /// The folders of coding agents' transcripts.
    pub archives: Vec<PathBuf>,
    /// Where vectors come from.
    pub embeddings: Provider,
}

impl Config {
    /// Returns the folder in which databases are looked for and imports are written.
    pub fn db_folder(&self) -> PathBuf {
        self.home.join("db")
    }

    /// Returns the folder of what is derived and can be rebuilt.
    pub fn index_folder(&self) -> PathBuf {
        self.index.clone().unwrap_or_else(|| self.home.join("index"))
    }
}

impl Engine {
    /// Returns the database to read: the one configured, else the newest `*.db` in the home's `db/`.
    ///
    /// Looked up anew each time, so that a file that has come since is seen.
    pub fn database(&self) -> Result<PathBuf, Error> {
        if let Some(path) = &self.config.db {
            return if path.is_file() {
                Ok(path.clone())
            } else {
                Err(db::Error::NotFound { path: path.clone() }.into())
            };
        }
        let folder = self.config.db_folder();
        newest(&folder).ok_or(Error::NoDatabase { folder })
    }

    /// Runs `work` on the export, and on the one that took its place if it went away.
    pub(crate) fn on_database<T>(
        &self,
        work: impl FnMut(&Path) -> Result<T, db::Error>,
    ) -> Result<T, Error> {
        self.on_source(&self.export()?, work)
    }

    /// Does as [`Engine::on_database`] does, with any source.
    pub(crate) fn on_source<T>(
        &self,
        source: &Source,
        mut work: impl FnMut(&Path) -> Result<T, db::Error>,
    ) -> Result<T, Error> {
        let mut path = source.path.clone();
        for _ in 0..REPLACEMENTS {
            match work(&path) {
                Err(db::Error::NotFound { .. }) if source.kind == SourceKind::Export => {
                    path = self.database()?;
                }
                answer => return Ok(answer?),
            }
        }
        Err(db::Error::NotFound { path }.into())
    }
}

/// Returns the last changed `*.db` file of a folder; among equals the one whose name comes last.
///
/// One that is still being copied there is passed over for one that is whole.
fn newest(folder: &Path) -> Option<PathBuf> {
    let dated = |entry: fs::DirEntry| {
        let path = entry.path();
        let metadata = fs::metadata(&path).ok()?;
        let wanted = metadata.is_file() && path.extension().is_some_and(|name| name == "db");
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        wanted.then_some((modified, path))
    };
    let mut found: Vec<_> = fs::read_dir(folder).ok()?.flatten().filter_map(dated).collect();
    found.sort();
    let whole = found.iter().rposition(|(_, path)| db::is_whole(path));
    let last = found.len().checked_sub(1)?;
    Some(found.swap_remove(whole.unwrap_or(last)).1)
}
