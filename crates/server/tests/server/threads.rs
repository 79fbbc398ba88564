//! Threads: the exact answers of the contract, with the recorded turns in them.

use std::{collections::BTreeSet, fs, path::Path};

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::{Config, Engine, Reindex, Resources, Scope, SourceKind};
use verbatim_server::tools::{self, Answer, Options, Tool};

use crate::calls::{found, has};
use crate::corpus::{database, folder};

pub(crate) fn engine(home: &Path) -> Engine {
    Engine::new(Config { home: home.to_owned(), ..Config::default() })
}

/// Returns an engine over a home without threads.
fn begun() -> (TempDir, Engine) {
    let home = folder();
    let engine = engine(home.path());
    (home, engine)
}

fn call_with(engine: &Engine, tool: Tool, options: &Options, arguments: &Value) -> Answer {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    tool.call(engine, options, arguments, &Call::default())
}

pub(crate) fn call(engine: &Engine, arguments: &Value) -> Answer {
    call_with(engine, tools::manage_conversation::TOOL, &Options::default(), arguments)
}

/// Calls an action that succeeds; returns its data.
#[track_caller]
pub(crate) fn data(engine: &Engine, arguments: &Value) -> Value {
    let answer = call(engine, arguments);
    assert!(!answer.is_error, "{arguments}: {}", answer.text);
    assert_eq!(answer.log, None);
    let mut whole: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!((&whole["success"], &whole["action"]), (&json!(true), &arguments["action"]));
    whole["data"].take()
}

/// Calls an action that is refused; returns the reason.
#[track_caller]
fn refused(engine: &Engine, arguments: &Value) -> String {
    let answer = call(engine, arguments);
    assert!(answer.is_error, "{arguments}: {}", answer.text);
    let whole: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(whole["success"], json!(false));
    assert_eq!(whole.as_object().unwrap().len(), 3);
    whole["error"].as_str().unwrap().to_owned()
}

#[track_caller]
fn keys(data: &Value, expected: &[&str]) {
    let keys: BTreeSet<&str> = data.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, expected.iter().copied().collect());
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[test]
fn the_state_machine() {
    let (home, engine) = begun();
    let start = data(&engine, &json!({"action": "start", "topic": "database migration"}));
    keys(&start, &["thread_id", "continuation_id", "topic", "created_at"]);
    assert_eq!(start["topic"], "database migration");
    assert!(text(&start["created_at"]).ends_with('Z'));
    let (thread, first) = (&start["thread_id"], &start["continuation_id"]);
    let one = data(
        &engine,
        &json!({"action": "continue", "continuation_id": first, "query": "Which index do we drop?"}),
    );
    keys(&one, &["thread_id", "continuation_id", "response", "message_count"]);
    assert_eq!((&one["thread_id"], &one["message_count"]), (thread, &json!(1)));
    assert_eq!(one["response"], "", "a turn is not its own memory");
    assert_ne!(&one["continuation_id"], first);
    // Another session continues the thread.
    let other = self::engine(home.path());
    let two = data(
        &other,
        &json!({"action": "continue", "continuation_id": one["continuation_id"], "message": "The one on time.",
            "role": "assistant", "topic": "ignored", "limit": "ignored", "thread_id": 5}),
    );
    assert_eq!(two["message_count"], 2);
    // A turn needs a text, and a refused one leaves the id as it is.
    for turn in [json!({}), json!({"query": ""}), json!({"query": " \n", "message": ""})] {
        let mut turn = turn;
        turn["action"] = json!("continue");
        turn["continuation_id"] = two["continuation_id"].clone();
        assert_eq!(refused(&other, &turn), "query is required for continue action");
    }
    let both = json!({"action": "continue", "continuation_id": two["continuation_id"],
        "query": "Which one is that?", "message": "not this"});
    let both: Value = serde_json::from_str(&call(&other, &both).text).unwrap();
    let note = "query was recorded; message was not: a turn has one text";
    assert_eq!((&both["success"], &both["note"]), (&json!(true), &json!(note)));
    let none = &both["data"];
    let resume = data(&engine, &json!({"action": "resume", "thread_id": thread}));
    keys(&resume, &["thread_id", "topic", "last_message_at", "message_count", "continuation_id"]);
    assert_eq!(resume["message_count"], 3);
    assert_eq!(resume["continuation_id"], none["continuation_id"]);
    let history = data(&engine, &json!({"action": "history", "thread_id": thread}));
    keys(&history, &["thread_id", "messages"]);
    let messages = history["messages"].as_array().unwrap();
    keys(&messages[0], &["role", "content", "timestamp"]);
    let said: Vec<_> = messages.iter().map(|m| (text(&m["role"]), text(&m["content"]))).collect();
    let expected = [
        ("user", "Which index do we drop?"),
        ("assistant", "The one on time."),
        ("user", "Which one is that?"),
    ];
    assert_eq!(said, expected);
    assert_eq!(messages[2]["timestamp"], resume["last_message_at"]);
    let found = data(&engine, &json!({"action": "search", "query": "index drop"}));
    keys(&found, &["query", "matches"]);
    let matches = found["matches"].as_array().unwrap();
    assert_eq!(matches.len(), 1, "each thread once");
    keys(&matches[0], &["thread_id", "topic", "snippet", "score"]);
    assert_eq!(&matches[0]["thread_id"], thread);
    assert!(text(&matches[0]["snippet"]).contains("Which index do we drop?"));
    assert!((0.0..=1.0).contains(&matches[0]["score"].as_f64().unwrap()));
    assert_eq!(data(&engine, &json!({"action": "search", "query": "zebra"}))["matches"], json!([]));
    let silent = data(&engine, &json!({"action": "start", "topic": "Zebra crossings"}));
    let found = data(&engine, &json!({"action": "search", "query": "zebra"}));
    assert_eq!(found["matches"][0]["thread_id"], silent["thread_id"], "a topic is enough");
    data(&engine, &json!({"action": "start", "user_id": "anna", "platform": "desktop"}));
    assert_eq!(
        data(&engine, &json!({"action": "analytics"})),
        json!({
            "total_threads": 3,
            "threads_by_user": {"anna": 1, "default": 2},
            "avg_messages_per_thread": 1.0,
            "recent_topics": ["general", "Zebra crossings", "database migration"],
        })
    );
}

