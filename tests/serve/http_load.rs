//! Many clients at the same time over HTTP: connections that send nothing, and clients that ask without a
//! pause. Every client is served, every answer is SQLite's, and memory does not grow.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::corpus::SCHEMA;
use crate::http_server::{ACCEPT, Answered, HttpServer, JSON, REDS, call, colours, read_answer};

/// Returns the resident memory of a server, in KiB.
fn memory(server: &HttpServer) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Lets this process open as many files as the system allows.
fn allow_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// The number of connections at the same time, and how many of them send a body slowly. The server has 1,024.
const CONNECTIONS: usize = 1_100;
const SLOW: usize = 100;

#[test]
fn silent_connections_keep_nobody_out_for_long() {
    allow_files();
    let server = HttpServer::start(colours, &[]);
    let ask = || server.call("conversation_search", &json!({"query": "red"}));
    assert_eq!(ask(), REDS);
    let before = memory(&server);
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", server.address);
    let message = call(1, "conversation_search", &json!({"query": "red"})).to_string();
    let (begun, rest) = message.split_at(10);
    let slow = format!(
        "{head}{}\r\n{JSON}\r\n{ACCEPT}\r\nContent-Length: {}\r\n\r\n{begun}",
        server.bearer(),
        message.len()
    );
    let opened = Instant::now();
    let mut held: Vec<TcpStream> = Vec::new();
    for number in 0..CONNECTIONS {
        let mut stream = server.connect();
        let start = match number {
            number if number < SLOW => slow.as_bytes(),
            number if number % 2 == 0 => head.as_bytes(),
            _ => &[],
        };
        stream.write_all(start).unwrap();
        held.push(stream);
    }
    // Silent connections end after 15 seconds, and other clients are served.
    for _ in 0..10 {
        assert_eq!(ask(), REDS);
    }
    assert!(opened.elapsed() < Duration::from_secs(25), "{:?}", opened.elapsed());
    let grown = memory(&server).saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more");
    // Connections with a request were not closed.
    for mut stream in held.drain(..SLOW) {
        stream.write_all(rest.as_bytes()).unwrap();
        let answer = read_answer(&mut BufReader::new(stream)).json();
        assert_eq!(answer["result"]["content"][0]["text"], REDS);
    }
    eprintln!("{grown} KiB more with {CONNECTIONS} connections");
}

/// Everybody may send the form for the token. Many slow forms must not keep other clients from being served.
#[test]
fn slow_forms_keep_nobody_out() {
    allow_files();
    let server = HttpServer::start(colours, &["--page"]);
    let form = format!(
        "POST /login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: 4000\r\n\r\ntoken=",
        server.address
    );
    let held: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = server.connect();
            let _ = stream.write_all(form.as_bytes());
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(server.call("conversation_search", &json!({"query": "red"})), REDS);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(held);
}

/// Bodies that are sent slowly with the token leave connections to other requests.
#[test]
fn slow_bodies_keep_nobody_out() {
    allow_files();
    let server = HttpServer::start(colours, &[]);
    let begun = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{}\r\n{JSON}\r\n{ACCEPT}\r\nContent-Length: 4000\r\n\r\n{{",
        server.address,
        server.bearer()
    );
    let held: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = server.connect();
            let _ = stream.write_all(begun.as_bytes());
            stream
        })
        .collect();
    let asked = Instant::now();
    assert_eq!(server.ask("GET /healthz", &[], "").body, "ok\n");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    drop(held);
}

const MESSAGES: usize = 20_000;
const CLIENTS: usize = 64;
const CALLS: usize = 375;

/// The most messages of an answer.
const LIMIT: usize = 50;

const WORDS: [&str; 12] = [
    "amber", "azure", "beige", "coral", "ebony", "ivory", "lilac", "ochre", "pearl", "sepia",
    "Über", "色彩",
];

/// Returns the text of a message.
fn text_of(number: usize) -> String {
    let mut seed = number as u64 + 1;
    let mut word = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(seed >> 33) as usize % WORDS.len()]
    };
    format!("{} {} {number} {} {}", word(), word(), word(), word())
}

