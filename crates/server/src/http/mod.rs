//! The HTTP server: listens, lets clients in, and hands requests to MCP, the search and the page.
//!
//! Invariant: over TCP, a request without the token reaches no chat.
//! Invariant: no address, query or token is logged.

mod gate;
mod listener;
mod login;
mod paths;
mod request_log;
pub mod search;
pub mod token;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::{convert::Infallible, io, sync::Arc};

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Router, body::HttpBody};
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tower_http::timeout::{RequestBodyDeadlineLayer, RequestBodyTimeoutLayer};
use tower_http::{catch_panic::CatchPanicLayer, set_header::SetResponseHeaderLayer};

use self::gate::{Credential, Gate, refused};
use self::listener::{Acceptor, BODY_TIME, CONNECTIONS, GRACE, Listener, WRITE_TIME};
use self::login::{LoginCodes, LoginState};
use self::paths::{HEALTH, MCP, MCP_SLASH, SEARCH_PATH};
use self::search::{SearchRun, Searches};
use self::token::AccessToken;
use crate::log::{flush, log};

const FORM_BYTES: usize = 4 << 10;

/// The number of open files that the program asks the system to allow.
#[cfg(unix)]
const OPEN_FILES: u64 = 4096;

/// The maximum number of requests with a body that are answered at the same time. Others are refused at once, so
/// that clients that send slowly leave connections to others.
const MOST_BODIES: usize = 256;

/// The number of threads for the page, besides the threads for MCP.
const PAGE_THREADS: usize = 16;

/// The policy of the page: it loads files only from this server, and runs no script in a chat.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// An error of the HTTP server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot listen on an address.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address, or the path of a Unix socket.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The server would listen without a token on this address, which other machines can reach.
    #[error(
        "{0} can be reached from other machines, so it needs a token; leave out --no-token, or listen \
         on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The runtime or a socket of the server cannot be prepared.
    #[error("cannot start the server: {0}")]
    Start(#[source] io::Error),
    /// The access token or a login code cannot be read or made.
    #[error(transparent)]
    Token(#[from] token::Error),
}

/// The sockets that a server listens on.
#[derive(Debug, Default)]
pub struct Sockets {
    /// The TCP socket; `None` to listen on none.
    pub tcp: Option<TcpListener>,
    /// The Unix socket; `None` to listen on none.
    #[cfg(unix)]
    pub unix: Option<std::os::unix::net::UnixListener>,
}

impl Sockets {
    fn listeners(self) -> Result<Vec<Listener>, Error> {
        let mut listeners = Vec::new();
        if let Some(tcp) = self.tcp {
            listeners.push(Listener::tcp(tcp).map_err(Error::Start)?);
        }
        #[cfg(unix)]
        if let Some(unix) = self.unix {
            listeners.push(Listener::unix(unix).map_err(Error::Start)?);
        }
        Ok(listeners)
    }
}

/// An HTTP server with MCP, the search and the page.
pub struct HttpServer {
    sockets: Sockets,
    gate: Gate,
    page: Option<Router>,
    /// Whether each request is logged; false at first.
    pub logs: bool,
    search: Option<Arc<SearchRun>>,
}

impl HttpServer {
    /// Returns a server. TCP clients must send `token`; `None` admits every user of this machine,
    /// and is refused if other machines can reach the server. `names` are the host names of the
    /// server besides `localhost` and its address.
    pub fn new(
        sockets: Sockets,
        token: Option<AccessToken>,
        names: Vec<String>,
        page: Option<Router>,
    ) -> Result<HttpServer, Error> {
        let address = sockets.tcp.as_ref().map(TcpListener::local_addr).transpose();
        let address = address.map_err(Error::Start)?;
        if let (Some(address), None) = (address, &token)
            && !address.ip().is_loopback()
        {
            return Err(Error::Open(address));
        }
        let port = address.map_or(0, |address| address.port());
        let cookie_name = format!("verbatim_{port}");
        let gate = Gate { token, cookie_name, names, has_page: page.is_some() };
        Ok(HttpServer { sockets, gate, page, logs: false, search: None })
    }

    /// Adds the route `/search`; the function `search` answers its requests.
    pub fn with_search(self, search: Arc<SearchRun>) -> HttpServer {
        HttpServer { search: Some(search), ..self }
    }

    /// Returns the address of the TCP socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.sockets.tcp.as_ref().and_then(|tcp| tcp.local_addr().ok())
    }

    /// Returns the URL by which a browser on this computer reaches the server.
    pub fn url(&self) -> Option<String> {
        let mut address = self.address()?;
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Some(format!("http://{address}"))
    }

    /// Answers requests until `end` completes. `mcp` makes the handler of `/mcp` from a
    /// cancellation token. The calls end when the token is cancelled.
    pub fn serve(
        self,
        mcp: impl FnOnce(CancellationToken) -> MethodRouter,
        end: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(crate::mcp::CONCURRENT_CALLS + PAGE_THREADS)
            .enable_all()
            .build()
            .map_err(Error::Start)?;
        allow_files();
        let call = CancellationToken::new();
        let is_over = CancellationToken::new();
        let outcome = runtime.block_on(async {
            let acceptor = Acceptor {
                app: self.app(mcp(is_over.clone())),
                write_time: WRITE_TIME,
                slots: Arc::new(Semaphore::new(CONNECTIONS)),
                call: call.clone(),
            };
            let mut accepting = JoinSet::new();
            for listener in self.sockets.listeners()? {
                accepting.spawn(acceptor.clone().accept_all(listener));
            }
            end.await;
            call.cancel();
            while accepting.join_next().await.is_some() {}
            Ok(())
        });
        is_over.cancel();
        runtime.shutdown_timeout(GRACE);
        flush();
        outcome
    }

    fn app(&self, mcp: MethodRouter) -> Router {
        let login = LoginState {
            token: self.gate.token.clone(),
            codes: LoginCodes::default(),
            cookie_name: self.gate.cookie_name.clone(),
        };
        let gate = Arc::new(self.gate.clone());
        let mut app = Router::new()
            .route(HEALTH, get(async || "ok\n"))
            .route(MCP, mcp.clone())
            .route(MCP_SLASH, mcp);
        if let Some(search) = &self.search {
            let found =
                SearchHandlers { searches: Searches::new(search.clone()), page: self.page.clone() };
            app = app.route(SEARCH_PATH, get(search_for).with_state(found));
        }
        if let Some(page) = self.page.clone() {
            // Everybody may send this form, so it must not hold a connection for long.
            let log_in = post(login::log_in)
                .with_state(Arc::new(login))
                .layer::<_, Infallible>(DefaultBodyLimit::max(FORM_BYTES))
                .layer(RequestBodyDeadlineLayer::new(BODY_TIME));
            app = app
                .route(login::LOGIN, log_in)
                .route(login::LOGIN_SCRIPT, get(login::script))
                .route(login::LOGIN_STYLE, get(login::style))
                .fallback_service(page);
        } else {
            app = app.fallback(async || refused(StatusCode::NOT_FOUND, "there is nothing here"));
        }
        let mut app = app
            .layer(RequestBodyTimeoutLayer::new(BODY_TIME))
            .layer(middleware::from_fn_with_state(
                Arc::new(Semaphore::new(MOST_BODIES)),
                few_bodies,
            ))
            .layer(middleware::from_fn(only_plain_bodies))
            .layer(middleware::from_fn(only_the_page_changes))
            .layer(middleware::from_fn_with_state(gate, gate::guard))
            .layer(CatchPanicLayer::custom(panicked));
        if self.logs {
            app = app.layer(middleware::from_fn(request_log::record));
        }
        for (name, value) in HEADERS {
            let value = HeaderValue::from_static(value);
            let name = HeaderName::from_static(name);
            app = app.layer(SetResponseHeaderLayer::if_not_present(name, value));
        }
        app
    }
}

