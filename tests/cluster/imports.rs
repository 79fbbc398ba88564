//! Imports into a cluster. A search sees all of an import or nothing of it. Imports are merged as in a
//! database.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::Reader;
use verbatim_search::{Branches, ImportProgress};

use crate::nodes::{AllNodes, Nodes, nodes};
use crate::{hits, import, new_name, reader};

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
    // Only the current index and the previous index are kept.
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

/// The command line and the page show how many messages were copied.
#[test]
fn an_import_tells_how_far_it_is() {
    let Some(scene) = Scene::new() else { return };
    let path = database(scene.folder.path(), "a.db", &version(30, "red"));
    let target = scene.nodes.address(&scene.index);
    let last = Cell::new((0, 0));
    let note = |progress: ImportProgress| last.set((progress.done, progress.total));
    verbatim_engine::import::import(&[path], &target, Branches::Shown, &note).expect("an import");
    assert_eq!(last.get(), (30, 30));
}

#[test]
fn what_a_new_import_lacks_is_kept_behind_the_rest() {
    let Some(scene) = Scene::new() else { return };
    scene.import("a.db", &version(4, "red"));
    let mut later = version(6, "blue");
    later.remove(1);
    scene.import("b.db", &later);
    let reader = reader(scene.nodes, &scene.index);
    let messages = reader.read("c", false, &Call::default()).expect("an answer").expect("c");
    let read: Vec<(String, Option<i64>)> = (0..messages.turns())
        .map(|turn| messages.message(turn))
        .map(|hit| (hit.content.into_owned(), hit.position))
        .collect();
    let expected = ["blue 0", "blue 2", "blue 3", "blue 4", "blue 5", "red 1"];
    let expected: Vec<_> =
        expected.iter().map(|it| format!("the thing {it}")).zip((1..).map(Some)).collect();
    assert_eq!(read, expected);
}

/// Each of the two imports begins before there is an index. The one that ends first stays.
#[test]
fn two_first_imports_at_once_never_make_two_indexes() {
    let Some(scene) = Scene::new() else { return };
    let of = |name: &str, conversation: &str, word: &str| {
        let path = database(scene.folder.path(), name, &version(600, word));
        let connection = Connection::open(&path).expect("a database");
        let sql = format!(
            "UPDATE conversations SET id = '{conversation}';
             UPDATE messages SET conversation_id = '{conversation}'"
        );
        connection.execute_batch(&sql).expect("an update");
        path
    };
    let databases = [of("a.db", "a", "red"), of("b.db", "b", "blue")];
    let run = |path: &PathBuf| {
        let target = scene.nodes.address(&scene.index);
        verbatim_engine::import::import(
            std::slice::from_ref(path),
            &target,
            Branches::Shown,
            &|_| {},
        )
        .map_err(|error| error.to_string())
    };
    thread::scope(|scope| {
        let all: Vec<_> = databases.iter().map(|path| scope.spawn(|| run(path))).collect();
        for outcome in all.into_iter().map(|it| it.join().expect("no panic")) {
            assert!(outcome.as_ref().err().is_none_or(|why| why.contains("run this one again")));
        }
    });
    databases.iter().for_each(|path| drop(run(path).expect("an import")));
    let reader = reader(scene.nodes, &scene.index);
    assert_eq!((texts(&*reader, "red").len(), texts(&*reader, "blue").len()), (600, 600));
}

