//! Recognises an export that was imported before, so that it need not be read again.
//!
//! The database stores a key for each export that it holds; see [`KnownExport`]. An export is recognised if its
//! path and its stamp are the same, and if the options, the conversations that are left out, the files of messages
//! that are stored and the version of the program are the same.
//!
//! An unchanged stamp normally means that a file has the same content. For a file that changed a moment
//! ago it does not, because a further change may leave the stamp the same. Such files are read again.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::{attachments::AttachmentStore, decisions::Decisions};
use verbatim_chats::db::header::Stamp;
use verbatim_chats::db::writer::{self, KnownExport};
use verbatim_chats::import::Branches;

/// The version of the results that imports give.
const VERSION: &str = concat!(env!("VERBATIM_VERSION"), " 6");

/// Minimum age of a file's last change for the stamp to be reliable. Some file systems round times to
/// two seconds, so that two changes within this time may have the same stamp.
const SETTLED: Duration = Duration::from_secs(3);

/// What must be the same for an unchanged export to give the same import.
pub(super) struct KnownImports {
    /// The hash of the options, to which keys add the export.
    options: Sha256,
}

impl KnownImports {
    pub(super) fn new(
        decisions: &Decisions,
        store: Option<&AttachmentStore>,
        branches: Branches,
    ) -> KnownImports {
        let files = store.map(|store| store.state().ok());
        let options = format!("{VERSION}\n{branches:?}\n{store:?}\n{files:?}\n{decisions:?}\n");
        KnownImports { options: Sha256::new_with_prefix(options) }
    }

    /// Returns an export with its key. The real path is part of the key, because the path of a transcript
    /// contains its project.
    pub(super) fn export(&self, path: &Path, stamp: &Stamp) -> KnownExport {
        let mut hash = self.options.clone();
        hash.update(format!("{:?} {stamp:?}", dunce::canonicalize(path).ok()));
        let key = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        KnownExport { path: path.to_owned(), key }
    }

    /// Records the exports of an import in the database, except those that changed meanwhile.
    pub(super) fn remember(
        &self,
        database: &Path,
        exports: &[(PathBuf, Stamp)],
    ) -> Result<(), writer::Error> {
        let mut known = Vec::new();
        for (path, stamp) in exports {
            if Stamp::from_path(path).is_ok_and(|now| now == *stamp) {
                known.push(self.export(path, stamp));
            }
        }
        if known.is_empty() { Ok(()) } else { writer::remember(database, &known) }
    }
}

/// Returns the stamp of an export, if it is a file and its stamp is reliable.
pub(super) fn settled_stamp(path: &Path) -> Option<Stamp> {
    let stamp = Stamp::from_path(path).ok().filter(|_| path.is_file())?;
    is_settled(&stamp, SystemTime::now()).then_some(stamp)
}

