//! Which folders are watched, and which events are a reason to look.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use notify::{
    ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind,
    recommended_watcher,
};

/// Ends of names that files have while they are still being written: they count once renamed.
const UNFINISHED: &[&str] =
    &[".crdownload", ".part", ".partial", ".download", ".tmp", ".temp", ".swp", "~"];

/// Watches folders and calls out when something in one of them changes.
pub(super) struct FolderWatcher {
    watcher: Option<RecommendedWatcher>,
    /// The folders watched, and which one it was that had the name.
    on: BTreeMap<PathBuf, Mark>,
    /// Whether some folder is not watched.
    blind: bool,
    /// Problems that were told, and before the first turn the one with all of it.
    told: BTreeSet<String>,
    untold: Option<String>,
}

/// Tells a folder from another that took its place.
type Mark = (u64, Option<SystemTime>);

impl FolderWatcher {
    /// Returns eyes that call `wake` from another thread; what happens in `ours` is passed over.
    pub(super) fn new(ours: PathBuf, wake: impl Fn() + Send + 'static) -> FolderWatcher {
        let ours = fs::canonicalize(&ours).unwrap_or(ours);
        let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
            let matters = event.map_or(true, |event| matters(&event, &ours));
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
            on: BTreeMap::new(),
            blind: problem.is_some(),
            told: BTreeSet::new(),
            untold: problem,
        }
    }

    /// Whether looking now and then is all there is.
    pub(super) fn is_blind(&self) -> bool {
        self.blind
    }

    /// Watches these folders and no others. In place of one that is not there, the nearest above
    /// it is watched, until it comes.
    pub(super) fn turn(&mut self, folders: &[PathBuf], tell: &mut dyn FnMut(String)) {
        if let Some(problem) = self.untold.take() {
            tell(problem);
        }
        let Some(watcher) = &mut self.watcher else { return };
        let there = |folder: &Path| Some((fs::canonicalize(folder).ok()?, mark(folder)?));
        let wanted: BTreeMap<PathBuf, Mark> =
            folders.iter().filter_map(|folder| folder.ancestors().find_map(there)).collect();
        let gone: Vec<PathBuf> = self
            .on
            .iter()
            .filter(|(folder, mark)| wanted.get(*folder) != Some(mark))
            .map(|(folder, _)| folder.clone())
            .collect();
        for folder in gone {
            // One that was removed is not watched any more already.
            drop(watcher.unwatch(&folder));
            self.on.remove(&folder);
        }
        self.blind = false;
        for (folder, mark) in wanted {
            if self.on.contains_key(&folder) {
                continue;
            }
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => drop(self.on.insert(folder, mark)),
                // Removed between two calls; the next look finds what is there then.
                Err(error) if matches!(error.kind, ErrorKind::PathNotFound) => {}
                Err(error) => {
                    self.blind = true;
                    let problem = format!("{}: {}", folder.display(), explained(&error));
                    if self.told.insert(problem.clone()) {
                        tell(problem);
                    }
                }
            }
        }
    }
}

#[cfg(unix)]
fn mark(folder: &Path) -> Option<Mark> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    Some((metadata.ino(), metadata.created().ok()))
}

#[cfg(not(unix))]
fn mark(folder: &Path) -> Option<Mark> {
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

/// Whether an event is a reason to look. Reading is none, else looking would be.
fn matters(event: &notify::Event, ours: &Path) -> bool {
    let changes = match event.kind {
        EventKind::Any | EventKind::Other | EventKind::Access(_) => false,
        EventKind::Create(_) | EventKind::Remove(_) => true,
        EventKind::Modify(ModifyKind::Name(_)) => {
            return event.paths.iter().any(|path| !path.starts_with(ours));
        }
        EventKind::Modify(_) => true,
    };
    event.need_rescan()
        || changes && event.paths.iter().any(|path| !path.starts_with(ours) && is_finished(path))
}

/// Whether a file's name is not one that browsers and editors give to what they are still writing,
/// nor that of the memory which readers of a database share.
fn is_finished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    !name.ends_with("-shm") && !UNFINISHED.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, DataChange, RenameMode};

    use super::*;

    #[test]
    fn what_matters() {
        let ours = Path::new("/home/index");
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
            assert_eq!(matters(&event, ours), expected, "{kind:?} {path}");
        }
        let download = notify::Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::Both)))
            .add_path("/home/db/chats.db.part".into())
            .add_path("/home/db/chats.db".into());
        assert!(matters(&download, ours));
        let missed = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert!(matters(&missed, ours));
    }
}
