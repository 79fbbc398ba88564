//! The state that all pages share, and the code that runs their work.

use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{import_state::Imports, labels::moment};
use crate::web::{frame, search::page_query::PageQuery};
use crate::{http::busy, tools::REQUEST_LOCK_WAIT};
use verbatim_answer::filters::{FilterError, Filters};
use verbatim_answer::{clock::Clock, conversation::title_line, hint::Explained};
use verbatim_base::call::{Call, StopOnDrop};
use verbatim_base::{lock::lock, map_faults};
use verbatim_engine::{
    self as engine, About, ConversationIds, Engine, Facets, Flags, Heading, Note, Place, Places,
    Resources, Result, Scope, SourceKind,
};
use verbatim_text::address::page_path;
use verbatim_text::amount::{counted, grouped};

/// The time limit of making a page.
const MOST_TIME: Duration = Duration::from_secs(30);

/// How long the number of all messages is cached.
const COUNTED_FOR: Duration = Duration::from_secs(10);

/// The size in kB from which an answer is long, and the maximum size of all long answers that are not sent yet.
const LONG: usize = 256;
const MOST_UNSENT: usize = 128 << 10;

/// The most entries of a cache: conversations with their matches, filters with what they choose.
const MOST_KEPT: usize = 8;

/// The state while one answer is made: the state of all pages, and the stamp of the sources.
pub(crate) struct Site {
    state: Arc<SiteState>,
    /// The stamp, made only when it is needed: making it takes system calls or a request to a cluster.
    stamp: OnceLock<String>,
}

/// The state that all pages share.
pub(crate) struct SiteState {
    pub(crate) engine: Arc<Engine>,
    local_time: bool,
    /// The number of all messages, the time of counting, and the stamp of the counted state.
    counted: Mutex<Option<(Instant, String, u64)>>,
    places: Mutex<Option<KnownPlaces>>,
    /// The conversations that filters chose last, with the stamp of the state; the latest at the end.
    chosen: Mutex<Vec<((String, Filters), ChosenConversations)>>,
    /// The stamp of the state and the scope that were counted last, and the counts of all messages in it.
    totals: Mutex<Option<(String, Scope, Arc<Facets>)>>,
    /// The matches in the conversations that were read last, the latest at the end.
    matches: Mutex<Vec<(MatchesKey, Arc<Matches>)>>,
    pub(super) imports: Imports,
    pub(crate) resources: Resources,
}

/// The stamp of the state, the source and the id of the conversation, and the query string of what is marked.
type MatchesKey = (String, SourceKind, String, String);

/// The messages of a conversation that match, and the number of matches in each.
#[derive(Default)]
pub(crate) struct Matches {
    pub(crate) turns: Vec<usize>,
    pub(crate) counts: Vec<usize>,
}

/// The conversations that filters choose.
#[derive(Clone, Default)]
pub(crate) struct ChosenConversations {
    /// The conversations; `None` for all.
    pub(crate) conversations: Option<Arc<ConversationIds>>,
    /// Notes about names that nothing has.
    pub(crate) notes: Vec<Note>,
}

/// The origin of every conversation.
#[derive(Clone)]
struct KnownPlaces {
    /// The stamp of the state from which the origins were read.
    stamp: String,
    has_models: bool,
    places: Arc<Places>,
}

impl SiteState {
    pub(crate) fn new(engine: Arc<Engine>, local_time: bool, resources: Resources) -> SiteState {
        SiteState {
            engine,
            local_time,
            counted: Mutex::default(),
            places: Mutex::default(),
            chosen: Mutex::default(),
            totals: Mutex::default(),
            matches: Mutex::default(),
            imports: Imports::default(),
            resources,
        }
    }

    /// Drops the cached number of all messages, so that the messages are counted again.
    pub(crate) fn forget_counts(&self) {
        *lock(&self.counted) = None;
    }
}

impl Deref for Site {
    type Target = SiteState;

    fn deref(&self) -> &SiteState {
        &self.state
    }
}

