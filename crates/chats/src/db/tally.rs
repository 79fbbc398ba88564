//! Reads roles, times and models of all messages, to count them.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use rusqlite::{Connection, Row};

use super::{Database, Result, functions, rows};
use verbatim_base::model::Instant;

/// The data of a message for counts.
#[derive(Clone, Copy, Debug)]
pub struct MessageFacts<'a> {
    /// The id of the conversation, as text.
    pub conversation: &'a str,
    /// The role of the message; empty for NULL.
    pub role: &'a str,
    /// The time of the message; `None` if the stored value is not a valid time.
    pub time: Option<Instant>,
}

/// Calls `take` with the data of every message that has a conversation.
pub fn messages(database: &Database, take: &mut dyn FnMut(MessageFacts<'_>)) -> Result<()> {
    let sql = "SELECT CAST(c.id AS TEXT), CAST(m.role AS TEXT), m.create_time FROM messages AS m \
               JOIN conversations AS c ON c.id = m.conversation_id";
    database.query(|connection| {
        let mut statement = connection.prepare(sql)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            with_facts(row, &mut *take)?;
        }
        Ok(())
    })
}

/// Returns the number of messages by each model; empty if the database does not store models.
pub fn models(database: &Database) -> Result<BTreeMap<String, u64>> {
    database.query(|connection| {
        if !has_columns(connection, "verbatim_messages", &["message_id", "model"])? {
            return Ok(BTreeMap::new());
        }
        let sql = "SELECT model, count(*) FROM verbatim_messages WHERE model <> '' GROUP BY model";
        connection
            .prepare(sql)?
            .query_map([], |row| Ok((rows::text(row, 0)?, row.get::<_, i64>(1)?.unsigned_abs())))?
            .collect()
    })
}

/// Returns the counts of [`models`] for only the messages that pass `accepts`.
pub fn models_where(
    database: &Database,
    accepts: &mut dyn FnMut(MessageFacts<'_>) -> bool,
) -> Result<BTreeMap<String, u64>> {
    database.query(|connection| {
        let mut models = BTreeMap::new();
        if !has_columns(connection, "verbatim_messages", &["message_id", "model"])? {
            return Ok(models);
        }
        let sql = "SELECT CAST(c.id AS TEXT), CAST(m.role AS TEXT), m.create_time, \
                       CAST(v.model AS TEXT) \
                   FROM verbatim_messages AS v JOIN messages AS m ON m.id = v.message_id \
                       JOIN conversations AS c ON c.id = m.conversation_id WHERE v.model <> ''";
        let mut statement = connection.prepare(sql)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let mut is_taken = false;
            with_facts(row, &mut |facts| is_taken = accepts(facts))?;
            if is_taken {
                *models.entry(rows::text(row, 3)?).or_default() += 1;
            }
        }
        Ok(models)
    })
}

/// Returns the models that answered in each conversation, by conversation id; empty if none are stored.
///
/// If no message of a conversation has a model, takes the model that the export names for the conversation.
pub fn models_by_conversation(database: &Database) -> Result<HashMap<String, Vec<String>>> {
    database.query(|connection| {
        let mut models: HashMap<String, Vec<String>> = HashMap::new();
        if has_columns(connection, "verbatim_messages", &["message_id", "model"])? {
            let sql = "SELECT DISTINCT CAST(m.conversation_id AS TEXT), CAST(v.model AS TEXT) \
                       FROM verbatim_messages AS v JOIN messages AS m ON m.id = v.message_id \
                       WHERE v.model <> ''";
            let mut statement = connection.prepare(sql)?;
            let mut found = statement.query([])?;
            while let Some(row) = found.next()? {
                models.entry(rows::text(row, 0)?).or_default().push(rows::text(row, 1)?);
            }
        }
        if has_columns(connection, "verbatim_conversations", &["conversation_id", "model"])? {
            let sql = "SELECT CAST(conversation_id AS TEXT), CAST(model AS TEXT) \
                       FROM verbatim_conversations WHERE model <> ''";
            let mut statement = connection.prepare(sql)?;
            let mut found = statement.query([])?;
            while let Some(row) = found.next()? {
                if let Entry::Vacant(entry) = models.entry(rows::text(row, 0)?) {
                    entry.insert(vec![rows::text(row, 1)?]);
                }
            }
        }
        Ok(models)
    })
}

/// Calls `take` with the message data in the first three columns of a row.
fn with_facts(row: &Row<'_>, take: &mut dyn FnMut(MessageFacts<'_>)) -> rusqlite::Result<()> {
    let conversation = rows::text(row, 0)?;
    let role = rows::text(row, 1)?;
    let time = functions::instant(row.get_ref(2)?);
    take(MessageFacts { conversation: &conversation, role: &role, time });
    Ok(())
}

pub(super) fn has_columns(
    connection: &Connection,
    table: &str,
    columns: &[&str],
) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get::<_, String>(0))?;
    let names = names.collect::<Result<Vec<String>, _>>()?;
    Ok(columns.iter().all(|column| names.iter().any(|name| name == column)))
}
