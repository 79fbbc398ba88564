//! A watcher of folders, and the choice of file events that cause a poll.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, time::SystemTime};

use notify::event::ModifyKind;
use notify::{
    ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher,
};

/// The suffixes of unfinished files. Changes to such a file are ignored until it is renamed.
const UNFINISHED_SUFFIXES: &[&str] =
    &[".crdownload", ".part", ".partial", ".download", ".tmp", ".temp", ".swp", "~"];

pub(super) struct FolderWatcher {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeMap<PathBuf, FolderIdentity>,
    /// Whether a folder cannot be watched.
    is_blind: bool,
    reported: BTreeSet<String>,
    /// An error of the watcher that is not reported yet.
    unreported: Option<String>,
}

/// The inode and the time of creation. They tell a folder from a new folder with the same path.
type FolderIdentity = (u64, Option<SystemTime>);

impl FolderWatcher {
    /// Returns a watcher that calls `wake` from another thread. Changes in `index_folder` are ignored.
    pub(super) fn new(index_folder: PathBuf, wake: impl Fn() + Send + 'static) -> FolderWatcher {
        let index_folder = dunce::canonicalize(&index_folder).unwrap_or(index_folder);
        let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
            let matters = event.map_or(true, |event| matters(&event, &index_folder));
            if matters {
                wake();
            }
        });
        let (watcher, problem) = match watcher {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => (None, Some(explained(&error))),
        };
        FolderWatcher {
            watcher,
            watched: BTreeMap::new(),
            is_blind: problem.is_some(),
            reported: BTreeSet::new(),
            unreported: problem,
        }
    }

    /// Returns whether only polling can find the changes of a folder.
    pub(super) fn is_blind(&self) -> bool {
        self.is_blind
    }

    /// Watches these folders and no others. If a folder is missing, watches its nearest parent that
    /// exists.
    pub(super) fn rewatch(&mut self, folders: &[PathBuf], report: &mut dyn FnMut(String)) {
        if let Some(problem) = self.unreported.take() {
            report(problem);
        }
        let Some(watcher) = &mut self.watcher else { return };
        let existing = folders.iter().filter_map(|folder| {
            let mut ancestors = folder.ancestors();
            ancestors.find_map(|it| Some((dunce::canonicalize(it).ok()?, identity(it)?)))
        });
        let wanted: BTreeMap<PathBuf, FolderIdentity> = existing.collect();
        let gone: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|(folder, identity)| wanted.get(*folder) != Some(identity))
            .map(|(folder, _)| folder.clone())
            .collect();
        for folder in gone {
            // The call fails if the folder was removed. A removed folder is not watched any more.
            drop(watcher.unwatch(&folder));
            self.watched.remove(&folder);
        }
        self.is_blind = false;
        for (folder, identity) in wanted {
            if self.watched.contains_key(&folder) {
                continue;
            }
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => drop(self.watched.insert(folder, identity)),
                // The folder was just removed; the next call watches the folders that exist then.
                Err(error) if matches!(error.kind, ErrorKind::PathNotFound) => {}
                Err(error) => {
                    self.is_blind = true;
                    let problem = format!("{}: {}", folder.display(), explained(&error));
                    if self.reported.insert(problem.clone()) {
                        report(problem);
                    }
                }
            }
        }
    }
}

#[cfg(unix)]
fn identity(folder: &Path) -> Option<FolderIdentity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    Some((metadata.ino(), metadata.created().ok()))
}

#[cfg(not(unix))]
fn identity(folder: &Path) -> Option<FolderIdentity> {
    let metadata = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    Some((0, metadata.created().ok()))
}

fn explained(error: &notify::Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => "the system's limit of watched files is reached; on Linux \
                                     `sysctl fs.inotify.max_user_watches` raises it"
            .to_owned(),
        ErrorKind::Io(error) if error.raw_os_error() == Some(24) => {
            "the system's limit of watchers is reached; on Linux \
             `sysctl fs.inotify.max_user_instances` raises it"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Returns whether an event must cause a poll. Reads of files must not, because polling itself reads files.
fn matters(event: &notify::Event, index_folder: &Path) -> bool {
    let changes = match event.kind {
        EventKind::Any | EventKind::Other | EventKind::Access(_) => false,
        EventKind::Create(_) | EventKind::Remove(_) => true,
        EventKind::Modify(ModifyKind::Name(_)) => {
            return event.paths.iter().any(|path| !path.starts_with(index_folder));
        }
        EventKind::Modify(_) => true,
    };
    event.need_rescan()
        || changes
            && event.paths.iter().any(|path| !path.starts_with(index_folder) && is_finished(path))
}

/// Returns whether a file is finished. Browsers and editors use other names while they write a
/// file. A `-shm` file never counts, because reading a database changes that file.
fn is_finished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    !name.ends_with("-shm") && !UNFINISHED_SUFFIXES.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, DataChange, RenameMode};

    use super::*;

    #[test]
    fn what_matters() {
        let index_folder = Path::new("/home/index");
        let create = EventKind::Create(CreateKind::File);
        let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        for (kind, path, expected) in [
            (create, "/home/db/chats.db", true),
            (write, "/home/db/chats.db-wal", true),
            (write, "/home/db/chats.db-shm", false),
            (EventKind::Access(AccessKind::Any), "/home/db/chats.db", false),
            (write, "/home/db/chats.db.crdownload", false),
            (write, "/home/db/Chats.DB.PART", false),
            (create, "/home/db/chats.db~", false),
            (create, "/home/index/chats/current", false),
            (EventKind::Modify(ModifyKind::Name(RenameMode::To)), "/home/db/chats.db", true),
        ] {
            let event = notify::Event::new(kind).add_path(path.into());
            assert_eq!(matters(&event, index_folder), expected, "{kind:?} {path}");
        }
        let download = notify::Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::Both)))
            .add_path("/home/db/chats.db.part".into())
            .add_path("/home/db/chats.db".into());
        assert!(matters(&download, index_folder));
        let missed = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert!(matters(&missed, index_folder));
    }
}
