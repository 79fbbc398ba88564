//! Imports: exports in, rows out.

use std::fs::{self, File};
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, types::Value};
use serde_json::json;
use tempfile::TempDir;
use verbatim_chats::import::{Branches, Export, ImportTally};
use verbatim_engine::import::{self, Error, Report};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::exports::{chat, zip_of};
use crate::user::Said;

/// Imports into `target`; continues if one of the sources fails.
fn import(sources: &[&Path], target: &Path, branches: Branches) -> Result<Report, Error> {
    let sources: Vec<PathBuf> = sources.iter().map(|path| path.to_path_buf()).collect();
    import::import(&sources, target, branches, &|_| {})
}

/// Writes `content` as a file of `folder` and imports it into `DB` there.
fn import_text(folder: &Path, content: &[u8], branches: Branches) -> Result<Report, Error> {
    let source = folder.join("export.json");
    fs::write(&source, content).unwrap();
    import(&[&source], &folder.join("out.db"), branches)
}

/// Reads an export without a database; returns the ids of its conversations and the tally.
fn read(content: &[u8]) -> (Vec<String>, ImportTally) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("export.json");
    fs::write(&path, content).unwrap();
    let (mut ids, mut tally) = (Vec::new(), ImportTally::default());
    let mut export = Export::open(&path).unwrap();
    let _ = export.read::<Error>(Branches::All, &mut tally, &|_| {}, &mut |_, conversation| {
        ids.push(conversation.id);
        Ok(())
    });
    (ids, tally)
}

/// Returns all rows of a query, a line each.
fn rows(database: &Path, sql: &str) -> Vec<String> {
    let connection = Connection::open(database).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let mut lines = Vec::new();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let cells = (0..columns).map(|column| match row.get::<_, Value>(column).unwrap() {
            Value::Null => "-".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(text) => format!("{text:?}"),
            Value::Blob(_) => "blob".to_owned(),
        });
        lines.push(cells.collect::<Vec<_>>().join(" "));
    }
    lines
}

fn dump(database: &Path) -> String {
    let mut lines = rows(
        database,
        "SELECT c.id, c.title, c.create_time, c.update_time, v.source, v.model, v.link, v.archived, v.starred
         FROM conversations c LEFT JOIN verbatim_conversations v ON v.conversation_id = c.id ORDER BY c.rowid",
    );
    lines.push(String::new());
    lines.extend(rows(
        database,
        "SELECT m.conversation_id, m.position, m.id, m.role, m.create_time, v.model,
             (SELECT group_concat(name, ', ') FROM verbatim_attachments a WHERE a.message_id = m.id), m.content
         FROM messages m LEFT JOIN verbatim_messages v ON v.message_id = m.id
         JOIN conversations c ON c.id = m.conversation_id ORDER BY c.rowid, m.position, m.rowid",
    ));
    lines.join("\n") + "\n"
}

fn summary(report: &Report) -> String {
    let tally = &report.tally;
    let mut lines = vec![
        String::new(),
        format!("{} conversations, {} messages", tally.conversations, tally.messages),
        format!("empty {}, unknown {:?}", tally.empty, tally.unknown),
    ];
    for skipped in &tally.skipped {
        lines.push(format!("skipped {} {:?}: {}", skipped.ordinal, skipped.name, skipped.reason));
    }
    lines.extend(tally.damaged.iter().map(|damaged| format!("damaged {damaged}")));
    lines.join("\n") + "\n"
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/import").join(name)
}

