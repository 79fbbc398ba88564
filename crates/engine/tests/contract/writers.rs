//! Another program writes to the database. Every answer shows one state.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, params};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_engine::{Engine, Reader, Reindex, Scope, Source, SourceKind};

use crate::database::{Database, Schema};
use crate::{RESOURCES, subjects_of};

/// The number of transactions. States are numbered from 0.
const TRANSACTIONS: i64 = 60;

/// The number of messages in state 0. Each transaction adds one message, and changes every other message.
const MESSAGES: i64 = 40;

/// Writes a state: all messages, titles and times name it.
fn write(connection: &Connection, state: i64) {
    connection.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
    let content = format!("state {state} of the thing");
    for table in [
        "UPDATE messages SET content = ?1, create_time = ?2",
        "UPDATE conversations SET title = ?1, update_time = ?2",
    ] {
        connection.execute(table, params![content, state]).expect("a write");
    }
    let sql = "INSERT INTO messages VALUES (?1, 'c', 'user', ?2, ?3, NULL, ?1)";
    connection.execute(sql, params![MESSAGES + state, content, state]).expect("a message");
    connection.execute_batch("COMMIT").expect("a commit");
}

fn database(journal: &str) -> Database {
    let database = Database::new(SourceKind::Export, Schema::Typed);
    let connection = database.connect();
    connection.pragma_update(None, "journal_mode", journal).expect("a journal");
    connection
        .execute("INSERT INTO conversations VALUES ('c', NULL, NULL, 'state')", [])
        .expect("a conversation");
    for position in 0..MESSAGES {
        let sql = "INSERT INTO messages VALUES (?1, 'c', 'user', '', '0', NULL, ?1)";
        connection.execute(sql, [position]).expect("a message");
    }
    write(&connection, 0);
    database
}

/// Returns the state of some messages, which must be all messages of one state.
#[track_caller]
fn state_of<'h>(hits: impl Iterator<Item = Hit<'h>>) -> i64 {
    let hits: Vec<_> = hits.collect();
    let texts: BTreeSet<&str> = hits.iter().map(|hit| &*hit.content).collect();
    let titles: BTreeSet<&str> = hits.iter().map(|hit| &*hit.title).collect();
    assert_eq!(texts.len(), 1, "a mixture of states: {texts:?}");
    assert_eq!(texts, titles, "a mixture of states");
    let text = texts.first().expect("there is one");
    let state = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a number");
    assert_eq!(hits.len() as i64, MESSAGES + 1 + state, "messages of state {state}");
    assert!(hits.iter().all(|hit| hit.time.is_some_and(|time| time.seconds == state)));
    state
}

fn searched(source: &Source) -> i64 {
    let request = Request { text: "thing".to_owned(), ..Request::default() };
    let mut hits = Vec::new();
    let answer = source.exact(&request, &Call::default(), &mut |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    });
    answer.expect("an answer");
    state_of(hits.into_iter())
}

fn read(reader: &dyn Reader) -> i64 {
    let messages = reader.read("c", false, &Call::default()).expect("an answer").expect("c");
    state_of((0..messages.turns()).map(|turn| messages.message(turn)))
}

/// Returns the state of a list and of the counts.
fn listed(reader: &dyn Reader) -> i64 {
    let listing = reader.list(&Scope::default(), &Call::default()).expect("a list");
    assert_eq!(listing.len(), 1);
    let about = listing.about(0);
    let state = i64::from(about.turns) - MESSAGES - 1;
    assert_eq!(about.title, format!("state {state} of the thing"));
    assert_eq!(about.last.map(|last| last.seconds), Some(state));
    state
}

fn counted(reader: &dyn Reader) -> i64 {
    let counts = reader.count(&Scope::default(), &Instant::day, &Call::default()).expect("counts");
    let state = counts.roles["user"] as i64 - MESSAGES - 1;
    assert_eq!(counts.last.map(|last| last.seconds), Some(state));
    state
}

