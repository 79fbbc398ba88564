//! Counts and times of requests, for Prometheus and for the log. They contain no address, query or token.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, atomic::AtomicUsize, atomic::Ordering},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    login,
    paths::{HEALTH, MCP, MCP_SLASH, METRICS, SEARCH_PATH},
};
use crate::log::log;
use verbatim_base::lock::lock;

/// The upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

#[derive(Debug, Default)]
struct RouteCounts {
    by_status: BTreeMap<u16, u64>,
    /// The number of requests in each interval of [`BOUNDS`].
    by_time: [u64; BOUNDS.len()],
    total: u64,
    seconds: f64,
}

#[derive(Debug, Default)]
pub(super) struct Metrics {
    routes: Mutex<BTreeMap<&'static str, RouteCounts>>,
    pub(super) connections: AtomicUsize,
    logs: bool,
}

pub(super) async fn measure(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let (method, route) = (request.method().clone(), route(request.uri().path()));
    let answer = next.run(request).await;
    metrics.count(&method, route, answer.status().as_u16(), begun.elapsed());
    answer
}

impl Metrics {
    pub(super) fn new(logs: bool) -> Metrics {
        Metrics { logs, ..Metrics::default() }
    }

    fn count(&self, method: &Method, route: &'static str, status: u16, took: Duration) {
        if self.logs {
            // Clients can send any word as the method, so long words are not logged.
            let method = if method.as_str().len() > 10 { "?" } else { method.as_str() };
            log(&format!("{method} {route} {status} {} ms", took.as_millis()));
        }
        let mut routes = lock(&self.routes);
        let counts = routes.entry(route).or_default();
        *counts.by_status.entry(status).or_default() += 1;
        counts.total += 1;
        counts.seconds += took.as_secs_f64();
        if let Some(at) = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound) {
            counts.by_time[at] += 1;
        }
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# HELP verbatim_http_requests_total Requests that were answered.\n\
             # TYPE verbatim_http_requests_total counter\n",
        );
        let routes = lock(&self.routes);
        // Writing to a `String` does not fail.
        for (route, counts) in &*routes {
            for (status, count) in &counts.by_status {
                let labels = format!("route=\"{route}\",status=\"{status}\"");
                let _ = writeln!(text, "verbatim_http_requests_total{{{labels}}} {count}");
            }
        }
        text.push_str(
            "# HELP verbatim_http_request_seconds Time until an answer begins.\n\
             # TYPE verbatim_http_request_seconds histogram\n",
        );
        for (route, counts) in &*routes {
            let name = "verbatim_http_request_seconds";
            let mut sum = 0;
            for (bound, count) in BOUNDS.iter().zip(counts.by_time) {
                sum += count;
                let _ = writeln!(text, "{name}_bucket{{route=\"{route}\",le=\"{bound}\"}} {sum}");
            }
            let RouteCounts { total, seconds, .. } = counts;
            let _ = writeln!(text, "{name}_bucket{{route=\"{route}\",le=\"+Inf\"}} {total}");
            let _ = writeln!(text, "{name}_sum{{route=\"{route}\"}} {seconds}");
            let _ = writeln!(text, "{name}_count{{route=\"{route}\"}} {total}");
        }
        let open = self.connections.load(Ordering::Relaxed);
        let _ = write!(
            text,
            "# HELP verbatim_http_connections Connections that are open.\n\
             # TYPE verbatim_http_connections gauge\n\
             verbatim_http_connections {open}\n"
        );
        text
    }
}

pub(super) async fn answer(State(metrics): State<Arc<Metrics>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.text()).into_response()
}

/// Returns the name of a path's route. The path itself is not counted or logged, because it can hold ids.
fn route(path: &str) -> &'static str {
    let path = if path == MCP_SLASH { MCP } else { path };
    let known = [MCP, SEARCH_PATH, METRICS, HEALTH, login::LOGIN];
    known.into_iter().find(|known| *known == path).map_or("page", |known| &known[1..])
}
