//! `verbatim status` and `verbatim doctor` on sound and on damaged databases.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::corpus::{add, database, files, folder};

fn run(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).arg("--home").arg(home).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Runs `verbatim status`; returns its text and its JSON.
#[track_caller]
fn status(home: &Path, arguments: &[&str]) -> (String, Value) {
    let plain = run(home, &[&["status"], arguments].concat());
    assert!(plain.status.success(), "{plain:?}");
    let json = run(home, &[&["status", "--json"], arguments].concat());
    assert!(json.status.success(), "{json:?}");
    (String::from_utf8(plain.stdout).unwrap(), serde_json::from_slice(&json.stdout).unwrap())
}

#[test]
fn the_status_of_what_is_searched() {
    let folder = folder();
    let home = folder.path();
    let (text, json) = status(home, &[]);
    assert!(text.contains("export: none") && text.contains("verbatim import"), "{text}");
    assert_eq!(json["sources"], Value::Array(Vec::new()));

    fs::create_dir(home.join("db")).unwrap();
    drop(database(&home.join("db/old.db"), &["grey"]));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let connection = database(&home.join("db/a.db"), &["red", "green"]);
    // It is not in any list either.
    let empty = "INSERT INTO conversations VALUES ('empty', '1', '1', 'Without messages')";
    connection.execute(empty, []).unwrap();
    let (text, json) = status(home, &[]);
    let export = &json["sources"][0];
    assert!(text.contains("newer than 1 other in") && text.contains("verbatim reindex"), "{text}");
    assert!(text.contains("2 messages in 1 conversation, 2023-11-14 to 2023-11-14"), "{text}");
    assert_eq!((&export["generation"], &export["refreshed"]), (&Value::Null, &Value::Null));
    assert!(!home.join("index").exists(), "looking changes nothing");

    assert!(run(home, &["reindex"]).status.success());
    let (text, json) = status(home, &[]);
    let export = &json["sources"][0];
    assert!(text.contains("by its index") && text.contains("built 2 messages in"), "{text}");
    assert_eq!(export["generation"]["current"], true);
    assert_eq!(export["generation"]["messages"], 2);
    assert_eq!((&export["by_like"], &export["at_work"]), (&Value::Null, &Value::Null));
    assert_eq!(export["last"], "2023-11-14T22:13:21Z", "{export}");
    for time in [&export["changed"], &export["refreshed"]["at"]] {
        assert!(time.as_str().is_some_and(|time| time.starts_with("20")), "{export}");
    }

    add(&connection, "blue");
    let (text, json) = status(home, &[]);
    let export = &json["sources"][0];
    assert!(text.contains("has changed since it was indexed"), "{text}");
    assert_eq!(export["generation"]["current"], false);
    assert_eq!((&export["messages"], &export["generation"]["messages"]), (&3.into(), &2.into()));

    // A process that holds the lock is refreshing the index.
    let index_dir = files(&home.join("index")).into_keys().next().unwrap();
    let lock = fs::File::open(index_dir.join("lock")).unwrap();
    fs::write(index_dir.join("activity"), r#"{"process": 4711, "since": 0}"#).unwrap();
    assert_eq!(status(home, &[]).1["sources"][0]["at_work"], Value::Null, "of a dead process");
    lock.lock().unwrap();
    let (text, json) = status(home, &[]);
    assert!(text.contains("process 4711 has been refreshing"), "{text}");
    let work = json!({"process": 4711, "since": "1970-01-01T00:00:00Z"});
    assert_eq!(json["sources"][0]["at_work"], work);
    drop(lock);

    let path = home.join("db/old.db");
    let (text, json) = status(home, &["--db", path.to_str().unwrap()]);
    assert!(text.contains("named by --db"), "{text}");
    // The commands to paste read the same database.
    let flags = format!("--home {} --db {}", home.display(), path.display());
    assert!(text.contains(&format!("`verbatim reindex {flags}` builds it")), "{text}");
    let (_, text) = doctor(home, &["--db", path.to_str().unwrap()]);
    assert!(text.contains(&format!("-> verbatim reindex {flags}\n")), "{text}");
    assert_eq!(json["named_by"], "--db");
    fs::write(home.join("db/z.db"), "no database").unwrap();
    let (text, _) = status(home, &["--db", home.join("db/z.db").to_str().unwrap()]);
    assert!(text.contains("not an SQLite database"), "{text}");
}

/// Runs `verbatim doctor`; returns its exit code and text. Checks that its JSON says the same.
#[track_caller]
fn doctor(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let before = everything(home);
    let json = run(home, &[&["doctor", "--json"], arguments].concat());
    let plain = run(home, &[&["doctor"], arguments].concat());
    let text = String::from_utf8(plain.stdout).unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let wrong = text.lines().filter(|line| line.starts_with("WRONG")).count();
    assert_eq!(json["wrong"], wrong, "{text}");
    assert_eq!(plain.status.code(), Some(i32::from(wrong > 0)), "{text}");
    for finding in json["findings"].as_array().unwrap() {
        let is_wrong = finding["verdict"] == "wrong";
        assert!(!is_wrong || finding["fix"].is_string(), "nothing mends it: {finding}");
    }
    assert_eq!(everything(home), before, "looking changes nothing");
    (plain.status.code(), text)
}

/// Returns every file below a folder with its bytes.
fn everything(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for (path, bytes) in files(folder) {
        if path.is_dir() {
            found.extend(everything(&path));
        }
        found.push((path, bytes));
    }
    found
}

#[test]
fn the_doctor_finds_nothing_wrong_where_nothing_is() {
    let folder = folder();
    let home = folder.path();
    let (code, text) = doctor(home, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("none is imported yet into ") && text.contains("-> verbatim import"));
    fs::create_dir(home.join("db")).unwrap();
    let texts: Vec<String> = (0..300).map(|number| format!("red {number} green")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let connection = database(&home.join("db/a.db"), &texts);
    let (code, text) = doctor(home, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("300 messages in 1 conversation"), "{text}");
    assert!(text.contains("searched: slowly") && text.contains("-> verbatim reindex"), "{text}");
    assert!(run(home, &["reindex"]).status.success());
    let (code, text) = doctor(home, &["--full"]);
    assert_eq!(code, Some(0), "{text}");
    let before = text.split(" messages and 8 searches compared").next().unwrap();
    let compared = before.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
    assert!((200..=300).contains(&compared), "{text}");
    assert!(!text.contains("note   /"), "nothing to note of the index: {text}");
    // Two segments, and deleted messages.
    add(&connection, "blue");
    connection.execute("DELETE FROM messages WHERE position = 7", []).unwrap();
    assert!(run(home, &["reindex"]).status.success());
    let (code, text) = doctor(home, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("searches compared"), "{text}");
    // A newer database hides it.
    std::thread::sleep(std::time::Duration::from_millis(20));
    drop(database(&home.join("db/b.db"), &["blue"]));
    let hidden = home.join("db/a.db").display().to_string();
    let (_, text) = doctor(home, &[]);
    let home_named = home.display();
    let command = format!("-> verbatim search --home {home_named} --db {hidden} TEXT");
    assert!(text.contains(&command) && text.contains("b.db: not searched: "), "{text}");
    let search = run(home, &["search", "red"]);
    let says = String::from_utf8(search.stderr).unwrap();
    assert!(says.contains(&format!("not searched: {hidden} (name one with --db)")), "{says}");
}

#[test]
fn the_doctor_says_when_claude_code_deletes() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir_all(home.join(".claude/projects")).unwrap();
    let (_, text) = doctor(home, &[]);
    let settings = home.join(".claude/settings.json");
    let says = |days: u32, set: &str| {
        let file = "~/.claude/settings.json";
        format!("deletes transcripts after {days} days (cleanupPeriodDays in {file} is {set})")
    };
    assert!(text.contains(&says(30, "not set")), "{text}");
    fs::write(&settings, r#"{"cleanupPeriodDays": 365}"#).unwrap();
    let (_, text) = doctor(home, &[]);
    assert!(text.contains(&says(365, "set")), "{text}");
}

#[test]
#[cfg(unix)]
fn the_doctor_distrusts_a_home_that_others_can_write_to() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (_, text) = doctor(folder.path(), &[]);
    assert!(text.contains("other users can write to it") && text.contains("chmod go-w"), "{text}");
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_mends_it() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    let path = home.join("db/a.db");
    let connection = database(&path, &["red", "green", "blue"]);
    assert!(run(home, &["reindex"]).status.success());
    let index_dir = files(&home.join("index")).into_keys().next().unwrap();

    // A file of the index is changed, and its times are restored.
    let rows = everything(&index_dir).into_iter().find(|(path, _)| path.ends_with("rows")).unwrap();
    let mut flipped = rows.1.clone();
    flipped[0] ^= 1;
    fs::write(&rows.0, flipped).unwrap();
    let (code, text) = doctor(home, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("is not as it was written") && text.contains(" --full\n"), "{text}");
    fs::write(&rows.0, &rows.1).unwrap();
    assert_eq!(doctor(home, &[]).0, Some(0));

    // What a replaced segment has left for the next one, and a part of vectors, are no leftovers.
    fs::create_dir(index_dir.join("kept-segment-1")).unwrap();
    fs::create_dir(rows.0.with_file_name("vectors-model-0")).unwrap();
    let (code, text) = doctor(home, &[]);
    assert!(code == Some(0) && !text.contains("left over"), "{text}");

    // The leftovers of a killed process, and an index of another database.
    fs::create_dir(index_dir.join("segment-77")).unwrap();
    fs::create_dir(home.join("index/old-0123")).unwrap();
    fs::write(home.join("index/old-0123/current"), "snapshot-1 00000000\n").unwrap();
    let (code, text) = doctor(home, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("left over from interrupted refreshes")
            && text.contains("old-0123: the index of"),
        "{text}"
    );
    assert!(run(home, &["reindex", "--full"]).status.success());
    assert!(!index_dir.join("segment-77").exists(), "the command that was named mends it");

    // Messages without a conversation; a damaged database; none at all.
    let sql = "INSERT INTO messages VALUES ('x', 'nowhere', 'user', 'lost', 1, NULL, 0)";
    connection.execute(sql, []).unwrap();
    drop(connection);
    assert!(doctor(home, &[]).1.contains("1 messages are in no conversation"));
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[4096 + 8..end].fill(0x5A);
    fs::write(&path, bytes).unwrap();
    let (code, text) = doctor(home, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("a.db") && text.contains("restore it from a backup"), "{text}");
    fs::write(&path, "not a database").unwrap();
    assert!(doctor(home, &[]).1.contains("not an SQLite database"));
    let (code, text) = doctor(home, &["--db", "/nowhere.db"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("Database not found"), "{text}");
}

#[test]
fn the_doctor_reads_what_clients_are_told() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    let db = home.join("db/a.db");
    drop(database(&db, &["red"]));
    assert!(doctor(home, &[]).1.contains("no AI client that Verbatim knows starts it"));
    let program = env!("CARGO_BIN_EXE_verbatim");
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let good = format!(
        r#"// of the user's own
        {{"mcpServers": {{"chats": {{"command": {program:?}, "args": ["serve", "--db", {db:?}]}},
            "else": {{"command": "/nowhere/else"}},}}}}"#
    );
    write(".cursor/mcp.json", &good);
    write(
        ".codex/config.toml",
        &format!("[mcp_servers.verbatim]\ncommand = {program:?}\nargs = [\"serve\"]\n"),
    );
    let (code, text) = doctor(home, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("starts verbatim, which answers").count(), 2, "{text}");
    let server = |body: &str| format!(r#"{{"mcpServers": {{"verbatim": {body}}}}}"#);
    let relative = r#""args": ["serve", "--db", "a.db"]"#;
    for (config, expected) in [
        (server(r#"{"command": "/nowhere/verbatim"}"#), "which does not exist"),
        (server(r#"{"args": []}"#), "names no \"command\""),
        (
            server(&format!(r#"{{"command": {program:?}, "args": ["search", "x"]}}"#)),
            "a command other",
        ),
        (
            server(&format!(r#"{{"command": {program:?}, "args": ["serve", "--colour"]}}"#)),
            "--colour",
        ),
        (server(&format!(r#"{{"command": {program:?}, {relative}}}"#)), "depends on the folder"),
        (
            server(&format!(
                r#"{{"command": {program:?}, "args": ["serve"], "env": {{"CONVERSATION_DB": "/nowhere.db"}}}}"#
            )),
            "\"/nowhere.db\", which does not exist",
        ),
        ("{".to_owned(), "cannot read its configuration"),
    ] {
        write(".claude.json", &config);
        let (code, text) = doctor(home, &[]);
        assert_eq!(code, Some(1), "{config}: {text}");
        let line = text.lines().find(|line| line.starts_with("WRONG")).unwrap();
        assert!(line.contains(".claude.json") && line.contains(expected), "{config}: {line}");
    }
}

#[test]
fn derived_data_counts_where_it_is_whole_and_of_the_model_in_use() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    drop(database(&home.join("db/a.db"), &["red", "green"]));
    assert!(run(home, &["reindex"]).status.success());
    let derived = || status(home, &[]).1["sources"][0]["generation"]["derived"].take();
    assert_eq!(derived(), json!(["words", "vectors"]));
    for (folder, _) in everything(home) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if name == "words" {
            fs::remove_dir_all(&folder).unwrap();
            fs::write(folder.with_file_name("words.lock"), "").unwrap();
            fs::create_dir(folder.with_file_name("new-words-1")).unwrap();
            fs::create_dir(folder.with_file_name("words-1")).unwrap();
        } else if name.starts_with("vectors-") {
            // There are those of two models.
            fs::create_dir_all(folder.with_file_name("vectors-new-1")).unwrap();
            fs::rename(&folder, folder.with_file_name(format!("another-{name}"))).unwrap();
        }
    }
    assert_eq!(derived(), json!([]));
}
