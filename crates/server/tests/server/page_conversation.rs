//! The page of a conversation.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;
use tower::ServiceExt;

use super::page::{RESOURCES, ended, get_of, post_to, router_of, words_of};
use super::test_export::TestExport;
use verbatim_engine::{Config, Engine};
use verbatim_server::web;

const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(1)> needle";

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
async fn the_matches_of_a_message_are_marked() {
    let export = TestExport::of(&[&"e ".repeat(1_500)]);
    let router = router_of(&export);
    let (_, page) = get_of(&router, "/c/0/1?q=e").await;
    let article = page.split("<article").nth(1).expect("a message");
    assert_eq!(article.matches("<mark").count(), 1_500);
    let export = TestExport::of(&[&"e ".repeat(15_000)]);
    let (_, page) = get_of(&router_of(&export), "/c/0/1?q=e").await;
    assert!(page.contains("2,000 of the matches in this message are marked"));
    assert_eq!(page.split("<article").nth(1).expect("a message").matches("<mark").count(), 2_000);
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
            let (before, _) = page.split_once(&format!("\" rel=\"{rel}\" aria-keyshortcuts"))?;
            Some(before.rsplit_once("href=\"")?.1.replace("&amp;", "&"))
        };
        let (_, after) = page.split_once("id=\"hit\"").expect("an anchor");
        let (_, count) = page.split_once("class=\"count\">").expect("a count");
        let count = words_of(count).split(" “").next().unwrap_or_default().to_owned();
        (count, link("prev"), link("next"), after.split('<').next().unwrap_or_default().to_owned())
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
    assert!(words_of(&page).contains("No match in this conversation") && !page.contains("0 hits"));
    let (_, page) = get_of(&router, "/c/0?q=title").await;
    assert!(words_of(&page).contains("Only the title matches"), "{page}");
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
    web::router(engine, false, RESOURCES)
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
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/archives/codex");
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
    let own =
        record("user", "u1", None, "Fix the cart".into()) + &record("assistant", "a1", None, call);
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
    assert!(page.contains(&format!("<a href=\"/c/{SESSION}/2#m2\">Fix the cart</a>")), "{page}");
}

#[tokio::test]
async fn a_conversation_is_kept_as_one_file() {
    let edit = "[tool: Edit]\nfile_path: a.rs\nold_string: one\nnew_string: two";
    let export = TestExport::of(&["A *question*"]);
    let insert = "INSERT INTO messages VALUES (?1, 0, 'assistant', ?2, ?3)";
    let other = "INSERT INTO verbatim_branches VALUES ('other', 'n')";
    export
        .connection
        .execute_batch(
            "CREATE TABLE verbatim_branches (message_id TEXT PRIMARY KEY, follows TEXT);
         CREATE TABLE verbatim_messages (message_id TEXT PRIMARY KEY, export_id TEXT, model TEXT);",
        )
        .unwrap();
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
    let router = web::router(Arc::new(Engine::new(config)), false, RESOURCES);
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
    assert!(page.len() < 100_000 && page.contains("<mark class=\"now\" id=\"hit\">needle</mark>"));
    assert!(page.contains("/c/0/1?q=needle&amp;all=1#m1"), "{}", &page[page.len() - 5_000..]);
    let (_, whole) = get_of(&router, "/c/0/1?q=needle&all=1").await;
    assert!(
        whole.len() > 1_000_000 && whole.contains("<mark class=\"now\" id=\"hit\">needle</mark>")
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
