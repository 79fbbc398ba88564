//! The home folder at the start of a command: what an older version left open to other users is
//! made private, and what a killed process left behind is removed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::config::Config;
use crate::{db, index::IndexDir, private};

/// The folder of a home that holds the home of the sample.
const DEMO: &str = "demo";

/// The folder of the sample's exports in its home.
const DEMO_EXPORTS: &str = "exports";

/// The name that imports give to a database.
const IMPORTED: &str = "verbatim.db";

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

/// Makes private what is ours in a home folder; returns whether everything in it is. `sample` is
/// the sample's home in it, if there is one.
fn tighten_home(config: &Config, sample: Option<&PathBuf>) -> bool {
    let mut ours: Vec<PathBuf> = sample.into_iter().cloned().collect();
    for (folder, is_ours) in [
        (config.db_folder(), is_in_databases as fn(&Path) -> bool),
        (config.index_folder(), is_in_index),
        (config.home.join(DEMO_EXPORTS), is_in_exports),
    ] {
        if tighten(&folder, is_ours) {
            ours.push(folder);
        }
    }
    tighten(&config.home, |path| {
        is_database(path, |stem| stem == "threads.db") || ours.iter().any(|folder| folder == path)
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
