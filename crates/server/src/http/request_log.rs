//! Logs each request: its kind, the status of its answer, and its time.

use std::time::Instant;

use axum::{extract::Request, middleware::Next, response::Response};

use super::login;
use super::paths::{HEALTH, MCP, MCP_SLASH, SEARCH_PATH};
use crate::log::log;

/// The length of the longest method in the log, because clients can send any word as the method.
const LONGEST_METHOD: usize = 10;

pub(super) async fn record(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let route = route(request.uri().path());
    let answer = next.run(request).await;
    let method = if method.as_str().len() > LONGEST_METHOD { "?" } else { method.as_str() };
    log(&format!(
        "{method} {route} {} {} ms",
        answer.status().as_u16(),
        begun.elapsed().as_millis()
    ));
    answer
}

/// Returns the name of a path's route. The path itself is not logged, because it can hold ids.
fn route(path: &str) -> &'static str {
    let path = if path == MCP_SLASH { MCP } else { path };
    let known = [MCP, SEARCH_PATH, HEALTH, login::LOGIN];
    known.into_iter().find(|known| *known == path).map_or("page", |known| &known[1..])
}
