//! `/search`: the messages that contain a text, or answer a question, as JSON lines.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::{pin::Pin, time::Duration};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::gate::refused;
use crate::{log::log, tools::REQUEST_LOCK_WAIT};
use verbatim_answer::asked::{Asked, AskedError, case_matters};
use verbatim_answer::json_lines::{self, Context as Around, JsonLines, WrittenLines, json_line};
use verbatim_answer::notes::{Audience, lines};
use verbatim_answer::readings::{described, more_alike};
use verbatim_answer::{
    clock::Clock, filters::FilterError, hint::Explained, ranked::RankedMessages, words::quoted,
};
use verbatim_base::call::{Call, StopOnDrop};
use verbatim_base::{map_faults, model::Matching};
use verbatim_engine::{Engine, Error as EngineError, Note, QueryReading, ReadingKind};

/// The number of concurrent searches; further searches wait.
const CONCURRENT: usize = 8;

const MOST_WAIT: Duration = Duration::from_secs(15);

/// The time limit of a search, including the time to send the answer.
const MOST_TIME: Duration = Duration::from_secs(300);

/// The size of a part of an answer in bytes.
const CHUNK: usize = 32 << 10;

/// The maximum number of parts that wait until the client reads them.
const AHEAD: usize = 4;

/// The reason why a search gives no answer.
#[derive(Debug)]
pub enum SearchFailure {
    /// The parameters are wrong; the text is the reason.
    Asked(String),
    /// The search itself failed or took too long; the text is the reason.
    Failed(String),
}

/// A function that searches with the parameters of a query, and writes JSON lines.
pub type SearchRun =
    dyn Fn(&[(String, String)], &Call, &mut dyn Write) -> Result<(), SearchFailure> + Send + Sync;

/// The number of other readings of a text that was found nowhere.
const MOST_READINGS: usize = 3;

/// The last line of an answer that leaves something out.
#[derive(Serialize)]
struct IncompleteLine {
    /// Whether the search covered everything that was asked for.
    complete: bool,
    /// Whether the limit left messages out.
    more: bool,
    /// The words of the question that no message has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent_words: Vec<String>,
    notes: Vec<String>,
}

impl IncompleteLine {
    fn of(written: &WrittenLines, asked: &Asked) -> IncompleteLine {
        let WrittenLines { count, is_cut, notes } = written;
        let mut lines = lines(notes, Audience::Person);
        if *is_cut {
            let kind = match (asked.mode, asked.oldest_first) {
                (Some(_), _) => "best",
                (None, true) => "oldest",
                (None, false) => "newest",
            };
            let all = if asked.mode.is_some() {
                "a higher limit gives more"
            } else {
                "limit=0 gives all"
            };
            lines.push(format!("these are the {count} {kind} messages; {all}"));
        }
        IncompleteLine {
            complete: !notes.iter().any(Note::is_gap),
            more: *is_cut,
            absent_words: notes.iter().flat_map(Note::absent_words).cloned().collect(),
            notes: lines,
        }
    }
}

/// Returns the searches of an engine's chats. Times are in the time zone of this computer, or in UTC. The answers are
/// the lines of `verbatim search --json`, and one more if they leave something out.
pub fn searches_of(engine: &Arc<Engine>, is_local: bool) -> Arc<SearchRun> {
    let engine = Arc::clone(engine);
    Arc::new(move |fields, call, out| search(&engine, Clock::new(is_local), fields, call, out))
}

fn search(
    engine: &Engine,
    clock: Clock,
    fields: &[(String, String)],
    call: &Call,
    out: &mut dyn Write,
) -> Result<(), SearchFailure> {
    let asked = Asked::from_fields(fields)?;
    let (scope, mut notes) = asked.filters.scope(engine, clock, call)?;
    let mut lines = JsonLines { engine, clock, context: Around::default(), call, out };
    let mut advice = Vec::new();
    let mut written = match asked.mode {
        Some(mode) => {
            let ranking = RankedMessages::find(engine, &asked.question(mode, scope), call)?;
            lines.ranked(&ranking)?
        }
        None => {
            let search = asked.search(engine, scope, call)?;
            let written = lines.exact(&search, asked.most())?;
            if written.count > 0 {
                let more = search.more_alike();
                advice.extend(more.map(|more| format!("{}: fold=1", more_alike(&more))));
            } else {
                advice.extend(search.readings(MOST_READINGS).iter().map(|reading| {
                    format!("{}: {}", described(reading, quoted), parameters(reading))
                }));
            }
            written
        }
    };
    notes.append(&mut written.notes);
    written.notes = notes;
    if written.is_cut || !written.notes.is_empty() || !advice.is_empty() {
        let mut line = IncompleteLine::of(&written, &asked);
        line.notes.append(&mut advice);
        json_line(out, &line).map_err(json_lines::Error::from)?;
    }
    Ok(())
}

