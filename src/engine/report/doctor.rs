//! Examines everything that answers depend on, and says what would mend what is wrong.
//!
//! Invariant: changes nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::engine::{
    Engine, FallbackReason, Source,
    report::{sample, status},
    upkeep::maintainer,
};
use crate::{
    db::{self, Probe},
    import::Export,
    index::IndexDir,
    model::Stop,
};

/// How long SQLite may look for faults in one database, unless all of it is asked for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is free on a disk at least.
const LITTLE: u64 = 64 << 20;

/// What an index takes, in times of its database.
const INDEX_SHARE: u64 = 3;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Well,
    /// Good to know; answers are right.
    Note,
    /// Something to mend.
    Wrong,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How it is.
    pub verdict: Verdict,
    /// What was examined, in a word or by its path.
    pub about: String,
    /// What was found, in a sentence.
    pub what: String,
    /// What mends it: a command, mostly.
    pub mend: Option<String>,
}

impl Finding {
    /// Returns that all is well.
    pub fn well(about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Well, about: about.into(), what: what.into(), mend: None }
    }

    /// Returns something that is good to know.
    pub fn note(about: impl Into<String>, what: impl Into<String>, mend: &str) -> Finding {
        let mend = (!mend.is_empty()).then(|| mend.to_owned());
        Finding { verdict: Verdict::Note, about: about.into(), what: what.into(), mend }
    }

    /// Returns something to mend.
    pub fn wrong(about: impl Into<String>, what: impl Into<String>, mend: &str) -> Finding {
        Finding { verdict: Verdict::Wrong, ..Finding::note(about, what, mend) }
    }
}

impl Engine {
    /// Examines folders, databases and indexes; `full` takes as long as it takes.
    pub fn examine(&self, full: bool, stop: &Stop, tell: &mut dyn FnMut(Finding)) {
        let sources = self.sources();
        self.examine_folders(&sources, tell);
        if let Err(error) = self.database() {
            tell(Finding::wrong("database", error.to_string(), "verbatim import EXPORT"));
        }
        for source in &sources {
            if self.examine_database(source, full, stop, tell) {
                self.examine_index(source, stop, tell);
            }
        }
        self.examine_strangers(&sources, tell);
        for path in maintainer::beside(self, &sources).filter(|path| Export::open(path).is_ok()) {
            let path = path.display().to_string();
            let mend = format!("verbatim import {path}");
            tell(Finding::note(path, "an export that was not imported", &mend));
        }
    }

    fn examine_folders(&self, sources: &[Source], tell: &mut dyn FnMut(Finding)) {
        let config = self.config();
        let index = config.index_folder();
        let other_home = "name a folder of yours with --home or VERBATIM_HOME";
        for (folder, what, mend) in [
            (config.db_folder(), "imports cannot be written to it", other_home),
            (index.clone(), "no index can be kept in it", "name another folder with --index"),
        ] {
            let about = folder.display().to_string();
            match obstacle(&folder) {
                Some(reason) => tell(Finding::wrong(about, format!("{what}: {reason}"), mend)),
                None => tell(Finding::well(about, "can be written to")),
            }
        }
        let Some(free) = free_space(&index) else { return };
        // What is current has its space; the others are built anew, beside the old one.
        let needed = sources.iter().filter(|source| self.current_index(source).is_err());
        let bytes = |source: &Source| fs::metadata(&source.path).map_or(0, |file| file.len());
        let needed = LITTLE + needed.map(bytes).sum::<u64>() * INDEX_SHARE;
        let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
        let what = format!("{} free", megabytes(free));
        tell(if free < needed {
            let what = format!("{what}, and indexing may take {}", megabytes(needed));
            Finding::wrong("disk", what, "make room, or name a folder elsewhere with --index")
        } else {
            Finding::well("disk", what)
        });
    }

    /// Returns whether the database can be read.
    fn examine_database(
        &self,
        source: &Source,
        full: bool,
        stop: &Stop,
        tell: &mut dyn FnMut(Finding),
    ) -> bool {
        let path = &source.path;
        let about = || path.display().to_string();
        let until = if full { stop.clone() } else { stop.within(PATIENCE) };
        let counted = db::read(path, &until, |database| {
            Ok((db::counts(database)?, db::strays(database)?, database.layout().clone()))
        });
        let ((conversations, messages), strays, layout) = match counted {
            Ok(counted) => counted,
            Err(db::Error::Stopped) => {
                tell(slow(about()));
                return true;
            }
            Err(error) => {
                tell(Finding::wrong(about(), error.to_string(), mend_of(&error, path)));
                return false;
            }
        };
        let holds = format!("{messages} messages in {conversations} conversations");
        match db::read(path, &until, |database| db::faults(database, full)) {
            Ok(faults) if faults.is_empty() => {
                tell(Finding::well(about(), format!("{holds}, and SQLite finds no fault")));
            }
            Ok(faults) => tell(Finding::wrong(
                about(),
                format!("SQLite finds it damaged: {}", faults.join("; ")),
                "restore it from a backup, or import your exports into a new database",
            )),
            Err(db::Error::Stopped) => tell(slow(about())),
            Err(error) => {
                tell(Finding::wrong(about(), error.to_string(), mend_of(&error, path)));
            }
        }
        if strays > 0 {
            let what = format!("{strays} messages are in no conversation, and so in no answer");
            tell(Finding::note(about(), what, ""));
        }
        if layout.message_key.is_none() || layout.conversation_key.is_none() {
            let what = "cannot be indexed, because its tables are views or WITHOUT ROWID";
            tell(Finding::note(about(), what, ""));
        }
        true
    }

