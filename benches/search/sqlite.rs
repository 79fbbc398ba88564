//! What SQLite does by itself: the contract's SQL as it stands, with an index on time, with FTS5's trigrams.

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use serde::{Deserialize, Serialize};
use verbatim_search::{
    model::{Hit, Instant, Request},
    text::date,
};

use crate::race::Racer;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Baseline {
    Like,
    TimeIndex,
    Fts5,
}

impl Baseline {
    /// Adds to the database at `path` what this baseline needs.
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
            })
            .with_context(|| format!("adding {self:?} to {}", path.display()))
    }

    /// Brings what [`Baseline::build`] added into the form that is quickest to query.
    pub(crate) fn optimize(self, path: &Path) -> Result<()> {
        if self == Baseline::Fts5 {
            let connection = Connection::open(path)?;
            connection.execute_batch(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
                 PRAGMA cache_size = -1000000;
                 INSERT INTO content_grams(content_grams) VALUES ('optimize');
                 INSERT INTO title_grams(title_grams) VALUES ('optimize');",
            )?;
        }
        Ok(())
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
        let mut conditions = Vec::new();
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
            Baseline::Like | Baseline::Fts5 => "m.create_time DESC, m.position DESC, m.rowid DESC",
        };
        let sql = format!(
            "SELECT m.id, m.conversation_id, c.title, m.role, m.create_time, m.content, m.position
             FROM messages m JOIN conversations c ON c.id = m.conversation_id
             WHERE {} ORDER BY {order} LIMIT {}",
            conditions.join(" AND "),
            request.limit.map_or(-1, |limit| limit as i64),
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let hits = statement.query_map(params_from_iter(parameters), hit)?;
        Ok(hits.collect::<Result<_, _>>()?)
    }
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
