//! Commands on an index in a cluster, other than searches: reindexing, forgetting, listing, counting.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_base::model::Request;

use crate::nodes::{AllNodes, Nodes, nodes};
use crate::{hits, import, new_name, reader};

pub(crate) const CONVERSATIONS: usize = 12;
pub(crate) const TURNS: usize = 40;

/// A home, a database, and an index into which it was imported.
pub(crate) struct Scene {
    pub(crate) nodes: &'static Nodes,
    folder: TempDir,
    pub(crate) index: String,
    _all: Option<AllNodes>,
}

impl Scene {
    fn new() -> Option<Scene> {
        Some(Scene::of(nodes()?, Some(AllNodes::enter())))
    }

    /// Makes the index. No other test may kill nodes until the scene is dropped.
    pub(crate) fn of(nodes: &'static Nodes, all: Option<AllNodes>) -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { nodes, folder, index: new_name(), _all: all };
        let path = scene.database();
        let connection = Connection::open(&path).expect("a database");
        connection
            .execute_batch(
                "PRAGMA synchronous = OFF; BEGIN;
                 CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
                 CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
                     content TEXT, create_time TEXT, position INTEGER);",
            )
            .expect("tables");
        for conversation in 0..CONVERSATIONS {
            let id = format!("conversation-{conversation}");
            let sql = "INSERT INTO conversations VALUES (?1, ?2)";
            connection.execute(sql, params![id, format!("Talk {conversation}")]).expect("a row");
            for turn in 0..TURNS {
                let text = format!("the thing {turn} of wallaby{conversation}");
                let time = 1_700_000_000 + conversation * 86_400 + turn;
                let sql = "INSERT INTO messages VALUES (?1, ?2, 'user', ?3, ?4, ?5)";
                let message = format!("m{conversation}-{turn}");
                let values = params![message, id, text, time.to_string(), turn as i64];
                connection.execute(sql, values).expect("a message");
            }
        }
        connection.execute_batch("COMMIT").expect("a commit");
        import(nodes, &path, &scene.index);
        scene
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("chats.db")
    }

    /// Runs a command on a database or the index.
    pub(crate) fn run_on(&self, db: &Path, arguments: &[&str]) -> Output {
        let home = self.folder.path().join("home");
        std::fs::create_dir_all(&home).expect("folders can be made");
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", self.folder.path()).arg("--home").arg(home);
        command.arg("--db").arg(db).args(arguments).output().expect("the program")
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_on(&self.nodes.address(&self.index), arguments)
    }

    /// Does as `run` does, and returns what a successful command prints.
    fn text(&self, arguments: &[&str]) -> String {
        printed(&self.run(arguments))
    }

    /// Returns the names of the indexes behind the alias, or beside it.
    pub(crate) fn generations(&self, pattern: &str) -> Vec<String> {
        let found = self.nodes.ask("GET", &format!("{pattern}/_mapping"), None).expect("an answer");
        found.as_object().expect("indexes").keys().cloned().collect()
    }

    fn count(&self, text: &str) -> usize {
        let request = Request { text: text.to_owned(), ..Request::default() };
        hits(&*reader(self.nodes, &self.index), &request).0.len()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.nodes.remove(&self.index);
    }
}

pub(crate) fn printed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_index_is_written_anew_without_a_gap() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.generations(&scene.index);
    let current = scene.text(&["reindex"]);
    assert!(current.contains("up to date: 480 messages"), "{current}");
    assert_eq!(scene.generations(&scene.index), before);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let done = scene.text(&["reindex", "--full"]);
            is_done.store(true, Ordering::Relaxed);
            assert!(done.contains("480 messages"), "{done}");
        });
        while !is_done.load(Ordering::Relaxed) {
            assert_eq!(scene.count("the thing"), CONVERSATIONS * TURNS);
        }
    });
    assert_ne!(scene.generations(&scene.index), before);
    assert_eq!(scene.count("wallaby7"), TURNS);
    // Another import recognises what was imported before.
    let rebuilt = scene.generations(&scene.index);
    import(scene.nodes, &scene.database(), &scene.index);
    assert_eq!(scene.generations(&scene.index), rebuilt);
}