/// Returns the parameters that ask for a reading. Other ones stay, unless it is one without filters.
fn parameters(reading: &QueryReading) -> String {
    let QueryReading { request, kind, .. } = reading;
    if *kind == ReadingKind::AnyScope {
        return "leave out the filters".to_owned();
    }
    let mut parameters = form_urlencoded::Serializer::new(String::new());
    parameters.append_pair("q", &request.text);
    for (name, texts) in [("or", &request.or), ("and", &request.and), ("not", &request.not)] {
        parameters.extend_pairs(texts.iter().map(|text| (name, text)));
    }
    for (name, is_set) in [
        ("regex", request.matching == Matching::Regex),
        ("word", request.matching == Matching::Word),
        ("fold", request.ignore_accents),
        ("ignore-case", !request.case_sensitive && case_matters(request)),
    ] {
        if is_set {
            parameters.append_pair(name, "1");
        }
    }
    parameters.finish()
}

impl From<AskedError> for SearchFailure {
    fn from(error: AskedError) -> SearchFailure {
        SearchFailure::Asked(error.to_string())
    }
}

impl From<FilterError> for SearchFailure {
    fn from(error: FilterError) -> SearchFailure {
        match error {
            FilterError::Engine(error) => error.into(),
            FilterError::Date { filter, reason } => {
                SearchFailure::Asked(format!("{filter}: {reason}"))
            }
            error => SearchFailure::Asked(error.to_string()),
        }
    }
}

impl From<EngineError> for SearchFailure {
    fn from(error: EngineError) -> SearchFailure {
        let is_of_words = matches!(
            error,
            EngineError::NoConversation { .. }
                | EngineError::Ambiguous { .. }
                | EngineError::SameId { .. }
        );
        let why = Explained(&error).to_string();
        if is_of_words || error.is_of_request() {
            SearchFailure::Asked(why)
        } else {
            SearchFailure::Failed(why)
        }
    }
}

impl From<json_lines::Error> for SearchFailure {
    fn from(error: json_lines::Error) -> SearchFailure {
        match error {
            json_lines::Error::Engine(error) => error.into(),
            json_lines::Error::Io(error) => SearchFailure::Failed(error.to_string()),
        }
    }
}

#[derive(Clone)]
pub(super) struct Searches {
    run: Arc<SearchRun>,
    permits: Arc<Semaphore>,
    most_wait: Duration,
    most_time: Duration,
}

impl Searches {
    pub(super) fn new(run: Arc<SearchRun>) -> Searches {
        let permits = Arc::new(Semaphore::new(CONCURRENT));
        Searches { run, permits, most_wait: MOST_WAIT, most_time: MOST_TIME }
    }
}

type AnswerPart = Result<Bytes, SearchFailure>;

