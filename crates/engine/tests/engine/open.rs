//! Databases in every state: they are read correctly and not changed.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rusqlite::{Connection, config::DbConfig};
use verbatim_base::{call::Call, model::Request};
use verbatim_chats::db;
use verbatim_engine::Engine;

use crate::corpus::{add, database, engine, files, folder, folder_with};

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn contents(engine: &Engine) -> Result<Vec<String>, String> {
    let mut contents = Vec::new();
    engine
        .exact(&Request::default(), &Call::default(), &mut |hit| {
            contents.push(hit.content.into_owned());
            ControlFlow::Continue(())
        })
        .map_err(|error| error.to_string())?;
    Ok(contents)
}

/// Asserts that reading gives `expected`, newest first, and changes nothing in the folder.
#[track_caller]
fn reads(path: &Path, expected: &[&str]) {
    let home = path.parent().expect("in a folder");
    let before = files(home);
    for _ in 0..2 {
        assert_eq!(contents(&engine(path)).as_deref(), Ok(&expected.map_owned()[..]));
    }
    let after = files(home);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (name, bytes) in &before {
        // The index of a log is memory that readers share, and they write into it.
        if !name.to_string_lossy().ends_with("-shm") {
            assert!(bytes == &after[name], "{} changed", name.display());
        }
    }
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for [&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

/// Creates a database in WAL mode whose last message is only in the log.
fn logged(path: &Path) -> Connection {
    let connection = database(path, &["red"]);
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
    add(&connection, "green");
    connection
}

#[test]
fn rollback_mode() {
    let (_home, path) = folder_with("a.db");
    drop(database(&path, &["red", "green"]));
    reads(&path, &["green", "red"]);
}

#[test]
fn wal_mode_at_rest() {
    let (home, path) = folder_with("a.db");
    drop(logged(&path));
    assert_eq!(files(home.path()).len(), 1);
    reads(&path, &["green", "red"]);
    fs::write(beside(&path, "-wal"), "").unwrap();
    reads(&path, &["green", "red"]);
}

#[test]
fn wal_mode_with_its_writer_at_work() {
    let (home, path) = folder_with("a.db");
    let writer = logged(&path);
    reads(&path, &["green", "red"]);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    add(&writer, "not committed");
    reads(&path, &["green", "red"]);
    writer.execute_batch("COMMIT").unwrap();
    reads(&path, &["not committed", "green", "red"]);
    drop(writer);
    assert_eq!(files(home.path()).len(), 1, "the writer tidies up, since nobody reads any more");
    reads(&path, &["not committed", "green", "red"]);
}

#[test]
fn wal_mode_after_a_crash() {
    for suffixes in [&["-wal"][..], &["-wal", "-shm"]] {
        let (_home, path) = folder_with("a.db");
        let writer = logged(&path);
        let (_copy, copied) = folder_with("a.db");
        fs::copy(&path, &copied).unwrap();
        for suffix in suffixes {
            fs::copy(beside(&path, suffix), beside(&copied, suffix)).unwrap();
        }
        reads(&copied, &["green", "red"]);
        drop(writer);
    }
}

#[test]
fn a_log_that_holds_nothing_whole() {
    let (_home, path) = folder_with("a.db");
    let writer = logged(&path);
    writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    drop(writer);
    let log = fs::read(beside(&path, "-wal")).unwrap();
    fs::remove_file(beside(&path, "-shm")).unwrap();
    fs::write(beside(&path, "-wal"), &log[..100]).unwrap();
    reads(&path, &["red"]);
}

#[test]
fn a_journal_that_a_crash_left() {
    let (_home, path) = folder_with("a.db");
    let writer = database(&path, &["red"]);
    writer.execute_batch("PRAGMA cache_size = 1; PRAGMA synchronous = OFF; BEGIN").unwrap();
    for _ in 0..200 {
        add(&writer, &"half done ".repeat(500));
    }
    let (_copy, copied) = folder_with("a.db");
    fs::copy(&path, &copied).unwrap();
    fs::copy(beside(&path, "-journal"), beside(&copied, "-journal")).unwrap();
    assert!(fs::metadata(&copied).unwrap().len() > 500_000, "pages were spilled");
    reads(&copied, &["red"]);
}

#[cfg(unix)]
#[test]
fn files_and_folders_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let home = folder();
    for mode in ["DELETE", "WAL"] {
        let inner = home.path().join(mode);
        fs::create_dir(&inner).unwrap();
        let path = inner.join("a.db");
        database(&path, &["red"]).execute_batch(&format!("PRAGMA journal_mode = {mode}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o500)).unwrap();
        reads(&path, &["red"]);
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn names_that_urls_would_read() {
    use std::os::unix::ffi::OsStrExt;
    for name in [
        &b"a b.db"[..],
        b"a?mode=rw#b%41.db",
        b"caf\xe9.db",
        "日本語.db".as_bytes(),
        b"file:x&y=1.db",
    ] {
        let home = folder();
        let path = home.path().join(std::ffi::OsStr::from_bytes(name));
        drop(database(&path, &["red"]));
        reads(&path, &["red"]);
    }
    let (home, path) = folder_with("real.db");
    let writer = logged(&path);
    std::os::unix::fs::symlink(&path, home.path().join("link.db")).unwrap();
    reads(&home.path().join("link.db"), &["green", "red"]);
    drop(writer);
}

#[test]
fn what_is_no_database() {
    let (home, path) = folder_with("a.db");
    let error = || contents(&engine(&path)).expect_err("no database");
    assert_eq!(error(), format!("Database not found: {}", path.display()));
    fs::create_dir(&path).unwrap();
    assert_eq!(error(), format!("{}: it is a folder, not a file", path.display()));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "").unwrap();
    assert!(error().contains("no table \"messages\" (looked for messages(id,"), "{}", error());
    fs::write(&path, "words ".repeat(100)).unwrap();
    assert_eq!(error(), format!("{}: not an SQLite database", path.display()));
    fs::remove_file(&path).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE messages (id, conversation_id, content, role)").unwrap();
    assert!(error().contains("no column \"create_time\" in table \"messages\""), "{}", error());
    assert_eq!(files(home.path()).len(), 1);
}

#[test]
fn a_lock_is_waited_for_until_called_off() {
    let (_home, path) = folder_with("a.db");
    let writer = database(&path, &["red"]);
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let call = Call::default().within(Duration::from_millis(100));
    let begun = Instant::now();
    let answer = db::open(&path, &call);
    assert!(matches!(answer, Err(db::Error::Stopped)), "{answer:?}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    thread::scope(|scope| {
        let reader = scope.spawn(|| contents(&engine(&path)));
        thread::sleep(Duration::from_millis(100));
        writer.execute_batch("COMMIT").unwrap();
        assert_eq!(reader.join().unwrap(), Ok(vec!["red".to_owned()]));
    });
}

/// Not a test: the other process of the tests below.
#[test]
fn in_another_process() {
    let Ok(path) = env::var("VERBATIM_TEST_WRITE_TO") else { return };
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    let locked = connection.execute_batch("BEGIN EXCLUSIVE; COMMIT").is_err();
    assert!(!locked, "locked");
}

fn another_process_can_write(path: &Path) -> bool {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "open::in_another_process"])
        .env("VERBATIM_TEST_WRITE_TO", path)
        .output()
        .unwrap()
        .status
        .success()
}

#[test]
fn one_reader_does_not_drop_the_locks_of_another() {
    let (_home, path) = folder_with("a.db");
    drop(database(&path, &["red"]));
    assert!(another_process_can_write(&path));
    let reading = db::open(&path, &Call::default()).unwrap();
    assert!(!another_process_can_write(&path));
    assert!(contents(&engine(&path)).is_ok());
    assert!(!another_process_can_write(&path), "the second reader dropped the first one's lock");
    drop(reading);
    assert!(another_process_can_write(&path));
}

/// Runs a writer beside readers: the writer must never wait long, and readers must never see half a
/// transaction.
fn writes_beside_readers(mode: &str, reopen: bool) {
    let (_home, path) = folder_with("a.db");
    database(&path, &["red"]).execute_batch(&format!("PRAGMA journal_mode = {mode}")).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let seen = contents(&engine(&path)).unwrap().len();
                        assert!(seen >= last && seen % 2 == 1, "{seen} messages after {last}");
                        last = seen;
                    }
                    last
                })
            })
            .collect();
        let open = || {
            let writer = Connection::open(&path).unwrap();
            writer.busy_timeout(Duration::from_secs(2)).unwrap();
            writer
        };
        let mut writer = open();
        for _ in 0..60 {
            writer.execute_batch("BEGIN IMMEDIATE").unwrap();
            add(&writer, "green");
            add(&writer, "blue");
            writer.execute_batch("COMMIT").unwrap();
            if reopen {
                writer = open();
            }
            thread::sleep(Duration::from_millis(5));
        }
        drop(writer);
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 1, "readers saw the writer's work");
        }
    });
    assert_eq!(contents(&engine(&path)).unwrap().len(), 121);
}

