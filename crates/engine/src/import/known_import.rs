//! Recognises an import that was done before, so that its exports need not be read again.
//!
//! The database stores the result of finished imports; see [`FinishedImport`]. An import is recognised
//! if its exports have the same contents and paths, and if the options, the conversations that are left out and
//! the version of the program are the same.
//!
//! An unchanged stamp normally means that a file has the same content. For a file that changed a moment
//! ago it does not, because a further change may leave the stamp the same. Such files are recognised by
//! a hash of their content.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    attachments::{AttachmentCounts, AttachmentStore},
    decisions::Decisions,
    error,
};
use verbatim_chats::{
    db::{
        header::Stamp,
        writer::{Error, FinishedImport, SourceCounts, Writer},
    },
    import::{Branches, Export},
};

/// The version of the results that imports give, and of their stored form.
const VERSION: &str = concat!(env!("VERBATIM_VERSION"), " 5");

/// Minimum age of a file's last change for the stamp to be reliable. Some file systems round times to
/// two seconds, so that two changes within this time may have the same stamp.
const SETTLED: Duration = Duration::from_secs(3);

/// The beginning of keys that are computed from the contents of exports instead of their stamps.
const BY_CONTENT: &str = "content ";

/// Size of the blocks in which files are hashed.
const BLOCK: usize = 256 << 10;

/// An import that can be recognised later: all its exports are files, and can be read.
pub(super) struct KnownImport {
    /// The hash of the options, to which keys add the files.
    options: Sha256,
    files: Vec<KnownFile>,
    /// Whether the stamps of all files are reliable.
    is_settled: bool,
    /// The key under which the database stores the result. Empty before [`KnownImport::found_before`], and
    /// if an export could not be read.
    key: String,
}

struct KnownFile {
    path: PathBuf,
    real: PathBuf,
    stamp: Stamp,
}

/// The result of an import, in the form that the database stores.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FoundBefore {
    pub(super) sources: Vec<SourceCounts>,
    #[serde(default)]
    pub(super) bare: u64,
    pub(super) empty: u64,
    pub(super) unknown: BTreeMap<String, u64>,
    pub(super) left_out: BTreeMap<String, u64>,
    pub(super) bytes: u64,
    pub(super) excluded: u64,
    pub(super) forgotten: u64,
    pub(super) attachments: Option<AttachmentCounts>,
    /// The state of the attachment store before this import wrote lists; empty if there are no files.
    /// So after an import that adds files, the next import reads the exports once more.
    pub(super) store: String,
}

impl KnownImport {
    pub(super) fn new(
        exports: &[(PathBuf, Export)],
        decisions: &Decisions,
        store: Option<&AttachmentStore>,
        branches: Branches,
    ) -> Option<KnownImport> {
        let now = SystemTime::now();
        let options = format!("{VERSION}\n{branches:?}\n{store:?}\n{decisions:?}\n");
        let file = |(path, _): &(PathBuf, Export)| {
            let stamp = path.is_file().then(|| Stamp::from_path(path).ok())??;
            // The path is part of the key, because the path of a transcript contains its project.
            Some(KnownFile { path: path.clone(), real: dunce::canonicalize(path).ok()?, stamp })
        };
        let files: Vec<KnownFile> = exports.iter().map(file).collect::<Option<_>>()?;
        let is_settled = files.iter().all(|file| is_settled(&file.stamp, now));
        let options = Sha256::new_with_prefix(options);
        Some(KnownImport { options, files, is_settled, key: String::new() })
    }

    /// Returns the result of the same import if the database and the attachment store still have it.
    /// Reads the exports only if the stamps do not show whether the exports are the same.
    pub(super) fn found_before(
        &mut self,
        writer: &Writer,
        store: Option<&AttachmentStore>,
    ) -> Option<FoundBefore> {
        if self.is_settled {
            self.key = self.key_of(|file, hash| {
                hash.update(format!("{:?}", file.stamp));
                Ok(())
            })?;
        }
        let mut found = writer.ledger.earlier_result(&self.key);
        if !self.is_settled || found.is_none() && writer.ledger.has_result(BY_CONTENT) {
            let key = self.key_of(|file, hash| hash_file(&file.path, hash))?;
            let key = format!("{BY_CONTENT}{key}");
            found = writer.ledger.earlier_result(&key);
            if !self.is_settled {
                self.key = key;
            }
        }
        let found: FoundBefore = serde_json::from_str(found?).ok()?;
        let is_kept = state(found.attachments.as_ref(), store).is_ok_and(|now| found.store == now);
        is_kept.then_some(found)
    }

