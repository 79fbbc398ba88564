//! Small databases for the tests, and the files in their folders.
#![allow(dead_code, reason = "not every binary needs it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use verbatim_engine::{Config, Engine};

/// The schema of a canonical export.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE conversations (id TEXT PRIMARY KEY, create_time TEXT, update_time TEXT, title TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT, content TEXT,
        create_time TEXT, update_time TEXT, position INTEGER NOT NULL);
    CREATE INDEX messages_by_conversation ON messages (conversation_id);";

/// Returns a folder that is removed at the end of the test.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folders can be made")
}

/// Returns a temporary folder, and the path of a file in it. Creates no file.
pub(crate) fn folder_with(name: &str) -> (TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join(name);
    (folder, path)
}

/// Creates a database of one conversation. Its messages are one second apart.
pub(crate) fn database(path: &Path, texts: &[&str]) -> Connection {
    let connection = Connection::open(path).expect("a database can be made");
    connection.execute_batch(SCHEMA).expect("the schema is sound");
    connection
        .execute("INSERT INTO conversations VALUES ('conv-0001', '1', '1', 'Colours')", [])
        .expect("the first conversation");
    for text in texts {
        add(&connection, text);
    }
    connection
}

/// Adds a message to the conversation of [`database`].
pub(crate) fn add(connection: &Connection, text: &str) {
    connection
        .execute(
            "INSERT INTO messages SELECT 'msg-' || count(*), 'conv-0001', 'user', ?1, \
             1700000000 + count(*), NULL, count(*) FROM messages",
            [text],
        )
        .expect("a message");
}

/// Returns an engine for one database.
pub(crate) fn engine(path: &Path) -> Engine {
    Engine::new(Config { db: Some(path.to_owned().into()), ..Config::default() })
}

/// Returns every file in a folder with its bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let bytes = if path.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
            (path, bytes)
        })
        .collect()
}
