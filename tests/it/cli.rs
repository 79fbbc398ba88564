//! The command line: every help and typical outputs as golden files.

use std::{ffi::OsString, path::Path, process::Command, process::Stdio};

use rusqlite::{Connection, params};
use verbatim_search::{
    cli::{self, Environment},
    engine::Config,
};

use crate::{
    corpus::{SCHEMA, folder},
    golden,
    program::Place,
};

pub(crate) fn run(arguments: &[&str]) -> (Result<u8, String>, String) {
    let mut out = Vec::new();
    let arguments =
        std::iter::once("verbatim").chain(arguments.iter().copied()).map(OsString::from);
    let code = cli::run(arguments, &Environment::default(), &mut out).map_err(|e| e.to_string());
    (code, String::from_utf8(out).unwrap())
}

/// Runs a command that succeeds; returns its output.
#[track_caller]
pub(crate) fn output(arguments: &[&str]) -> String {
    let (code, out) = run(arguments);
    assert_eq!(code, Ok(0), "{arguments:?}");
    out
}

pub(crate) fn sample(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let long = format!("{} the borrow checker again {}", "before ".repeat(60), "after ".repeat(60));
    let lines = (1..15).map(|n| format!("line {n} of the Borrow Checker\n")).collect::<String>();
    for (id, title, messages) in [
        (
            "6650a1b2-0001",
            "Rust lifetimes",
            &[
                (
                    "user",
                    "Why does the borrow checker\nrefuse this?\n\n    let x = &y;",
                    1_700_000_000.5,
                ),
                ("assistant", "Because `y` is gone.", 1_700_000_060.0),
                ("user", &long, 1_700_000_120.0),
                ("tool", &lines, 1_700_000_180.0),
            ][..],
        ),
        ("6650a1b2-0002", "日本語の質問", &[("user", "カフェはどこ？", 1_705_276_800.0)]),
        (
            "7000ffff",
            "Borrow checker, part two",
            &[("assistant", "\u{1b}[31mNot red.", 1_705_276_801.0)],
        ),
        ("71110000", "", &[("", "", 1e12)]),
    ] {
        connection.execute("INSERT INTO conversations VALUES (?1, 1, 1, ?2)", [id, title]).unwrap();
        for (position, (role, content, time)) in (0_i64..).zip(messages) {
            let sql = "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)";
            let message = format!("{id}-{position}");
            connection.execute(sql, params![message, id, role, content, time, position]).unwrap();
        }
    }
    connection
}

#[test]
fn every_help() {
    let mut names = vec![vec![]];
    names.extend(cli::command().get_subcommands().map(|c| vec![c.get_name().to_owned()]));
    for name in names {
        let mut arguments: Vec<&str> = name.iter().map(String::as_str).collect();
        arguments.push("--help");
        let file = name.first().map_or("verbatim", String::as_str);
        golden(&format!("cli/help/{file}.txt"), &output(&arguments));
    }
}

#[test]
fn searching() {
    let home = folder();
    let path = home.path().join("a.db");
    drop(sample(&path));
    let db = path.to_str().unwrap();
    let index = home.path().join("index");
    let places = ["--db", db, "--index", index.to_str().unwrap()];
    for (file, arguments) in [
        ("plain", &["borrow checker"][..]),
        ("coloured", &["borrow checker", "--color", "always"]),
        ("wildcards", &["r_FUSE%let", "--color", "always"]),
        ("unicode", &["フェ", "--color", "always"]),
        ("context", &["because", "-C", "1"]),
        ("json", &["borrow checker", "--json", "--limit", "2"]),
        ("filtered", &["", "--role", "user", "--role", "tool", "--until", "2023-11"]),
    ] {
        let arguments: Vec<&str> =
            ["search"].iter().chain(&places).chain(arguments).copied().collect();
        golden(&format!("cli/search/{file}.txt"), &output(&arguments));
    }
    let count = |arguments: &[&str]| {
        let arguments: Vec<&str> =
            ["search", "--json"].iter().chain(&places).chain(arguments).copied().collect();
        let (code, out) = run(&arguments);
        (code, out.lines().count())
    };
    assert_eq!(count(&["no such words"]), (Ok(1), 0));
    assert_eq!(count(&["", "--limit", "0"]), (Ok(0), 7));
    assert_eq!(count(&["Borrow checker", "--case-sensitive"]), (Ok(0), 1));
    assert_eq!(count(&["--", "--limit"]), (Ok(1), 0));
    assert!(count(&["", "--since", "yesterday"]).0.unwrap_err().contains("ISO 8601"));
    assert!(count(&["", "--colour"]).0.is_err());
    let missing = run(&["search", "--db", "nowhere.db", "x"]).0;
    assert_eq!(missing, Err("Database not found: nowhere.db".to_owned()));
}

