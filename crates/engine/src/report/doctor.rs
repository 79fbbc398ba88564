//! Checks everything that answers depend on, and says how to repair what is wrong.
//!
//! Invariant: the checks change nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::finding::Finding;
use super::sample;
use super::status::{Status, mend_of, restored};
use crate::attachments::{ATTACHMENTS, TRANSCRIPT_FILES};
use crate::config::TRANSCRIPTS;
use crate::decisions::{flags::FlagLine, forgotten::ForgottenId, list};
use crate::source::{FallbackReason, Source, SourceKind, Sources, size_of};
use crate::upkeep::home::TOKEN_FILE;
use verbatim_base::{call::Call, files, private};
use verbatim_chats::db::{self, OwnDatabase};
use verbatim_index::IndexDir;
use verbatim_text::{amount, shell::quoted};

/// Time limit of SQLite's integrity check of one database, unless everything is to be checked.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Minimum free space on the disk, in bytes.
const LEAST_FREE: u64 = 64 << 20;

/// Assumed maximum size of an index, as a multiple of the size of its database.
const INDEX_SHARE: u64 = 3;

/// Checks folders, databases and indexes: what their status does not say. If `full` is set, checks everything
/// without a time limit. Calls `begin` before each slow check, with its description.
pub fn examine(
    sources: &Sources,
    status: &Status,
    full: bool,
    call: &Call,
    begin: &mut dyn FnMut(&str),
    report: &mut dyn FnMut(Finding),
) {
    Examination { sources, status, full, call, begin, report }.run();
}

struct Examination<'a> {
    sources: &'a Sources,
    status: &'a Status,
    full: bool,
    call: &'a Call,
    begin: &'a mut dyn FnMut(&str),
    report: &'a mut dyn FnMut(Finding),
}