/// Raises the limit of open files, if the system allows it, because each connection is an open file.
fn allow_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
        if limit.current.is_some_and(|now| now < wanted) {
            // If this fails, the server serves fewer clients at once.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
        }
    }
}

#[derive(Clone)]
struct SearchHandlers {
    searches: Searches,
    page: Option<Router>,
}

async fn search_for(State(found): State<SearchHandlers>, request: Request) -> Response {
    let headers = request.headers();
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    // Browsers name HTML in `Accept`; other programs do so only if they want HTML.
    let is_browser = !headers.contains_key(header::AUTHORIZATION)
        && accept.is_some_and(|accept| accept.contains("text/html"));
    match found.page {
        Some(page) if is_browser => page.oneshot(request).await.into_response(),
        _ => search::answer(State(found.searches), request).await,
    }
}

/// Refuses a change that is requested with a cookie, unless the request comes from this server's page.
async fn only_the_page_changes(request: Request, next: Next) -> Response {
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    let has_cookie = request.extensions().get() == Some(&Credential::Cookie);
    if reads || !has_cookie || gate::is_from_page(request.headers()) {
        next.run(request).await
    } else {
        refused(StatusCode::FORBIDDEN, "only the page itself can ask for a change")
    }
}

/// Refuses a compressed body, which no route decompresses.
async fn only_plain_bodies(request: Request, next: Next) -> Response {
    let mut codings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        next.run(request).await
    } else {
        let why = "send the body uncompressed, without Content-Encoding";
        let answer = refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        ([(header::ACCEPT_ENCODING, "identity")], answer).into_response()
    }
}

/// Refuses a request with a body if many others are answered.
async fn few_bodies(
    State(permits): State<Arc<Semaphore>>,
    request: Request,
    next: Next,
) -> Response {
    if request.body().is_end_stream() || gate::is_open(&request) {
        return next.run(request).await;
    }
    match permits.try_acquire() {
        Ok(_permit) => next.run(request).await,
        Err(_) => busy("too many requests are under way; try again later"),
    }
}

pub(crate) fn busy(why: &'static str) -> Response {
    let again = [(header::RETRY_AFTER, "5")];
    (again, refused(StatusCode::SERVICE_UNAVAILABLE, why)).into_response()
}

#[expect(clippy::needless_pass_by_value, reason = "the layer gives it so")]
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    log(&format!("a request panicked: {text}"));
    let why = "this request failed; see the server's log";
    refused(StatusCode::INTERNAL_SERVER_ERROR, why).into_response()
}