    fn key_of(&self, add: impl Fn(&KnownFile, &mut Sha256) -> io::Result<()>) -> Option<String> {
        let mut hash = self.options.clone();
        for file in &self.files {
            let KnownFile { path, real, stamp } = file;
            hash.update(format!("{path:?} {real:?} {}\n", stamp.size));
            add(file, &mut hash).ok()?;
        }
        Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(super) fn count_as_unchanged(
        &self,
        found: &FoundBefore,
        writer: &mut Writer,
    ) -> Result<(), Error> {
        for (file, counts) in self.files.iter().zip(&found.sources) {
            writer.take_as_unchanged(*counts);
            writer.note(&file.path, true, *counts)?;
        }
        Ok(())
    }

    /// Returns the entry that the database stores about this import; `None` if an export changed during
    /// the import.
    pub(super) fn finished(
        self,
        found: FoundBefore,
        store: Option<&AttachmentStore>,
    ) -> Option<FinishedImport> {
        let is_same =
            |file: &KnownFile| Stamp::from_path(&file.path).is_ok_and(|now| now == file.stamp);
        if self.key.is_empty() {
            return None;
        }
        let store = state(found.attachments.as_ref(), store).ok()?;
        let found = serde_json::to_string(&FoundBefore { store, ..found }).ok()?;
        self.files.iter().all(is_same).then_some(FinishedImport { key: self.key, found })
    }
}

/// Returns the state of the attachment store; empty if messages have no files.
fn state(
    counts: Option<&AttachmentCounts>,
    store: Option<&AttachmentStore>,
) -> Result<String, error::Error> {
    let has_files = counts.is_some_and(AttachmentCounts::any);
    store.filter(|_| has_files).map_or(Ok(String::new()), AttachmentStore::state)
}

/// Returns whether any later change gives the file another stamp.
fn is_settled(stamp: &Stamp, now: SystemTime) -> bool {
    let (seconds, nanoseconds) = stamp.changed();
    // Systems that do not say when a file changed give 0.
    let (Ok(seconds @ 1..), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds))
    else {
        return false;
    };
    let changed = UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds));
    changed.and_then(|changed| now.duration_since(changed).ok()).is_some_and(|age| age >= SETTLED)
}

