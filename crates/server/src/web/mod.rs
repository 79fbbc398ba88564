//! The page in the browser: a router of HTML views.
//!
//! The server makes the HTML. Every page works without the script, which only makes the page
//! faster. No text of a chat is used as raw HTML: see `markdown`.
//!
//! The router has no authorisation: the server that uses the router checks the credentials of requests.

mod artifact;
mod ask;
mod assets;
mod branches;
mod card;
mod chart;
mod chosen;
mod code;
mod conversation;
mod diff;
mod excerpt;
mod facets;
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
mod prose;
mod related;
mod results;
mod scope;
mod set_flag;
mod site;
mod stats;
mod status;
mod steps;
mod trends;
mod upload;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    response::Response,
    routing::{MethodRouter, get, post},
};
use maud::Markup;
use tower_http::{CompressionLevel, compression::CompressionLayer};

use ask::Ask;
use conversation::ConversationView;
use site::{Problem, Site, SiteState, change, file, html, html_for, text};
use verbatim_base::model::Stop;
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
        .route("/results", a_search(results::fragment))
        .route("/facets", a_query(facet_counts))
        .route("/c/{id}", get(whole_conversation))
        .route("/c/{id}/{number}", a_message(conversation::page))
        .route("/c/{id}/file/{hash}", get(files::file))
        .route("/c/{id}/flag", post(set_flag::set))
        .route("/c/{id}/forget", get(whether_to_forget).post(forget_for_good))
        .route("/pulse", get(pulse))
        .route("/peek/{id}/{number}", a_message(conversation::peek))
        .route("/stats", a_search(stats::page))
        .route("/trends", a_query(trends::page))
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
    let ask = Ask::parse(query.as_deref().unwrap_or_default());
    html_for(&site, ask, results::page).await
}

fn facet_counts(site: &Site, query: &str, stop: &Stop) -> Result<Markup, Problem> {
    let is_first = ask::fields(query).any(|(name, value)| name == "first" && value == "1");
    facets::fragment(site, &Ask::parse(query), is_first, stop)
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
            "md" => text(&site, move |site, stop| conversation::as_markdown(site, &id, stop)).await,
            _ => file(&site, move |site, stop| conversation::as_file(site, &id, stop)).await,
        };
    }
    let view = ConversationView::new(id, None, query.as_deref().unwrap_or_default());
    html_for(&site, view.ask().clone(), move |site, _, stop| conversation::page(site, &view, stop))
        .await
}

/// Returns the route of a part of a conversation, from the message with the number in the address. A number
/// with `.md` requests only the text of the message.
fn a_message(work: fn(&Site, &ConversationView, &Stop) -> Result<Markup, Problem>) -> Route {
    type Place = Path<(String, String)>;
    let answer = move |State(site): Shared, Path((id, number)): Place, RawQuery(query)| async move {
        if let Some(Ok(number)) = number.strip_suffix(".md").map(str::parse) {
            return text(&site, move |site, stop| {
                conversation::as_written(site, &id, number, stop)
            })
            .await;
        }
        let Ok(number) = number.parse() else { return no_such_page(State(site)).await };
        let view = ConversationView::new(id, Some(number), query.as_deref().unwrap_or_default());
        html_for(&site, view.ask().clone(), move |site, _, stop| work(site, &view, stop)).await
    };
    get(answer)
}

async fn whether_to_forget(State(site): Shared, Path(id): Path<String>) -> Response {
    html(&site, move |site, stop| forget::page(site, &id, stop)).await
}

async fn forget_for_good(State(site): Shared, Path(id): Path<String>) -> Response {
    change(&site, move |site| forget::forget(site, &id)).await
}

/// Answers with a stamp. If the stamp changes, the content of pages may have changed.
async fn pulse(State(site): Shared) -> Response {
    text(&site, |site, _| Ok(site.stamp().to_owned())).await
}

fn a_query(work: fn(&Site, &str, &Stop) -> Result<Markup, Problem>) -> Route {
    get(move |State(site): Shared, RawQuery(query)| async move {
        let query = query.unwrap_or_default();
        html(&site, move |site, stop| work(site, &query, stop)).await
    })
}

fn a_search(work: fn(&Site, &Ask, &Stop) -> Result<Markup, Problem>) -> Route {
    get(move |State(site): Shared, RawQuery(query)| async move {
        let ask = Ask::parse(query.as_deref().unwrap_or_default());
        html(&site, move |site, stop| work(site, &ask, stop)).await
    })
}

fn a_page(work: fn(&Site, &Stop) -> Result<Markup, Problem>) -> Route {
    get(move |State(site): Shared| async move { html(&site, work).await })
}

