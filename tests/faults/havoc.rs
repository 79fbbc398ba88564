//! Everything at once: writers change the database while servers over HTTP and over standard input
//! answer, are killed and start again, the index is built anew again and again, and its files are
//! damaged in place. Every answer is that of a state which existed during the call.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{env, io, thread};

use serde_json::{Value, json};

use crate::damage::files;
use crate::hammer::{Ending, States, WRITER, check, query, start_writer};
use crate::http_server::{HttpServer, call};
use crate::program::{Place, Server};

/// Answers that are compared, times `VERBATIM_CASES`: 100 makes it a million.
const USUAL: u64 = 10_000;

/// Damages a file in place, as a disk error or another program may.
fn damage(path: &Path, number: u64) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let at = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99) >> 33;
    let at = at % length.max(1);
    match number % 4 {
        0 => file.set_len(at),
        1 => file.write_all_at(&[0xA5; 700], at),
        _ => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at)?;
            file.write_all_at(&[byte[0] ^ 1 << (number % 8)], at)
        }
    }
}

/// Returns the contents that an answer of `conversation_search` shows; `None` without a database.
fn contents_of(answer: &str) -> Option<Vec<String>> {
    match answer {
        "No matching messages." => Some(Vec::new()),
        missing if missing.starts_with("Database not found") => None,
        blocks => {
            let content = |block: &str| {
                block.lines().nth(1).unwrap_or_else(|| panic!("no answer: {blocks}")).to_owned()
            };
            Some(blocks.split("\n\n---\n\n").map(content).collect())
        }
    }
}

/// Asks one question after the other until there are enough answers. If no server runs, `again` starts one.
/// The server may be killed before it answers.
fn ask<S>(
    run: &HavocRun<'_>,
    first: u64,
    mut again: impl FnMut() -> S,
    mut answer: impl FnMut(&mut S, &Value) -> Option<String>,
) {
    let _ending = Ending(&run.ended);
    let (mut server, mut restarts) = (again(), 0);
    for number in first.. {
        if run.ended.load(Ordering::Relaxed) {
            break;
        }
        let least = run.states.least();
        let text = query(number, least);
        let answered = answer(&mut server, &json!({"query": &text, "limit": 200}));
        let most = run.states.most();
        match answered {
            Some(answered) => {
                check(least..=most, &text, &contents_of(&answered), "by a server");
                run.answers.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                restarts += 1;
                server = again();
            }
        }
    }
    run.restarts.fetch_add(restarts, Ordering::Relaxed);
}

/// The state that the threads share.
struct HavocRun<'a> {
    states: &'a States,
    ended: AtomicBool,
    answers: AtomicU64,
    restarts: AtomicU64,
}

#[test]
#[ignore = "takes minutes"]
fn every_answer_is_right_whatever_happens() {
    let (folder, place) = Place::temporary();
    let states = States::open(folder.path());
    let mut writer = start_writer(folder.path());
    while states.least() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    let factor = env::var("VERBATIM_CASES").ok().and_then(|cases| cases.parse::<f64>().ok());
    let wanted = (USUAL as f64 * factor.unwrap_or(1.0)).ceil() as u64;
    let zero = AtomicU64::default;
    let run = HavocRun { states: &states, ended: false.into(), answers: zero(), restarts: zero() };
    let (damaged, kill_next) = (zero(), AtomicBool::new(false));
    let at_http = || HttpServer::at(&place, &[]);
    let by_http = |server: &mut HttpServer, arguments: &Value| {
        if kill_next.swap(false, Ordering::Relaxed) {
            server.child.kill().unwrap();
        }
        server.try_call(&call(1, "conversation_search", arguments))
    };
    let at_stdio = || Server::start(place.command(&["serve"]).stderr(Stdio::null()));
    let by_stdio = |server: &mut Server, arguments: &Value| {
        Some(server.call("conversation_search", arguments))
    };
    let damaging = || {
        let _ending = Ending(&run.ended);
        for number in 0.. {
            if run.ended.load(Ordering::Relaxed) {
                break;
            }
            let all = files(&place.index);
            if let Some(path) = all.get(number as usize * 31 % all.len().max(1)) {
                damaged.fetch_add(u64::from(damage(path, number).is_ok()), Ordering::Relaxed);
            }
            kill_next.store(number.is_multiple_of(20), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(100));
        }
    };
    let settings = folder.path().join("config.toml");
    fs::write(&settings, "memory = '32M'\nthreads = 1\n").unwrap();
    let indexing = || {
        let _ending = Ending(&run.ended);
        while !run.ended.load(Ordering::Relaxed) {
            // The command may find no database, or another process that indexes.
            let mut command = place.command(&["reindex"]);
            command.env("VERBATIM_CONFIG", &settings);
            drop(command.stdout(Stdio::null()).stderr(Stdio::null()).status());
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| ask(&run, 0, at_http, by_http));
        scope.spawn(|| ask(&run, 2, at_http, by_http));
        scope.spawn(|| ask(&run, 4, at_stdio, by_stdio));
        scope.spawn(damaging);
        scope.spawn(indexing);
        let _ending = Ending(&run.ended);
        while run.answers.load(Ordering::Relaxed) < wanted && !run.ended.load(Ordering::Relaxed) {
            assert_eq!(writer.0.try_wait().expect("a process"), None, "{WRITER} failed");
            thread::sleep(Duration::from_millis(20));
        }
    });
    drop(writer);
    let leftovers = fs::read_dir(&place.index).map_or(0, Iterator::count);
    eprintln!(
        "{:?} answers, {:?} servers killed, {damaged:?} times damaged, {} states, {leftovers} indexes",
        run.answers,
        run.restarts,
        states.least()
    );
}