impl Site {
    fn of(state: &Arc<SiteState>) -> Site {
        Site { state: Arc::clone(state), stamp: OnceLock::new() }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.local_time)
    }

    /// Returns the number of all messages, which may be a few seconds old; `None` if nothing can be
    /// counted.
    pub(crate) fn messages(&self, call: &Call) -> Option<u64> {
        let known = lock(&self.counted).clone();
        if let Some((at, stamp, count)) = known
            && (at.elapsed() < COUNTED_FOR || stamp == self.stamp())
        {
            return Some(count);
        }
        let stamp = self.stamp().to_owned();
        let count = self.engine.size(call).ok()?.0;
        let mut counted = lock(&self.counted);
        *counted = Some((Instant::now(), stamp, count));
        Some(count)
    }

    /// Returns a text that changes whenever the messages, stars or hidden conversations change. It is made
    /// once for each answer. Data that is read later is as new as this text, or newer.
    pub(crate) fn stamp(&self) -> &str {
        self.stamp.get_or_init(|| {
            let sources = self.engine.all_sources().stamp();
            format!("{sources} {}", Flags::stamp(self.engine.config()))
        })
    }

    pub(crate) fn flags(&self) -> Result<Flags> {
        Flags::read(self.engine.config())
    }

    /// Returns the origin of every conversation; models are included if they are requested.
    pub(crate) fn places(&self, with_models: bool, call: &Call) -> Result<Arc<Places>> {
        let stamp = self.stamp().to_owned();
        let known = lock(&self.places).clone();
        if let Some(known) = known.filter(|it| it.stamp == stamp && it.has_models >= with_models) {
            return Ok(known.places);
        }
        let places = Arc::new(self.engine.all_sources().places(with_models, call)?);
        let known = KnownPlaces { stamp, has_models: with_models, places: Arc::clone(&places) };
        *lock(&self.places) = Some(known);
        Ok(places)
    }

    /// Returns the conversations that filters choose. They are found once for a state, because the text of a
    /// search changes more often than its filters.
    pub(crate) fn chosen(
        &self,
        filters: &Filters,
        call: &Call,
    ) -> Result<ChosenConversations, Problem> {
        if filters.names.is_empty() && filters.within.is_empty() {
            return Ok(ChosenConversations::default());
        }
        let key = (self.stamp().to_owned(), filters.clone());
        cached(&self.chosen, key, || {
            let (scope, notes) = filters.conversations(&self.engine, call)?;
            Ok(ChosenConversations { conversations: scope.only(), notes })
        })
    }

    /// Returns the matches in a conversation; `find` finds them if they are not cached.
    pub(crate) fn matches(
        &self,
        about: &About,
        query: String,
        find: impl FnOnce() -> Result<Matches, Problem>,
    ) -> Result<Arc<Matches>, Problem> {
        let key = (self.stamp().to_owned(), about.source, about.id.clone(), query);
        cached(&self.matches, key, || find().map(Arc::new))
    }

    /// Returns the counts of all messages in a scope.
    pub(crate) fn totals(&self, scope: &Scope, call: &Call) -> Result<Arc<Facets>> {
        let stamp = self.stamp();
        let mut known = lock(&self.totals);
        if let Some((of, counted, counts)) = &*known
            && (&**of, counted) == (stamp, scope)
        {
            return Ok(Arc::clone(counts));
        }
        // The lock is held during the count, so that other requests wait for the same counts.
        let counts = Arc::new(counted_totals(self, scope, call)?);
        *known = Some((stamp.to_owned(), scope.clone(), Arc::clone(&counts)));
        Ok(counts)
    }
}

fn counted_totals(site: &Site, scope: &Scope, call: &Call) -> Result<Facets> {
    let clock = site.clock();
    let tally = site.engine.tally(scope, &|time| clock.day(time), call)?;
    let places = site.places(true, call)?;
    let mut facets = Facets {
        messages: tally.messages,
        conversations: tally.conversations,
        roles: tally.roles,
        months: tally.months,
        is_complete: true,
        notes: tally.notes,
        ..Facets::default()
    };
    for (kind, conversations) in tally.by_conversation {
        for (id, count) in conversations {
            let place = places.get(&(kind, id));
            let service = place.map_or(kind.name(), |place| &*place.service);
            *facets.services.entry(service.to_owned()).or_default() += count;
            let named = place.map(|place| &*place.projects).unwrap_or_default();
            for project in Place::named_projects(named) {
                *facets.projects.entry(project.to_owned()).or_default() += count;
            }
            for model in place.map(|place| place.models.as_slice()).unwrap_or_default() {
                *facets.models.entry(model.to_string()).or_default() += count;
            }
        }
    }
    Ok(facets)
}