pub(super) async fn answer(State(searches): State<Searches>, request: Request) -> Response {
    let asked = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let Ok(axum::extract::Query(asked)) = asked else {
        return refused(StatusCode::BAD_REQUEST, "the query of the address cannot be read");
    };
    let free = timeout(searches.most_wait, searches.permits.clone().acquire_owned());
    let Ok(Ok(permit)) = free.await else {
        let why = "other searches take all the time of the server; try again in a moment";
        return refused(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let (sender, mut parts) = mpsc::channel(AHEAD);
    let most_time = searches.most_time;
    let call = Call::default().within(most_time).waiting_for_locks(REQUEST_LOCK_WAIT);
    let guard = StopOnDrop(call.stop.clone());
    let is_whole = Arc::new(AtomicBool::new(false));
    let run = searches.run;
    let done_whole = Arc::clone(&is_whole);
    let handle = Handle::current();
    let deadline = Instant::now() + most_time;
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut out = PartWriter { sender, held: Vec::new(), handle, deadline };
        let done = map_faults::caught(|| run(&asked, &call, &mut out));
        // After a panic, the answer must not look complete.
        let done = done.unwrap_or_else(|panic| {
            log(&format!("a search panicked: {panic}"));
            let why = "the search failed; see the server's log";
            Err(SearchFailure::Failed(why.to_owned()))
        });
        // If the client is gone, nobody reads the rest, so errors of sending are ignored.
        match done {
            Ok(()) => done_whole.store(out.flush().is_ok(), Ordering::Release),
            Err(SearchFailure::Failed(_)) if call.stop.requested() => {
                let why = format!(
                    "the search took longer than {} s; add a filter or more text",
                    most_time.as_secs()
                );
                drop(out.send(Err(SearchFailure::Failed(why))));
            }
            Err(failure) => drop(out.send(Err(failure))),
        }
    });
    // The status code is known when the search sends its first part, or when it ends.
    let first = match parts.recv().await {
        Some(Ok(first)) => Some(first),
        Some(Err(SearchFailure::Asked(why))) => {
            return refused(StatusCode::BAD_REQUEST, why.trim_end());
        }
        Some(Err(SearchFailure::Failed(why))) => {
            let status = if guard.0.requested() {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::INTERNAL_SERVER_ERROR
            };
            return refused(status, &why);
        }
        None => None,
    };
    let body = Body::new(PartBody { first, parts, is_whole, _guard: guard });
    ([(header::CONTENT_TYPE, "application/x-ndjson; charset=utf-8")], body).into_response()
}

/// Sends the output in parts; waits for a slow client, and fails when the client disconnects.
struct PartWriter {
    sender: mpsc::Sender<AnswerPart>,
    held: Vec<u8>,
    handle: Handle,
    /// The time by which the client must have read the answer.
    deadline: Instant,
}

impl PartWriter {
    fn send(&self, part: AnswerPart) -> io::Result<()> {
        match self.handle.block_on(timeout_at(self.deadline, self.sender.send(part))) {
            Ok(sent) => sent.map_err(|_| io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
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
        self.send(Ok(part))
    }
}

/// The body of an answer. If the search fails, the connection is aborted, so that the client does
/// not mistake the first part of the answer for the whole answer.
struct PartBody {
    first: Option<Bytes>,
    parts: mpsc::Receiver<AnswerPart>,
    is_whole: Arc<AtomicBool>,
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
            None if self.is_whole.load(Ordering::Acquire) => None,
            None => Some(Err(io::ErrorKind::TimedOut.into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    fn asked(run: Arc<SearchRun>) -> (StatusCode, Result<Bytes, String>) {
        asked_of(Searches::new(run))
    }

    fn asked_of(searches: Searches) -> (StatusCode, Result<Bytes, String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let router = axum::Router::new()
                .route("/search", axum::routing::get(answer).with_state(searches));
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

    #[test]
    fn no_search_takes_the_time_of_all_others() {
        let none: Arc<SearchRun> = Arc::new(|_, _, _| Ok(()));
        let taken = Searches { most_wait: Duration::from_millis(10), ..Searches::new(none) };
        let permits = taken.permits.clone().try_acquire_many_owned(CONCURRENT as u32).unwrap();
        let (status, why) = asked_of(taken.clone());
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(why.is_ok_and(|why| why.starts_with(b"other searches")));
        drop(permits);
        assert_eq!(asked_of(taken).0, StatusCode::OK);
        let long: Arc<SearchRun> = Arc::new(|_, call, _| {
            while !call.stop.requested() {
                std::thread::yield_now();
            }
            Err(SearchFailure::Failed("stopped".to_owned()))
        });
        let most_time = Duration::from_millis(10);
        let (status, _) = asked_of(Searches { most_time, ..Searches::new(long) });
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        // The client does not read this endless answer.
        let endless: Arc<SearchRun> = Arc::new(|_, _, out| {
            loop {
                let part = out.write_all(&[b' '; CHUNK]);
                part.map_err(|error| SearchFailure::Failed(error.to_string()))?;
            }
        });
        let searches = Searches { most_time, ..Searches::new(endless) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let request = Request::get("/search?q=a").body(Body::empty()).unwrap();
            let answer = answer(State(searches.clone()), request).await;
            // This call succeeds only if all permits are free again.
            drop(searches.permits.acquire_many(CONCURRENT as u32).await.unwrap());
            assert!(axum::body::to_bytes(answer.into_body(), usize::MAX).await.is_err());
        });
    }
}
