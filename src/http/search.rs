//! `/search`: the messages that contain a text, or answer a question, as JSON lines.

use std::{
    io::{self, Write},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::body::Frame;
use tokio::sync::{Semaphore, mpsc};

use super::gate::refused;
use crate::model::Stop;

/// Searches that run at one time; further ones wait.
const CONCURRENT: usize = 8;

/// Bytes of an answer that are sent at once.
const CHUNK: usize = 32 << 10;

/// Chunks that wait for a client.
const AHEAD: usize = 4;

/// Why a search gives no answer.
#[derive(Debug)]
pub(crate) enum SearchFailure {
    /// The parameters are wrong; the text says how.
    Asked(String),
    /// The search failed.
    Failed(String),
}

/// Searches for the parameters of a query, and writes JSON lines.
pub(crate) type SearchRun =
    dyn Fn(&[(String, String)], &Stop, &mut dyn Write) -> Result<(), SearchFailure> + Send + Sync;

/// What answers `/search`.
#[derive(Clone)]
pub(super) struct Searches {
    run: Arc<SearchRun>,
    permits: Arc<Semaphore>,
}

impl Searches {
    pub(super) fn new(run: Arc<SearchRun>) -> Searches {
        Searches { run, permits: Arc::new(Semaphore::new(CONCURRENT)) }
    }
}

/// What the search sends to the client: a part of the answer, or why there is none.
type Part = Result<Bytes, SearchFailure>;

pub(super) async fn answer(State(searches): State<Searches>, request: Request) -> Response {
    let asked = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let Ok(axum::extract::Query(asked)) = asked else {
        return refused(StatusCode::BAD_REQUEST, "the query of the address cannot be read");
    };
    let Ok(permit) = searches.permits.clone().acquire_owned().await else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "the server stops");
    };
    let (sender, mut parts) = mpsc::channel(AHEAD);
    let stop = Stop::never();
    let guard = StopOnDrop(stop.clone());
    let run = searches.run;
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut out = Parts { sender: sender.clone(), held: Vec::new() };
        let done = run(&asked, &stop, &mut out);
        // If the client has gone, nobody waits for the rest.
        match done {
            Ok(()) => drop(out.flush()),
            Err(failure) => drop(sender.blocking_send(Err(failure))),
        }
    });
    // The status is known once something is found, or all is searched.
    let first = match parts.recv().await {
        Some(Ok(first)) => Some(first),
        Some(Err(SearchFailure::Asked(why))) => {
            return refused(StatusCode::BAD_REQUEST, why.trim_end());
        }
        Some(Err(SearchFailure::Failed(why))) => {
            return refused(StatusCode::INTERNAL_SERVER_ERROR, &why);
        }
        None => None,
    };
    let body = Body::new(PartsBody { first, parts, _guard: guard });
    ([(header::CONTENT_TYPE, "application/x-ndjson; charset=utf-8")], body).into_response()
}

/// Asks a search to stop when its client goes.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Sends what is written, in parts; waits for a client that is slow, and fails when it has gone.
struct Parts {
    sender: mpsc::Sender<Part>,
    held: Vec<u8>,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let part = Bytes::from(std::mem::take(&mut self.held));
        let sent = self.sender.blocking_send(Ok(part));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// The body of an answer. A search that fails in the middle breaks the connection off, so that the
/// client does not take a part for the whole.
struct PartsBody {
    first: Option<Bytes>,
    parts: mpsc::Receiver<Part>,
    _guard: StopOnDrop,
}

impl HttpBody for PartsBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        Poll::Ready(match ready!(self.parts.poll_recv(context)) {
            Some(Ok(part)) => Some(Ok(Frame::data(part))),
            Some(Err(SearchFailure::Asked(why) | SearchFailure::Failed(why))) => {
                super::log(&format!("a search failed after its answer began: {why}"));
                Some(Err(io::Error::other(why)))
            }
            None => None,
        })
    }
}
