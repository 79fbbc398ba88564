//! Starts a server as a client does, and sends it one search.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Server, is_named_verbatim};
use crate::cli::settings::environment::{Environment, variable_names};

/// How long a server may take to start and to answer.
const MAX_WAIT: Duration = Duration::from_secs(20);

const MAX_END: Duration = Duration::from_secs(2);

const MAX_LOG: u64 = 64 << 10;

/// The variables that a client passes on to a server. The other variables that this program reads
/// are not passed on, because they may be set only in this shell.
const OF_CLIENTS: [&str; 3] = ["PATH", "CLAUDE_CONFIG_DIR", "CODEX_HOME"];

/// Starts a server, sends `initialize` and one search, and stops the server. Returns the number of
/// its tools. The error text completes a sentence that begins with "it".
pub(crate) fn probe(server: &Server<'_>, environment: &Environment) -> Result<usize, String> {
    let (command, args) = server.command().ok_or("names no command")?;
    let mut process = Command::new(command);
    for variable in variable_names().filter(|name| !OF_CLIENTS.contains(name)) {
        process.env_remove(variable);
    }
    for (name, value) in server.variables().into_iter().flatten() {
        process.env(name, value.as_str().unwrap_or_default());
    }
    let is_watching = !args.contains(&"--no-watch");
    process.args(args);
    if is_named_verbatim(command) && is_watching {
        // Without this flag, the check would build an index. All other arguments are the client's.
        process.arg("--no-watch");
    }
    process.current_dir(environment.user_folder.as_deref().unwrap_or(Path::new("/")));
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = process.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let mut server = ServerConnection::begin(child);
    let outcome = server.search_once();
    drop(server.input.take());
    let status = server.wait_for_end();
    match outcome {
        Err(Failure::Ended) => {
            let log = server.log.join().unwrap_or_default();
            let mut said = log.lines().filter(|line| !line.trim().is_empty());
            // An error of the command line is on the first line. The last line would be only a hint.
            let error = said.clone().find(|line| line.starts_with("error: "));
            let last = error.or_else(|| said.next_back());
            let code = status.map(|code| format!(" with exit code {code}")).unwrap_or_default();
            let why = last.map(|line| format!(": {}", line.trim_start_matches("verbatim: ")));
            Err(format!("ends at once{code}{}", why.unwrap_or_default()))
        }
        Err(Failure::Said(text)) => Err(text),
        Ok(tools) => Ok(tools),
    }
}

struct ServerConnection {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: thread::JoinHandle<String>,
    deadline: Instant,
}

impl ServerConnection {
    fn begin(mut child: Child) -> ServerConnection {
        let input = child.stdin.take();
        let output = child.stdout.take().expect("standard output is piped");
        let errors = child.stderr.take().expect("standard error is piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for line in lines {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let log = thread::spawn(move || {
            let mut text = Vec::new();
            let mut errors = errors;
            let _ = errors.by_ref().take(MAX_LOG).read_to_end(&mut text);
            // The rest of the log is read and dropped, because a full pipe would block the server.
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
            String::from_utf8_lossy(&text).into_owned()
        });
        ServerConnection { child, input, lines, log, deadline: Instant::now() + MAX_WAIT }
    }

    fn search_once(&mut self) -> Result<usize, Failure> {
        let client = json!({"name": "verbatim doctor", "version": env!("CARGO_PKG_VERSION")});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.request(1, "initialize", hello)?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let listed = self.request(2, "tools/list", json!({}))?;
        let tools = listed["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let questions = [
            ("search", json!({"query": "the", "mode": "text", "limit": 1})),
            ("conversation_search", json!({"query": "the", "limit": 1})),
            ("query_conversations", json!({"mode": "list", "limit": 1})),
        ];
        let question = questions.into_iter().find(|(name, _)| names.contains(name));
        let Some((name, arguments)) = question else {
            if names.is_empty() {
                return Err(Failure::Said("starts a server without tools".to_owned()));
            }
            return Ok(names.len());
        };
        let answer =
            self.request(3, "tools/call", json!({"name": name, "arguments": arguments}))?;
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        let is_error = answer["isError"] == true || text.starts_with("Database not found");
        if is_error {
            return Err(Failure::Said(format!("starts, but a search fails: {}", first_line(text))));
        }
        Ok(names.len())
    }

    fn request(&mut self, id: u32, method: &str, params: Value) -> Result<Value, Failure> {
        // Output is read even if sending failed, because a server that ended may have written the reason.
        let _ = self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|error| match error {
                mpsc::RecvTimeoutError::Disconnected => Failure::Ended,
                mpsc::RecvTimeoutError::Timeout => Failure::Said(format!(
                    "does not answer {method} within {} seconds",
                    MAX_WAIT.as_secs()
                )),
            })?;
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else {
                let line = first_line(&line);
                return Err(Failure::Said(format!(
                    "writes something other than MCP messages: {line}"
                )));
            };
            if message["id"] != id {
                continue;
            }
            if let Some(text) = message["error"]["message"].as_str() {
                return Err(Failure::Said(format!("refuses {method}: {}", first_line(text))));
            }
            return Ok(message["result"].take());
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let input = self.input.as_mut().ok_or(Failure::Ended)?;
        writeln!(input, "{message}").and_then(|()| input.flush()).map_err(|_| Failure::Ended)
    }

    /// Waits for the server to end, and kills it after `MAX_END`. Returns the exit code.
    fn wait_for_end(&mut self) -> Option<i32> {
        let until = Instant::now() + MAX_END;
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

enum Failure {
    Ended,
    /// The server reported an error. The text completes a sentence that begins with "it".
    Said(String),
}

fn first_line(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    text.lines().next().unwrap_or_default().chars().take(MAX_CHARS).collect()
}
