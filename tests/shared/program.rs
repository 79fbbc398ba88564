//! The program as a process: commands, and a server driven by lines.
#![allow(dead_code, reason = "not every binary needs it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_engine::{Config, Engine};

/// A database with a home folder and an index folder of its own.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) db: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) index: PathBuf,
}

impl Place {
    /// Returns the paths of a database, a home and an index in a folder. Makes the home, because commands
    /// that read refuse a home that does not exist.
    pub(crate) fn in_folder(folder: &Path) -> Place {
        let home = folder.join("home");
        std::fs::create_dir_all(&home).expect("folders can be made");
        Place { db: folder.join("chats.db"), home, index: folder.join("index") }
    }

    /// Returns a new temporary folder, and the paths in it.
    pub(crate) fn temporary() -> (TempDir, Place) {
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        let place = Place::in_folder(folder.path());
        (folder, place)
    }

    /// Returns an engine in this process.
    pub(crate) fn engine(&self) -> Engine {
        Engine::new(Config {
            db: Some(self.db.clone().into()),
            home: self.home.clone(),
            index: Some(self.index.clone()),
            ..Config::default()
        })
    }

    /// Returns the program with a command, not yet started; `VERBATIM_PROGRAM` names another build.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let program = std::env::var_os("VERBATIM_PROGRAM");
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_verbatim").into());
        let mut command = Command::new(program);
        command.env_clear().env("VERBATIM_BACKGROUND", "0").args(arguments);
        command.arg("--db").arg(&self.db).arg("--home").arg(&self.home);
        command.env("VERBATIM_INDEX", &self.index);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A server that gets one request at a time; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Server {
    /// Starts `command` and initialises the session.
    pub(crate) fn start(command: &mut Command) -> Server {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server = Server { child, input, output, calls: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        server.ask("initialize", &hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("the server answers");
            let answer: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            // The server may send notifications before the answer.
            if answer["id"] == id {
                return answer["result"].clone();
            }
        }
    }

    /// Calls a tool; returns the text of its answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{tool} {arguments}: {result}")).to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
