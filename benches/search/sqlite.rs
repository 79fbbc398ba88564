//! The searches of SQLite: the contract's SQL unchanged, with an index on time, with FTS5's trigrams,
//! and with FTS5 tuned for this question: rows in the order of time, so that no answer is sorted.

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use serde::{Deserialize, Serialize};
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_text::date;

use crate::race::Racer;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Baseline {
    Like,
    TimeIndex,
    Fts5,
    Fts5Tuned,
}

impl Baseline {
    /// Adds the indexes of this baseline to the database at `path`.
    pub(crate) fn build(self, path: &Path) -> Result<()> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;",
        )?;
        connection
            .execute_batch(match self {
                Baseline::Like => "",
                Baseline::TimeIndex => "CREATE INDEX messages_time ON messages(create_time);",
                Baseline::Fts5 => {
                    "BEGIN;
                     CREATE VIRTUAL TABLE content_grams USING fts5(
                         content, content = 'messages', tokenize = 'trigram');
                     CREATE VIRTUAL TABLE title_grams USING fts5(
                         title, content = 'conversations', tokenize = 'trigram');
                     INSERT INTO content_grams(content_grams) VALUES ('rebuild');
                     INSERT INTO title_grams(title_grams) VALUES ('rebuild');
                     COMMIT;"
                }
                Baseline::Fts5Tuned => {
                    "BEGIN;
                     CREATE TABLE ordered (n INTEGER PRIMARY KEY, id, conversation_id, title, role,
                         create_time, content, position);
                     INSERT INTO ordered
                         SELECT NULL, m.id, m.conversation_id, c.title, m.role, m.create_time,
                             m.content, m.position
                         FROM messages m JOIN conversations c ON c.id = m.conversation_id
                         ORDER BY m.create_time, m.position, m.rowid;
                     DROP TABLE messages;
                     DROP TABLE conversations;
                     CREATE INDEX ordered_time ON ordered(create_time);
                     CREATE VIRTUAL TABLE grams USING fts5(
                         content, title, content = 'ordered', content_rowid = 'n',
                         tokenize = 'trigram');
                     INSERT INTO grams(grams) VALUES ('rebuild');
                     COMMIT;"
                }
            })
            .with_context(|| format!("adding {self:?} to {}", path.display()))
    }

    /// Optimizes the indexes that [`Baseline::build`] added.
    pub(crate) fn optimize(self, path: &Path) -> Result<()> {
        let sql = match self {
            Baseline::Like | Baseline::TimeIndex => return Ok(()),
            Baseline::Fts5 => {
                "INSERT INTO content_grams(content_grams) VALUES ('optimize');
                 INSERT INTO title_grams(title_grams) VALUES ('optimize');"
            }
            Baseline::Fts5Tuned => "INSERT INTO grams(grams) VALUES ('optimize'); VACUUM;",
        };
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;",
        )?;
        Ok(connection.execute_batch(sql)?)
    }

    fn text_condition(self, text: &str) -> &'static str {
        let longest_run = text.split(['%', '_']).map(|run| run.chars().count()).max();
        if self != Baseline::Fts5 || longest_run < Some(3) {
            "(m.content LIKE ?1 OR c.title LIKE ?1)"
        } else if is_phrase(text) {
            "m.rowid IN (
                 SELECT rowid FROM content_grams WHERE content_grams MATCH ?1
                 UNION ALL
                 SELECT titled.rowid
                 FROM conversations t JOIN messages titled ON titled.conversation_id = t.id
                 WHERE t.rowid IN (SELECT rowid FROM title_grams WHERE title_grams MATCH ?1))"
        } else {
            "m.rowid IN (
                 SELECT rowid FROM content_grams WHERE content LIKE ?1
                 UNION ALL
                 SELECT titled.rowid
                 FROM conversations t JOIN messages titled ON titled.conversation_id = t.id
                 WHERE t.rowid IN (SELECT rowid FROM title_grams WHERE title LIKE ?1))"
        }
    }

    fn text_parameter(self, text: &str) -> String {
        if self.text_condition(text).contains("MATCH") {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            format!("%{text}%")
        }
    }
}

/// Returns whether FTS5 finds `text` as a phrase of trigrams: it folds case beyond ASCII, LIKE does not.
fn is_phrase(text: &str) -> bool {
    text.is_ascii() && !text.contains(['%', '_', '\0'])
}

pub(crate) struct Sqlite {
    connection: Connection,
    baseline: Baseline,
}

impl Sqlite {
    pub(crate) fn open(baseline: Baseline, path: &Path) -> Result<Sqlite> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.execute_batch("PRAGMA mmap_size = 16000000000; PRAGMA cache_size = -500000;")?;
        Ok(Sqlite { connection, baseline })
    }
}