#[test]
fn an_index_of_an_earlier_version_is_written_anew() {
    let Some(scene) = Scene::new() else { return };
    let name = scene.generations(&scene.index).remove(0);
    let earlier = json!({ "format": 1, "import": "i", "base": "" });
    let mapping = json!({ "_meta": { "verbatim": earlier } });
    scene.nodes.ask("PUT", &format!("{name}/_mapping"), Some(&mapping)).expect("an answer");
    let refused = scene.run(&["search", "wallaby3"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("earlier version"), "{said}");
    scene.text(&["reindex"]);
    assert_eq!(scene.count("wallaby3"), TURNS);
}

#[test]
fn a_forgotten_conversation_is_gone_for_good() {
    let Some(scene) = Scene::new() else { return };
    // A second index behind the alias, so that there is an older one.
    scene.text(&["reindex", "--full"]);
    let said = scene.text(&["forget", "--yes", "conversation-3"]);
    assert!(said.contains("1 conversation forgotten, 40 messages"), "{said}");
    assert_eq!((scene.count("wallaby3"), scene.count("the thing")), (0, 11 * TURNS));
    let left = scene.generations(&format!("{}-v*", scene.index));
    assert_eq!(left, scene.generations(&scene.index), "the states before have the text");
    let path = format!("{}/_stats/docs", scene.index);
    let stats: Value = scene.nodes.ask("GET", &path, None).expect("an answer");
    assert_eq!(stats["_all"]["total"]["docs"]["deleted"], 0, "{stats}");
    let path = scene.database().display().to_string();
    let said = printed(&scene.run(&["import", &path]));
    assert!(said.contains("left out: 1 conversation that you forgot; "), "{said}");
    assert_eq!(scene.count("wallaby3"), 0);
    // After the undo, an import may bring the conversation back.
    scene.text(&["forget", "--undo", "conversation-3"]);
    scene.text(&["import", &path]);
    assert_eq!(scene.count("wallaby3"), TURNS);
}

/// Every command that reads gives the same output as for the imported database.
#[test]
fn commands_print_what_they_print_for_a_file() {
    let Some(scene) = Scene::new() else { return };
    let (path, address) = (scene.database(), scene.nodes.address(&scene.index));
    printed(&scene.run_on(&path, &["reindex"]));
    let text = |db: &Path, arguments: &[&str]| {
        printed(&scene.run_on(db, arguments)).replace(&db.display().to_string(), "DB")
    };
    for arguments in [
        &["list", "--json"][..],
        &["list", "--limit", "3"],
        &["show", "conversation-5"],
        &["show", "conversation-5", "--json"],
        &["stats"],
        &["search", "thing 7", "--json"],
    ] {
        let expected = text(&path, arguments);
        assert!(!expected.is_empty());
        assert_eq!(text(&address, arguments), expected, "{arguments:?}");
    }
    let files = |db: &Path, name: &str| {
        let folder = scene.folder.path().join(name);
        let to = folder.display().to_string();
        printed(&scene.run_on(db, &["export", &to]));
        let mut files: Vec<(String, String)> = std::fs::read_dir(folder.join("2023"))
            .expect("a folder")
            .map(|entry| entry.expect("a file").path())
            .map(|path| {
                let text = std::fs::read_to_string(&path).expect("a text");
                let text = text.replace(&db.display().to_string(), "DB");
                (path.file_name().expect("a name").to_string_lossy().into_owned(), text)
            })
            .collect();
        files.sort();
        files
    };
    let expected = files(&path, "of-file");
    assert_eq!(expected.len(), CONVERSATIONS);
    assert_eq!(files(&address, "of-cluster"), expected);
}
