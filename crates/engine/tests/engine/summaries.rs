//! Summaries of conversations in lists and answers.

use std::{fs, path::Path};

use rusqlite::Connection;
use verbatim_base::call::Call;
use verbatim_engine::{Config, Engine, Fields, Mode, Question, Reindex, SourceKind};
use verbatim_index::Resources;

use crate::corpus::{SCHEMA, folder};

const BREAD: &str = "How do I bake a sourdough bread that is not flat and dense every single time?";
const ANSWER: &str = "A flat sourdough bread usually means that the dough was proofed too long, or \
                      that the starter was too weak to raise the bread.\n```\nprint('x')\n```";

fn engine_in(home: &Path) -> Engine {
    Engine::new(Config { home: home.to_owned(), ..Config::default() })
}

fn reindex(engine: &Engine) {
    let options = Reindex { resources: Resources { memory: 64 << 20, threads: 1 }, full: false };
    engine.upkeep().reindex(options, &Call::default(), &mut |_| ()).unwrap();
    let source = engine.sources().remove(0);
    source.enrich(options.resources, &Call::default(), &mut |_| ()).unwrap();
}

fn summary(engine: &Engine, id: &str) -> (String, String) {
    let about = engine.find(&Call::default()).about(SourceKind::Export, id).unwrap().unwrap();
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
    add("4", "b", "user", "Thanks!", 3);
    let engine = engine_in(home.path());
    reindex(&engine);
    let (title, text) = summary(&engine, "a");
    assert_eq!(text, BREAD);
    assert_eq!(title, "How do I bake a sourdough bread that is not flat and dense every…");
    assert_eq!(summary(&engine, "b"), ("Named".to_owned(), String::new()));
    // A conversation that said nothing yet gets a summary when it continues.
    add("5", "b", "user", "Which mountain in Norway has the longest walk up to its top?", 4);
    reindex(&engine);
    assert!(summary(&engine, "b").1.contains("mountain"));
    assert_eq!(summary(&engine, "a"), (title, text));
}

/// Searches conversations by their summaries.
fn about(engine: &Engine, text: &str, mode: Mode) -> Vec<(String, f64)> {
    let question = Question {
        concepts: vec![text.to_owned()],
        mode,
        fields: Fields::Summaries,
        limit: 10,
        ..Question::default()
    };
    let ranking = engine.rank_conversations(&question, &Call::default()).unwrap();
    assert!(ranking.is_complete(), "{text}: {:?}", ranking.notes());
    ranking.items.into_iter().map(|one| (one.about.id, one.score)).collect()
}

#[test]
fn conversations_are_found_by_what_they_are_about() {
    let home = folder();
    fs::create_dir(home.path().join("db")).unwrap();
    let connection = Connection::open(home.path().join("db/chats.db")).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let add = |conversation: &str, title: Option<&str>, text: &str| {
        let values = (conversation, title);
        connection.execute("INSERT INTO conversations VALUES (?1, '1', '1', ?2)", values).unwrap();
        let sql = "INSERT INTO messages VALUES (?1 || 'm', ?1, 'user', ?2, 1700000000, NULL, 0)";
        connection.execute(sql, (conversation, text)).unwrap();
    };
    add("bread", None, BREAD);
    add("car", Some("Engine trouble"), "The engine of my old car makes a strange noise uphill.");
    add("trip", None, "We would like to walk in the mountains of Norway for a week in summer.");
    let engine = engine_in(home.path());
    reindex(&engine);
    let check = |engine: &Engine| {
        // By words, also in the title; by the meaning of the messages, if no word is shared.
        let by_words = about(engine, "engine noise", Mode::Text);
        assert_eq!(by_words.len(), 1, "{by_words:?}");
        assert!(by_words[0].0 == "car" && by_words[0].1 > 0.8, "{by_words:?}");
        for (text, expected) in
            [("vehicle repair", "car"), ("hiking holiday", "trip"), ("oven loaf", "bread")]
        {
            for mode in [Mode::Vector, Mode::Both] {
                let found = about(engine, text, mode);
                assert_eq!(found[0].0, expected, "{text}: {found:?}");
                assert!(found.windows(2).all(|two| two[0].1 >= two[1].1), "{found:?}");
                assert!(found.iter().all(|(_, score)| (0.0..=1.0).contains(score)), "{found:?}");
            }
        }
        assert_eq!(about(engine, "vehicle", Mode::Text), []);
    };
    check(&engine);
    check(&engine_in(home.path()));
    // A new conversation is found too.
    add("cat", None, "My cat refuses to eat the dry food that the vet told us to buy.");
    let options = Reindex { resources: Resources { memory: 64 << 20, threads: 1 }, full: false };
    engine.upkeep().reindex(options, &Call::default(), &mut |_| ()).unwrap();
    assert_eq!(about(&engine, "dry food", Mode::Both)[0].0, "cat");
    check(&engine);
}
