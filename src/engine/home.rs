//! The home folder at the start of a command: what an older version left open to other users is
//! made private, and what a killed process left behind is removed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    attachments::{ATTACHMENTS, AttachmentStore, TRANSCRIPT_FILES, is_in_store},
    config::{Config, TRANSCRIPTS},
    error::Error,
    flags::FLAGS,
    forgotten::Forgotten,
};
use crate::{db, index::IndexDir, model::Stop, private};

/// The folder of a home that holds the home of the sample.
const DEMO: &str = "demo";

/// The folder of the sample's exports in its home.
const DEMO_EXPORTS: &str = "exports";

/// The name that imports give to a database.
const IMPORTED: &str = "verbatim.db";

/// The name of the database of recorded threads.
const THREADS: &str = "threads.db";

/// The beginning of the names of the list of forgotten conversations and of its lock.
const FORGOTTEN: &str = "forgotten.";

/// The file of a home that holds the token of its server.
pub(crate) const TOKEN_FILE: &str = "token";

/// The ends of the names of SQLite's files.
const DATABASE_FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Makes private what is ours in the folders of a configuration. If the command `writes`, removes
/// the temporary databases that killed processes left.
///
/// A folder is made private only if everything in it is ours: else the user has it for other things
/// too. This lists a few short folders, which takes microseconds.
pub(crate) fn prepare(config: &Config, writes: bool) {
    let demo = Config { home: config.home.join(DEMO), ..Config::default() };
    let is_sample = tighten_home(&demo, None);
    tighten_home(config, is_sample.then_some(&demo.home));
    if writes {
        for folder in [&config.home, &config.db_folder(), &config.index_folder()] {
            db::remove_abandoned(folder);
        }
    }
}

/// The databases of an older version's home that are moved.
#[derive(Debug)]
pub(crate) struct OldHome {
    folder: PathBuf,
    /// The paths of the databases, relative to the home.
    databases: Vec<PathBuf>,
}

impl OldHome {
    /// Returns the home in a folder if an import of ours made it: the home of earlier versions was the
    /// working folder or, on Windows, `%APPDATA%`.
    pub(crate) fn at(folder: &Path) -> Option<OldHome> {
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
        // The transcripts that agents have deleted since are nowhere else.
        let stores = indexes()?.flatten().map(|entry| entry.file_name());
        let stores = stores.filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("archive") && name.ends_with(".db")
        });
        databases.extend(stores.map(|name| Path::new("index").join(name)));
        Some(OldHome { folder: folder.to_owned(), databases })
    }

    /// The folder of the home.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the database of chats or threads that keeps the home from being moved to another.
    pub(crate) fn obstacle(&self, to: &Path) -> Option<PathBuf> {
        let kept = self.databases.iter().filter(|path| !path.starts_with("index"));
        kept.map(|path| to.join(path)).find(|path| path.exists())
    }

    /// Moves the databases, the files of messages and the list of forgotten conversations to another
    /// home, and removes the indexes, which belong to their old paths.
    pub(crate) fn move_to(&self, to: &Path) -> Result<(), Error> {
        let old = Config { home: self.folder.clone(), ..Config::default() };
        let new = Config { home: to.to_owned(), ..Config::default() };
        // The list comes before the chats, so that no import into the other home brings forgotten chats
        // back.
        Forgotten::adopt(&new, &old)?;
        for store in [AttachmentStore::of, AttachmentStore::of_transcripts] {
            store(&new).adopt(&store(&old))?;
        }
        // The chats come last: while they are there, the home is found again, and the rest is moved.
        for path in self.databases.iter().rev() {
            // A store of transcripts that the other home has already stays where it is.
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
            // Only an empty folder is removed.
            drop(fs::remove_dir(folder));
        }
        Ok(())
    }
}

/// Makes private what is ours in a home folder; returns whether everything in it is. `sample` is
/// the sample's home in it, if there is one.
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

/// Makes the entries of a folder private that are ours, and then the folder if it holds nothing
/// else; returns whether it holds nothing else.
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

/// Returns whether a file of the home folder is ours: the threads, and the transcripts with their lock.
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

/// Returns whether a path names a temporary database, or a file of a database of such a name.
fn is_database(path: &Path, is_ours: impl Fn(&str) -> bool) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut names = DATABASE_FILES.iter().filter_map(|end| name.strip_suffix(end));
    path.is_file() && (db::is_temporary(&name) || names.any(is_ours))
}
