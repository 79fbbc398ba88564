//! The login of a browser: a form asks for the token, and the answer sets the cookie.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Form, extract::State};
use maud::{DOCTYPE, Markup, html};

use super::token::{self, AccessToken, is_equal};

use verbatim_base::lock::lock;

pub(super) const LOGIN: &str = "/login";
pub(super) const LOGIN_SCRIPT: &str = "/login.js";
pub(super) const LOGIN_STYLE: &str = "/login.css";

const COOKIE_SECONDS: u32 = 30 * 24 * 3600;

/// How long a code is valid, in seconds.
const CODE_LIFE: u64 = 120;

/// The script that moves the token from the fragment of the address into the form. Browsers never
/// send the fragment to a server.
const SCRIPT_TEXT: &str = "\
'use strict';
const form = document.querySelector('form');
const enter = () => {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!given) return;
  history.replaceState(null, '', location.pathname + location.search);
  form.elements.token.value = given;
  form.submit();
};
enter();
addEventListener('hashchange', enter);
";

/// The colours are those of the page.
const STYLE_TEXT: &str = "\
:root { color-scheme: light dark; --paper: light-dark(#fff, #131519); --ink: light-dark(#14171c, #e7e9ec);
  --soft: light-dark(#474e58, #b6bcc5); --edge: light-dark(#7f8792, #737b87);
  --link: light-dark(#1c4dbf, #9dbaff); --mark: light-dark(#ffe382, #574503); }
body { max-width: 30rem; margin: 18vh auto 0; padding: 0 1.25rem; background: var(--paper); color: var(--soft);
  font: .9375rem/1.5 -apple-system, 'Segoe UI', system-ui, Roboto, sans-serif; }
h1 { display: inline-block; margin: 0; color: var(--ink); font-size: 1.5rem; letter-spacing: -.03em;
  background: linear-gradient(transparent 55%, var(--mark) 55% 92%, transparent 92%); }
a { color: var(--link); }
code { color: var(--ink); font-family: ui-monospace, monospace; }
label { display: block; margin: 1.5rem 0 .25rem; color: var(--ink); font-size: .8125rem; font-weight: 600; }
input { width: 100%; box-sizing: border-box; padding: .5rem .75rem; border: 1px solid var(--edge); border-radius: 4px;
  background: var(--paper); color: var(--ink); font: inherit; }
input:focus { border-color: var(--link); outline: 1px solid var(--link); }
button { margin-top: .75rem; padding: .4375rem 1.25rem; border: 1px solid var(--link); border-radius: 4px;
  background: var(--link); color: var(--paper); font: inherit; cursor: pointer; }
";

/// The codes that log in a browser which the program starts. A code is valid once and for a short time. The
/// token is not passed to the browser, because other users can see the browser's command line. Every process
/// that has the token can make a code for a server that has it too.
#[derive(Debug, Default)]
pub(super) struct LoginCodes {
    /// The codes that were used and have not expired.
    used: Mutex<HashMap<Vec<u8>, u64>>,
}

impl LoginCodes {
    /// Returns whether the given code is right. A right code cannot be used again.
    fn redeem(&self, token: &AccessToken, given: &[u8]) -> bool {
        let now = seconds();
        let text = str::from_utf8(given).unwrap_or_default();
        let mut parts = text.split('-');
        let until = parts.next().and_then(|until| until.parse().ok());
        let until = until.filter(|until| (now..=now + CODE_LIFE).contains(until));
        let (Some(until), Some(nonce)) = (until, parts.next()) else { return false };
        let mut used = lock(&self.used);
        used.retain(|_, until| *until >= now);
        is_equal(token.login_code(until, nonce).as_bytes(), given)
            && used.insert(given.to_owned(), until).is_none()
    }
}

impl AccessToken {
    /// Returns a code that logs in one browser at a server with this token, within two minutes. It goes into the
    /// fragment of the page's address.
    pub fn login_code_now(&self) -> Result<String, token::Error> {
        Ok(self.login_code(seconds() + CODE_LIFE, &token::random()?))
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct LoginForm {
    token: String,
    #[serde(default)]
    next: String,
}

pub(super) struct LoginState {
    pub(super) token: Option<AccessToken>,
    pub(super) codes: LoginCodes,
    pub(super) cookie_name: String,
}

/// Answers the login form: with the cookie and a redirect if the token is right, else with the form.
pub(super) async fn log_in(
    State(login): State<Arc<LoginState>>,
    headers: HeaderMap,
    Form(form): Form<LoginForm>,
) -> Response {
    let LoginState { token, codes, cookie_name } = &*login;
    let Some(token) = token else {
        return (StatusCode::NOT_FOUND, "this server needs no token\n").into_response();
    };
    // The scheme of the origin shows whether a proxy in front of the server uses TLS.
    let is_secure =
        headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let given = form.token.trim().as_bytes();
    if !token.is_token(given) && !codes.redeem(token, given) {
        return page("This token is not right, or was used already.", &form.next);
    }
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!(
        "{cookie_name}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}{secure}",
        token.cookie()
    );
    let location =
        HeaderValue::from_str(own_path(&form.next)).unwrap_or(HeaderValue::from_static("/"));
    let mut answer = StatusCode::SEE_OTHER.into_response();
    answer.headers_mut().insert(header::LOCATION, location);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}

/// Returns a path on this server; the first page instead of an address of another server.
fn own_path(text: &str) -> &str {
    let is_local = text.starts_with('/') && !text[1..].starts_with(['/', '\\']);
    let is_path = is_local && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_path && text != LOGIN { text } else { "/" }
}

/// Returns the form that asks for the token. The browser then goes to the path `next`.
pub(super) fn page(problem: &str, next: &str) -> Response {
    let script = html! { script src=(LOGIN_SCRIPT) defer {} };
    let main = html! {
        @if !problem.is_empty() { p role="alert" { (problem) } }
        p { "Your chats are private. The command " code { "verbatim status --token" } " prints the token that opens them." }
        form method="post" action=(LOGIN) {
            input type="hidden" name="next" value=(own_path(next));
            label for="token" { "Token" }
            input id="token" name="token" type="password" autocomplete="off" required autofocus;
            button { "Open" }
        }
    };
    answer(StatusCode::UNAUTHORIZED, "Verbatim: token", &script, &main)
}

/// Returns a page for a visitor who follows a link on another site. The browser does not send the
/// cookie with that first request. The link on the page makes a request with the cookie.
pub(super) fn sent_by_another_site(path: &str) -> Response {
    let main = html! {
        p { "Another site or program sent you here." }
        p { a href=(own_path(path)) { "Open your chats" } }
    };
    answer(StatusCode::FORBIDDEN, "Verbatim", &html! {}, &main)
}

fn answer(status: StatusCode, title: &str, script: &Markup, main: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="stylesheet" href=(LOGIN_STYLE);
                (script)
            }
            body { main { h1 { "verbatim" } (main) } }
        }
    };
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, kind, page.into_string()).into_response()
}

