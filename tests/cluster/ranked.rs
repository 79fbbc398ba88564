//! Ranked search in a cluster beside that of a local index: the same messages with nearly the same scores.

use std::{fmt::Write as _, path::Path};

use rusqlite::{Connection, params};
use tempfile::TempDir;
use verbatim_base::call::Call;
use verbatim_embed::Provider;
use verbatim_engine::{Config, Engine, Fields, Mode, Question, Reindex, Scope};
use verbatim_index::Resources;

use crate::nodes::{AllNodes, nodes};
use crate::{engine, import, new_name};

const CONVERSATIONS: usize = 30;
const TURNS: usize = 20;

/// The topics of the conversations, with words for their messages.
const TOPICS: [(&str, &str); 6] = [
    ("Sailing to the islands", "boat harbour sail anchor wind island captain rope mast deck"),
    ("A sourdough that rises", "bread flour oven dough crust yeast salt bake loaf kitchen"),
    (
        "Borrow checker errors",
        "compiler lifetime borrow trait struct mutable closure crate enum async",
    ),
    ("Planting the garden", "tomato seed soil compost spring flower shovel rain greenhouse beans"),
    (
        "Tax return questions",
        "invoice income deduction receipt form deadline refund salary bank office",
    ),
    ("Training for a marathon", "running shoes knee pace interval rest stretch race coach breath"),
];

/// The people in some of the conversations. They address each other by name.
const PEOPLE: [&str; 2] = ["Melanie", "Caroline"];

/// Makes a database of conversations about topics, some of them without a title, some of them between
/// people whose names are their roles.
fn database(path: &Path) {
    let connection = Connection::open(path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA synchronous = OFF; BEGIN;
             CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
             CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
                 content TEXT, create_time TEXT, position INTEGER);",
        )
        .expect("tables");
    let mut seed = 11u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for conversation in 0..CONVERSATIONS {
        let (title, words) = TOPICS[conversation % TOPICS.len()];
        let words: Vec<&str> = words.split(' ').collect();
        let id = format!("c{conversation}");
        let title = (conversation % 5 > 0).then(|| format!("{title} {conversation}"));
        let sql = "INSERT INTO conversations VALUES (?1, ?2)";
        connection.execute(sql, params![id, title]).expect("a conversation");
        for turn in 0..TURNS {
            let mut text = String::from("I would like to ask");
            for _ in 0..3 + next(12) {
                let _ = write!(text, " about the {}", words[next(words.len())]);
            }
            let mut role = if turn % 2 == 0 { "user" } else { "assistant" };
            if conversation % 4 == 3 {
                role = PEOPLE[turn % 2];
                let _ = write!(text, ", {}", PEOPLE[(turn + 1) % 2]);
            }
            let time = 1_700_000_000 + (conversation * TURNS + turn) * 3_600;
            let sql = "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let message = format!("m{conversation}-{turn}");
            let values = params![message, id, role, text, time.to_string(), turn as i64];
            connection.execute(sql, values).expect("a message");
        }
    }
    connection.execute_batch("COMMIT").expect("a commit");
}

fn indexed(home: &Path, database: &Path) -> Engine {
    let engine = Engine::new(Config {
        db: Some(database.to_owned().into()),
        home: home.to_owned(),
        // An index of a cluster has no vectors of the sentence model.
        embeddings: Provider::Static,
        ..Config::default()
    });
    let resources = Resources { memory: 64 << 20, threads: 1 };
    let options = Reindex { resources, full: false };
    engine.upkeep().reindex(options, &Call::default(), &mut |_| {}).expect("an index");
    for source in engine.sources() {
        let done = source.enrich(resources, &Call::default(), &mut |_| {});
        done.expect("words and vectors");
    }
    engine
}

/// Asserts that two rankings of scored things are nearly the same.
fn assert_alike(local: &[(String, f64)], here: &[(String, f64)], tolerance: f64, what: &str) {
    assert_eq!(local.len(), here.len(), "{what}");
    let score = |ranking: &[(String, f64)], id: &str| {
        ranking.iter().find(|(known, _)| known == id).map(|(_, score)| *score)
    };
    let last = local.last().map_or(0.0, |(_, score)| *score);
    for (id, expected) in local {
        // At the end of a ranking, messages with nearly the same score may be in another order.
        let found = score(here, id).unwrap_or(last);
        assert!((found - expected).abs() <= tolerance, "{what}: {id}: {expected} and {found}");
    }
}

