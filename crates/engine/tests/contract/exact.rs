//! Exact search: the messages, the order and the texts that SQLite's `LIKE` finds.

use std::ops::ControlFlow;

use proptest::{collection::vec, prelude::*};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{FallbackReason, SearchPlan};

use crate::database::{Cell, Content, Database, Message, Schema};
use crate::generated::{ask, rows};
use crate::oracle::{Oracle, instant};
use crate::{config, hits, subjects_of, suite};

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn hits_are_those_of_like(rows in rows(70), asks in vec(ask(), 30)) {
        let texts = rows.texts();
        let requests: Vec<Request> = asks.iter().map(|ask| ask.request(&texts)).collect();
        agree(&rows.database(), &requests);
    }
}

/// Asks every reader. Each must answer as SQLite does. Returns the numbers of hits.
#[track_caller]
fn agree(database: &Database, requests: &[Request]) -> Vec<usize> {
    suite::agree(database, requests, Oracle::search)
}

fn asking(text: &str) -> Request {
    Request { text: text.to_owned(), ..Request::default() }
}

fn both_cases(text: &str) -> [Request; 2] {
    [false, true].map(|case_sensitive| Request { case_sensitive, ..asking(text) })
}

#[test]
fn a_pattern_may_have_as_many_wildcards_as_fit() {
    // SQLite's LIKE calls itself for each of them, and the oracle runs on the small stack of a test.
    let text = "%a".repeat(24_999);
    let messages = [24_999, 24_998].map(|count| Message::stored(&*"a".repeat(count)));
    let database = Database::of(Schema::Typed, &["Colours".into()], &messages);
    for subject in subjects_of(&database) {
        let (found, _) = hits(&*subject.open(&database), &asking(&text));
        assert_eq!(found.len(), 1, "{}", subject.name());
    }
}

#[test]
fn newest_first_and_equal_times_by_position_and_rowid() {
    let times = [0, 2, 15, 9, 0, 0, 12, 15, 3, 13];
    let positions = [1, 1, 2, 1, 5, 1, 1, 3, 1, 0].map(Some);
    let mut messages: Vec<Message> = (0..10)
        .map(|n| Message { time: times[n], position: positions[n], ..Message::stored("red") })
        .collect();
    messages[9].position = None;
    for schema in [Schema::Typed, Schema::Untyped, Schema::WithoutPositions] {
        let database = Database::of(schema, &["Colours".into()], &messages);
        let limits = [None, Some(0), Some(1), Some(4), Some(10), Some(usize::MAX)];
        let requests =
            limits.map(|limit| ["red", ""].map(|text| Request { limit, ..asking(text) }));
        agree(&database, requests.as_flattened());
    }
}

#[test]
fn roles_are_compared_as_they_are_stored() {
    let roles = ["user", "assistant", "tool", "User", " user", "", "it's"];
    let mut messages: Vec<Message> = roles
        .iter()
        .map(|role| Message { role: (*role).into(), ..Message::stored("red") })
        .collect();
    messages.push(Message { role: Cell::Null, ..Message::stored("red") });
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
        for text in ["red", ""] {
            let requests = asked.map(|(roles, _)| {
                let roles = roles.iter().map(|role| (*role).to_owned()).collect();
                Request { roles, ..asking(text) }
            });
            assert_eq!(agree(&database, &requests), asked.map(|(_, count)| count));
        }
    }
}

