//! Exact search: the messages, the order and the texts that SQLite's `LIKE` finds.

use std::ops::ControlFlow;

use proptest::{collection::vec, prelude::*};
use verbatim_search::{
    engine::{FallbackReason, SearchPlan},
    model::{Hit, Request, Stop},
};

use crate::{
    config,
    database::{Cell, Content, Database, Message, Schema},
    generated::{ask, rows},
    hits,
    oracle::{Oracle, instant},
    subjects,
};

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn hits_are_those_of_like(rows in rows(70), asks in vec(ask(), 30)) {
        let database = rows.database();
        let oracle = Oracle::of(&database);
        let texts = rows.texts();
        let requests: Vec<Request> = asks.iter().map(|ask| ask.request(&texts)).collect();
        let expected: Vec<_> = requests.iter().map(|request| oracle.search(request)).collect();
        drop(oracle);
        for subject in subjects() {
            let reader = subject.open(&database);
            for (request, expected) in requests.iter().zip(&expected) {
                let (found, _) = hits(&*reader, request);
                prop_assert_eq!(&found, expected, "{}: {:?}", subject.name(), request);
            }
        }
    }
}

/// Asks every reader; all must answer as SQLite does. Returns the ids of the messages.
#[track_caller]
fn agree(database: &Database, request: &Request) -> Vec<String> {
    let expected = Oracle::of(database).search(request);
    for subject in subjects() {
        let (found, _) = hits(&*subject.open(database), request);
        assert_eq!(found, expected, "{}: {request:?}", subject.name());
    }
    expected.into_iter().map(|hit| hit.message_id.into_owned()).collect()
}

fn message(content: impl Into<Cell>) -> Message {
    Message {
        conversation: 0,
        role: "user".into(),
        content: Content::Stored(content.into()),
        time: 0,
        position: Some(0),
    }
}

fn asking(text: &str) -> Request {
    Request { text: text.to_owned(), ..Request::default() }
}

#[test]
fn newest_first_and_equal_times_by_position_and_rowid() {
    let times = [0, 2, 15, 9, 0, 0, 12, 15, 3, 13];
    let positions = [1, 1, 2, 1, 5, 1, 1, 3, 1, 0].map(Some);
    let mut messages: Vec<Message> = (0..10)
        .map(|n| Message { time: times[n], position: positions[n], ..message("red") })
        .collect();
    messages[9].position = None;
    for schema in [Schema::Typed, Schema::Untyped, Schema::WithoutPositions] {
        let database = Database::of(schema, &["Colours".into()], &messages);
        for limit in [None, Some(0), Some(1), Some(4), Some(10), Some(usize::MAX)] {
            agree(&database, &Request { limit, ..asking("red") });
            agree(&database, &Request { limit, ..asking("") });
        }
    }
}

#[test]
fn roles_are_compared_as_they_are_stored() {
    let roles = ["user", "assistant", "tool", "User", " user", "", "it's"];
    let mut messages: Vec<Message> =
        roles.iter().map(|role| Message { role: (*role).into(), ..message("red") }).collect();
    messages.push(Message { role: Cell::Null, ..message("red") });
    let asked: [(&[&str], usize); 6] = [
        (&["user"], 1),
        (&["user", "tool"], 2),
        (&["tool", "assistant", "it's", "tool"], 3),
        (&["nobody"], 0),
        (&["nobody", "User"], 1),
        (&[], 8),
    ];
    for schema in [Schema::Typed, Schema::Untyped] {
        let database = Database::of(schema, &["Colours".into()], &messages);
        for (roles, count) in &asked {
            let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
            for text in ["red", ""] {
                let request = Request { roles: roles.clone(), ..asking(text) };
                assert_eq!(agree(&database, &request).len(), *count, "{request:?}");
            }
        }
    }
}

#[test]
fn roles_that_are_no_texts() {
    let cells = [
        Cell::Integer(7),
        Cell::Real(1.5),
        Cell::Blob(b"user".to_vec()),
        "7".into(),
        Cell::Text(b"us\xFF".to_vec()),
        Cell::Text(b"user\0x".to_vec()),
    ];
    let messages: Vec<Message> =
        cells.iter().map(|role| Message { role: role.clone(), ..message("red") }).collect();
    for schema in [Schema::Typed, Schema::Untyped] {
        let database = Database::of(schema, &["Colours".into()], &messages);
        for role in ["7", "1.5", "user"] {
            agree(&database, &Request { roles: vec![role.to_owned()], ..asking("red") });
        }
    }
}

/// The index does not tell an empty role from NULL, so `Source` asks SQLite.
#[test]
fn an_empty_role_is_answered_by_like() {
    let roles = ["user".into(), "".into(), Cell::Null, Cell::Blob(Vec::new())];
    let messages: Vec<Message> =
        roles.iter().map(|role| Message { role: role.clone(), ..message("red") }).collect();
    let database = Database::of(Schema::Typed, &["Colours".into()], &messages);
    let source = database.source();
    crate::reindex(&database.engine(), &source);
    for roles in [vec![String::new()], vec!["user".to_owned(), String::new()]] {
        let request = Request { roles, ..asking("red") };
        let mut found: Vec<Hit<'static>> = Vec::new();
        let plan = source.exact(&request, &Stop::never(), &mut |hit| {
            found.push(hit);
            ControlFlow::Continue(())
        });
        let plan = plan.expect("an answer");
        assert_eq!(found, Oracle::of(&database).search(&request));
        assert!(matches!(plan, SearchPlan::ByLike { why: FallbackReason::EmptyRole, .. }));
    }
}

