//! The home folder at the start of a command. Files that other users can read are made private, and files
//! that a killed process left are removed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{
    attachments::{ATTACHMENTS, TRANSCRIPT_FILES, is_in_store},
    config::{Config, TRANSCRIPTS},
    decisions::{flags::FlagLine, forgotten::ForgottenId, list::Decision},
};
use verbatim_base::private;
use verbatim_chats::db;
use verbatim_index::IndexDir;

/// The folder in a home that is the home of the demo.
const DEMO: &str = "demo";

const DEMO_EXPORTS: &str = "exports";

/// The name of a database that imports create.
const IMPORTED: &str = "verbatim.db";

const THREADS: &str = "threads.db";

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

/// Makes Verbatim's own files in a home folder private. Returns whether all files in it are its own.
/// `sample` is the folder of the demo in this home, if there is one.
fn tighten_home(config: &Config, sample: Option<&PathBuf>) -> bool {
    let mut ours: Vec<PathBuf> = sample.into_iter().cloned().collect();
    for (folder, is_ours) in [
        (config.db_folder(), is_in_databases as fn(&Path) -> bool),
        (config.index_folder(), IndexDir::is_at),
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
        let lists = [ForgottenId::LIST, FlagLine::LIST];
        let is_list = name.split_once('.').is_some_and(|(stem, _)| lists.contains(&stem));
        is_database(path, is_in_home)
            || path.is_file() && (is_list || name == TOKEN_FILE)
            || ours.iter().any(|folder| folder == path)
    })
}

/// Makes the entries of a folder private that `is_ours` accepts. If it accepts all entries, makes the folder
/// private too and returns true.
fn tighten(folder: &Path, is_ours: impl Fn(&Path) -> bool) -> bool {
    let mut any = false;
    let mut all = true;
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

fn is_in_exports(path: &Path) -> bool {
    ["chatgpt.json", "claude.json"].iter().any(|name| path.ends_with(name))
}

/// Returns whether a path names a temporary database, or a file of a database that `is_ours` accepts.
fn is_database(path: &Path, is_ours: impl Fn(&str) -> bool) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut names = DATABASE_FILES.iter().filter_map(|end| name.strip_suffix(end));
    path.is_file() && (db::is_temporary(&name) || names.any(is_ours))
}
