//! Messages as lines of standard input and output.
//!
//! The transport of the crate rmcp drops a line that is not JSON, so the client waits for ever. It also
//! drops lines above 16 MB, and a last line without a line break. This transport answers all these lines.

use std::future::{self, Future};
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, mpsc as blocking};
use std::{convert::Infallible, thread, time::Duration};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage,
    ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use rmcp::{RoleServer, transport::Transport};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::batches::{Batch, Batches};
use super::resources::unknown_cursor;
use verbatim_base::lock::lock;
use verbatim_text::{content::mend_surrogates, snippet};

const READ_AHEAD: usize = 16;

/// How long calls may still run after the end of input.
const GRACE: Duration = Duration::from_secs(1);

const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

/// The fields that are read from a line with a number that is out of range.
#[derive(Deserialize)]
struct Envelope {
    id: Option<Value>,
}

pub(super) enum LineAction {
    Deliver(Box<ClientJsonRpcMessage>),
    Batch(Vec<Value>),
    Answer(Value),
    Ignore,
}

/// The transport of one session.
pub struct Lines {
    /// The messages for the session.
    pub incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: blocking::Sender<Vec<u8>>,
    /// Whether a request has begun the session; rmcp fails on a notification before such a request.
    has_begun: bool,
    /// A token that is cancelled when [`GRACE`] has passed after the end of input.
    is_over: CancellationToken,
    batches: Arc<Mutex<Batches>>,
}

pub(super) struct OutputThread(blocking::Receiver<Infallible>);

