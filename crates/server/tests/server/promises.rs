//! The contracts' promises about arrays, limits, blanks, ids and keys, with an index and without.

use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use verbatim_engine::Engine;

use crate::calls::{call, engines, found, refused};
use crate::corpus::{SCHEMA, folder_with};

/// A conversation: its id, its title, its own time, and its messages' texts and times.
type Talk<'a> = (&'a str, Option<&'a str>, i64, &'a [(&'a str, Option<i64>)]);

fn database(path: &Path, talks: &[Talk<'_>]) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    for (id, title, time, messages) in talks {
        let sql = "INSERT INTO conversations VALUES (?1, ?2, ?2 + 100, ?3)";
        connection.execute(sql, params![id, time, title]).unwrap();
        for (at, (text, time)) in (0_i64..).zip(*messages) {
            let sql = "INSERT INTO messages VALUES (?1, ?2, 'user', ?3, ?4, NULL, ?5)";
            let message = format!("{id}/{at}");
            connection.execute(sql, params![message, id, text, time, at]).unwrap();
        }
    }
    connection
}

/// Returns the ids of what `search` finds, sorted, and the whole answer.
fn search(engine: &Engine, mut arguments: Value) -> (Vec<String>, Value) {
    arguments["response_format"] = json!("json");
    let answer: Value = serde_json::from_str(&found(engine, "search", arguments)).unwrap();
    let path = |one: &Value| one["path"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let mut ids: Vec<String> = answer["results"].as_array().unwrap().iter().map(path).collect();
    ids.sort();
    (ids, answer)
}

fn query(engine: &Engine, arguments: Value) -> Value {
    let answer = call(engine, "query_conversations", arguments);
    assert!(!answer.is_error, "{}", answer.text);
    answer.structured.unwrap()
}

#[test]
fn an_array_finds_only_conversations_that_contain_every_concept() {
    let (_home, db) = folder_with("a.db");
    let time = Some(1_700_000_000);
    database(
        &db,
        &[
            ("both", Some("Supper"), 1, &[("fresh pasta tonight", time), ("a zebra came", time)]),
            ("title", Some("On a zebra"), 1, &[("we had pasta", time)]),
            ("parts", Some("Plurals"), 1, &[("antipasta, two zebras", time)]),
            ("pasta", Some("Cooking"), 1, &[("pasta and noodles", time)]),
            ("zebra", Some("Animals"), 1, &[("a zebra is like a horse", time)]),
        ],
    );
    for engine in engines(&db) {
        for mode in ["both", "text"] {
            let ask = |concepts: &[&str]| search(&engine, json!({"query": concepts, "mode": mode}));
            let (ids, answer) = ask(&["pasta", "zebra"]);
            assert_eq!(ids, ["both", "parts", "title"], "{mode}: {answer}");
            assert_eq!(answer["total"], 3, "{mode}: {answer}");
            let results = answer["results"].as_array().unwrap();
            let scores = results.iter().map(|one| one["score"].as_f64().unwrap());
            assert!(scores.is_sorted_by(|a, b| a >= b), "{answer}");
            assert_eq!(ask(&["tipast", "zebra"]).0, ["parts"], "{mode}");
            let (none, answer) = ask(&["pasta", "elephant"]);
            assert!(none.is_empty(), "{mode}: {answer}");
            assert!(answer["notes"].to_string().contains("No conversations found"), "{answer}");
        }
        let near = search(&engine, json!({"query": ["pasta", "noodles"], "mode": "vector"}));
        let is_said = near.1["notes"].to_string().contains("even without its words");
        assert!(near.0.is_empty() || is_said, "{}", near.1);
    }
}

#[test]
fn an_answer_that_was_cut_says_so() {
    let (_home, db) = folder_with("a.db");
    let texts: Vec<String> = (0..20).map(|at| format!("the marmot walks {at}")).collect();
    let messages: Vec<(&str, Option<i64>)> =
        texts.iter().map(|text| (text.as_str(), Some(1_700_000_000))).collect();
    let ids: Vec<String> = (0..45).map(|at| format!("id-{at}")).collect();
    let talks: Vec<Talk<'_>> =
        ids.iter().map(|id| (id.as_str(), Some("Walks"), 1, messages.as_slice())).collect();
    database(&db, &talks);
    let [engine, _] = engines(&db);
    for mode in ["vector", "both"] {
        let (ids, answer) = search(&engine, json!({"query": "marmot", "mode": mode, "limit": 50}));
        let is_said = answer["notes"].to_string().contains("there may be more");
        assert!(ids.len() == 45 || is_said, "{mode}: {} of 45, {}", ids.len(), answer["notes"]);
    }
    let turns = json!({"mode": "search", "query": "marmot", "searchMode": "turns", "limit": 50});
    let answer = query(&engine, turns);
    let count = answer["conversations"].as_array().unwrap().len();
    let is_said = answer["notes"].to_string().contains("there may be more");
    assert!(count == 45 || is_said, "{count} of 45, {}", answer["notes"]);
}

#[test]
fn blanks_at_the_ends_are_looked_for() {
    let (_home, db) = folder_with("a.db");
    let time = Some(1_700_000_000);
    database(
        &db,
        &[("a", Some("A"), 1, &[("xfoo bar", time)]), ("b", None, 1, &[("a foobar", time)])],
    );
    for engine in engines(&db) {
        for (text, expected) in [("foo ", ["a"]), (" foo", ["b"])] {
            for matching in ["literal", "fold", "regex"] {
                let (ids, answer) = search(&engine, json!({"query": text, "match": matching}));
                assert_eq!(ids, expected, "{text:?} {matching}: {answer}");
            }
        }
        assert_eq!(search(&engine, json!({"query": "xfoo\\ ", "match": "regex"})).0, ["a"]);
        let blank = refused(&engine, "search", json!({"query": "   ", "mode": "text"}));
        assert!(blank.starts_with("Query too short"), "{blank}");
    }
}

#[test]
fn sessions_are_all_conversations_with_their_own_titles_and_times() {
    let (_home, db) = folder_with("a.db");
    database(
        &db,
        &[
            (
                "aaaa-untitled",
                None,
                1_500_000_000,
                &[("dolphins and their songs", Some(1_700_000_000))],
            ),
            ("bbbb-timeless", Some("No times"), 1_600_000_000, &[("hello", None)]),
            ("cccc-empty", Some("No messages"), 1_650_000_000, &[]),
        ],
    );
    let answers = engines(&db).map(|engine| {
        let list = query(&engine, json!({"mode": "list"}));
        let got = ["aaaa", "bbbb", "cccc"]
            .map(|id| query(&engine, json!({"mode": "get", "sessionId": id}))["session"].clone());
        let after = query(&engine, json!({"mode": "list", "after": "2022-01-01"}));
        assert_eq!(after["total"], 2, "{after}");
        (list, got)
    });
    let (list, got) = &answers[0];
    assert_eq!((&list["total"], &list["returned"]), (&json!(3), &json!(3)));
    let field = |name: &str| -> Vec<&Value> {
        list["conversations"].as_array().unwrap().iter().map(|one| &one[name]).collect()
    };
    assert_eq!(field("sessionId"), ["aaaa-untitled", "cccc-empty", "bbbb-timeless"]);
    assert_eq!(field("turnCount"), [1, 0, 1]);
    assert_eq!(field("title")[0], &Value::Null);
    assert!(field("sessionKey")[0].as_str().unwrap().starts_with("export-untitled-"));
    assert_eq!(field("createdAt")[1..], ["2022-04-15T05:20:00Z", "2020-09-13T12:26:40Z"]);
    assert_eq!(field("lastActivity")[1..], ["2022-04-15T05:21:40Z", "2020-09-13T12:28:20Z"]);
    assert_eq!((&got[0]["title"], &got[0]["sessionKey"]), (&Value::Null, field("sessionKey")[0]));
    assert_eq!(&got[1]["createdAt"], field("createdAt")[2]);
    assert_eq!(&got[1]["lastActivity"], field("lastActivity")[2]);
    assert_eq!((&got[2]["title"], &got[2]["turnCount"]), (&json!("No messages"), &json!(0)));
    // Only the summaries differ: they are made when indexing.
    assert_eq!(*list, answers[1].0);
    for (one, other) in got.iter().zip(&answers[1].1) {
        assert_eq!((&one["title"], &one["sessionKey"]), (&other["title"], &other["sessionKey"]));
    }
}

#[test]
fn what_is_listed_is_taken_back() {
    let (_home, db) = folder_with("a.db");
    let time = Some(1_700_000_000);
    // The keys of these two ids have the same checksum.
    let twins = ["001a55bc-0000-4000-8000-0000000000aa", "46e46f6b12fc0ebbcdf149a66edfbaf9"];
    let text: &[(&str, Option<i64>)] = &[("a heron", time)];
    database(
        &db,
        &[
            ("12ab34cd-0000-4000-8000-000000000001", Some("First"), 1, text),
            ("99999999-0000-4000-8000-000000000009", Some("12ab34cd"), 1, text),
            (twins[0], Some("Twin title"), 1, text),
            (twins[1], Some("Twin title"), 1, text),
            ("trail ", Some("Blank"), 1, text),
            ("nl\nid", Some("Break"), 1, text),
        ],
    );
    for engine in engines(&db) {
        let get = |name: &str, value: &str| {
            let answer = query(&engine, json!({"mode": "get", name: value}));
            answer["session"]["id"].as_str().map(str::to_owned)
        };
        assert_eq!(
            get("sessionId", "12ab34cd").as_deref(),
            Some("12ab34cd-0000-4000-8000-000000000001")
        );
        for none in ["zzz", "k9", "%"] {
            assert_eq!((get("sessionId", none), get("sessionKey", none)), (None, None));
        }
        let list = query(&engine, json!({"mode": "list"}));
        for one in list["conversations"].as_array().unwrap() {
            let id = one["sessionId"].as_str().unwrap();
            assert_eq!(get("sessionId", id).as_deref(), Some(id));
            let key = one["sessionKey"].as_str().unwrap();
            if twins.contains(&id) {
                let arguments = json!({"mode": "get", "sessionKey": key});
                let refused = refused(&engine, "query_conversations", arguments);
                assert!(twins.iter().all(|twin| refused.contains(twin)), "{refused}");
            } else {
                assert_eq!(get("sessionKey", key).as_deref(), Some(id));
            }
        }
        let markdown = found(&engine, "search", json!({"query": "heron", "mode": "text"}));
        let paths = markdown.lines().filter_map(|line| line.strip_prefix("**Path:** `"));
        let shown: Vec<&str> = paths.map(|path| path.strip_suffix('`').unwrap()).collect();
        let (_, answer) = search(&engine, json!({"query": "heron", "mode": "text"}));
        let results = answer["results"].as_array().unwrap();
        let paths = results.iter().map(|one| one["path"].as_str().unwrap());
        assert_eq!(shown.len(), 6, "{markdown}");
        for path in shown.into_iter().chain(paths) {
            found(&engine, "read", json!({"path": path}));
        }
    }
}

#[test]
fn an_id_of_two_sources_is_asked_for_by_its_keys() {
    let (_home, db) = folder_with("a.db");
    let connection =
        database(&db, &[("else", Some("Other"), 1, &[("a heron", Some(1_700_000_000))])]);
    let [engine, _] = engines(&db);
    let save = json!({"title": "Kept", "summary": "what was saved"});
    found(&engine, "save_conversation_context", save);
    let list = query(&engine, json!({"mode": "list"}));
    let mut listed = list["conversations"].as_array().unwrap().iter();
    let saved = listed.find(|one| one["title"] == "Kept").unwrap();
    let id = saved["sessionId"].as_str().unwrap().to_owned();
    connection.execute("UPDATE conversations SET id = ?1", [&id]).unwrap();
    connection.execute("UPDATE messages SET conversation_id = ?1", [&id]).unwrap();
    let arguments = json!({"mode": "get", "sessionId": id});
    let refused = refused(&engine, "query_conversations", arguments);
    let keys: Vec<&str> = refused
        .split([' ', ',', ';'])
        .filter(|word| word.starts_with("export-other-") || word.starts_with("kept-"))
        .collect();
    assert_eq!(keys.len(), 2, "{refused}");
    for key in keys {
        let answer = query(&engine, json!({"mode": "get", "sessionKey": key}));
        assert_eq!(answer["session"]["id"].as_str(), Some(id.as_str()), "{answer}");
    }
}

#[test]
fn what_is_ignored_is_said() {
    let (_home, db) = crate::calls::sampled();
    let [engine, _] = engines(&db);
    for (arguments, names) in [
        (json!({"mode": "list", "query": "JWT"}), "query"),
        (json!({"mode": "search", "query": "JWT", "offset": 5}), "offset"),
        (json!({"mode": "get", "sessionId": "550e8400", "offset": 5}), "offset"),
        (json!({"mode": "get", "sessionId": "550e8400", "sessionKey": "other"}), "sessionKey"),
    ] {
        let answer = query(&engine, arguments);
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(message.contains("ignored") && message.contains(names), "{answer}");
    }
}

#[test]
fn names_that_are_longer_than_any_name_are_refused() {
    let (_home, db) = crate::calls::sampled();
    let [engine, _] = engines(&db);
    let long = "x".repeat(1001);
    for (tool, name, mut arguments) in [
        ("search", "session_id", json!({"query": "JWT"})),
        ("search", "project", json!({"query": "JWT"})),
        ("search", "role", json!({"query": "JWT"})),
        ("read", "path", json!({})),
        ("query_conversations", "sessionId", json!({"mode": "get"})),
        ("query_conversations", "sessionKey", json!({"mode": "get"})),
        ("query_conversations", "project", json!({"mode": "list"})),
        ("delete_conversation", "sessionId", json!({"confirm": true})),
        ("manage_conversation", "thread_id", json!({"action": "history"})),
        ("manage_conversation", "continuation_id", json!({"action": "continue", "query": "x"})),
        ("search_workspace", "workspace_path", json!({"query": "x"})),
    ] {
        arguments[name] = json!(long);
        let refused = refused(&engine, tool, arguments);
        let expected = format!("{name} is too long: it takes at most 1000 characters");
        assert!(refused.contains(&expected), "{tool}: {refused}");
    }
}

#[test]
fn lists_begin_with_the_oldest_on_request() {
    let (_home, db) = crate::calls::sampled();
    for engine in engines(&db) {
        let ids = |order: &str| -> Vec<String> {
            let list = query(&engine, json!({"mode": "list", "order": order}));
            let all = list["conversations"].as_array().unwrap().iter();
            all.map(|one| one["sessionId"].as_str().unwrap().to_owned()).collect()
        };
        let mut newest = ids("newest");
        assert_eq!(newest.last().map(String::as_str), Some("no#title"));
        newest.reverse();
        assert_eq!(ids("oldest"), newest);
    }
}

#[test]
fn a_search_finds_messages_of_one_role() {
    let (_home, db) = crate::calls::sampled();
    for engine in engines(&db) {
        for mode in ["text", "both"] {
            for (role, line) in [("user", 2), ("assistant", 3), ("tool", 4)] {
                let word = ["migration", "PostgreSQL", "code"][line - 2];
                let ask = json!({"query": word, "mode": mode, "role": role});
                let (_, found) = search(&engine, ask);
                assert_eq!(found["results"][0]["line"], json!(line), "{mode} {role}: {found}");
            }
            let (_, found) = search(
                &engine,
                json!({"query": "ERR_AUTH_FAILED", "mode": "text", "role": "tool"}),
            );
            assert_eq!(found["results"], json!([]), "{found}");
        }
    }
}

#[test]
fn counts_of_one_name_are_one_number() {
    let (_home, db) = crate::calls::sampled();
    let texts: Vec<String> = (0..260).map(|at| format!("restaurant number {at}")).collect();
    let connection = Connection::open(&db).unwrap();
    for (at, text) in (0_i64..).zip(&texts) {
        let (id, time) = (format!("many-{at}"), 1_600_000_000 + at);
        connection
            .execute("INSERT INTO conversations VALUES (?1, ?2, ?2, 'Many')", params![id, time])
            .unwrap();
        let sql = "INSERT INTO messages VALUES (?1, ?1, 'user', ?2, ?3, NULL, 0)";
        connection.execute(sql, params![id, text, time]).unwrap();
    }
    for engine in engines(&db) {
        for (search_mode, limit) in [("turns", 2), ("both", 50), ("turns", 50)] {
            let ask = json!({"mode": "search", "query": "restaurant", "searchMode": search_mode, "limit": limit});
            let answer = call(&engine, "query_conversations", ask);
            let compact: Value = serde_json::from_str(&answer.text).unwrap();
            let structured = answer.structured.unwrap();
            assert_eq!(compact["n"], structured["totalResults"], "{structured}");
            let flag = "total_is_lower_bound";
            assert_eq!(compact.get(flag), structured.get(flag), "{structured}");
            let total = structured["totalResults"].as_u64().unwrap();
            assert!(
                total == 260 || total > limit && structured[flag] == json!(true),
                "{structured}"
            );
        }
        let markdown = found(&engine, "search", json!({"query": "restaurant", "limit": 10}));
        let ask = json!({"query": "restaurant", "limit": 10, "response_format": "json"});
        let json: Value = serde_json::from_str(&found(&engine, "search", ask)).unwrap();
        let at_least = if json["total_is_lower_bound"] == json!(true) { "at least " } else { "" };
        let head = format!("## Search Results (10 of {at_least}{} conversations)\n", json["total"]);
        assert!(markdown.starts_with(&head), "{head}{markdown}");
    }
}

#[test]
fn turns_are_not_found_by_the_saved_summary() {
    let (_home, db) = crate::calls::sampled();
    let [engine, _] = engines(&db);
    for (key, summary, turn) in [
        ("by-summary", "Decision about the heliotrope contract.", "hello number 0"),
        ("by-turn", "Something else.", "The heliotrope contract is signed."),
    ] {
        let save = json!({"sessionKey": key, "summary": summary, "recentTurns": [
            {"role": "user", "content": turn}, {"role": "assistant", "content": "hello number 1"}]});
        found(&engine, "save_conversation_context", save);
    }
    let keys = |search_mode: &str| -> Vec<String> {
        let ask = json!({"mode": "search", "query": "heliotrope", "searchMode": search_mode});
        let all = query(&engine, ask);
        let all = all["conversations"].as_array().unwrap().iter();
        all.map(|one| one["sessionKey"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys("turns"), ["by-turn"]);
    let both = keys("both");
    assert!(
        both.contains(&"by-summary".to_owned()) && both.contains(&"by-turn".to_owned()),
        "{both:?}"
    );
}

/// A database that another program has locked, with an index that is current and without.
#[test]
fn every_tool_says_within_two_seconds_that_the_database_is_locked() {
    let (_home, db) = crate::calls::sampled();
    for engine in engines(&db) {
        let writer = Connection::open(&db).unwrap();
        writer.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE; INSERT INTO conversations VALUES ('new', 1, 1, 'garden plan')").unwrap();
        for (tool, arguments) in [
            ("read", json!({"path": "garden plan"})),
            ("read", json!({"path": format!("{}#nowhere", db.display())})),
            ("query_conversations", json!({"mode": "get", "sessionId": "garden plan"})),
            (
                "query_conversations",
                json!({"mode": "get", "sessionKey": "export-garden-plan-01234567"}),
            ),
            ("query_conversations", json!({"mode": "list"})),
            ("query_conversations", json!({"mode": "search", "query": "JWT"})),
            ("search", json!({"query": "JWT"})),
            ("search", json!({"query": "JWT", "mode": "text", "session_id": "garden plan"})),
            ("conversation_search", json!({"query": "JWT"})),
        ] {
            let begun = std::time::Instant::now();
            let answer = call(&engine, tool, arguments.clone());
            let took = begun.elapsed();
            assert!(took < std::time::Duration::from_secs(4), "{tool} {arguments}: {took:?}");
            let is_answered = answer.text.contains("JWT") && !answer.is_error;
            let is_named = answer.text.contains("locked by another program");
            assert!(is_answered || is_named, "{tool} {arguments}: {}", answer.text);
        }
        drop(writer);
    }
}
