//! A server of standard input and output as a process, asked one line at a time.
#![allow(dead_code, reason = "not every binary needs it")]

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};

use serde_json::{Value, json};

/// A child that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.spawn().unwrap())
    }

    /// Searches for the messages that contain a text; returns the answer's text.
    pub(crate) fn ask(&mut self, query: &str) -> String {
        self.call("conversation_search", &json!({"query": query}))
    }

    /// Calls a tool; returns the answer's text.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
            {"name": tool, "arguments": arguments}});
        let answer = self.exchange(&call);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn process(&self) -> u32 {
        self.0.id()
    }

    /// Closes the input and waits for the end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        drop(self.0.stdin.take());
        self.0.wait().unwrap()
    }

    fn exchange(&mut self, message: &Value) -> Value {
        writeln!(self.0.stdin.as_mut().unwrap(), "{message}").unwrap();
        loop {
            // Reads one byte at a time, because the bytes after the line break belong to the next read.
            let mut line = Vec::new();
            let output = self.0.stdout.as_mut().unwrap();
            let mut byte = [0];
            while byte != *b"\n" {
                Read::read_exact(output, &mut byte).unwrap();
                line.push(byte[0]);
            }
            let answer: Value = serde_json::from_slice(&line).unwrap();
            // The server may send notifications before the answer.
            if answer["id"] == message["id"] {
                return answer;
            }
        }
    }

    pub(crate) fn initialize(&mut self) {
        self.exchange(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        let input = self.0.stdin.as_mut().unwrap();
        writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    }
}