#[test]
fn roles_are_compared_as_their_column_says() {
    let cells = [
        "user".into(),
        "User".into(),
        "user  ".into(),
        " 7".into(),
        "7.0".into(),
        Cell::Blob(b"USER".to_vec()),
        Cell::Integer(7),
        Cell::Null,
    ];
    let messages: Vec<Message> =
        cells.iter().map(|role| Message { role: role.clone(), ..Message::stored("red") }).collect();
    for (schema, expected) in [
        (Schema::NoCaseRoles, [2, 2, 1, 2, 1, 1]),
        (Schema::TrimmedRoles, [2, 1, 2, 0, 1, 1]),
        (Schema::NumericRoles, [1, 1, 1, 0, 3, 3]),
    ] {
        let database = Database::of(schema, &["Colours".into()], &messages);
        let requests = ["user", "User", "user  ", "USER", "7", "7.0"]
            .map(|role| Request { roles: vec![role.to_owned()], ..asking("red") });
        assert_eq!(agree(&database, &requests), expected, "{schema:?}");
        let source = database.source();
        crate::reindex(&source);
        let (_, plan) = hits(&*source.reader(&Call::default()), &requests[0]);
        assert!(matches!(plan, SearchPlan::ByLike { why: FallbackReason::RoleColumn, .. }));
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
        Cell::Text(b"\0user".to_vec()),
        Cell::Blob(b"\0user".to_vec()),
        Cell::Text(b"\0ouser".to_vec()),
    ];
    let messages: Vec<Message> =
        cells.iter().map(|role| Message { role: role.clone(), ..Message::stored("red") }).collect();
    // A column of the type TEXT makes texts of numbers. A BLOB never equals a text.
    for (schema, expected) in [(Schema::Typed, [2, 1, 0, 1, 5]), (Schema::Untyped, [1, 0, 0, 1, 3])]
    {
        let database = Database::of(schema, &["Colours".into()], &messages);
        let requests = [
            &["7"][..],
            &["1.5"],
            &["user"],
            &["\0user"],
            &["user", "1.5", "7", "user\0x", "\0user"],
        ]
        .map(|roles| {
            let roles = roles.iter().map(|role| (*role).to_owned()).collect();
            Request { roles, ..asking("red") }
        });
        assert_eq!(agree(&database, &requests), expected);
    }
}

/// SQLite reads a pattern and a text up to their first NUL, so `a\0b` finds what ends with `a`.
#[test]
fn a_text_with_a_nul_is_answered_by_like() {
    let cells = ["red", "a Red", "red car", "x\0red", "red\0x", "\0", ""];
    let messages: Vec<Message> = cells.iter().map(|cell| Message::stored(*cell)).collect();
    let database = Database::of(Schema::Typed, &["Colours".into()], &messages);
    let source = database.source();
    crate::reindex(&source);
    for text in ["red\0x", "e_\0", "r%d\0\0", "\0", "ours\0y"] {
        let (found, plan) = hits(&*source.reader(&Call::default()), &asking(text));
        assert!(matches!(plan, SearchPlan::ByLike { why: FallbackReason::NulInPattern, .. }));
        let sql = "SELECT count(*) FROM messages m JOIN conversations c ON c.id = m.conversation_id
                   WHERE content LIKE '%' || ?1 || '%' OR title LIKE '%' || ?1 || '%'";
        let expected = database.connect().query_row(sql, [text], |row| row.get(0));
        assert_eq!(expected, Ok(found.len() as i64), "{text:?}");
    }
}