#[test]
fn a_writer_in_rollback_mode_goes_on() {
    writes_beside_readers("DELETE", false);
}

#[test]
fn a_writer_in_wal_mode_goes_on() {
    writes_beside_readers("WAL", false);
}

#[test]
fn a_writer_that_comes_and_goes_in_wal_mode_goes_on() {
    writes_beside_readers("WAL", true);
}

#[test]
fn replaced_between_questions() {
    let (home, path) = folder_with("a.db");
    let engine = engine(&path);
    drop(database(&path, &["red"]));
    assert_eq!(contents(&engine), Ok(vec!["red".to_owned()]));
    let other = home.path().join("b.db");
    drop(logged(&other));
    fs::rename(&other, &path).unwrap();
    assert_eq!(contents(&engine), Ok(vec!["green".to_owned(), "red".to_owned()]));
    fs::remove_file(&path).unwrap();
    assert_eq!(contents(&engine), Err(format!("Database not found: {}", path.display())));
    drop(database(&path, &["blue"]));
    assert_eq!(contents(&engine), Ok(vec!["blue".to_owned()]));
}

/// Reads a database while `meddle` changes it during the first attempt; returns the rows.
fn reads_while(path: &Path, meddle: impl Fn()) -> Vec<String> {
    let mut attempts = 0;
    let hits = db::read(path, &Call::default(), |database| {
        attempts += 1;
        if attempts == 1 {
            meddle();
        }
        db::search(database, &Request::default())
    });
    assert_eq!(attempts, 2, "what was read in between counts for nothing");
    hits.unwrap().into_iter().map(|hit| hit.content.into_owned()).collect()
}

#[test]
fn what_was_read_during_a_write_is_read_again() {
    let (home, path) = folder_with("a.db");
    drop(logged(&path));
    let write = || add(&Connection::open(&path).unwrap(), "blue");
    assert_eq!(reads_while(&path, write), ["blue", "green", "red"], "in WAL mode, at rest");
    assert_eq!(files(home.path()).len(), 1);

    let copy = home.path().join("copy.db");
    let writer = logged(&home.path().join("other.db"));
    fs::copy(home.path().join("other.db"), &copy).unwrap();
    fs::copy(home.path().join("other.db-wal"), beside(&copy, "-wal")).unwrap();
    drop(writer);
    let write = || add(&Connection::open(&copy).unwrap(), "blue");
    assert_eq!(reads_while(&copy, write), ["blue", "green", "red"], "with a log alone");

    let overwritten = home.path().join("overwritten.db");
    drop(database(&overwritten, &["red"]));
    let other = home.path().join("white.db");
    drop(database(&other, &["white", "black"]));
    let write = || assert!(fs::copy(&other, &overwritten).unwrap() > 0);
    assert_eq!(reads_while(&overwritten, write), ["black", "white"], "overwritten in place");
}
