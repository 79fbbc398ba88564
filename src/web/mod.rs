//! The page in the browser: a router of HTML views.
//!
//! The server makes the HTML, and every page works without the script; the script only makes it
//! faster. No text of a chat is used as raw HTML: see `markdown`.
//!
//! The router has no authorisation: the server that uses the router checks who may ask.

mod ansi;
mod ask;
mod assets;
mod branches;
mod card;
mod chart;
mod code;
mod diff;
mod excerpt;
mod facets;
mod family;
mod files;
mod find;
mod flag;
mod forget;
mod frame;
mod import;
mod imports;
mod mark;
mod markdown;
mod message;
mod results;
mod scope;
mod set_flag;
mod site;
mod stats;
mod status;
mod talk;
mod trends;
mod upload;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    response::Response,
    routing::{get, post},
};
use tower_http::{CompressionLevel, compression::CompressionLayer};

use crate::engine::{Engine, Resources};
use ask::Ask;
use site::{SiteState, change, file, html, text};

type Shared = State<Arc<SiteState>>;

/// Returns the routes of the page. `local_time` shows times in the time zone of this computer;
/// `resources` are the limits of indexing.
pub fn router(engine: Arc<Engine>, local_time: bool, resources: Resources) -> Router {
    upload::remove_abandoned(&engine.config().home);
    let site = Arc::new(SiteState::new(engine, local_time, resources));
    Router::new()
        .route("/", get(search))
        .route("/search", get(search))
        .route("/results", get(fragment))
        .route("/facets", get(counts))
        .route("/c/{id}", get(conversation))
        .route("/c/{id}/{number}", get(message))
        .route("/c/{id}/file/{hash}", get(attached))
        .route("/c/{id}/flag", post(flagged))
        .route("/c/{id}/forget", get(whether_to_forget).post(forget_for_good))
        .route("/pulse", get(pulse))
        .route("/peek/{id}/{number}", get(peek))
        .route("/stats", get(statistics))
        .route("/trends", get(compared))
        .route("/status", get(state))
        .route("/import", get(exports).post(upload::receive))
        .route("/import/progress", get(progress))
        .route("/static/{hash}/{name}", get(assets::asset))
        .route("/favicon.ico", get(assets::favicon))
        .fallback(missing)
        // Most browsers are on the same computer, where time counts for more than bytes.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .with_state(site)
}

async fn search(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let ask = Ask::parse(query.as_deref().unwrap_or_default());
    html(&site, move |site, stop| results::page(site, &ask, stop)).await
}

async fn fragment(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let ask = Ask::parse(query.as_deref().unwrap_or_default());
    html(&site, move |site, stop| results::fragment(site, &ask, stop)).await
}

async fn counts(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let ask = Ask::parse(&query);
    let is_first = ask::fields(&query).any(|(name, value)| name == "first" && value == "1");
    html(&site, move |site, stop| facets::fragment(site, &ask, is_first, stop)).await
}

async fn conversation(
    State(site): Shared,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    if let Some((stem, form @ ("md" | "html"))) = id.rsplit_once('.')
        && !site::is_id(&site, &id).await
    {
        let id = stem.to_owned();
        return match form {
            "md" => text(&site, move |site, stop| talk::as_markdown(site, &id, stop)).await,
            _ => file(&site, move |site, stop| talk::as_file(site, &id, stop)).await,
        };
    }
    let view = talk::View::new(id, None, query.as_deref().unwrap_or_default());
    html(&site, move |site, stop| talk::page(site, &view, stop)).await
}

async fn message(
    State(site): Shared,
    Path((id, number)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let Ok(number) = number.parse() else { return missing(State(site)).await };
    let view = talk::View::new(id, Some(number), query.as_deref().unwrap_or_default());
    html(&site, move |site, stop| talk::page(site, &view, stop)).await
}

async fn peek(
    State(site): Shared,
    Path((id, number)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let Ok(number) = number.parse() else { return missing(State(site)).await };
    let view = talk::View::new(id, Some(number), query.as_deref().unwrap_or_default());
    html(&site, move |site, stop| talk::peek(site, &view, stop)).await
}

async fn attached(State(site): Shared, Path((id, hash)): Path<(String, String)>) -> Response {
    files::answer(&site, id, hash).await
}

async fn flagged(
    State(site): Shared,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    set_flag::set(&site, id, query.unwrap_or_default()).await
}

async fn whether_to_forget(State(site): Shared, Path(id): Path<String>) -> Response {
    html(&site, move |site, stop| forget::page(site, &id, stop)).await
}

async fn forget_for_good(State(site): Shared, Path(id): Path<String>) -> Response {
    change(&site, move |site| forget::done(site, &id)).await
}

/// Answers with a stamp that changes when another page may be shown.
async fn pulse(State(site): Shared) -> Response {
    text(&site, |site, _| Ok(site.stamp().to_owned())).await
}

async fn statistics(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let ask = Ask::parse(query.as_deref().unwrap_or_default());
    html(&site, move |site, stop| stats::page(site, &ask, stop)).await
}

async fn compared(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    html(&site, move |site, stop| trends::page(site, &query, stop)).await
}

async fn state(State(site): Shared) -> Response {
    html(&site, status::page).await
}

async fn exports(State(site): Shared) -> Response {
    html(&site, import::page).await
}

async fn progress(State(site): Shared) -> Response {
    html(&site, |site, _| Ok(import::progress(site))).await
}

async fn missing(State(site): Shared) -> Response {
    html(&site, |_, _| Err(site::Problem::Missing("There is no such page".to_owned()))).await
}

#[cfg(test)]
mod tests;
