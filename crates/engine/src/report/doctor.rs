//! Checks everything that answers depend on, and says how to repair what is wrong.
//!
//! Invariant: the checks change nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{finding::Finding, sample, status};
use crate::{
    error::Error,
    source::{FallbackReason, Scope, Source, SourceKind, Sources, size_of},
    upkeep::{maintainer, transcripts},
};
use verbatim_base::{call::Call, model::Instant, private};
use verbatim_chats::{db, import::Export};
use verbatim_text::{amount, shell::quoted};

/// Time limit of SQLite's integrity check of one database, unless everything is to be checked.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Minimum free space on the disk, in bytes.
const LEAST_FREE: u64 = 64 << 20;

/// Assumed maximum size of an index, as a multiple of the size of its database.
const INDEX_SHARE: u64 = 3;

/// Checks folders, databases and indexes. If `full` is set, checks everything without a time limit.
/// Calls `begin` before each slow check, with its description.
pub fn examine(
    sources: &Sources,
    full: bool,
    call: &Call,
    begin: &mut dyn FnMut(&str),
    report: &mut dyn FnMut(Finding),
) {
    Examination { sources, full, call, begin, report }.run();
}

struct Examination<'a> {
    sources: &'a Sources,
    full: bool,
    call: &'a Call,
    begin: &'a mut dyn FnMut(&str),
    report: &'a mut dyn FnMut(Finding),
}