#[test]
fn before_any_thread() {
    let (home, engine) = begun();
    let none = json!({"total_threads": 0, "threads_by_user": {}, "avg_messages_per_thread": 0.0, "recent_topics": []});
    assert_eq!(data(&engine, &json!({"action": "analytics"})), none);
    let search = json!({"action": "search", "query": "x"});
    assert_eq!(data(&engine, &search), json!({"query": "x", "matches": []}));
    assert_eq!(
        refused(&engine, &json!({"action": "resume", "thread_id": "X"})),
        "Thread X not found"
    );
    assert!(!home.path().join("threads.db").exists(), "asking makes nothing");
}

#[test]
fn what_is_refused() {
    let (_home, engine) = begun();
    let start = data(&engine, &json!({"action": "start"}));
    let id = text(&start["continuation_id"]);
    let go_on = json!({"action": "continue", "continuation_id": id, "query": "one"});
    data(&engine, &go_on);
    let late = refused(&engine, &go_on);
    assert!(late.starts_with(&format!("continuation_id {id} is out of date")), "{late}");
    assert!(late.contains("resume thread"), "{late}");
    let thread = text(&start["thread_id"]);
    for unknown in [
        &format!("{thread}_turn7"),
        &format!("{thread}_turn+1"),
        &format!("{thread}_turn01"),
        thread,
        "_turn0",
        "%",
        "x' OR 1=1 --",
    ] {
        let go_on = json!({"action": "continue", "continuation_id": unknown, "query": "x"});
        let error = refused(&engine, &go_on);
        assert!(error.starts_with("continuation_id ") && error.contains("not found"), "{error}");
    }
    let actions = "start, continue, resume, history, search, analytics";
    for (arguments, error) in [
        (json!({"action": "resume", "thread_id": "X"}), "Thread X not found"),
        (
            json!({"action": "history", "thread_id": "../../etc/passwd"}),
            "Thread ../../etc/passwd not found",
        ),
        (json!({"action": "x"}), &format!("Unknown action: 'x'. Valid actions: {actions}")),
        (json!({}), &format!("action is required: one of {actions}")),
        (
            json!({"action": "start", "topic": "x".repeat(501)}),
            "topic is too long: it takes at most 500 characters",
        ),
    ] {
        assert_eq!(refused(&engine, &arguments), error);
    }
    for (action, argument, value) in [
        ("continue", "continuation_id", json!(null)),
        ("continue", "continuation_id", json!("")),
        ("resume", "thread_id", json!(null)),
        ("history", "thread_id", json!(null)),
        ("search", "query", json!(null)),
    ] {
        let error = refused(&engine, &json!({"action": action, argument: value}));
        assert_eq!(error, format!("{argument} is required for {action} action"));
        if value.is_null() {
            assert_eq!(refused(&engine, &json!({"action": action})), error);
        }
    }
    for (action, argument, value, what) in [
        ("start", "action", json!(5), "one of the actions as a string"),
        ("start", "topic", json!(["x"]), "a string"),
        ("start", "user_id", json!(5), "a string"),
        ("history", "limit", json!(0), "an integer from 1 to 1000"),
        ("history", "limit", json!("ten"), "an integer from 1 to 1000"),
        ("continue", "role", json!("tool"), "\"user\" or \"assistant\""),
    ] {
        let mut arguments = match action {
            "start" => json!({"action": action}),
            "history" => json!({"action": action, "thread_id": thread}),
            _ => json!({"action": action, "continuation_id": "x"}),
        };
        arguments[argument] = value.clone();
        assert_eq!(refused(&engine, &arguments), format!("{argument} takes {what}; got {value}"));
    }
    let unknown = call(&engine, &json!({"action": "analytics", "colour": "red"}));
    let unknown: Value = serde_json::from_str(&unknown.text).unwrap();
    let note = text(&unknown["note"]);
    assert_eq!((&unknown["success"], &unknown["data"]["total_threads"]), (&json!(true), &json!(1)));
    assert!(note.starts_with("ignored: manage_conversation has no argument \"colour\"; it takes"));
    for (arguments, ignored) in [
        (json!({"action": "analytics", "limit": 5}), "not for analytics: limit"),
        (
            json!({"action": "history", "thread_id": thread, "query": "x", "topic": "y"}),
            "not for history: topic, query",
        ),
        (json!({"action": "search", "query": "x", "role": "user"}), "not for search: role"),
        (json!({"action": "resume", "thread_id": thread, "limit": 1}), "not for resume: limit"),
    ] {
        let answer: Value = serde_json::from_str(&call(&engine, &arguments).text).unwrap();
        assert_eq!(answer["note"], format!("ignored, {ignored}"), "{answer}");
    }
    let long = json!({"action": "resume", "thread_id": "x".repeat(1001)});
    assert_eq!(refused(&engine, &long), "thread_id is too long: it takes at most 1000 characters");
    let huge = json!({"action": "continue", "continuation_id": id, "query": "x".repeat(2 << 20)});
    assert_eq!(refused(&engine, &huge), "query is too long: it takes at most 1 MiB");
    assert_eq!(
        data(&engine, &json!({"action": "resume", "thread_id": thread}))["message_count"],
        1
    );
}

