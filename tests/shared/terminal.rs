//! The command line in this process, and a database of chats for it.

use std::{ffi::OsString, iter, path::Path};

use rusqlite::{Connection, params};
use verbatim_search::cli::{self, Environment};

use crate::corpus::SCHEMA;

pub(crate) fn run(arguments: &[&str]) -> (Result<u8, String>, String) {
    let mut out = Vec::new();
    let arguments = iter::once("verbatim").chain(arguments.iter().copied()).map(OsString::from);
    let code = cli::run(arguments, &Environment::default(), &mut out).map_err(|e| e.to_string());
    (code, String::from_utf8(out).unwrap())
}

/// Runs a command that succeeds; returns its output.
#[track_caller]
pub(crate) fn output(arguments: &[&str]) -> String {
    let (code, out) = run(arguments);
    assert_eq!(code, Ok(0), "{arguments:?}");
    out
}

pub(crate) fn sample(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let long = format!("{} the borrow checker again {}", "before ".repeat(60), "after ".repeat(60));
    let lines = (1..15).map(|n| format!("line {n} of the Borrow Checker\n")).collect::<String>();
    for (id, title, messages) in [
        (
            "6650a1b2-0001",
            "Rust lifetimes",
            &[
                (
                    "user",
                    "Why does the borrow checker\nrefuse this?\n\n    let x = &y;",
                    1_700_000_000.5,
                ),
                ("assistant", "Because `y` is gone.", 1_700_000_060.0),
                ("user", &long, 1_700_000_120.0),
                ("tool", &lines, 1_700_000_180.0),
            ][..],
        ),
        ("6650a1b2-0002", "日本語の質問", &[("user", "カフェはどこ？", 1_705_276_800.0)]),
        (
            "7000ffff",
            "Borrow checker, part two",
            &[("assistant", "\u{1b}[31mNot red.", 1_705_276_801.0)],
        ),
        ("71110000", "", &[("", "", 1e12)]),
    ] {
        connection.execute("INSERT INTO conversations VALUES (?1, 1, 1, ?2)", [id, title]).unwrap();
        for (position, (role, content, time)) in (0_i64..).zip(messages) {
            let sql = "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)";
            let message = format!("{id}-{position}");
            connection.execute(sql, params![message, id, role, content, time, position]).unwrap();
        }
    }
    connection
}
