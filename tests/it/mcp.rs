//! The server over standard input and output: driven by rmcp's client, and by raw lines.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientRequest, Request},
    service::PeerRequestOptions,
    transport::TokioChildProcess,
};
use serde_json::{Value, json};
use verbatim_search::tools;

use crate::corpus::{database, folder};

fn program(db: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command
        .env_clear()
        .arg("serve")
        // The slow search must stay slow.
        .arg("--no-watch")
        .arg("--db")
        .arg(db)
        .arg("--index")
        .arg(db.with_extension("index"));
    command
}

/// A server driven by lines.
struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Raw {
    fn start(command: &mut Command) -> Raw {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Raw { child, input, output }
    }

    fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(message.to_string().as_bytes());
        self.receive()
    }

    fn initialize(&mut self) {
        let answer = self.ask(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(answer["result"]["serverInfo"]["name"], "verbatim");
        assert_eq!(answer["result"]["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    /// Closes the input; returns how long the program took to end. It must succeed.
    fn end(mut self) -> Duration {
        drop(self.input.take());
        let begun = Instant::now();
        assert!(self.child.wait().unwrap().success());
        begun.elapsed()
    }
}

fn call(id: i64, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "conversation_search", "arguments": arguments}})
}

fn text(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

/// Makes a database over which a search takes seconds.
pub(crate) fn large(path: &Path) {
    let connection = database(path, &[]);
    connection
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO messages SELECT 'm' || i, 'conv-0001', 'user', hex(zeroblob(5000)), i, NULL, i FROM n",
        )
        .unwrap();
}

/// Far less than [`slow`] takes on [`large`] (some minutes), and long enough for a busy machine.
const SOON: Duration = Duration::from_secs(40);

/// A query that LIKE must try at every character of every message.
pub(crate) fn slow() -> Value {
    json!({"query": format!("{}1", "0".repeat(400))})
}

#[test]
fn the_client_of_rmcp_lists_and_calls() {
    let home = folder();
    let path = home.path().join("a.db");
    drop(database(&path, &["red", "green", "dark red"]));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let process =
            TokioChildProcess::new(tokio::process::Command::from(program(&path))).unwrap();
        let client = ().serve(process).await.unwrap();
        let info = client.peer_info().unwrap();
        assert_eq!(info.server_info.as_ref().unwrap().name, "verbatim");
        let listed = client.list_all_tools().await.unwrap();
        assert_eq!(
            listed.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(),
            tools::ALL.iter().map(|tool| tool.name).collect::<Vec<_>>()
        );
        let golden = serde_json::to_string_pretty(&listed).unwrap() + "\n";
        crate::golden("mcp/tools.json", &golden);
        let arguments = json!({"query": "red"}).as_object().cloned().unwrap();
        let ask = CallToolRequestParams::new("conversation_search").with_arguments(arguments);
        let calls = (0..20).map(|_| client.call_tool(ask.clone()));
        for answer in futures(calls).await {
            let answer = serde_json::to_value(answer.unwrap()).unwrap();
            assert_eq!(
                answer["content"][0]["text"],
                "[2023-11-14 22:13] user (conv: Colours)\ndark red\n\n---\n\n\
                 [2023-11-14 22:13] user (conv: Colours)\nred"
            );
        }
        let unknown = client.call_tool(CallToolRequestParams::new("colour_search")).await;
        assert!(unknown.unwrap_err().to_string().contains("colour_search"));
        client.cancel().await.unwrap();
    });
}

/// Runs futures concurrently.
async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[test]
fn a_cancelled_call_ends_its_query() {
    let home = folder();
    let path = home.path().join("a.db");
    large(&path);
    let mut server = Raw::start(&mut program(&path));
    server.initialize();
    // As many as may run concurrently: the next call runs only if these end.
    for id in 0..8 {
        server.send(call(id, &slow()).to_string().as_bytes());
    }
    std::thread::sleep(Duration::from_millis(100));
    for id in 0..8 {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        server.send(cancel.to_string().as_bytes());
    }
    let begun = Instant::now();
    let answer = server.ask(&call(9, &json!({"query": "no such", "roles": ["tool"]})));
    assert_eq!((answer["id"].as_i64(), text(&answer)), (Some(9), "No matching messages."));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(server.end() < SOON);
}

#[test]
fn the_end_of_input_ends_the_server() {
    let home = folder();
    let path = home.path().join("a.db");
    large(&path);
    assert!(Raw::start(&mut program(&path)).end() < SOON);
    let mut server = Raw::start(&mut program(&path));
    server.initialize();
    server.send(call(1, &slow()).to_string().as_bytes());
    std::thread::sleep(Duration::from_millis(100));
    let took = server.end();
    assert!(took < SOON, "{took:?} with a search at work");
}

