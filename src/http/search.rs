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

use super::{gate::refused, log::log};
use crate::{map_faults, model::Stop};

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
type AnswerPart = Result<Bytes, SearchFailure>;

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
        let mut out = PartWriter { sender: sender.clone(), held: Vec::new() };
        let done = map_faults::caught(|| run(&asked, &stop, &mut out));
        // A panic must not end the answer as if it were whole.
        let done = done.unwrap_or_else(|panic| {
            log(&format!("a search panicked: {panic}"));
            let why = "the search failed; see the server's log";
            Err(SearchFailure::Failed(why.to_owned()))
        });
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
    let body = Body::new(PartBody { first, parts, _guard: guard });
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
struct PartWriter {
    sender: mpsc::Sender<AnswerPart>,
    held: Vec<u8>,
}

impl Write for PartWriter {
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
struct PartBody {
    first: Option<Bytes>,
    parts: mpsc::Receiver<AnswerPart>,
    _guard: StopOnDrop,
}

impl HttpBody for PartBody {
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
                log(&format!("a search failed after its answer began: {why}"));
                Some(Err(io::Error::other(why)))
            }
            None => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    /// Returns the status and the body of an answer; the error of a body that breaks off.
    fn asked(run: Arc<SearchRun>) -> (StatusCode, Result<Bytes, String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let router = axum::Router::new()
                .route("/search", axum::routing::get(answer).with_state(Searches::new(run)));
            let request = Request::get("/search?q=a").body(Body::empty()).unwrap();
            let answer = router.oneshot(request).await.unwrap();
            let status = answer.status();
            let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
            (status, body.map_err(|error| error.to_string()))
        })
    }

    #[test]
    fn a_search_that_fails_is_no_whole_answer() {
        let (status, body) = asked(Arc::new(|asked, _, out| {
            assert_eq!(asked, [("q".to_owned(), "a".to_owned())]);
            out.write_all(b"{}\n").unwrap();
            Ok(())
        }));
        assert_eq!((status, body), (StatusCode::OK, Ok(Bytes::from_static(b"{}\n"))));
        let (status, _) = asked(Arc::new(|_, _, _| panic!("a bug")));
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        let failed = || SearchFailure::Failed("the disk is gone".to_owned());
        let (status, body) = asked(Arc::new(move |_, _, _| Err(failed())));
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(body.unwrap(), "the disk is gone\n");
        for panics in [false, true] {
            let (_, body) = asked(Arc::new(move |_, _, out| {
                out.write_all(&vec![b' '; 2 * CHUNK]).unwrap();
                assert!(!panics, "a bug in the middle");
                Err(failed())
            }));
            assert!(body.is_err(), "{panics}: it breaks off");
        }
    }
}