#[test]
fn branches_are_known_by_what_they_follow() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("out.db");
    let branches = || {
        let sql = "SELECT message_id, follows FROM verbatim_branches ORDER BY message_id";
        rows(&database, sql)
    };
    let export = golden("chatgpt.json");
    import(&[&export], &database, Branches::All).unwrap();
    let expected = [r#""a1" "q""#, r#""f1" "a1""#];
    let paths = branches();
    assert!(expected.iter().all(|row| paths.contains(&(*row).to_owned())), "{paths:?}");
    // Imported branches stay when a later import reads only the shown branch.
    import(&[&export], &database, Branches::Shown).unwrap();
    assert_eq!(branches(), paths);
    // A branch that becomes the shown branch no longer counts as another branch.
    let text = fs::read_to_string(&export).unwrap();
    let text = text.replace(r#""current_node": "a2""#, r#""current_node": "f1""#);
    import_text(folder.path(), text.as_bytes(), Branches::All).unwrap();
    assert!(branches().contains(&r#""a2" "q""#.to_owned()), "{:?}", branches());
    assert!(!branches().iter().any(|row| expected.contains(&row.as_str())), "{:?}", branches());
    let claude = fs::read(golden("claude.json")).unwrap();
    import_text(folder.path(), &claude, Branches::All).unwrap();
    assert!(branches().contains(&r#""b2" "b1""#.to_owned()), "{:?}", branches());
}

/// Returns the golden exports, of every format.
fn exports() -> Vec<PathBuf> {
    let entries = fs::read_dir(golden("")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|it| it == "json" || it == "jsonl"))
        .collect();
    found.sort();
    found
}

#[test]
fn golden_exports() {
    for export in exports() {
        let name = export.file_stem().unwrap().to_str().unwrap();
        for (branches, kind) in [(Branches::Shown, "shown"), (Branches::All, "all")] {
            let folder = TempDir::new().unwrap();
            let database = folder.path().join("out.db");
            let report = import(&[&export], &database, branches).unwrap();
            let found = dump(&database) + &summary(&report);
            let expected = golden(&format!("{name}.{kind}.txt"));
            if std::env::var_os("UPDATE").is_some() {
                fs::write(&expected, &found).unwrap();
            }
            let expected_text = fs::read_to_string(&expected).unwrap_or_default();
            assert_eq!(found, expected_text, "{}; UPDATE=1 rewrites it", expected.display());
        }
    }
}

#[test]
fn canonical_schema() {
    let folder = TempDir::new().unwrap();
    import_text(folder.path(), chat("c", 1.0, &["hello"]).as_bytes(), Branches::Shown).unwrap();
    let database = folder.path().join("out.db");
    let columns = |table: &str| {
        rows(
            &database,
            &format!("SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table}')"),
        )
    };
    let expected = [
        r#""id" "TEXT" 0 1"#,
        r#""create_time" "TEXT" 0 0"#,
        r#""update_time" "TEXT" 0 0"#,
        r#""title" "TEXT" 0 0"#,
    ];
    assert_eq!(columns("conversations"), expected);
    let expected = [
        r#""id" "TEXT" 0 1"#,
        r#""conversation_id" "TEXT" 1 0"#,
        r#""role" "TEXT" 0 0"#,
        r#""content" "TEXT" 0 0"#,
        r#""create_time" "TEXT" 0 0"#,
        r#""update_time" "TEXT" 0 0"#,
        r#""position" "INTEGER" 1 0"#,
    ];
    assert_eq!(columns("messages"), expected);
    assert_eq!(
        rows(
            &database,
            "SELECT \"table\", \"from\", \"to\" FROM pragma_foreign_key_list('messages')"
        ),
        [r#""conversations" "conversation_id" "id""#]
    );
}

#[test]
fn cut_off_anywhere() {
    for export in exports() {
        let (name, whole) = (export.display(), fs::read(&export).unwrap());
        let (all, _) = read(&whole);
        let mut most = 0;
        for length in (0..whole.len()).step_by(37) {
            let (ids, tally) = read(&whole[..length]);
            assert!(ids.iter().all(|id| all.contains(id)), "{name} cut at {length}");
            assert!(ids.len() >= most || !tally.skipped.is_empty(), "{name} cut at {length}");
            most = most.max(ids.len());
        }
        assert!(most + 1 >= all.len(), "{name}: {most} of {}", all.len());
    }
}

/// Calls `visit` with copies of a value, each with one place replaced.
fn replace_each(root: &serde_json::Value, visit: &mut dyn FnMut(&serde_json::Value)) {
    fn pointers(value: &serde_json::Value, at: String, all: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    pointers(value, format!("{at}/{name}"), all);
                }
            }
            serde_json::Value::Array(items) => {
                for (number, value) in items.iter().enumerate() {
                    pointers(value, format!("{at}/{number}"), all);
                }
            }
            _ => {}
        }
        all.push(at);
    }
    let mut all = Vec::new();
    pointers(root, String::new(), &mut all);
    for pointer in all {
        for other in [
            json!(null),
            json!(-1.5e300),
            json!("text"),
            json!([]),
            json!({}),
            json!([[{"a": "b"}]]),
        ] {
            let mut copy = root.clone();
            *copy.pointer_mut(&pointer).unwrap() = other;
            visit(&copy);
        }
    }
}

#[test]
fn any_type_anywhere() {
    for name in ["chatgpt.json", "claude.json"] {
        let root: serde_json::Value =
            serde_json::from_slice(&fs::read(golden(name)).unwrap()).unwrap();
        let count = root.as_array().unwrap().len();
        for conversation in 0..count {
            // All in one file: if one cannot be read, the others are imported.
            let mut all = vec![json!({"id": "before", "title": "", "mapping": {}})];
            replace_each(&root[conversation], &mut |changed| all.push(changed.clone()));
            all.push(json!({"uuid": "after", "chat_messages": []}));
            let count = all.len() as u64;
            let (ids, tally) = read(serde_json::Value::Array(all).to_string().as_bytes());
            assert_eq!(ids.first().unwrap().as_str(), "before");
            assert_eq!(ids.last().unwrap().as_str(), "after");
            assert_eq!(ids.len() as u64 + tally.skipped_count, count);
        }
    }
}

#[test]
fn deep_and_huge() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let huge = "long ".repeat(4_000_000);
    for content in [
        deep("[", "]"),
        deep("{\"a\":", "}").replace(":}", ":1}"),
        json!({"content_type": "text", "parts": [huge]}).to_string(),
        format!(r#"{{"content_type":"text","parts":[{}]}}"#, deep("[", "]")),
        format!(r#"{{"content_type":"new","x":{}}}"#, deep("{\"text\":", "}").replace(":}", ":1}")),
    ] {
        let export = format!(
            r#"[{{"id":"a","title":"t","mapping":{{"n":{{"message":{{"id":"n","content":{content}}}}}}}}},
                {{"id":"b","title":"t","mapping":{{}},"x":{content}}}]"#
        );
        let (ids, _) = read(export.as_bytes());
        assert_eq!(ids, ["a", "b"]);
    }
    let (ids, _) = read(deep("[", "]").as_bytes());
    assert!(ids.is_empty());
    // A chain of a hundred thousand messages, with and without a current node.
    let nodes: Vec<String> = (0..100_000)
        .map(|n| {
            format!(r#""{n}":{{"parent":"{}","message":{{"id":"{n}","content":"x"}}}}"#, n + 1)
        })
        .collect();
    for current in ["\"0\"", "null"] {
        let chain =
            format!(r#"{{"id":"c","current_node":{current},"mapping":{{{}}}}}"#, nodes.join(","));
        let (ids, tally) = read(chain.as_bytes());
        assert_eq!((ids.len(), tally.messages), (1, 100_000));
    }
}

fn contents(folder: &Path) -> Vec<String> {
    rows(
        &folder.join("out.db"),
        "SELECT position, content FROM messages ORDER BY conversation_id, position",
    )
}

#[test]
fn again_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("out.db");
    let sources = exports();
    let sources: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
    for branches in [Branches::Shown, Branches::All] {
        let first = import(&sources, &database, branches).unwrap();
        assert!(first.changes.any());
        let before =
            (fs::read(&database).unwrap(), fs::metadata(&database).unwrap().modified().unwrap());
        assert_eq!(before.0[18..20], [1, 1], "left in WAL mode");
        let second = import(&sources, &database, branches).unwrap();
        assert!(!second.changes.any(), "{:?}", second.changes);
        assert_eq!(second.changes.unchanged_messages, first.tally.messages);
        let after =
            (fs::read(&database).unwrap(), fs::metadata(&database).unwrap().modified().unwrap());
        assert!(before == after, "the file was written to");
    }
    // Imported branches stay if a later import does not read them.
    assert!(!import(&sources, &database, Branches::Shown).unwrap().changes.any());
    let beside: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["out.db"]);
}

#[test]
fn newer_and_older_exports() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let put = |text: String| import_text(path, text.as_bytes(), Branches::Shown).unwrap().changes;
    put(chat("c", 10.0, &["one", "two"]));
    // The newer export has one changed message and one new message.
    let changes = put(chat("c", 20.0, &["one", "two, edited", "three"]));
    assert_eq!(changes.new_messages, 1);
    assert_eq!(changes.updated_messages, 1);
    assert_eq!(changes.unchanged_messages, 1);
    let newest = ["1 \"one\"", "2 \"two, edited\"", "3 \"three\""];
    assert_eq!(contents(path), newest);
    // An older export changes nothing.
    assert!(!put(chat("c", 10.0, &["one", "two"])).any());
    assert_eq!(contents(path), newest);
    // An older export has a message that is not in the database: it is added at the end.
    let changes = put(chat("c", 15.0, &["one", "two", "three", "four"]));
    assert_eq!((changes.new_messages, changes.updated_messages), (1, 0));
    assert_eq!(contents(path)[1..], ["2 \"two, edited\"", "3 \"three\"", "4 \"four\""]);
    // A newer export has fewer messages: nothing is deleted.
    put(chat("c", 30.0, &["one"]));
    assert_eq!(contents(path).len(), 4);
    let history =
        rows(&path.join("out.db"), "SELECT new_messages, updated_messages FROM verbatim_imports");
    assert_eq!(history, ["2 0", "1 1", "0 0", "1 0", "0 0"], "one that brings nothing too");
}

#[test]
fn another_branch_keeps_the_first() {
    let folder = TempDir::new().unwrap();
    let export = |current: &str, time: f64| {
        json!([{"id": "c", "update_time": time, "current_node": current, "mapping": {
            "q": {"message": {"id": "q", "content": "question"}},
            "a": {"parent": "q", "message": {"id": "a", "content": "first"}},
            "b": {"parent": "q", "message": {"id": "b", "content": "second"}}}}])
        .to_string()
    };
    import_text(folder.path(), export("a", 1.0).as_bytes(), Branches::Shown).unwrap();
    import_text(folder.path(), export("b", 2.0).as_bytes(), Branches::Shown).unwrap();
    assert_eq!(contents(folder.path()), ["1 \"question\"", "2 \"second\"", "3 \"first\""]);
}

#[test]
fn recurring_ids_lose_nothing() {
    let folder = TempDir::new().unwrap();
    let one = |conversation: &str, text: &str| {
        json!({"id": conversation, "title": conversation, "update_time": 1, "mapping":
            {"shared": {"message": {"id": "shared", "author": {"role": "user"}, "content": text}}}})
    };
    let export =
        json!([one("a", "in a"), one("b", "in b"), one("a", "in a"), one("c", "in c")]).to_string();
    import_text(folder.path(), export.as_bytes(), Branches::Shown).unwrap();
    let database = folder.path().join("out.db");
    let found = rows(
        &database,
        "SELECT id, conversation_id, content FROM messages ORDER BY conversation_id",
    );
    assert_eq!(
        found,
        [r#""shared" "a" "in a""#, r#""b/shared" "b" "in b""#, r#""c/shared" "c" "in c""#]
    );
    let reversed = json!([one("c", "in c"), one("b", "in b"), one("a", "in a")]).to_string();
    assert!(
        !import_text(folder.path(), reversed.as_bytes(), Branches::Shown).unwrap().changes.any()
    );
    // Another service's conversation of the same id is another conversation.
    let claude = json!([{"uuid": "a", "chat_messages": [{"uuid": "shared", "sender": "human", "text": "claude's"}]}]);
    import_text(folder.path(), claude.to_string().as_bytes(), Branches::Shown).unwrap();
    assert_eq!(
        rows(&database, "SELECT count(*), count(DISTINCT conversation_id) FROM messages"),
        ["4 4"]
    );
    assert!(
        !import_text(folder.path(), claude.to_string().as_bytes(), Branches::Shown)
            .unwrap()
            .changes
            .any()
    );
}

/// Two versions of one conversation in one export must not replace each other at every import.
#[test]
fn repeated_conversations_settle() {
    let folder = TempDir::new().unwrap();
    let twice = |times: [f64; 2]| {
        let mut all: Vec<serde_json::Value> = Vec::new();
        for (time, text) in times.into_iter().zip(["early", "late"]) {
            let one: Vec<serde_json::Value> =
                serde_json::from_str(&chat("c", time, &[text])).unwrap();
            all.extend(one);
        }
        serde_json::to_vec(&all).unwrap()
    };
    for (times, kept) in [([1.0, 1.0], "early"), ([1.0, 2.0], "late"), ([3.0, 2.0], "early")] {
        import_text(folder.path(), &twice(times), Branches::Shown).unwrap();
        assert_eq!(contents(folder.path()), [format!("1 {kept:?}")]);
        assert!(!import_text(folder.path(), &twice(times), Branches::Shown).unwrap().changes.any());
    }
}

#[test]
fn merges_into_another_programs_database() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("out.db");
    let connection = Connection::open(&database).unwrap();
    connection
        .execute_batch(
            r#"CREATE TABLE conversations (id TEXT PRIMARY KEY, create_time TEXT, update_time TEXT, title TEXT);
               CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT, content TEXT,
                   create_time TEXT, update_time TEXT, position INTEGER NOT NULL);
               INSERT INTO conversations VALUES ('c', '1.0', '10.0', 'c'), ('other', NULL, NULL, 'kept');
               INSERT INTO messages VALUES ('c-0', 'c', 'user', '["one"]', '1000.0', NULL, 1),
                   ('o-0', 'other', 'user', '["o"]', NULL, NULL, 1);"#,
        )
        .unwrap();
    drop(connection);
    let report =
        import_text(folder.path(), chat("c", 20.0, &["one", "two"]).as_bytes(), Branches::Shown)
            .unwrap();
    assert_eq!((report.changes.new_messages, report.changes.unchanged_messages), (1, 1));
    // Its contents are JSON lists, and stay JSON lists.
    assert_eq!(contents(folder.path()), [r#"1 "[\"one\"]""#, r#"2 "[\"two\"]""#, r#"1 "[\"o\"]""#]);
}

#[test]
fn foreign_targets_are_left_alone() {
    let folder = TempDir::new().unwrap();
    let export = chat("c", 1.0, &["hello"]);
    let target = folder.path().join("out.db");
    let other = |sql: &str| {
        let _ = fs::remove_file(&target);
        Connection::open(&target).unwrap().execute_batch(sql).unwrap();
    };
    let refused = |what: &str| {
        let before = fs::read(&target).unwrap();
        let error =
            import_text(folder.path(), export.as_bytes(), Branches::Shown).unwrap_err().to_string();
        assert!(error.starts_with(target.to_str().unwrap()) && error.contains(what), "{error}");
        assert_eq!(fs::read(&target).unwrap(), before);
    };
    fs::write(&target, "my notes, not to be lost").unwrap();
    refused("not an SQLite database");
    other("CREATE TABLE notes (text)");
    refused("no table \"conversations\"");
    other("CREATE TABLE conversations (id TEXT PRIMARY KEY, create_time, update_time, title);
           CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id, role, content, create_time, update_time)");
    refused("no column \"position\"");
    fs::remove_file(&target).unwrap();
    import_text(folder.path(), export.as_bytes(), Branches::Shown).unwrap();
    for version in [1, 99] {
        let connection = Connection::open(&target).unwrap();
        connection.execute("UPDATE verbatim_meta SET value = ?1", [version]).unwrap();
        drop(connection);
        refused("another version of verbatim");
    }
}

#[test]
fn no_export_makes_no_database() {
    let folder = TempDir::new().unwrap();
    for (content, what) in [
        ("", "it is empty"),
        ("hello", "it holds no conversation"),
        ("[]", "it holds no conversation"),
        ("{\"mapping\": {\"a\": \"b\"}}", "it holds no conversation"),
        ("[{\"uuid\": \"p\", \"name\": \"a project\", \"docs\": []}]", "it holds no conversation"),
        ("PK\u{3}\u{4}not a zip", "cannot read the zip"),
        ("[{\"title\": \"t\", \"mapping\": null}]", "holds no messages"),
        ("[{\"title\": \"t\", \"mapping\": {\"a\": ", "the file ends in the middle"),
    ] {
        let error = import_text(folder.path(), content.as_bytes(), Branches::Shown)
            .unwrap_err()
            .to_string();
        assert!(error.contains(what), "{content:?}: {error}");
        assert!(error.starts_with(folder.path().to_str().unwrap()), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the export alone");
    assert!(
        import(
            &[&folder.path().join("missing.zip")],
            &folder.path().join("out.db"),
            Branches::Shown
        )
        .is_err()
    );
}

/// If one source cannot be read, the others are imported.
#[test]
fn one_bad_source_among_good_ones() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing.zip");
    let report =
        import(&[&missing, &golden("claude.json")], &folder.path().join("out.db"), Branches::Shown)
            .unwrap();
    assert_eq!((report.failures.len(), report.changes.new_conversations), (1, 3));
}

#[test]
fn zips() {
    let folder = TempDir::new().unwrap();
    let put = |zip: &[u8]| import_text(folder.path(), zip, Branches::Shown);
    let (a, b) = (chat("a", 1.0, &["in a"]), chat("b", 1.0, &["in b"]));
    // The conversations are in a subfolder, among other files, in shards.
    let report = put(&zip_of(&[
        ("export/user.json", b"{\"id\": \"user\"}"),
        ("export/chat.html", b"<html>"),
        ("export/conversations-001.json", b.as_bytes()),
        ("export/conversations-000.json", a.as_bytes()),
        ("export/image.png", &[0; 100]),
    ]))
    .unwrap();
    assert_eq!(report.tally.conversations, 2);
    assert!(report.tally.skipped.is_empty() && report.tally.damaged.is_empty());
    let order = rows(&folder.path().join("out.db"), "SELECT id FROM conversations ORDER BY rowid");
    assert_eq!(order, ["\"a\"", "\"b\""]);
    // The file has another name and is of another service.
    let claude = fs::read(golden("claude.json")).unwrap();
    let report = put(&zip_of(&[("projects.json", b"[]"), ("my chats.json", &claude)])).unwrap();
    assert_eq!(report.tally.conversations, 3);
}

#[test]
fn a_part_without_conversations_is_named() {
    let folder = TempDir::new().unwrap();
    let chat = chat("a", 1.0, &["in a"]);
    for (part, is_named) in [
        (&b"[]"[..], false),
        (b" {\"conversations\": [ ]}\n", false),
        (b"[{\"mapping\": {}, \"inserted_at\": 1}]", false),
        (b"", true),
        (&[0; 200], true),
        (b"[", true),
        (b"{\"detail\": \"Not Found\"}", true),
        (b"<html>Sign in</html>", true),
        (b"\x1f\x8b\x08\x00", true),
    ] {
        let zip = zip_of(&[
            ("conversations-000.json", chat.as_bytes()),
            ("conversations-001.json", part),
        ]);
        let report = import_text(folder.path(), &zip, Branches::Shown).unwrap();
        let named: Vec<&String> = report.tally.damaged.iter().collect();
        let part = String::from_utf8_lossy(part);
        assert_eq!(named.len(), usize::from(is_named), "{part}: {named:?}");
        assert!(named.iter().all(|it| it.starts_with("conversations-001.json: ")), "{named:?}");
        assert_eq!(report.tally.conversations, 1, "{part}");
    }
}

#[test]
fn a_missing_part_is_named() {
    let folder = TempDir::new().unwrap();
    let chat = chat("a", 1.0, &["in a"]);
    for (parts, expected) in [
        (&["conversations-000.json", "conversations-001.json"][..], &[][..]),
        (&["conversations-000.json", "conversations-002.json"], &["conversations-001.json"]),
        (
            &["x/conversations-001.json", "x/conversations-004.json"],
            &["x/conversations-000.json", "x/conversations-002.json", "x/conversations-003.json"],
        ),
        (&["x/conversations-000.json", "y/conversations-002.json"], &[]),
        (
            &["conversations-000/conversations.json", "conversations-002/conversations.json"],
            &["conversations-001/conversations.json"],
        ),
        (&["conversations-2024.json", "conversations-2026.json", "conversations.json"], &[]),
    ] {
        let zip: Vec<_> = parts.iter().map(|part| (*part, chat.as_bytes())).collect();
        let report = import_text(folder.path(), &zip_of(&zip), Branches::Shown).unwrap();
        let damaged = &report.tally.damaged;
        assert_eq!(damaged.len(), expected.len(), "{damaged:?}");
        let is_named = |(line, part): (&String, &&str)| {
            line.starts_with(&format!("{part}: this part of the export is missing"))
        };
        assert!(damaged.iter().zip(expected).all(is_named), "{damaged:?}");
    }
}

#[test]
fn a_missing_zip_among_others_is_named() {
    let zip = |id: &str| zip_of(&[("conversations.json", chat(id, 1.0, &["words"]).as_bytes())]);
    let set = |names: &[&str]| {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        for name in names {
            let content = if name.ends_with(".zip") { zip(name) } else { vec![] };
            fs::write(folder.path().join("in").join(name), content).unwrap();
        }
        folder
    };
    let (first, third) = ("conversations-000.zip", "conversations-002.zip");
    let (again, unpacked) = ("conversations-000 (1).zip", "conversations-001");
    for (names, is_named) in [
        (&[first, third][..], true),
        (&[again, third], true),
        (&[first, "conversations-001 (2).zip", third], false),
        (&[first, unpacked, third], false),
        (&[third], false),
        (&["conversations-2024.zip", "conversations-2026.zip"], false),
    ] {
        let folder = set(names);
        let zips = names.iter().filter(|name| name.ends_with(".zip"));
        let named: Vec<String> = zips.map(|name| format!("in/{name}")).collect();
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        // The folder, and each zip by its name.
        for sources in [&["in"][..], &named] {
            let arguments = [&["import", "--db", "out.db"], sources].concat();
            let Said { code, out, errors } = program(folder.path(), &arguments);
            let told = "conversations-001.zip: this part of the export is missing";
            assert_eq!(code, Some(i32::from(is_named)), "{names:?} {out}{errors}");
            assert_eq!(out.contains(told), is_named, "{names:?} {out}{errors}");
            assert!(out.contains(&format!("Imported {} conversation", named.len())), "{out}");
        }
    }
    // The zips are in one zip.
    let outer = zip_of(&[(first, &zip("a")), (third, &zip("b"))]);
    let folder = TempDir::new().unwrap();
    let report = import_text(folder.path(), &outer, Branches::Shown).unwrap();
    assert_eq!(report.tally.conversations, 2);
    let told =
        "conversations-001.zip: this part of the export is missing; ask for the export again";
    assert_eq!(report.tally.damaged, [told]);
    // Files that are not in a zip.
    let folder = TempDir::new().unwrap();
    for number in ["000", "002"] {
        let path = folder.path().join(format!("conversations-{number}.json"));
        fs::write(path, chat(number, 1.0, &["words"])).unwrap();
    }
    for sources in [&["."][..], &["conversations-000.json", "conversations-002.json"]] {
        let arguments = [&["import", "--db", "out.db"], sources].concat();
        let Said { code, out, errors } = program(folder.path(), &arguments);
        let told = "conversations-001.json: this part of the export is missing";
        assert!(code == Some(1) && out.contains(told), "{out}{errors}");
    }
}

#[test]
fn a_part_that_the_export_lists_is_named_if_it_is_missing() {
    let folder = TempDir::new().unwrap();
    let chat = chat("a", 1.0, &["in a"]);
    let manifest = r#"{"export_files": [{"path": "conversations-000.json", "size_bytes": 9},
        {"path": "conversations-001.json", "size_bytes": 9}, {"path": "user.json"}]}"#;
    let whole = [
        ("x/conversations-000.json", chat.as_bytes()),
        ("x/export_manifest.json", manifest.as_bytes()),
        ("x/conversations-001.json", chat.as_bytes()),
    ];
    for (files, expected) in [(&whole[..], 0), (&whole[..2], 1)] {
        let report = import_text(folder.path(), &zip_of(files), Branches::Shown).unwrap();
        let damaged = &report.tally.damaged;
        assert_eq!(damaged.len(), expected, "{damaged:?}");
        let named = "x/conversations-001.json: this part of the export is missing";
        assert!(damaged.iter().all(|line| line.starts_with(named)), "{damaged:?}");
    }
}

#[test]
fn a_damaged_zip_replaces_nothing_and_is_read_again() {
    let folder = TempDir::new().unwrap();
    let (good, other) = (chat("a", 1.0, &["good words"]), chat("b", 1.0, &["others"]));
    let parts =
        [("conversations-000.json", good.as_bytes()), ("conversations-001.json", other.as_bytes())];
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        let method = zip::CompressionMethod::Stored;
        zip.start_file(name, SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(content).unwrap();
    }
    let zip = zip.finish().unwrap().into_inner();
    let at = zip.windows(4).position(|it| it == b"good").unwrap();
    let mut damaged = zip.clone();
    damaged[at..at + 4].copy_from_slice(b"baad");
    import_text(folder.path(), good.as_bytes(), Branches::Shown).unwrap();
    fs::write(folder.path().join("damaged.zip"), damaged).unwrap();
    for _ in 0..2 {
        program(folder.path(), &["import", "damaged.zip", "--db", "out.db"])
            .ends(1)
            .prints("Imported 1 conversation, 1 message")
            .prints("conversations-000.json: nothing of it was imported");
    }
    assert_eq!(contents(folder.path()), ["1 \"good words\"", "1 \"others\""]);
    let imports = rows(&folder.path().join("out.db"), "SELECT path FROM verbatim_imports");
    assert!(!imports.iter().any(|path| path.contains("damaged.zip")), "{imports:?}");
}

#[test]
fn an_import_that_ends_early_says_what_is_stored() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("out.db");
    import_text(folder.path(), chat("z", 1.0, &["small"]).as_bytes(), Branches::Shown).unwrap();
    let sql = "CREATE TRIGGER full BEFORE INSERT ON messages WHEN NEW.content = 'last'
               BEGIN SELECT RAISE(ABORT, 'no room'); END";
    Connection::open(&database).unwrap().execute_batch(sql).unwrap();
    // More text than one transaction has.
    let long = "words ".repeat(1 << 20);
    let chats: Vec<String> = (0..4).map(|n| chat(&format!("c{n}"), 1.0, &[&long])).collect();
    let chats = chats.iter().map(|chat| &chat[1..chat.len() - 1]).collect::<Vec<_>>().join(",");
    let last = chat("last", 1.0, &["last"]);
    fs::write(folder.path().join("a.json"), format!("[{chats},{}", &last[1..])).unwrap();
    program(folder.path(), &["import", "a.json", "--db", "out.db"])
        .ends(1)
        .warns("no room; before that, 3 new and changed conversations were stored");
    assert_eq!(contents(folder.path()).len(), 4);
}