#[test]
fn dates_are_inclusive_and_leave_out_messages_without_a_time() {
    let messages: Vec<Message> = (0..18).map(|time| Message { time, ..message("red") }).collect();
    let database = Database::of(Schema::Untyped, &["Colours".into()], &messages);
    let edges = [-1_500_000_000, -1_500_000_001, 0, 1_700_000_000_000_000_000, i64::MAX / 2];
    let edges: Vec<_> = edges.into_iter().map(|edge| Some(instant(edge))).chain([None]).collect();
    let mut lengths = Vec::new();
    for since in &edges {
        for until in &edges {
            let request = Request { since: *since, until: *until, ..asking("red") };
            lengths.push(agree(&database, &request).len());
        }
    }
    assert!(lengths.contains(&18) && lengths.contains(&0) && lengths.contains(&12), "{lengths:?}");
}

#[test]
fn letter_case_wildcards_and_scripts() {
    let texts = [
        "Straße ẞ",
        "100% sure_thing",
        "STRASSE",
        "ПРИВЕТ привет",
        "Kelvin \u{212A}",
        "日本語の本",
        "İstanbul ı",
        "😀 emoji 👩\u{200D}💻",
        "e\u{301}e é É",
        "a\\b'c\"d",
        "\u{FFFF}",
        "",
        "sureXthing",
        "line\nbreak\ttab",
    ];
    let messages: Vec<Message> = texts.iter().map(|text| message(*text)).collect();
    let database = Database::of(Schema::Typed, &["Straßen % und mehr".into()], &messages);
    for text in [
        "straße",
        "STRASSE",
        "%",
        "_",
        "100%",
        "sure_thing",
        "SURE_THING",
        "s%g",
        "привет",
        "ПРИВЕТ",
        "kelvin",
        "\u{212A}",
        "k",
        "本",
        "日_語",
        "i",
        "ı",
        "👩",
        "é",
        "É",
        "e\u{301}",
        "\\",
        "'",
        "\"",
        "\u{FFFF}",
        "\n",
        "_\t_",
        "und%mehr",
        "______________",
    ] {
        for case_sensitive in [false, true] {
            agree(&database, &Request { case_sensitive, ..asking(text) });
        }
    }
}

#[test]
fn contents_and_titles_of_every_type() {
    let cells = vec![
        Cell::Null,
        Cell::Integer(42),
        Cell::Real(1.5),
        Cell::Blob(b"red blob".to_vec()),
        Cell::Blob(vec![0xFF, b'r', b'e', b'd']),
        Cell::Text(b"red\0hidden".to_vec()),
        Cell::Text(b"\xC3red\xE6\x97".to_vec()),
        "red".into(),
        "".into(),
    ];
    let messages: Vec<Message> = cells
        .iter()
        .enumerate()
        .map(|(n, cell)| Message { conversation: n % 4, ..message(cell.clone()) })
        .collect();
    let titles =
        [Cell::Integer(42), Cell::Blob(b"a red title".to_vec()), Cell::Text(b"x\0red".to_vec())];
    for schema in [Schema::Typed, Schema::Untyped, Schema::WithoutPositions] {
        let database = Database::of(schema, &titles, &messages);
        for text in ["red", "42", "1.5", "hidden", "\u{FFFD}", "title", "d", ""] {
            for case_sensitive in [false, true] {
                agree(&database, &Request { case_sensitive, ..asking(text) });
            }
        }
    }
}

#[test]
fn parts_are_matched_decoded_and_stored() {
    let parts = |parts: &[Option<&str>]| {
        let parts = parts.iter().map(|part| part.map(str::to_owned)).collect();
        Message { content: Content::Parts(parts), ..message("") }
    };
    let messages = [
        parts(&[Some("a \"quoted\" line"), Some("and é")]),
        parts(&[None, Some("a picture")]),
        parts(&[]),
        parts(&[Some("one"), Some("two"), Some("three")]),
        message("plain \"quoted\""),
    ];
    let database = Database::of(Schema::Typed, &["Parts".into()], &messages);
    for text in ["\"quoted\"", "\\\"quoted", "[", "image", "line\nand", "é", "three", "text", ""] {
        for raw_content in [false, true] {
            agree(&database, &Request { raw_content, ..asking(text) });
        }
    }
    // Half of them plain and more: nothing is decoded.
    let mostly_plain: Vec<Message> =
        messages.iter().cloned().chain((0..9).map(|_| message("[1] plain"))).collect();
    let database = Database::of(Schema::Typed, &["Parts".into()], &mostly_plain);
    for text in ["\"quoted\"", "\\\"quoted", "plain"] {
        agree(&database, &asking(text));
    }
}

#[test]
fn messages_without_conversation_are_never_found() {
    let messages = [message("red"), Message { conversation: 1, ..message("red stray") }];
    let database = Database::of(Schema::Typed, &["Colours".into()], &messages);
    assert_eq!(agree(&database, &asking("red")).len(), 1);
    assert_eq!(agree(&database, &asking("stray")).len(), 0);
    assert_eq!(agree(&database, &asking("")).len(), 1);
    let empty = Database::of(Schema::Typed, &[], &[]);
    assert_eq!(agree(&empty, &asking("")).len(), 0);
}

/// More hits than a reader hands over at a time.
#[test]
fn many_hits() {
    let messages: Vec<Message> = (0..1_500)
        .map(|n| Message {
            conversation: n % 3,
            time: n % 13,
            position: Some((n % 7) as i64),
            ..message(format!("the thing {n}").as_str())
        })
        .collect();
    let database = Database::of(Schema::Typed, &["a".into(), "b".into(), "c".into()], &messages);
    for limit in [None, Some(255), Some(256), Some(257), Some(1_499)] {
        agree(&database, &Request { limit, ..asking("thing") });
    }
    assert_eq!(agree(&database, &asking("thing 77")).len(), 11);
}
