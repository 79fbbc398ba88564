//! Lists of conversations and ranked search.

use rusqlite::Connection;
use verbatim_search::{
    engine::{About, Config, Engine, Reindex, Scope, SourceKind},
    index::Resources,
    model::{Instant, Stop},
};

use crate::corpus::{SCHEMA, folder};

/// Adds a conversation of messages (role, text, time).
pub(crate) fn converse(
    connection: &Connection,
    id: &str,
    title: Option<&str>,
    messages: &[(&str, &str, Option<i64>)],
) {
    connection
        .execute("INSERT INTO conversations VALUES (?1, NULL, NULL, ?2)", (id, title))
        .expect("a conversation");
    for (position, (role, text, time)) in messages.iter().enumerate() {
        let message = format!("{id}/{position}");
        connection
            .execute(
                "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)",
                (message, id, role, text, time, position as i64),
            )
            .expect("a message");
    }
}

fn reindex(engine: &Engine) {
    let resources = Resources { memory: 64 << 20, threads: 2 };
    let options = Reindex { resources, full: false };
    engine.reindex(options, &Stop::never(), &mut |_| ()).expect("the index builds");
}

fn ids(abouts: &[About]) -> Vec<&str> {
    abouts.iter().map(|about| about.id.as_str()).collect()
}

#[test]
fn lists_are_the_same_with_an_index_and_without() {
    let folder = folder();
    let path = folder.path().join("a.db");
    let connection = Connection::open(&path).expect("a database");
    connection.execute_batch(SCHEMA).expect("the schema");
    converse(
        &connection,
        "b",
        Some("Bees"),
        &[("user", "x", Some(10)), ("assistant", "y", Some(50))],
    );
    converse(&connection, "a", None, &[("user", "x", Some(50)), ("tool", "y", Some(20))]);
    converse(&connection, "none", Some("Empty"), &[]);
    converse(&connection, "timeless", Some(""), &[("user", "x", None)]);
    converse(&connection, "old", Some("Old"), &[("user", "x", Some(5))]);
    let engine =
        Engine::new(Config { db: Some(path), home: folder.path().into(), ..Config::default() });
    let list = |scope: &Scope, offset, limit| engine.list(scope, offset, limit).expect("a list");
    let scopes = [
        (Scope::default(), vec!["a", "b", "old", "timeless"]),
        (Scope { since: Some(at(11)), until: Some(at(19)), ..Scope::default() }, vec!["b"]),
        (Scope { since: Some(at(21)), ..Scope::default() }, vec!["a", "b"]),
        (Scope { roles: vec!["tool".into(), "system".into()], ..Scope::default() }, vec!["a"]),
        (Scope { conversation: Some("old".into()), ..Scope::default() }, vec!["old"]),
        (Scope { sources: vec![SourceKind::Threads], ..Scope::default() }, vec![]),
    ];
    let read: Vec<_> = scopes.iter().map(|(scope, _)| list(scope, 0, 100)).collect();
    reindex(&engine);
    for ((scope, expected), (read, total)) in scopes.iter().zip(read) {
        assert_eq!(ids(&read), *expected, "{scope:?}");
        assert_eq!(total, expected.len());
        assert_eq!(list(scope, 0, 100), (read, total));
    }
    let (page, total) = list(&Scope::default(), 1, 2);
    assert_eq!((ids(&page), total), (vec!["b", "old"], 4));
    assert_eq!(list(&Scope::default(), 9, 2).0, []);
    let about = engine.about(SourceKind::Export, "b").expect("reads").expect("is there");
    assert_eq!((about.title.as_str(), about.turns), ("Bees", 2));
    assert_eq!((about.begun, about.last), (Some(at(10)), Some(at(50))));
    assert_eq!(engine.about(SourceKind::Export, "none").expect("reads"), None);
}

fn at(seconds: i64) -> Instant {
    Instant { seconds, nanos: 0 }
}