/// Returns a transport on standard input and output, and the thread that writes the output. Reading
/// and writing have their own threads, because a blocked read must not delay the end of the
/// program.
pub(super) fn standard(is_over: CancellationToken) -> (Lines, OutputThread) {
    let (input, lines, to_write) = connected(READ_AHEAD, is_over);
    let (_alive, done) = blocking::channel();
    thread::spawn(move || input.read(&mut io::stdin().lock()));
    thread::spawn(move || {
        let _alive = _alive;
        let mut out = io::stdout().lock();
        for line in to_write {
            if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
    });
    (lines, OutputThread(done))
}

/// Returns the reader of a session's input, the transport of the session, and the queue of output lines.
pub fn connected(
    read_ahead: usize,
    is_over: CancellationToken,
) -> (Input, Lines, blocking::Receiver<Vec<u8>>) {
    let (session, incoming) = mpsc::channel(read_ahead);
    let (outgoing, to_write) = blocking::channel();
    let batches = Arc::<Mutex<Batches>>::default();
    let input = Input { session, answers: outgoing.clone(), batches: batches.clone() };
    (input, Lines { incoming, outgoing, has_begun: false, is_over, batches }, to_write)
}

impl OutputThread {
    pub(super) fn finish(self, patience: Duration) {
        // The channel carries no data: it closes when the thread ends.
        let _ = self.0.recv_timeout(patience);
    }
}

/// The reader of the input. It delivers the messages of each line, or answers the line with an error.
pub struct Input {
    session: mpsc::Sender<ClientJsonRpcMessage>,
    answers: blocking::Sender<Vec<u8>>,
    batches: Arc<Mutex<Batches>>,
}

impl Input {
    /// Reads the input to its end.
    pub fn read(&self, input: &mut impl BufRead) {
        let mut bytes = Vec::new();
        while matches!(input.read_until(b'\n', &mut bytes), Ok(1..)) {
            let done = match parse(&bytes) {
                LineAction::Batch(items) => self.perform_batch(items),
                action => self.perform(action),
            };
            if done.is_none() {
                break;
            }
            bytes.clear();
        }
    }

    /// Performs the action of a message. Returns `None` if the session is over.
    fn perform(&self, action: LineAction) -> Option<()> {
        match action {
            LineAction::Deliver(message) => {
                let cancelled = cancelled(&message).cloned();
                self.session.blocking_send(*message).ok()?;
                // A cancelled request gets no answer, so its batch must not wait for an answer.
                if let Some(id) = cancelled {
                    let complete = lock(&self.batches).answer(&id, None);
                    complete.map_or(Some(()), |answer| self.answer(&answer))?;
                }
                Some(())
            }
            LineAction::Answer(answer) => self.answer(&answer),
            LineAction::Batch(_) | LineAction::Ignore => Some(()),
        }
    }

    fn answer(&self, answer: &Value) -> Option<()> {
        self.answers.send(format!("{answer}\n").into_bytes()).ok()
    }

    /// Delivers the messages of an array; if batches are not allowed, answers each request with an error.
    fn perform_batch(&self, items: Vec<Value>) -> Option<()> {
        if items.is_empty() {
            return self.perform(refused(Value::Null, INVALID_REQUEST, "an empty batch"));
        }
        if !lock(&self.batches).are_allowed {
            let problem = "this revision of the protocol has no batches: one message a line";
            let mut ids: Vec<Value> = items.iter().map(id).filter(|id| !id.is_null()).collect();
            if ids.is_empty() {
                ids.push(Value::Null);
            }
            return ids
                .into_iter()
                .try_for_each(|id| self.perform(refused(id, INVALID_REQUEST, problem)));
        }
        let mut batch = Batch::default();
        let mut messages = Vec::new();
        for item in items {
            match parse(item.to_string().as_bytes()) {
                LineAction::Deliver(message) => {
                    if let JsonRpcMessage::Request(request) = &*message
                        && (lock(&self.batches).holds(&request.id)
                            || !batch.waiting.insert(request.id.clone()))
                    {
                        let problem = "the id is that of another request of a batch";
                        batch.answers.push(refusal(id(&item), INVALID_REQUEST, problem));
                    } else {
                        messages.push(message);
                    }
                }
                LineAction::Answer(answer) => batch.answers.push(answer),
                LineAction::Batch(_) => {
                    let problem = "a batch within a batch";
                    batch.answers.push(refusal(Value::Null, INVALID_REQUEST, problem));
                }
                LineAction::Ignore => {}
            }
        }
        let complete = lock(&self.batches).begin(batch);
        complete.map_or(Some(()), |answer| self.answer(&answer))?;
        messages.into_iter().try_for_each(|message| self.perform(LineAction::Deliver(message)))
    }
}

fn cancelled(message: &ClientJsonRpcMessage) -> Option<&rmcp::model::RequestId> {
    match message {
        JsonRpcMessage::Notification(note) => match &note.notification {
            ClientNotification::CancelledNotification(note) => note.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn parse(bytes: &[u8]) -> LineAction {
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
        // serde would also accept a JSON array as the fields of a message.
        Ok(message) if !text.starts_with('[') => {
            return odd_cursor(&message, &text)
                .unwrap_or_else(|| LineAction::Deliver(Box::new(message)));
        }
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    // A line that is not a valid message is parsed again, to find the right error answer.
    match serde_json::from_str::<Value>(&text) {
        // A line with a number out of range is still JSON, and may be a request that can be answered.
        Err(error) => match serde_json::from_str::<Envelope>(&text) {
            Ok(Envelope { id: Some(envelope) }) => {
                refused(id(&json!({"id": envelope})), INVALID_PARAMS, &error.to_string())
            }
            _ => refused(Value::Null, PARSE_ERROR, &format!("the line is not JSON: {error}")),
        },
        Ok(Value::Array(items)) => LineAction::Batch(items),
        // A message with a method and without an id is a notification, which never gets an answer.
        Ok(json) if json.get("method").is_some() && json.get("id").is_none() => LineAction::Ignore,
        Ok(json) if id(&json).is_number() && !id(&json).is_i64() => {
            let problem = "the id is a text or a whole number from -2^63 to 2^63 - 1";
            refused(id(&json), INVALID_REQUEST, problem)
        }
        Ok(json) => refused(id(&json), INVALID_REQUEST, &problem),
    }
}

/// Returns the refusal of a request for a list whose cursor is not a text. The crate rmcp reads it as a request
/// without parameters.
fn odd_cursor(message: &ClientJsonRpcMessage, text: &str) -> Option<LineAction> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let has_params = match &request.request {
        ClientRequest::ListToolsRequest(list) => list.params.is_some(),
        ClientRequest::ListPromptsRequest(list) => list.params.is_some(),
        ClientRequest::ListResourcesRequest(list) => list.params.is_some(),
        ClientRequest::ListResourceTemplatesRequest(list) => list.params.is_some(),
        _ => true,
    };
    let json: Value = if has_params { None } else { serde_json::from_str(text).ok() }?;
    let cursor = json.pointer("/params/cursor").filter(|it| !it.is_null() && !it.is_string())?;
    let problem = unknown_cursor(&cursor.to_string()).message;
    Some(refused(id(&json), INVALID_PARAMS, &problem))
}

fn refused(id: Value, code: i64, message: &str) -> LineAction {
    LineAction::Answer(refusal(id, code, message))
}

pub(super) fn refusal(id: Value, code: i64, message: &str) -> Value {
    let message = snippet::echo(message);
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn id(json: &Value) -> Value {
    json.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default()
}

impl Lines {
    /// Returns the line for a message; `None` if the message waits for the rest of its batch.
    pub fn line(&mut self, message: &ServerJsonRpcMessage) -> serde_json::Result<Option<Vec<u8>>> {
        let mut batches = lock(&self.batches);
        let id = match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(begun) = &response.result {
                    batches.are_allowed = begun.protocol_version == ProtocolVersion::V_2025_03_26;
                }
                Some(&response.id)
            }
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        match id.filter(|id| batches.holds(id)) {
            None => serde_json::to_vec(message).map(Some),
            Some(id) => {
                let complete = batches.answer(id, Some(serde_json::to_value(message)?));
                complete.map(|answer| serde_json::to_vec(&answer)).transpose()
            }
        }
    }

    fn admits(&mut self, message: &ClientJsonRpcMessage) -> bool {
        if let JsonRpcMessage::Request(request) = message {
            self.has_begun |= begins(&request.request);
            return true;
        }
        self.has_begun
    }
}

/// Adds an explanation to rmcp's error for an unknown method, which is only the method's name.
fn explain(message: &mut ServerJsonRpcMessage) {
    if let JsonRpcMessage::Error(answer) = message
        && answer.error.code == ErrorCode::METHOD_NOT_FOUND
        && !answer.error.message.contains(' ')
    {
        let method = snippet::echo(&answer.error.message);
        let text = format!("this server has no method {method:?} in this revision of the protocol");
        answer.error.message = text.into();
    }
}

/// Returns whether a request begins a session in rmcp: `initialize`, or a request with a protocol version.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        _ => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        mut message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        explain(&mut message);
        let line = self.line(&message).map_err(io::Error::from);
        let sent = line.and_then(|line| {
            let Some(mut line) = line else { return Ok(()) };
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
        // After the end of input, rmcp still sends answers for five seconds. Searches must end earlier.
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