/// Runs `ask` while a second thread writes and a third thread indexes. `ask` returns the state of its answer,
/// which must be a state of the database during the question.
fn while_written(journal: &str, ask: impl Fn(&Engine, &Source) -> i64) {
    let database = database(journal);
    let (engine, source) = (database.engine(), database.source());
    let (begun, committed) = (AtomicI64::new(0), AtomicI64::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            let connection = database.connect();
            for state in 1..=TRANSACTIONS {
                begun.store(state, SeqCst);
                write(&connection, state);
                committed.store(state, SeqCst);
                // Some pauses are long enough to index the state.
                thread::sleep(Duration::from_millis(if state % 10 == 0 { 60 } else { 3 }));
            }
            is_over.store(true, SeqCst);
        });
        threads.spawn(|| {
            while !is_over.load(SeqCst) {
                let options = Reindex { resources: RESOURCES, full: false };
                // The refresh may fail, because the database changes all the time.
                drop(source.reindex(options, &Call::default(), &mut |_| {}));
                thread::sleep(Duration::from_millis(5));
            }
        });
        let mut last = 0;
        while !is_over.load(SeqCst) {
            let earliest = committed.load(SeqCst);
            let state = ask(&engine, &source);
            let latest = begun.load(SeqCst);
            assert!((earliest..=latest).contains(&state), "{state}, not {earliest}..={latest}");
            assert!(state >= last, "{state} after {last}");
            last = state;
        }
    });
    crate::reindex(&source);
    assert_eq!(ask(&engine, &source), TRANSACTIONS);
}

#[test]
fn searches_are_of_one_state_with_a_log() {
    while_written("wal", |_, source| searched(source));
}

#[test]
fn searches_are_of_one_state_with_a_rollback_journal() {
    while_written("delete", |_, source| searched(source));
}

#[test]
fn other_questions_are_of_one_state_with_a_log() {
    let turn = AtomicI64::new(0);
    while_written("wal", |_, source| {
        let reader = source.reader(&Call::default());
        [read, listed, counted][turn.fetch_add(1, SeqCst) as usize % 3](&*reader)
    });
}

#[test]
fn other_questions_are_of_one_state_with_a_rollback_journal() {
    let turn = AtomicI64::new(0);
    while_written("delete", |_, source| {
        let reader = source.reader(&Call::default());
        [read, listed, counted][turn.fetch_add(1, SeqCst) as usize % 3](&*reader)
    });
}

/// A reader may answer the state that it was opened on or the present one, but no older state and
/// no mixture.
#[test]
fn an_open_reader_answers_one_state() {
    for journal in ["wal", "delete"] {
        let database = database(journal);
        let connection = database.connect();
        let subjects = subjects_of(&database).into_iter();
        let readers: Vec<_> =
            subjects.map(|subject| (subject.name(), subject.open(&database))).collect();
        // A reader that is already open must not see later writes.
        let opened: Vec<_> = readers
            .iter()
            .map(|(_, reader)| {
                reader.read("c", false, &Call::default()).expect("reads").expect("c")
            })
            .collect();
        write(&connection, 1);
        for ((name, reader), messages) in readers.iter().zip(opened) {
            let hits = (0..messages.turns()).map(|turn| messages.message(turn));
            assert_eq!(state_of(hits), 0, "{name}");
            let request = Request { text: "thing".to_owned(), ..Request::default() };
            let searched = state_of(crate::hits(&**reader, &request).0.into_iter());
            for state in [searched, read(&**reader), listed(&**reader), counted(&**reader)] {
                assert!([0, 1].contains(&state), "{name}: {state}");
                assert_eq!(state, searched, "{name} answers several states");
            }
        }
        let source = database.source();
        assert_eq!(searched(&source), 1, "the index of state 0 is not used");
        assert_eq!(read(&*source.reader(&Call::default())), 1);
    }
}
