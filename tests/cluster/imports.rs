//! Imports into a cluster: seen whole or not at all, merged as those of a file are.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rusqlite::{Connection, params};
use tempfile::TempDir;
use verbatim_search::{
    engine::Reader,
    model::{Request, Stop},
};

use crate::{
    hits, import, new_name,
    nodes::{AllNodes, Nodes, nodes},
    reader,
};

/// A version of a conversation: its messages by id with their texts.
fn database(folder: &Path, name: &str, messages: &[(String, String)]) -> PathBuf {
    let path = folder.join(name);
    let connection = Connection::open(&path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA synchronous = OFF; BEGIN;
             CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
             CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
                 content TEXT, create_time TEXT, position INTEGER);
             INSERT INTO conversations VALUES ('c', 'A title');",
        )
        .expect("tables");
    for (position, (id, text)) in messages.iter().enumerate() {
        let sql = "INSERT INTO messages VALUES (?1, 'c', 'user', ?2, '1700000000', ?3)";
        connection.execute(sql, params![id, text, position as i64 + 1]).expect("a message");
    }
    connection.execute_batch("COMMIT").expect("a commit");
    path
}

fn version(count: usize, word: &str) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("m{n}"), format!("the thing {word} {n}"))).collect()
}

fn texts(reader: &dyn Reader, text: &str) -> Vec<String> {
    let request = Request { text: text.to_owned(), ..Request::default() };
    let (found, _) = hits(reader, &request);
    let mut texts: Vec<String> = found.into_iter().map(|hit| hit.content.into_owned()).collect();
    texts.sort();
    texts
}

/// A folder, and the name of an index that is removed at the end.
struct Scene {
    nodes: &'static Nodes,
    folder: TempDir,
    index: String,
    _all: AllNodes,
}

impl Scene {
    fn new() -> Option<Scene> {
        let nodes = nodes()?;
        let folder = tempfile::tempdir().expect("a folder");
        Some(Scene { nodes, folder, index: new_name(), _all: AllNodes::enter() })
    }

    fn import(&self, name: &str, messages: &[(String, String)]) {
        import(self.nodes, &database(self.folder.path(), name, messages), &self.index);
    }

    fn generation(&self) -> String {
        let found = self.nodes.ask("GET", &format!("{}/_mapping", self.index), None);
        let found = found.expect("an index");
        found.as_object().expect("indexes").keys().next().expect("one").clone()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.nodes.remove(&self.index);
    }
}

#[test]
fn an_import_is_seen_whole_or_not_at_all() {
    const MESSAGES: usize = 700;
    let Some(scene) = Scene::new() else { return };
    scene.import("0.db", &version(MESSAGES, "state0"));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..4 {
                let messages = version(MESSAGES, &format!("state{number}"));
                scene.import(&format!("{number}.db"), &messages);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            let found = texts(&*reader(scene.nodes, &scene.index), "thing");
            assert_eq!(found.len(), MESSAGES);
            let state = |text: &String| text.split(' ').nth(2).map(str::to_owned);
            let first = state(&found[0]);
            assert!(found.iter().all(|text| state(text) == first), "a mixture of {first:?}");
        }
    });
    let found = texts(&*reader(scene.nodes, &scene.index), "state3");
    assert_eq!(found.len(), MESSAGES);
    // Only the index in use and the one before are kept.
    let kept = scene.nodes.ask("GET", &format!("{}-v*/_mapping", scene.index), None);
    assert_eq!(kept.expect("indexes").as_object().map(serde_json::Map::len), Some(2));
}

#[test]
fn the_same_import_changes_nothing() {
    let Some(scene) = Scene::new() else { return };
    scene.import("a.db", &version(5, "red"));
    let before = scene.generation();
    scene.import("b.db", &version(5, "red"));
    assert_eq!(scene.generation(), before);
}

#[test]
fn what_a_new_import_lacks_is_kept_behind_the_rest() {
    let Some(scene) = Scene::new() else { return };
    scene.import("a.db", &version(4, "red"));
    let mut later = version(6, "blue");
    later.remove(1);
    scene.import("b.db", &later);
    let reader = reader(scene.nodes, &scene.index);
    let messages = reader.read("c", false, &Stop::never()).expect("an answer").expect("c");
    let read: Vec<(String, Option<i64>)> = (0..messages.turns())
        .map(|turn| messages.message(turn))
        .map(|hit| (hit.content.into_owned(), hit.position))
        .collect();
    let expected = ["blue 0", "blue 2", "blue 3", "blue 4", "blue 5", "red 1"];
    let expected: Vec<_> =
        expected.iter().map(|it| format!("the thing {it}")).zip((1..).map(Some)).collect();
    assert_eq!(read, expected);
}
