//! Recognises an import that was done already, so that its exports need not be read again.
//!
//! The database remembers the imports that it holds the result of; see [`FinishedImport`]. An import
//! is the same if the exports have the same content at the same paths, and if the options, what is
//! withheld and this program are the same.
//!
//! A file has the same content if nobody has written to it since, which its stamp says. The stamp of a
//! file that changed a moment ago does not: a later change may leave it the same. Such files are
//! remembered by a hash of their content.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    db::{
        header::Stamp,
        writer::{Error, FinishedImport, SourceCounts, Writer},
    },
    engine::{
        attachments::{AttachmentCounts, AttachmentStore},
        error,
        withheld::Withheld,
    },
    import::{Branches, Export},
};

/// The version of what an import makes of an export, and of what is remembered.
const VERSION: &str = concat!(env!("VERBATIM_VERSION"), " 3");

/// The age of a file's last change from which on a later change gives the file another stamp. File
/// systems round times, some of them to two seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// The start of a key that was made from the contents of the exports, not from their stamps.
const BY_CONTENT: &str = "content ";

/// Bytes that are hashed at once.
const BLOCK: usize = 256 << 10;

/// An import that can be recognised later: all its exports are files, and can be read.
pub(super) struct KnownImport {
    /// The hash of the options, so far.
    options: Sha256,
    files: Vec<KnownFile>,
    /// Whether every file can be recognised by its stamp.
    is_settled: bool,
    /// What the database is to remember; empty before [`KnownImport::found_before`], and if an export
    /// could not be read there.
    key: String,
}

struct KnownFile {
    path: PathBuf,
    real: PathBuf,
    stamp: Stamp,
}

/// The result of an import, as the database keeps it.
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
    /// The counts of the files of messages.
    pub(super) attachments: Option<AttachmentCounts>,
    /// The state of their store before new lists were written; empty if messages have no files. So an import
    /// that brings files is not the last one that reads them.
    pub(super) store: String,
}

impl KnownImport {
    pub(super) fn of(
        exports: &[(PathBuf, Export)],
        withheld: &Withheld,
        store: Option<&AttachmentStore>,
        branches: Branches,
    ) -> Option<KnownImport> {
        let now = SystemTime::now();
        let options = format!("{VERSION}\n{branches:?}\n{store:?}\n{withheld:?}\n");
        let file = |(path, _): &(PathBuf, Export)| {
            let stamp = Stamp::of(&fs::metadata(path).ok().filter(fs::Metadata::is_file)?);
            // The path of a transcript tells its project.
            Some(KnownFile { path: path.clone(), real: path.canonicalize().ok()?, stamp })
        };
        let files: Vec<KnownFile> = exports.iter().map(file).collect::<Option<_>>()?;
        let is_settled = files.iter().all(|file| is_settled(&file.stamp, now));
        let options = Sha256::new_with_prefix(options);
        Some(KnownImport { options, files, is_settled, key: String::new() })
    }

