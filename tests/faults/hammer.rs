//! Answers are exact at once: queries run while other processes write to the database, replace and delete
//! it, and index it again and again. Each answer must be that of one state that existed during the call.
//!
//! The writer numbers its states. The expected answer follows from the number of a state, and the
//! numbers before and after a call say which states are possible.

use std::fs::{self, File};
use std::ops::{ControlFlow, RangeInclusive};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use rusqlite::{Connection, TransactionBehavior};
use serde_json::json;
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::{Reindex, Resources, SearchPlan};

use crate::corpus::SCHEMA;
use crate::program::{Place, Server};

/// The duration, times `VERBATIM_CASES`; longer if the machine is too busy to index.
const USUAL: Duration = Duration::from_secs(4);

/// The variable with the folder of the writing process. If it is set, this test binary is that process.
const FOLDER: &str = "VERBATIM_HAMMERED";

/// The test that is the writing process.
pub(crate) const WRITER: &str = "hammer::writer";

/// The number of the current state, shared between processes.
pub(crate) struct States {
    /// Two numbers: the last state that was begun, and the last state that was finished.
    file: File,
}

impl States {
    pub(crate) fn open(folder: &Path) -> States {
        let path = folder.join("states");
        let mut options = File::options();
        States { file: options.create(true).read(true).write(true).open(path).expect("a file") }
    }

    fn note(&self, offset: u64, number: u64) {
        self.file.write_all_at(&number.to_le_bytes(), offset).expect("a note");
    }

    fn read(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        let read = self.file.read_at(&mut bytes, offset).expect("the notes");
        if read == 8 { u64::from_le_bytes(bytes) } else { 0 }
    }

    /// Returns the oldest possible state, before a call.
    pub(crate) fn least(&self) -> u64 {
        self.read(8)
    }

    /// Returns the newest possible state, after a call.
    pub(crate) fn most(&self) -> u64 {
        self.read(0)
    }
}

/// Returns whether a state has no database.
fn is_absent(state: u64) -> bool {
    state % 13 == 12
}

/// Returns the contents of a state's messages, oldest first.
fn contents(state: u64) -> Vec<String> {
    let content = |row: u64| {
        let rare = if state.is_multiple_of(3) && row.is_multiple_of(4) { " rarely" } else { "" };
        format!("common words of state {state} in row {row}.{rare}")
    };
    (0..if is_absent(state) { 0 } else { 5 + state * 7 % 31 }).map(content).collect()
}

/// Returns the expected answer in a state; `None` if it has no database.
fn expected(state: u64, text: &str) -> Option<Vec<String>> {
    let found = |content: &String| content.contains(text);
    (!is_absent(state)).then(|| contents(state).into_iter().rev().filter(found).collect())
}

#[track_caller]
pub(crate) fn check(
    states: RangeInclusive<u64>,
    text: &str,
    answer: &Option<Vec<String>>,
    how: &str,
) {
    let possible = states.clone().any(|state| expected(state, text) == *answer);
    assert!(possible, "{text:?} in states {states:?} was answered {how}: {answer:?}");
}

/// Queries whose answers differ from state to state.
pub(crate) fn query(number: u64, least: u64) -> String {
    match number % 5 {
        0 => "rarely".to_owned(),
        1 => format!("state {least} "),
        2 => "row 3".to_owned(),
        3 => "never said".to_owned(),
        _ => "common".to_owned(),
    }
}

fn fill(connection: &mut Connection, state: u64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("DELETE FROM messages", [])?;
    for (row, content) in contents(state).iter().enumerate() {
        transaction.execute(
            "INSERT INTO messages VALUES ('m' || ?1, 'c', 'user', ?2, 1700000000 + ?1, NULL, ?1)",
            rusqlite::params![row as i64, content],
        )?;
    }
    transaction.commit()
}