pub(super) async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT_TEXT).into_response()
}

pub(super) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE_TEXT).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_on_this_server() {
        for path in ["/", "/c/1?q=a%20b", "/search?q=%C3%A4"] {
            assert_eq!(own_path(path), path);
        }
        for other in [
            "",
            "c/1",
            "//evil.example",
            "/\\evil.example",
            "/a b",
            "/a\r\nSet-Cookie:x",
            "https://x",
            LOGIN,
        ] {
            assert_eq!(own_path(other), "/", "{other}");
        }
    }

    #[test]
    fn a_code_works_once() {
        let codes = LoginCodes::default();
        let token = |word: &str| AccessToken::parse(&word.repeat(20), "").unwrap();
        let (ours, other) = (token("ab"), token("cd"));
        let code = ours.login_code_now().unwrap();
        let late = ours.login_code(seconds() + 2 * CODE_LIFE, "n");
        let old = ours.login_code(seconds() - 1, "n");
        for wrong in [
            "",
            "wrong",
            "9-9-9",
            &late,
            &old,
            &code[..code.len() - 1],
            &other.login_code_now().unwrap(),
        ] {
            assert!(!codes.redeem(&ours, wrong.as_bytes()), "{wrong}");
        }
        assert!(codes.redeem(&ours, code.as_bytes()) && !codes.redeem(&ours, code.as_bytes()));
        assert!(codes.redeem(&ours, ours.login_code_now().unwrap().as_bytes()));
    }
}
