//! The tool `query_conversations`: the contract's modes, shapes and errors; structures are validated by its schema.

use rusqlite::Connection;
use serde_json::{Value, json};
use verbatim_base::call::Call;
use verbatim_engine::{Engine, SourceKind};
use verbatim_server::tools::{self, Options};

use crate::calls::{call_with, engines, has, sampled, with};
use crate::corpus::{SCHEMA, engine, folder, folder_with};
use crate::schema;

const NAME: &str = "query_conversations";

fn output_schema() -> Value {
    let tool = tools::ALL.iter().find(|tool| tool.name == NAME).unwrap();
    Value::Object((tool.output_schema.unwrap())())
}

/// Returns the text as JSON, and the structure. Checks that the structure fits the schema and is the
/// same in both forms.
fn ask(engine: &Engine, arguments: Value) -> (Value, Value) {
    let compact = call_with(engine, NAME, arguments.clone(), &Options::default());
    assert!(!compact.is_error, "{}", compact.text);
    let verbose = Options { verbose: true, ..Options::default() };
    let verbose = call_with(engine, NAME, arguments, &verbose);
    let structured = compact.structured.unwrap();
    assert_eq!(verbose.structured.as_ref(), Some(&structured));
    assert_eq!(serde_json::from_str::<Value>(&verbose.text).unwrap(), structured);
    let errors = schema::errors(&output_schema(), &structured);
    assert!(errors.is_empty(), "{errors:?}\n{structured:#}");
    (serde_json::from_str(&compact.text).unwrap(), structured)
}

#[test]
fn listing() {
    let (_home, db) = sampled();
    for engine in engines(&db) {
        let (text, structured) = ask(&engine, json!({"mode": "list", "limit": 2, "offset": 1}));
        assert_eq!((&structured["mode"], &structured["total"]), (&json!("list"), &json!(4)));
        assert_eq!((&structured["returned"], &structured["offset"]), (&json!(2), &json!(1)));
        let first = &structured["conversations"][0];
        assert_eq!(first["sessionId"], "7c9e6679-7425-40de-944b-e07fc1f90ae7");
        assert_eq!(first["title"], "API Design Review");
        assert_eq!(first["turnCount"], 2);
        assert_eq!(first["createdAt"], "2025-11-15T09:00:00Z");
        assert_eq!(first["lastActivity"], "2025-11-15T09:01:00Z");
        assert_eq!(text["n"], 4);
        let short = &text["c"][0];
        assert_eq!((&short["id"], &short["t"]), (&json!("7c9e6679"), &json!("API Design Review")));
        assert_eq!((&short["turns"], &short["last"]), (&json!(2), &json!("2025-11-15T09:01:00Z")));
        let key = short["k"].as_str().unwrap();
        assert!(key.starts_with("export-api-design-review-"), "{key}");
        let (text, structured) = ask(&engine, json!({"mode": "list", "offset": "99"}));
        assert_eq!((text, &structured["returned"]), (json!({"n": 4, "c": []}), &json!(0)));
    }
}

#[test]
fn a_thread_without_turns_is_a_session_as_an_empty_conversation_is() {
    let home = folder();
    let engine = crate::threads::engine(home.path());
    let start = json!({"action": "start", "topic": "A plan"});
    let id = crate::threads::data(&engine, &start)["thread_id"].take();
    let (_, structured) = ask(&engine, json!({"mode": "list"}));
    let first = &structured["conversations"][0];
    let shown = [&first["sessionId"], &first["title"], &first["turnCount"]];
    assert_eq!(shown, [&id, &json!("A plan"), &json!(0)]);
    let (_, structured) = ask(&engine, json!({"mode": "get", "sessionId": id}));
    assert_eq!((&structured["found"], &structured["turns"]), (&json!(true), &json!([])));
}

