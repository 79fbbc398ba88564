//! Access control: the checks that every request passes before it reaches a route.

use std::{net::IpAddr, sync::Arc};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{login, paths, token::AccessToken};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

const LOCALHOST: &str = "localhost";

#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    /// A TCP connection, with the server's own address.
    Tcp(IpAddr),
    /// A Unix socket; the permissions of its file say who may connect.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only Unix has such sockets"))]
    Socket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credential {
    /// The token in a header. If the server has no token, every client has this credential.
    Token,
    /// The cookie of a browser. It gives access to the page only.
    Cookie,
}

#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// The token; `None` admits every client.
    pub(super) token: Option<AccessToken>,
    /// The name of the cookie. It contains the port, because browsers share cookies between ports.
    pub(super) cookie_name: String,
    /// The host names of this server, besides `localhost` and its address.
    pub(super) names: Vec<String>,
    pub(super) has_page: bool,
}

/// The paths that need no token, because they reveal nothing.
const OPEN: [(&str, Method); 4] = [
    (paths::HEALTH, Method::GET),
    (login::LOGIN, Method::POST),
    (login::LOGIN_SCRIPT, Method::GET),
    (login::LOGIN_STYLE, Method::GET),
];

/// Returns whether a request needs no token.
pub(super) fn is_open<B>(request: &axum::http::Request<B>) -> bool {
    let path = request.uri().path();
    OPEN.iter().any(|(open, method)| path == *open && request.method() == method)
}

/// The paths for programs. Requests to these paths need the token; the cookie is not enough.
const FOR_PROGRAMS: [&str; 2] = [paths::MCP, paths::MCP_SLASH];

pub(super) async fn guard(
    State(gate): State<Arc<Gate>>,
    mut request: Request,
    next: Next,
) -> Response {
    match gate.admit(&request) {
        Ok(credential) => {
            request.extensions_mut().insert(credential);
            next.run(request).await
        }
        Err(refusal) => refusal,
    }
}

impl Gate {
    #[expect(clippy::result_large_err, reason = "the answer is the error")]
    fn admit(&self, request: &Request) -> Result<Credential, Response> {
        let headers = request.headers();
        let peer = request.extensions().get::<Peer>().copied();
        if !matches!(peer, Some(Peer::Socket)) {
            self.check_host(request, peer)?;
        }
        self.check_origin(request)?;
        let path = request.uri().path();
        if is_open(request) || matches!(peer, Some(Peer::Socket)) {
            return Ok(Credential::Token);
        }
        let Some(token) = &self.token else { return Ok(Credential::Token) };
        if bearer(headers).is_some_and(|given| token.is_token(given)) {
            return Ok(Credential::Token);
        }
        if !FOR_PROGRAMS.contains(&path)
            && cookies(headers, &self.cookie_name).any(|given| token.is_cookie(given))
        {
            return Ok(Credential::Cookie);
        }
        Err(self.unauthorised(request))
    }

    /// Checks that the `Host` header names this server. In a DNS rebinding attack, a foreign site
    /// lets its own host name point to this computer, and `Host` holds that name.
    #[expect(clippy::result_large_err, reason = "the answer is the error")]
    fn check_host(&self, request: &Request, peer: Option<Peer>) -> Result<(), Response> {
        let headers = request.headers();
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(refused(StatusCode::BAD_REQUEST, "exactly one Host header is required"));
        };
        let host = Authority::try_from(host.as_bytes())
            .map_err(|_| refused(StatusCode::BAD_REQUEST, "the Host header is not a host"))?;
        let in_uri = request.uri().authority();
        let is_ours = [Some(&host), in_uri].into_iter().flatten().all(|it| self.is_ours(it, peer));
        if is_ours && !host.as_str().contains('@') {
            Ok(())
        } else {
            Err(refused(
                StatusCode::FORBIDDEN,
                "this server does not have this host name; `--host NAME` adds it",
            ))
        }
    }

    fn is_ours(&self, host: &Authority, peer: Option<Peer>) -> bool {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = name.parse::<IpAddr>() {
            let is_own = matches!(peer, Some(Peer::Tcp(own)) if own.to_canonical() == address.to_canonical());
            if is_own || address.is_loopback() {
                return true;
            }
        }
        let mut names = self.names.iter().map(String::as_str).chain([LOCALHOST]);
        names.any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Checks that the request does not come from a page of another site.
    #[expect(clippy::result_large_err, reason = "the answer is the error")]
    fn check_origin(&self, request: &Request) -> Result<(), Response> {
        let headers = request.headers();
        let site = headers.get(FETCH_SITE).map(|value| value.as_bytes());
        let is_same_site = site == Some(b"same-origin");
        let is_visit = request.method() == Method::GET
            && headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
        if !is_same_site && site.is_some_and(|site| site != b"none") {
            return Err(if is_visit && self.has_page {
                login::sent_by_another_site(page_of(request))
            } else {
                refused(StatusCode::FORBIDDEN, "the request is from another site's page")
            });
        }
        // For a form on a page with the policy `no-referrer`, browsers send the origin `null`. Then
        // the `Sec-Fetch-Site` header says whether the request is from this server's page. Pages
        // cannot set this header.
        let is_ours = headers.get_all(header::ORIGIN).iter().all(|origin| {
            let host = headers.get(header::HOST).map(|host| host.as_bytes()).unwrap_or_default();
            let origin = origin.as_bytes();
            let rest = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
            rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
                || origin == b"null" && is_same_site
        });
        if is_ours {
            Ok(())
        } else {
            Err(refused(StatusCode::FORBIDDEN, "the request is from another site's page"))
        }
    }

    /// Returns the answer to a client without the token: browsers get the login form.
    fn unauthorised(&self, request: &Request) -> Response {
        let accepts_html = request
            .headers()
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/html"));
        let is_program = FOR_PROGRAMS.contains(&request.uri().path());
        let mut answer = if accepts_html && self.has_page && !is_program {
            login::page("", page_of(request))
        } else {
            refused(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong; `verbatim status --token` prints it, and the header is \
                 `Authorization: Bearer TOKEN`",
            )
        };
        let scheme = header::HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        answer
    }
}

/// Returns whether a request comes from this server's own page. Other pages may not change anything.
pub(super) fn is_from_page(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE)
}

/// Returns the token in the headers, if there is exactly one.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let cookies = lines.flat_map(|line| line.split(';'));
    cookies
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter_map(move |(key, value)| (key == name).then_some(value.as_bytes()))
}

/// Returns the address of a page on this server; the first page if the request is a change.
fn page_of(request: &Request) -> &str {
    let path = request.uri().path_and_query().filter(|_| request.method() == Method::GET);
    path.map_or("/", |path| path.as_str())
}

pub(super) fn refused(status: StatusCode, why: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{why}\n"))
        .into_response()
}
