//! Databases of earlier versions: they are migrated, and nothing is lost.

use std::{fs, path::Path};

use rusqlite::Connection;
use serde_json::{Value, json};
use verbatim_chats::import::Branches;
use verbatim_engine::{Config, Engine, import};

use crate::{calls::call, corpus::folder_with};

/// The tables of version 1, which has none of transcripts.
const TABLES: &str = "
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, create_time TEXT, update_time TEXT, title TEXT
);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT, content TEXT,
    create_time TEXT, update_time TEXT, position INTEGER NOT NULL,
    FOREIGN KEY (conversation_id) REFERENCES conversations(id)
);
CREATE INDEX idx_messages_conversation_id ON messages(conversation_id);
CREATE TABLE verbatim_meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE verbatim_conversations (
    conversation_id TEXT PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE,
    source TEXT NOT NULL, model TEXT, link TEXT, archived INTEGER NOT NULL, starred INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE verbatim_messages (
    message_id TEXT PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE, export_id TEXT, model TEXT
) WITHOUT ROWID;
CREATE TABLE verbatim_attachments (
    message_id TEXT NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    number INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (message_id, number)
) WITHOUT ROWID;
CREATE TABLE verbatim_imports (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, path TEXT NOT NULL, conversations INTEGER NOT NULL,
    messages INTEGER NOT NULL, new_conversations INTEGER NOT NULL, new_messages INTEGER NOT NULL,
    updated_conversations INTEGER NOT NULL, updated_messages INTEGER NOT NULL, skipped INTEGER NOT NULL
);
INSERT INTO verbatim_meta VALUES ('schema', 1);
INSERT INTO conversations VALUES ('t-1', '1700000000', '1700000060.5', 'An old thread');
INSERT INTO messages VALUES
    ('t-1/0', 't-1', 'user', 'Which lantern is the oldest?', '1700000000', NULL, 0),
    ('t-1/1', 't-1', 'assistant', 'The brass one.', '1700000060.5', NULL, 1);
";

const THREADS: &str = "
CREATE TABLE verbatim_threads (
    conversation_id TEXT PRIMARY KEY REFERENCES conversations(id), user_id TEXT NOT NULL,
    platform TEXT, session_key TEXT UNIQUE, next INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX verbatim_threads_by_user ON verbatim_threads (user_id);
INSERT INTO verbatim_meta VALUES ('threads', 1);
INSERT INTO verbatim_threads VALUES ('t-1', 'anna', 'desktop', 'lanterns', 2);
";

fn write(path: &Path, parts: &[&str]) {
    let connection = Connection::open(path).unwrap();
    for part in parts {
        connection.execute_batch(part).unwrap();
    }
}

/// Returns the version of the tables, and whether the tables of version 2 exist.
fn version(path: &Path) -> (i64, bool) {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT value FROM verbatim_meta WHERE name = 'schema'";
    let version = connection.query_one(sql, [], |row| row.get(0)).unwrap();
    let transcripts = connection.table_exists(None, "verbatim_transcripts").unwrap();
    (version, transcripts)
}

fn manage(engine: &Engine, arguments: Value) -> Value {
    let answer = call(engine, "manage_conversation", arguments);
    assert_eq!(answer.log, None);
    serde_json::from_str(&answer.text).unwrap()
}

#[test]
fn threads_of_version_1() {
    let (home, path) = folder_with("threads.db");
    write(&path, &[TABLES, THREADS]);
    let engine = Engine::new(Config { home: home.path().to_owned(), ..Config::default() });
    // Read before anything is written.
    let list = call(&engine, "query_conversations", json!({"mode": "list"}));
    assert!(list.text.contains("An old thread"), "{}", list.text);
    let resume = manage(&engine, json!({"action": "resume", "thread_id": "t-1"}));
    let data = &resume["data"];
    assert_eq!(
        (&data["topic"], &data["message_count"], &data["last_message_at"]),
        (&json!("An old thread"), &json!(2), &json!("2023-11-14T22:14:20.500Z"))
    );
    assert_eq!(version(&path), (3, true));
    let id = &data["continuation_id"];
    let turn =
        json!({"action": "continue", "continuation_id": id, "query": "And the newest lantern?"});
    assert_eq!(manage(&engine, turn)["data"]["message_count"], 3);
    let history = manage(&engine, json!({"action": "history", "thread_id": "t-1"}));
    let contents: Vec<_> =
        history["data"]["messages"].as_array().unwrap().iter().map(|it| &it["content"]).collect();
    assert_eq!(
        contents,
        ["Which lantern is the oldest?", "The brass one.", "And the newest lantern?"]
    );
    let usage = manage(&engine, json!({"action": "analytics"}));
    assert_eq!(usage["data"]["threads_by_user"], json!({"anna": 1}));
    let found = call(&engine, "search", json!({"query": "brass one", "mode": "text"}));
    assert!(found.text.contains("An old thread"), "{}", found.text);
    let keyed = json!({"mode": "get", "sessionKey": "lanterns"});
    assert!(call(&engine, "query_conversations", keyed).text.contains("The brass one."));
}

#[test]
fn tables_of_version_1_without_threads() {
    let (home, path) = folder_with("threads.db");
    write(&path, &[TABLES]);
    let engine = Engine::new(Config { home: home.path().to_owned(), ..Config::default() });
    let start = manage(&engine, json!({"action": "start", "topic": "new"}));
    assert_eq!(start["success"], true, "{start}");
    assert_eq!(version(&path), (3, true));
    let found = call(&engine, "search", json!({"query": "brass one", "mode": "text"}));
    assert!(found.text.contains("An old thread"), "{}", found.text);
}

#[test]
fn threads_of_a_later_version_are_left_alone() {
    for later in ["schema", "threads"] {
        let (home, path) = folder_with("threads.db");
        write(&path, &[TABLES, THREADS]);
        let connection = Connection::open(&path).unwrap();
        connection.execute("UPDATE verbatim_meta SET value = 99 WHERE name = ?1", [later]).unwrap();
        let engine = Engine::new(Config { home: home.path().to_owned(), ..Config::default() });
        let start = manage(&engine, json!({"action": "start"}));
        assert!(start["error"].as_str().unwrap().contains("later version"), "{start}");
        let count = |sql: &str| connection.query_one(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM conversations"), 1);
        assert!(!version(&path).1, "nothing is made in it");
    }
}

#[test]
fn an_import_into_version_1() {
    let (home, path) = folder_with("chats.db");
    write(&path, &[TABLES]);
    let transcript = home.path().join("s.jsonl");
    fs::write(&transcript, crate::transcripts::line(1, "user", "a new question")).unwrap();
    import::import(&[transcript], &path, Branches::Shown, &|_| {}).unwrap();
    assert_eq!(version(&path), (3, true));
    let connection = Connection::open(&path).unwrap();
    let count = |sql: &str| connection.query_one(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM messages"), 3);
    assert_eq!(count("SELECT count(*) FROM verbatim_transcripts"), 1);
}
