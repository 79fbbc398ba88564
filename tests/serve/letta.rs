//! The texts that the documents tell users to paste, in the clients themselves if they are installed.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::corpus::{database, folder_with};
use crate::program::Server;

/// Runs the lines of a file against an HTTP server; prints the request that the server received.
const CATCH: &str = r#"
import http.server, json, sys, threading
import letta_client
from letta_client.types.create_stdio_mcp_server_param import CreateStdioMcpServerParam
from pydantic import ConfigDict, TypeAdapter

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(json.dumps({"path": self.path, "body": body}))
        answer = json.dumps({**body["config"], "server_name": body["server_name"], "id": "mcp-1"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        TypeAdapter(CreateStdioMcpServerParam).validate_python(body["config"], strict=True)
        unknown = set(body["config"]) - set(CreateStdioMcpServerParam.__annotations__)
        assert not unknown, unknown
    def log_message(self, *arguments):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
lines = open(sys.argv[1]).read()
address = "http://localhost:8283"
assert address in lines
exec(lines.replace(address, f"http://127.0.0.1:{server.server_port}"))
"#;

/// Returns the lines of the code block that contains a text.
fn pasted(text: &str) -> String {
    let readme = include_str!("../../docs/mcp.md");
    let block = readme.split("```").find(|block| block.contains(text));
    let block = block.unwrap_or_else(|| panic!("docs/mcp.md has no block with {text:?}"));
    block.split_once('\n').unwrap().1.to_owned()
}

#[test]
#[ignore = "needs letta-client for Python; PYTHON names the Python"]
fn the_lines_for_letta_run_in_its_client() {
    // A Python that has `letta-client`, such as that of a virtual environment.
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let (home, lines) = folder_with("lines.py");
    fs::write(&lines, pasted("letta_client")).unwrap();
    let output = Command::new(&python).args(["-c", CATCH]).arg(&lines).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let request: Value = serde_json::from_slice(&output.stdout).expect("one request");
    assert_eq!(request["path"], "/v1/mcp-servers/");
    assert_eq!(request["body"]["server_name"], "verbatim");
    let config = &request["body"]["config"];
    // Letta starts the program in this way: it splits each argument at spaces, and not the environment.
    let db = home.path().join("a folder with spaces/chats.db");
    fs::create_dir(db.parent().unwrap()).unwrap();
    drop(database(&db, &["red"]));
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home.path()).stderr(Stdio::null());
    for argument in config["args"].as_array().unwrap() {
        command.args(argument.as_str().unwrap().split(' '));
    }
    let path = db.to_str().unwrap();
    for (name, value) in config["env"].as_object().unwrap() {
        command.env(name, value.as_str().unwrap().replace("/path/to/chats.db", path));
    }
    let mut server = Server::start(&mut command);
    let found = server.call("conversation_search", &json!({"query": "red"}));
    assert_eq!(found, "[2023-11-14 22:13] user (conv: Colours)\nred");
}