#[test]
fn showing() {
    let home = folder();
    let path = home.path().join("a.db");
    drop(sample(&path));
    let db = path.to_str().unwrap();
    golden("cli/show/rust.md", &output(&["show", "--db", db, "6650a1b2-0001"]));
    let by_prefix = output(&["show", "--db", db, "6650a1b2-0002"]);
    assert_eq!(by_prefix, output(&["show", "--db", db, "日本語の質問"]));
    assert_eq!(output(&["show", "--db", db, "7000"]), output(&["show", "--db", db, "7000ffff"]));
    let several = run(&["show", "--db", db, "6650"]).0.unwrap_err();
    assert!(
        several.contains("6650a1b2-0001  Rust lifetimes\n  6650a1b2-0002  日本語の質問"),
        "{several}"
    );
    let nothing = run(&["show", "--db", db, "50a1b2"]).0.unwrap_err();
    assert!(nothing.starts_with("no conversation has"), "{nothing}");
}

#[test]
fn the_program_itself() {
    let home = folder();
    std::fs::create_dir(home.path().join("db")).unwrap();
    let path = home.path().join("db/a.db");
    drop(sample(&path));
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().current_dir(home.path()).args(arguments);
        command
    };
    let found = program(&["search", "checker"]).output().unwrap();
    assert_eq!(found.status.code(), Some(0));
    assert!(!found.stdout.contains(&0x1b), "colours only on a terminal");
    assert_eq!(program(&["search", "no such"]).output().unwrap().status.code(), Some(1));
    for wrong in [&["search"][..], &["search", "x", "--db", "nowhere"], &["colours"], &[]] {
        let answer = program(wrong).output().unwrap();
        assert_eq!((answer.status.code(), answer.stdout.len()), (Some(2), 0), "{wrong:?}");
        assert!(!answer.stderr.is_empty());
    }
    let named = program(&["search", "x"]).env("CONVERSATION_DB", "nowhere.db").output().unwrap();
    let message = String::from_utf8(named.stderr).unwrap();
    assert_eq!(message, "verbatim: Database not found: nowhere.db\n");
    // A reader that closes the pipe while the program has more to write than a pipe holds.
    let connection = Connection::open(&path).unwrap();
    let sql = "UPDATE messages SET content = ?1 WHERE position = 0";
    connection.execute(sql, ["checker\n".repeat(100_000)]).unwrap();
    drop(connection);
    let mut child = program(&["search", "checker", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0));
}

#[test]
fn ranked_search_synchronises_the_transcripts_once() {
    let folder = folder();
    let place = Place::in_folder(folder.path());
    drop(sample(&place.db));
    let transcripts = folder.path().join("transcripts");
    std::fs::create_dir(&transcripts).unwrap();
    std::fs::write(transcripts.join("a.jsonl"), "{}").unwrap();
    // A folder in place of the database: every synchronisation reports it.
    let archives = vec![transcripts.clone()];
    let config = Config { archives, ..place.engine().config().clone() };
    let store = config.archive_database();
    std::fs::create_dir_all(&store).unwrap();
    let mut command = place.command(&["search", "borrow", "--mode", "text"]);
    let output = command.arg("--archive").arg(&transcripts).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    let reports = log.lines().filter(|line| line.contains(store.to_str().unwrap()));
    assert_eq!(reports.count(), 1, "{log}");
    assert!(!output.stdout.is_empty());
}