/// Returns whether any later change gives the file another stamp.
fn is_settled(stamp: &Stamp, now: SystemTime) -> bool {
    let (seconds, nanoseconds) = stamp.changed();
    let changed = match (u64::try_from(seconds), u32::try_from(nanoseconds)) {
        (Ok(seconds @ 1..), Ok(nanoseconds)) => {
            UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
        }
        // Systems that do not say when a file changed give 0.
        _ => stamp.modified,
    };
    changed.and_then(|changed| now.duration_since(changed).ok()).is_some_and(|age| age >= SETTLED)
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs, thread};

    use super::*;
    use crate::import::{ImportProgress, Report, Target, import_until};
    use verbatim_base::call::Call;

    /// Returns an export of Claude.ai, with one conversation for each pair of id and text.
    fn export(chats: &[(&str, &str)]) -> String {
        let chats: Vec<String> = chats
            .iter()
            .map(|(id, text)| {
                format!(
                    r#"{{"uuid": "{id}", "chat_messages": [{{"uuid": "m{id}", "text": "{text}"}}]}}"#
                )
            })
            .collect();
        format!("[{}]", chats.join(","))
    }

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            Place(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, chats: &[(&str, &str)]) {
            fs::write(self.path(name), export(chats)).unwrap();
        }

        /// Imports a file; returns the report, and whether the file was read.
        fn import_with(
            &self,
            name: &str,
            branches: Branches,
            decisions: &Decisions,
        ) -> (Report, bool) {
            let database = self.path("chats.db");
            let target = Target::database(&database, decisions);
            let read = Cell::new(0);
            let tell = |progress: ImportProgress| read.set(progress.source.done);
            let sources = [self.path(name)];
            let report = import_until(&sources, &target, branches, &Call::default(), &tell);
            (report.unwrap(), read.get() > 0)
        }

        fn import(&self, name: &str) -> (Report, bool) {
            self.import_with(name, Branches::Shown, &Decisions::default())
        }

        fn is_read(&self, name: &str) -> bool {
            self.import(name).1
        }

        /// Waits until the stamp of a file is reliable.
        fn settle(&self, name: &str) {
            while settled_stamp(&self.path(name)).is_none() {
                thread::sleep(Duration::from_millis(50));
            }
        }
    }

    #[test]
    fn an_unchanged_export_is_not_read_again() {
        let place = Place::new();
        place.write("a.json", &[("1", "red"), ("2", "green")]);
        assert!(place.is_read("a.json") && place.is_read("a.json"), "it changed a moment ago");
        place.settle("a.json");
        let (first, is_read) = place.import("a.json");
        assert!(is_read && first.unchanged == 0);
        let bytes = fs::read(place.path("chats.db")).unwrap();
        let (again, is_read) = place.import("a.json");
        assert!(!is_read && again.unchanged == 1 && again.unchanged_since.is_some());
        assert_eq!(again.changes, first.changes);
        assert_eq!((again.tally.conversations, again.tally.messages), (2, 2));
        assert_eq!(fs::read(place.path("chats.db")).unwrap(), bytes, "nothing is written");
        assert!(place.import_with("a.json", Branches::All, &Decisions::default()).1);
        fs::remove_file(place.path("chats.db")).unwrap();
        let (report, _) = place.import("a.json");
        assert_eq!(report.changes.new_conversations, 2);
        assert!(!place.is_read("a.json"), "it is known from the import that makes the database");
        // A file with the same size and modification time, but another content.
        let modified = Stamp::from_path(&place.path("a.json")).unwrap().modified.unwrap();
        place.write("a.json", &[("1", "tan"), ("2", "green")]);
        let file = fs::File::options().write(true).open(place.path("a.json")).unwrap();
        file.set_modified(modified).unwrap();
        let (report, is_read) = place.import("a.json");
        assert!(is_read && report.changes.updated_messages == 1, "{report:?}");
    }

    #[test]
    fn imports_of_other_chats_leave_it_known() {
        let place = Place::new();
        place.write("a.json", &[("1", "red"), ("2", "green")]);
        place.write("b.json", &[("3", "blue")]);
        place.write("c.json", &[("1", "yellow")]);
        place.write("d.json", &[("4", "one"), ("4", "two")]);
        fs::write(place.path("e.json"), export(&[("5", "tan")]).replace("}]}]", "}]}, 5]"))
            .unwrap();
        place.settle("e.json");
        place.import("a.json");
        place.import("b.json");
        assert!(!place.is_read("a.json") && !place.is_read("b.json"));
        place.import("c.json");
        assert!(!place.is_read("c.json"));
        let (report, is_read) = place.import("a.json");
        assert!(is_read && report.changes.updated_messages == 1, "{report:?}");
        assert!(place.is_read("c.json"), "the import before has replaced what it holds");
        // If an export has two versions of a conversation, only reading it shows which version stays.
        assert!(place.is_read("d.json") && place.is_read("d.json"));
        assert!(place.is_read("e.json") && place.is_read("e.json"), "it is damaged");
    }

    #[test]
    fn a_clock_that_is_wrong_makes_no_stamp_reliable() {
        let place = Place::new();
        place.write("a.json", &[("1", "red")]);
        let stamp = Stamp::from_path(&place.path("a.json")).unwrap();
        let now = SystemTime::now();
        assert!(is_settled(&stamp, now + SETTLED));
        assert!(!is_settled(&stamp, now) && !is_settled(&stamp, now - Duration::from_secs(3600)));
    }
}