impl Examination<'_> {
    fn run(&mut self) {
        let present = self.sources.present();
        self.examine_folders(&present);
        if let Err(error) = self.sources.config().export_store() {
            self.report(match error {
                Error::NoDatabase { .. } => {
                    let others = if present.is_empty() {
                        ""
                    } else {
                        "; transcripts and threads are searched"
                    };
                    let what = format!("no export is imported yet{others}");
                    Finding::note("database", what, "verbatim import")
                }
                error => Finding::wrong("database", error.to_string(), "verbatim import EXPORT"),
            });
        }
        let passed_over = self.sources.config().passed_over().into_iter();
        for (path, _) in passed_over.filter(|(_, is_canonical)| *is_canonical) {
            let path = path.display().to_string();
            let mend = format!("verbatim search --db {} TEXT", quoted(&path));
            let what = "chats that are not searched, because another database is newer";
            self.report(Finding::note(path, what, &mend));
        }
        for source in &present {
            if self.examine_database(source) {
                self.examine_index(source);
            }
        }
        self.examine_other_indexes(&present);
        self.report_excluded(&present);
        let unimported = maintainer::unimported(self.sources.config(), &present);
        for path in unimported.filter(|path| Export::open_outer(path).is_ok()) {
            let path = path.display().to_string();
            let mend = format!("verbatim import {}", quoted(&path));
            self.report(Finding::note(path, "an export that was not imported", &mend));
        }
    }

    fn examine_folders(&mut self, present: &[Source]) {
        let config = self.sources.config();
        let index = config.index_folder();
        let other_home = "name a folder of yours with --home or VERBATIM_HOME";
        for (folder, what, mend) in [
            (config.db_folder(), "imports cannot be written to it", other_home),
            (
                index.clone(),
                "no index can be kept in it",
                "name another folder with VERBATIM_INDEX",
            ),
        ] {
            let about = folder.display().to_string();
            match obstacle(&folder) {
                Some(reason) => {
                    self.report(Finding::wrong(about, format!("{what}: {reason}"), mend));
                }
                None => self.report(Finding::well(about, "can be written to")),
            }
        }
        let home = fs::metadata(&config.home).ok();
        if let Some(why) = home.and_then(|home| private::distrust(&home)) {
            let mend = format!("chmod go-w {}", quoted(&config.home.display().to_string()));
            self.report(Finding::wrong(config.home.display().to_string(), why, &mend));
        }
        let Some(free) = free_space(&index) else { return };
        // An index that is not current is built again while the old one is still there.
        let here = present.iter().filter(|source| source.database().is_some());
        let needed = here.filter(|source| source.current_index(self.call).is_err());
        let bytes = |source: &Source| source.store().bytes();
        let needed = LEAST_FREE + needed.map(bytes).sum::<u64>() * INDEX_SHARE;
        let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        let what = format!("{} free", gigabytes(free));
        self.report(if free < needed {
            let what = format!("{what}, and indexing may take {}", gigabytes(needed));
            Finding::wrong(
                "disk",
                what,
                "make room, or name a folder elsewhere with VERBATIM_INDEX",
            )
        } else {
            Finding::well("disk", what)
        });
    }

    /// Checks a database. Returns whether it can be read.
    fn examine_database(&mut self, source: &Source) -> bool {
        let about = || source.address().to_string();
        let Some(path) = source.database() else {
            let scope = Scope::default();
            match source.reader(self.call).count(&scope, &Instant::day, self.call) {
                Ok(counts) => {
                    let messages: u64 = counts.conversations.values().sum();
                    let conversations = counts.conversations.len();
                    let holds = holding(messages, conversations as u64);
                    let what = format!("{holds}; the texts in the cluster were not checked");
                    self.report(Finding::well(about(), what));
                }
                Err(error) => self.report(Finding::wrong(about(), error.to_string(), "")),
            }
            return true;
        };
        let in_time = if self.full { self.call.clone() } else { self.call.within(MAX_WAIT) };
        (self.begin)(&format!("counting the messages of {}", path.display()));
        let counted = db::read(path, &in_time, |database| {
            Ok((db::counts(database)?, db::strays(database)?, database.layout().clone()))
        });
        let ((conversations, messages), strays, layout) = match counted {
            Ok(counted) => counted,
            Err(db::Error::Stopped) => {
                self.report(slow(about()));
                return true;
            }
            Err(error) => {
                self.report(Finding::wrong(
                    about(),
                    error.to_string(),
                    mend_of(&error, source.kind, path),
                ));
                return false;
            }
        };
        let holds = holding(messages, conversations);
        (self.begin)(&format!("checking the pages of {}", path.display()));
        match db::read(path, &in_time, |database| db::faults(database, self.full)) {
            Ok(faults) if faults.is_empty() => {
                self.report(Finding::well(about(), format!("{holds}, and SQLite finds no fault")));
            }
            Ok(faults) => self.report(Finding::wrong(
                about(),
                format!("SQLite finds it damaged: {}", faults.join("; ")),
                "restore it from a backup, or import your exports into a new database",
            )),
            Err(db::Error::Stopped) => self.report(slow(about())),
            Err(error) => {
                self.report(Finding::wrong(
                    about(),
                    error.to_string(),
                    mend_of(&error, source.kind, path),
                ));
            }
        }
        if strays > 0 {
            let what = format!("{strays} messages are in no conversation, and so in no answer");
            self.report(Finding::note(about(), what, ""));
        }
        if source.kind == SourceKind::Archive {
            let said = transcripts::unread_parts(&self.sources.current_config(), self.call);
            for what in said.unwrap_or_else(|error| vec![error.to_string()]) {
                self.report(Finding::note("transcripts", what, ""));
            }
            for path in self.sources.config().damaged_stores() {
                let what = "a damaged transcript store was set aside; transcripts that their programs                             deleted may only be in it";
                let mend = "name it with --db to search it, or delete it";
                self.report(Finding::note(path.display().to_string(), what, mend));
            }
        }
        if layout.message_key.is_none() || layout.conversation_key.is_none() {
            let what = "cannot be indexed, because its tables are views or WITHOUT ROWID";
            self.report(Finding::note(about(), what, ""));
        }
        true
    }

    fn examine_index(&mut self, source: &Source) {
        let Ok(index_dir) = source.index_dir() else { return };
        let about = || index_dir.folder().display().to_string();
        if let Some(activity) = index_dir.activity() {
            let what = format!("process {} is refreshing this index", activity.process);
            self.report(Finding::note(about(), what, ""));
        }
        let left = index_dir.leftovers();
        if !left.is_empty() {
            let bytes: u64 = left.iter().map(|path| size_of(path)).sum();
            let files = match left.len() {
                1 => "1 file or folder is".to_owned(),
                several => format!("{several} files or folders are"),
            };
            let what = format!("{files} left over from interrupted refreshes ({bytes} bytes)");
            self.report(Finding::note(about(), what, "verbatim reindex"));
        }
        if let Some(current) = index_dir.current() {
            (self.begin)(&format!("checking the index {}", index_dir.folder().display()));
            match index_dir.check(&current, &self.call.stop) {
                Ok(bytes) => {
                    self.report(Finding::well(
                        about(),
                        format!("all {} bytes are as written", amount::grouped(bytes)),
                    ));
                }
                // A refresh replaced the snapshot during the check, so the error does not mean damage.
                Err(_) if index_dir.current().as_ref() != Some(&current) => {}
                Err(error) => {
                    self.report(Finding::wrong(
                        about(),
                        error.to_string(),
                        "verbatim reindex --full",
                    ));
                    return;
                }
            }
        }
        match source.current_index(self.call) {
            Ok(snapshot) => {
                let (call, begin) = (self.call, &mut *self.begin);
                for finding in sample::compare(source, &snapshot, self.full, call, begin) {
                    self.report(finding);
                }
            }
            Err(why @ FallbackReason::Unreadable(_)) => {
                self.report(Finding::wrong(about(), why.to_string(), "verbatim reindex --full"));
            }
            Err(why) => {
                let what = format!("searches are slow, because {why}");
                self.report(Finding::note(about(), what, "verbatim reindex"));
            }
        }
    }

    /// Reports the exclusions, and how many conversations they exclude.
    fn report_excluded(&mut self, present: &[Source]) {
        let config = &*self.sources.current_config();
        if config.exclude.is_empty() {
            return;
        }
        let of = |source: &Source| match status::excluded(config, source, self.call) {
            Ok(1) => format!("1 conversation of the {}", source.kind.name()),
            Ok(count) => format!("{count} conversations of the {}", source.kind.name()),
            Err(error) => format!("an unknown number of the {}: {error}", source.kind.name()),
        };
        let counts: Vec<String> =
            present.iter().filter(|source| source.may_exclude()).map(of).collect();
        let what = format!("{}; in no answer: {}", config.exclude.join(", "), counts.join(", "));
        self.report(Finding::note("exclude", what, ""));
    }

    /// Reports indexes whose database is not searched.
    fn examine_other_indexes(&mut self, present: &[Source]) {
        let index = self.sources.config().index_folder();
        let known = present.iter().filter_map(|source| source.index_dir().ok());
        let known: Vec<PathBuf> = known.map(|it| it.folder().to_owned()).collect();
        let entries = fs::read_dir(&index).into_iter().flatten().flatten();
        for folder in entries.map(|entry| entry.path()) {
            if folder.join("current").is_file() && !known.contains(&folder) {
                let size = amount::bytes(size_of(&folder));
                let what = format!("the index of a database that is not searched, {size}");
                let mend = "delete the folder if you do not go back to that database";
                self.report(Finding::note(folder.display().to_string(), what, mend));
            }
        }
    }

    fn report(&mut self, finding: Finding) {
        (self.report)(finding);
    }
}