    /// Returns what the same import found, if the database and the store of files hold its result. Reads
    /// the exports only if their stamps do not tell whether they are the same.
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
        let mut found = writer.found_before(&self.key);
        if !self.is_settled || found.is_none() && writer.any_found_before(BY_CONTENT) {
            let key = self.key_of(|file, hash| hash_file(&file.path, hash))?;
            let key = format!("{BY_CONTENT}{key}");
            found = writer.found_before(&key);
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

    /// Counts everything in the exports as unchanged.
    pub(super) fn take(&self, found: &FoundBefore, writer: &mut Writer) -> Result<(), Error> {
        for (file, counts) in self.files.iter().zip(&found.sources) {
            writer.take_as_unchanged(*counts);
            writer.note(&file.path, true, *counts)?;
        }
        Ok(())
    }

    /// Returns what the database is to remember of this import, which read everything; `None` if an
    /// export changed meanwhile.
    pub(super) fn finished(
        self,
        found: FoundBefore,
        store: Option<&AttachmentStore>,
    ) -> Option<FinishedImport> {
        let is_same = |file: &KnownFile| {
            fs::metadata(&file.path).is_ok_and(|now| Stamp::of(&now) == file.stamp)
        };
        if self.key.is_empty() {
            return None;
        }
        let store = state(found.attachments.as_ref(), store).ok()?;
        let found = serde_json::to_string(&FoundBefore { store, ..found }).ok()?;
        self.files.iter().all(is_same).then_some(FinishedImport { key: self.key, found })
    }
}

/// Returns the state of the store of files, if messages have any.
fn state(
    counts: Option<&AttachmentCounts>,
    store: Option<&AttachmentStore>,
) -> Result<String, error::Error> {
    let has_files = counts.is_some_and(AttachmentCounts::any);
    store.filter(|_| has_files).map_or(Ok(String::new()), AttachmentStore::state)
}

/// Returns whether each change from now on gives the file another stamp.
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
    use std::{cell::Cell, thread};

    use super::*;
    use crate::{
        db::TestConnection,
        engine::import::{ImportProgress, Report, Target, import_until},
        model::Stop,
    };

    /// Returns an export of Claude.ai's: a conversation with each id, which says each text.
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
            withheld: &Withheld,
        ) -> (Report, bool) {
            let database = self.path("chats.db");
            let target = Target::database(&database, withheld);
            let read = Cell::new(0);
            let tell = |progress: ImportProgress| read.set(progress.source.done);
            let sources = [self.path(name)];
            let report = import_until(&sources, &target, branches, &Stop::never(), &tell);
            (report.unwrap(), read.get() > 0)
        }

        fn import(&self, name: &str) -> (Report, bool) {
            self.import_with(name, Branches::Shown, &Withheld::default())
        }

        fn is_read(&self, name: &str) -> bool {
            self.import(name).1
        }

        fn execute(&self, sql: &str) {
            TestConnection::open(self.path("chats.db")).unwrap().execute_batch(sql).unwrap();
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
        // An import that reads the export has the same answer.
        place.execute("DELETE FROM verbatim_meta WHERE name = 'imports'");
        let (whole, is_read) = place.import("a.json");
        assert!(is_read);
        assert_eq!(whole.changes, again.changes);
    }

    #[test]
    fn a_file_that_changed_long_ago_is_recognised_by_its_stamp() {
        let place = Place::new();
        place.write("a.json", &[("1", "red")]);
        assert!(place.is_read("a.json") && !place.is_read("a.json"), "by its content");
        let stamp = || Stamp::of(&fs::metadata(place.path("a.json")).unwrap());
        while !is_settled(&stamp(), SystemTime::now()) {
            thread::sleep(Duration::from_millis(50));
        }
        assert!(!place.is_read("a.json"), "by its content");
        place.execute("UPDATE messages SET content = 'blue'");
        assert!(place.is_read("a.json"));
        let keys = || -> String {
            let database = TestConnection::open(place.path("chats.db")).unwrap();
            let sql = "SELECT value FROM verbatim_meta WHERE name = 'imports'";
            database.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert!(!keys().contains(BY_CONTENT), "{}", keys());
        assert!(!place.is_read("a.json"), "by its stamp");
        // The same size and time, and another content.
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
        // A copy from before has the same chats, and knows it.
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
        let other = TestConnection::open(place.path("chats.db")).unwrap();
        let (database, withheld) = (place.path("chats.db"), Withheld::default());
        let target = Target::database(&database, &withheld);
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
        assert!(place.import_with("a.json", Branches::All, &Withheld::default()).1);
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
        // Two versions in one export: which of them stays is for the import to say.
        place.write("d.json", &[("4", "one"), ("4", "two")]);
        assert!(place.is_read("d.json") && place.is_read("d.json"));
    }
}