fn many_messages(path: &Path) {
    let mut connection = Connection::open(path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let transaction = connection.transaction().unwrap();
    transaction.execute("INSERT INTO conversations VALUES ('c', '1', '1', 'Colours')", []).unwrap();
    for number in 0..MESSAGES {
        let values = (number.to_string(), text_of(number), 1_700_000_000 + number as i64);
        let sql = "INSERT INTO messages VALUES (?1, 'c', 'user', ?2, ?3, NULL, ?3)";
        transaction.execute(sql, values).unwrap();
    }
    transaction.commit().unwrap();
}

/// A question, and the texts of SQLite's answer.
struct Asked {
    text: String,
    expected: Vec<String>,
}

fn questions(path: &Path) -> Vec<Asked> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT content FROM messages WHERE content LIKE '%' || ?1 || '%'
             ORDER BY position DESC LIMIT ?2",
        )
        .unwrap();
    let mut texts: Vec<String> = WORDS.iter().map(|word| word.to_uppercase()).collect();
    for number in (0..MESSAGES).step_by(MESSAGES / 100) {
        let text = text_of(number);
        texts.push(text.chars().skip(3).take(9).collect());
        texts.push(number.to_string());
        texts.push(text.replacen(' ', "_", 2));
    }
    texts.extend(["a", "%e%", "é", "never said", "色", "彩 "].map(str::to_owned));
    let ask = |text: String| {
        let rows = statement.query_map((text.trim(), LIMIT as i64), |row| row.get(0)).unwrap();
        let expected = rows.map(Result::unwrap).collect();
        Asked { text, expected }
    };
    texts.into_iter().map(ask).collect()
}

/// A client with one connection.
struct Client<'a> {
    server: &'a HttpServer,
    stream: BufReader<TcpStream>,
}

impl Client<'_> {
    fn send(&mut self, line: &str, body: &str) -> Answered {
        let (server, length) = (self.server, body.len());
        let text = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\n{}\r\n{JSON}\r\n{ACCEPT}\r\nContent-Length: {length}\r\n\r\n{body}",
            server.address,
            server.bearer()
        );
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        read_answer(&mut self.stream)
    }

    /// Returns the texts of the answer that the tool gives.
    fn by_tool(&mut self, text: &str) -> Vec<String> {
        let asked = call(1, "conversation_search", &json!({"query": text, "limit": LIMIT}));
        let answer = self.send("POST /mcp", &asked.to_string()).json();
        let answer = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let blocks = answer.split("\n\n---\n\n");
        blocks.filter_map(|block| Some(block.split_once('\n')?.1.to_owned())).collect()
    }

    /// Returns the texts of the answer of `/search`.
    fn by_search(&mut self, text: &str) -> Vec<String> {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let line = format!("GET /search?ignore-case=1&q={encoded}&limit={LIMIT}");
        let answer = self.send(&line, "").body;
        let lines = answer.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| Some(line["content"].as_str()?.to_owned())).collect()
    }
}

#[test]
#[ignore = "takes a minute"]
fn every_answer_to_many_clients_is_that_of_sqlite_and_memory_is_flat() {
    let server = HttpServer::start(many_messages, &[]);
    assert!(server.place.command(&["reindex"]).output().unwrap().status.success());
    let questions = questions(&server.place.db);
    let factor = env::var("VERBATIM_CASES").ok().and_then(|cases| cases.parse::<f64>().ok());
    let calls = (CALLS as f64 * factor.unwrap_or(1.0)).ceil() as usize;
    let (done, total) = (AtomicUsize::new(0), calls * CLIENTS);
    let mut samples = vec![(0, memory(&server))];
    let begun = Instant::now();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (server, questions, done) = (&server, &questions, &done);
                scope.spawn(move || {
                    let stream = BufReader::new(server.connect());
                    let mut client = Client { server, stream };
                    for turn in 0..calls {
                        let Asked { text, expected } =
                            &questions[(number * 7 + turn) % questions.len()];
                        let found = match (number + turn) % 3 {
                            0 => client.by_search(text),
                            _ => client.by_tool(text),
                        };
                        assert_eq!(&found, expected, "{text:?}");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        // A client that fails ends early, and the others go on to their end.
        while !clients.iter().all(|client| client.is_finished()) {
            thread::sleep(Duration::from_millis(20));
            let now = done.load(Ordering::Relaxed);
            if now >= samples.len() * total / 12 {
                samples.push((now, memory(&server)));
            }
        }
    });
    samples.push((total, memory(&server)));
    let rate = total as f64 / begun.elapsed().as_secs_f64();
    eprintln!("{total} calls, {rate:.0} a second; KiB after so many calls: {samples:?}");
    let third = samples.iter().find(|(calls, _)| *calls >= total / 3).unwrap().1;
    let end = samples.last().unwrap().1;
    assert!(end < third * 5 / 4 + 8_192, "memory grows: {samples:?}");
}
