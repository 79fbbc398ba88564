//! What conversations are about, as lists and answers show it.

use std::{fs, path::Path};

use rusqlite::Connection;
use verbatim_search::{
    engine::{Config, Engine, Reindex, SourceKind},
    index::Resources,
    model::Stop,
};

use crate::corpus::{SCHEMA, folder};

const BREAD: &str = "How do I bake a sourdough bread that is not flat and dense every single time?";
const ANSWER: &str = "A flat sourdough bread usually means that the dough was proofed too long, or \
                      that the starter was too weak to raise the bread.\n```\nprint('x')\n```";

fn engine_in(home: &Path) -> Engine {
    Engine::new(Config { home: home.to_owned(), ..Config::default() })
}

fn reindex(engine: &Engine) {
    let options = Reindex { resources: Resources { memory: 64 << 20, threads: 1 }, full: false };
    engine.reindex(options, &Stop::never(), &mut |_| ()).unwrap();
    let source = engine.sources().remove(0);
    engine.enrich(&source, options.resources, &Stop::never(), &mut |_, _| ()).unwrap();
}

fn summary(engine: &Engine, id: &str) -> (String, String) {
    let about = engine.about(SourceKind::Export, id).unwrap().unwrap();
    (about.title, about.summary)
}

#[test]
fn conversations_say_what_they_are_about() {
    let home = folder();
    fs::create_dir(home.path().join("db")).unwrap();
    let connection = Connection::open(home.path().join("db/chats.db")).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
        .execute_batch(
            "INSERT INTO conversations VALUES ('a', '1', '1', NULL), ('b', '1', '1', 'Named')",
        )
        .unwrap();
    let add = |id: &str, conversation: &str, role: &str, text: &str, at: i64| {
        let values = (id, conversation, role, text, 1_700_000_000 + at, at);
        connection
            .execute("INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)", values)
            .unwrap();
    };
    add("1", "a", "user", BREAD, 0);
    add("2", "a", "assistant", ANSWER, 1);
    add("3", "a", "tool", "The tool has a long sentence of its own about the bread here.", 2);
    add("4", "b", "user", "Thanks!", 3);
    let engine = engine_in(home.path());
    reindex(&engine);
    let (title, text) = summary(&engine, "a");
    assert!(title.starts_with("How do I bake a sourdough bread"), "{title}");
    assert!(title.chars().count() <= 70, "{title}");
    assert!((100..=300).contains(&text.chars().count()), "{text}");
    assert!(!text.contains("print") && !text.contains("tool"), "{text}");
    assert_eq!(summary(&engine, "b"), ("Named".to_owned(), String::new()));
    let shelves = fs::read_dir(home.path().join("index")).unwrap();
    let kept = shelves.map(|shelf| shelf.unwrap().path().join("summaries")).find(|it| it.is_file());
    let kept = kept.expect("summaries are kept");
    assert_eq!(fs::read_to_string(&kept).unwrap().lines().count(), 3);
    // A conversation that goes on is summed up anew, with what was added.
    add("5", "b", "user", "Which mountain in Norway has the longest walk up to its top?", 4);
    reindex(&engine);
    assert!(summary(&engine, "b").1.contains("mountain"));
    assert_eq!(summary(&engine, "a"), (title, text));
    // Damage is of no consequence.
    fs::write(&kept, "1\n[\"nonsense\n").unwrap();
    reindex(&engine_in(home.path()));
    assert_eq!(fs::read_to_string(&kept).unwrap().lines().count(), 3);
}
