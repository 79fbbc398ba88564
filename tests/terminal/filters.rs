//! The filters that `search`, `list`, `stats` and `export` share.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use verbatim_answer::filters;
use verbatim_engine::filters::ALL;

use crate::calls::with;
use crate::corpus::files;
use crate::http_server::HttpServer;
use crate::program::Place;
use crate::scene::{CHAT, Scene};
use crate::terminal::sample;
use crate::user::{Said, User};

fn ask(scene: &Scene, command: &[&str], filters: &[&str]) -> Answer {
    let said = scene.run(&[command, &["--json"], filters].concat());
    Answer { lines: said.json(), code: said.code, errors: said.errors }
}

/// The output of a command.
struct Answer {
    code: Option<i32>,
    lines: Vec<Value>,
    errors: String,
}

/// Returns the ids of the conversations that lines name.
fn ids(lines: &[Value], key: &str) -> BTreeSet<String> {
    lines.iter().map(|line| line[key].as_str().unwrap().to_owned()).collect()
}

/// Asserts that all commands take the same messages; returns how many there are.
#[track_caller]
fn agree(scene: &Scene, filters: &[&str]) -> usize {
    let found = ask(scene, &["search", "", "-n", "0"], filters);
    let conversations = ids(&found.lines, "conversation_id");
    let stats = &ask(scene, &["stats"], filters).lines[0];
    assert_eq!(stats["messages"], found.lines.len(), "{filters:?}");
    assert_eq!(stats["conversations"], conversations.len(), "{filters:?}");
    for role in ["user", "assistant", "tool", "system"] {
        let count = found.lines.iter().filter(|line| line["role"] == role).count();
        assert_eq!(stats["roles"][role].as_u64().unwrap_or(0), count as u64, "{filters:?}");
    }
    let services = stats["services"].as_object().unwrap().values();
    let services: u64 = services.filter_map(Value::as_u64).sum();
    assert_eq!(services, found.lines.len() as u64, "{filters:?}");
    assert_eq!(stats["last"], found.lines.first().map_or(Value::Null, |hit| hit["time"].clone()));
    // Lists have the conversations that span the time, even without messages at that time.
    let listed = ask(scene, &["list", "-n", "0"], filters);
    let listed = ids(&listed.lines, "id");
    assert!(listed.is_superset(&conversations), "{filters:?}: {listed:?}");
    if !filters.iter().any(|filter| ["--since", "--until"].contains(filter)) {
        assert_eq!(listed, conversations, "{filters:?}");
    }
    found.lines.len()
}

/// A folder may be given as a path from the working folder, and a project as the one that the person is in.
#[test]
fn the_project_that_the_person_is_in() {
    let user = User::new();
    let folders = ["shop", "shop/src", "shop-old", "garden"];
    for (number, folder) in folders.iter().enumerate() {
        fs::create_dir_all(user.path(&format!("work/{folder}"))).unwrap();
        let line = json!({"type": "user", "uuid": format!("u{number}"), "sessionId": format!("s{number}"),
            "timestamp": "2025-01-01T00:00:00Z", "cwd": dunce::canonicalize(user.path(&format!("work/{folder}"))).unwrap(),
            "message": {"role": "user", "content": format!("needle in {folder}")}});
        user.write(&format!(".claude/projects/p{number}/s{number}.jsonl"), format!("{line}\n"));
    }
    fs::create_dir(user.path("work/shop/.git")).unwrap();
    fs::create_dir(user.path("work/empty")).unwrap();
    for (from, filter, expected) in [
        ("shop", &["--folder", "."][..], &["s0", "s1"][..]),
        ("shop/src", &["--folder", "."], &["s1"]),
        ("shop/src", &["--folder", ".."], &["s0", "s1"]),
        ("shop/src", &["--folder", "../../garden"], &["s3"]),
        ("shop/src", &["--here"], &["s0", "s1"]),
        ("shop/src", &["--project", "."], &["s0", "s1"]),
        ("garden", &["--here"], &["s3"]),
        (".", &["--folder", "./shop-old"], &["s2"]),
        (".", &["--folder", "shop"], &["s0", "s1", "s2"]),
    ] {
        for command in [&["search", "needle", "-n", "0", "--json"][..], &["list", "--json"]] {
            let mut command = user.command(&[command, filter].concat());
            let said = Said::of(command.current_dir(user.path("work").join(from)));
            let key = if said.out.contains("conversation_id") { "conversation_id" } else { "id" };
            let found = ids(&said.json(), key);
            assert!(
                found.iter().map(String::as_str).eq(expected.iter().copied()),
                "{from} {filter:?}: {said}"
            );
        }
    }
    let mut command = user.command(&["list", "--here"]);
    let said = Said::of(command.current_dir(user.path("work/empty")));
    said.ends(2).warns("no conversation has the folder");
}

