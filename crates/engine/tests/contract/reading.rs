//! Conversations in reading order.

use proptest::prelude::*;
use verbatim_base::{call::Call, model::Hit};
use verbatim_engine::Messages;

use crate::database::{Database, Message, Schema};
use crate::generated::rows;
use crate::oracle::Oracle;
use crate::{config, subjects_of};

/// Compares a conversation with the messages that SQLite has of it.
fn assert_same(messages: &dyn Messages, expected: &[Hit<'static>], name: &str) {
    let turns: Vec<Hit<'static>> =
        (0..messages.turns()).map(|turn| messages.message(turn).into_owned()).collect();
    assert_eq!(turns, expected, "{name}");
    for (turn, hit) in turns.iter().enumerate() {
        assert_eq!(messages.role(turn), hit.role, "{name}");
        assert_eq!(messages.position(turn), hit.position, "{name}");
        assert_eq!(messages.turn_of(hit), Some(turn), "{name}: {hit:?}");
        let other = Hit { message_id: "of another conversation".into(), ..hit.lent() };
        assert_eq!(messages.turn_of(&other), None, "{name}");
    }
}

/// Reads every conversation with every reader.
fn agree(database: &Database) {
    let oracle = Oracle::of(database);
    let questions: Vec<(String, bool)> = (0..10)
        .flat_map(|n| [(format!("c{n}"), false), (format!("c{n}"), true)])
        .chain([("C0".to_owned(), false), (String::new(), false)])
        .collect();
    let expected: Vec<_> = questions.iter().map(|(id, raw)| oracle.read(id, *raw)).collect();
    drop(oracle);
    for subject in subjects_of(database) {
        let reader = subject.open(database);
        for ((id, raw), expected) in questions.iter().zip(&expected) {
            let name = format!("{}: {id}, raw: {raw}", subject.name());
            let messages = reader.read(id, *raw, &Call::default()).expect("an answer");
            assert_eq!(messages.is_some(), !expected.is_empty(), "{name}");
            if let Some(messages) = messages {
                assert_same(&*messages, expected, &name);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn conversations_are_read_as_sqlite_does(rows in rows(60)) {
        agree(&rows.database());
    }
}

#[test]
fn by_position_then_time_then_as_written() {
    // Positions and times: 12 is before 0, which is before 2; 15 is no time.
    let places = [(3, 0), (1, 2), (1, 0), (2, 15), (2, 12), (0, 15), (1, 0), (3, 0), (2, 0)];
    let of = |(position, time): (i64, usize)| Message {
        time,
        position: Some(position),
        ..Message::stored("red")
    };
    // Long enough that a refreshed index keeps its segments.
    let messages: Vec<Message> = places.iter().copied().cycle().take(90).map(of).collect();
    for schema in [Schema::Typed, Schema::Untyped, Schema::WithoutPositions] {
        agree(&Database::of(schema, &["Colours".into()], &messages));
    }
}
