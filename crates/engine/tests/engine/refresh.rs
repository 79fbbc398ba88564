//! Refreshes of an index: after any change to the database, the answers are those of `LIKE`.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proptest::{collection::vec, prelude::*, sample::Index};
use rusqlite::{Connection, params, types::Value};
use verbatim_base::call::{Call, Stop};
use verbatim_base::model::Request;
use verbatim_engine::{Engine, Reindexed, SearchPlan, SourceKind};
use verbatim_index::Resources;

use crate::index::{Message, Pair, Query, message, query, texts, titles};

/// A change to the database between two refreshes.
#[derive(Clone, Debug)]
enum Change {
    Add(Message),
    Remove(Index),
    Content(Index, Value),
    Time(Index, Value),
    Position(Index, i64),
    Role(Index, Value),
    Move(Index, usize),
    Rekey(Index, i64),
    Title(usize, Value),
    RemoveConversation(usize),
    AddConversation(usize, Value),
    Vacuum,
}

fn change(is_parts: bool) -> impl Strategy<Value = Change> {
    let content = move || message(is_parts).prop_map(|message| message.content);
    let title = || titles().prop_map(|titles| titles[0].clone());
    prop_oneof![
        4 => message(is_parts).prop_map(Change::Add),
        2 => any::<Index>().prop_map(Change::Remove),
        3 => (any::<Index>(), content()).prop_map(|(at, content)| Change::Content(at, content)),
        1 => (any::<Index>(), message(is_parts)).prop_map(|(at, m)| Change::Time(at, m.time)),
        1 => (any::<Index>(), -1..3i64).prop_map(|(at, position)| Change::Position(at, position)),
        1 => (any::<Index>(), message(is_parts)).prop_map(|(at, m)| Change::Role(at, m.role)),
        1 => (any::<Index>(), 0..5usize).prop_map(|(at, to)| Change::Move(at, to)),
        1 => (any::<Index>(), 0..300i64).prop_map(|(at, key)| Change::Rekey(at, key)),
        1 => (0..4usize, title()).prop_map(|(number, title)| Change::Title(number, title)),
        1 => (0..4usize).prop_map(Change::RemoveConversation),
        1 => (0..5usize, title()).prop_map(|(number, title)| Change::AddConversation(number, title)),
        1 => Just(Change::Vacuum),
    ]
}

fn apply(connection: &Connection, changes: &[Change], round: usize) {
    let keys = || -> Vec<i64> {
        let mut keys = connection.prepare("SELECT rowid FROM messages").expect("a statement");
        let keys = keys.query_map([], |row| row.get(0)).expect("keys");
        keys.collect::<Result<_, _>>().expect("keys")
    };
    let on = |at: &Index, sql: &str, value: &dyn rusqlite::ToSql| {
        let keys = keys();
        if !keys.is_empty() {
            // A message whose key is already used by another message is left out.
            let _ = connection.execute(sql, params![at.get(&keys), value]);
        }
    };
    for (number, change) in changes.iter().enumerate() {
        match change {
            Change::Add(message) => {
                connection
                    .execute(
                        "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)",
                        params![
                            format!("later-{round}-{number}"),
                            format!("c{}", message.conversation),
                            message.role,
                            message.content,
                            message.time,
                            message.position
                        ],
                    )
                    .expect("a message");
            }
            Change::Remove(at) => on(at, "DELETE FROM messages WHERE rowid = ?1 AND ?2", &true),
            Change::Content(at, content) => {
                on(at, "UPDATE messages SET content = ?2 WHERE rowid = ?1", content);
            }
            Change::Time(at, time) => {
                on(at, "UPDATE messages SET create_time = ?2 WHERE rowid = ?1", time);
            }
            Change::Position(at, position) => {
                on(at, "UPDATE messages SET position = ?2 WHERE rowid = ?1", position);
            }
            Change::Role(at, role) => {
                on(at, "UPDATE messages SET role = ?2 WHERE rowid = ?1", role);
            }
            Change::Move(at, to) => {
                let to = format!("c{to}");
                on(at, "UPDATE messages SET conversation_id = ?2 WHERE rowid = ?1", &to);
            }
            Change::Rekey(at, key) => {
                on(at, "UPDATE messages SET rowid = ?2 WHERE rowid = ?1", key);
            }
            Change::Title(conversation, title) => {
                let id = format!("c{conversation}");
                connection
                    .execute(
                        "UPDATE conversations SET title = ?2 WHERE id = ?1",
                        params![id, title],
                    )
                    .expect("a title");
            }
            Change::RemoveConversation(conversation) => {
                let id = format!("c{conversation}");
                connection
                    .execute("DELETE FROM conversations WHERE id = ?1", [id])
                    .expect("a conversation");
            }
            Change::AddConversation(conversation, title) => {
                let id = format!("c{conversation}");
                let sql = "INSERT OR IGNORE INTO conversations VALUES (?1, NULL, NULL, ?2)";
                connection.execute(sql, params![id, title]).expect("a conversation");
            }
            Change::Vacuum => connection.execute_batch("VACUUM").expect("a vacuum"),
        }
    }
}

