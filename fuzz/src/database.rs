//! A database of another program whose file or log was changed: an answer or an error, and nothing is
//! written to it.
//!
//! Input: a byte that chooses the file, then five bytes per change: four choose a place, one the kind.

use std::{
    fs::{self, File},
    ops::ControlFlow,
    path::Path,
    time::UNIX_EPOCH,
};

use rusqlite::Connection;
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::{Config, Engine, Scope};

thread_local! {
    static ORIGINAL: (Vec<u8>, Vec<u8>) = original();
}

/// Returns a database in WAL mode, and its log.
fn original() -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chats.db");
    let connection = Connection::open(&path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL;
             CREATE TABLE conversations (id TEXT PRIMARY KEY, create_time TEXT, update_time TEXT, title TEXT);
             CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT,
                 content TEXT, create_time TEXT, update_time TEXT, position INTEGER NOT NULL);
             INSERT INTO conversations VALUES ('c', '1', '1', 'The title');
             PRAGMA wal_checkpoint(TRUNCATE);
             INSERT INTO messages VALUES ('m1', 'c', 'user', '[\"a part\"]', 1, NULL, 1);
             INSERT INTO messages VALUES ('m2', 'c', 'user', printf('%.9000c', 'x'), 2, NULL, 2);",
        )
        .expect("messages");
    let log = path.with_extension("db-wal");
    (fs::read(&path).expect("the database"), fs::read(log).expect("the log"))
}

fn change(bytes: &mut Vec<u8>, changes: &[u8]) {
    for change in changes.chunks_exact(5).take(16) {
        let at = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize;
        let at = at % (bytes.len() + 1);
        match change[4] {
            0 => bytes.truncate(at),
            mask if at < bytes.len() => bytes[at] ^= mask,
            _ => {}
        }
    }
}

/// Writes a file as if long ago: a reader waits for what was written a moment ago.
fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
    let file = File::options().write(true).open(path).expect("the file");
    file.set_modified(UNIX_EPOCH).expect("its time");
}

fn ask(path: &Path) {
    let engine = Engine::new(Config {
        db: Some(path.to_owned().into()),
        home: path.with_extension("home"),
        ..Config::default()
    });
    let call = Call::default();
    let request = Request { text: "part".to_owned(), ..Request::default() };
    drop(engine.exact(&request, &call, &mut |_| ControlFlow::Continue(())));
    drop(engine.list(&Scope::default(), 0..10, &call));
}

pub(super) fn run(data: &[u8]) {
    let Some((file, changes)) = data.split_first() else { return };
    ORIGINAL.with(|(database, log)| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chats.db");
        let (mut database, mut log) = (database.clone(), log.clone());
        change(if file & 1 == 0 { &mut database } else { &mut log }, changes);
        write(&path, &database);
        write(&path.with_extension("db-wal"), &log);
        ask(&path);
        assert_eq!(fs::read(&path).expect("the database"), database);
        assert_eq!(fs::read(path.with_extension("db-wal")).expect("the log"), log);
    });
}
