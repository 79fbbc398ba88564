//! Numbers of messages by role, day and model, and the span of their times.

use proptest::{collection::vec, prelude::*};
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::{Counts, Scope};

use crate::database::{Database, Message, Schema};
use crate::generated::rows;
use crate::lists::{ids, scope, transcripts};
use crate::oracle::{Oracle, instant};
use crate::{config, subjects_of};

/// The seconds by which the time zone of the counted days is ahead of UTC.
const AHEAD: i64 = 5 * 3_600 + 1_800;

/// Returns the day of a time in the time zone of [`AHEAD`].
fn day(time: Instant) -> i64 {
    (time.seconds + AHEAD).div_euclid(86_400)
}

/// Returns the counts of SQLite.
fn counted(oracle: &Oracle, scope: &Scope) -> Counts {
    let mut counts = Counts::default();
    for (conversation, role, time, model) in oracle.messages(scope) {
        *counts.conversations.entry(conversation).or_default() += 1;
        *counts.roles.entry(role).or_default() += 1;
        *counts.days.entry(time.map(day)).or_default() += 1;
        counts.first = [counts.first, time].into_iter().flatten().min();
        counts.last = counts.last.max(time);
        if !model.is_empty() {
            *counts.models.entry(model).or_default() += 1;
        }
    }
    counts
}

/// Asks every reader. Each must return SQLite's counts. Returns the counts of the whole source.
#[track_caller]
fn agree(database: &Database, scopes: &[Scope]) -> Counts {
    let oracle = Oracle::of(database);
    let all = Scope::default();
    let scopes: Vec<&Scope> = [&all].into_iter().chain(scopes).collect();
    let expected: Vec<Counts> = scopes.iter().map(|scope| counted(&oracle, scope)).collect();
    drop(oracle);
    for subject in subjects_of(database) {
        let reader = subject.open(database);
        let call = Call::default();
        for (scope, expected) in scopes.iter().zip(&expected) {
            let counts = reader.count(scope, &day, &call).expect("counts");
            assert_eq!(counts, *expected, "{}: {scope:?}", subject.name());
        }
        let span = reader.span(&call).expect("a span");
        assert_eq!(span, expected[0].first.zip(expected[0].last), "{}", subject.name());
    }
    expected.into_iter().next().expect("the counts of all messages")
}

/// Names models of the messages that have a conversation.
fn name_models(database: &Database) {
    let sql = "CREATE TABLE verbatim_messages (message_id, export_id, model);
               INSERT INTO verbatim_messages SELECT id, NULL, CASE rowid % 4 WHEN 1 THEN 'small'
                   WHEN 2 THEN NULL WHEN 3 THEN '' ELSE 'large' END FROM messages
                   WHERE conversation_id IN (SELECT id FROM conversations)";
    database.connect().execute_batch(sql).expect("a table of models");
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn counts_are_those_of_sqlite(rows in rows(60), scopes in vec(scope(), 8), models: bool) {
        let database = rows.database();
        if models {
            name_models(&database);
        }
        agree(&database, &scopes);
    }
}

#[test]
fn messages_without_conversation_are_not_counted() {
    let message = |conversation: usize, role: &str, time: usize| Message {
        conversation,
        role: role.into(),
        time,
        ..Message::stored("red")
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
    let counts = agree(&database, &[]);
    assert_eq!(counts.roles.values().sum::<u64>(), 3);
    assert_eq!(counts.roles.get("stray"), None);
    assert_eq!(counts.conversations.len(), 1);
    // Without any time there is no time span.
    let timeless = [message(0, "user", 15), message(1, "user", 0)];
    let counts = agree(&Database::of(Schema::Typed, &["Colours".into()], &timeless), &[]);
    assert_eq!((counts.first, counts.days), (None, [(None, 1)].into()));
    agree(&Database::of(Schema::Typed, &[], &[]), &[]);
}

#[test]
fn models_are_counted_where_the_database_names_them() {
    let message = Message { role: "assistant".into(), ..Message::stored("red") };
    let database = Database::of(Schema::Typed, &["Colours".into()], &vec![message; 4]);
    name_models(&database);
    let none = Scope { roles: vec!["user".to_owned()], ..Scope::default() };
    let counts = agree(&database, &[none]);
    assert_eq!(counts.models, [("large".to_owned(), 1), ("small".to_owned(), 1)].into());
}

#[test]
fn conversations_projects_and_sessions_are_counted_apart() {
    let database = transcripts();
    name_models(&database);
    let at = |seconds: i64| Some(instant(seconds * 1_000_000_000));
    let scopes = [
        Scope { project: Some("paint".into()), ..Scope::default() },
        Scope { session: Some("s1".into()), since: at(15), ..Scope::default() },
        Scope { conversations: ids(&["a", "c", "none"]), ..Scope::default() },
        Scope { conversation: Some("b".into()), until: at(15), ..Scope::default() },
    ];
    agree(&database, &scopes);
    let subjects = subjects_of(&database);
    let Some(subject) = subjects.first() else { return };
    let reader = subject.open(&database);
    let counts = reader.count(&scopes[1], &Instant::day, &Call::default()).expect("counts");
    assert_eq!(counts.conversations, [("b".to_owned(), 1)].into());
}