async fn no_such_page(State(site): Shared) -> Response {
    html(&site, |_, _| Err(Problem::Missing("There is no such page".to_owned()))).await
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, to_bytes},
        http::{Request, StatusCode},
    };
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;
    use crate::test_export::TestExport;
    use verbatim_engine::{Config, Save};

    const RESOURCES: Resources = Resources { memory: 64 << 20, threads: 1 };

    const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(1)> needle";

    async fn get_of(router: &Router, address: &str) -> (StatusCode, String) {
        let request = Request::get(address).body(Body::empty()).expect("an address");
        let answer = router.clone().oneshot(request).await.expect("routers do not fail");
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 64 << 20).await.expect("a body");
        (status, String::from_utf8(body.to_vec()).expect("UTF-8"))
    }

    fn router_of(export: &TestExport) -> Router {
        router(Arc::new(Engine::new(export.engine.config().clone())), false, RESOURCES)
    }

    fn words_of(html: &str) -> String {
        let parts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        parts.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[tokio::test]
    async fn a_search_has_its_results_its_filters_and_its_links() {
        for export in [TestExport::of as fn(&[&str]) -> TestExport, TestExport::indexed] {
            let export = export(&["Été in red", "a RED fox and a red hen", "nothing"]);
            let router = router_of(&export);
            let (status, page) = get_of(&router, "/search?q=red").await;
            assert_eq!(status, StatusCode::OK);
            let words = words_of(&page);
            assert!(words.contains("2 messages in 2 conversations"), "{words}");
            assert!(page.contains("<mark>RED</mark> fox and a <mark>red</mark> hen"), "{page}");
            assert!(page.contains("href=\"/c/1/1?q=red#hit\""), "{page}");
            assert!(page.contains("name=\"role\" value=\"user\" form=\"find\""), "{page}");
            let (_, fragment) = get_of(&router, "/results?q=%C3%A9t%C3%A9").await;
            assert!(fragment.contains("<mark>Été</mark>") && !fragment.contains("<html"));
            let (_, none) = get_of(&router, "/search?q=absent&role=user").await;
            assert!(none.contains("No message has") && none.contains("mode=meaning"), "{none}");
            let (_, other) = get_of(&router, "/search?q=red&role=tool").await;
            assert!(other.contains("No message has"), "{other}");
            let (_, early) = get_of(&router, "/search?q=red&to=2001").await;
            assert!(early.contains("No message has"), "{early}");
            let (status, wrong) =
                get_of(&router, "/search?q=red&from=soon&to=2025&role=user").await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(wrong.contains("2025-01-31"), "{wrong}");
            // The page keeps what was typed, so that only the wrong date has to be typed again.
            let kept = ["q", "from", "to", "role"].map(|name| format!("name=\"{name}\" value=\""));
            for (field, value) in kept.iter().zip(["red", "soon", "2025", "user"]) {
                assert!(wrong.contains(&format!("{field}{value}\"")), "{field}: {wrong}");
            }
            let (_, by_title) = get_of(&router, "/search?q=TITLE+1").await;
            assert!(
                by_title.contains("<mark>Title 1</mark>")
                    && by_title.contains("Found by its title")
            );
            let (_, recent) = get_of(&router, "/").await;
            assert!(words_of(&recent).contains("3 conversations, the latest first"), "{recent}");
        }
    }

    #[tokio::test]
    async fn a_message_is_sent_as_it_was_written() {
        let export = TestExport::of(&["A *red* fox\n\n# <b>"]);
        let router = router_of(&export);
        let sent = get_of(&router, "/c/0/1.md").await;
        assert_eq!(sent, (StatusCode::OK, "A *red* fox\n\n# <b>".to_owned()));
        for wrong in ["/c/0/2.md", "/c/0/one.md", "/c/none/1.md"] {
            assert_eq!(get_of(&router, wrong).await.0, StatusCode::NOT_FOUND, "{wrong}");
        }
    }

    #[tokio::test]
    async fn the_field_has_switches_that_an_address_says() {
        for export in [TestExport::of as fn(&[&str]) -> TestExport, TestExport::indexed] {
            let export = export(&["Red fox", "a reddish hen", "red ant", "rd"]);
            let router = router_of(&export);
            for (address, found) in [
                ("q=red", "3 messages in 3"),
                ("q=red&case=1", "2 messages in 2"),
                ("q=red&word=1", "2 messages in 2"),
                ("q=red&word=1&case=1", "1 message in 1"),
                ("q=re%3Fd&match=regex", "4 messages in 4"),
                ("q=re%3Fd&match=regex&word=1&case=1", "2 messages in 2"),
            ] {
                let (_, page) = get_of(&router, &format!("/search?{address}")).await;
                assert!(words_of(&page).contains(found), "{address}: {}", words_of(&page));
                let of = |name: &str, value: &str| {
                    let input = format!("name=\"{name}\" value=\"{value}\" checked");
                    page.matches(&input).count()
                };
                let set = [of("case", "1"), of("word", "1"), of("match", "regex")];
                let asked = ["case=1", "word=1", "match=regex"].map(|it| address.contains(it));
                assert_eq!(set, asked.map(usize::from), "{address}");
                assert_eq!(page.matches("name=\"match\"").count(), 1, "{address}");
            }
            let (_, page) = get_of(&router, "/search?q=Red+Fox&case=1").await;
            let words = words_of(&page);
            assert!(
                words.contains("in this letter case")
                    && words.contains("1 message in any letter case"),
                "{words}"
            );
            let (_, wrong) = get_of(&router, "/search?q=(&match=regex").await;
            assert!(words_of(&wrong).contains("regular expression"), "{wrong}");
            let rows = |page: &str| -> Vec<usize> {
                let at = |id: usize| page.find(&format!("href=\"/c/{id}/1?"));
                (0..3).map(|id| at(id).expect("a row")).collect()
            };
            let (_, newest) = get_of(&router, "/search?q=red").await;
            let (_, oldest) = get_of(&router, "/search?q=red&sort=oldest").await;
            assert!(
                rows(&newest).is_sorted_by(|a, b| a > b) && rows(&oldest).is_sorted(),
                "{oldest}"
            );
            assert!(
                oldest.contains("name=\"sort\" value=\"oldest\"")
                    && oldest.contains("newest first")
            );
        }
    }

    #[tokio::test]
    async fn statistics_lead_to_their_messages() {
        let export = TestExport::of(&["red", "red", "blue"]);
        let sql = "INSERT INTO messages VALUES ('t', 0, 'tool', 'Red', 1600000000)";
        export.connection.execute(sql, []).unwrap();
        export.reindex();
        let router = router_of(&export);
        let (_, all) = get_of(&router, "/stats").await;
        assert!(words_of(&all).contains("4 messages in 3 conversations"), "{all}");
        let (_, page) = get_of(&router, "/stats?q=red").await;
        let words = words_of(&page);
        assert!(
            words.contains("3 messages in 2 conversations") && words.contains("have “red”"),
            "{words}"
        );
        // Each bar, each cell and each row is a link to a search that finds its number of messages.
        let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        let links = links.map(|(link, _)| link.replace("&amp;", "&"));
        let links: std::collections::BTreeSet<String> =
            links.filter(|link| link.starts_with("/?q=red&")).collect();
        assert_eq!(links.iter().filter(|link| link.contains("from=20")).count(), 2, "{links:?}");
        assert_eq!(links.iter().filter(|link| link.contains("hour=")).count(), 2, "{links:?}");
        for (link, found) in [
            ("/?q=red&from=2020-09&to=2020-09", "1 message in 1"),
            ("/?q=red&role=user", "2 messages in 2"),
            ("/?q=red&service=export", "3 messages in 2"),
            ("/?q=red&hour=156", "1 message in 1"),
        ] {
            let is_there =
                links.contains(link) || link.contains("hour") || link.contains("service");
            assert!(is_there, "{link}: {links:?}");
            let (_, page) = get_of(&router, link).await;
            assert!(words_of(&page).contains(found), "{link}: {}", words_of(&page));
        }
        let (_, sunday) = get_of(&router, "/?hour=156").await;
        assert!(
            words_of(&sunday).contains("1 conversation") && sunday.contains("Sun 12:00–13:00"),
            "{sunday}"
        );
        let (_, results) = get_of(&router, "/search?q=red&role=user").await;
        assert!(results.contains("href=\"/stats?q=red&amp;role=user\""), "{results}");
        // What is not chosen is not counted.
        let (_, old) = get_of(&router, "/stats?q=red&to=2020-12").await;
        let words = words_of(&old);
        assert!(words.contains("1 message in 1 conversation"), "{words}");
        assert!(!old.contains("from=2023-11") && old.matches("hour=").count() == 2, "{old}");
        let (_, of_tools) = get_of(&router, "/stats?q=red&role=tool").await;
        let words = words_of(&of_tools);
        assert!(!of_tools.contains("role=user") && words.contains("You wrote 0"), "{words}");
        let (_, of_users) = get_of(&router, "/stats?role=user").await;
        assert!(words_of(&of_users).contains("3 messages in 3 conversations"), "{of_users}");
    }

    #[tokio::test]
    async fn quoted_texts_and_minus_are_offered() {
        let export =
            TestExport::indexed(&["San Francisco has a good restaurant", "restaurant hotel"]);
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/search?q=%22San+Francisco%22+restaurant").await;
        let words = words_of(&page);
        assert!(
            words.contains("1 message has both texts") && page.contains("<mark>restaurant</mark>"),
            "{words}"
        );
        let (_, page) = get_of(&router, "/search?q=restaurant+-hotel").await;
        let words = words_of(&page);
        assert!(words.contains("1 message has “restaurant” without “hotel”"), "{words}");
        assert!(
            page.contains("match=not") && page.contains("good <mark>restaurant</mark>"),
            "{page}"
        );
    }

    #[tokio::test]
    async fn a_search_by_meaning_keeps_its_counts_and_its_months() {
        let export = TestExport::indexed(&["a red fox", "a red hen", "green soup"]);
        let router = router_of(&export);
        let (_, all) = get_of(&router, "/facets?q=red+fox&mode=meaning").await;
        let of_user = |page: &str| {
            let words = words_of(page);
            let (_, rest) = words.split_once(" You ").expect("a role");
            rest.split(' ').next().map(str::to_owned)
        };
        assert!(all.contains("data-month=\"2023-11\"") && !all.contains("id=\"exact\""), "{all}");
        assert!(of_user(&all).is_some_and(|count| count.parse::<u32>().is_ok()), "{all}");
        let (_, none) = get_of(&router, "/facets?q=red+fox&mode=meaning&role=tool").await;
        assert_eq!(of_user(&none), of_user(&all), "{none}");
    }

    #[tokio::test]
    async fn the_status_says_how_far_the_sentence_model_is() {
        let export = TestExport::indexed(&["red", "blue"]);
        let (_, status) = get_of(&router_of(&export), "/status").await;
        assert!(words_of(&status).contains("meaning: 0 of 2 messages"), "{status}");
        for source in export.engine.all_sources().present_of(&verbatim_engine::SourceKind::ALL) {
            source.encode(1, &Stop::never(), &|_| ()).unwrap();
        }
        let (_, status) = get_of(&router_of(&export), "/status").await;
        assert!(!words_of(&status).contains("meaning:"), "{status}");
    }

    #[tokio::test]
    async fn what_is_far_stands_below_a_heading() {
        let (first, second) = ("Sea turtles swim over the reef.", "Reefs have many turtles.");
        let others = ["An aquarium shows fish.", "The invoice is due.", "Green soup for dinner."];
        let export = TestExport::indexed(&[&[first, second][..], &others].concat());
        let address = "/search?q=turtles+of+the+reef&mode=meaning";
        let (_, page) = get_of(&router_of(&export), address).await;
        let words = words_of(&page);
        let (near, far) = words.split_once("Further away").expect("a heading");
        assert!(near.contains("Sea turtles") && near.contains("Reefs have"), "{words}");
        assert!(!far.contains("turtles"), "{words}");
    }

    #[tokio::test]
    async fn messages_without_the_words_stand_below_a_sentence() {
        let export = TestExport::of(&["Sea turtles swim over the reef.", "Fish swim in the sea."]);
        let sql = "UPDATE messages SET role = 'assistant' WHERE content LIKE '%turtles%'";
        export.connection.execute(sql, []).unwrap();
        export.reindex();
        let router = router_of(&export);
        let said = "No message has these words; nearest by meaning.";
        for (role, is_said) in [("user", true), ("assistant", false)] {
            let address = format!("/search?q=turtles&mode=meaning&role={role}");
            let (_, page) = get_of(&router, &address).await;
            let words = words_of(&page);
            assert_eq!(words.contains(said), is_said, "{role}: {words}");
            assert!(words.contains("swim"), "{words}");
        }
    }

    #[tokio::test]
    async fn a_filter_that_names_nothing_is_said_in_search_and_statistics() {
        let export = TestExport::indexed(&["red"]);
        let router = router_of(&export);
        for address in [
            "/search?q=red&branch=nonesuch",
            "/stats?q=red&branch=nonesuch",
            "/stats?branch=nonesuch",
        ] {
            let (_, page) = get_of(&router, address).await;
            let words = words_of(&page);
            let said = "no conversation has the branch &quot;nonesuch&quot;";
            assert_eq!(words.matches(said).count(), 1, "{address}: {words}");
        }
    }

    #[tokio::test]
    async fn a_text_that_is_nowhere_is_read_in_other_ways() {
        for export in [TestExport::of as fn(&[&str]) -> TestExport, TestExport::indexed] {
            let export = export(&["sun on a tomato", "Tomato, no sun", "a café"]);
            let router = router_of(&export);
            for address in ["/search?q=tomato+sun", "/results?q=tomato+sun"] {
                let (_, page) = get_of(&router, address).await;
                let words = words_of(&page);
                assert!(words.contains("No message has “tomato sun” as one text"), "{words}");
                assert!(words.contains("2 messages have both words"), "{words}");
                assert!(page.contains("<mark>sun</mark> on a <mark>tomato</mark>"), "{page}");
                assert!(
                    page.contains("href=\"/c/0/1?q=tomato%20sun&amp;match=all#hit\""),
                    "{page}"
                );
            }
            let (_, both) = get_of(&router, "/search?q=tomato+sun&match=all").await;
            let words = words_of(&both);
            assert!(words.contains("2 messages in 2 conversations"), "{words}");
            assert!(both.contains("href=\"/?q=tomato%20sun\"") && words.contains("As one text"));
            assert!(both.contains("name=\"match\" value=\"all\" form=\"find\""), "{both}");
            // One of the texts may be in the title, and the filters count what is shown.
            for address in ["/search", "/facets"] {
                let address = format!("{address}?q=title+tomato&match=all");
                let (_, both) = get_of(&router, &address).await;
                assert!(words_of(&both).contains("2 messages in 2 conversations"), "{both}");
            }
            let (_, shown) = get_of(&router, "/c/0/1?q=tomato+sun&match=all").await;
            assert!(shown.contains("<mark>sun</mark> on a <mark>tomato</mark>"), "{shown}");
            for (query, address, what) in [
                ("cafe", "/?q=cafe&amp;match=fold", "1 message with other accents or width"),
                ("tomatoes", "/?q=tomato", "2 messages have “tomato”"),
                ("sun|moon", "/?q=sun%7Cmoon&amp;match=regex", "2 messages as a regular expr"),
                ("rye+OR+sun", "/?q=rye%20OR%20sun&amp;match=any", "2 messages have one of"),
                ("sun&role=tool", "/?q=sun\"", "2 messages without the filters"),
            ] {
                let (_, page) = get_of(&router, &format!("/search?q={query}")).await;
                assert!(words_of(&page).contains(what), "{query}: {}", words_of(&page));
                assert!(page.contains(&format!("href=\"{address}")), "{query}: {page}");
            }
            let (_, none) = get_of(&router, "/search?q=zebra+crossing").await;
            assert!(!none.contains("match=") && !none.contains("as one text"), "{none}");
        }
    }

    #[tokio::test]
    async fn the_beginning_of_several_ids_leads_to_each_of_them() {
        let export = TestExport::of(&["red", "blue"]);
        export
            .connection
            .execute("UPDATE messages SET conversation_id = 'ab' || conversation_id", [])
            .unwrap();
        export.connection.execute("UPDATE conversations SET id = 'ab' || id", []).unwrap();
        let (status, page) = get_of(&router_of(&export), "/c/ab").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(page.contains("<h1>“ab” may be any of 2 conversations</h1>"), "{page}");
        assert!(page.contains("href=\"/c/ab0\"") && page.contains("href=\"/c/ab1\""), "{page}");
        let (_, page) = get_of(&router_of(&export), "/c/ab?q=red").await;
        assert!(page.contains("href=\"/c/ab0?q=red\""), "{page}");
    }

    #[tokio::test]
    async fn counts_say_what_another_filter_would_find() {
        let export = TestExport::of(&["red", "red", "blue"]);
        let insert = "INSERT INTO messages VALUES ('t' || ?1, 0, 'tool', 'Red ' || ?1, 1600000000)";
        for number in 0..3 {
            export.connection.execute(insert, [number]).unwrap();
        }
        export.reindex();
        let router = router_of(&export);
        let (_, facets) = get_of(&router, "/facets?q=red&role=user").await;
        let words = words_of(&facets);
        assert!(words.contains("You 2") && words.contains("Tool 3"), "{words}");
        // Names without a match are not listed one by one.
        assert!(words.contains("Tool 3 2 more without a match"), "{words}");
        assert!(words.contains("Show 2 results") && words.contains("Filters (1)"), "{words}");
        assert!(words.contains("2 messages in 2 conversations"), "{words}");
        assert!(facets.contains("November 2023: 2"), "{facets}");
        let (_, all) = get_of(&router, "/facets?q=red").await;
        assert!(
            all.contains("September 2020: 3") && words_of(&all).contains("5 messages"),
            "{all}"
        );
        let (_, meaning) = get_of(&router, "/facets?q=red&mode=meaning").await;
        assert!(words_of(&meaning).contains("Tool 3"), "{meaning}");
    }

    #[tokio::test]
    async fn a_filter_by_source_shows_nothing_of_another_source_with_the_same_id() {
        let export = TestExport::of(&["red"]);
        let turns = [("user".to_owned(), "red thread".to_owned())];
        let save = Save { key: None, title: Some("Thread"), summary: "", turns: &turns };
        let id = export.engine.memory().save_conversation(&save).unwrap().thread.id;
        let rename = "UPDATE conversations SET id = ?1";
        export.connection.execute(rename, [&id]).unwrap();
        export.connection.execute("UPDATE messages SET conversation_id = ?1", [&id]).unwrap();
        let router = router_of(&export);
        for (address, expected) in [
            ("/search?q=red", "2 messages in 2 conversations"),
            ("/search?q=red&source=threads", "1 message in 1 conversation"),
            ("/search?q=red&service=export", "1 message in 1 conversation"),
        ] {
            let words = words_of(&get_of(&router, address).await.1);
            assert!(words.contains(expected), "{address}: {words}");
        }
    }

    #[tokio::test]
    async fn stars_and_hidden_conversations_are_filters() {
        for export in [TestExport::of as fn(&[&str]) -> TestExport, TestExport::indexed] {
            let export = export(&["red one", "red two", "red three"]);
            let router = router_of(&export);
            let post = async |address: &str| post_to(&router, address, "").await;
            let words = async |address: &str| words_of(&get_of(&router, address).await.1);
            let answer = post("/c/1/flag?star=1&q=red").await;
            assert_eq!(answer.status(), StatusCode::SEE_OTHER);
            assert_eq!(answer.headers()["location"], "/c/1?q=red");
            assert!(get_of(&router, "/c/2/1?q=red").await.1.contains("hide=1&amp;q=red&amp;at=1"));
            let answer = post("/c/2/flag?hide=1&q=red&at=1").await;
            assert_eq!(answer.headers()["location"], "/c/2/1?q=red#hit");
            assert_eq!(post("/c/nobody/flag?star=1").await.status(), StatusCode::NOT_FOUND);
            assert_eq!(post("/c/1/flag").await.status(), StatusCode::BAD_REQUEST);
            for (query, expected) in [
                ("q=red", "2 messages in 2 conversations"),
                ("q=red&starred=1", "1 message in 1 conversation"),
                ("q=red&hidden=1", "1 message in 1 conversation"),
                ("q=red&role=user", "2 messages in 2 conversations"),
            ] {
                let found = words(&format!("/search?{query}")).await;
                assert!(found.contains(expected), "{query}: {found}");
                let counts = words(&format!("/facets?{query}")).await;
                assert!(counts.contains(expected), "{query}: {counts}");
            }
            let found = words("/search?q=red").await;
            assert!(found.contains("1 conversation that you hid is left out"), "{found}");
            assert!(!found.contains("searched"), "not everything was: {found}");
            assert!(words("/search?q=red&hidden=1").await.contains("red three"));
            assert!(words("/").await.contains("2 conversations, the latest first"));
            assert!(words("/facets").await.contains("You 2"));
            assert!(words("/search?q=red+three").await.contains("No message has"));
            let shown = words("/c/2").await;
            assert!(shown.contains("Show in results again") && shown.contains("☆ Star"), "{shown}");
            post("/c/2/flag?hide=0").await;
            assert!(words("/search?q=red").await.contains("3 messages in 3 conversations"));
            let counts = words("/facets").await;
            assert!(counts.contains("You 3") && counts.contains("★ Starred 1"), "{counts}");
        }
    }

    async fn post_to(router: &Router, address: &str, body: &str) -> Response {
        let request = Request::post(address).body(Body::from(body.to_owned())).unwrap();
        router.clone().oneshot(request).await.unwrap()
    }

    /// Waits for the end of an import, and returns what the page then says about it.
    async fn ended(router: &Router) -> String {
        loop {
            let (_, progress) = get_of(router, "/import/progress").await;
            if !progress.contains("data-running") {
                return progress;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn texts_are_compared_by_month() {
        let export = TestExport::of(&["red", "red and blue", "blue", "green"]);
        let sql = "INSERT INTO messages VALUES ('t', 0, 'tool', 'Red', 1600000000)";
        export.connection.execute(sql, []).unwrap();
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/trends?q=red&q=&q=blue").await;
        let words = words_of(&page);
        assert!(words.contains("red 3") && words.contains("blue 2"), "{words}");
        let row = "November 2023</th><td class=\"r\">2</td><td class=\"r\">2</td>";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("September 2020</th><td class=\"r\">1</td><td class=\"r\">0</td>"));
        let (_, share) = get_of(&router, "/trends?q=red&per=1000").await;
        assert!(share.contains("November 2023</th><td class=\"r\">500.0</td>"), "{share}");
        assert!(share.contains("September 2020</th><td class=\"r\">1000.0</td>"), "{share}");
        assert_eq!(get_of(&router, "/trends").await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn a_text_is_found_within_a_conversation_apart_from_the_search_of_all() {
        let export = TestExport::of(&["first needle"]);
        let insert = "INSERT INTO messages VALUES ('n' || ?1, 0, ?2, ?3, 1700000001 + ?1)";
        for (number, (role, text)) in [
            ("tool", "needle in a tool"),
            ("assistant", "[thinking]\nneedle in a thought\n[tool: Read]\nneedle"),
            ("assistant", "The needle is an answer"),
            ("user", "Thanks"),
        ]
        .into_iter()
        .enumerate()
        {
            export.connection.execute(insert, (number as i64, role, text)).unwrap();
        }
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/c/0?q=thanks&find=needle").await;
        assert!(words_of(&page).contains("Hit 1 of 5, message 1 of 4 “needle”, exact"), "{page}");
        assert!(page.contains("/c/0/2?q=thanks&amp;find=needle#hit\" rel=\"next\""), "{page}");
        assert!(page.contains("href=\"/?q=thanks\" rel=\"up\""), "{page}");
        assert!(page.contains("name=\"q\" value=\"thanks\""), "{page}");
        let (_, page) = get_of(&router, "/c/0?find=needle&view=text").await;
        assert!(words_of(&page).contains("Hit 1 of 2, message 1 of 2 “needle”, exact"), "{page}");
        assert!(!page.contains("in a tool") && !page.contains("in a thought"), "{page}");
        assert!(page.contains("href=\"/c/0/1?find=needle#hit\">Everything"), "{page}");
        assert_eq!(page.matches("<article").count(), 3);
        for (view, messages) in [("thinking", 1), ("tools", 2)] {
            let (_, page) = get_of(&router, &format!("/c/0?find=needle&view={view}")).await;
            assert_eq!(page.matches("<article").count(), messages, "{view}: {page}");
            let matches = format!(", message 1 of {messages} “needle”, exact");
            assert!(words_of(&page).contains(&matches), "{view}: {page}");
        }
    }

    #[tokio::test]
    async fn a_view_of_nothing_says_so_and_a_long_conversation_leads_to_its_ends() {
        let export = TestExport::of(&["red"]);
        let insert = "INSERT INTO messages VALUES ('t' || ?1, 0, 'user', 'hay', 1700000000 + ?1)";
        for number in 1..400 {
            export.connection.execute(insert, [number]).unwrap();
        }
        let router = router_of(&export);
        for address in ["/c/0?view=tools", "/c/0/5?view=tools"] {
            let (_, page) = get_of(&router, address).await;
            assert!(words_of(&page).contains("This conversation has no tools."), "{page}");
        }
        let (_, page) = get_of(&router, "/c/0/200").await;
        assert!(!page.contains("This conversation has no"), "{page}");
        assert!(page.contains("href=\"/c/0/1#m1\">The first</a>"), "{page}");
        assert!(page.contains("href=\"/c/0/400#m400\">The last</a>"), "{page}");
    }

    #[tokio::test]
    async fn every_match_of_a_message_is_marked() {
        let export = TestExport::of(&[&"e ".repeat(3_000)]);
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/c/0/1?q=e").await;
        let article = page.split("<article").nth(1).expect("a message");
        assert_eq!(article.matches("<mark").count(), 3_000);
        let export = TestExport::of(&[&"e ".repeat(15_000)]);
        let (_, page) = get_of(&router_of(&export), "/c/0/1?q=e").await;
        assert!(page.contains("The first 10,000 matches of a part are marked"));
    }

    #[tokio::test]
    async fn each_match_has_an_address_and_the_chosen_one_is_the_anchor() {
        // The second of the messages that match is longer than what is shown at once.
        let long = format!("red first {} red last", "hay \n".repeat(20_000));
        let export = TestExport::of(&["a **red** fox, red hen", "blue"]);
        let insert = "INSERT INTO messages VALUES ('n' || ?1, 0, 'assistant', ?2, 1700000001 + ?1)";
        for (number, text) in
            [&*long, "no colour", "nee**dle**", "[tool: Bash]\nred"].iter().enumerate()
        {
            export.connection.execute(insert, (number as i64, text)).unwrap();
        }
        let router = router_of(&export);
        let hit = async |address: &str| {
            let (_, page) = get_of(&router, address).await;
            assert_eq!(page.matches("id=\"hit\"").count(), 1, "{address}: {page}");
            let link = |rel: &str| {
                let (before, _) =
                    page.split_once(&format!("\" rel=\"{rel}\" aria-keyshortcuts"))?;
                Some(before.rsplit_once("href=\"")?.1.replace("&amp;", "&"))
            };
            let (_, after) = page.split_once("id=\"hit\"").expect("an anchor");
            let (_, count) = page.split_once("class=\"count\">").expect("a count");
            let count = words_of(count).split(" “").next().unwrap_or_default().to_owned();
            (
                count,
                link("prev"),
                link("next"),
                after.split('<').next().unwrap_or_default().to_owned(),
            )
        };
        let (mut address, mut seen) = ("/c/0/1?q=red#hit".to_owned(), Vec::new());
        loop {
            let (count, before, next, text) = hit(&address).await;
            assert_eq!(before.is_none(), seen.is_empty());
            if let Some(before) = before {
                let (earlier, ..) = hit(&before).await;
                assert_eq!(Some(&earlier), seen.last(), "{before}");
            }
            assert_eq!(text, ">red", "{address}");
            seen.push(count);
            let Some(next) = next else { break };
            address = next;
        }
        assert_eq!(seen.len(), 5, "{seen:?}");
        for (n, message) in [1, 1, 2, 2, 3].into_iter().enumerate() {
            assert_eq!(seen[n], format!("Hit {} of 5, message {message} of 3", n + 1));
        }
        // A number that is too high chooses the last match. Without a mark, the anchor is elsewhere.
        assert_eq!(hit("/c/0/1?q=red&hit=9").await.0, "Hit 2 of 5, message 1 of 3");
        assert!(hit("/c/0/4?q=e**dle").await.3.contains("as it was written"));
        assert!(hit("/c/0/3?q=red").await.3.contains("Link to message 3"));
        let (_, page) = get_of(&router, "/c/0/1").await;
        assert!(!page.contains("id=\"hit\"") && !page.contains("#hit"), "{page}");
        let (_, page) = get_of(&router, "/c/0?q=red&find=zebra").await;
        assert!(
            words_of(&page).contains("No match in this conversation") && !page.contains("0 hits")
        );
        let (_, page) = get_of(&router, "/c/0?q=title").await;
        assert!(words_of(&page).contains("Only the title matches"), "{page}");
    }

    #[tokio::test]
    async fn a_model_narrows_to_the_conversations_in_which_it_answered() {
        let export = TestExport::of(&["red", "red"]);
        let models = "CREATE TABLE verbatim_messages (message_id TEXT PRIMARY KEY, export_id TEXT, model TEXT);
             INSERT INTO messages VALUES ('a0', 0, 'assistant', 'Red too', 1700000050);
             INSERT INTO messages VALUES ('a1', 1, 'assistant', 'Blue', 1700000060);
             INSERT INTO verbatim_messages VALUES ('a0', NULL, 'gpt-4o'), ('a1', NULL, 'o3');";
        export.connection.execute_batch(models).unwrap();
        let router = router_of(&export);
        let (_, facets) = get_of(&router, "/facets?q=red").await;
        let words = words_of(&facets);
        assert!(words.contains("gpt-4o 2") && words.contains("o3 1"), "{words}");
        let (_, found) = get_of(&router, "/search?q=red&model=gpt-4o").await;
        assert!(words_of(&found).contains("2 messages in 1 conversation"), "{found}");
        let (_, all) = get_of(&router, "/facets").await;
        assert!(words_of(&all).contains("gpt-4o 2"), "{all}");
    }

    #[tokio::test]
    async fn a_conversation_is_opened_at_its_match() {
        let export = TestExport::of(&["first"]);
        let insert = "INSERT INTO messages VALUES ('n' || ?1, 0, 'assistant', ?2, 1700000001 + ?1)";
        for number in 0..400 {
            let text = if number % 100 == 50 { "a **needle** here" } else { "a nee**dle**" };
            export.connection.execute(insert, (number, text)).unwrap();
        }
        let router = router_of(&export);
        let (status, page) = get_of(&router, "/c/0/252?q=needle").await;
        assert_eq!(status, StatusCode::OK);
        assert!(page.contains("<strong><mark class=\"now\" id=\"hit\">needle</mark></strong>"));
        // Text that matches only after rendering is not marked.
        assert!(page.contains("nee<strong>dle</strong>"));
        assert!(words_of(&page).contains("Hit 3 of 4, message 3 of 4"), "{page}");
        assert!(page.contains("/c/0/352?q=needle#hit\" rel=\"next\""));
        assert!(page.contains("/c/0/152?q=needle&amp;hit=last#hit\" rel=\"prev\""));
        assert!(page.matches("<article").count() <= 120);
        let (_, raw) = get_of(&router, "/c/0/52?q=**nee").await;
        assert!(raw.contains("as it was written") && raw.contains("<mark>**nee</mark>"), "{raw}");
        let (status, _) = get_of(&router, "/c/0/402").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (status, _) = get_of(&router, "/c/none").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (_, markdown) = get_of(&router, "/c/0.md").await;
        assert!(markdown.starts_with("# Title 0\n") && markdown.contains("a **needle** here"));
    }

    #[tokio::test]
    async fn identical_messages_are_one_line_that_opens() {
        let export = TestExport::of(&["red start"]);
        let insert = "INSERT INTO messages VALUES ('s' || ?1, 0, ?2, ?3, 1700000100 + ?1)";
        for n in 0..30 {
            let text = if n % 10 == 5 { format!("a red line {n}") } else { "red again".to_owned() };
            export.connection.execute(insert, (n, "tool", text)).unwrap();
        }
        export.connection.execute(insert, (30, "user", "red again")).unwrap();
        let (_, page) = get_of(&router_of(&export), "/search?q=red").await;
        let words = words_of(&page);
        assert!(words.contains("32 messages in 1 conversation"), "{words}");
        assert!(words.contains("and 26 identical messages"), "{words}");
        // The first message is shown, and each of the identical messages has a link.
        assert!(
            page.contains("href=\"/c/0/2?q=red#hit\" aria-label=\"Message 2, Tool\""),
            "{page}"
        );
        assert!(page.contains("<a href=\"/c/0/31?q=red#hit\">31</a>"), "{page}");
        assert_eq!(page.matches("<mark>red</mark> again").count(), 2, "{page}");
        assert!(!words.contains("in the conversation itself"), "{words}");
    }

    #[tokio::test]
    async fn control_of_a_terminal_is_not_shown() {
        let export = TestExport::of(&["Run the tests"]);
        let insert = "INSERT INTO messages VALUES ('t', 0, 'tool', ?1, 1700000100)";
        let text = "\x1b[1mrunning\x1b[0m 1 test\x1b[2K\n\x1b[32mpas\x1b[1msed\x1b[0m <b>";
        export.connection.execute(insert, [text]).unwrap();
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/c/0").await;
        assert!(page.contains("running 1 test\npassed &lt;b&gt;"), "{page}");
        assert!(!page.contains('\x1b') && !page.contains("[2K"));
        let (_, found) = get_of(&router, "/results?q=running").await;
        assert!(found.contains("<mark>running</mark> 1 test"), "{found}");
        let (_, markdown) = get_of(&router, "/c/0.md").await;
        assert!(markdown.contains("running 1 test\npassed <b>"), "{markdown}");
    }

    fn router_of_transcripts(export: &TestExport, folder: &std::path::Path) -> Router {
        let config = export.engine.config().clone();
        let archives = vec![folder.to_owned()];
        let engine = Arc::new(Engine::new(Config { archives, ..config }));
        engine.upkeep().sync_transcripts(&Default::default(), &|_| {}).unwrap();
        router(engine, false, RESOURCES)
    }

    #[tokio::test]
    async fn agents_of_codex_are_linked_over_several_generations() {
        let export = TestExport::of(&[]);
        let folder = tempfile::tempdir().unwrap();
        let id = |n: u32| format!("0199{n:04}-d124-7592-9cac-2ec05abbca08");
        let prompt = |n: u32| format!("Prompt {n}.\nSay the line.");
        for n in 0..3 {
            let record = |kind: &str, payload: serde_json::Value| {
                let time = format!("2025-10-30T11:00:{n:02}Z");
                let record = json!({"timestamp": time, "type": kind, "payload": payload});
                format!("{record}\n")
            };
            let mut meta = json!({"id": id(n), "cwd": "/shop", "source": "cli"});
            if n > 0 {
                let spawn = json!({"parent_thread_id": id(n - 1), "depth": n});
                meta["source"] = json!({"subagent": {"thread_spawn": spawn}});
            }
            let asked = json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": prompt(n)}]});
            let arguments = json!({"message": prompt(n + 1)}).to_string();
            let call = json!({"type": "function_call", "name": "spawn_agent",
                "call_id": "c", "arguments": arguments});
            let lines = [("session_meta", meta), ("response_item", asked), ("response_item", call)];
            let lines: String = lines.into_iter().map(|(kind, it)| record(kind, it)).collect();
            let name = format!("rollout-2025-10-30T11-00-{n:02}-{}.jsonl", id(n));
            std::fs::write(folder.path().join(name), lines).unwrap();
        }
        let router = router_of_transcripts(&export, folder.path());
        for n in 0..3 {
            let (_, page) = get_of(&router, &format!("/c/{}", id(n))).await;
            let started = format!("<a href=\"/c/{}\" dir=\"auto\">", id(n + 1));
            // The page links to the agent twice: below the call, and among the facts.
            assert_eq!(page.matches(&started).count(), if n < 2 { 2 } else { 0 }, "{page}");
            assert_eq!(words_of(&page).contains("1 agent"), n < 2, "{page}");
            let by = n.checked_sub(1).map(|before| format!("<a href=\"/c/{}/3#m3\">", id(before)));
            assert_eq!(words_of(&page).contains("Started by"), by.is_some(), "{page}");
            assert!(by.is_none_or(|by| page.contains(&by)), "{page}");
        }
    }

    #[tokio::test]
    async fn a_fork_of_codex_is_linked_to_what_it_continues() {
        let export = TestExport::of(&[]);
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/golden/archives/codex");
        let router = router_of_transcripts(&export, &folder);
        let id = |n: u32| format!("01997e76-0000-7000-8000-00000000000{n}");
        for (n, parent) in [(1, None), (2, Some(1))] {
            let (_, page) = get_of(&router, &format!("/c/{}", id(n))).await;
            assert_eq!(words_of(&page).contains("Forked from"), parent.is_some(), "{page}");
            let link = parent.map(|parent| format!("<a href=\"/c/{}\">", id(parent)));
            assert!(link.is_none_or(|link| page.contains(&link)), "{page}");
            assert!(page.contains("\"strip bare\""), "there are no matches: {page}");
            let (_, page) = get_of(&router, &format!("/c/{}?q=cents", id(n))).await;
            assert_eq!(page.contains("\"strip bare\""), n == 1, "{page}");
        }
    }

    #[tokio::test]
    async fn a_page_has_the_number_of_all_matches() {
        let export = TestExport::of(&["red fox"; 40]);
        let add = "INSERT INTO messages VALUES (?1, ?2, 'user', 'Red fox', 1700000000)";
        for n in 0..4_960 {
            export.connection.execute(add, (format!("x{n}"), n % 40)).unwrap();
        }
        export.reindex();
        let router = router_of(&export);
        // Counting has a time limit, so a busy machine may need more than one attempt.
        for attempt in 1.. {
            let words = words_of(&get_of(&router, "/?q=red").await.1);
            if words.contains("5,000 messages in 40 conversations") {
                break;
            }
            assert!(attempt < 100, "{words}");
        }
    }

    #[tokio::test]
    async fn counts_do_not_depend_on_what_is_read() {
        let export = TestExport::of(&["red fox", "a red title"]);
        let add = "INSERT INTO messages VALUES (?1, ?2, 'user', ?3, 1700000000)";
        for n in 0..700 {
            let text = if n % 3 == 0 { format!("no match {n}") } else { format!("Red {n}") };
            export.connection.execute(add, (format!("x{n}"), n % 2, text)).unwrap();
        }
        let rename = "UPDATE conversations SET title = 'red' WHERE id = '1'";
        export.connection.execute(rename, []).unwrap();
        export.reindex();
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/results?q=red").await;
        let (_, facets) = get_of(&router, "/facets?q=red").await;
        let count = |page: &str| {
            let at = page.find("data-count=\"").map(|at| at + "data-count=\"".len()).unwrap();
            page[at..].split('"').next().unwrap().to_owned()
        };
        let words = words_of(&page);
        assert_eq!((count(&page), count(&facets)), ("468".to_owned(), "468".to_owned()), "{words}");
        assert_eq!(words.matches("226 more in the conversation itself").count(), 2, "{words}");
    }

    #[tokio::test]
    async fn an_agent_and_the_call_that_started_it_are_linked() {
        const SESSION: &str = "11111111-2222-4333-8444-555555555555";
        let export = TestExport::of(&[]);
        let folder = tempfile::tempdir().unwrap();
        let prompt = "Find where prices are rounded.\nSay the line.";
        let record = |role: &str, id: &str, agent: Option<&str>, content: serde_json::Value| {
            let record = json!({
                "type": role, "uuid": id, "sessionId": SESSION, "cwd": "/shop", "agentId": agent,
                "isSidechain": agent.is_some(), "timestamp": "2025-10-30T11:00:00Z",
                "message": {"id": id, "role": role, "content": content},
            });
            format!("{record}\n")
        };
        let input = json!({"description": "Look", "prompt": prompt});
        let call = json!([{"type": "tool_use", "id": "t", "name": "Task", "input": input}]);
        let own = record("user", "u1", None, "Fix the cart".into())
            + &record("assistant", "a1", None, call);
        let agent = record("user", "u2", Some("x1"), prompt.into())
            + &record("assistant", "a2", Some("x1"), "In cart.rs".into());
        let transcripts = folder.path().join("shop");
        std::fs::create_dir(&transcripts).unwrap();
        std::fs::write(transcripts.join(format!("{SESSION}.jsonl")), own).unwrap();
        std::fs::write(transcripts.join("agent-x1.jsonl"), agent).unwrap();
        let router = router_of_transcripts(&export, folder.path());
        let of_agent = format!("/c/{SESSION}%2Fagent-x1");
        let (_, page) = get_of(&router, &format!("/c/{SESSION}")).await;
        let link = format!("<a href=\"{of_agent}\" dir=\"auto\">");
        // The page links to the agent twice: below the call, and among the facts.
        assert_eq!(page.matches(&link).count(), 2, "{page}");
        assert!(page[page.find("id=\"m2\"").unwrap()..].contains(&link), "{page}");
        assert!(words_of(&page).contains("agent, 2 messages"), "{page}");
        let (status, page) = get_of(&router, &of_agent).await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            page.contains(&format!("<a href=\"/c/{SESSION}/2#m2\">Fix the cart</a>")),
            "{page}"
        );
    }

    #[tokio::test]
    async fn a_conversation_is_kept_as_one_file() {
        let edit = "[tool: Edit]\nfile_path: a.rs\nold_string: one\nnew_string: two";
        let export = TestExport::of(&["A *question*"]);
        let insert = "INSERT INTO messages VALUES (?1, 0, 'assistant', ?2, ?3)";
        let other = "INSERT INTO verbatim_branches VALUES ('other', 'n')";
        export.connection.execute_batch(
            "CREATE TABLE verbatim_branches (message_id TEXT PRIMARY KEY, follows TEXT);
             CREATE TABLE verbatim_messages (message_id TEXT PRIMARY KEY, export_id TEXT, model TEXT);",
        ).unwrap();
        export.connection.execute(insert, ("n", edit, 1_700_000_001)).unwrap();
        export.connection.execute(insert, ("other", "Another answer", 1_700_000_002)).unwrap();
        export.connection.execute(other, []).unwrap();
        let router = router_of(&export);
        let request = Request::get("/c/0.html").body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.headers()["content-disposition"], "attachment");
        let (_, file) = get_of(&router, "/c/0.html").await;
        assert!(file.contains("<em>question</em>") && file.contains("<style>"), "{file}");
        assert!(file.contains("<del>one\n</del><ins>two\n</ins>"), "{file}");
        assert!(!file.contains("src=") && !file.contains("<link") && !file.contains("url("));
        assert!(file.contains("Another answer"), "{file}");
    }

    #[tokio::test]
    async fn a_forgotten_conversation_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let config = Config { home: home.path().to_owned(), ..Default::default() };
        std::fs::create_dir(config.db_folder()).unwrap();
        let router = router(Arc::new(Engine::new(config)), false, RESOURCES);
        let export = r#"[{"uuid": "c1", "name": "Rye", "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "rye"}]}, {"uuid": "c2", "name": "Oats, not c1",
            "chat_messages": [{"uuid": "m2", "sender": "human", "text": "oats"}]}]"#;
        post_to(&router, "/import?name=conversations.json", export).await;
        ended(&router).await;
        let (_, before) = get_of(&router, "/pulse").await;
        let (_, asks) = get_of(&router, "/c/c1/forget").await;
        assert!(words_of(&asks).contains("1 message will be removed for good"), "{asks}");
        assert!(get_of(&router, "/?q=rye").await.1.contains("<mark>rye</mark>"));
        assert_eq!(post_to(&router, "/c/c1/forget", "").await.status(), StatusCode::OK);
        assert!(get_of(&router, "/?q=rye").await.1.contains("No message has"));
        assert!(get_of(&router, "/?q=oats").await.1.contains("<mark>oats</mark>"));
        assert_ne!(get_of(&router, "/pulse").await.1, before);
        // The id in the address now finds another conversation, which must not be forgotten.
        assert_eq!(post_to(&router, "/c/c1/forget", "").await.status(), StatusCode::NOT_FOUND);
        assert!(get_of(&router, "/?q=oats").await.1.contains("<mark>oats</mark>"));
    }

    #[tokio::test]
    async fn a_long_message_is_cut_and_can_be_shown_whole() {
        let long = format!("{} needle {}", "line\n".repeat(100_000), "x".repeat(500_000));
        let export = TestExport::of(&[&long]);
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/c/0/1?q=needle").await;
        assert!(
            page.len() < 100_000 && page.contains("<mark class=\"now\" id=\"hit\">needle</mark>")
        );
        assert!(page.contains("/c/0/1?q=needle&amp;all=1#m1"), "{}", &page[page.len() - 5_000..]);
        let (_, whole) = get_of(&router, "/c/0/1?q=needle&all=1").await;
        assert!(
            whole.len() > 1_000_000
                && whole.contains("<mark class=\"now\" id=\"hit\">needle</mark>")
        );
    }

    #[tokio::test]
    async fn nothing_in_a_chat_is_markup_of_ours() {
        let export = TestExport::of(&[HOSTILE]);
        export.connection.execute("UPDATE conversations SET title = ?1", [HOSTILE]).unwrap();
        export.connection.execute("UPDATE messages SET role = ?1", [HOSTILE]).unwrap();
        let router = router_of(&export);
        let q = "needle%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
        for address in [
            "/",
            "/search?q=needle",
            "/results?q=needle",
            "/c/0?q=needle",
            "/c/0/1?q=needle",
            "/c/0.html",
            "/c/0/forget",
            "/peek/0/1?q=needle",
            "/stats",
            &format!("/trends?q={q}&q=needle"),
            "/status",
            "/facets?q=needle",
            &format!("/search?q={q}&service={q}&role={q}&from=1d"),
            &format!("/c/0?q={q}"),
            &format!("/search?q=a&from={q}"),
            &format!("/c/{q}"),
            &format!("/{q}"),
        ] {
            let (_, page) = get_of(&router, address).await;
            assert!(!page.contains("<script>") && !page.contains("<img"), "{address}: {page}");
            let is_file = address.ends_with(".html");
            assert!(is_file || !page.contains("<style"), "{address}");
            assert!(!page.contains(" style=") && !page.contains(" onclick="), "{address}");
        }
    }

    #[tokio::test]
    async fn addresses_lead_to_a_page_or_say_why_not() {
        let export = TestExport::of(&["first"]);
        let rename = "UPDATE conversations SET id = 'notes.md'; UPDATE messages SET conversation_id = 'notes.md'";
        export.connection.execute_batch(rename).unwrap();
        let router = router_of(&export);
        for (address, is_page) in
            [("/c/notes.md", true), ("/c/notes.md/1", true), ("/c/notes.md.md", false)]
        {
            let (status, page) = get_of(&router, address).await;
            assert_eq!(status, StatusCode::OK, "{address}");
            assert_eq!(page.starts_with("<!DOCTYPE html>"), is_page, "{address}: {page}");
        }
        export.connection.execute_batch(&rename.replace("notes.md", "..")).unwrap();
        for path in ["", "/1", ".md", ".html"] {
            let (status, page) = get_of(&router, &format!("/c/%252E%252E{path}")).await;
            assert!(status == StatusCode::OK && page.contains("first"), "{path}: {page}");
        }
        export.connection.execute_batch(rename).unwrap();
        for address in ["/c/notes.md/99999999999", "/c/notes.md/x", "/peek/notes.md/99999999999"] {
            let (status, page) = get_of(&router, address).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{address}");
            assert!(page.contains("There is no such page"), "{address}: {page}");
        }
        let broken = export.with_broken_export("red zeppelin");
        let router = super::router(Arc::new(broken), false, RESOURCES);
        let (status, page) = get_of(&router, "/c/nowhere").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(page.contains("broken.db"), "the conversation may be there: {page}");
    }

    #[tokio::test]
    async fn an_import_leaves_no_copy_and_goes_where_the_page_searches() {
        let export = TestExport::of(&["red"]);
        let home = tempfile::tempdir().unwrap();
        let [left, used] = ["left", "used"].map(|name| home.path().join(format!(".upload-{name}")));
        for folder in [&left, &used] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("export.zip"), "chats").unwrap();
        }
        std::fs::write(left.join("lock"), "").unwrap();
        let lock = std::fs::File::create(used.join("lock")).unwrap();
        lock.lock().unwrap();
        let local_databases = Some(export.engine.config().db_folder());
        let config = Config { home: home.path().to_owned(), local_databases, ..Default::default() };
        let router = super::router(Arc::new(Engine::new(config)), false, RESOURCES);
        assert!(!left.exists() && used.exists(), "another server uses the second");
        let answer = post_to(&router, "/import?name=a.json", "[]").await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let progress = ended(&router).await;
        assert!(progress.contains("was not imported"), "{progress}");
        assert!(progress.contains("This page searches"), "{progress}");
        drop(lock);
        let entries = std::fs::read_dir(home.path()).unwrap().flatten();
        let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        assert_eq!(names, [".upload-used"], "nothing of the import stays");
    }

    #[tokio::test]
    async fn files_of_the_page_are_kept_by_browsers_and_named_by_their_content() {
        let export = TestExport::of(&["red"]);
        let router = router_of(&export);
        let (_, page) = get_of(&router, "/").await;
        let start = page.find("/static/").expect("a stylesheet");
        let address = page[start..].split('"').next().expect("an address").to_owned();
        let request = Request::get(&address).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let cache = answer.headers()["cache-control"].to_str().unwrap().to_owned();
        assert!(answer.status().is_success() && cache.contains("immutable"), "{cache}");
        let (status, _) = get_of(&router, "/static/0000000000000000/style.css").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn a_dropped_export_is_imported_and_found() {
        let home = tempfile::tempdir().unwrap();
        let config = Config { home: home.path().to_owned(), ..Default::default() };
        std::fs::create_dir(config.db_folder()).unwrap();
        let router = router(Arc::new(Engine::new(config)), false, RESOURCES);
        let answer = post_to(&router, "/import?name=..%2Fno.zip", "no zip at all").await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let failed = ended(&router).await;
        assert!(failed.contains("was not imported") && failed.contains("no.zip"), "{failed}");
        assert!(!failed.contains("/tmp"), "{failed}");
        let export = r#"[{"uuid": "c1", "name": "Baking", "chat_messages": [{"uuid": "m1", "sender": "human",
            "created_at": "2025-01-03T10:00:00Z", "text": "How long does sourdough proof?"},
            {"uuid": "m2", "sender": "human", "created_at": "2025-01-03T10:00:01Z", "text": ""}]}]"#;
        let answer = post_to(&router, "/import?name=conversations.json", export).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let done = ended(&router).await;
        assert!(words_of(&done).contains("1 conversation and 1 message are new"), "{done}");
        assert!(words_of(&done).contains("1 empty message skipped"), "{done}");
        assert!(get_of(&router, "/?q=SOURDOUGH").await.1.contains("<mark>sourdough</mark>"));
    }

    #[tokio::test]
    async fn a_home_without_chats_says_how_to_begin() {
        let home = tempfile::tempdir().unwrap();
        let config = Config { home: home.path().to_owned(), ..Default::default() };
        let router = router(Arc::new(Engine::new(config)), false, RESOURCES);
        for address in ["/", "/stats", "/status", "/import", "/search?q=x", "/c/x"] {
            let (status, page) = get_of(&router, address).await;
            assert!(!status.is_server_error(), "{address}: {status} {page}");
            assert!(page.contains("verbatim") && page.contains("<h1"), "{address}: {page}");
        }
        assert!(get_of(&router, "/").await.1.contains("verbatim import"));
        let (_, state) = get_of(&router, "/status").await;
        assert!(!state.contains("<table") && !state.contains("in time"), "{state}");
    }
}