/// Filters may stand among the words, as in the full-screen search and on the page.
#[test]
fn filters_among_the_words() {
    let user = User::new();
    let record = |kind: &str, uuid: &str, text: &str| {
        json!({"type": kind, "sessionId": "s1", "uuid": uuid, "timestamp": "2025-01-01T00:00:00Z", "cwd": "/w/shop",
            "message": {"role": kind, "content": text}})
    };
    let lines = [
        record("user", "u1", "a needle in role:user needle hay"),
        record("assistant", "u2", "the needle is \"hay\""),
        json!({"type": "custom-title", "customTitle": "Sewing plan", "sessionId": "s1"}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    user.write(".claude/projects/p/s1.jsonl", lines);
    for (words, count) in [
        (&["role:user", "needle"][..], 1),
        (&["needle role:assistant"], 1),
        (&["needle since:2026"], 0),
        (&["needle title:sewing project:shop"], 2),
        (&["needle service:claude-code"], 2),
        (&["\"needle\""], 2),
        (&["\"hay\" -\"role\""], 1),
        (&["needle is \"hay\""], 1),
        (&["needle role:nobody"], 0),
        (&["needle colour:red"], 0),
        (&["--and", "role:user needle"], 1),
        (&["-e", "role:user needle"], 1),
    ] {
        let said = user.run(&[&["search", "-c"], words].concat());
        assert_eq!(said.out, format!("{count}\n"), "{words:?}: {said}");
        let is_text = words == ["role:user", "needle"];
        assert_eq!(
            said.errors.contains("as text: verbatim search --and"),
            is_text,
            "{words:?}: {said}"
        );
        assert_eq!(said.errors.contains("searched as text"), words[0].contains("nobody"), "{said}");
    }
    user.run(&["search", "-l", "-c", "needle"]).ends(0).prints("1\n");
    user.run(&["search", "needle", "-0", "--json"]).ends(2).warns("`-l --json` prints an object");
    user.run(&["search", "-e", "needle", "--fold"]).ends(2).warns("words take --fold");
    user.run(&["search", "needle", "--mode", "both", "-c"])
        .ends(2)
        .warns("leave out --mode or --count");
}

#[test]
fn all_commands_take_the_same() {
    let scene = Scene::imported();
    let all = agree(&scene, &[]);
    let chatgpt = agree(&scene, &["--service", "chatgpt"]);
    assert_eq!(chatgpt, 8);
    let archive = agree(&scene, &["--service", "archive"]);
    assert_eq!(agree(&scene, &["--service", "export"]) + archive, all);
    let codex = agree(&scene, &["--service", "codex"]);
    assert_eq!(agree(&scene, &["--service", "codex", "--service", "chatgpt"]), codex + chatgpt);
    let within = |filters: &[&str]| ask(&scene, &["search", "", "-n", "0"], filters).lines.len();
    assert_eq!(within(&["--role", "user", "--in", "Borrow checker and"]), 4);
    assert_eq!(within(&["--in", CHAT, "--service", "codex"]), 0);
    assert_eq!(agree(&scene, &["--project", "SHO", "--service", "claude-code"]), 4);
    assert_eq!(agree(&scene, &["--folder", "/ann/shop", "--branch", "main"]), 4);
    assert_eq!(agree(&scene, &["--since", "1h"]), 8);
    let early = agree(&scene, &["--until", "2025-11-03T10:00:02Z"]);
    let late = agree(&scene, &["--since", "2025-11-03T10:00:02.001Z"]);
    assert!(early > 10 && late == 8 + 2, "{early} {late}");
    assert!(agree(&scene, &["--role", "tool", "--role", "system", "--until", "2026"]) > 2);
    assert_eq!(agree(&scene, &["--source", "threads"]), 0);
}

#[test]
fn models_choose_conversations() {
    let scene = Scene::imported();
    assert_eq!(agree(&scene, &["--model", "GPT-4"]), 8);
    assert_eq!(agree(&scene, &["--model", "gpt-4o", "--role", "assistant"]), 4);
    // Both models of a session find it, with the messages of the other model too.
    for model in ["opus", "haiku-4"] {
        assert_eq!(agree(&scene, &["--model", model]), 4, "{model}");
    }
    let codex = agree(&scene, &["--model", "codex"]);
    assert!(codex > 0 && codex <= agree(&scene, &["--service", "codex"]));
    // The export names one model for the whole conversation.
    assert!(agree(&scene, &["--model", "claude-x"]) > 0);
    let by_model = &ask(&scene, &["stats"], &["--model", "opus"]).lines[0];
    assert_eq!(by_model["models"], json!({"claude-opus-4-1": 1, "claude-haiku-4-5": 1}));
    let ranked = ask(&scene, &["search", "the cookie", "--mode", "words"], &["--model", "opus"]);
    assert!(!ranked.lines.is_empty(), "{}", ranked.errors);
    assert!(ranked.lines.iter().all(|line| line["source"] == "archive"), "{:?}", ranked.lines);
    let exported = scene.command(&["export", "notes", "--model", "gpt-4"]).output().unwrap();
    assert!(exported.stdout.starts_with(b"1 conversation in notes: 1 written"), "{exported:?}");
    let notes = files(&scene.path("work/notes"));
    assert_eq!(notes.keys().filter(|path| path.is_dir()).count(), 1, "a folder of one year");
    let unknown = scene.run(&["list", "--model", "gpt-4x"]);
    unknown.ends(2).warns("no conversation has the model \"gpt-4x\"").warns("gpt-4o");
    scene.run(&["stats", "--role", "asistant"]).ends(2).warns("assistant");
}

#[test]
fn calls_of_tools_and_their_files_choose_conversations() {
    // The filters are checked without an index and with an index.
    for scene in [Scene::new(), Scene::imported()] {
        let ids = |filters: &[&str]| ids(&ask(&scene, &["list"], filters).lines, "id");
        let parser = "5f0c9a52-0000-4000-8000-000000000001".to_owned();
        for filters in [
            &["--tool", "bash"][..],
            &["--tool", "read", "--model", "sonnet"],
            &["--file", "Parser/src/lib.rs"],
            &["--file", "lib.rs", "--tool", "Bash"],
        ] {
            assert_eq!(ids(filters), [parser.clone()].into(), "{filters:?}");
            assert_eq!(agree(&scene, filters), 14, "{filters:?}");
        }
        let cart = ids(&["--file", "src/cart.ts"]);
        assert!(cart.len() == 1 && cart == ids(&["--tool", "apply_patch"]), "{cart:?}");
        // A command that reads a file does not count as naming the file, and neither does a result.
        assert!(ids(&["--file", "README.md"]).is_empty());
        assert!(ids(&["--tool", "Bash", "--service", "codex"]).is_empty());
        let unknown = ask(&scene, &["search", "the"], &["--tool", "bsh"]);
        let note = "no conversation has the tool \"bsh\"; known: Bash, ";
        assert!(unknown.code == Some(2) && unknown.errors.contains(note), "{}", unknown.errors);
        let empty = scene.command(&["list", "--tool", ""]).output().unwrap();
        assert_eq!(empty.status.code(), Some(2));
    }
}

#[test]
fn a_database_without_models_says_so() {
    let scene = Scene::new();
    drop(sample(&scene.path("work/chats.db")));
    let command = ["search", "borrow", "--db", "chats.db", "--no-archive"];
    let found = ask(&scene, &command, &["--model", "gpt"]);
    let note = "it is not known which models answered in the export";
    assert!(found.code == Some(1) && found.errors.contains(note), "{}", found.errors);
    assert!(!found.errors.contains("no conversation has the model"), "{}", found.errors);
    assert_eq!(ask(&scene, &command, &[]).code, Some(0));
}

#[test]
fn a_transcript_that_is_gone_keeps_its_models() {
    let scene = Scene::new();
    let count = |model: &str| ask(&scene, &["list"], &["--model", model]).lines.len();
    assert_eq!((count("opus"), count("haiku")), (1, 1));
    std::fs::remove_dir_all(scene.path(".claude/projects/-home-ann-shop")).unwrap();
    assert_eq!(count("opus"), 1);
}

#[test]
fn months_are_those_of_the_time_zone() {
    let scene = Scene::new();
    let chat = crate::exports::chat("a", 1.0, &["red"]).replace("1000.0", "1761940800.0");
    scene.write("chats.json", chat);
    let export = scene.path("chats.json");
    let import = scene.command(&["import", export.to_str().unwrap()]).output().unwrap();
    assert!(import.status.success(), "{import:?}");
    // 31 October 2025, 20:00 in UTC.
    for (zone, more, month) in [
        ("UTC", &[][..], "2025-10"),
        ("JST-9", &[], "2025-11"),
        ("JST-9", &["--since", "2025-11", "--until", "2025-11"], "2025-11"),
    ] {
        let mut command = scene.command(&["stats", "--json", "--service", "export"]);
        let output = command.args(more).env("TZ", zone).output().unwrap();
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(stats["months"], json!({month: 1}), "{zone} {more:?}");
    }
}

#[test]
fn hours_that_come_twice_or_never_belong_to_their_day() {
    // In this zone clocks change at midnight, as in Chile: back on 6 April 2025, forward on 7 September.
    const ZONE: &str = "<-04>4<-03>,M9.1.6/24,M4.1.6/24";
    let scene = Scene::new();
    for (name, time) in [("twice", 1_743_910_200), ("never", 1_757_217_600)] {
        let chat =
            crate::exports::chat(name, 1.0, &["red"]).replace("1000.0", &format!("{time}.0"));
        scene.write("chats.json", chat);
        let export = scene.path("chats.json");
        let import = scene.command(&["import", export.to_str().unwrap()]).output().unwrap();
        assert!(import.status.success(), "{import:?}");
    }
    let count = |filters: &[&str]| {
        let mut command = scene.command(&["search", "red", "-n", "0", "--json"]);
        let output = command.args(filters).env("TZ", ZONE).output().unwrap();
        output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
    };
    for (filters, expected) in [
        // The second half past eleven in the evening of 5 April.
        (["--since", "2025-04-05", "--until", "2025-04-05"], 1),
        (["--since", "2025-04-05T23:30", "--until", "2025-04-05T23:30"], 1),
        (["--since", "2025-04-06", "--until", "2025-04-07"], 0),
        // 7 September begins at one o'clock.
        (["--since", "2025-09-07", "--until", "2025-09-07"], 1),
        (["--since", "2025-09-07T00:00", "--until", "2025-09-07T00:59"], 1),
        (["--since", "2025-09-06", "--until", "2025-09-06"], 0),
    ] {
        assert_eq!(count(&filters), expected, "{filters:?}");
    }
}

/// A value for each filter, which some conversations have and others have not.
const VALUES: [(&str, &str); 12] = [
    ("service", "claude-code"),
    ("title", "BAKING"),
    ("project", "shop"),
    ("branch", "main"),
    ("folder", "ann/shop"),
    ("model", "gpt-4o"),
    ("tool", "Read"),
    ("file", "src/lib.rs"),
    ("in", CHAT),
    ("role", "tool"),
    ("since", "2025-11-04"),
    ("until", "2025-11-02"),
];

/// Returns the addresses of the conversations that a page of results links to.
fn linked(page: &str) -> BTreeSet<String> {
    let links = page.split("href=\"/c/").skip(1);
    let id = |link: &str| link.split(['"', '/', '?']).next().unwrap().replace("%2F", "/");
    links.map(id).collect()
}

#[test]
fn every_face_takes_every_filter() {
    let scene = Scene::imported();
    let home = scene.path(".local/share/verbatim");
    let place = Place { db: home.join("db"), index: home.join("index"), home };
    let serve = scene.command(&["serve", "--http", "127.0.0.1:0", "--page", "--no-watch"]);
    let server = HttpServer::run(serve, &place);
    let bearer = server.bearer();
    let get = |address: &str| server.ask(&format!("GET {address}"), &[&bearer], "").body;
    let by_name: Vec<&str> = ALL.iter().map(|filter| filter.name).collect();
    let all = ids(&ask(&scene, &["search", "in", "-n", "0"], &[]).lines, "conversation_id");
    let aliases: Vec<&str> = ALL.iter().filter_map(|filter| filter.alias).collect();
    for name in filters::names().filter(|name| !aliases.contains(name)) {
        let value = VALUES.iter().find(|(known, _)| *known == name);
        let (_, value) = value.unwrap_or_else(|| panic!("the filter {name} has no value here"));
        let flag = format!("--{name}");
        let by_flag = ask(&scene, &["search", "in", "-n", "0"], &[&flag, value]).lines;
        let expected = ids(&by_flag, "conversation_id");
        assert!(!expected.is_empty() && expected.len() < all.len(), "{name}: {expected:?}");
        let by_http = get(&format!("/search?q=in&limit=0&{name}={value}"));
        let by_http: Vec<Value> =
            by_http.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(by_http.len(), by_flag.len(), "{name}: {by_http:?}");
        assert_eq!(ids(&by_http, "conversation_id"), expected, "{name}");
        let page = get(&format!("/?q=in&{name}={value}"));
        assert_eq!(linked(&page), expected, "{name} on the page");
        assert!(page.contains("without filters"), "{name} on the page");
        if by_name.contains(&name) {
            let filters = match name {
                "project" => json!({"project": value}),
                name => json!({"filters": {name: value}}),
            };
            let all =
                json!({"query": "in", "mode": "text", "limit": 50, "response_format": "json"});
            let answer = server.call("search", &with(all, &filters));
            let results = serde_json::from_str::<Value>(&answer).unwrap();
            let results = results["results"].as_array().unwrap();
            assert!(results.iter().all(|it| it["path"].is_string()), "{name}: {answer}");
            assert_eq!(results.len(), expected.len(), "{name}: {answer}");
        }
    }
    // Filters narrow an answer together: this chat has no branch, no project and no tools.
    for other in ["branch=fix", "project=parser", "tool=apply_patch&role=tool"] {
        let page = linked(&get(&format!("/?q=in&in={CHAT}&{other}")));
        assert!(page.is_empty(), "{other}: {page:?}");
        let by_http = get(&format!("/search?q=in&in={CHAT}&{other}"));
        assert!(!by_http.contains("conversation_id"), "{other}: {by_http}");
    }
    // Each face names what it does not know.
    let unknown = ask(&scene, &["search", "in"], &["--branch", "mian"]).errors;
    assert!(unknown.contains("no conversation has the branch \"mian\"; known: main"), "{unknown}");
    assert!(get("/search?q=in&branch=mian").contains("no conversation has the branch"));
    assert!(get("/?q=in&branch=mian").contains("no conversation has the branch"));
    let call = |filters: Value| server.call("search", &json!({"query": "in", "filters": filters}));
    assert!(call(json!({"branch": "mian"})).contains("no conversation has the branch \"mian\""));
    assert!(call(json!({"colour": "red"})).contains("filters has no \"colour\"; it takes service"));
    assert!(call(json!({"branch": 1})).contains("branch takes a part of a name; got 1"));
}