#[test]
fn answers_that_are_due_come_after_the_end_of_input() {
    let home = folder();
    let path = home.path().join("a.db");
    drop(database(&path, &["red"]));
    let mut server = Raw::start(&mut program(&path));
    server.initialize();
    // The last line has no line break.
    let last = call(1, &json!({}));
    server.input.take().unwrap().write_all(last.to_string().as_bytes()).unwrap();
    let answer = server.receive();
    assert!(text(&answer).ends_with("\nred"));
    assert!(server.end() < SOON, "nothing is due any more");
}

#[test]
fn the_newest_revision_needs_no_initialize() {
    let home = folder();
    let path = home.path().join("a.db");
    drop(database(&path, &["red"]));
    let mut server = Raw::start(&mut program(&path));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    // Responses without a request must not end the server.
    server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    server.send(br#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
    let bare = server.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list"}));
    assert_eq!((&bare["id"], &bare["error"]["code"]), (&json!(0), &json!(-32602)), "{bare}");
    server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let found = server.ask(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}),
    );
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")),
        "{found}"
    );
    let listed = server.ask(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}}),
    );
    assert_eq!(listed["result"]["tools"][0]["name"], "conversation_search", "{listed}");
    let mut ask = call(3, &json!({"query": "red"}));
    ask["params"]["_meta"] = meta;
    let answer = server.ask(&ask);
    assert_eq!(text(&answer), "[2023-11-14 22:13] user (conv: Colours)\nred");
    server.end();
}

#[test]
fn lines_that_are_wrong_are_answered() {
    let home = folder();
    let path = home.path().join("a.db");
    drop(database(&path, &["red \u{fffd}"]));
    let mut server = Raw::start(&mut program(&path));
    server.initialize();
    for (line, code, id) in [
        (&b"{\"jsonrpc\""[..], -32700, Value::Null),
        (b"no JSON", -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}", -32700, json!(5)),
        (b"[]", -32600, Value::Null),
        (b"5", -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":6}"#, -32600, json!(6)),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":7,"method":"colours/list"}"#, -32601, json!(7)),
        (br#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"conversation_search","arguments":[]}}"#, -32602, json!(8)),
        (br#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}"#, -32602, json!(9)),
        (br#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"colour_search"}}"#, -32602, json!(10)),
    ] {
        server.send(line);
        let answer = server.receive();
        let line = String::from_utf8_lossy(line);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
    }
    // Notifications are never answered, valid or not; blank lines are skipped.
    server.send(br#"{"jsonrpc":"2.0","method":"notifications/colours","params":5}"#);
    server.send(b" \r");
    let lone = br#"{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"conversation_search","arguments":{"query":"red \ud83d"}}}"#;
    server.send(lone);
    let answer = server.receive();
    assert!(text(&answer).ends_with("red \u{fffd}"), "{answer}");
    // A line above rmcp's 16 MB.
    let answer = server.ask(&call(12, &json!({"query": "x".repeat(17 << 20)})));
    assert!(text(&answer).starts_with("Error: query is too long: 17825794 bytes"), "{answer}");
    let answer = server.ask(&call(13, &json!({"query": "a\0b"})));
    assert!(text(&answer).starts_with("Error: query contains a NUL character"), "{answer}");
    server.end();
}

#[test]
fn only_the_tools_named_are_offered() {
    let path = PathBuf::from("nowhere.db");
    let mut server = Raw::start(program(&path).env("VERBATIM_TOOLS", "conversation_search"));
    server.initialize();
    let answer = server.ask(&call(1, &json!({})));
    assert_eq!(text(&answer), "Database not found: nowhere.db");
    server.end();
    let refused = program(&path).args(["--tools", "conversation_search,colours"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(
        message.contains("\"colours\"") && message.contains("conversation_search"),
        "{message}"
    );
}

#[test]
fn a_client_that_gives_up_is_heard() {
    let home = folder();
    let path = home.path().join("a.db");
    large(&path);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let process =
            TokioChildProcess::new(tokio::process::Command::from(program(&path))).unwrap();
        let client = ().serve(process).await.unwrap();
        let ask = CallToolRequestParams::new("conversation_search")
            .with_arguments(slow().as_object().cloned().unwrap());
        let request = ClientRequest::CallToolRequest(Request::new(ask));
        let mut options = PeerRequestOptions::no_options();
        options.timeout = Some(Duration::from_millis(100));
        let call = client.send_request_with_option(request, options).await.unwrap();
        assert!(call.await_response().await.is_err());
        client.cancel().await.unwrap();
    });
}