/// The index does not distinguish an empty role from NULL, nor U+FFFD from bytes that are no text, so
/// `Source` asks SQLite.
#[test]
fn a_role_that_is_unclear_is_answered_by_like() {
    let invalid = Cell::Text(b"us\xFF".to_vec());
    let roles = ["user".into(), "".into(), Cell::Null, Cell::Blob(Vec::new()), invalid];
    let messages: Vec<Message> =
        roles.iter().map(|role| Message { role: role.clone(), ..Message::stored("red") }).collect();
    let database = Database::of(Schema::Typed, &["Colours".into()], &messages);
    let source = database.source();
    crate::reindex(&source);
    for roles in [&[""][..], &["user", ""], &["us\u{FFFD}"]] {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let request = Request { roles, ..asking("red") };
        let mut found: Vec<Hit<'static>> = Vec::new();
        let plan = source.exact(&request, &Call::default(), &mut |hit| {
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
    let messages: Vec<Message> =
        (0..18).map(|time| Message { time, ..Message::stored("red") }).collect();
    let database = Database::of(Schema::Untyped, &["Colours".into()], &messages);
    let edges = [-1_500_000_000, -1_500_000_001, 0, 1_700_000_000_000_000_000, i64::MAX / 2];
    let edges: Vec<_> = edges.into_iter().map(|edge| Some(instant(edge))).chain([None]).collect();
    let mut requests = Vec::new();
    for since in &edges {
        requests.extend(edges.iter().map(|until| Request {
            since: *since,
            until: *until,
            ..asking("red")
        }));
    }
    let lengths = agree(&database, &requests);
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
    let messages: Vec<Message> = texts.iter().map(|text| Message::stored(*text)).collect();
    let database = Database::of(Schema::Typed, &["Straßen % und mehr".into()], &messages);
    let texts = [
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
    ];
    agree(&database, texts.map(both_cases).as_flattened());
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
        "\u{FFFD}red".into(),
        "\u{FFFE}red".into(),
        "\u{FFFF}red".into(),
    ];
    let messages: Vec<Message> = cells
        .iter()
        .enumerate()
        .map(|(n, cell)| Message { conversation: n % 4, ..Message::stored(cell.clone()) })
        .collect();
    let titles =
        [Cell::Integer(42), Cell::Blob(b"a red title".to_vec()), Cell::Text(b"x\0red".to_vec())];
    for schema in [Schema::Typed, Schema::Untyped, Schema::WithoutPositions] {
        let database = Database::of(schema, &titles, &messages);
        let texts = ["red", "42", "1.5", "hidden", "\u{FFFD}", "title", "d", ""];
        let noncharacters = ["\u{FFFE}", "\u{FFFF}red", "%\u{FFFE}_e"];
        agree(&database, noncharacters.map(both_cases).as_flattened());
        agree(&database, texts.map(both_cases).as_flattened());
    }
}

#[test]
fn parts_are_matched_decoded_and_stored() {
    let parts = |parts: &[Option<&str>]| {
        let parts = parts.iter().map(|part| part.map(str::to_owned)).collect();
        Message::of(Content::Parts(parts))
    };
    let messages = [
        parts(&[Some("a \"quoted\" line"), Some("and é")]),
        parts(&[None, Some("a picture")]),
        parts(&[]),
        parts(&[Some("one"), Some("two"), Some("three")]),
        Message::stored("plain \"quoted\""),
    ];
    let database = Database::of(Schema::Typed, &["Parts".into()], &messages);
    let texts = ["\"quoted\"", "\\\"quoted", "[", "image", "line\nand", "é", "three", "text", ""];
    let both = |text| [false, true].map(|raw_content| Request { raw_content, ..asking(text) });
    agree(&database, texts.map(both).as_flattened());
    // More than half of the contents are plain, so nothing is decoded.
    let mostly_plain: Vec<Message> =
        messages.iter().cloned().chain((0..9).map(|_| Message::stored("[1] plain"))).collect();
    let database = Database::of(Schema::Typed, &["Parts".into()], &mostly_plain);
    agree(&database, &["\"quoted\"", "\\\"quoted", "plain"].map(asking));
}

#[test]
fn messages_without_conversation_are_never_found() {
    let messages =
        [Message::stored("red"), Message { conversation: 1, ..Message::stored("red stray") }];
    let database = Database::of(Schema::Typed, &["Colours".into()], &messages);
    assert_eq!(agree(&database, &["red", "stray", ""].map(asking)), [1, 0, 1]);
    let empty = Database::of(Schema::Typed, &[], &[]);
    assert_eq!(agree(&empty, &["red", ""].map(asking)), [0, 0]);
}

/// More hits than a reader hands over at a time.
#[test]
fn many_hits() {
    let messages: Vec<Message> = (0..1_500)
        .map(|n| Message {
            conversation: n % 3,
            time: n % 13,
            position: Some((n % 7) as i64),
            ..Message::stored(format!("the thing {n}").as_str())
        })
        .collect();
    let database = Database::of(Schema::Typed, &["a".into(), "b".into(), "c".into()], &messages);
    let limits = [None, Some(255), Some(256), Some(257), Some(1_499)];
    let counts = agree(&database, &limits.map(|limit| Request { limit, ..asking("thing") }));
    assert_eq!(counts, [1_500, 255, 256, 257, 1_499]);
    assert_eq!(agree(&database, &[asking("thing 77")]), [11]);
}