fn check(
    titles: &[Value],
    messages: &[Message],
    rounds: &[Vec<Change>],
    queries: &[Query],
) -> Vec<usize> {
    let pair = Pair::of(titles, messages);
    let connection = Connection::open(pair.path()).expect("the database opens");
    connection.execute_batch("PRAGMA foreign_keys = OFF").expect("a setting");
    let mut texts = texts(messages);
    let mut segments = Vec::new();
    for (round, changes) in rounds.iter().enumerate() {
        apply(&connection, changes, round);
        let added = changes.iter().filter_map(|change| match change {
            Change::Add(message) => Some(message.clone()),
            _ => None,
        });
        texts.extend(crate::index::texts(&added.collect::<Vec<_>>()));
        pair.reindex();
        compare(&pair, queries, &texts);
        segments.push(pair.segments());
    }
    let export = pair.with.sources().into_iter().find(|s| s.kind == SourceKind::Export);
    let export = export.expect("the export is there");
    let resources = Resources { memory: 64 << 20, threads: 1 };
    export.merge(resources, &Stop::never(), &mut |_| {}).expect("a fold");
    assert_eq!(pair.segments(), 1);
    assert!(!export.is_merge_due(&Call::default()));
    compare(&pair, queries, &texts);
    segments
}

fn compare(pair: &Pair, queries: &[Query], texts: &[String]) {
    for query in queries {
        let request = query.request(texts);
        let answered = pair.compare(&request);
        let is_for_index = !request.roles.iter().any(String::is_empty);
        assert_eq!(matches!(answered, SearchPlan::ByIndex { .. }), is_for_index, "{answered:?}");
    }
}

proptest! {
    #![proptest_config(crate::cases::config(50))]

    #[test]
    fn a_refreshed_index_answers_as_like_does(
        titles in titles(),
        messages in vec(message(false), 0..60),
        rounds in vec(vec(change(false), 0..8), 1..4),
        queries in vec(query(), 15),
    ) {
        check(&titles, &messages, &rounds, &queries);
    }

    #[test]
    fn a_refreshed_index_answers_as_like_does_over_json_parts(
        titles in titles(),
        messages in vec(message(true), 10..60),
        rounds in vec(vec(change(true), 0..6), 1..3),
        queries in vec(query(), 15),
    ) {
        check(&titles, &messages, &rounds, &queries);
    }
}

/// Returns a database of many messages, and a connection to it.
fn many(count: usize) -> (Pair, Connection) {
    let message = |number: usize| Message {
        conversation: number % 3,
        role: Value::Text("user".into()),
        content: Value::Text(format!("message number {number} of them")),
        time: Value::Integer(1_700_000_000 + number as i64),
        position: 0,
    };
    let titles = [1, 2, 3].map(|number| Value::Text(format!("title {number}")));
    let messages: Vec<Message> = (0..count).map(message).collect();
    let pair = Pair::of(&titles, &messages);
    let connection = Connection::open(pair.path()).expect("the database opens");
    (pair, connection)
}

#[test]
fn only_what_changed_is_added() {
    let (pair, connection) = many(5_000);
    connection
        .execute_batch(
            "UPDATE messages SET content = 'other words' WHERE rowid % 500 = 1;
             DELETE FROM messages WHERE rowid = 77;
             INSERT INTO messages VALUES ('new', 'c1', 'user', 'new words', '1800000000', NULL, 1)",
        )
        .expect("changes");
    let refreshed = pair.reindex();
    assert!(
        matches!(refreshed, Reindexed::Refreshed { added: 11, removed: 11, .. }),
        "{refreshed:?}"
    );
    assert_eq!(pair.segments(), 2);
    for text in ["words", "number 77 ", "title 2", "of them", "message number 4_00"] {
        pair.compare(&Request { text: text.into(), limit: Some(60), ..Request::default() });
    }
}

#[test]
fn a_state_without_changes_keeps_every_part() {
    let (pair, connection) = many(3_000);
    connection.execute_batch("CREATE TABLE other (x); VACUUM").expect("changes");
    let refreshed = pair.reindex();
    assert!(
        matches!(refreshed, Reindexed::Refreshed { added: 0, removed: 0, .. }),
        "{refreshed:?}"
    );
    assert_eq!(pair.segments(), 1);
    pair.compare(&Request { text: "number 29".into(), limit: Some(5), ..Request::default() });
}

#[test]
fn segments_grow_as_the_logarithm_of_what_is_added() {
    let (pair, connection) = many(3_000);
    for number in 0..40 {
        connection
            .execute(
                "INSERT INTO messages VALUES (?1, 'c1', 'user', 'one more', ?2, NULL, 1)",
                params![format!("more-{number}"), 1_800_000_000 + number],
            )
            .expect("a message");
        pair.reindex();
        assert!(pair.segments() <= 7, "{} segments after {number}", pair.segments());
    }
    pair.compare(&Request { text: "one more".into(), ..Request::default() });
    // Files that no snapshot uses are removed.
    let entries = std::fs::read_dir(pair.index_dir()).expect("a folder").count();
    assert_eq!(
        entries,
        pair.segments() + 5,
        "the segments, one snapshot, current, database, lock, last"
    );
}

#[test]
fn a_keeper_folds_what_has_grown_too_many_parts() {
    let (pair, connection) = many(2_000);
    connection
        .execute_batch(
            "UPDATE messages SET content = content || ' edited' WHERE rowid % 5 = 0;
             DELETE FROM messages WHERE rowid % 9 = 0",
        )
        .expect("changes");
    pair.reindex();
    assert_eq!(pair.segments(), 2);
    let engine = Arc::new(Engine::new(pair.with.config().clone()));
    let mut keeper = engine.upkeep().maintainer();
    let begun = Instant::now();
    while pair.segments() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(40), "not merged");
        let wait = keeper.poll(&Call::default(), &mut |_| ());
        thread::sleep(wait.unwrap_or_default());
    }
    let answered = pair.compare(&Request { text: "edited".into(), ..Request::default() });
    assert!(matches!(answered, SearchPlan::ByIndex { .. }), "{answered:?}");
}
