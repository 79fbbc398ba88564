//! The protocol over HTTP. The server keeps no sessions, because each request contains all that it needs.
//!
//! The crate rmcp answers the requests. This module reads the bodies as [`lines`](super::lines)
//! reads lines: invalid messages get an error answer, and batches are split.

use std::{sync::Arc, time::Duration};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use super::lines::{INVALID_REQUEST, LineAction, parse, refusal};
use super::session::{ClientSession, ServerState};
use crate::tools::{CHATGPT_CLIENT, Offer, Options};
use verbatim_engine::Engine;
use verbatim_text::content::mend_surrogates;

const MOST_BYTES: usize = 4 << 20;

const BODY_TIME: Duration = Duration::from_secs(60);

const MOST_MESSAGES: usize = 100;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The revision that has batches; clients of this revision send no version header.
const WITH_BATCHES: &str = "2025-03-26";

/// The media types in `Accept` that allow an answer in JSON.
const OF_JSON: [&str; 3] = ["application/json", "application/*", "*/*"];
const EVENT_STREAM: &str = "text/event-stream";

/// The value of `Accept` that rmcp requires.
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The fields of `_meta` for which messages come before the answer.
const ASK_FOR_MESSAGES: [&str; 2] = ["progressToken", "io.modelcontextprotocol/logLevel"];

type McpService = StreamableHttpService<ClientSession, LocalSessionManager>;

/// The services that answer requests, one for each kind of client. The `User-Agent` header tells
/// the kind, because a request does not contain the client's name.
#[derive(Clone)]
struct McpServices {
    usual: McpService,
    chatgpt: McpService,
}

/// Returns the router for MCP over HTTP. Calls end when `is_over` is cancelled. The caller must
/// check `Host`, `Origin` and the token first.
pub fn router(
    engine: Arc<Engine>,
    options: Options,
    offer: Offer,
    is_over: CancellationToken,
) -> MethodRouter {
    let shared = Arc::new(ServerState::new(engine, options, offer));
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MOST_BYTES)
        .with_cancellation_token(is_over.clone());
    let [usual, chatgpt] = [None, Some(CHATGPT_CLIENT)].map(|client| {
        let shared = shared.clone();
        let is_over = is_over.clone();
        McpService::new(
            move || Ok(ClientSession::of_request(shared.clone(), is_over.clone(), client)),
            Arc::default(),
            config.clone(),
        )
    });
    let services = McpServices { usual, chatgpt };
    any(answer).with_state(services)
}

async fn answer(State(services): State<McpServices>, request: Request) -> Response {
    let agent = request.headers().get(header::USER_AGENT).map(|agent| agent.as_bytes());
    let service = if agent.is_some_and(|agent| agent.starts_with(CHATGPT_CLIENT.as_bytes())) {
        services.chatgpt
    } else {
        services.usual
    };
    if request.method() != Method::POST {
        return forward(&service, request).await;
    }
    let (mut head, body) = request.into_parts();
    if !accepts(&head.headers, &OF_JSON) {
        let why = "this server answers in JSON: the header Accept must name application/json";
        return refused(StatusCode::NOT_ACCEPTABLE, why);
    }
    let takes_stream = accepts(&head.headers, &[EVENT_STREAM]);
    head.headers.insert(header::ACCEPT, BOTH);
    let body = match timeout(BODY_TIME, to_bytes(body, MOST_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) if !is_too_long(&head.headers) => {
            let why = "the body is cut short, or came too slowly";
            return refused(StatusCode::BAD_REQUEST, why);
        }
        Ok(Err(_)) => {
            let why = format!("the body is longer than {MOST_BYTES} bytes");
            return refused(StatusCode::PAYLOAD_TOO_LARGE, &why);
        }
        Err(_) => {
            let why = format!("the body did not come within {} s", BODY_TIME.as_secs());
            return refused(StatusCode::REQUEST_TIMEOUT, &why);
        }
    };
    match parse(&body) {
        LineAction::Deliver(_) => {
            // `parse` has just checked that the body is UTF-8.
            let text = mend_surrogates(&String::from_utf8_lossy(&body)).into_owned();
            let mut text = text.trim_start_matches('\u{FEFF}').to_owned();
            if !takes_stream && let Ok(mut message) = serde_json::from_str::<Value>(&text) {
                ask_for_no_messages(&mut message);
                text = message.to_string();
            }
            forward(&service, Request::from_parts(head, text.into())).await
        }
        LineAction::Batch(messages) => answer_batch(&service, &head, messages).await,
        LineAction::Answer(answer) => with_json(StatusCode::BAD_REQUEST, &answer),
        LineAction::Ignore if body.trim_ascii().is_empty() => {
            refused(StatusCode::BAD_REQUEST, "the body is empty; it must be one JSON-RPC message")
        }
        LineAction::Ignore => StatusCode::ACCEPTED.into_response(),
    }
}