#[test]
fn every_text_comes_back() {
    let (_home, engine) = begun();
    let start = data(&engine, &json!({"action": "start", "topic": "'); DROP TABLE messages; --"}));
    let mut next = start["continuation_id"].clone();
    let texts = [
        "'); DELETE FROM messages; --",
        "a\0b",
        "  spaces \n",
        "日本語 😀 e\u{301}",
        "[\"json\", \"parts\"]",
        "%_\\",
        &"long ".repeat(10_000),
    ];
    for text in texts {
        let go_on = json!({"action": "continue", "continuation_id": next, "query": text});
        next = data(&engine, &go_on)["continuation_id"].clone();
    }
    let history = json!({"action": "history", "thread_id": start["thread_id"]});
    let history = data(&engine, &history);
    let messages = history["messages"].as_array().unwrap();
    assert_eq!(messages.iter().map(|m| text(&m["content"])).collect::<Vec<_>>(), texts);
    let last = json!({"action": "history", "thread_id": start["thread_id"], "limit": 2});
    let last = data(&engine, &last);
    assert_eq!(last["messages"].as_array().unwrap()[..], messages[5..]);
}

#[test]
fn a_long_history_says_that_it_is_cut() {
    let (_home, engine) = begun();
    let start = data(&engine, &json!({"action": "start"}));
    let mut next = start["continuation_id"].clone();
    for number in 0..5 {
        let turn = format!("{number} {}", "é".repeat(10_000));
        let go_on = json!({"action": "continue", "continuation_id": next, "query": turn});
        next = data(&engine, &go_on)["continuation_id"].clone();
    }
    let history = json!({"action": "history", "thread_id": start["thread_id"], "limit": 100});
    let history = data(&engine, &history);
    let messages = history["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "the latest that fit");
    assert!(text(&messages[1]["content"]).starts_with("4 "));
    let path = format!("path {}", text(&start["thread_id"]));
    let note = text(&history["note"]);
    assert!(note.starts_with("the latest 2 of 5 messages; more do not fit here"), "{note}");
    assert!(note.ends_with(&path), "{note}");
    let history = json!({"action": "history", "thread_id": start["thread_id"], "limit": 1});
    let history = data(&engine, &history);
    let note = text(&history["note"]);
    assert!(note.starts_with("the latest 1 of 5 messages; raise limit"), "{note}");
}

#[test]
fn memory_answers_with_its_source() {
    let home = folder();
    fs::create_dir(home.path().join("db")).unwrap();
    drop(database(
        &home.path().join("db/chats.db"),
        &["The postgres migration failed on the orders table.", "We ate green soup."],
    ));
    let engine = engine(home.path());
    let go_on = |query: &str| {
        let start = data(&engine, &json!({"action": "start", "topic": "now"}));
        let id = &start["continuation_id"];
        let turn = json!({"action": "continue", "continuation_id": id, "query": query});
        (text(&data(&engine, &turn)["response"]).to_owned(), text(&start["thread_id"]).to_owned())
    };
    let (response, first) = go_on("Why did the postgres migration of the orders table fail?");
    assert!(response.contains("The postgres migration failed on the orders table."), "{response}");
    has(&response, &["[2023-11-14 22:13] user in \"Colours\" (export, conv-0001)"]);
    assert!(!response.contains("soup") && !response.contains(&first), "{response}");
    let (response, _) = go_on("How did moving the PostgreSQL database of orders go wrong?");
    assert!(response.contains("The postgres migration failed"), "other words: {response}");
    // The operators of ranked search are plain words in a turn.
    let (response, _) = go_on("\"orders table\" of \"lions\", -postgres -migration");
    assert!(response.contains("The postgres migration failed"), "{response}");
    for nothing in
        ["Zebras graze quietly beside xylophones", "What do you think about this?", "..."]
    {
        assert_eq!(go_on(nothing).0, "", "nothing bears on it");
    }
    // The turns of earlier threads are memory, too.
    let (response, _) = go_on("postgres migration orders table again");
    assert!(response.contains(&format!("(threads, {first})")), "{response}");
}

#[test]
fn a_recorded_question_does_not_answer_itself() {
    let home = folder();
    fs::create_dir(home.path().join("db")).unwrap();
    let texts = ["We booked the Hotel Mar in Lisbon.", "We ate green soup."];
    drop(database(&home.path().join("db/chats.db"), &texts));
    let engine = engine(home.path());
    let asked = "Which hotel did we book in Lisbon?";
    for (topic, query) in
        [("now", asked), ("later", "hotel in Lisbon?"), ("known", "The Hotel Mar was loud.")]
    {
        data(&engine, &json!({"action": "start", "topic": topic, "query": query}));
    }
    reindex(&engine);
    for mode in ["both", "vector"] {
        let text = found(&engine, "search", json!({"query": asked, "mode": mode}));
        assert!(
            !text.contains("Snippet: Which hotel") && !text.contains("Snippet: hotel in"),
            "{text}"
        );
        let (first, rest) = text.split_once("\n---\n").unwrap();
        assert!(first.contains("Snippet: We booked the Hotel Mar"), "{text}");
        assert!(
            rest.contains("Snippet: The Hotel Mar was loud."),
            "a recorded fact is found: {text}"
        );
    }
    // What was said is found if it is asked for.
    let text = found(&engine, "search", json!({"query": asked, "mode": "text"}));
    assert!(text.contains("(1 conversation)"), "{text}");
    let only = json!({"query": asked, "filters": {"service": "threads"}});
    assert!(found(&engine, "search", only).contains("The Hotel Mar was loud."));
}

#[test]
fn a_call_that_was_ended_records_nothing() {
    let (_home, engine) = begun();
    let start = data(&engine, &json!({"action": "start"}));
    let call = Call::default();
    call.stop.request();
    let turn = engine.memory().continue_thread(text(&start["continuation_id"]), "user", "x", &call);
    assert!(turn.unwrap_err().is_stopped());
    let resume = data(&engine, &json!({"action": "resume", "thread_id": start["thread_id"]}));
    assert_eq!(resume["message_count"], 0);
    assert_eq!(resume["continuation_id"], start["continuation_id"]);
}

/// Returns the hits of an exact search in the threads.
fn exact(engine: &Engine, text: &str) -> Vec<String> {
    let sources = engine.sources();
    let Some(threads) = sources.iter().find(|source| source.kind == SourceKind::Threads) else {
        return Vec::new();
    };
    let request = Request { text: text.to_owned(), ..Request::default() };
    let mut found = Vec::new();
    threads
        .exact(&request, &Call::default(), &mut |hit| {
            found.push(hit.content.into_owned());
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    found
}

fn save(engine: &Engine, options: &Options, arguments: &Value) -> Answer {
    call_with(engine, tools::save_conversation_context::TOOL, options, arguments)
}

fn delete(engine: &Engine, options: &Options, arguments: &Value) -> Answer {
    call_with(engine, tools::delete_conversation::TOOL, options, arguments)
}

#[test]
fn saved_conversations() {
    let (_home, engine) = begun();
    let (short, verbose) = (Options::default(), Options { verbose: true, ..Options::default() });
    let turns = json!([
        {"role": "user", "content": "Should we use Supabase or PlanetScale?"},
        {"role": "assistant", "content": "Supabase is recommended."},
    ]);
    let arguments = json!({"summary": "Discussed migrating from MySQL.", "sessionKey": "db-migration-2026-01",
        "title": "Database Migration Planning", "recentTurns": turns, "embedTurns": true});
    let saved: Value = serde_json::from_str(&save(&engine, &verbose, &arguments).text).unwrap();
    keys(&saved, &["success", "message", "sessionId", "sessionKey", "title", "turnsSaved"]);
    assert_eq!(saved["sessionKey"], "db-migration-2026-01");
    assert_eq!(saved["turnsSaved"], 2);
    assert_eq!(saved["message"], "Conversation context saved");
    let id = text(&saved["sessionId"]).to_owned();
    assert_eq!(exact(&engine, "supabase").len(), 2);
    assert_eq!(exact(&engine, "from mysql"), ["Discussed migrating from MySQL."]);
    // A thread that is saved again is updated, and has no turn twice.
    let again = json!({"summary": "Decided on Supabase.", "sessionKey": "db-migration-2026-01",
        "recentTurns": [turns[1], {"role": "user", "content": "Done."}]});
    let again: Value = serde_json::from_str(&save(&engine, &short, &again).text).unwrap();
    assert_eq!(
        again,
        json!({"ok": true, "id": &id[..8], "key": "db-migration-2026-01", "turns": 1})
    );
    assert!(exact(&engine, "from mysql").is_empty());
    let history = data(&engine, &json!({"action": "history", "thread_id": id}));
    let said: Vec<_> =
        history["messages"].as_array().unwrap().iter().map(|m| text(&m["content"])).collect();
    assert_eq!(history["summary"], "Decided on Supabase.");
    assert_eq!(
        said,
        ["Should we use Supabase or PlanetScale?", "Supabase is recommended.", "Done."]
    );
    // Searches find it by its summary, and lists show the summary.
    let query = json!({"mode": "search", "query": "which one was decided on"});
    let found = call_with(&engine, tools::query_conversations::TOOL, &verbose, &query);
    let found = &found.structured.unwrap()["conversations"][0];
    assert_eq!(found["sessionId"], json!(id));
    assert_eq!(found["summary"], "Decided on Supabase.");
    let unnamed: Value =
        serde_json::from_str(&save(&engine, &short, &json!({"summary": "x"})).text).unwrap();
    assert!(text(&unnamed["key"]).starts_with("session-"));
    for (arguments, error) in [
        (json!({}), "summary is required"),
        (json!({"summary": 5}), "summary takes a string of 1 to 10000 characters; got 5"),
        (json!({"summary": ""}), "summary is required"),
        (json!({"summary": " "}), "summary takes a string of 1 to 10000 characters; got \" \""),
        (
            json!({"summary": "x", "embedTurns": "yes"}),
            "embedTurns takes true or false; got \"yes\"",
        ),
        (
            json!({"summary": "x", "recentTurns": [{"role": "tool", "content": "x"}]}),
            "recentTurns[0].role takes user, assistant or system; got \"tool\"",
        ),
        (
            json!({"summary": "x", "recentTurns": [{"role": "user", "content": "a"}, {"role": "user"}]}),
            "recentTurns[1].content takes a string of at most 50000 characters; got null",
        ),
        (
            json!({"summary": "x", "recentTurns": [{"role": "user", "content": "a", "at": 1}]}),
            "recentTurns[0] has no key \"at\"; it takes role, content",
        ),
        (
            json!({"summary": "x", "recentTurns": ["hello"]}),
            "recentTurns[0] takes an object {role, content}; got \"hello\"",
        ),
    ] {
        let answer = save(&engine, &short, &arguments);
        assert!(answer.is_error);
        assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), json!({"error": error}));
    }
    let off = Options { no_conversations: true, ..Options::default() };
    assert!(
        save(&engine, &off, &json!({"summary": "x"})).text.contains("Conversations not enabled")
    );
    assert!(
        delete(&engine, &off, &json!({"confirm": true})).text.contains("Conversations not enabled")
    );
}

/// Returns the compact text and the structure of an answer of `query_conversations`.
fn query(engine: &Engine, arguments: &Value) -> (Value, Value) {
    let tool = tools::query_conversations::TOOL;
    let answer = call_with(engine, tool, &Options::default(), arguments);
    assert!(!answer.is_error, "{}", answer.text);
    (serde_json::from_str(&answer.text).unwrap(), answer.structured.unwrap())
}

#[test]
fn a_saved_summary_is_whole_and_no_turn() {
    let (_home, engine) = begun();
    let lines: Vec<String> = (0..430).map(|n| format!("- decision {n}, é\u{2028}\"q\"")).collect();
    let summary = lines.join("\n");
    assert!((9_000..=10_000).contains(&summary.chars().count()));
    let title = format!("Gigantic decisions {}", "x".repeat(480));
    let turns = json!([{"role": "user", "content": "Shall we?"}, {"role": "system", "content": "So be it."}]);
    let arguments =
        json!({"summary": summary, "sessionKey": "k", "title": title, "recentTurns": turns});
    let saved = save(&engine, &Options::default(), &arguments);
    let id = serde_json::from_str::<Value>(&saved.text).unwrap()["id"].clone();
    // Before there is an index of the threads, and after.
    for _ in 0..2 {
        let (short, got) = query(&engine, &json!({"mode": "get", "sessionId": id}));
        assert_eq!(short["sum"], json!(summary));
        assert_eq!(short["n"], 2);
        assert_eq!(short["t"], json!(title));
        let session = &got["session"];
        assert_eq!((&session["summary"], &session["turnCount"]), (&json!(summary), &json!(2)));
        let turns = got["turns"].as_array().unwrap().iter();
        let said: Vec<_> = turns.map(|t| (&t["turnIndex"], &t["content"])).collect();
        assert_eq!(said, [(&json!(0), &json!("Shall we?")), (&json!(1), &json!("So be it."))]);
        assert_eq!(got["message"], Value::Null);
        let (_, one) = query(&engine, &json!({"mode": "get", "sessionKey": "k", "maxTurns": 1}));
        assert!(text(&one["message"]).starts_with("1 of 2 turns."), "{one}");
        let (_, list) = query(&engine, &json!({"mode": "list"}));
        assert_eq!(list["conversations"][0]["turnCount"], 2);
        for (mode, word) in [
            ("summary", "decision 399"),
            ("both", "decision 399"),
            ("turns", "decision 399"),
            ("turns", "Shall we?"),
        ] {
            let ask = json!({"mode": "search", "query": word, "searchMode": mode,
                "includeTranscript": true, "maxTurnsPerConversation": 5});
            let (short, whole) = query(&engine, &ask);
            let results = whole["conversations"].as_array().unwrap();
            if (mode, word) == ("turns", "decision 399") && results.is_empty() {
                continue;
            }
            assert_eq!(results.len(), 1, "{mode} {word}: {whole}");
            let first = &whole["conversations"][0];
            assert_eq!(first["summary"], json!(summary));
            assert_eq!(short["c"][0]["sum"], json!(summary));
            assert_eq!(first["turns"].as_array().unwrap().len(), 2, "{first}");
            // Any turn may be similar in meaning, but the summary is not a turn.
            for turn in first["matchedTurns"].as_array().into_iter().flatten() {
                let content = text(&turn["content"]);
                assert!(["Shall we?", "So be it."].contains(&content), "{mode} {word}: {content}");
            }
            if mode == "turns" && word == "decision 399" {
                assert!(first["score"].as_f64().unwrap() < 0.2, "{}", first["score"]);
            }
        }
        // `read` names it as a summary.
        let read = tools::read::TOOL;
        let whole = call_with(&engine, read, &Options::default(), &json!({"path": "k"})).text;
        assert!(whole.contains("\n**Summary:**\n> - decision 0, é"), "{whole}");
        assert!(!whole.contains("**System:**\n> - "), "{whole}");
        reindex(&engine);
    }
    let shorter = json!({"summary": "two\n\nlines", "sessionKey": "k"});
    save(&engine, &Options::default(), &shorter);
    let (_, got) = query(&engine, &json!({"mode": "get", "sessionKey": "k"}));
    assert_eq!(got["session"]["summary"], "two\n\nlines");
}

fn reindex(engine: &Engine) {
    let resources = Resources { memory: 64 << 20, threads: 1 };
    let never = Call::default();
    for source in engine.sources() {
        let options = Reindex { resources, full: false };
        source.reindex(options, &never, &mut |_| ()).unwrap();
        source.enrich(resources, &never, &mut |_| ()).unwrap();
    }
}

#[test]
fn what_is_deleted_is_gone_at_once() {
    let (home, engine) = begun();
    let options = Options { verbose: true, ..Options::default() };
    let arguments = json!({"summary": "secret plans", "sessionKey": "plans", "recentTurns":
        [{"role": "user", "content": "a very secret-needle"}]});
    save(&engine, &options, &arguments);
    let kept = data(&engine, &json!({"action": "start", "topic": "kept"}));
    let go_on =
        json!({"action": "continue", "continuation_id": kept["continuation_id"], "query": "kept"});
    data(&engine, &go_on);
    let not_found = |word: &str| {
        format!(
            "Conversation not found: \"{word}\" is not the id (or at least 4 characters of its beginning) or \
             the key of a recorded or saved conversation; query_conversations mode=list shows both"
        )
    };
    for (arguments, error) in [
        (json!({"sessionKey": "plans"}), "Set confirm=true to delete"),
        (json!({"sessionKey": "plans", "confirm": false}), "Set confirm=true to delete"),
        (
            json!({"sessionKey": "plans", "confirm": "true"}),
            "confirm takes true or false; got \"true\"",
        ),
        (json!({"confirm": true}), "Either sessionId or sessionKey is required"),
        (json!({"confirm": true, "sessionKey": "other"}), &not_found("other")),
        (json!({"confirm": true, "sessionId": "%"}), &not_found("%")),
        (
            json!({"confirm": true, "sessionId": &text(&kept["thread_id"])[..3]}),
            &not_found(&text(&kept["thread_id"])[..3]),
        ),
        (
            json!({"confirm": true, "sessionKey": &text(&kept["thread_id"])[..8]}),
            &not_found(&text(&kept["thread_id"])[..8]),
        ),
        (
            json!({"confirm": true, "sessionId": " KEPT "}),
            &format!(
                "Conversation not found by its title: give the id of \"KEPT\", {}, or its key",
                text(&kept["thread_id"])
            ),
        ),
        (
            json!({"confirm": true, "sessionKey": "plans", "sessionId": kept["thread_id"]}),
            "sessionId and sessionKey name two conversations; give one of them",
        ),
    ] {
        let answer = delete(&engine, &options, &arguments);
        assert!(answer.is_error);
        assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), json!({"error": error}));
    }
    assert_eq!(exact(&engine, "secret").len(), 2);
    let answer = delete(&engine, &options, &json!({"sessionKey": "plans", "confirm": true}));
    let answer: Value = serde_json::from_str(&answer.text).unwrap();
    keys(&answer, &["success", "message", "deletedSessionId"]);
    assert_eq!(exact(&engine, "secret"), [""; 0]);
    let scope = Scope { sources: vec![SourceKind::Threads], ..Scope::default() };
    assert_eq!(engine.list(&scope, 0..10, &Call::default()).unwrap().total, 1);
    assert_eq!(data(&engine, &json!({"action": "analytics"}))["total_threads"], 1);
    let gone = json!({"action": "resume", "thread_id": answer["deletedSessionId"]});
    assert!(refused(&engine, &gone).ends_with("not found"));
    for entry in fs::read_dir(home.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let found = bytes.windows(13).any(|window| window == b"secret-needle");
        assert!(!found, "{} still holds the text", path.display());
    }
    let prefix = &text(&kept["thread_id"])[..4].to_uppercase();
    let answer = delete(&engine, &options, &json!({"sessionId": prefix, "confirm": true}));
    assert!(!answer.is_error, "{}", answer.text);
}