#[test]
fn messages_and_conversations_rank_as_in_a_local_index() {
    let Some(nodes) = nodes() else { return };
    let (folder, _all): (TempDir, AllNodes) =
        (tempfile::tempdir().expect("a folder"), AllNodes::enter());
    let path = folder.path().join("chats.db");
    database(&path);
    let index = new_name();
    import(nodes, &path, &index);
    let (local, here) = (indexed(folder.path(), &path), engine(nodes, &index));
    let scopes = [
        Scope::default(),
        Scope { conversation: Some("c7".into()), ..Scope::default() },
        Scope { roles: vec!["assistant".into()], ..Scope::default() },
    ];
    let call = Call::default();
    for text in [
        "Which rope holds the anchor in strong wind?",
        "yeast and salt",
        "lifetime of a mutable closure",
        "sore knee after the race",
        "the harbor captian",
        "tomato -compost",
        "\"the invoice about the refund\" deadline",
        "money back from the authorities",
        "When did Melanie race?",
        "What does Caroline like about the rope that Melanie bought?",
    ] {
        for (mode, tolerance) in [(Mode::Text, 0.001), (Mode::Vector, 0.1), (Mode::Both, 0.05)] {
            for scope in &scopes {
                let question = Question {
                    concepts: vec![text.to_owned()],
                    mode,
                    scope: scope.clone(),
                    limit: 10,
                    ..Question::default()
                };
                let what = format!("{text}: {mode:?}: {scope:?}");
                let ranked = |engine: &Engine| {
                    let ranking = engine.rank(&question, &call).expect("an answer");
                    let items = ranking.items.iter();
                    let scores = items.map(|it| (it.hit.message_id.to_string(), it.score));
                    (scores.collect::<Vec<_>>(), ranking.notes())
                };
                let (expected, found) = (ranked(&local), ranked(&here));
                assert_alike(&expected.0, &found.0, tolerance, &what);
                assert_eq!(expected.1, found.1, "{what}");
            }
            for fields in [Fields::Summaries, Fields::Both] {
                let question = Question {
                    concepts: vec![text.to_owned()],
                    mode,
                    fields,
                    limit: 5,
                    ..Question::default()
                };
                let ranked = |engine: &Engine| -> Vec<(String, f64)> {
                    let ranking = engine.rank_conversations(&question, &call).expect("an answer");
                    let items = ranking.items.iter();
                    items.map(|it| (it.about.id.clone(), it.score)).collect()
                };
                let what = format!("{text}: {mode:?}: {fields:?}");
                // An index of a cluster does not tell which words a conversation has in all its messages.
                let has_coverage = fields == Fields::Both && mode != Mode::Vector;
                let tolerance = if has_coverage { 0.25 } else { tolerance.max(0.02) };
                assert_alike(&ranked(&local), &ranked(&here), tolerance, &what);
            }
        }
    }
    nodes.remove(&index);
}

/// The summary and the title of a conversation without one are made when it is imported.
#[test]
fn conversations_have_the_summaries_of_a_local_index() {
    let Some(nodes) = nodes() else { return };
    let (folder, _all) = (tempfile::tempdir().expect("a folder"), AllNodes::enter());
    let path = folder.path().join("chats.db");
    database(&path);
    let index = new_name();
    import(nodes, &path, &index);
    let (local, here) = (indexed(folder.path(), &path), engine(nodes, &index));
    for conversation in 0..CONVERSATIONS {
        let about = |engine: &Engine| {
            let kind = engine.sources()[0].kind;
            let id = format!("c{conversation}");
            engine
                .find(&Call::default())
                .about(kind, &id)
                .expect("an answer")
                .expect("a conversation")
        };
        assert!(!about(&local).summary.is_empty());
        assert_eq!(about(&local), about(&here));
    }
    nodes.remove(&index);
}
