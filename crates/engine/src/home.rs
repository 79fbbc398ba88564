//! The home folder at the start of a command. Files that an older version left readable for other users
//! are made private, and files that a killed process left are removed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    attachments::{ATTACHMENTS, AttachmentStore, TRANSCRIPT_FILES, is_in_store},
    config::{Config, TRANSCRIPTS},
    decisions::{flags::FLAGS, forgotten::Forgotten},
    error::Result,
};
use verbatim_base::{model::Stop, private};
use verbatim_chats::db;
use verbatim_index::IndexDir;

/// The folder in a home that is the home of the demo.
const DEMO: &str = "demo";

const DEMO_EXPORTS: &str = "exports";

/// The name of a database that imports create.
const IMPORTED: &str = "verbatim.db";

const THREADS: &str = "threads.db";

/// The beginning of the names of the list of forgotten conversations and of its lock.
const FORGOTTEN: &str = "forgotten.";

/// The file in the home folder with the access token of the HTTP server.
pub const TOKEN_FILE: &str = "token";

const DATABASE_FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Makes Verbatim's own files in the folders of a configuration private. If `writes` is set, removes
/// the temporary databases that killed processes left.
///
/// A folder is made private only if all files in it are Verbatim's own, because otherwise the user has
/// it for other purposes too. This lists a few short folders, which takes microseconds.
pub fn prepare_home(config: &Config, writes: bool) {
    let demo = Config { home: config.home.join(DEMO), ..Config::default() };
    let is_sample = tighten_home(&demo, None);
    tighten_home(config, is_sample.then_some(&demo.home));
    if writes {
        for folder in [&config.home, &config.db_folder(), &config.index_folder()] {
            db::remove_abandoned(folder);
        }
    }
}

/// A home folder of an older version, whose databases can be moved.
#[derive(Debug)]
pub struct OldHome {
    folder: PathBuf,
    /// The paths of the databases, relative to the home.
    databases: Vec<PathBuf>,
}

impl OldHome {
    /// Returns the old home in a folder if an import created it. The home of earlier versions was the
    /// working folder or, on Windows, `%APPDATA%`.
    pub fn at(folder: &Path) -> Option<OldHome> {
        let old = Config { home: folder.to_owned(), ..Config::default() };
        let imported = old.db_folder().join(IMPORTED);
        let is_ours = || db::read(&imported, &Stop::never(), db::is_imported);
        let indexes = || fs::read_dir(old.index_folder()).ok();
        let is_home = imported.is_file()
            && indexes()?.flatten().any(|entry| is_in_index(&entry.path()))
            && is_ours().is_ok_and(|is_ours| is_ours);
        if !is_home {
            return None;
        }
        let mut databases = vec![Path::new("db").join(IMPORTED)];
        let in_home = [THREADS, TRANSCRIPTS].map(PathBuf::from);
        databases.extend(in_home.into_iter().filter(|path| folder.join(path).is_file()));
        // Transcripts that agents have deleted exist only in the transcript store.
        let stores = indexes()?.flatten().map(|entry| entry.file_name());
        let stores = stores.filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("archive") && name.ends_with(".db")
        });
        databases.extend(stores.map(|name| Path::new("index").join(name)));
        Some(OldHome { folder: folder.to_owned(), databases })
    }

    /// Returns the path of the old home folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a database in the home `to` that would be overwritten by a move to that home.
    pub fn obstacle(&self, to: &Path) -> Option<PathBuf> {
        let kept = self.databases.iter().filter(|path| !path.starts_with("index"));
        kept.map(|path| to.join(path)).find(|path| path.exists())
    }

    /// Moves the databases, the files of messages and the list of forgotten conversations to another
    /// home. Removes the indexes, because they belong to the old paths.
    pub fn move_to(&self, to: &Path) -> Result<()> {
        let old = Config { home: self.folder.clone(), ..Config::default() };
        let new = Config { home: to.to_owned(), ..Config::default() };
        // The list is moved before the chats, so that no import into the other home adds forgotten chats
        // again.
        Forgotten::adopt(&new, &old)?;
        for store in [AttachmentStore::from_config, AttachmentStore::of_transcripts] {
            store(&new).adopt(&store(&old))?;
        }
        // The chats are moved last. While they are in the old home, an interrupted move can be repeated.
        for path in self.databases.iter().rev() {
            // If the other home already has a transcript store, the old store is not moved.
            if !to.join(path).exists() {
                db::relocate(&self.folder.join(path), &to.join(path))?;
            }
        }
        Forgotten::remove(&old);
        let left = fs::read_dir(old.index_folder()).into_iter().flatten().flatten();
        for path in left.map(|entry| entry.path()).filter(|path| IndexDir::is_at(path)) {
            drop(fs::remove_dir_all(path));
        }
        for folder in [old.index_folder(), old.db_folder()] {
            // `remove_dir` removes only empty folders.
            drop(fs::remove_dir(folder));
        }
        Ok(())
    }
}

/// Makes Verbatim's own files in a home folder private. Returns whether all files in it are its own.
/// `sample` is the folder of the demo in this home, if there is one.
fn tighten_home(config: &Config, sample: Option<&PathBuf>) -> bool {
    let mut ours: Vec<PathBuf> = sample.into_iter().cloned().collect();
    for (folder, is_ours) in [
        (config.db_folder(), is_in_databases as fn(&Path) -> bool),
        (config.index_folder(), is_in_index),
        (config.home.join(DEMO_EXPORTS), is_in_exports),
        (config.home.join(ATTACHMENTS), is_in_store),
        (config.home.join(TRANSCRIPT_FILES), is_in_store),
    ] {
        if tighten(&folder, is_ours) {
            ours.push(folder);
        }
    }
    tighten(&config.home, |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let begins = [FORGOTTEN, FLAGS].iter().any(|start| name.starts_with(start));
        let is_file = begins || name == TOKEN_FILE;
        is_database(path, is_in_home)
            || path.is_file() && is_file
            || ours.iter().any(|folder| folder == path)
    })
}

/// Makes the entries of a folder private that `is_ours` accepts. If it accepts all entries, makes the folder
/// private too and returns true.
fn tighten(folder: &Path, is_ours: impl Fn(&Path) -> bool) -> bool {
    let (mut any, mut all) = (false, true);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_ours(&path) {
            any = true;
            private::tighten(&path);
        } else {
            all = false;
        }
    }
    if any && all {
        private::tighten(folder);
    }
    any && all
}

/// Returns whether a file in the home folder belongs to the threads database or the transcript store.
fn is_in_home(stem: &str) -> bool {
    stem == THREADS || Path::new(stem).file_stem() == Path::new(TRANSCRIPTS).file_stem()
}

fn is_in_databases(path: &Path) -> bool {
    is_database(path, |stem| stem == IMPORTED)
}

fn is_in_index(path: &Path) -> bool {
    let is_store = |stem: &str| {
        stem.starts_with("archive") && (stem.ends_with(".db") || stem.ends_with(".lock"))
    };
    IndexDir::is_at(path) || is_database(path, is_store)
}

fn is_in_exports(path: &Path) -> bool {
    ["chatgpt.json", "claude.json"].iter().any(|name| path.ends_with(name))
}

/// Returns whether a path names a temporary database, or a file of a database that `is_ours` accepts.
fn is_database(path: &Path, is_ours: impl Fn(&str) -> bool) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut names = DATABASE_FILES.iter().filter_map(|end| name.strip_suffix(end));
    path.is_file() && (db::is_temporary(&name) || names.any(is_ours))
}