async fn forward(service: &McpService, request: Request) -> Response {
    service.handle(request).await.map(Body::new)
}

/// Answers the messages of a batch concurrently, in one array.
async fn answer_batch(service: &McpService, head: &Parts, messages: Vec<Value>) -> Response {
    let why = match messages.len() {
        _ if !has_batches(&head.headers) => {
            "this revision of the protocol has no batches: one message a request"
        }
        0 => "an empty batch",
        1..=MOST_MESSAGES => "",
        _ => "a batch of more than 100 messages",
    };
    if !why.is_empty() {
        return refused(StatusCode::BAD_REQUEST, why);
    }
    let mut answers = Vec::new();
    let mut calls = JoinSet::new();
    for mut message in messages {
        ask_for_no_messages(&mut message);
        match parse(message.to_string().as_bytes()) {
            LineAction::Deliver(_) => {
                let service = service.clone();
                let mut request = Request::new(Body::empty());
                *request.method_mut() = head.method.clone();
                *request.headers_mut() = head.headers.clone();
                request.headers_mut().remove(header::CONTENT_LENGTH);
                *request.body_mut() = message.to_string().into();
                calls.spawn(async move {
                    let answer = forward(&service, request).await;
                    to_bytes(answer.into_body(), usize::MAX).await
                });
            }
            LineAction::Answer(answer) => answers.push(answer),
            LineAction::Batch(_) => {
                answers.push(refusal(Value::Null, INVALID_REQUEST, "a batch within a batch"));
            }
            LineAction::Ignore => {}
        }
    }
    // If the client disconnects, this future is dropped, and its calls stop.
    while let Some(answer) = calls.join_next().await {
        // A notification has no answer.
        if let Ok(Ok(bytes)) = answer
            && !bytes.is_empty()
        {
            let text = String::from_utf8_lossy(&bytes);
            answers.push(serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(text)));
        }
    }
    if answers.is_empty() {
        StatusCode::ACCEPTED.into_response()
    } else {
        with_json(StatusCode::OK, &Value::Array(answers))
    }
}

/// Returns whether `Accept` has one of some media types. Without the header, every type is accepted.
fn accepts(headers: &HeaderMap, types: &[&str]) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().peekable();
    let every = HeaderValue::from_static("*/*");
    let none = accepted.peek().is_none().then_some(&every);
    let entries =
        accepted.chain(none).filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    let mut entries = entries.map(|entry| entry.split(';').next().unwrap_or_default().trim());
    entries.any(|entry| types.iter().any(|kind| entry.eq_ignore_ascii_case(kind)))
}

/// Removes the fields that request messages before the answer, because an answer in plain JSON cannot contain
/// them.
fn ask_for_no_messages(message: &mut Value) {
    if let Some(meta) = message.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
        meta.retain(|name, _| !ASK_FOR_MESSAGES.contains(&name.as_str()));
    }
}

/// Returns whether a body is too long, or may be, because no header gives its length.
fn is_too_long(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.and_then(|length| length.parse::<usize>().ok()).is_none_or(|length| length > MOST_BYTES)
}

fn has_batches(headers: &HeaderMap) -> bool {
    headers.get(VERSION).is_none_or(|version| version == WITH_BATCHES)
}

fn refused(status: StatusCode, why: &str) -> Response {
    with_json(status, &refusal(Value::Null, INVALID_REQUEST, why))
}

fn with_json(status: StatusCode, answer: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