#[cfg(unix)]
#[test]
fn the_file_is_private_and_replaced_files_are_noticed() {
    use std::os::unix::fs::PermissionsExt;
    let home = folder();
    let engine = engine(&home.path().join("new/home"));
    let path = home.path().join("new/home/threads.db");
    let start = data(&engine, &json!({"action": "start"}));
    for name in ["threads.db", "threads.db-wal", "threads.db-shm"] {
        let mode = fs::metadata(path.with_file_name(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
    for name in ["threads.db", "threads.db-wal", "threads.db-shm"] {
        fs::remove_file(path.with_file_name(name)).unwrap();
    }
    let go_on =
        json!({"action": "continue", "continuation_id": start["continuation_id"], "query": "x"});
    assert!(refused(&engine, &go_on).contains("not found"));
    data(&engine, &json!({"action": "start"}));
    assert_eq!(data(&engine, &json!({"action": "analytics"}))["total_threads"], 1);
}

#[test]
fn a_thread_may_start_with_its_first_turn() {
    let (_home, engine) = begun();
    for (name, role) in [("query", "user"), ("message", "assistant")] {
        let start = json!({"action": "start", "topic": "keys", "role": role,
            name: "The deploy key lives in vault Osprey."});
        let start = data(&engine, &start);
        keys(
            &start,
            &["thread_id", "continuation_id", "topic", "created_at", "response", "message_count"],
        );
        assert_eq!(start["message_count"], 1);
        let history = json!({"action": "history", "thread_id": start["thread_id"]});
        let messages = &data(&engine, &history)["messages"];
        assert_eq!(messages[0]["role"], json!(role));
        assert_eq!(messages[0]["content"], "The deploy key lives in vault Osprey.");
        let go_on = json!({"action": "continue", "continuation_id": start["continuation_id"],
            "query": "Where is the deploy key?"});
        assert_eq!(data(&engine, &go_on)["message_count"], 2);
    }
    // A text that cannot be recorded starts no thread.
    let huge = json!({"action": "start", "query": "x".repeat(2 << 20)});
    assert_eq!(refused(&engine, &huge), "query is too long: it takes at most 1 MiB");
    assert_eq!(data(&engine, &json!({"action": "analytics"}))["total_threads"], 2);
}

#[test]
fn a_store_that_cannot_be_written_is_an_error() {
    let home = folder();
    fs::write(home.path().join("threads.db"), b"no database at all, but text").unwrap();
    let foreign = refused(&engine(home.path()), &json!({"action": "start"}));
    assert!(foreign.contains("not a database of threads"), "{foreign}");
    let file = home.path().join("file");
    fs::write(&file, b"").unwrap();
    let nowhere = refused(&engine(&file.join("home")), &json!({"action": "start"}));
    assert!(nowhere.contains("cannot record threads"), "{nowhere}");
}

#[test]
fn threads_of_another_version_are_left_alone() {
    for tables in ["schema", "threads"] {
        for version in [0, 99] {
            let home = folder();
            data(&engine(home.path()), &json!({"action": "start"}));
            let connection = Connection::open(home.path().join("threads.db")).unwrap();
            let sql = "UPDATE verbatim_meta SET value = ?1 WHERE name = ?2";
            connection.execute(sql, rusqlite::params![version, tables]).unwrap();
            let error = refused(&engine(home.path()), &json!({"action": "start"}));
            assert!(error.contains("another version of verbatim"), "{error}");
            let sql = "SELECT count(*) FROM conversations";
            assert_eq!(connection.query_one(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start,
    Continue { thread: usize, old: usize, text: String },
    Resume { thread: usize },
    Delete { thread: usize },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Start),
        8 => (0..4_usize, prop_oneof![5 => Just(0), 1 => 0..3_usize], "\\PC{0,12}")
            .prop_map(|(thread, old, text)| Step::Continue { thread, old, text }),
        2 => (0..4_usize).prop_map(|thread| Step::Resume { thread }),
        1 => (0..4_usize).prop_map(|thread| Step::Delete { thread }),
        1 => Just(Step::Restart),
    ]
}

/// The expected state of a thread: the ids that it gave out, and its turns.
#[derive(Default)]
struct Model {
    id: String,
    given: Vec<String>,
    said: Vec<String>,
    is_gone: bool,
}

proptest! {
    #![proptest_config(crate::cases::config(24))]

    #[test]
    fn threads_are_what_was_said(steps in prop::collection::vec(step(), 1..40)) {
        let home = folder();
        let mut engine = self::engine(home.path());
        let mut models: Vec<Model> = Vec::new();
        for step in steps {
            match step {
                Step::Start => {
                    let start = data(&engine, &json!({"action": "start"}));
                    models.push(Model {
                        id: text(&start["thread_id"]).to_owned(),
                        given: vec![text(&start["continuation_id"]).to_owned()],
                        ..Model::default()
                    });
                }
                Step::Continue { thread, old, text: said } => {
                    if verbatim_text::snippet::trim(&said).is_empty() {
                        continue;
                    }
                    let Some(model) = models.get_mut(thread) else { continue };
                    let Some(at) = model.given.len().checked_sub(old + 1) else { continue };
                    let go_on = json!({"action": "continue", "continuation_id": model.given[at], "query": said});
                    if model.is_gone || old > 0 {
                        let error = refused(&engine, &go_on);
                        let expected = if model.is_gone { "not found" } else { "out of date" };
                        prop_assert!(error.contains(expected), "{}", error);
                        continue;
                    }
                    let next = data(&engine, &go_on);
                    model.said.push(said);
                    prop_assert_eq!(next["message_count"].as_u64(), Some(model.said.len() as u64));
                    let next = text(&next["continuation_id"]).to_owned();
                    prop_assert!(!model.given.contains(&next));
                    model.given.push(next);
                }
                Step::Resume { thread } => {
                    let Some(model) = models.get(thread).filter(|model| !model.is_gone) else { continue };
                    let resume = data(&engine, &json!({"action": "resume", "thread_id": model.id}));
                    prop_assert_eq!(resume["continuation_id"].as_str(), model.given.last().map(String::as_str));
                }
                Step::Delete { thread } => {
                    let Some(model) = models.get_mut(thread) else { continue };
                    let gone = delete(&engine, &Options::default(), &json!({"sessionId": model.id, "confirm": true}));
                    prop_assert_eq!(gone.is_error, model.is_gone);
                    model.is_gone = true;
                }
                Step::Restart => engine = self::engine(home.path()),
            }
        }
        for model in models.iter().filter(|model| !model.is_gone) {
            let history = json!({"action": "history", "thread_id": model.id, "limit": 100});
            let history = data(&engine, &history);
            let said: Vec<_> = history["messages"].as_array().unwrap().iter().map(|m| text(&m["content"])).collect();
            prop_assert_eq!(&said, &model.said);
        }
        let there = models.iter().filter(|model| !model.is_gone).count();
        prop_assert_eq!(data(&engine, &json!({"action": "analytics"}))["total_threads"].as_u64(), Some(there as u64));
    }
}
