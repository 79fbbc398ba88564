//! Sends requests to a cluster.
//!
//! This is a plain HTTP client. There are only about ten kinds of requests, and each answer is checked
//! completely, including shards and single items. The official client would add a second TLS library and an
//! asynchronous runtime to this library, which uses threads.
//!
//! Invariant: a password or key is only in the header of requests, and never in an error.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, fs};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::address::Address;
use super::error::{Error, Result};
use verbatim_base::call::Stop;

const QUESTION_TIMEOUT: Duration = Duration::from_secs(60);

const IMPORT_TIMEOUT: Duration = Duration::from_secs(300);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which a failing request for a question is repeated.
const QUESTION_PATIENCE: Duration = Duration::from_secs(10);

/// The time for which a failing request of an import is repeated: long enough for another node to take over.
const IMPORT_PATIENCE: Duration = Duration::from_secs(90);

/// The pause before the first repetition of a request. The pause doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The number of idle connections kept per host: one for each concurrent question.
const MOST_CONNECTIONS: usize = 64;

const MOST_BYTES: u64 = 2 << 30;

/// The maximum number of characters of an error's text that are shown.
const MOST_SHOWN: usize = 300;

/// The credentials for a cluster.
#[derive(Clone, Default)]
pub struct Access {
    /// `user:password`, or `ApiKey KEY`.
    pub login: Option<String>,
    /// The file of the trusted certificates. No other certificates are trusted.
    pub ca: Option<PathBuf>,
}

impl Access {
    fn header(&self) -> Option<String> {
        let login = self.login.as_deref()?;
        let is_key = login.starts_with("ApiKey ") || login.starts_with("Bearer ");
        Some(if is_key { login.to_owned() } else { format!("Basic {}", STANDARD.encode(login)) })
    }
}

#[derive(Clone, Debug)]
pub(super) struct HttpRequest {
    /// The action of the request, for errors such as "cannot …".
    pub(super) what: &'static str,
    pub(super) method: &'static str,
    /// The path after the host, with `/`.
    pub(super) path: String,
    pub(super) body: Option<Arc<String>>,
    /// Whether the request is part of an import. Such a request may take longer.
    pub(super) is_import: bool,
}

impl HttpRequest {
    pub(super) fn get(what: &'static str, path: String) -> HttpRequest {
        HttpRequest { what, method: "GET", path, body: None, is_import: false }
    }

    pub(super) fn import(what: &'static str, method: &'static str, path: String) -> HttpRequest {
        HttpRequest { what, method, path, body: None, is_import: true }
    }

    pub(super) fn with(self, body: &Value) -> HttpRequest {
        self.with_text(body.to_string())
    }

    pub(super) fn with_text(self, body: impl Into<Arc<String>>) -> HttpRequest {
        HttpRequest { body: Some(body.into()), ..self }
    }
}

