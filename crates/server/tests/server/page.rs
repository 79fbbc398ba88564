//! The page: search, filters, statistics, imports and addresses.

use std::{ops::ControlFlow, sync::Arc};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use tower::ServiceExt;

use super::test_export::TestExport;
use verbatim_base::{call::Call, model};
use verbatim_engine::{Config, Engine, Resources, Save, SearchPlan};
use verbatim_server::web;

pub(super) const RESOURCES: Resources = Resources { memory: 64 << 20, threads: 1 };

pub(super) async fn get_of(router: &Router, address: &str) -> (StatusCode, String) {
    let request = Request::get(address).body(Body::empty()).expect("an address");
    let answer = router.clone().oneshot(request).await.expect("routers do not fail");
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 64 << 20).await.expect("a body");
    (status, String::from_utf8(body.to_vec()).expect("UTF-8"))
}

pub(super) fn router_of(export: &TestExport) -> Router {
    web::router(Arc::new(Engine::new(export.engine.config().clone())), false, RESOURCES)
}

pub(super) fn words_of(html: &str) -> String {
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
        let (status, wrong) = get_of(&router, "/search?q=red&from=soon&to=2025&role=user").await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(wrong.contains("2025-01-31"), "{wrong}");
        // The page keeps what was typed, so that only the wrong date has to be typed again.
        let kept = ["q", "from", "to", "role"].map(|name| format!("name=\"{name}\" value=\""));
        for (field, value) in kept.iter().zip(["red", "soon", "2025", "user"]) {
            assert!(wrong.contains(&format!("{field}{value}\"")), "{field}: {wrong}");
        }
        let (_, by_title) = get_of(&router, "/search?q=TITLE+1").await;
        assert!(
            by_title.contains("<mark>Title 1</mark>") && by_title.contains("Found by its title")
        );
        let (_, recent) = get_of(&router, "/").await;
        assert!(
            words_of(&recent).contains("3 messages in 3 conversations, the latest first"),
            "{recent}"
        );
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
            words.contains("in this letter case") && words.contains("1 message in any letter case"),
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
        assert!(rows(&newest).is_sorted_by(|a, b| a > b) && rows(&oldest).is_sorted(), "{oldest}");
        assert!(
            oldest.contains("name=\"sort\" value=\"oldest\"") && oldest.contains("newest first")
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
        let is_there = links.contains(link) || link.contains("hour") || link.contains("service");
        assert!(is_there, "{link}: {links:?}");
        let (_, page) = get_of(&router, link).await;
        assert!(words_of(&page).contains(found), "{link}: {}", words_of(&page));
    }
    let (_, sunday) = get_of(&router, "/?hour=156").await;
    assert!(
        words_of(&sunday).contains("1 message in 1 conversation")
            && sunday.contains("Sun 12:00–13:00"),
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
async fn a_list_tells_all_that_it_has_whatever_its_filters() {
    let export = TestExport::of(&["red"; 70]);
    // Each conversation has a message two months before and one two months after its first.
    let sql = "INSERT INTO messages VALUES (?1, ?2, ?3, 'blue', 1700000000 + ?4)";
    for id in 0..70 {
        for (kind, (role, days)) in [("tool", -60), ("assistant", 60)].into_iter().enumerate() {
            let seconds = days * 86_400 + id % 3 * 3_600;
            let key = format!("{id}-{kind}");
            export.connection.execute(sql, (key, id, role, seconds)).unwrap();
        }
    }
    export.reindex();
    let router = router_of(&export);
    let hour = "strftime('%w %H', create_time, 'unixepoch')";
    for (filters, condition) in [
        // Saturday from 23 o'clock, and Tuesday from 22 o'clock.
        ("hour=143", format!("{hour} = '6 23'")),
        ("hour=46", format!("{hour} = '2 22'")),
        ("hour=46&from=2023-10&to=2024-01", format!("{hour} = '2 22' AND role = 'user'")),
        ("hour=143&role=tool", format!("{hour} = '6 23' AND role = 'tool'")),
        ("role=tool", "role = 'tool'".to_owned()),
        ("from=2023-11&to=2023-11", "role = 'user'".to_owned()),
        ("from=2023-10&to=2023-10", "0".to_owned()),
        ("to=2023-12&service=export", "role <> 'assistant'".to_owned()),
        ("q=role:tool", "role = 'tool'".to_owned()),
        ("", "1".to_owned()),
    ] {
        let sql = format!(
            "SELECT count(*), count(DISTINCT conversation_id) FROM messages WHERE {condition}"
        );
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let expected = export.connection.query_row(&sql, [], row).unwrap();
        let found = match expected {
            (0, _) => "There is no conversation here".to_owned(),
            (messages, conversations) => {
                format!("{messages} messages in {conversations} conversations")
            }
        };
        for more in ["", "&page=2", "&sort=oldest", "&page=2&sort=oldest"] {
            let is_far = more.contains("page") && expected.1 <= 20;
            for view in ["/?", "/results?", "/facets?"] {
                let (_, page) = get_of(&router, &format!("{view}{filters}{more}")).await;
                let words = words_of(&page);
                let is_left_out = expected.0 == 0 && view == "/facets?" || is_far;
                let is_told = words.contains(&found) || words.contains("more than");
                assert!(is_told || is_left_out, "{view}{filters}{more}: {found}: {words}");
            }
        }
    }
}

#[tokio::test]
async fn the_field_reads_filters_and_phrases() {
    let export =
        TestExport::indexed(&["a red sun", "say \"red\" now", "red sunset role:user", "x"]);
    let sql = "INSERT INTO messages VALUES ('t', 3, 'tool', 'red tool', 1700000100)";
    export.connection.execute(sql, []).unwrap();
    export.reindex();
    let router = router_of(&export);
    for (typed, found, said) in [
        ("%22red%22", "4 messages in 4", "Found without the quotation marks As text: 1 message"),
        ("red+role:tool", "1 message in 1", "Filters: role:tool"),
        ("%22red%22+-sun", "2 messages in 2", "oldest first"),
        ("red+role:user", "3 messages in 3", "Filters: role:user"),
        ("sunset+role:user", "1 message in 1", "As text: 1 message"),
        (
            "red+since:2001+title:%22title+2%22",
            "1 message in 1",
            "Filters: since:2001 title:&quot;title 2&quot;",
        ),
        ("red+in:2", "1 message in 1", "Filters: in:2"),
        ("red+service:export", "4 messages in 4", "Filters: service:export"),
        ("red+role:boss", "No message has", "searched as text"),
        ("%22red%22&match=text", "1 message in 1", "Found as it was typed"),
        ("red+role:user&match=regex", "No message has", "red role:user"),
        ("red+sun+role:user&match=words", "2 messages in 2", "Filters: role:user"),
    ] {
        let (_, page) = get_of(&router, &format!("/?q={typed}")).await;
        let words = words_of(&page);
        assert!(words.contains(found) && words.contains(said), "{typed}: {words}");
        assert!(!said.contains("As text") || page.contains("match=text"), "{typed}");
        let (_, facets) = get_of(&router, &format!("/facets?q={typed}")).await;
        let is_counted = words_of(&facets).contains(found) || found.starts_with("No");
        assert!(is_counted, "{typed}: {}", words_of(&facets));
    }
    // The found text is marked in the conversation, and the way back has what was typed.
    let (_, message) = get_of(&router, "/c/1/1?q=%22red%22+role%3Auser").await;
    assert!(message.contains("id=\"hit\">red</mark>"), "{message}");
    assert!(message.contains("href=\"/?q=%22red%22%20role%3Auser\""), "{message}");
}

#[tokio::test]
async fn quoted_texts_and_minus_are_offered() {
    let export = TestExport::indexed(&["San Francisco has a good restaurant", "restaurant hotel"]);
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
        page.contains("match=words") && page.contains("good <mark>restaurant</mark>"),
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
    assert!(words_of(&status).contains("meaning 0 of 2 messages"), "{status}");
    for source in export.engine.all_sources().present_of(&verbatim_engine::SourceKind::ALL) {
        source.encode(1, &Call::default(), &|_| ()).unwrap();
    }
    let (_, status) = get_of(&router_of(&export), "/status").await;
    assert!(!words_of(&status).contains("meaning"), "{status}");
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
    let said = "no message has “turtles”; nearest by meaning";
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
    for address in
        ["/search?q=red&branch=nonesuch", "/stats?q=red&branch=nonesuch", "/stats?branch=nonesuch"]
    {
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
            assert!(page.contains("href=\"/c/0/1?q=tomato%20sun&amp;match=words#hit\""), "{page}");
        }
        let (_, both) = get_of(&router, "/search?q=tomato+sun&match=words").await;
        let words = words_of(&both);
        assert!(words.contains("2 messages in 2 conversations"), "{words}");
        assert!(both.contains("href=\"/?q=tomato%20sun\"") && words.contains("As one text"));
        assert!(both.contains("name=\"match\" value=\"words\" form=\"find\""), "{both}");
        // One of the texts may be in the title, and the filters count what is shown.
        for address in ["/search", "/facets"] {
            let address = format!("{address}?q=title+tomato&match=words");
            let (_, both) = get_of(&router, &address).await;
            assert!(words_of(&both).contains("2 messages in 2 conversations"), "{both}");
        }
        let (_, shown) = get_of(&router, "/c/0/1?q=tomato+sun&match=words").await;
        assert!(shown.contains("<mark>sun</mark> on a <mark>tomato</mark>"), "{shown}");
        for (query, address, what) in [
            ("cafe", "/?q=cafe&amp;match=fold", "1 message with other accents, width or signs"),
            ("tomatoes", "/?q=tomato", "2 messages have “tomato”"),
            (
                "tomato+no+sun",
                "/?q=tomato%5B%5CW_%5D%2Bno%5B%5CW_%5D%2Bsun&amp;match=regex",
                "1 message with other spaces or signs between the words",
            ),
            ("sun|moon", "/?q=sun%7Cmoon&amp;match=regex", "2 messages as a regular expr"),
            ("rye+OR+sun", "/?q=rye%20OR%20sun&amp;match=words", "2 messages have one of"),
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
async fn more_messages_of_equal_look_are_linked() {
    let export = TestExport::indexed(&["I don't know", "I don’t", "a café"]);
    let router = router_of(&export);
    let (_, page) = get_of(&router, "/search?q=don%27t").await;
    assert!(words_of(&page).contains("1 more message with ’"), "{page}");
    assert!(page.contains("href=\"/?q=don%27t&amp;match=fold\""), "{page}");
    let (_, both) = get_of(&router, "/search?q=don%27t&match=fold").await;
    assert!(
        words_of(&both).contains("2 messages in 2") && !both.contains("more message"),
        "{both}"
    );
    assert!(both.contains("I <mark>don’t</mark>"), "{both}");
    let (_, none) = get_of(&router, "/search?q=know").await;
    assert!(!none.contains("more message"), "{none}");
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
    assert!(all.contains("September 2020: 3") && words_of(&all).contains("5 messages"), "{all}");
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

pub(super) async fn post_to(router: &Router, address: &str, body: &str) -> Response {
    let request = Request::post(address).body(Body::from(body.to_owned())).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

/// Waits for the end of an import, and returns what the page then says about it.
pub(super) async fn ended(router: &Router) -> String {
    loop {
        let (_, progress) = get_of(router, "/import/progress").await;
        if !progress.contains("data-running") {
            return progress;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_model_narrows_to_the_conversations_in_which_it_answered() {
    let export = TestExport::of(&["red", "red"]);
    let models =
        "CREATE TABLE verbatim_messages (message_id TEXT PRIMARY KEY, export_id TEXT, model TEXT);
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
    assert!(page.contains("href=\"/c/0/2?q=red#hit\" aria-label=\"Message 2, Tool\""), "{page}");
    assert!(page.contains("<a href=\"/c/0/31?q=red#hit\">31</a>"), "{page}");
    assert_eq!(page.matches("<mark>red</mark> again").count(), 2, "{page}");
    assert!(!words.contains("in the conversation itself"), "{words}");
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
    let router = web::router(Arc::new(broken), false, RESOURCES);
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
    let router = web::router(Arc::new(Engine::new(config)), false, RESOURCES);
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
    let router = web::router(Arc::new(Engine::new(config)), false, RESOURCES);
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
    assert!(words_of(&done).contains("Imported 1 conversation, 1 message."), "{done}");
    assert!(words_of(&done).contains("1 empty message skipped"), "{done}");
    assert!(get_of(&router, "/?q=SOURDOUGH").await.1.contains("<mark>sourdough</mark>"));
}

#[tokio::test]
async fn an_import_ends_with_an_index_that_is_current() {
    let home = tempfile::tempdir().unwrap();
    let config = Config { home: home.path().to_owned(), ..Default::default() };
    let router = web::router(Arc::new(Engine::new(config.clone())), false, RESOURCES);
    let chat = |id: &str, messages: usize| {
        let texts = (0..messages)
            .map(|at| format!(r#"{{"uuid": "{id}{at}", "sender": "human", "text": "{id} {at}"}}"#));
        let texts = texts.collect::<Vec<_>>().join(",");
        format!(r#"[{{"uuid": "{id}", "name": "Tulips", "chat_messages": [{texts}]}}]"#)
    };
    post_to(&router, "/import?name=conversations.json", &chat("few", 3)).await;
    let done = words_of(&ended(&router).await);
    assert!(done.contains("Imported 1 conversation, 3 messages."), "{done}");
    assert!(!done.contains("vectors"), "{done}");
    let call = Call::default();
    let state = |name: &str| {
        let engine = Engine::new(config.clone());
        let source = engine.sources().remove(0);
        let request = model::Request { text: name.to_owned(), ..Default::default() };
        let plan = engine.exact(&request, &call, &mut |_| ControlFlow::Continue(())).unwrap();
        (plan, source.encoded(&call))
    };
    let (plan, encoded) = state("few");
    assert!(matches!(plan, SearchPlan::ByIndex { .. }), "{plan:?}");
    assert_eq!((encoded.made, encoded.total), (3, 3));
    // The vectors of many messages are left to others, which take over those of the replaced segment.
    post_to(&router, "/import?name=conversations.json", &chat("many", 3_000)).await;
    let done = words_of(&ended(&router).await);
    assert!(done.contains("Imported 1 conversation, 3,000 messages."), "{done}");
    assert!(
        done.contains("Searches work now. 2,")
            && done.contains(" messages have no vectors of the sentence model yet"),
        "{done}"
    );
    let (plan, encoded) = state("many");
    assert!(matches!(plan, SearchPlan::ByIndex { .. }), "{plan:?}");
    assert!(encoded.made < 1_000 && encoded.total == 3_003, "{encoded:?}");
}

#[tokio::test]
async fn an_import_that_cannot_be_indexed_says_so() {
    let home = tempfile::tempdir().unwrap();
    let index = Some(home.path().join("file/index"));
    std::fs::write(home.path().join("file"), "no folder").unwrap();
    let config = Config { home: home.path().to_owned(), index, ..Default::default() };
    let router = web::router(Arc::new(Engine::new(config)), false, RESOURCES);
    let export = r#"[{"uuid": "c1", "chat_messages": [{"uuid": "m1", "text": "sourdough"}]}]"#;
    post_to(&router, "/import?name=conversations.json", export).await;
    let done = words_of(&ended(&router).await);
    assert!(done.contains("is imported") && done.contains("Not all of it is indexed"), "{done}");
    assert!(done.contains("slow until `verbatim reindex` succeeds"), "{done}");
    assert!(get_of(&router, "/?q=sourdough").await.1.contains("<mark>sourdough</mark>"));
}

#[tokio::test]
async fn a_home_without_chats_says_how_to_begin() {
    let home = tempfile::tempdir().unwrap();
    let config = Config { home: home.path().to_owned(), ..Default::default() };
    let router = web::router(Arc::new(Engine::new(config)), false, RESOURCES);
    for address in ["/", "/stats", "/status", "/import", "/search?q=x", "/c/x"] {
        let (status, page) = get_of(&router, address).await;
        assert!(!status.is_server_error(), "{address}: {status} {page}");
        assert!(page.contains("verbatim") && page.contains("<h1"), "{address}: {page}");
    }
    assert!(get_of(&router, "/").await.1.contains("verbatim import"));
    let (_, state) = get_of(&router, "/status").await;
    assert!(!state.contains("holds") && !state.contains("in time"), "{state}");
}