#[test]
fn keys_come_in_the_order_of_the_contract() {
    let (_home, db) = sampled();
    let [engine, _] = engines(&db);
    let text = |arguments| call_with(&engine, NAME, arguments, &Options::default()).text;
    let list = text(json!({"mode": "list", "limit": 1}));
    assert!(
        list.starts_with(
            r#"{"n":4,"c":[{"id":"550e8400","k":"export-database-migration-planning-"#
        ),
        "{list}"
    );
    assert!(
        list.ends_with(
            r#","t":"Database Migration Planning","turns":7,"last":"2025-12-01T09:06:00Z"}]}"#
        ),
        "{list}"
    );
    let get = text(json!({"mode": "get", "sessionId": "550e8400", "maxTurns": 3}));
    assert!(get.starts_with(r#"{"id":"550e8400","k":"export-"#), "{get}");
    has(
        &get,
        &[r#""n":7,"turns":[{"r":"s","c":"You are helpful."},{"r":"u","c":"What's the plan"#],
    );
    let search =
        text(json!({"mode": "search", "query": "PostgreSQL", "searchMode": "turns", "limit": 1}));
    assert!(search.starts_with(r#"{"n":1,"c":[{"id":"550e8400","k":"export-"#), "{search}");
    assert!(search.contains(r#""t":"Database Migration Planning","s":"#), "{search}");
    has(&search, &[r#""matched":[{"r":"a","c":"We should start with PostgreSQL.","l":3}"#]);
}

#[test]
fn getting_by_id_prefix_and_key() {
    let (_home, db) = sampled();
    for engine in engines(&db) {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        let (_, whole) = ask(&engine, json!({"mode": "get", "sessionId": id}));
        assert_eq!((&whole["found"], &whole["session"]["id"]), (&json!(true), &json!(id)));
        assert_eq!(whole["session"]["turnCount"], 7);
        assert_eq!(whole["turns"].as_array().unwrap().len(), 7);
        assert_eq!(
            whole["turns"][1],
            json!({"role": "user", "content": "What's the plan for the database migration?", "turnIndex": 1,
                "createdAt": "2025-12-01T09:01:00Z"})
        );
        assert_eq!(whole["message"], Value::Null);
        for other in [
            json!({"sessionId": "550e8400"}),
            json!({"sessionId": "550e"}),
            json!({"sessionKey": whole["session"]["sessionKey"]}),
        ] {
            assert_eq!(ask(&engine, with(json!({"mode": "get"}), &other)).1, whole);
        }
        // The first turns in order, and how to read the rest.
        let (_, start) = ask(&engine, json!({"mode": "get", "sessionId": id, "maxTurns": 2}));
        assert_eq!(start["turns"].as_array().unwrap()[..], whole["turns"].as_array().unwrap()[..2]);
        let message = start["message"].as_str().unwrap();
        assert!(message.starts_with("2 of 7 turns."), "{message}");
        assert!(message.ends_with(&format!("{}#{id} startLine=3", db.display())), "{message}");
        for word in ["sessionId", "sessionKey"] {
            let (text, none) = ask(&engine, json!({"mode": "get", word: "ffffffff"}));
            assert_eq!((&none["mode"], &none["found"]), (&json!("get"), &json!(false)));
            assert!(none["message"].as_str().unwrap().starts_with("Session not found: "), "{none}");
            assert_eq!(text["found"], false);
        }
    }
}

#[test]
fn searching() {
    let (_home, db) = sampled();
    for engine in engines(&db) {
        let question = json!({"mode": "search", "query": "PostgreSQL", "searchMode": "both", "limit": 5,
            "includeTranscript": true, "maxTurnsPerConversation": 2});
        let (text, structured) = ask(&engine, question);
        assert_eq!(structured["mode"], "search");
        let conversations = structured["conversations"].as_array().unwrap();
        assert_eq!(structured["totalResults"], conversations.len());
        let first = &conversations[0];
        assert_eq!(first["sessionId"], "550e8400-e29b-41d4-a716-446655440000");
        let score = first["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score));
        // The last turns, in order.
        let turns = first["turns"].as_array().unwrap().iter();
        let turns: Vec<&str> = turns.map(|turn| turn["content"].as_str().unwrap()).collect();
        assert_eq!(
            turns,
            ["What about ERR_AUTH_FAILED?", "React Router redirects to the login page."]
        );
        assert_eq!(first["turns"][0]["turnIndex"], 5);
        assert!(first["matchedTurns"][0]["content"].as_str().unwrap().contains("PostgreSQL"));
        assert_eq!(text["n"], structured["totalResults"]);
        assert_eq!(text["c"][0]["id"], "550e8400");
        assert_eq!(text["c"][0]["turns"][0], json!({"r": "u", "c": "What about ERR_AUTH_FAILED?"}));
        // Both fields are absent by default.
        let (text, plain) =
            ask(&engine, json!({"mode": "search", "query": "database migration decisions"}));
        let keys: Vec<&str> = plain["conversations"][0]
            .as_object()
            .map(|it| it.keys().map(String::as_str).collect())
            .unwrap_or_default();
        assert!(!keys.contains(&"turns") && !keys.contains(&"matchedTurns"), "{plain}");
        assert_eq!(text["c"][0].get("turns"), None);
    }
}

#[test]
fn conversations_of_some_days_and_of_a_project() {
    let (_home, db) = sampled();
    for engine in engines(&db) {
        let ids = |filter: Value| {
            let (_, listed) = ask(&engine, with(json!({"mode": "list"}), &filter));
            let items = listed["conversations"].as_array().unwrap().clone();
            assert_eq!(listed["total"], items.len());
            let ids = items.iter().map(|it| it["sessionId"].as_str().unwrap()[..4].to_owned());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(ids(json!({"after": "2025-11-15", "before": "2025-11-30"})), ["7c9e"]);
        assert_eq!(ids(json!({"after": "2025-11-15", "before": ""})), ["550e", "7c9e"]);
        assert_eq!(ids(json!({"before": "2020-12-31"})), ["no#t"]);
        assert_eq!(ids(json!({"project": "web"})), [""; 0]);
        let search = json!({"mode": "search", "query": "JWT", "searchMode": "turns", "before": "2025-11-30"});
        let (_, found) = ask(&engine, search);
        assert_eq!(found["conversations"][0]["sessionId"], "7c9e6679-7425-40de-944b-e07fc1f90ae7");
        assert_eq!(found["conversations"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["conversations"][0]["matchedTurns"][0]["line"], 2, "{found}");
    }
}

#[test]
fn compact_ids_lead_back() {
    let (_home, db) = folder_with("a.db");
    let connection = Connection::open(&db).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    // Ids as those of the agents that one session started, ids in other letters, and a short one.
    let ids = [
        "2f8c41c3-0000-agent-a1",
        "2f8c41c3-0000-agent-a12",
        "2f8c41c3-0000-agent-b1",
        "2F8C41C3-1",
        "日本語の会話の一つ目",
        "日本語の会話の一つ眼",
        "alone-in-its-beginning",
        "ab",
    ];
    for id in ids {
        let row = "INSERT INTO conversations VALUES (?1, '1', '1', 'needle ' || ?1)";
        connection.execute(row, [id]).unwrap();
        let row = "INSERT INTO messages VALUES (?1, ?1, 'user', 'a needle here', '1', NULL, 0)";
        connection.execute(row, [id]).unwrap();
    }
    for engine in engines(&db) {
        for arguments in [
            json!({"mode": "list", "limit": 50}),
            json!({"mode": "search", "query": "needle", "searchMode": "both", "limit": 50}),
        ] {
            let (text, whole) = ask(&engine, arguments);
            let items = text["c"].as_array().unwrap();
            assert_eq!(items.len(), ids.len());
            for (item, whole) in items.iter().zip(whole["conversations"].as_array().unwrap()) {
                let (short, id) = (item["id"].as_str().unwrap(), &whole["sessionId"]);
                let is_short = short.chars().count() >= 8 || short == id;
                assert!(is_short && id.as_str().unwrap().starts_with(short), "{short} {id}");
                let (got, _) = ask(&engine, json!({"mode": "get", "sessionId": short}));
                assert_eq!(&got["id"], short);
            }
        }
        let (got, _) = ask(&engine, json!({"mode": "get", "sessionId": "alone-in-its-beginning"}));
        assert_eq!(got["id"], "alone-in");
    }
}

#[test]
fn errors() {
    const NO_QUERY: &str = "Missing query: query is required for mode=\"search\"";
    const NO_SESSION: &str =
        "Missing session identifier: sessionId or sessionKey is required for mode=\"get\"";
    let (_home, db) = sampled();
    let [engine, _] = engines(&db);
    let refused = |arguments: Value, options: &Options| {
        let answer = call_with(&engine, NAME, arguments, options);
        assert!(answer.is_error && answer.structured.is_none(), "{}", answer.text);
        let json: Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(json.as_object().unwrap().len(), 1);
        json["error"].as_str().unwrap().to_owned()
    };
    for (arguments, text) in [
        (json!({"mode": "search"}), NO_QUERY),
        (json!({"mode": "search", "query": " "}), NO_QUERY),
        (json!({"mode": "get"}), NO_SESSION),
        (json!({"mode": "get", "sessionId": ""}), NO_SESSION),
        (
            json!({"mode": "get", "sessionId": "7c9e"}),
            "sessionId \"7c9e\" may be any of: 7c9e0000-1111, 7c9e6679-7425-40de-944b-e07fc1f90ae7; give one of these",
        ),
        (
            json!({"mode": "search", "query": "x".repeat(1001)}),
            "query takes 1 to 1000 characters; got 1001",
        ),
        (json!({}), r#"mode takes "search", "get" or "list"; got null"#),
    ] {
        assert_eq!(refused(arguments.clone(), &Options::default()), text, "{arguments}");
    }
    for (argument, value, what) in [
        ("mode", json!("drop"), r#""search", "get" or "list""#),
        ("limit", json!(51), "an integer from 1 to 50"),
        ("limit", json!(0), "an integer from 1 to 50"),
        ("offset", json!(-1), "an integer from 0 to 4294967295"),
        ("offset", json!(1_000_000_000_000_u64), "an integer from 0 to 4294967295"),
        ("maxTurns", json!(201), "an integer from 1 to 200"),
        ("maxTurnsPerConversation", json!(0), "an integer from 1 to 50"),
        ("includeTranscript", json!("yes"), "true or false"),
        ("searchMode", json!("all"), r#""summary", "turns" or "both""#),
        ("after", json!("November"), "a day as YYYY-MM-DD"),
        ("sessionKey", json!(5), "a string"),
    ] {
        let mode = match argument {
            "maxTurns" => "get",
            "maxTurnsPerConversation" | "includeTranscript" | "searchMode" => "search",
            _ => "list",
        };
        let mut arguments = json!({"mode": mode, "sessionId": "550e", "query": "x"});
        if mode == "list" {
            arguments = json!({"mode": mode});
        }
        arguments[argument] = value.clone();
        let start = if argument == "after" { "Invalid date format: " } else { "" };
        let text = format!("{start}{argument} takes {what}; got {value}");
        assert_eq!(refused(arguments, &Options::default()), text);
    }
    let unknown = refused(json!({"mode": "list", "page": 2}), &Options::default());
    assert!(
        unknown.starts_with("query_conversations has no argument \"page\"; it takes mode, query,"),
        "{unknown}"
    );
    let off = Options { no_conversations: true, ..Options::default() };
    assert_eq!(
        refused(json!({"mode": "list"}), &off),
        "Conversations not enabled: set ENABLE_CONVERSATIONS=true"
    );
}

#[test]
fn answers_are_bounded() {
    let (_home, db) = folder_with("a.db");
    let connection = Connection::open(&db).unwrap();
    connection.execute_batch(crate::corpus::SCHEMA).unwrap();
    connection
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
             INSERT INTO conversations SELECT printf('c%04d', i), i, i, hex(zeroblob(5000)) FROM n;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
             INSERT INTO messages SELECT 'm' || i || '-' || p, printf('c%04d', i), 'user',
                 'needle ' || replace(hex(zeroblob(9000)), '0', '日'), i, NULL, p
                 FROM n, (SELECT 1 AS p UNION SELECT 2 UNION SELECT 3);",
        )
        .unwrap();
    drop(connection);
    let [engine, _] = engines(&db);
    for arguments in [
        json!({"mode": "list", "limit": 50}),
        json!({"mode": "get", "sessionId": "c0001"}),
        json!({"mode": "search", "query": "needle", "searchMode": "both", "limit": 50, "includeTranscript": true}),
    ] {
        let (text, structured) = ask(&engine, arguments.clone());
        // About a token per such character, and one per 3.5 ASCII characters.
        for json in [text, structured] {
            let json = json.to_string();
            let ascii = json.bytes().filter(u8::is_ascii).count();
            let tokens = ascii * 2 / 7 + json.chars().count() - ascii;
            assert!(tokens < 20_000, "{arguments}: {tokens}");
        }
    }
}

/// Two ids with the same CRC-32, which is what a key holds of an id.
const ONE_HASH: [&str; 2] = ["c745e120-ad79", "09daff1a-174c"];

#[test]
fn keys_of_one_hash_open_their_own_conversations() {
    let (_home, path) = folder_with("a.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    for id in ONE_HASH {
        let sql = "INSERT INTO conversations VALUES (?1, '1', '1', 'About ' || ?1)";
        connection.execute(sql, [id]).unwrap();
        let sql = "INSERT INTO messages VALUES (?1, ?1, 'user', 'red', '1', NULL, 0)";
        connection.execute(sql, [id]).unwrap();
    }
    let engine = engine(&path);
    let never = Call::default();
    let key_of = |id: &str| {
        let about = engine.find(&never).about(SourceKind::Export, id).unwrap().unwrap();
        engine.find(&never).key_of(&about).unwrap()
    };
    let opened =
        |key: &str| engine.find(&never).by_key(key).map(|found| found.map(|about| about.id));
    let keys = ONE_HASH.map(key_of);
    for (id, key) in ONE_HASH.iter().zip(&keys) {
        assert!(key.ends_with("-94974ab6"), "{key}");
        assert_eq!(opened(key).unwrap().as_deref(), Some(*id));
    }
    let refused = |key: &str| {
        let error = opened(key).unwrap_err().to_string();
        assert!(ONE_HASH.iter().all(|id| error.contains(id)), "{error}");
    };
    refused("export-another-title-94974ab6");
    connection.execute_batch("UPDATE conversations SET title = 'Same'").unwrap();
    refused(&key_of(ONE_HASH[0]));
    refused(&keys[0]);
    // The title is not compared if only one conversation has the hash.
    connection.execute("DELETE FROM messages WHERE id = ?1", [ONE_HASH[1]]).unwrap();
    connection.execute("DELETE FROM conversations WHERE id = ?1", [ONE_HASH[1]]).unwrap();
    assert_eq!(opened(&keys[0]).unwrap().as_deref(), Some(ONE_HASH[0]));
    assert_eq!(opened("export-same-94974ab7").unwrap(), None);
}
