//! Messages as lines of standard input and output.
//!
//! rmcp's own transport drops a line that is no JSON, which leaves its sender waiting, and drops
//! lines above 16 MB and the last one without a line break. This one answers, and takes them.

use std::{
    convert::Infallible,
    future::{self, Future},
    io::{self, BufRead, Write},
    sync::mpsc as blocking,
    thread,
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion,
        ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::text::content::mend_surrogates;

/// Lines read ahead of the session.
const AHEAD: usize = 16;

/// How long calls may still work after the end of input.
const GRACE: Duration = Duration::from_secs(1);

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// What a line is to the session.
enum Line {
    Message(Box<ClientJsonRpcMessage>),
    Answer(Value),
    Nothing,
}

/// The transport of one session.
pub(super) struct Lines {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: blocking::Sender<Vec<u8>>,
    /// Whether a request came that can begin a session; rmcp gives up on notifications before it.
    begun: bool,
    /// Cancelled when calls at work have had their time after the end of input.
    over: CancellationToken,
}

/// The thread that writes.
pub(super) struct Writer(blocking::Receiver<Infallible>);

/// Returns a transport on standard input and output, and its writer.
///
/// Threads of their own do the reading and writing: a read that blocks must not keep the program
/// from ending.
pub(super) fn standard(over: CancellationToken) -> (Lines, Writer) {
    let (to_session, incoming) = mpsc::channel(AHEAD);
    let (outgoing, to_write) = blocking::channel::<Vec<u8>>();
    let (_alive, done) = blocking::channel();
    let answers = outgoing.clone();
    thread::spawn(move || read(&mut io::stdin().lock(), &to_session, &answers));
    thread::spawn(move || {
        let _alive = _alive;
        let mut out = io::stdout().lock();
        for line in to_write {
            if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
    });
    (Lines { incoming, outgoing, begun: false, over }, Writer(done))
}

impl Writer {
    /// Waits until everything is written, at most for `patience`.
    pub(super) fn finish(self, patience: Duration) {
        // Nothing is ever sent: the channel closes when the thread ends.
        let _ = self.0.recv_timeout(patience);
    }
}

fn read(
    input: &mut impl BufRead,
    session: &mpsc::Sender<ClientJsonRpcMessage>,
    answers: &blocking::Sender<Vec<u8>>,
) {
    let mut bytes = Vec::new();
    while matches!(input.read_until(b'\n', &mut bytes), Ok(1..)) {
        let sent = match parse(&bytes) {
            Line::Message(message) => session.blocking_send(*message).is_ok(),
            Line::Answer(answer) => answers.send(format!("{answer}\n").into_bytes()).is_ok(),
            Line::Nothing => true,
        };
        if !sent {
            break;
        }
        bytes.clear();
    }
}

fn parse(bytes: &[u8]) -> Line {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii();
    if bytes.is_empty() {
        return Line::Nothing;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let id = serde_json::from_str(&String::from_utf8_lossy(bytes)).map(|json| id(&json));
            let at = error.valid_up_to();
            let problem = format!("the line is not UTF-8 from byte {at} on");
            return refused(id.unwrap_or_default(), PARSE_ERROR, &problem);
        }
    };
    let text = mend_surrogates(text);
    let json: Value = match serde_json::from_str(&text) {
        Ok(json) => json,
        Err(error) => {
            return refused(Value::Null, PARSE_ERROR, &format!("the line is not JSON: {error}"));
        }
    };
    if json.is_array() {
        return refused(Value::Null, INVALID_REQUEST, "no batches here: one message a line");
    }
    match serde_json::from_str(&text) {
        Ok(message) => Line::Message(Box::new(message)),
        // What has a method and no id is a notification, and those are never answered.
        Err(_) if json.get("method").is_some() && json.get("id").is_none() => Line::Nothing,
        Err(error) => refused(id(&json), INVALID_REQUEST, &error.to_string()),
    }
}

fn refused(id: Value, code: i64, message: &str) -> Line {
    Line::Answer(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

fn id(json: &Value) -> Value {
    json.get("id").filter(|id| id.is_string() || id.is_i64()).cloned().unwrap_or_default()
}

impl Lines {
    /// Returns whether the session should see the message.
    fn admits(&mut self, message: &ClientJsonRpcMessage) -> bool {
        if let JsonRpcMessage::Request(request) = message {
            self.begun |= begins(&request.request);
            return true;
        }
        self.begun
    }
}

/// Returns whether rmcp begins a session at the request: `initialize`, or one that carries its version.
fn begins(request: &ClientRequest) -> bool {
    let carries_version = || {
        let meta = request.get_meta();
        meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
            && meta
                .protocol_version()
                .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
    };
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        _ => carries_version(),
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sent = serde_json::to_vec(&message).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.outgoing.send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
        });
        future::ready(sent)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        while let Some(message) = self.incoming.recv().await {
            if self.admits(&message) {
                return Some(message);
            }
        }
        // rmcp goes on sending answers for five seconds; a search may take longer than anyone waits.
        let over = self.over.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            over.cancel();
        });
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
