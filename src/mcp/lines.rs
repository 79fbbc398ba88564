//! Messages as lines of standard input and output.
//!
//! rmcp's own transport drops a line that is not JSON, so that its sender waits for ever. It also drops
//! lines above 16 MB, and the last line if it has no line break. This transport answers all of them.

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

/// Messages read ahead of the session.
const READ_AHEAD: usize = 16;

/// How long calls may still run after the end of input.
const GRACE: Duration = Duration::from_secs(1);

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

enum LineAction {
    Deliver(Box<ClientJsonRpcMessage>),
    Answer(Value),
    Ignore,
}

/// The transport of one session.
pub(super) struct Lines {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: blocking::Sender<Vec<u8>>,
    /// Whether a request has come that can begin a session; rmcp fails on a notification before it.
    has_begun: bool,
    /// Cancelled [`GRACE`] after the end of input.
    is_over: CancellationToken,
}

pub(super) struct OutputThread(blocking::Receiver<Infallible>);

/// Returns a transport on standard input and output, and the thread that writes the output.
///
/// Reading and writing have threads of their own, because a blocked read must not keep the program
/// from ending.
pub(super) fn standard(is_over: CancellationToken) -> (Lines, OutputThread) {
    let (to_session, incoming) = mpsc::channel(READ_AHEAD);
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
    (Lines { incoming, outgoing, has_begun: false, is_over }, OutputThread(done))
}

impl OutputThread {
    /// Waits until all output is written, at most for `patience`.
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
            LineAction::Deliver(message) => session.blocking_send(*message).is_ok(),
            LineAction::Answer(answer) => answers.send(format!("{answer}\n").into_bytes()).is_ok(),
            LineAction::Ignore => true,
        };
        if !sent {
            break;
        }
        bytes.clear();
    }
}

fn parse(bytes: &[u8]) -> LineAction {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii();
    if bytes.is_empty() {
        return LineAction::Ignore;
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
    let problem = match serde_json::from_str(&text) {
        // serde would take a list for the fields of a message.
        Ok(message) if !text.starts_with('[') => return LineAction::Deliver(Box::new(message)),
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    // Only a line that is no message is parsed again, to answer it.
    match serde_json::from_str::<Value>(&text) {
        Err(error) => refused(Value::Null, PARSE_ERROR, &format!("the line is not JSON: {error}")),
        Ok(Value::Array(_)) => {
            refused(Value::Null, INVALID_REQUEST, "no batches here: one message a line")
        }
        // A message with a method and no id is a notification, and those are never answered.
        Ok(json) if json.get("method").is_some() && json.get("id").is_none() => LineAction::Ignore,
        Ok(json) => refused(id(&json), INVALID_REQUEST, &problem),
    }
}

fn refused(id: Value, code: i64, message: &str) -> LineAction {
    LineAction::Answer(
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
    )
}

fn id(json: &Value) -> Value {
    json.get("id").filter(|id| id.is_string() || id.is_i64()).cloned().unwrap_or_default()
}

impl Lines {
    /// Returns whether the session should see the message.
    fn admits(&mut self, message: &ClientJsonRpcMessage) -> bool {
        if let JsonRpcMessage::Request(request) = message {
            self.has_begun |= begins(&request.request);
            return true;
        }
        self.has_begun
    }
}

/// Returns whether the request begins a session in rmcp: `initialize`, or any that carries its version.
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
        // rmcp sends answers for five more seconds; nobody waits that long for a search.
        let is_over = self.is_over.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            is_over.cancel();
        });
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