    fn examine_index(&self, source: &Source, stop: &Stop, tell: &mut dyn FnMut(Finding)) {
        let Ok(probe) = Probe::of(&source.path) else { return };
        let index_dir = IndexDir::of(&self.config().index_folder(), probe.real());
        let about = || index_dir.folder().display().to_string();
        if let Some(activity) = index_dir.activity() {
            let what = format!("process {} is refreshing this index", activity.process);
            tell(Finding::note(about(), what, ""));
        }
        let left = index_dir.leftovers();
        if !left.is_empty() {
            let bytes: u64 = left.iter().map(|path| status::size_of(path)).sum();
            let what = format!(
                "{} files or folders are left of refreshes that were broken off ({bytes} bytes)",
                left.len()
            );
            tell(Finding::note(about(), what, "verbatim reindex --full"));
        }
        if let Some(current) = index_dir.current() {
            match index_dir.check(&current, stop) {
                Ok(bytes) => {
                    tell(Finding::well(about(), format!("all {bytes} bytes are as written")));
                }
                // Replaced meanwhile, which is no damage.
                Err(_) if index_dir.current().as_ref() != Some(&current) => {}
                Err(error) => {
                    tell(Finding::wrong(about(), error.to_string(), "verbatim reindex --full"));
                    return;
                }
            }
        }
        match self.current_index(source) {
            Ok(snapshot) => {
                for finding in sample::compare(self, source, &snapshot, stop) {
                    tell(finding);
                }
            }
            Err(why @ FallbackReason::Unreadable(_)) => {
                tell(Finding::wrong(about(), why.to_string(), "verbatim reindex --full"));
            }
            Err(why) => {
                let what = format!("searches are slow, because {why}");
                tell(Finding::note(about(), what, "verbatim reindex"));
            }
        }
    }

    /// Speaks of indexes whose database is not searched.
    fn examine_strangers(&self, sources: &[Source], tell: &mut dyn FnMut(Finding)) {
        let index = self.config().index_folder();
        let probes = sources.iter().filter_map(|source| Probe::of(&source.path).ok());
        let known: Vec<PathBuf> =
            probes.map(|probe| IndexDir::of(&index, probe.real()).folder().to_owned()).collect();
        let entries = fs::read_dir(&index).into_iter().flatten().flatten();
        for folder in entries.map(|entry| entry.path()) {
            if folder.join("current").is_file() && !known.contains(&folder) {
                let bytes = status::size_of(&folder);
                let what = format!("the index of a database that is not searched, {bytes} bytes");
                let mend = "delete the folder if you do not go back to that database";
                tell(Finding::note(folder.display().to_string(), what, mend));
            }
        }
    }
}

fn slow(about: String) -> Finding {
    let what = format!("not examined to the end in {} seconds", PATIENCE.as_secs());
    Finding::note(about, what, "verbatim doctor --full")
}

fn mend_of(error: &db::Error, path: &Path) -> &'static str {
    match error {
        db::Error::NotADatabase { .. } if !db::is_whole(path) => {
            "wait until it is copied, or copy it again"
        }
        db::Error::NotADatabase { .. } | db::Error::NotCanonical { .. } => {
            "verbatim import EXPORT, or name another database with --db"
        }
        db::Error::Io { .. } => "let your user read the file and its folder",
        db::Error::Busy { .. } | db::Error::Unsteady { .. } => "try again when it is quiet",
        _ => "restore it from a backup, or import your exports into a new database",
    }
}

/// Returns why nothing can be written to a folder that is there or can be made.
fn obstacle(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    if !there.is_dir() {
        return Some(format!("{} is not a folder", there.display()));
    }
    #[cfg(unix)]
    {
        use rustix::fs::{Access, access};
        access(there, Access::WRITE_OK | Access::EXEC_OK)
            .err()
            .map(|error| format!("{}: {}", there.display(), std::io::Error::from(error)))
    }
    #[cfg(not(unix))]
    None
}

/// Returns the bytes that are free where a folder is or would be made.
fn free_space(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let there = folder.ancestors().find(|folder| folder.exists())?;
        let numbers = rustix::fs::statvfs(there).ok()?;
        Some(numbers.f_bavail * numbers.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}
