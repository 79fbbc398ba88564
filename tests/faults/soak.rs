//! A soak: two servers on one index answer queries without a pause while their database is imported
//! into, written to and replaced. Every answer is right, and neither memory nor open files grow.
//!
//! A minute by default; `VERBATIM_SOAK=3600` makes it an hour, `VERBATIM_PROGRAM` names another
//! build of the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use verbatim_chats::import::Branches;
use verbatim_engine::import;

use crate::{corpus::folder, running::Running};

/// Messages at the beginning, and about the most at any time.
const MESSAGES: i64 = 5_000;
const MOST: usize = 8_000;

/// The difference in open files between two moments that is no leak: four for each segment, one to five
/// segments for each index, and two indexes while one replaces the other.
const SPREAD: u64 = 40;

/// The first complete build in a server may increase its memory by this many KiB: the allocator keeps the
/// memory in which the tables of packed texts were made.
const STEP: u64 = 24 << 10;

const WORDS: &[&str] =
    &["amber", "azure", "beige", "coral", "ebony", "ivory", "lilac", "ochre", "pearl", "sepia"];

fn program(home: &Path, arguments: &[&str]) -> Command {
    let program = env::var_os("VERBATIM_PROGRAM")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_verbatim")), PathBuf::from);
    let mut command = Command::new(program);
    command.env_clear().arg("--home").arg(home).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The content of the database: times and texts of its messages, oldest first.
struct Chats {
    path: PathBuf,
    messages: Vec<(i64, String)>,
    next: i64,
    seed: u64,
}

impl Chats {
    fn random(&mut self, below: usize) -> usize {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % below
    }

    fn text(&mut self, number: i64) -> String {
        let words: Vec<&str> = (0..8).map(|_| WORDS[self.random(WORDS.len())]).collect();
        format!("message {number}. {}", words.join(" "))
    }

    fn add(&mut self, connection: &Connection, count: i64) {
        let transaction = connection.unchecked_transaction().unwrap();
        for _ in 0..count {
            let number = self.next;
            let text = self.text(number);
            transaction
                .execute(
                    "INSERT INTO messages VALUES ('m' || ?1, 'c', 'user', ?2, ?3, NULL, ?1)",
                    params![number, text, 1_700_000_000 + number],
                )
                .unwrap();
            self.messages.push((number, text));
            self.next += 1;
        }
        transaction.commit().unwrap();
    }

    /// Makes one random change to the database.
    fn change(&mut self, home: &Path) {
        let connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(Duration::from_secs(40)).unwrap();
        match self.random(6) {
            0 | 1 => {
                let count = 1 + self.random(50) as i64;
                self.add(&connection, count);
            }
            2 => {
                let at = self.random(self.messages.len());
                let number = self.messages[at].0;
                let text = self.text(number) + " changed";
                let sql = "UPDATE messages SET content = ?1 WHERE id = 'm' || ?2";
                connection.execute(sql, params![text, number]).unwrap();
                self.messages[at].1 = text;
            }
            3 => {
                let count = if self.messages.len() > MOST { 500 } else { 5 };
                let transaction = connection.unchecked_transaction().unwrap();
                for _ in 0..count {
                    let at = self.random(self.messages.len());
                    let (number, _) = self.messages.remove(at);
                    let sql = "DELETE FROM messages WHERE id = 'm' || ?1";
                    transaction.execute(sql, [number]).unwrap();
                }
                transaction.commit().unwrap();
            }
            4 => {
                // An import of messages that are newer than all others.
                let number = self.next;
                self.next += 1;
                let text = self.text(number);
                let at = chrono(number);
                let export = json!([{"uuid": format!("i{number}"), "name": "Import",
                    "created_at": at, "updated_at": at, "chat_messages": [
                        {"uuid": format!("im{number}"), "sender": "human", "text": text, "created_at": at}]}]);
                drop(connection);
                let file = home.join("conversations.json");
                fs::write(&file, export.to_string()).unwrap();
                import::import(&[file], &self.path, Branches::Shown, &|_| {}).unwrap();
                // It has another kind of id, so it is not changed or deleted later.
                let connection = Connection::open(&self.path).unwrap();
                let sql = "UPDATE messages SET id = 'm' || ?1 WHERE content LIKE 'message ' || ?1 || '.%'";
                assert_eq!(connection.execute(sql, [number]).unwrap(), 1);
                self.messages.push((number, text));
            }
            _ => {
                let other = home.join("other");
                drop(fs::remove_file(&other));
                connection.execute("VACUUM INTO ?1", [other.to_str().unwrap()]).unwrap();
                drop(connection);
                fs::rename(other, &self.path).unwrap();
            }
        }
    }

    /// Returns a query and its expected texts, newest first.
    fn question(&mut self) -> (String, Vec<String>) {
        let query = match self.random(4) {
            0 => format!("message {}.", self.random(self.next as usize)),
            1 => WORDS[self.random(WORDS.len())].to_uppercase(),
            2 => {
                let at = self.random(self.messages.len());
                let text = &self.messages[at].1;
                text[text.len() - 17..].to_owned()
            }
            _ => "vermilion".to_owned(),
        };
        let lower = query.trim().to_lowercase();
        let found = self.messages.iter().rev().filter(|(_, text)| text.contains(&lower));
        let texts = found.take(5).map(|(_, text)| text.clone()).collect();
        (query, texts)
    }
}

/// The time of a message as Claude.ai writes it.
fn chrono(number: i64) -> String {
    let instant = verbatim_base::model::Instant { seconds: 1_700_000_000 + number, nanos: 0 };
    verbatim_text::date::to_iso(instant).unwrap()
}

/// Memory in KiB and open files of a process.
fn held(process: u32) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    (line.split_whitespace().next().unwrap().parse().unwrap(), files)
}

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