/// The reason why there is no page.
#[derive(Debug)]
pub(crate) enum Problem {
    /// Nothing has this address.
    Missing(String),
    /// Several conversations may have this address: what the address calls them, the first of them, and
    /// the number of all.
    Several(String, Vec<Heading>, usize),
    /// The request cannot be understood.
    Wrong(String),
    Refused(String),
    /// A page that says what is wrong.
    Shown(StatusCode, Markup),
    Engine(engine::Error),
    /// A defect of this program.
    Panicked(String),
}

impl From<engine::Error> for Problem {
    fn from(error: engine::Error) -> Problem {
        match error {
            engine::Error::NoConversation { .. } | engine::Error::SameId { .. } => {
                Problem::Missing(error.to_string())
            }
            engine::Error::Ambiguous { word, candidates, total } => {
                Problem::Several(word, candidates, total)
            }
            error if error.is_of_request() => Problem::Wrong(error.to_string()),
            other => Problem::Engine(other),
        }
    }
}

/// Returns a value of a cache; `make` makes it if it is not cached. Drops the oldest value if there are too many.
fn cached<K: PartialEq, V: Clone>(
    cache: &Mutex<Vec<(K, V)>>,
    key: K,
    make: impl FnOnce() -> Result<V, Problem>,
) -> Result<V, Problem> {
    if let Some((_, known)) = lock(cache).iter().find(|(known, _)| *known == key) {
        return Ok(known.clone());
    }
    let value = make()?;
    let mut cache = lock(cache);
    if cache.len() >= MOST_KEPT {
        cache.remove(0);
    }
    cache.push((key, value.clone()));
    Ok(value)
}