impl Examination<'_> {
    fn run(&mut self) {
        let present = self.sources.present();
        self.examine_folders(&present);
        self.examine_home();
        for source in &present {
            let mut known = self.status.sources.iter();
            let known = known.find(|known| known.database == source.address());
            // What cannot be read is among the facts about the source.
            let is_unreadable = known.is_some_and(|known| known.error.is_some());
            let by_like = known.and_then(|known| known.by_like.as_ref());
            let is_index_reported = matches!(by_like, Some(FallbackReason::Unreadable(_)));
            if !is_unreadable && self.examine_database(source) {
                self.examine_index(source, is_index_reported);
            }
        }
        self.examine_other_indexes(&present);
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
        let mut needed = LEAST_FREE;
        for source in present.iter().filter(|source| source.database().is_some()) {
            if source.current_index(self.call).is_err() {
                needed += source.store().bytes() * INDEX_SHARE;
            }
        }
        let what = format!("{:.1} GB free", free as f64 / 1e9);
        self.report(if free < needed {
            let what = format!("{what}, and indexing may take {:.1} GB", needed as f64 / 1e9);
            Finding::wrong(
                "disk",
                what,
                "make room, or name a folder elsewhere with VERBATIM_INDEX",
            )
        } else {
            Finding::well("disk", what)
        });
    }

    /// Reports which files of the home cannot be used, and what lies in it and is not searched.
    fn examine_home(&mut self) {
        let config = self.sources.config();
        let no_file =
            "put the file back in its place, or move what is there away to begin a new one";
        let lists =
            [list::read::<ForgottenId>(config).map(drop), list::read::<FlagLine>(config).map(drop)];
        for error in lists.into_iter().filter_map(Result::err) {
            self.report(Finding::wrong("home", error.to_string(), no_file));
        }
        for file in [TOKEN_FILE, "transcripts.lock"].map(|name| config.home.join(name)) {
            if let Err(error) = files::check(&file)
                && files::is_no_file(&error)
            {
                self.report(Finding::wrong(file.display().to_string(), error.to_string(), no_file));
            }
        }
        for folder in &config.absent_archives {
            let of_agent =
                folder.ancestors().take(2).find(|it| files::is_there(it) && !it.is_dir());
            if let Some(path) = of_agent {
                let what = if files::is_link(path) {
                    "a link to something that is gone"
                } else {
                    "not a folder"
                };
                let what = format!("it is {what}, so the transcripts in it are not read");
                let mend = "put the folder back in its place";
                self.report(Finding::wrong(path.display().to_string(), what, mend));
            }
        }
        for folder in [ATTACHMENTS, TRANSCRIPT_FILES].map(|name| config.home.join(name)) {
            if files::is_there(&folder) && !folder.is_dir() {
                let mend = "put the folder back in its place";
                self.report(Finding::wrong(
                    folder.display().to_string(),
                    "it is not a folder",
                    mend,
                ));
            }
        }
        for path in config.damaged_stores() {
            let what = "a damaged transcript store was set aside; transcripts that their programs deleted \
                        may only be in it";
            let mend = "name it with --db to search it, or delete it";
            self.report(Finding::note(path.display().to_string(), what, mend));
        }
        let store = config.home.join(TRANSCRIPTS);
        let own = [store.clone(), config.threads_database()];
        let searched: Vec<PathBuf> = self
            .sources
            .present()
            .iter()
            .filter_map(|source| source.path().ok().map(Path::to_owned))
            .collect();
        let folders = [config.home.clone(), config.db_folder()];
        let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let mut others: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        others.retain(|path| {
            let is_own = own.contains(path) && (*path != store || config.has_transcripts());
            let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
            let is_database = ["db", "sqlite", "sqlite3"].iter().any(|it| ending == *it);
            !is_own && is_database && path.is_file() && !searched.contains(path)
        });
        others.sort();
        for path in others {
            let named = path.display().to_string();
            let mend = format!("verbatim search --db {} TEXT", quoted(&named));
            self.report(Finding::note(named, "lies in the home and is not searched", &mend));
        }
    }

    /// Reports the stored transcripts that the named folders leave out.
    fn report_left_out(&mut self, source: &Source) {
        let alone = source.clone().asked_alone(true);
        let Ok(excluded) = alone.excluded(self.call) else { return };
        let Ok(left_out) = alone.left_out(self.call) else { return };
        let elsewhere = left_out.difference(&excluded).count();
        if elsewhere > 0 {
            let what = format!(
                "{} of transcripts in other folders than those of --archive are not searched",
                amount::counted(elsewhere, "conversation")
            );
            let about = source.address().to_string();
            self.report(Finding::note(about, what, "search without --archive"));
        }
    }

    /// Checks a database. Returns whether it can be read.
    fn examine_database(&mut self, source: &Source) -> bool {
        let about = source.address().to_string();
        let Some(path) = source.database() else {
            self.report(Finding::note(about, "the texts in the cluster are not checked", ""));
            return true;
        };
        let in_time = if self.full { self.call.clone() } else { self.call.within(MAX_WAIT) };
        (self.begin)(&format!("checking the pages of {}", path.display()));
        let read = db::read(path, &in_time, |database| {
            Ok((db::strays(database)?, database.layout().clone()))
        });
        match read {
            Ok((strays, layout)) => {
                if strays > 0 {
                    let what =
                        format!("{strays} messages are in no conversation, and so in no answer");
                    self.report(Finding::note(&about, what, ""));
                }
                if layout.message_key.is_none() || layout.conversation_key.is_none() {
                    let what = "cannot be indexed, because its tables are views or WITHOUT ROWID";
                    self.report(Finding::note(&about, what, ""));
                }
            }
            Err(error) => return self.report_unread(source.kind, path, &error),
        }
        match db::read(path, &in_time, |database| db::faults(database, self.full)) {
            Ok(faults) if faults.is_empty() => {
                self.report(Finding::well(about, "SQLite finds no fault"));
            }
            Ok(faults) => self.report(Finding::wrong(
                about,
                format!("SQLite finds it damaged: {}", faults.join("; ")),
                restored(source.kind),
            )),
            Err(error) => {
                self.report_unread(source.kind, path, &error);
            }
        }
        let own = match source.kind {
            SourceKind::Export => OwnDatabase::Imported,
            SourceKind::Archive => OwnDatabase::Transcripts,
            SourceKind::Threads => OwnDatabase::Threads,
        };
        let why = db::read_tables(path, &in_time, |database| db::why_not_written(database, own));
        if let Ok(Some(why)) = why {
            let what = format!("it can be searched, but nothing can be added: {why}");
            self.report(Finding::wrong(path.display().to_string(), what, "update verbatim"));
        }
        if source.kind == SourceKind::Archive {
            self.report_left_out(source);
        }
        true
    }

    /// Reports why a database was not read to the end. Returns whether it only takes too long.
    fn report_unread(&mut self, kind: SourceKind, path: &Path, error: &db::Error) -> bool {
        let about = path.display().to_string();
        if let db::Error::Stopped = error {
            let what = format!("not examined to the end in {} seconds", MAX_WAIT.as_secs());
            self.report(Finding::note(about, what, "verbatim doctor --full"));
            return true;
        }
        self.report(Finding::wrong(about, error.to_string(), mend_of(error, kind, path)));
        false
    }

    /// Checks an index. `is_reported` says that the facts about its source name its damage.
    fn examine_index(&mut self, source: &Source, is_reported: bool) {
        let Ok(index_dir) = source.index_dir() else { return };
        let about = index_dir.folder().display().to_string();
        if let Some(path) = index_dir.obstacle() {
            let path = path.display().to_string();
            let mend = format!("rm -r {}; then verbatim reindex", quoted(&path));
            let what = "it is in the place of a part of the index, which cannot be written";
            self.report(Finding::wrong(path, what, &mend));
        }
        let left = index_dir.leftovers();
        if !left.is_empty() {
            let bytes: u64 = left.iter().map(|path| size_of(path)).sum();
            let files = match left.len() {
                1 => "1 file or folder is".to_owned(),
                several => format!("{several} files or folders are"),
            };
            let what = format!("{files} left over from interrupted refreshes ({bytes} bytes)");
            self.report(Finding::note(&about, what, "verbatim reindex"));
        }
        if let Some(current) = index_dir.current() {
            (self.begin)(&format!("checking the index {}", index_dir.folder().display()));
            match index_dir.check(&current, &self.call.stop) {
                Ok(bytes) => {
                    self.report(Finding::well(
                        &about,
                        format!("all {} bytes are as written", amount::grouped(bytes)),
                    ));
                }
                // A refresh replaced the snapshot during the check, so the error does not mean damage.
                Err(_) if index_dir.current().as_ref() != Some(&current) => {}
                Err(error) => {
                    if !is_reported {
                        let mend = "verbatim reindex --full";
                        self.report(Finding::wrong(&about, error.to_string(), mend));
                    }
                    return;
                }
            }
        }
        if let Ok(snapshot) = source.current_index(self.call) {
            for finding in
                sample::compare(source, &snapshot, self.full, self.call, &mut *self.begin)
            {
                self.report(finding);
            }
        }
    }

    /// Reports indexes whose database is not searched.
    fn examine_other_indexes(&mut self, present: &[Source]) {
        let index = self.sources.config().index_folder();
        let known = present.iter().filter_map(|source| source.index_dir().ok());
        let known: Vec<PathBuf> = known.map(|it| it.folder().to_owned()).collect();
        let all = IndexDir::all(&index);
        for entry in fs::read_dir(&index).into_iter().flatten().flatten() {
            let folder = &entry.path();
            if !folder.join("current").is_file() || known.contains(folder) {
                continue;
            }
            let size = amount::bytes(size_of(folder));
            let remove = format!("rm -r {}", quoted(&folder.display().to_string()));
            let Some(index_dir) = all.iter().find(|it| it.folder() == folder) else {
                let what = format!(
                    "the index of an unknown database, which is not searched; it takes {size}"
                );
                self.report(Finding::note(folder.display().to_string(), what, &remove));
                continue;
            };
            let database = index_dir.database();
            // What is in the place of the database is named already, and it may come back.
            if files::is_there(&database) && !database.is_file() {
                continue;
            }
            let mut state = "is gone";
            let mut mend = format!("{remove}, unless the database comes back");
            if !index_dir.is_orphan() {
                state = "is not searched";
                let named = quoted(&database.display().to_string());
                mend = format!("verbatim search --db {named} TEXT, or {remove}");
            }
            let what =
                format!("the index of {}, which {state}; it takes {size}", database.display());
            self.report(Finding::note(folder.display().to_string(), what, &mend));
        }
    }

    fn report(&mut self, finding: Finding) {
        (self.report)(finding);
    }
}

/// Returns the reason why a folder cannot be written to. The folder may not exist yet.
fn obstacle(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|folder| files::is_there(folder))?;
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
