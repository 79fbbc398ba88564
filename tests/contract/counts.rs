//! Numbers of messages by role, day and model, and the span of their times.

use std::collections::BTreeMap;

use proptest::prelude::*;
use verbatim_search::{
    engine::Counts,
    model::{Instant, Stop},
};

use crate::{
    config,
    database::{Content, Database, Message, Schema},
    generated::rows,
    oracle::Oracle,
    subjects,
};

/// Returns what SQLite counts.
fn counted(oracle: &Oracle) -> Counts {
    const DAY: i64 = 86_400;
    let conversations = "SELECT count(DISTINCT c.id) FROM messages m
                         JOIN conversations c ON c.id = m.conversation_id";
    let messages = oracle.messages();
    let mut counts = Counts {
        conversations: oracle.number(conversations).unwrap_or_default() as usize,
        first: messages.iter().filter_map(|(_, time)| *time).min(),
        last: messages.iter().filter_map(|(_, time)| *time).max(),
        ..Counts::default()
    };
    for (role, time) in messages {
        *counts.roles.entry(role).or_default() += 1;
        let day = time.map(|time: Instant| time.seconds.div_euclid(DAY));
        *counts.days.entry(day).or_default() += 1;
    }
    counts
}

#[track_caller]
fn agree(database: &Database, models: &BTreeMap<String, u64>) -> Counts {
    let expected = Counts { models: models.clone(), ..counted(&Oracle::of(database)) };
    for subject in subjects() {
        let reader = subject.open(database);
        let stop = Stop::never();
        assert_eq!(reader.count(&stop).expect("counts"), expected, "{}", subject.name());
        let span = reader.span(&stop).expect("a span");
        assert_eq!(span, expected.first.zip(expected.last), "{}", subject.name());
    }
    expected
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn counts_are_those_of_sqlite(rows in rows(60)) {
        agree(&rows.database(), &BTreeMap::new());
    }
}

#[test]
fn messages_without_conversation_are_not_counted() {
    let message = |conversation: usize, role: &str, time: usize| Message {
        conversation,
        role: role.into(),
        content: Content::Stored("red".into()),
        time,
        position: Some(0),
    };
    // The first and the last message by time are in no conversation.
    let messages = [
        message(1, "stray", 10),
        message(0, "user", 0),
        message(0, "user", 15),
        message(0, "tool", 7),
        message(1, "stray", 12),
    ];
    let database = Database::of(Schema::Typed, &["Colours".into()], &messages);
    let counts = agree(&database, &BTreeMap::new());
    assert_eq!(counts.roles.values().sum::<u64>(), 3);
    assert_eq!(counts.roles.get("stray"), None);
    assert_eq!(counts.conversations, 1);
    // Without any time there is no span.
    let timeless = [message(0, "user", 15), message(1, "user", 0)];
    let counts =
        agree(&Database::of(Schema::Typed, &["Colours".into()], &timeless), &BTreeMap::new());
    assert_eq!((counts.first, counts.days), (None, BTreeMap::from([(None, 1)])));
    agree(&Database::of(Schema::Typed, &[], &[]), &BTreeMap::new());
}

#[test]
fn models_are_counted_where_the_database_names_them() {
    let message = Message {
        conversation: 0,
        role: "assistant".into(),
        content: Content::Stored("red".into()),
        time: 0,
        position: Some(0),
    };
    let database = Database::of(Schema::Typed, &["Colours".into()], &vec![message; 4]);
    database
        .connect()
        .execute_batch(
            "CREATE TABLE verbatim_messages (message_id TEXT PRIMARY KEY, export_id TEXT, model TEXT);
             INSERT INTO verbatim_messages SELECT id, NULL, CASE rowid WHEN 1 THEN 'small'
                 WHEN 2 THEN NULL ELSE 'large' END FROM messages",
        )
        .expect("a table of models");
    agree(&database, &BTreeMap::from([("large".to_owned(), 2), ("small".to_owned(), 1)]));
}
