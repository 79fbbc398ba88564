//! The program on a cluster: over standard input and output, over HTTP, and as a page.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::{Cell, Content, Database, Message, Schema};
use crate::nodes::{AllNodes, nodes};
use crate::program::{Place, Server};
use crate::{import, new_name};

/// A server over HTTP, killed when dropped.
pub(crate) struct HttpServer {
    child: Child,
    root: String,
    token: String,
    agent: ureq::Agent,
    folder: TempDir,
}

impl HttpServer {
    /// Starts the server in a folder of its own; it knows the password of a cluster.
    pub(crate) fn start(db: PathBuf) -> HttpServer {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place { db, ..Place::in_folder(folder.path()) };
        let log = folder.path().join("log");
        let words = ["serve", "--http", "127.0.0.1:0", "--no-archive", "--no-watch", "--page"];
        let stderr = fs::File::create(&log).expect("a log");
        let mut command = place.command(&words);
        command.current_dir(folder.path()).env("VERBATIM_CLUSTER_LOGIN", "me:seCret");
        let child = command.stdout(Stdio::null()).stderr(stderr).spawn();
        let child = child.expect("the program starts");
        let begun = Instant::now();
        let port = loop {
            let text = fs::read_to_string(&log).expect("a log");
            if let Some((_, rest)) = text.split_once("at http://127.0.0.1:") {
                break rest.split('/').next().expect("a port").to_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not start: {text}");
            thread::sleep(Duration::from_millis(20));
        };
        let token = fs::read_to_string(place.home.join("token")).unwrap_or_default();
        let agent = ureq::Agent::config_builder().proxy(None).build().into();
        let root = format!("http://127.0.0.1:{port}");
        HttpServer { child, root, token: token.trim().to_owned(), agent, folder }
    }

    /// The working folder of the server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn post(&self, path: &str, body: &str) {
        let request = self.agent.post(format!("{}{path}", self.root));
        let request = request.header("authorization", format!("Bearer {}", self.token));
        request.send(body).expect("an answer");
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let request = self.agent.get(format!("{}{path}", self.root));
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let mut answer = request.call().expect("an answer");
        answer.body_mut().read_to_string().expect("a text")
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> String {
        let request = self.agent.post(format!("{}/mcp", self.root));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let mut answer = request
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .send(message.to_string())
            .expect("an answer");
        let text = answer.body_mut().read_to_string().expect("a text");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{tool} {arguments}: {answer}")).to_owned()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn database() -> Database {
    let texts = ["red", "green", "dark red", "café au lait", "100 % red"];
    let message = |(n, text): (usize, &&str)| Message {
        conversation: n % 2,
        role: if n % 2 == 0 { "user" } else { "assistant" }.into(),
        content: Content::Stored(Cell::from(*text)),
        time: n,
        position: Some(n as i64),
    };
    let messages: Vec<Message> = texts.iter().enumerate().map(message).collect();
    Database::of(Schema::Typed, &["Colours".into(), "Coffee".into()], &messages)
}

/// The questions that are asked, and what each answer has.
fn questions() -> [(&'static str, Value, &'static str); 6] {
    [
        ("conversation_search", json!({"query": "RED"}), "dark red"),
        ("conversation_search", json!({"query": "100 _ r_d"}), "100 % red"),
        ("conversation_search", json!({"query": "red", "roles": ["user"], "limit": 1}), "red"),
        ("search", json!({"query": "red", "mode": "text"}), "dark red"),
        ("query_conversations", json!({"mode": "list"}), "Coffee"),
        ("query_conversations", json!({"mode": "search", "query": "dark red"}), "Colours"),
    ]
}

#[test]
fn every_face_answers_from_a_cluster_and_all_servers_alike() {
    let Some(nodes) = nodes() else { return };
    let _all = AllNodes::enter();
    let (database, index) = (database(), new_name());
    import(nodes, &database.path(), &index);
    let address = nodes.address(&index);
    let folder = tempfile::tempdir().expect("a folder");
    let stdio = |db: PathBuf, name: &str| {
        let place = Place { db, ..Place::in_folder(&folder.path().join(name)) };
        fs::create_dir_all(&place.home).expect("a home");
        Server::start(&mut place.command(&["serve", "--no-archive", "--no-watch"]))
    };
    let mut by_cluster = stdio(address.clone(), "cluster");
    let mut by_file = stdio(database.path(), "file");
    let servers = [HttpServer::start(address.clone()), HttpServer::start(address)];
    for (tool, arguments, expected) in questions() {
        let answer = by_cluster.call(tool, &arguments);
        assert!(answer.contains(expected), "{tool} {arguments}: {answer}");
        if tool == "conversation_search" {
            assert_eq!(answer, by_file.call(tool, &arguments), "{arguments}");
        }
        for server in &servers {
            assert_eq!(answer, server.call(tool, &arguments), "{tool} {arguments}");
        }
    }
    let found = servers.each_ref().map(|server| server.get("/search?q=dark+red"));
    assert!(found[0].contains("dark red"), "{}", found[0]);
    assert_eq!(found[0].lines().count(), found[1].lines().count());
    for path in ["/", "/results?q=dark+red"] {
        assert!(servers[0].get(path).contains("Colours"), "{path}");
    }
    drop((by_cluster, by_file, servers));
    nodes.remove(&index);
}