impl From<FilterError> for Problem {
    fn from(error: FilterError) -> Problem {
        match error {
            FilterError::Engine(error) => error.into(),
            error => Problem::Wrong(error.to_string()),
        }
    }
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Problem::Missing(_) | Problem::Several(..) => StatusCode::NOT_FOUND,
            Problem::Wrong(_) => StatusCode::BAD_REQUEST,
            Problem::Refused(_) => StatusCode::CONFLICT,
            Problem::Shown(status, _) => *status,
            Problem::Engine(error) if error.is_not_found() => StatusCode::OK,
            Problem::Engine(error) if error.is_stopped() => StatusCode::SERVICE_UNAVAILABLE,
            Problem::Engine(_) | Problem::Panicked(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns a heading in the form of a sentence, and the details. Links keep the text of the request.
    fn words(&self, query: &PageQuery) -> (String, Markup) {
        let (heading, what) = match self {
            Problem::Several(word, candidates, total) => {
                let heading = format!("“{word}” may be any of {}", counted(*total, "conversation"));
                return (heading, candidates_of(candidates, *total, query));
            }
            Problem::Missing(what) => ("Nothing is here".to_owned(), sentence(what)),
            Problem::Wrong(what) => ("This cannot be searched for".to_owned(), sentence(what)),
            Problem::Refused(what) => ("This was not done".to_owned(), what.clone()),
            Problem::Shown(_, page) => return (String::new(), page.clone()),
            Problem::Engine(error) if error.is_not_found() => {
                let what = "Import an export of ChatGPT or Claude.ai, and it can be searched here.";
                ("There are no chats yet".to_owned(), what.to_owned())
            }
            Problem::Engine(error) if error.is_stopped() => {
                let what = "It was stopped. Add a filter or more text, and search again.";
                ("This took too long".to_owned(), what.to_owned())
            }
            Problem::Engine(error) => {
                ("The chats cannot be read".to_owned(), Explained(error).to_string())
            }
            Problem::Panicked(what) => ("This page has a defect".to_owned(), what.clone()),
        };
        (heading, html! { p.broken { (what) } })
    }
}

/// Returns the list of the conversations that an address may mean.
fn candidates_of(candidates: &[Heading], total: usize, query: &PageQuery) -> Markup {
    let more = total - candidates.len();
    html! {
        ul.list {
            @for it in candidates {
                li {
                    a href=(page_path(&it.id) + &query.marks()) { bdi { (title_line(&it.title)) } }
                    " " span.note { code { (it.id) } " " (moment(Clock::new(false), it.last)) }
                    " " span.n { (counted(it.messages as usize, "message")) }
                }
            }
        }
        @if more > 0 { p.note { (grouped(more)) " more: give more letters of the id." } }
    }
}

/// Returns an error message as a sentence.
pub(crate) fn sentence(message: &str) -> String {
    let mut rest = message.chars();
    let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if message.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", rest.as_str())
}

fn is_torn<T>(done: &Result<T, Problem>) -> bool {
    matches!(done, Err(Problem::Engine(error)) if error.is_of_index())
}

/// Runs work off the async threads. The work stops when the client disconnects, and runs again if
/// an index changed during the work.
pub(crate) async fn run<T: Send + 'static>(
    site: &Arc<SiteState>,
    work: impl Fn(&Site, &Call) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let call = Call::default().within(MOST_TIME).waiting_for_locks(REQUEST_LOCK_WAIT);
    let _guard = StopOnDrop(call.stop.clone());
    let site = Arc::clone(site);
    let done = tokio::task::spawn_blocking(move || {
        let sources = site.engine.all_sources();
        let done = sources.attempt(&call, is_torn, |call| work(&Site::of(&site), call));
        done.unwrap_or_else(|panic| Err(Problem::Panicked(panic)))
    });
    done.await.unwrap_or_else(|error| Err(Problem::Panicked(error.to_string())))
}

/// Returns whether a text is the id of a conversation.
pub(crate) async fn is_id(site: &Arc<SiteState>, id: &str) -> bool {
    let id = id.to_owned();
    let found = run(site, move |site, call| {
        let mut kinds = SourceKind::ALL.into_iter();
        Ok(kinds.any(|kind| matches!(site.engine.find(call).about(kind, &id), Ok(Some(_)))))
    });
    found.await.unwrap_or_default()
}

/// Answers with an HTML page; an error also gets an HTML page.
pub(crate) async fn html(
    site: &Arc<SiteState>,
    work: impl Fn(&Site, &Call) -> Result<Markup, Problem> + Send + 'static,
) -> Response {
    html_for(site, PageQuery::default(), move |site, _, call| work(site, call)).await
}

/// Answers with an HTML page for a request; an error page keeps the text of the request.
pub(crate) async fn html_for(
    site: &Arc<SiteState>,
    query: PageQuery,
    work: impl Fn(&Site, &PageQuery, &Call) -> Result<Markup, Problem> + Send + 'static,
) -> Response {
    let of = query.clone();
    match run(site, move |site, call| work(site, &of, call)).await {
        Ok(page) => answer(StatusCode::OK, "text/html; charset=utf-8", page.into_string()),
        Err(problem) => refused_for(&problem, &query),
    }
}

/// Answers with a file to download.
pub(crate) async fn file(
    site: &Arc<SiteState>,
    work: impl Fn(&Site, &Call) -> Result<Markup, Problem> + Send + 'static,
) -> Response {
    match run(site, work).await {
        Ok(page) => {
            let page = answer(StatusCode::OK, "text/html; charset=utf-8", page.into_string());
            ([(header::CONTENT_DISPOSITION, "attachment")], page).into_response()
        }
        Err(problem) => refused(&problem),
    }
}

/// Makes a change, and answers with HTML. The change is completed even if the client disconnects.
pub(crate) async fn change(
    site: &Arc<SiteState>,
    work: impl FnOnce(&Site) -> Result<Markup, Problem> + Send + 'static,
) -> Response {
    match changed(site, work).await {
        Ok(page) => answer(StatusCode::OK, "text/html; charset=utf-8", page.into_string()),
        Err(problem) => refused(&problem),
    }
}

