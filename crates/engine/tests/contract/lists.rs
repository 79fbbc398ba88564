//! Lists of conversations: the conversations, their order, and their data.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use proptest::{collection::vec, option, prelude::*, sample::select};
use verbatim_base::call::Call;
use verbatim_engine::{About, Listing, Reader, Scope, SourceKind};

use crate::database::{Cell, Content, Database, Known, Message, Schema};
use crate::generated::{edge, roles, rows};
use crate::oracle::{Listed, Oracle, instant};
use crate::{config, subjects_of};

fn list(reader: &dyn Reader, scope: &Scope) -> Box<dyn Listing> {
    reader.list(scope, &Call::default()).expect("a list")
}

/// Returns the content of a list; every way to list must give the same.
#[track_caller]
fn listed(listing: &dyn Listing, kind: SourceKind) -> Vec<Listed> {
    (0..listing.len())
        .map(|place| {
            let About { source, id, title, turns, begun, last, .. } = listing.about(place);
            let (heading_id, heading_title) = listing.heading(place);
            assert_eq!(heading_id, id);
            // `about` makes a title from the messages where there is none.
            assert!(title == heading_title || heading_title.trim().is_empty(), "{title:?}");
            assert_eq!(listing.last(place), last);
            assert_eq!(source, kind);
            Listed { id, title: heading_title.to_owned(), turns, begun, last }
        })
        .collect()
}

/// Asks every reader. Each must return SQLite's list. Returns the ids.
#[track_caller]
fn agree(database: &Database, scopes: &[Scope]) -> Vec<Vec<String>> {
    let oracle = Oracle::of(database);
    let expected: Vec<Vec<Listed>> = scopes.iter().map(|scope| oracle.list(scope)).collect();
    drop(oracle);
    for subject in subjects_of(database) {
        let reader = subject.open(database);
        for (scope, expected) in scopes.iter().zip(&expected) {
            let listing = list(&*reader, scope);
            let found = listed(&*listing, database.kind);
            assert_eq!(found, *expected, "{}: {scope:?}", subject.name());
        }
    }
    let ids = |listed: Vec<Listed>| listed.into_iter().map(|listed| listed.id).collect();
    expected.into_iter().map(ids).collect()
}

/// Returns these ids for every kind of source.
pub(crate) fn ids(ids: &[&str]) -> Option<Arc<HashMap<SourceKind, HashSet<String>>>> {
    let ids: HashSet<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    Some(Arc::new(SourceKind::ALL.map(|kind| (kind, ids.clone())).into()))
}

pub(crate) fn scope() -> impl Strategy<Value = Scope> {
    let conversation = option::weighted(0.2, select(vec!["c0", "c1", "c3", "c9", "none"]));
    (roles(), edge(), edge(), conversation).prop_map(|(roles, since, until, conversation)| Scope {
        roles,
        since,
        until,
        conversation: conversation.map(str::to_owned),
        ..Scope::default()
    })
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn lists_are_those_of_sqlite(rows in rows(40), scopes in vec(scope(), 20)) {
        agree(&rows.database(), &scopes);
    }
}

fn message(conversation: usize, role: &str, time: usize) -> Message {
    Message {
        conversation,
        role: role.into(),
        content: Content::Stored("red".into()),
        time,
        position: None,
    }
}

#[test]
fn latest_activity_first_then_by_id_and_without_times_last() {
    let messages = [
        message(4, "user", 7),
        message(0, "user", 10),
        message(0, "tool", 7),
        message(1, "user", 15),
        message(2, "user", 12),
        message(3, "assistant", 9),
        message(3, "user", 8),
        // The conversation of this message is missing.
        message(5, "tool", 12),
    ];
    let titles = ["Blue".into(), Cell::Null, "".into(), "Red".into(), "Green".into()];
    let database = Database::of(Schema::Typed, &titles, &messages);
    let at = |seconds: i64| Some(instant(seconds * 1_000_000_000));
    let scopes = [
        Scope::default(),
        Scope { since: at(1), until: at(999), ..Scope::default() },
        Scope { since: at(1_000_000_001), ..Scope::default() },
        Scope { until: at(-5), ..Scope::default() },
        Scope { roles: vec!["tool".into()], ..Scope::default() },
        Scope { roles: vec!["tool".into(), "assistant".into()], ..Scope::default() },
        Scope { roles: vec!["nobody".into()], ..Scope::default() },
        Scope { conversation: Some("c9".into()), ..Scope::default() },
        Scope { conversation: Some("c5".into()), ..Scope::default() },
        Scope { conversation: Some("c1".into()), since: at(0), ..Scope::default() },
        Scope { conversation: Some("c3".into()), ..Scope::default() },
        Scope { conversations: ids(&["c1", "c3", "none"]), ..Scope::default() },
        Scope { conversations: ids(&["c1", "c3"]), since: at(0), ..Scope::default() },
        Scope { conversations: ids(&[]), ..Scope::default() },
    ];
    let found = agree(&database, &scopes);
    let expected: [&[&str]; 14] = [
        &["c2", "c0", "c4", "c3", "c1"],
        &["c0", "c3"],
        &["c2", "c0", "c4"],
        &["c0"],
        &["c0"],
        &["c0", "c3"],
        &[],
        &[],
        &[],
        &[],
        &["c3"],
        &["c3", "c1"],
        &["c3"],
        &[],
    ];
    assert_eq!(found, expected);
}

