//! A server over HTTP as a process, and what it answers over raw sockets.
#![allow(dead_code, reason = "not every binary needs it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{corpus::database, program::Place};

/// Much longer than any step of these tests, so that a test that hangs fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server as a process, with a home of its own.
pub(crate) struct HttpServer {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) place: Place,
    pub(crate) log: PathBuf,
    pub(crate) folder: Option<TempDir>,
}

/// An answer: its status, its headers as they came, and its body.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl HttpServer {
    pub(crate) fn start(fill: impl FnOnce(&Path), flags: &[&str]) -> HttpServer {
        let (folder, place) = Place::temporary();
        fill(&place.db);
        let mut server = HttpServer::at(&place, &[&["--no-watch"], flags].concat());
        server.folder = Some(folder);
        server
    }

    /// Starts a server for a home that exists already.
    pub(crate) fn at(place: &Place, flags: &[&str]) -> HttpServer {
        let words = [&["serve", "--http", "127.0.0.1:0", "--no-archive"], flags].concat();
        HttpServer::run(place.command(&words), place)
    }

    /// Starts a server with a command whose home is that of a place.
    pub(crate) fn run(mut command: Command, place: &Place) -> HttpServer {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = place.home.with_file_name(format!("log-{number}"));
        let child = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        let port = loop {
            let text = fs::read_to_string(&log).unwrap();
            if let Some((_, rest)) = text.split_once("at http://127.0.0.1:") {
                break rest.split('/').next().unwrap().parse().unwrap();
            }
            assert!(Instant::now() < until, "the server does not start: {text}");
            thread::sleep(Duration::from_millis(20));
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let token = fs::read_to_string(place.home.join("token")).unwrap_or_default();
        let token = token.trim().to_owned();
        HttpServer { child, address, token, place: place.clone(), log, folder: None }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes unchanged; returns the answer to the first request in them.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answered {
        let mut stream = self.connect();
        // A server that refuses a request may close the connection before it has read everything.
        let _ = stream.write_all(bytes);
        read_answer(&mut BufReader::new(stream))
    }

    /// Sends a request with these headers beside `Host`, on a connection of its own.
    pub(crate) fn ask(&self, line: &str, headers: &[&str], body: &str) -> Answered {
        let mut text = format!("{line} HTTP/1.1\r\n");
        if !headers.iter().any(|header| header.to_lowercase().starts_with("host:")) {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        for header in headers {
            text.push_str(&format!("{header}\r\n"));
        }
        text.push_str(&format!(
            "Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ));
        self.raw(text.as_bytes())
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// Sends a message to `/mcp` with the token.
    pub(crate) fn mcp(&self, headers: &[&str], message: &Value) -> Answered {
        let bearer = self.bearer();
        let headers = [&[bearer.as_str(), JSON, ACCEPT], headers].concat();
        self.ask("POST /mcp", &headers, &message.to_string())
    }

    /// Calls a tool; returns the text of its answer.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> String {
        let answer = self.mcp(&[], &call(1, tool, arguments)).json();
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{tool} {arguments}: {answer}")).to_owned()
    }

    /// Calls a tool, like [`HttpServer::call`]; `None` if the server ends before it has answered.
    pub(crate) fn try_call(&self, message: &Value) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let (message, bearer) = (message.to_string(), self.bearer());
        let head =
            format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n{JSON}\r\n{ACCEPT}");
        let length = message.len();
        write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{message}").ok()?;
        let mut whole = String::new();
        let mut stream = BufReader::new(stream);
        let length: usize = loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                break length.trim().parse().expect("a number");
            }
        };
        while stream.read_line(&mut whole).ok()? > "\r\n".len() {}
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let answer: Value = serde_json::from_slice(&body).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str();
        Some(text.unwrap_or_else(|| panic!("{message}: {answer}\n{}", self.log())).to_owned())
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(self.folder.take());
    }
}

pub(crate) const JSON: &str = "Content-Type: application/json";
pub(crate) const ACCEPT: &str = "Accept: application/json, text/event-stream";

pub(crate) fn call(id: i64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
}

pub(crate) fn read_answer(stream: &mut impl BufRead) -> Answered {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            return Answered { status: 0, head, body: String::new() };
        }
    }
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut answer = Answered { status, head, body: String::new() };
    let mut body = Vec::new();
    if let Some(length) = answer.header("content-length") {
        body.resize(length.parse().unwrap(), 0);
        stream.read_exact(&mut body).unwrap();
    } else if answer.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).expect("the size of a chunk");
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).unwrap();
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }
    answer.body = String::from_utf8(body).unwrap();
    answer
}

pub(crate) fn colours(db: &Path) {
    drop(database(db, &["red", "green", "dark red"]));
}

/// The text of the answer to `red` over [`colours`].
pub(crate) const REDS: &str = "[2023-11-14 22:13] user (conv: Colours)\ndark red\n\n---\n\n\
                    [2023-11-14 22:13] user (conv: Colours)\nred";