/// A cluster blocks its indexes for writing when a disk is nearly full.
#[test]
fn a_full_disk_is_said_at_once_and_leaves_nothing_behind() {
    let Some(scene) = Scene::new() else { return };
    scene.import("a.db", &version(5, "red"));
    let settings = format!("{}/_settings", scene.generation());
    let block = |value: Value| {
        let body = json!({ "index.blocks.read_only_allow_delete": value });
        scene.nodes.ask("PUT", &settings, Some(&body)).expect("an answer");
    };
    block(true.into());
    let path = database(scene.folder.path(), "b.db", &version(6, "blue"));
    let target = scene.nodes.address(&scene.index);
    let run = || {
        verbatim_engine::import::import(
            std::slice::from_ref(&path),
            &target,
            Branches::Shown,
            &|_| {},
        )
        .map_err(|error| error.to_string())
    };
    let why = run().expect_err("a full disk");
    assert!(why.contains("the disk of a node is nearly full"), "{why}");
    let kept = scene.nodes.ask("GET", &format!("{}-v*/_mapping", scene.index), None);
    assert_eq!(kept.expect("indexes").as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(texts(&*reader(scene.nodes, &scene.index), "red").len(), 5);
    block(Value::Null);
    run().expect("an import");
    assert_eq!(texts(&*reader(scene.nodes, &scene.index), "blue").len(), 6);
}

/// The number of conversations in the import that is killed, and of messages in each conversation.
const CONVERSATIONS: u64 = 300;
const MESSAGES_OF_EACH: u64 = 50;

/// Writes a database that takes several requests. The ids are long, as they are only stored.
fn large_database(folder: &Path) -> PathBuf {
    let path = folder.join("large.db");
    let connection = Connection::open(&path).expect("a database");
    let sql = "PRAGMA synchronous = OFF; BEGIN;
         CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
         CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
             content TEXT, create_time TEXT, position INTEGER);";
    connection.execute_batch(sql).expect("tables");
    for conversation in 0..CONVERSATIONS {
        let sql = "INSERT INTO conversations VALUES (?1, 'A title')";
        connection.execute(sql, [format!("c{conversation}")]).expect("a conversation");
        for position in 0..MESSAGES_OF_EACH {
            let id = format!("{conversation}-{position}-{}", "x".repeat(2_500));
            let sql = "INSERT INTO messages VALUES (?1, ?2, 'user', ?3, '1700000000', ?4)";
            let text = format!("thing {conversation} {position}");
            let row = params![id, format!("c{conversation}"), text, position as i64];
            connection.execute(sql, row).expect("a message");
        }
    }
    connection.execute_batch("COMMIT").expect("a commit");
    path
}

impl Scene {
    /// Starts an import in a process of its own.
    fn start(&self, database: &Path) -> Child {
        Command::new(env!("CARGO_BIN_EXE_verbatim"))
            .env_clear()
            .arg("import")
            .arg(database)
            .arg("--db")
            .arg(self.nodes.address(&self.index))
            .arg("--home")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts")
    }

    /// Returns how many documents were written so far; a document that was written twice counts twice.
    fn written(&self) -> u64 {
        let stats = self.nodes.ask("GET", &format!("{}-v*/_stats/indexing", self.index), None);
        let stats = stats.unwrap_or_default();
        stats["_all"]["primaries"]["indexing"]["index_total"].as_u64().unwrap_or(0)
    }

    /// Returns how many conversations are there.
    fn conversations(&self) -> u64 {
        let pattern = format!("{}-v*", self.index);
        self.nodes.ask("POST", &format!("{pattern}/_refresh"), None);
        let body = json!({ "query": { "term": { "kind": "c" } } });
        let count = self.nodes.ask("POST", &format!("{pattern}/_count"), Some(&body));
        count.as_ref().and_then(|it| it["count"].as_u64()).unwrap_or(0)
    }

    /// Waits until nothing is written any more.
    fn settle(&self) -> u64 {
        loop {
            let written = self.written();
            thread::sleep(Duration::from_millis(500));
            if self.written() == written {
                return written;
            }
        }
    }
}

#[test]
fn a_killed_import_goes_on_where_it_was() {
    let Some(scene) = Scene::new() else { return };
    let database = large_database(scene.folder.path());
    let mut first = scene.start(&database);
    let begun = Instant::now();
    while scene.conversations() == 0 && first.try_wait().expect("a state").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing is written");
        thread::sleep(Duration::from_millis(5));
    }
    first.kill().expect("it can be killed");
    let status = first.wait().expect("its end");
    assert!(!status.success(), "it was done before it could be killed");
    let before = scene.settle();
    let kept = scene.conversations();
    assert!(kept < CONVERSATIONS, "{kept}");
    let alias = scene.nodes.ask("GET", &format!("{}/_mapping", scene.index), None);
    assert!(alias.is_none_or(|it: Value| it["status"] == 404), "half an import is seen");
    assert!(scene.start(&database).wait().expect("its end").success());
    let again = scene.written() - before;
    assert_eq!(again, (CONVERSATIONS - kept) * (MESSAGES_OF_EACH + 1), "{kept} were there");
    let found = texts(&*reader(scene.nodes, &scene.index), "thing").len() as u64;
    assert_eq!(found, CONVERSATIONS * MESSAGES_OF_EACH);
    let kept = scene.nodes.ask("GET", &format!("{}-v*/_mapping", scene.index), None);
    assert_eq!(kept.expect("indexes").as_object().map(serde_json::Map::len), Some(1));
}