/// A client that sends requests to the hosts of an address.
#[derive(Clone)]
pub struct Client {
    address: Arc<Address>,
    roots: Arc<Vec<String>>,
    header: Option<String>,
    agent: ureq::Agent,
    host: Arc<AtomicUsize>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

enum Attempt {
    Answer(u16, Vec<u8>),
    /// The host did not answer. Another host or a later attempt may succeed.
    Absent(String),
    /// Every further attempt would fail too.
    Hopeless(String),
}

impl Client {
    /// Returns a client. Sends no request yet.
    pub(crate) fn new(address: Address, access: Access) -> Result<Client> {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could send the password to another server.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(4 * MOST_CONNECTIONS)
            .max_idle_connections_per_host(MOST_CONNECTIONS)
            .user_agent(concat!("verbatim/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT));
        if address.is_here() {
            config = config.proxy(None);
        }
        if let Some(file) = &access.ca {
            let wrong = |why: String| Error::Failed {
                address: file.display().to_string(),
                what: "read the trusted certificates",
                why,
            };
            let pem = fs::read(file).map_err(|error| wrong(error.to_string()))?;
            let certificates = parse_pem(&pem).filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            });
            let certificates: Vec<_> = certificates.collect();
            if certificates.is_empty() {
                return Err(wrong("there is no certificate in it; it must be a PEM file".into()));
            }
            let roots = RootCerts::new_with_certs(&certificates);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Client {
            roots: Arc::new(address.roots()),
            header: access.header(),
            agent: config.build().into(),
            host: Arc::default(),
            address: Arc::new(address),
        })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn failed(&self, what: &'static str, why: impl Into<String>) -> Error {
        Error::Failed { address: self.address.to_string(), what, why: why.into() }
    }

    pub(super) fn foreign(&self, reason: impl Into<String>) -> Error {
        Error::Foreign { address: self.address.to_string(), reason: reason.into() }
    }

    pub(super) fn refused(&self, reason: impl Into<String>) -> Error {
        Error::Refused { address: self.address.to_string(), reason: reason.into() }
    }

    /// Sends a request and reads the answer. Fails if the index does not exist.
    pub(super) fn ask<T: DeserializeOwned>(&self, call: HttpRequest, stop: &Stop) -> Result<T> {
        let what = call.what;
        self.find(call, stop)?.ok_or_else(|| self.failed(what, "the index is not there"))
    }

    /// Sends a request and reads the answer. Returns `None` if the status is 404.
    pub(super) fn find<T: DeserializeOwned>(
        &self,
        call: HttpRequest,
        stop: &Stop,
    ) -> Result<Option<T>> {
        let what = call.what;
        let (status, body) = self.send(&call, stop)?;
        match status {
            200..=299 => match serde_json::from_slice(&body) {
                Ok(answer) => Ok(Some(answer)),
                Err(error) => {
                    Err(self.failed(what, format!("its answer is not readable: {error}")))
                }
            },
            404 => Ok(None),
            status => Err(self.failed(what, self.said(status, &body))),
        }
    }

    /// Sends a request, and repeats it until it is answered or the time for repetitions is over.
    fn send(&self, call: &HttpRequest, stop: &Stop) -> Result<(u16, Vec<u8>)> {
        let patience = if call.is_import { IMPORT_PATIENCE } else { QUESTION_PATIENCE };
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut failed = 0;
        loop {
            let why = match self.attempt(call, stop)? {
                Attempt::Answer(429, body) if is_full(&reason(&body)) => {
                    return Err(self.failed(call.what, full(&reason(&body))));
                }
                Attempt::Answer(429 | 502 | 503 | 504, body) if begun.elapsed() >= patience => {
                    let why = format!("it is too busy: {}", reason(&body));
                    return Err(self.failed(call.what, why));
                }
                Attempt::Answer(status @ (429 | 502 | 503 | 504), body) => {
                    format!("status {status}: {}", reason(&body))
                }
                Attempt::Answer(status, body) => return Ok((status, body)),
                Attempt::Hopeless(why) => return Err(self.failed(call.what, why)),
                Attempt::Absent(why) => {
                    self.host.fetch_add(1, Ordering::Relaxed);
                    why
                }
            };
            failed += 1;
            if begun.elapsed() >= patience {
                return Err(self.failed(call.what, format!("{why} (tried {failed} times)")));
            }
            // The other hosts are tried without a pause.
            if failed % self.roots.len() == 0 {
                stop.pause(pause, Error::Stopped)?;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Waits between the attempt with this number and the next attempt.
    pub(super) fn pause(&self, attempt: u32, stop: &Stop) -> Result<()> {
        stop.pause((FIRST_PAUSE * attempt * attempt).min(LONGEST_PAUSE), Error::Stopped)
    }

    /// Sends a request once, and waits for its answer or for a stop request.
    fn attempt(&self, call: &HttpRequest, stop: &Stop) -> Result<Attempt> {
        let host = self.host.load(Ordering::Relaxed) % self.roots.len();
        let url = format!("{}{}", self.roots[host], call.path);
        let agent = self.agent.clone();
        let header = self.header.clone();
        let call = call.clone();
        let attempt =
            stop.wait_for(move || exchange(&agent, &url, header, &call), Error::Stopped)?;
        Ok(attempt.unwrap_or_else(|| Attempt::Hopeless("the request broke off".to_owned())))
    }

    fn said(&self, status: u16, body: &[u8]) -> String {
        match status {
            401 if self.header.is_none() => {
                "it requires a password; put user:password, or ApiKey KEY, into \
                 VERBATIM_CLUSTER_LOGIN"
                    .to_owned()
            }
            401 => "it does not know the user and password, or the key (status 401)".to_owned(),
            403 => format!("the user may not do this (status 403): {}", reason(body)),
            _ => format!("status {status}: {}", reason(body)),
        }
    }
}

fn reason(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct ErrorAnswer {
        error: Value,
    }
    let text = match serde_json::from_slice(body) {
        Ok(ErrorAnswer { error: Value::String(text) }) => text,
        Ok(ErrorAnswer { error }) => {
            let cause = &error["failed_shards"][0]["reason"]["reason"];
            let why = cause.as_str().or(error["reason"].as_str()).unwrap_or_default();
            format!("{} ({})", why, error["type"].as_str().unwrap_or("unknown"))
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    shown(&text)
}

/// Returns whether the cluster refuses all writes because the disk of a node is full. This state can last for
/// days.
pub(super) fn is_full(reason: &str) -> bool {
    reason.contains("read-only-allow-delete")
}

/// Returns an explanation of an error for which `is_full` is true.
pub(super) fn full(reason: &str) -> String {
    format!("the disk of a node is nearly full; make room there, then do it again: {reason}")
}

/// Returns the beginning of a text from a cluster, in one line.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn exchange(agent: &ureq::Agent, url: &str, header: Option<String>, call: &HttpRequest) -> Attempt {
    let timeout = if call.is_import { IMPORT_TIMEOUT } else { QUESTION_TIMEOUT };
    let mut request = ureq::http::Request::builder().method(call.method).uri(url);
    if let Some(header) = header {
        request = request.header("authorization", header);
    }
    if call.body.is_some() {
        let kind = if call.path.contains("_bulk") { "x-ndjson" } else { "json" };
        request = request.header("content-type", format!("application/{kind}"));
    }
    let body = call.body.as_ref().map(|body| body.as_bytes()).unwrap_or_default();
    // The text of the error is not shown: it might contain the header.
    let Ok(request) = request.body(body) else {
        return Attempt::Hopeless("the password or address has forbidden characters".to_owned());
    };
    let config = agent.configure_request(request).timeout_global(Some(timeout));
    let request = config.allow_non_standard_methods(true).build();
    let mut response = match agent.run(request) {
        Ok(response) => response,
        Err(error) => return unsent(&error, timeout),
    };
    let status = response.status().as_u16();
    match response.body_mut().with_config().limit(MOST_BYTES).read_to_vec() {
        Ok(bytes) => Attempt::Answer(status, bytes),
        Err(error) => unsent(&error, timeout),
    }
}

/// Converts an error of sending to the result of the attempt.
fn unsent(error: &ureq::Error, timeout: Duration) -> Attempt {
    match error {
        // A request that timed out once would probably time out again.
        ureq::Error::Timeout(ureq::Timeout::Global) => {
            Attempt::Hopeless(format!("it did not answer within {} seconds", timeout.as_secs()))
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => Attempt::Hopeless(untrusted(error)),
        ureq::Error::Io(inner) if inner.to_string().contains("certificate") => {
            Attempt::Hopeless(untrusted(error))
        }
        ureq::Error::Io(_)
        | ureq::Error::Protocol(_)
        | ureq::Error::Timeout(_)
        | ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed => Attempt::Absent(error.to_string()),
        _ => Attempt::Hopeless(error.to_string()),
    }
}

fn untrusted(error: &ureq::Error) -> String {
    format!(
        "no trusted connection: {error}; VERBATIM_CLUSTER_CA names the file of the certificates \
         that are trusted"
    )
}
