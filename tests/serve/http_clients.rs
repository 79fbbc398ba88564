//! Other programs over HTTP: the conformance suites of the protocol, the official clients and the
//! inspector. `.ci/run` installs them and runs these tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::{Value, json};

use crate::corpus::folder;
use crate::http_server::{HttpServer, REDS, colours};

/// Returns the folder with `node_modules` and a Python: `MCP_TOOLS` names another one.
fn tools() -> PathBuf {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/mcp");
    env::var_os("MCP_TOOLS").map_or(usual, PathBuf::from)
}

/// Runs a script of a package.
fn node(script: &str, words: &[&str]) -> Output {
    let tools = tools();
    let (node, home) = (tools.join("node_modules/.bin/node"), folder());
    let mut command = Command::new(node);
    command.arg(tools.join(script)).args(words).env("HOME", home.path()).current_dir(tools);
    command.output().expect("node is installed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The scenarios that do not apply, by the beginnings of their names, and the reasons.
const NOT_OFFERED: [(&str, &str); 13] = [
    ("tools-call-", "they call tools of the example server that the suite is made for"),
    ("json-schema-2020-12", "so does this one"),
    ("elicitation-", "so do these; no tool of ours asks the user back"),
    ("input-required-result-", "so do these"),
    ("prompts-get-", "they get prompts of the example server"),
    ("completion-complete", "arguments are not completed"),
    ("resources-read-", "they read resources of the example server"),
    ("resources-templates-read", "so does this one"),
    ("resources-subscribe", "resources cannot be subscribed to"),
    ("resources-unsubscribe", "resources cannot be subscribed to"),
    ("logging-set-level", "over HTTP there is no session that has a level"),
    ("tasks-", "an extension: calls take milliseconds and are no tasks"),
    ("http-custom-header-server-validation", "no argument of a tool is sent as a header too"),
];

/// Checks of other scenarios that need tools of the example server.
const UNTESTABLE: [&str; 4] = [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
];

/// Runs a conformance suite; returns how many checks our server passed.
fn conforms(package: &str) -> usize {
    let server = HttpServer::start(colours, &["--no-token"]);
    let url = format!("http://{}/mcp", server.address);
    let results = folder();
    let out = results.path().to_str().expect("a path");
    let script = format!("node_modules/{package}/dist/index.js");
    let output = node(&script, &["server", "--url", &url, "--suite", "all", "--output-dir", out]);
    let mut passed = 0;
    for entry in fs::read_dir(results.path()).expect("results") {
        let path = entry.expect("a result").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        // `server-NAME-TIME`
        let name = name.strip_prefix("server-").unwrap_or(&name);
        let name = &name[..name.len() - "-2026-01-01T00-00-00-000Z".len()];
        if NOT_OFFERED.iter().any(|(start, _)| name.starts_with(start)) {
            continue;
        }
        let checks = fs::read_to_string(path.join("checks.json")).expect("checks");
        let checks: Vec<Value> = serde_json::from_str(&checks).expect("JSON");
        for check in checks {
            let id = check["id"].as_str().expect("an id");
            if check["status"] == "FAILURE" {
                assert!(UNTESTABLE.contains(&id), "{package}, {name}: {check:#}");
            }
            passed += usize::from(check["status"] == "SUCCESS");
        }
    }
    assert!(passed > 0, "{}{}", text(&output.stdout), text(&output.stderr));
    passed
}

#[test]
#[ignore = "needs the conformance suites"]
fn the_conformance_suites_pass() {
    // The second one is the one for the newest revision of the protocol.
    for (package, least) in [("conformance", 7), ("conformance-next", 60)] {
        let passed = conforms(package);
        assert!(passed >= least, "{package}: {passed} checks");
    }
}

#[test]
#[ignore = "needs the inspector"]
fn the_inspector() {
    let server = HttpServer::start(colours, &[]);
    let url = format!("http://{}/mcp", server.address);
    let bearer = server.bearer();
    let ask = |words: &[&str]| -> Value {
        let script = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let start = ["--cli", &url, "--transport", "http", "--header", &bearer, "--method"];
        let output = node(script, &[&start, words].concat());
        let printed = text(&output.stdout);
        let answer = serde_json::from_str(&printed);
        answer.unwrap_or_else(|error| panic!("{error}: {printed}{}", text(&output.stderr)))
    };
    let listed = ask(&["tools/list"]);
    assert_eq!(listed["tools"].as_array().map(Vec::len), Some(5), "{listed}");
    let call = ["tools/call", "--tool-name", "conversation_search", "--tool-arg", "query=red"];
    assert_eq!(ask(&call)["content"][0]["text"], REDS);
    let resources = ask(&["resources/list"]);
    assert_eq!(resources["resources"][0]["uri"], "verbatim://conversation/conv-0001");
    assert_eq!(ask(&["prompts/list"])["prompts"].as_array().map(Vec::len), Some(3));
}

/// Runs lines of Python that use the official client.
#[test]
#[ignore = "needs mcp for Python; PYTHON names the Python"]
fn the_official_client_in_python() {
    let installed = tools().join("python/bin/python");
    let usual = if installed.exists() { installed.into() } else { OsString::from("python3") };
    let python = env::var_os("PYTHON").unwrap_or(usual);
    let server = HttpServer::start(colours, &[]);
    let output = Command::new(&python)
        .args(["-c", PYTHON_CLIENT])
        .arg(format!("http://{}/mcp", server.address))
        .arg(&server.token)
        .output()
        .unwrap();
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(text, json!([5, REDS]), "{errors}");
}

/// Runs lines of TypeScript's official client.
#[test]
#[ignore = "needs the SDK for TypeScript"]
fn the_official_client_in_typescript() {
    let tools = tools();
    let server = HttpServer::start(colours, &[]);
    let output = Command::new(tools.join("node_modules/.bin/node"))
        .args(["--input-type=module", "-e", TYPESCRIPT_CLIENT])
        .arg(format!("http://{}/mcp", server.address))
        .arg(&server.token)
        .current_dir(&tools)
        .output()
        .unwrap();
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(text, json!([5, [REDS]]), "{errors}");
}

const TYPESCRIPT_CLIENT: &str = r#"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const [url, token] = process.argv.slice(-2);
const headers = { Authorization: `Bearer ${token}` };
const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const { tools } = await client.listTools();
const call = () => client.callTool({ name: "conversation_search", arguments: { query: "red" } });
const answers = await Promise.all(Array.from({ length: 8 }, call));
const texts = [...new Set(answers.map((answer) => answer.content[0].text))];
console.log(JSON.stringify([tools.length, texts]));
await client.close();
"#;

const PYTHON_CLIENT: &str = r#"
import asyncio, json, sys
from mcp import ClientSession
try:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client
    def connect(url, headers):
        return streamable_http_client(url, http_client=httpx2.AsyncClient(headers=headers))
except ImportError:
    from mcp.client.streamable_http import streamablehttp_client
    def connect(url, headers):
        return streamablehttp_client(url, headers=headers)

async def ask(begin):
    headers = {"Authorization": "Bearer " + sys.argv[2]}
    async with connect(sys.argv[1], headers) as (read, write, *_):
        async with ClientSession(read, write) as session:
            await getattr(session, begin)()
            tools = await session.list_tools()
            answers = await asyncio.gather(
                *[session.call_tool("conversation_search", {"query": "red"}) for _ in range(8)])
            texts = {answer.content[0].text for answer in answers}
            assert len(texts) == 1, texts
            return [len(tools.tools), texts.pop()]

begins = [begin for begin in ["initialize", "discover"] if hasattr(ClientSession, begin)]
answers = [asyncio.run(ask(begin)) for begin in begins]
assert all(answer == answers[0] for answer in answers), answers
print(json.dumps(answers[0]))
"#;