/// Makes a change off the async threads. The change is completed even if the client disconnects.
pub(crate) async fn changed<T: Send + 'static>(
    site: &Arc<SiteState>,
    work: impl FnOnce(&Site) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let site = Arc::clone(site);
    let done = tokio::task::spawn_blocking(move || map_faults::caught(|| work(&Site::of(&site))));
    match done.await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => Err(Problem::Panicked(panic)),
        Err(error) => Err(Problem::Panicked(error.to_string())),
    }
}

/// Answers with plain text; an error is an HTML page.
pub(crate) async fn text(
    site: &Arc<SiteState>,
    work: impl Fn(&Site, &Call) -> Result<String, Problem> + Send + 'static,
) -> Response {
    match run(site, work).await {
        Ok(text) => answer(StatusCode::OK, "text/markdown; charset=utf-8", text),
        Err(problem) => refused(&problem),
    }
}

pub(crate) fn refused(problem: &Problem) -> Response {
    refused_for(problem, &PageQuery::default())
}

fn refused_for(problem: &Problem, query: &PageQuery) -> Response {
    let (heading, what) = problem.words(query);
    let page = match problem {
        Problem::Shown(..) => what,
        _ => frame::problem(&heading, &what, query),
    };
    answer(problem.status(), "text/html; charset=utf-8", page.into_string())
}

/// A long answer, which counts until it is sent.
struct LongAnswer {
    text: String,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for LongAnswer {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

fn answer(status: StatusCode, kind: &'static str, body: String) -> Response {
    static UNSENT: LazyLock<Arc<Semaphore>> =
        LazyLock::new(|| Arc::new(Semaphore::new(MOST_UNSENT)));

    let body = match body.len() >> 10 {
        ..LONG => Bytes::from(body),
        size => match Arc::clone(&UNSENT).try_acquire_many_owned(size.min(MOST_UNSENT) as u32) {
            Ok(permit) => Bytes::from_owner(LongAnswer { text: body, _permit: permit }),
            Err(_) => return busy("many answers wait until they are read; try again later"),
        },
    };
    // Chats change and are private, so the browser must not cache them.
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;
    use crate::web::search::facets;

    fn state_of(export: &TestExport) -> Arc<SiteState> {
        let engine = Arc::new(Engine::new(export.engine.config().clone()));
        let resources = Resources { memory: 64 << 20, threads: 1 };
        Arc::new(SiteState::new(engine, false, resources))
    }

    #[test]
    fn long_answers_that_nobody_reads_are_limited() {
        let page = |size: usize| answer(StatusCode::OK, "text/html", "x".repeat(size << 10));
        let all = page(MOST_UNSENT + 1);
        assert_eq!(all.status(), StatusCode::OK);
        assert_eq!(page(LONG).status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(page(LONG - 1).status(), StatusCode::OK);
        drop(all);
        assert_eq!(page(LONG).status(), StatusCode::OK);
    }

    #[test]
    fn counts_that_take_too_long_are_lower_bounds() {
        let export = TestExport::indexed(&["red"]);
        let site = Site::of(&state_of(&export));
        let query = PageQuery::parse("q=red");
        let counted =
            facets::count(&site, &query, &Flags::default(), Duration::ZERO, &Call::default());
        assert!(!counted.expect("no error").is_complete);
    }

    #[test]
    fn an_answer_makes_the_stamp_once() {
        let export = TestExport::of(&["red"]);
        let state = state_of(&export);
        let site = Site::of(&state);
        let before = site.stamp().to_owned();
        export.add(1, "red fox");
        assert_eq!(site.stamp(), before);
        // The data that the next call reads is as new as the stamp or newer.
        assert_eq!(site.places(false, &Call::default()).unwrap().len(), 2);
        let next = Site::of(&state);
        assert_ne!(next.stamp(), before);
        assert_eq!(next.messages(&Call::default()), Some(2));
    }
}