impl Racer for Sqlite {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let (sql, parameters) = match self.baseline {
            Baseline::Fts5Tuned => tuned_query(request),
            _ => self.query(request),
        };
        let mut statement = self.connection.prepare_cached(&sql)?;
        let hits = statement.query_map(params_from_iter(parameters), hit)?;
        Ok(hits.collect::<Result<_, _>>()?)
    }
}

impl Sqlite {
    /// Returns the contract's SQL and its parameters.
    fn query(&self, request: &Request) -> (String, Vec<String>) {
        let mut conditions = vec!["TRUE".to_owned()];
        let mut parameters = Vec::new();
        if !request.text.is_empty() {
            conditions.push(self.baseline.text_condition(&request.text).to_owned());
            parameters.push(self.baseline.text_parameter(&request.text));
        }
        if !request.roles.is_empty() {
            conditions.push(format!("m.role IN ('{}')", request.roles.join("', '")));
        }
        for (bound, operator) in [(request.since, ">="), (request.until, "<=")] {
            if let Some(instant) = bound {
                parameters.push(decimal(instant));
                conditions.push(format!("m.create_time {operator} ?{}", parameters.len()));
            }
        }
        let order = match self.baseline {
            Baseline::TimeIndex => "m.create_time DESC",
            _ => "m.create_time DESC, m.position DESC, m.rowid DESC",
        };
        let sql = format!(
            "SELECT m.id, m.conversation_id, c.title, m.role, m.create_time, m.content, m.position
             FROM messages m JOIN conversations c ON c.id = m.conversation_id
             WHERE {} ORDER BY {order} LIMIT {}",
            conditions.join(" AND "),
            request.limit.map_or(-1, |limit| limit as i64),
        );
        (sql, parameters)
    }
}

/// Returns the SQL for rows in the order of time: the trigrams of every run propose rows, the newest
/// first, and `LIKE` decides if a phrase of trigrams does not mean the same.
fn tuned_query(request: &Request) -> (String, Vec<String>) {
    let text = &request.text;
    let phrases: Vec<String> = text
        .split(['%', '_', '\0'])
        .filter(|run| run.chars().count() >= 3)
        .map(|run| format!("\"{}\"", run.replace('"', "\"\"")))
        .collect();
    let by_grams = !phrases.is_empty();
    let mut conditions = vec!["TRUE".to_owned()];
    let mut parameters = Vec::new();
    if by_grams {
        parameters.push(phrases.join(" AND "));
        conditions.push("grams MATCH ?1".to_owned());
    }
    let is_decided = by_grams && is_phrase(text);
    if !text.is_empty() && !is_decided {
        parameters.push(format!("%{text}%"));
        let place = parameters.len();
        conditions.push(format!("(o.content LIKE ?{place} OR o.title LIKE ?{place})"));
    }
    if !request.roles.is_empty() {
        conditions.push(format!("o.role IN ('{}')", request.roles.join("', '")));
    }
    let (from, row) = match by_grams {
        true => ("grams JOIN ordered o ON o.n = grams.rowid", "grams.rowid"),
        false => ("ordered o", "o.n"),
    };
    for (bound, operator, end) in [(request.since, ">=", "min"), (request.until, "<=", "max")] {
        if let Some(instant) = bound {
            parameters.push(decimal(instant));
            // The index on time gives the end of the range at once.
            conditions.push(format!(
                "{row} {operator} (SELECT {end}(n) FROM ordered WHERE create_time = (
                     SELECT {end}(create_time) FROM ordered WHERE create_time {operator} ?{}))",
                parameters.len()
            ));
        }
    }
    let sql = format!(
        "SELECT o.id, o.conversation_id, o.title, o.role, o.create_time, o.content, o.position
         FROM {from} WHERE {} ORDER BY {row} DESC LIMIT {}",
        conditions.join(" AND "),
        request.limit.map_or(-1, |limit| limit as i64),
    );
    (sql, parameters)
}

fn hit(row: &Row<'_>) -> rusqlite::Result<Hit<'static>> {
    let text = |at| row.get::<_, Option<String>>(at).map(Option::unwrap_or_default);
    Ok(Hit {
        message_id: text(0)?.into(),
        conversation_id: text(1)?.into(),
        title: text(2)?.into(),
        role: text(3)?.into(),
        time: date::from_stored(&text(4)?),
        content: text(5)?.into(),
        position: row.get(6)?,
    })
}

/// Returns the instant as the corpus stores it: texts compare as their numbers do.
fn decimal(instant: Instant) -> String {
    format!("{}.{:06}", instant.seconds, instant.nanos / 1_000)
}