/// Repeats an action until no reader prevents it.
fn patiently<T>(mut work: impl FnMut() -> rusqlite::Result<T>) -> T {
    let begun = Instant::now();
    loop {
        match work() {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(40), "{error}"),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The writing process: makes one state after the other until it is killed.
#[test]
fn writer() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    let path = folder.join("chats.db");
    let states = States::open(&folder);
    let mut connection = None::<Connection>;
    for state in 1_u64.. {
        let is_new = state == 1 || state.is_multiple_of(5) || is_absent(state - 1);
        if is_new || is_absent(state) {
            // A log that remains would be read as part of the next database.
            if let Some(connection) = connection.take() {
                let mode = || connection.pragma_update(None, "journal_mode", "delete");
                patiently(mode);
            }
        }
        states.note(0, state);
        if is_absent(state) {
            fs::remove_file(&path).expect("the database can be deleted");
        } else if is_new {
            let next = folder.join("next");
            let mut made = Connection::open(&next).expect("a database");
            made.execute_batch(SCHEMA).expect("the schema is sound");
            made.execute("INSERT INTO conversations VALUES ('c', '1', '1', 'Title')", [])
                .expect("a conversation");
            if state.is_multiple_of(2) {
                made.pragma_update(None, "journal_mode", "wal").expect("a log");
            }
            fill(&mut made, state).expect("the messages");
            drop(made);
            fs::rename(&next, &path).expect("the database can be replaced");
        } else {
            let connection =
                connection.get_or_insert_with(|| Connection::open(&path).expect("the database"));
            patiently(|| fill(connection, state));
        }
        states.note(8, state);
        if let Some(connection) = &connection {
            match state % 7 {
                1 => patiently(|| connection.pragma_update(None, "journal_mode", "wal")),
                3 => patiently(|| connection.pragma_update(None, "journal_mode", "delete")),
                5 => drop(connection.query_row("PRAGMA wal_checkpoint(truncate)", [], |_| Ok(()))),
                _ => {}
            }
        }
        // Sometimes there is time to index.
        let pause = if state.is_multiple_of(4) { 250 } else { state * 37 % 30 };
        thread::sleep(Duration::from_millis(pause));
    }
}

/// Kills a process when dropped.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Tells the other threads to end, even if one panics.
pub(crate) struct Ending<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Starts the writing process for a folder.
pub(crate) fn start_writer(folder: &Path) -> Killed {
    let writer = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", WRITER, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the writer starts");
    Killed(writer)
}

#[test]
fn every_answer_is_that_of_a_state_which_existed_during_the_call() {
    let (folder, place) = Place::temporary();
    let states = States::open(folder.path());
    let mut writer = start_writer(folder.path());
    while states.least() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    let factor = env::var("VERBATIM_CASES").ok().and_then(|cases| cases.parse().ok());
    let usual = USUAL.mul_f64(factor.unwrap_or(1.0));
    let engine = place.engine();
    let ended = AtomicBool::new(false);
    let [by_index, by_like, by_server] = [const { AtomicU64::new(0) }; 3];
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    let asking = |first: u64| {
        let _ending = Ending(&ended);
        for number in first.. {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            let least = states.least();
            let text = query(number, least);
            let request = Request { text: text.clone(), ..Request::default() };
            let mut found = Vec::new();
            let answered = engine.exact(&request, &Call::default(), &mut |hit| {
                found.push(hit.content.into_owned());
                ControlFlow::Continue(())
            });
            let most = states.most();
            let (answer, how) = match answered {
                Ok(answered @ SearchPlan::ByIndex { .. }) => {
                    count(&by_index);
                    (Some(found), format!("{answered:?}"))
                }
                Ok(answered) => {
                    count(&by_like);
                    (Some(found), format!("{answered:?}"))
                }
                Err(error) if error.is_not_found() => (None, error.to_string()),
                Err(error) => panic!("{error:?} in states {least} to {most}"),
            };
            check(least..=most, &text, &answer, &how);
        }
    };
    let serving = || {
        let _ending = Ending(&ended);
        let mut server = Server::start(place.command(&["serve"]).stderr(Stdio::null()));
        for number in 0.. {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            let least = states.least();
            let text = query(number, least);
            let answer = server.call("conversation_search", &json!({"query": &text, "limit": 200}));
            let most = states.most();
            count(&by_server);
            let contents = match answer.as_str() {
                "No matching messages." => Some(Vec::new()),
                missing if missing.starts_with("Database not found") => None,
                blocks => {
                    let content = |block: &str| {
                        let line = block.lines().nth(1);
                        line.unwrap_or_else(|| panic!("states {least} to {most}: {block}"))
                            .to_owned()
                    };
                    Some(blocks.split("\n\n---\n\n").map(content).collect())
                }
            };
            check(least..=most, &text, &contents, "by the server");
        }
    };
    let indexing = |full| {
        let _ending = Ending(&ended);
        let resources = Resources { memory: 32 << 20, threads: 1 };
        while !ended.load(Ordering::Relaxed) {
            // The refresh may fail: there may be no database, too many changes, or another indexing process.
            drop(place.engine().upkeep().reindex(
                Reindex { resources, full },
                &Call::default(),
                &mut |_| {},
            ));
            thread::sleep(Duration::from_millis(5));
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| asking(0));
        scope.spawn(|| asking(2));
        scope.spawn(serving);
        scope.spawn(|| indexing(false));
        scope.spawn(|| indexing(true));
        let _ending = Ending(&ended);
        let begun = Instant::now();
        let enough = || {
            let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            begun.elapsed() > usual
                && states.least() > 30
                && counted(&by_index).min(counted(&by_like)).min(counted(&by_server)) > 30
        };
        while !enough() && !ended.load(Ordering::Relaxed) {
            assert_eq!(writer.0.try_wait().expect("a process"), None, "the writer failed");
            let counts = [&by_index, &by_like, &by_server];
            assert!(begun.elapsed() < usual + Duration::from_secs(80), "too few: {counts:?}");
            thread::sleep(Duration::from_millis(20));
        }
    });
    eprintln!(
        "states {}, by index {by_index:?}, by LIKE {by_like:?}, by a server {by_server:?}",
        states.least()
    );
}