#[test]
fn a_wait_for_another_program_is_told() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("out.db");
    import_text(folder.path(), chat("a", 1.0, &["one"]).as_bytes(), Branches::Shown).unwrap();
    fs::write(folder.path().join("b.json"), chat("b", 1.0, &["two"])).unwrap();
    let other = Connection::open(&database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let import =
            scope.spawn(|| program(folder.path(), &["import", "b.json", "--db", "out.db"]));
        thread::sleep(Duration::from_millis(3500));
        other.execute_batch("ROLLBACK").unwrap();
        let said = import.join().unwrap();
        assert_eq!(said.ends(0).errors.matches("waiting for another program").count(), 1);
    });
    assert_eq!(contents(folder.path()).len(), 2);
}

#[test]
fn times_beyond_the_calendar_are_stored_and_in_order() {
    let folder = TempDir::new().unwrap();
    let times =
        ["9400000000000", "1e300", "1700000000000", "1700000000", "-1.5", "-99999999999999", "NaN"];
    let chats = times.iter().enumerate().map(|(at, time)| {
        let text = chat(&format!("c{at}"), 5.0, &["zebra"]);
        text[1..text.len() - 1].replace("1000.0", time).replace("\"create_time\":1.0", "\"x\":1")
    });
    let chats = chats.collect::<Vec<_>>().join(",");
    fs::write(folder.path().join("a.json"), format!("[{chats}]")).unwrap();
    program(folder.path(), &["import", "a.json"]).ends(0);
    let said = program(folder.path(), &["search", "zebra", "--json"]);
    said.ends(0);
    let found = said.json();
    let found: Vec<_> = found
        .iter()
        .filter(|row| row["time"] != json!("x") && row["conversation_id"].is_string())
        .collect();
    let ids: Vec<_> = found.iter().map(|row| row["conversation_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["c1", "c0", "c2", "c3", "c4", "c5", "c6"], "the newest first");
    let shown: Vec<_> = found.iter().map(|row| &row["time"]).collect();
    assert_eq!(shown[..2], [&json!(null); 2]);
    assert_eq!(shown[2..4], [&json!("+55840-11-08T22:13:20Z"), &json!("2023-11-14T22:13:20Z")]);
    assert_eq!(shown[5..], [&json!(null); 2]);
}

#[test]
fn a_zip_packed_in_another_way_is_to_be_unpacked() {
    let folder = TempDir::new().unwrap();
    let mut zip = zip_of(&[("conversations.json", b"[]")]);
    // The method of the entry becomes bzip2, in both of its headers.
    for (header, at) in [(b"PK\x03\x04", 8), (b"PK\x01\x02", 10)] {
        let start = zip.windows(4).position(|it| it == header).unwrap();
        zip[start + at..start + at + 2].copy_from_slice(&12_u16.to_le_bytes());
    }
    let error = import_text(folder.path(), &zip, Branches::Shown).unwrap_err().to_string();
    assert!(error.contains("; unpack the zip, and import the folder"), "{error}");
}

#[test]
fn zips_that_attack() {
    let folder = TempDir::new().unwrap();
    let put = |zip: &[u8]| import_text(folder.path(), zip, Branches::Shown);
    let chat = chat("a", 1.0, &["in a"]);
    // A name that leads out of the zip is refused, and the others are imported.
    for name in ["../conversations.json", "/tmp/conversations.json", "a/../../b.json", "..\\c.json"]
    {
        let error = put(&zip_of(&[(name, chat.as_bytes())])).unwrap_err().to_string();
        assert!(error.contains("leads out"), "{error}");
    }
    let report =
        put(&zip_of(&[("../x.txt", b"x"), ("conversations.json", chat.as_bytes())])).unwrap();
    assert!(report.tally.damaged[0].contains("leads out"));
    // The zip has a symbolic link.
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("conversations.json", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let error = put(&zip.finish().unwrap().into_inner()).unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    // A zip bomb, and one with a wrong size.
    let bomb = zip_of(&[("conversations.json", &vec![b' '; 64 << 20])]);
    let error = put(&bomb).unwrap_err().to_string();
    assert!(error.contains("refused: unpacks to"), "{error}");
    let mut liar = bomb.clone();
    let size = (64u32 << 20).to_le_bytes();
    for at in 0..liar.len() - 4 {
        if liar[at..at + 4] == size {
            liar[at..at + 4].copy_from_slice(&1000u32.to_le_bytes());
        }
    }
    assert_ne!(liar, bomb);
    assert!(put(&liar).is_err());
    // The zip is cut off, and then damaged inside.
    let whole = zip_of(&[("conversations.json", chat.as_bytes())]);
    let told =
        "it is no whole zip, for example because its download was cut off; download it again";
    for length in (4..whole.len()).step_by(7) {
        let error = put(&whole[..length]).unwrap_err().to_string();
        assert!(error.ends_with(&format!("cannot read the zip: {told}")), "{error}");
        // The same inside another zip, beside a whole one.
        let outer = zip_of(&[("a.zip", &whole), ("b.zip", &whole[..length])]);
        let damaged = put(&outer).unwrap().tally.damaged;
        assert_eq!(damaged, [format!("b.zip: cannot be read: {told}")]);
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let _ = put(&damaged);
    }
}

#[test]
fn folders() {
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret.json"), chat("secret", 1.0, &["not yours"])).unwrap();
    let folder = TempDir::new().unwrap();
    let export = folder.path().join("export");
    fs::create_dir_all(export.join("shards")).unwrap();
    fs::write(export.join("shards/conversations-2.json"), chat("b", 1.0, &["in b"])).unwrap();
    fs::write(export.join("shards/conversations-10.json"), chat("c", 1.0, &["in c"])).unwrap();
    fs::write(export.join("user.json"), "{}").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outside.path().join("secret.json"), export.join("link.json"))
            .unwrap();
        std::os::unix::fs::symlink(outside.path(), export.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(&export, export.join("circle")).unwrap();
    }
    let database = folder.path().join("out.db");
    let report = import(&[&export], &database, Branches::Shown).unwrap();
    assert_eq!(rows(&database, "SELECT id FROM conversations ORDER BY rowid"), ["\"b\"", "\"c\""]);
    assert!(!cfg!(unix) || report.tally.damaged[0].contains("leads out"));
}

/// Writes an export of many conversations. The title of each says how many messages it has.
fn large(path: &Path, conversations: usize) {
    let mut file = File::create(path).unwrap();
    file.write_all(b"[").unwrap();
    for number in 0..conversations {
        let texts: Vec<String> =
            (0..number % 30 + 1).map(|at| format!("{number}/{at} ").repeat(60)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let one = chat(&format!("c{number}"), 1.0, &texts);
        file.write_all(if number == 0 { b"" } else { b"," }).unwrap();
        file.write_all(&one.as_bytes()[1..one.len() - 1]).unwrap();
    }
    file.write_all(b"]").unwrap();
}

/// Starts an import. Without a folder for the index, it ends when everything is imported.
fn spawn(source: &Path, target: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_verbatim"))
        .env_clear()
        .env("VERBATIM_INDEX", "/dev/null/index")
        .args(["import", source.to_str().unwrap()])
        .args(["--db", target.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn whole(child: Child) {
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("imported, but not all of it is indexed: "), "{errors}");
}

#[test]
fn killed_at_any_moment() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("large.json");
    large(&source, 2500);
    let calm = folder.path().join("calm.db");
    let begun = Instant::now();
    whole(spawn(&source, &calm));
    let took = begun.elapsed();
    for moment in [0.05, 0.3, 0.6, 0.95] {
        let target = folder.path().join(format!("killed-{moment}.db"));
        let mut child = spawn(&source, &target);
        thread::sleep(took.mul_f64(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        if target.exists() {
            assert_eq!(rows(&target, "PRAGMA integrity_check"), ["\"ok\""]);
            let torn = "SELECT c.id FROM conversations c LEFT JOIN messages m ON m.conversation_id = c.id GROUP BY c.id
                 HAVING count(m.id) <> CAST(substr(c.id, 2) AS INTEGER) % 30 + 1";
            assert_eq!(rows(&target, torn), [""; 0], "killed after {moment} of the time");
            assert_ne!(rows(&target, "SELECT count(*) FROM conversations"), ["0"]);
        }
        whole(spawn(&source, &target));
        assert_eq!(dump(&target), dump(&calm));
        assert!(!folder.path().join(format!("killed-{moment}.db-wal")).exists());
    }
}

#[test]
fn two_at_once() {
    let folder = TempDir::new().unwrap();
    let sources = [folder.path().join("one.json"), folder.path().join("two.json")];
    large(&sources[0], 2000);
    large(&sources[1], 2000);
    let target = folder.path().join("out.db");
    let children = sources.each_ref().map(|source| spawn(source, &target));
    for child in children {
        whole(child);
    }
    assert_eq!(rows(&target, "SELECT count(*) FROM conversations"), ["2000"]);
    let alone = folder.path().join("alone.db");
    whole(spawn(&sources[0], &alone));
    let sorted = |database: &Path| {
        let mut lines: Vec<String> = dump(database).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&target), sorted(&alone));
}

#[test]
fn the_demo_runs_twice() {
    let folder = TempDir::new().unwrap();
    for _ in 0..2 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_verbatim"))
            .env_clear()
            .args(["demo", "--home", folder.path().to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        for part in [
            "Borrow checker",
            "posting list",
            "京都",
            "Падежи",
            "龙井",
            "\"mcpServers\"",
            "\"serve\"",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        assert!(!text.contains('\u{e200}') && !text.contains('†'), "{text}");
        assert!(!text.contains("(in the title)"), "the messages are grouped: {text}");
    }
    assert!(!folder.path().join("db").exists(), "the demo is kept apart");
}

/// Imports as a user does.
fn program(folder: &Path, arguments: &[&str]) -> Said {
    Said::of(&mut command(folder, arguments))
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().current_dir(folder).args(arguments).args(["--home", "home"]);
    command
}

#[test]
fn an_import_of_a_part_says_so() {
    let folder = TempDir::new().unwrap();
    let put = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
    let chats: Vec<String> = (0..3).map(|n| chat(&format!("c{n}"), 1.0, &["red"])).collect();
    let list = chats.iter().map(|chat| chat[1..chat.len() - 1].to_owned()).collect::<Vec<_>>();
    let whole = format!("[{}]", list.join(","));
    put("whole.json", whole.as_bytes());
    put("trunc.json", &whole.as_bytes()[..whole.len() - 20]);
    // The file is cut off between two conversations, so everything in it is sound.
    put("between.json", format!("[{},{},", list[0], list[1]).as_bytes());
    put("nothing.txt", b"no chats");
    let mut zip = zip_of(&[("a/conv-1.json", whole.as_bytes()), ("a/conv-2.json", b"[]")]);
    while let Some(at) = zip.windows(6).position(|window| window == b"conv-2") {
        zip[at + 5] = b'1';
    }
    put("twice.zip", &zip);
    for (sources, code, said) in [
        (&["whole.json"][..], 0, ""),
        (
            &["trunc.json"],
            1,
            "trunc.json is cut off after 2 conversations; what followed is missing",
        ),
        (&["between.json"], 1, "between.json is cut off after 2 conversations; what followed"),
        (&["whole.json", "nothing.txt"], 1, "nothing.txt: not an export we know"),
        (&["nothing.txt"], 2, "nothing.txt: not an export we know"),
        (&["whole.json", "twice.zip"], 1, "a/conv-1.json: 2 files of this name are in the zip"),
    ] {
        let Said { code: status, out, errors } =
            program(folder.path(), &[&["import"], sources].concat());
        assert_eq!(status, Some(code), "{sources:?}: {out}{errors}");
        assert!(
            format!("{out}{errors}").contains(said)
                && errors.lines().count() == usize::from(code > 0),
            "{out}{errors}"
        );
    }
    let mut import = command(folder.path(), &["import", "whole.json"]);
    Said::of(import.env("VERBATIM_INDEX", "/dev/null/index"))
        .ends(1)
        .warns("imported, but not all of it is indexed")
        .prints("Imported in ");
}

#[test]
fn utf_16_and_utf_32_are_recognised() {
    let folder = TempDir::new().unwrap();
    let json = chat("c", 1.0, &["red"]);
    let little: Vec<u8> = json.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = json.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let utf_32 = |json: &str, bytes: fn(u32) -> [u8; 4]| -> Vec<u8> {
        json.chars().flat_map(|c| bytes(c.into())).collect()
    };
    let marked = format!("\u{feff}{json}");
    for (bytes, encoding) in [
        (little, "UTF-16"),
        (big, "UTF-16"),
        (utf_32(&json, u32::to_le_bytes), "UTF-32"),
        (utf_32(&json, u32::to_be_bytes), "UTF-32"),
        (utf_32(&marked, u32::to_le_bytes), "UTF-32"),
        (utf_32(&marked, u32::to_be_bytes), "UTF-32"),
    ] {
        let told = format!("its text is {encoding}; save it as UTF-8");
        let error = import_text(folder.path(), &bytes, Branches::Shown).unwrap_err().to_string();
        assert!(error.contains(&told), "{error}");
        // The same in a zip and in a folder, where the other files are read.
        let inside = TempDir::new().unwrap();
        let other = chat("d", 1.0, &["blue"]);
        fs::write(inside.path().join("a.json"), &bytes).unwrap();
        let zip = folder.path().join("a.zip");
        fs::write(&zip, zip_of(&[("a.json", &bytes)])).unwrap();
        for source in [inside.path(), &zip] {
            let error = import(&[source], &folder.path().join("out.db"), Branches::Shown);
            let error = error.unwrap_err().to_string();
            assert!(error.ends_with(&format!("a.json: {told}")), "{error}");
        }
        fs::write(inside.path().join("b.json"), &other).unwrap();
        fs::write(&zip, zip_of(&[("a.json", &bytes), ("b.json", other.as_bytes())])).unwrap();
        for source in [inside.path(), &zip] {
            let report = import(&[source], &folder.path().join("out.db"), Branches::Shown).unwrap();
            assert_eq!(report.tally.conversations, 1);
            assert_eq!(report.tally.damaged, [format!("a.json: {told}")]);
        }
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_named_and_replace_no_good_text() {
    let folder = TempDir::new().unwrap();
    let latin = |json: &str| json.chars().map(|c| u32::from(c) as u8).collect::<Vec<u8>>();
    let good = chat("c", 1.0, &["wörld", "plain"]).replace("\"title\":\"c\"", "\"title\":\"Über\"");
    let newer = chat("c", 2.0, &["wörld", "plain", "mëre"])
        .replace("\"title\":\"c\"", "\"title\":\"Über\"");
    let title = || rows(&folder.path().join("out.db"), "SELECT title FROM conversations");
    let named = |count: &str| {
        format!(
            "bytes that are not UTF-8 are in {count}; save the file as UTF-8 and import it again"
        )
    };
    let report = import_text(folder.path(), &latin(&good), Branches::Shown).unwrap();
    assert_eq!(report.tally.damaged, [format!("export.json: {}", named("2 texts"))]);
    assert_eq!(contents(folder.path()), ["1 \"w\u{FFFD}rld\"", "2 \"plain\""]);
    let report = import_text(folder.path(), good.as_bytes(), Branches::Shown).unwrap();
    assert!(report.tally.damaged.is_empty(), "{:?}", report.tally.damaged);
    assert_eq!(report.changes.updated_messages, 1);
    // In a zip, and through the program.
    let zip = zip_of(&[("conversations.json", &latin(&newer))]);
    fs::write(folder.path().join("latin.zip"), zip).unwrap();
    let arguments = ["import", "latin.zip", "--db", "out.db"];
    program(folder.path(), &arguments)
        .ends(1)
        .prints(&format!("conversations.json: {}", named("3 texts")));
    assert_eq!(contents(folder.path()), ["1 \"wörld\"", "2 \"plain\"", "3 \"m\u{FFFD}re\""]);
    assert_eq!(title(), ["\"Über\""]);
    // U+FFFD in valid UTF-8 is a character as any other.
    let odd = chat("c", 3.0, &["w\u{FFFD}rld", "plain", "mëre"]);
    let report = import_text(folder.path(), odd.as_bytes(), Branches::Shown).unwrap();
    assert!(report.tally.damaged.is_empty(), "{:?}", report.tally.damaged);
    assert_eq!(contents(folder.path()), ["1 \"w\u{FFFD}rld\"", "2 \"plain\"", "3 \"mëre\""]);
    // A transcript that is imported.
    let line = crate::transcripts::line(1, "user", "gr\u{FC}n");
    fs::write(folder.path().join("t.jsonl"), latin(&line)).unwrap();
    let report =
        import(&[&folder.path().join("t.jsonl")], &folder.path().join("t.db"), Branches::Shown);
    // The title is made of the prompt.
    assert_eq!(report.unwrap().tally.damaged, [format!("t.jsonl: {}", named("2 texts"))]);
}

#[test]
fn what_a_killed_import_left_goes_at_the_next_start() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("export.json"), chat("c", 1.0, &["red"])).unwrap();
    program(folder.path(), &["import", "export.json"]).ends(0);
    let left = folder.path().join("home/db/.verbatim-a1b2c3.tmp");
    let held = folder.path().join("home/db/.verbatim-d4e5f6.tmp");
    fs::write(&left, "half a database").unwrap();
    fs::write(&held, "half a database").unwrap();
    let lock = File::open(&held).unwrap();
    lock.lock().unwrap();
    program(folder.path(), &["search", "red"]).ends(0);
    assert!(left.exists(), "a search writes no database");
    program(folder.path(), &["reindex"]).ends(0);
    assert!(!left.exists() && held.exists(), "another process holds one");
}

/// A user without the right to enter a folder gets this error, and not that there is no database.
#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_entered_is_named() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};

    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("export.json"), chat("c", 1.0, &["red"])).unwrap();
    program(folder.path(), &["import", "export.json"]).ends(0);
    let set = |path: &str, mode| {
        fs::set_permissions(folder.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    set(".", 0o755);
    for (home, db) in [(0o600, 0o755), (0o755, 0o600), (0o755, 0o644)] {
        set("home", 0o755);
        set("home/db", db);
        set("home", home);
        for flags in [&[][..], &["--db", "home/db/verbatim.db"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
            command
                .env_clear()
                .current_dir(folder.path())
                .args(["search", "red", "--home", "home"]);
            command.args(flags);
            // Root may enter every folder.
            if fs::read_dir("/proc/1/fd").is_ok() {
                command.uid(65_534);
            }
            let output = command.output().expect("the program can be started");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains("Permission denied"), "{home:o} {db:o} {flags:?}: {errors}");
        }
    }
    set("home", 0o700);
}

#[test]
fn a_conversation_that_an_export_has_twice_is_one_new_one() {
    let folder = TempDir::new().unwrap();
    let (old, new) = (chat("a", 1.0, &["red"]), chat("a", 2.0, &["red", "green"]));
    let both = format!("[{},{}]", &old[1..old.len() - 1], &new[1..new.len() - 1]);
    let changes = import_text(folder.path(), both.as_bytes(), Branches::Shown).unwrap().changes;
    let conversations = (changes.new_conversations, changes.updated_conversations);
    assert_eq!((conversations, changes.unchanged_conversations), ((1, 0), 0));
    assert_eq!((changes.new_messages, changes.unchanged_messages), (2, 0));
}

#[test]
fn messages_without_times_have_the_time_of_their_conversation() {
    let folder = TempDir::new().unwrap();
    let chat = |id: &str, time: &str| {
        format!(
            r#"{{"uuid": "{id}", "created_at": "2024-05-01T10:00:00Z", "chat_messages": [
                {{"uuid": "{id}1", "text": "red"}}, {{"uuid": "{id}2", "text": "green"{time}}}]}}"#
        )
    };
    let some = chat("b", r#", "created_at": "2024-05-02T10:00:00Z""#);
    let content = format!("[{}, {some}]", chat("a", ""));
    import_text(folder.path(), content.as_bytes(), Branches::Shown).unwrap();
    let sql = "SELECT conversation_id, coalesce(create_time, '-') FROM messages ORDER BY rowid";
    let found = rows(&folder.path().join("out.db"), sql);
    let of = |id: &str| -> Vec<&String> {
        found.iter().filter(|row| row.starts_with(&format!("{id:?}"))).collect()
    };
    assert!(of("a").iter().all(|row| row.contains("1714557600")), "{found:?}");
    // If some messages have a time, the times of the others are unknown.
    assert!(of("b")[0].ends_with("\"-\"") && of("b")[1].contains("1714644000"), "{found:?}");
    let again = import_text(folder.path(), content.as_bytes(), Branches::Shown).unwrap();
    assert!(!again.changes.any());
}
