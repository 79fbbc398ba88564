//! The commands for whole conversations: `list`, `stats`, `show` of lines.

use std::process::Command;

use serde_json::{Value, json};

use crate::corpus::folder_with;
use crate::golden::golden;
use crate::terminal::{output, run, sample};

#[test]
fn listing() {
    let (home, db) = folder_with("a.db");
    drop(sample(&db));
    let (db, index) = (db.to_str().unwrap(), home.path().join("index"));
    let places = ["--db", db, "--home", home.path().to_str().unwrap()];
    let list = |more: &[&str]| -> Vec<&str> {
        ["list"]
            .into_iter()
            .chain(places)
            .chain(more.iter().copied())
            .map(|it| it.to_owned().leak() as &str)
            .collect()
    };
    for _ in 0..2 {
        golden("cli/list/all.txt", &output(&list(&[])));
        golden(
            "cli/list/filtered.txt",
            &output(&list(&["--role", "tool", "--since", "2023-11-14", "--until", "2023-11-14"])),
        );
        let lines = output(&list(&["--json", "--limit", "3"]));
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1]["id"], "7000ffff");
        assert_eq!(lines[1]["source"], "export");
        assert_eq!(lines[1]["messages"], 1);
        assert_eq!(lines[1]["path"], format!("{db}#7000ffff"));
        assert_eq!(run(&list(&["--source", "archive"])), (Ok(0), String::new()));
        assert_eq!(run(&list(&["--until", "1999", "--json"])), (Ok(0), String::new()));
        assert!(
            run(&list(&["--source", "letters"]))
                .0
                .unwrap_err()
                .contains("no conversation has the service \"letters\"; known: export")
        );
        // The commands give the same output with an index.
        output(&["reindex", "--db", db, "--home", home.path().to_str().unwrap()]);
        assert!(index.is_dir());
    }
    for command in [&["list"][..], &["stats"], &["show", "x"]] {
        let arguments: Vec<&str> = command.iter().copied().chain(["--db", "nowhere.db"]).collect();
        assert_eq!(
            run(&arguments).0,
            Err("Database not found: nowhere.db".to_owned()),
            "{command:?}"
        );
    }
}

#[test]
fn counting() {
    let (home, db) = folder_with("a.db");
    let connection = sample(&db);
    connection
        .execute_batch(
            "INSERT INTO messages VALUES ('without time', '71110000', 'user', 'x', NULL, NULL, 1);
             INSERT INTO messages VALUES ('without conversation', 'none', 'user', 'x', 1, NULL, 1);",
        )
        .unwrap();
    drop(connection);
    let db = db.to_str().unwrap();
    let home_path = home.path().to_str().unwrap();
    for _ in 0..2 {
        golden("cli/stats/all.txt", &output(&["stats", "--db", db, "--home", home_path]));
        let json: Value =
            serde_json::from_str(&output(&["stats", "--db", db, "--home", home_path, "--json"]))
                .unwrap();
        assert_eq!((&json["messages"], &json["conversations"]), (&json!(8), &json!(4)));
        assert_eq!(json["roles"], json!({"assistant": 2, "tool": 1, "unknown": 1, "user": 4}));
        assert_eq!(json["sources"], json!({"export": 8}));
        assert_eq!(json["months"]["2023-11"], 4);
        assert_eq!(json["months"]["no time"], 1);
        output(&["reindex", "--db", db, "--home", home_path]);
    }
    let coloured = |command: &str, variable: (&str, &str)| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        program.env_clear().env(variable.0, variable.1);
        let output = program.args([command, "--db", db, "--home", home_path]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let stats = coloured("stats", ("CLICOLOR_FORCE", "1"));
    assert!(stats.contains("\u{1b}[36m█"), "{stats}");
    let list = coloured("list", ("CLICOLOR_FORCE", "1"));
    assert!(list.contains('\u{1b}'), "{list}");
    assert!(!coloured("list", ("NO_COLOR", "1")).contains('\u{1b}'));
    let nothing = run(&["stats", "--db", db, "--home", home_path, "--source", "threads"]);
    assert_eq!(nothing, (Ok(1), "0 messages in 0 conversations\n".to_owned()));
}

#[test]
fn showing_some_lines() {
    let (_home, path) = folder_with("a.db");
    drop(sample(&path));
    let db = path.to_str().unwrap();
    let show = |more: &[&str]| {
        let arguments: Vec<&str> =
            ["show", "--db", db, "6650a1b2-0001"].into_iter().chain(more.iter().copied()).collect();
        run(&arguments)
    };
    let count = |text: &str| text.matches("\n## ").count();
    for (lines, expected) in [("2", 1), ("2-3", 2), ("3-", 2), ("1-99", 4), ("9-", 0)] {
        let (code, out) = show(&["--lines", lines]);
        let found = if expected > 0 { 0 } else { 1 };
        assert_eq!((code, count(&out)), (Ok(found), expected), "{lines}");
    }
    for lines in ["0", "3-2", "x", "-", "-2", "1-x", ""] {
        let argument = format!("--lines={lines}");
        assert!(show(&[&argument]).0.unwrap_err().contains("10-20"), "{lines}");
    }
    let (_, json) = show(&["--json", "--lines", "2"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["role"], "assistant");
    assert_eq!(json["content"], "Because `y` is gone.");
    let by_path = run(&["show", "--db", db, &format!("{db}#6650a1b2-0001")]);
    assert_eq!(by_path, show(&[]));
}

#[test]
fn a_list_in_parts_is_whole() {
    let (home, path) = folder_with("a.db");
    let connection = sample(&path);
    connection
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
             INSERT INTO conversations SELECT 'many-' || i, NULL, NULL, 'Many ' || i FROM n;
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
             INSERT INTO messages SELECT 'm' || i, 'many-' || i, 'user', 'x', i, NULL, 1 FROM n;",
        )
        .unwrap();
    drop(connection);
    let (db, home_path) = (path.to_str().unwrap(), home.path().to_str().unwrap());
    let list = ["list", "-n", "0", "--db", db, "--home", home_path];
    for _ in 0..2 {
        let text = output(&list);
        assert_eq!(text.lines().count(), 1205);
        assert!(text.lines().nth(1204).unwrap().contains("Many 0 "), "{text}");
        let json = output(&[&list[..], &["--json"]].concat());
        let ids =
            json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone());
        let ids: Vec<Value> = ids.collect();
        assert_eq!(ids.len(), 1205);
        assert_eq!(ids[1204], "many-0");
        assert_eq!(ids[505], "many-699");
        output(&["reindex", "--db", db, "--home", home_path]);
    }
}

#[test]
fn in_a_pipe_titles_and_ids_are_whole() {
    let (home, db) = folder_with("a.db");
    let connection = sample(&db);
    let (id, title) = ("long-".repeat(20), "a title of several words ".repeat(10) + "about red");
    connection.execute("INSERT INTO conversations VALUES (?1, 1, 1, ?2)", [&id, &title]).unwrap();
    let sql = "INSERT INTO messages VALUES ('m', ?1, 'user', 'red', 1, NULL, 0)";
    connection.execute(sql, [&id]).unwrap();
    let short = &id[..8];
    let places = ["--db", db.to_str().unwrap(), "--home", home.path().to_str().unwrap()];
    for command in [&["list"][..], &["search", "red"]] {
        let out = output(&[command, &places].concat());
        assert!(out.contains(&title) && out.contains(short), "{out}");
        assert!(command[0] != "list" || out.contains("  export\n"), "{out}");
    }
}