fn slow(about: String) -> Finding {
    let what = format!("not examined to the end in {} seconds", MAX_WAIT.as_secs());
    Finding::note(about, what, "verbatim doctor --full")
}

fn mend_of(error: &db::Error, kind: SourceKind, path: &Path) -> &'static str {
    match error {
        db::Error::NotADatabase { .. } | db::Error::NotCanonical { .. }
            if kind == SourceKind::Threads =>
        {
            "restore it from a backup, or move it away to begin a new one"
        }
        db::Error::NotADatabase { .. } if !db::is_whole(path) => {
            "wait until it is copied, or copy it again"
        }
        db::Error::NotADatabase { .. } | db::Error::NotCanonical { .. } => {
            "verbatim import EXPORT, or name another database with --db"
        }
        db::Error::Io { .. } => "let your user read the file and its folder",
        db::Error::Busy { .. } | db::Error::Unsteady { .. } => "try again later",
        _ => "restore it from a backup, or import your exports into a new database",
    }
}

/// Returns the reason why a folder cannot be written to. The folder may not exist yet.
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

/// Returns how much a store holds.
fn holding(messages: u64, conversations: u64) -> String {
    let conversations = amount::counted(conversations, "conversation");
    format!("{} in {conversations}", amount::counted(messages, "message"))
}

/// Returns the free bytes on the disk of a folder, which may not exist yet.
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