fn hash_file(path: &Path, hash: &mut Sha256) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => hash.update(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs, thread};

    use super::*;
    use crate::import::{ImportProgress, Report, Target, import_until};
    use rusqlite::Connection;
    use verbatim_base::model::Stop;

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
            let report = import_until(&sources, &target, branches, &Stop::never(), &tell);
            (report.unwrap(), read.get() > 0)
        }

        fn import(&self, name: &str) -> (Report, bool) {
            self.import_with(name, Branches::Shown, &Decisions::default())
        }

        fn is_read(&self, name: &str) -> bool {
            self.import(name).1
        }

        fn execute(&self, sql: &str) {
            Connection::open(self.path("chats.db")).unwrap().execute_batch(sql).unwrap();
        }
    }

    #[test]
    fn an_unchanged_export_is_not_read_again() {
        let place = Place::new();
        place.write("a.json", &[("1", "red"), ("2", "green")]);
        let (first, is_read) = place.import("a.json");
        assert!(is_read && first.changes.new_conversations == 2);
        let bytes = fs::read(place.path("chats.db")).unwrap();
        let (again, is_read) = place.import("a.json");
        assert!(!is_read);
        assert_eq!((again.tally.conversations, again.tally.messages), (2, 2));
        assert_eq!(again.tally.bytes, first.tally.bytes);
        let unchanged = (again.changes.unchanged_conversations, again.changes.unchanged_messages);
        assert_eq!(unchanged, (2, 2));
        assert!(!again.changes.any());
        assert_eq!(fs::read(place.path("chats.db")).unwrap(), bytes, "nothing is written");
        // Reading the export gives the same result.
        place.execute("DELETE FROM verbatim_meta WHERE name = 'imports'");
        let (whole, is_read) = place.import("a.json");
        assert!(is_read);
        assert_eq!(whole.changes, again.changes);
    }

    // Other systems do not say when a file was changed.
    #[cfg(unix)]
    #[test]
    fn a_file_that_changed_long_ago_is_recognised_by_its_stamp() {
        let place = Place::new();
        place.write("a.json", &[("1", "red")]);
        assert!(place.is_read("a.json") && !place.is_read("a.json"), "by its content");
        let stamp = || Stamp::from_path(&place.path("a.json")).unwrap();
        while !is_settled(&stamp(), SystemTime::now()) {
            thread::sleep(Duration::from_millis(50));
        }
        assert!(!place.is_read("a.json"), "by its content");
        place.execute("UPDATE messages SET content = 'blue'");
        assert!(place.is_read("a.json"));
        let keys = || -> String {
            let database = Connection::open(place.path("chats.db")).unwrap();
            let sql = "SELECT value FROM verbatim_meta WHERE name = 'imports'";
            database.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert!(!keys().contains(BY_CONTENT), "{}", keys());
        assert!(!place.is_read("a.json"), "by its stamp");
        // A file with the same size and modification time, but another content.
        let modified = stamp().modified.unwrap();
        place.write("a.json", &[("1", "tan")]);
        let file = File::options().write(true).open(place.path("a.json")).unwrap();
        file.set_modified(modified).unwrap();
        assert!(place.is_read("a.json") && !place.is_read("a.json"));
        assert!(keys().contains(BY_CONTENT));
        let future = SystemTime::now() - Duration::from_secs(3600);
        assert!(!is_settled(&stamp(), future), "the clock is wrong");
    }

    #[test]
    fn whatever_changes_the_database_makes_it_read_again() {
        let place = Place::new();
        place.write("a.json", &[("1", "red"), ("2", "green")]);
        place.import("a.json");
        let before = fs::read(place.path("chats.db")).unwrap();
        place.execute("UPDATE messages SET content = 'blue' WHERE id = 'm1'");
        let (report, is_read) = place.import("a.json");
        assert!(is_read && report.changes.updated_messages == 1, "{report:?}");
        assert!(!place.is_read("a.json"));
        place.execute("PRAGMA journal_mode = WAL; DELETE FROM messages WHERE id = 'm2'");
        let (report, is_read) = place.import("a.json");
        assert!(is_read && report.changes.new_messages == 1, "{report:?}");
        assert!(!place.is_read("a.json"));
        // An older copy of the database contains its own list of finished imports.
        fs::write(place.path("chats.db"), before).unwrap();
        assert!(!place.is_read("a.json"));
        fs::remove_file(place.path("chats.db")).unwrap();
        let (report, _) = place.import("a.json");
        assert_eq!(report.changes.new_conversations, 2);
    }

    #[test]
    fn a_writer_during_the_import_is_noticed() {
        let place = Place::new();
        place.write("a.json", &[("1", "red")]);
        place.import("a.json");
        place.write("b.json", &[("2", "green")]);
        let other = Connection::open(place.path("chats.db")).unwrap();
        let (database, decisions) = (place.path("chats.db"), Decisions::default());
        let target = Target::database(&database, &decisions);
        let write = |_: ImportProgress| {
            other.execute_batch("UPDATE messages SET content = 'blue' WHERE id = 'm1'").ok();
        };
        let sources = [place.path("b.json")];
        import_until(&sources, &target, Branches::Shown, &Stop::never(), &write).unwrap();
        drop(other);
        let (report, is_read) = place.import("a.json");
        assert!(is_read && report.changes.updated_messages == 1, "{report:?}");
    }

    #[test]
    fn another_content_and_other_options_are_read() {
        let place = Place::new();
        place.write("a.json", &[("1", "red")]);
        let modified = fs::metadata(place.path("a.json")).unwrap().modified().unwrap();
        place.import("a.json");
        assert!(place.import_with("a.json", Branches::All, &Decisions::default()).1);
        place.write("a.json", &[("1", "tan")]);
        File::options()
            .write(true)
            .open(place.path("a.json"))
            .and_then(|file| file.set_modified(modified))
            .unwrap();
        let (report, is_read) = place.import("a.json");
        assert!(is_read && report.changes.updated_messages == 1, "{report:?}");
        assert!(!place.is_read("a.json"));
        fs::write(place.path("a.json"), export(&[("1", "tan")]).replace("}]}]", "}]}, 5]"))
            .unwrap();
        assert!(place.is_read("a.json") && place.is_read("a.json"), "it is damaged");
    }

    #[test]
    fn imports_of_other_chats_leave_it_known() {
        let place = Place::new();
        place.write("a.json", &[("1", "red"), ("2", "green")]);
        place.write("b.json", &[("3", "blue")]);
        place.write("c.json", &[("1", "yellow")]);
        place.import("a.json");
        place.import("b.json");
        assert!(!place.is_read("a.json") && !place.is_read("b.json"));
        place.import("c.json");
        assert!(!place.is_read("c.json"));
        let (report, is_read) = place.import("a.json");
        assert!(is_read && report.changes.updated_messages == 1, "{report:?}");
        // If an export has two versions of a conversation, only reading it shows which version stays.
        place.write("d.json", &[("4", "one"), ("4", "two")]);
        assert!(place.is_read("d.json") && place.is_read("d.json"));
    }
}
