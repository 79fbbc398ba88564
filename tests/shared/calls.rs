//! Calls of tools in this process, and a database of a few conversations for them.
#![allow(dead_code, reason = "not every binary needs it")]

use std::path::{Path, PathBuf};

use rusqlite::params;
use serde_json::{Map, Value};
use tempfile::TempDir;
use verbatim_base::call::Call;
use verbatim_engine::{Engine, Reindex, Resources};
use verbatim_server::tools::{self, Answer, Options};

use crate::corpus::{SCHEMA, engine, folder_with};

/// A role and a text.
type Said = (&'static str, &'static str);

/// Returns a database of a few conversations, and the folder that it is in.
pub(crate) fn sampled() -> (TempDir, PathBuf) {
    let (folder, db) = folder_with("a.db");
    sample(&db);
    (folder, db)
}

fn sample(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let talks: [(&str, &str, i64, &[Said]); 4] = [
        (
            "550e8400-e29b-41d4-a716-446655440000",
            "Database Migration Planning",
            1_764_579_600, // 2025-12-01 09:00
            &[
                ("system", "You are helpful."),
                ("user", "What's the plan for the database migration?"),
                ("assistant", "We should start with PostgreSQL."),
                ("tool", "exit code 0"),
                ("assistant", "Then JWT authentication."),
                ("user", "What about ERR_AUTH_FAILED?"),
                ("assistant", "React Router redirects to the login page."),
            ],
        ),
        (
            "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "API Design Review",
            1_763_197_200, // 2025-11-15 09:00
            &[("user", "Reviewed REST API design patterns"), ("assistant", "JWT it is.")],
        ),
        (
            "7c9e0000-1111",
            "日本語の質問",
            1_700_000_000,
            &[("user", "カフェはどこ？"), ("assistant", "駅前です。")],
        ),
        ("no#title", "", 1_600_000_000, &[("user", "untitled, with a # in its id")]),
    ];
    for (id, title, begun, messages) in talks {
        connection
            .execute("INSERT INTO conversations VALUES (?1, ?3, ?3, ?2)", params![id, title, begun])
            .unwrap();
        for (at, (role, content)) in (0_i64..).zip(messages) {
            let sql = "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)";
            let message = format!("{id}/{at}");
            connection
                .execute(sql, params![message, id, role, content, begun + at * 60, at])
                .unwrap();
        }
    }
}

/// Engines over one database, with its index and without.
pub(crate) fn engines(db: &Path) -> [Engine; 2] {
    let folder = |name: &str| db.parent().unwrap().join(name);
    let config = |index: &str| {
        let mut config = engine(db).config().clone();
        config.index = Some(folder(index));
        config.home = folder("home");
        config
    };
    let indexed = Engine::new(config("index"));
    let resources = Resources { memory: 64 << 20, threads: 1 };
    indexed
        .upkeep()
        .reindex(Reindex { resources, full: false }, &Call::default(), &mut |_| {})
        .unwrap();
    [indexed, Engine::new(config("no index"))]
}

pub(crate) fn call(engine: &Engine, tool: &str, arguments: Value) -> Answer {
    call_with(engine, tool, arguments, &Options::default())
}

pub(crate) fn call_with(
    engine: &Engine,
    tool: &str,
    arguments: Value,
    options: &Options,
) -> Answer {
    let tool = tools::ALL.iter().find(|entry| entry.name == tool).unwrap();
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    tool.call(engine, options, &arguments, &Call::default())
}

/// Calls a tool that answers with an error; returns its text.
pub(crate) fn refused(engine: &Engine, tool: &str, arguments: Value) -> String {
    let answer = call(engine, tool, arguments);
    assert!(answer.is_error, "{}", answer.text);
    answer.text
}

pub(crate) fn found(engine: &Engine, tool: &str, arguments: Value) -> String {
    let answer = call(engine, tool, arguments);
    assert!(!answer.is_error, "{}", answer.text);
    answer.text
}

pub(crate) fn path_of(db: &Path, id: &str) -> String {
    format!("{}#{id}", db.display())
}

/// Asserts that all of these are parts of a text.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// Returns an object with the fields of another one.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}
