//! Reads roles, times and models of all messages, to count them.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use super::{Database, Error, functions, rows};
use crate::model::Instant;

/// Calls `take` with the role and the time of every message that has a conversation.
pub fn messages(
    database: &Database,
    take: &mut dyn FnMut(&str, Option<Instant>),
) -> Result<(), Error> {
    let sql = "SELECT CAST(m.role AS TEXT), m.create_time FROM messages AS m \
               JOIN conversations AS c ON c.id = m.conversation_id";
    let mut read = || -> rusqlite::Result<()> {
        let mut statement = database.connection().prepare(sql)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            take(&rows::text(row, 0)?, functions::instant(row.get_ref(1)?));
        }
        Ok(())
    };
    read().map_err(|error| database.error(error))
}

/// Returns how many messages each model wrote; empty if the database does not name models.
pub fn models(database: &Database) -> Result<BTreeMap<String, u64>, Error> {
    let connection = database.connection();
    let read = || -> rusqlite::Result<BTreeMap<String, u64>> {
        let mut models = BTreeMap::new();
        if !has_table(connection, "verbatim_messages")? {
            return Ok(models);
        }
        let sql = "SELECT model, count(*) FROM verbatim_messages WHERE model <> '' GROUP BY model";
        let mut statement = connection.prepare(sql)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let count: i64 = row.get(1)?;
            models.insert(rows::text(row, 0)?, count.unsigned_abs());
        }
        Ok(models)
    };
    read().map_err(|error| database.error(error))
}

/// Returns how many messages of some conversations each model wrote.
pub(crate) fn models_of(
    database: &Database,
    conversations: &HashSet<String>,
) -> Result<BTreeMap<String, u64>, Error> {
    let connection = database.connection();
    let read = || -> rusqlite::Result<BTreeMap<String, u64>> {
        let mut models = BTreeMap::new();
        if !has_table(connection, "verbatim_messages")? {
            return Ok(models);
        }
        let sql = "SELECT v.model FROM messages AS m JOIN verbatim_messages AS v \
                   ON v.message_id = m.id WHERE m.conversation_id = ?1 AND v.model <> ''";
        let mut statement = connection.prepare(sql)?;
        for id in conversations {
            let mut found = statement.query([id])?;
            while let Some(row) = found.next()? {
                *models.entry(rows::text(row, 0)?).or_default() += 1;
            }
        }
        Ok(models)
    };
    read().map_err(|error| database.error(error))
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(connection.query_row(sql, [name], |_| Ok(())).optional()?.is_some())
}
