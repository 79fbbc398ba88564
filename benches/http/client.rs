//! The clients: one over HTTP with a connection that stays open, one over standard input and output.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A client over HTTP.
pub(crate) struct HttpClient {
    stream: BufReader<TcpStream>,
    /// The headers of every request.
    headers: String,
}

impl HttpClient {
    pub(crate) fn connect(address: SocketAddr, token: &str, accept: &str) -> Result<HttpClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let headers = format!(
            "Host: {address}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\
             Accept-Encoding: gzip\r\nContent-Type: application/json\r\n"
        );
        Ok(HttpClient { stream: BufReader::new(stream), headers })
    }

    /// Returns how many bytes the body of the answer has, as it was sent.
    pub(crate) fn get(&mut self, path: &str) -> Result<usize> {
        self.send(&format!("GET {path}"), "")
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<usize> {
        self.send(&format!("POST {path}"), body)
    }

    fn send(&mut self, line: &str, body: &str) -> Result<usize> {
        let (headers, length) = (&self.headers, body.len());
        let text = format!("{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        self.stream.get_mut().write_all(text.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(self.stream.read_line(&mut head)? > 0, "{line}: the connection was closed");
        }
        let head = head.to_ascii_lowercase();
        ensure!(head.starts_with("http/1.1 200"), "{line}: {head}");
        match head.lines().find_map(|line| line.strip_prefix("content-length:")) {
            Some(length) => {
                let mut body = vec![0; length.trim().parse()?];
                self.stream.read_exact(&mut body)?;
                Ok(body.len())
            }
            None => self.chunks(),
        }
    }

    fn chunks(&mut self) -> Result<usize> {
        let mut length = 0;
        loop {
            let mut size = String::new();
            self.stream.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).context("the size of a chunk")?;
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk)?;
            if size == 0 {
                return Ok(length);
            }
            length += size;
        }
    }
}

/// A server over standard input and output, and its client; killed when dropped.
pub(crate) struct StdioClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl StdioClient {
    pub(crate) fn start(command: &mut Command) -> Result<StdioClient> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("a pipe")?;
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut client = StdioClient { child, input, output };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}});
        client
            .ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))?;
        writeln!(client.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        Ok(client)
    }

    /// Sends a request, and waits for the answer.
    pub(crate) fn ask(&mut self, message: &Value) -> Result<()> {
        writeln!(self.input, "{message}")?;
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the server ended");
        Ok(())
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
