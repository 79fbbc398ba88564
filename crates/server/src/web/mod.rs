//! The page in the browser: a router of HTML views.
//!
//! The server makes the HTML. Every page works without the script, which only makes the page
//! faster. No text of a chat is used as raw HTML: see `conversation::markdown`.
//!
//! - `search`: the page of results: the address, the filters, the excerpts
//! - `conversation`: a conversation, its messages and its files; its star; forgetting it
//! - `frame`: what pages share, and the pages about all chats: statistics, status, import
//!
//! The router has no authorisation: the server that uses the router checks the credentials of requests.

mod conversation;
mod frame;
mod search;

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::routing::{MethodRouter, get, post};
use axum::{Router, response::Response};
use maud::Markup;
use tower_http::{CompressionLevel, compression::CompressionLayer};

use conversation::{ConversationView, files, forget, set_flag};
use frame::site::{self, Problem, Site, SiteState, change, file, html, html_for, text};
use frame::{assets, import, stats, status, upload};
use search::page_query::{self, PageQuery};
use search::{facets, scope::read};
use verbatim_base::call::Call;
use verbatim_engine::{Engine, Resources};

type Shared = State<Arc<SiteState>>;

type Route = MethodRouter<Arc<SiteState>>;

/// Returns the routes of the page. `local_time` shows times in the time zone of this computer;
/// `resources` are the limits of indexing.
pub fn router(engine: Arc<Engine>, local_time: bool, resources: Resources) -> Router {
    upload::remove_abandoned(&engine.config().home);
    let site = Arc::new(SiteState::new(engine, local_time, resources));
    Router::new()
        .route("/", get(search))
        .route("/search", get(search))
        .route("/results", a_search(search::fragment))
        .route("/facets", get(facet_counts))
        .route("/c/{id}", get(whole_conversation))
        .route("/c/{id}/{number}", a_message(conversation::page))
        .route("/c/{id}/file/{hash}", get(files::file))
        .route("/c/{id}/flag", post(set_flag::set))
        .route("/c/{id}/forget", get(whether_to_forget).post(forget_for_good))
        .route("/pulse", get(pulse))
        .route("/peek/{id}/{number}", a_message(conversation::peek))
        .route("/stats", a_search(stats::page))
        .route("/status", a_page(status::page))
        .route("/import", a_page(import::page).post(upload::receive))
        .route("/import/progress", a_page(|site, _| Ok(import::progress(site))))
        .route("/static/{hash}/{name}", get(assets::asset))
        .route("/favicon.ico", get(assets::favicon))
        .fallback(no_such_page)
        // Most browsers run on the same computer, so fast compression matters more than a small size.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .with_state(site)
}

async fn search(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let query = PageQuery::parse(query.as_deref().unwrap_or_default());
    html_for(&site, query, |site, query, call| search::page(site, &read(site, query, call)?, call))
        .await
}

async fn facet_counts(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let is_first = page_query::fields(&query).any(|(name, value)| name == "first" && value == "1");
    let query = PageQuery::parse(&query);
    html(&site, move |site, call| {
        facets::fragment(site, &read(site, &query, call)?, is_first, call)
    })
    .await
}

async fn whole_conversation(
    State(site): Shared,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    if let Some((stem, form @ ("md" | "html"))) = id.rsplit_once('.')
        && !site::is_id(&site, &id).await
    {
        let id = stem.to_owned();
        return match form {
            "md" => text(&site, move |site, call| conversation::as_markdown(site, &id, call)).await,
            _ => file(&site, move |site, call| conversation::as_file(site, &id, call)).await,
        };
    }
    let view = ConversationView::new(id, None, query.as_deref().unwrap_or_default());
    html_for(&site, view.query.clone(), move |site, _, call| {
        conversation::page(site, &view.read(site, call)?, call)
    })
    .await
}

/// Returns the route of a part of a conversation, from the message with the number in the address. A number
/// with `.md` requests only the text of the message.
fn a_message(work: fn(&Site, &ConversationView, &Call) -> Result<Markup, Problem>) -> Route {
    type Place = Path<(String, String)>;
    get(move |State(site): Shared, Path((id, number)): Place, RawQuery(query)| async move {
        if let Some(Ok(number)) = number.strip_suffix(".md").map(str::parse) {
            return text(&site, move |site, call| {
                conversation::as_written(site, &id, number, call)
            })
            .await;
        }
        let Ok(number) = number.parse() else { return no_such_page(State(site)).await };
        let view = ConversationView::new(id, Some(number), query.as_deref().unwrap_or_default());
        html_for(&site, view.query.clone(), move |site, _, call| {
            work(site, &view.read(site, call)?, call)
        })
        .await
    })
}

async fn whether_to_forget(State(site): Shared, Path(id): Path<String>) -> Response {
    html(&site, move |site, call| forget::page(site, &id, call)).await
}

async fn forget_for_good(State(site): Shared, Path(id): Path<String>) -> Response {
    change(&site, move |site| forget::forget(site, &id)).await
}

/// Answers with a stamp. If the stamp changes, the content of pages may have changed.
async fn pulse(State(site): Shared) -> Response {
    text(&site, |site, _| Ok(site.stamp().to_owned())).await
}

fn a_search(work: fn(&Site, &PageQuery, &Call) -> Result<Markup, Problem>) -> Route {
    get(move |State(site): Shared, RawQuery(query)| async move {
        let query = PageQuery::parse(query.as_deref().unwrap_or_default());
        html(&site, move |site, call| work(site, &read(site, &query, call)?, call)).await
    })
}

fn a_page(work: fn(&Site, &Call) -> Result<Markup, Problem>) -> Route {
    get(move |State(site): Shared| async move { html(&site, work).await })
}

async fn no_such_page(State(site): Shared) -> Response {
    html(&site, |_, _| Err(Problem::Missing("There is no such page".to_owned()))).await
}