/// Creates a transcript store with two projects.
pub(crate) fn transcripts() -> Database {
    let mut database = Database::new(SourceKind::Archive, Schema::Typed);
    let connection = database.connect();
    connection
        .execute_batch(
            "CREATE TABLE verbatim_transcripts (conversation_id TEXT PRIMARY KEY,
                 file TEXT NOT NULL, session TEXT, project TEXT, folder TEXT, branch TEXT);
             INSERT INTO conversations (id, title)
                 VALUES ('a', 'A'), ('b', 'B'), ('c', 'C'), ('d', 'D');
             INSERT INTO messages (rowid, id, conversation_id, role, content, create_time, position)
                 VALUES (1, 'a/1', 'a', 'user', 'red', 10, 3), (2, 'b/1', 'b', 'user', 'red', 20, 1),
                        (3, 'c/1', 'c', 'tool', 'red', 30, 2), (4, 'd/1', 'd', 'user', 'red', 40, 1);
             INSERT INTO verbatim_transcripts
                 VALUES ('a', '/t/a.jsonl', 's1', 'paint', '/work', 'main'),
                        ('b', '/t/b.jsonl', 's1', 'walls', NULL, NULL),
                        ('c', '/t/c.jsonl', NULL, 'paint', NULL, NULL);",
        )
        .expect("the tables are sound");
    let known =
        (1..=4).map(|n| Known { rowid: n, instant: Some(n * 10_000_000_000), decoded: None });
    database.known = known.collect();
    database
}

#[test]
fn projects_and_sessions_of_transcripts() {
    let database = transcripts();
    let named = |project: Option<&str>, session: Option<&str>| Scope {
        project: project.map(str::to_owned),
        session: session.map(str::to_owned),
        ..Scope::default()
    };
    let found = agree(
        &database,
        &[
            Scope::default(),
            named(Some("paint"), None),
            named(None, Some("s1")),
            named(Some("walls"), Some("s1")),
            named(Some("walls"), Some("s2")),
            named(Some("nothing"), None),
            Scope { roles: vec!["user".into()], ..named(Some("paint"), None) },
            Scope { conversation: Some("b".into()), ..named(Some("paint"), None) },
        ],
    );
    let expected: [&[&str]; 8] =
        [&["d", "c", "b", "a"], &["c", "a"], &["b", "a"], &["b"], &[], &[], &["a"], &[]];
    assert_eq!(found, expected);
    for subject in subjects_of(&database) {
        let reader = subject.open(&database);
        let listing = list(&*reader, &Scope::default());
        let about = listing.about(3);
        assert_eq!(about.file, Some(PathBuf::from("/t/a.jsonl")), "{}", subject.name());
        assert_eq!(about.project.as_deref(), Some("paint"));
        assert_eq!(about.session.as_deref(), Some("s1"));
        let origin = listing.origin(3).expect("an origin");
        assert_eq!(origin.branch.as_deref(), Some("main"));
        assert_eq!(origin.folder.as_deref(), Some("/work"));
        assert_eq!(listing.origin(0), None);
        assert_eq!((listing.about(0).file, listing.about(0).project), (None, None));
    }
}

/// A role is empty for NULL.
#[test]
fn empty_roles_and_roles_that_are_no_texts() {
    let roles = [Cell::Null, "".into(), Cell::Integer(7), Cell::Blob(b"user".to_vec())];
    let of = |(conversation, role): (usize, &Cell)| Message {
        role: role.clone(),
        ..message(conversation, "", 0)
    };
    let messages: Vec<Message> = roles.iter().enumerate().map(of).collect();
    let titles = ["a", "b", "c", "d"].map(Cell::from);
    let scopes = ["", "7", "user", "tool"]
        .map(|role| Scope { roles: vec![role.to_owned()], ..Scope::default() });
    for schema in [Schema::Typed, Schema::Untyped] {
        let found = agree(&Database::of(schema, &titles, &messages), &scopes);
        let expected: [&[&str]; 4] = [&["c0", "c1"], &["c2"], &["c3"], &[]];
        assert_eq!(found, expected);
    }
}
