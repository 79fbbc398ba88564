//! Threads with many writers: clients in several processes at once, and processes that are killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use verbatim_engine::Engine;

use crate::corpus::folder;
use crate::threads::{call, data, engine, text};

/// Records one turn, and tries again if another client was faster; returns its number.
fn persist(engine: &Engine, thread: &str, turn: &str) -> u64 {
    loop {
        let resume = data(engine, &json!({"action": "resume", "thread_id": thread}));
        let id = &resume["continuation_id"];
        let answer =
            call(engine, &json!({"action": "continue", "continuation_id": id, "query": turn}));
        let whole: Value = serde_json::from_str(&answer.text).unwrap();
        if !answer.is_error {
            return whole["data"]["message_count"].as_u64().unwrap();
        }
        assert!(text(&whole["error"]).contains("out of date"), "{whole}");
    }
}

/// The environment variable with the task of a writer process.
const WRITER: &str = "VERBATIM_TEST_THREADS_HOME";

/// Not a test: the process that the tests start. It writes until it is done or killed.
#[test]
fn writer() {
    let Some(home) = std::env::var_os(WRITER) else { return };
    let number = |name| std::env::var(name).ok()?.parse::<usize>().ok();
    let engine = engine(Path::new(&home));
    let (process, clients) = (number("PROCESS").unwrap(), number("CLIENTS").unwrap());
    let turns = number("TURNS").unwrap_or(usize::MAX);
    let shared = std::env::var("SHARED").unwrap();
    thread::scope(|scope| {
        for client in 0..clients {
            let (engine, shared) = (&engine, &shared);
            scope.spawn(move || {
                let start =
                    data(engine, &json!({"action": "start", "user_id": format!("p{process}")}));
                let thread = text(&start["thread_id"]).to_owned();
                let mut next = start["continuation_id"].clone();
                for turn in 0..turns {
                    let own = format!("own {process} {client} {turn}");
                    let go_on =
                        json!({"action": "continue", "continuation_id": next, "query": own});
                    next = data(engine, &go_on)["continuation_id"].clone();
                    said(&format!("{thread}\t{own}"));
                    if turn % 4 == 0 {
                        let both = format!("both {process} {client} {turn}");
                        persist(engine, shared, &both);
                        said(&format!("{shared}\t{both}"));
                    }
                }
            });
        }
    });
}

/// Acknowledges a turn to the process that started this one.
fn said(line: &str) {
    let mut error = std::io::stderr().lock();
    writeln!(error, "ACK\t{line}").unwrap();
}

fn writer_process(
    home: &Path,
    shared: &str,
    process: usize,
    clients: usize,
    turns: &str,
) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "writers::writer", "--nocapture"])
        .env(WRITER, home)
        .env("PROCESS", process.to_string())
        .env("CLIENTS", clients.to_string())
        .env("SHARED", shared)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if !turns.is_empty() {
        command.env("TURNS", turns);
    }
    command
}

/// Returns the turns that a process acknowledged.
fn acknowledged(error: impl std::io::Read) -> Vec<(String, String)> {
    let lines = BufReader::new(error).lines().map_while(Result::ok);
    lines
        .filter_map(|line| {
            let (thread, turn) = line.strip_prefix("ACK\t")?.split_once('\t')?;
            Some((thread.to_owned(), turn.to_owned()))
        })
        .collect()
}

/// Checks that every acknowledged turn is there once, in the order of its client.
fn check(home: &Path, acknowledged: &[(String, String)]) {
    let connection = Connection::open(home.join("threads.db")).unwrap();
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let mut statement = connection
        .prepare("SELECT conversation_id, content FROM messages ORDER BY conversation_id, position")
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut stored: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let (thread, turn): (String, String) = row.unwrap();
        stored.entry(thread).or_default().push(turn);
    }
    let mut expected: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for (thread, turn) in acknowledged {
        let client = turn.rsplit_once(' ').unwrap().0.to_owned();
        expected.entry((thread, client)).or_default().push(turn);
    }
    for ((thread, client), turns) in expected {
        let of_client = |turn: &&String| turn.rsplit_once(' ').unwrap().0 == client;
        let there: Vec<&String> = stored[thread].iter().filter(of_client).collect();
        assert!(there.len() >= turns.len(), "{client}: {} of {}", there.len(), turns.len());
        assert!(there.iter().zip(&turns).all(|(a, b)| a == b), "{client} is in another order");
    }
}

#[test]
fn a_hundred_clients_lose_no_turn() {
    let home = folder();
    let shared = data(&engine(home.path()), &json!({"action": "start", "topic": "shared"}));
    let shared = text(&shared["thread_id"]);
    let mut children: Vec<_> = (0..4)
        .map(|process| writer_process(home.path(), shared, process, 25, "4").spawn().unwrap())
        .collect();
    let readers: Vec<_> = children
        .iter_mut()
        .map(|child| {
            let error = child.stderr.take().unwrap();
            thread::spawn(move || acknowledged(error))
        })
        .collect();
    let all: Vec<_> = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(all.len(), 100 * (4 + 1));
    check(home.path(), &all);
    let engine = engine(home.path());
    let usage = data(&engine, &json!({"action": "analytics"}));
    assert_eq!(usage["total_threads"], 101);
    assert_eq!(usage["threads_by_user"]["p3"], 25);
    assert_eq!(
        data(&engine, &json!({"action": "resume", "thread_id": shared}))["message_count"],
        100
    );
}

#[test]
fn a_killed_writer_loses_no_turn_that_it_acknowledged() {
    let home = folder();
    let shared = data(&engine(home.path()), &json!({"action": "start", "topic": "shared"}));
    let shared = text(&shared["thread_id"]).to_owned();
    let mut all = Vec::new();
    for round in 0..8 {
        let mut child = writer_process(home.path(), &shared, round, 3, "").spawn().unwrap();
        let mut error = BufReader::new(child.stderr.take().unwrap());
        let mut early = String::new();
        // The process is killed at any moment after it has acknowledged some turns.
        while early.lines().filter(|line| line.starts_with("ACK")).count() < 1 + round * 2 {
            assert!(error.read_line(&mut early).unwrap() > 0, "{early}");
        }
        thread::sleep(Duration::from_micros(773 * round as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        all.extend(acknowledged(early.as_bytes()));
        all.extend(acknowledged(error));
        // The next writer continues where the other one ended.
        let turn = format!("after {round} 0 0");
        persist(&engine(home.path()), &shared, &turn);
        all.push((shared.clone(), turn));
    }
    check(home.path(), &all);
}