/// Waits until the index is current.
fn wait_for_index(home: &Path) {
    let status = || -> Value {
        let output = program(home, &["status", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let begun = Instant::now();
    while status()["sources"][0]["generation"]["current"] != true {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:#}", status());
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "takes a minute"]
#[cfg(target_os = "linux")]
fn servers_hold_no_more_in_the_end() {
    let seconds = env::var("VERBATIM_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let length = Duration::from_secs(seconds);
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    let path = home.join("db/chats.db");
    let connection = crate::corpus::database(&path, &[]);
    connection.execute("INSERT INTO conversations VALUES ('c', '1', '1', 'Soak')", []).unwrap();
    let mut chats = Chats { path, messages: Vec::new(), next: 0, seed: 1 };
    chats.add(&connection, MESSAGES);
    drop(connection);
    let mut servers: Vec<Running> = (0..2)
        .map(|_| {
            let mut server = Running::start(&mut program(home, &["serve"]));
            server.initialize();
            server
        })
        .collect();
    // On a busy machine, the index may come late. What the servers map of it then is no leak.
    wait_for_index(home);
    let begun = Instant::now();
    let (mut questions, mut changes) = (0_u64, 0_u64);
    // The memory and the open files of each server, measured once a second.
    let mut samples: Vec<Vec<(u64, usize)>> = vec![Vec::new(); servers.len()];
    let mut changed = Instant::now();
    let mut pause = Duration::ZERO;
    while begun.elapsed() < length {
        if changed.elapsed() > pause {
            chats.change(home);
            changes += 1;
            changed = Instant::now();
            // Mostly one change after the other, sometimes with time to refresh.
            pause = Duration::from_millis([20, 50, 300, 3_000][chats.random(4)]);
        }
        let (query, expected) = chats.question();
        let number = chats.random(servers.len());
        let arguments = json!({"query": query, "limit": 5});
        let answer = servers[number].call("conversation_search", &arguments);
        let texts: Vec<&str> = match answer.as_str() {
            "No matching messages." => Vec::new(),
            found => {
                found.split("\n\n---\n\n").filter_map(|hit| Some(hit.split_once('\n')?.1)).collect()
            }
        };
        assert_eq!(texts, expected, "{query:?} after {changes} changes: {answer}");
        questions += 1;
        for (server, samples) in servers.iter().zip(&mut samples) {
            if (samples.len() as u64) < begun.elapsed().as_secs() {
                samples.push(held(server.process()));
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    eprintln!("{questions} questions and {changes} changes in {seconds} s");
    for samples in &samples {
        let thirds: Vec<&[(u64, usize)]> = samples.chunks(samples.len().div_ceil(3)).collect();
        let memory = |part: &[(u64, usize)]| median(part.iter().map(|sample| sample.0).collect());
        let files =
            |part: &[(u64, usize)]| median(part.iter().map(|sample| sample.1 as u64).collect());
        let (before, after) = (thirds[1], thirds[2]);
        let most = samples.iter().map(|sample| sample.0).max().unwrap_or_default();
        eprintln!(
            "memory {} then {} then {} KiB, {most} at most; open files {} then {} then {}",
            memory(thirds[0]),
            memory(before),
            memory(after),
            files(thirds[0]),
            files(before),
            files(after)
        );
        assert!(memory(after) < memory(before) * 5 / 4 + STEP, "memory grows: {samples:?}");
        assert!(files(after) <= files(before) + SPREAD, "files stay open: {samples:?}");
    }
    // After the last change, the index becomes current, and no leftover files remain.
    wait_for_index(home);
    for mut server in servers {
        assert!(server.end().success());
    }
}
