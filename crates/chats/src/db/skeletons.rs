//! The messages of conversations without their texts.

use std::collections::HashMap;

use rusqlite::params_from_iter;

use super::{Database, Result, functions, rows};
use verbatim_base::model::Instant;

/// The title of a conversation and the ids, positions and times of its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skeleton {
    /// The title of the conversation; empty for NULL.
    pub title: String,
    /// The messages in reading order: id, position, time.
    pub messages: Vec<(String, Option<i64>, Option<Instant>)>,
}

/// Returns the skeletons of some conversations, by id, with one pass over the messages.
pub fn skeletons(database: &Database, ids: &[&str]) -> Result<HashMap<String, Skeleton>> {
    let layout = database.layout();
    let position = if layout.position { "m.position" } else { "NULL" };
    let last = layout.message_key.unwrap_or("id");
    let sql = format!(
        "SELECT CAST(m.conversation_id AS TEXT), CAST(c.title AS TEXT), CAST(m.id AS TEXT), \
         {position} AS position, m.create_time \
         FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id \
         WHERE m.conversation_id IN ({}) \
         ORDER BY {position}, verbatim_instant(m.create_time), m.{last}",
        vec!["?"; ids.len()].join(", ")
    );
    database.query(|connection| {
        let mut statement = connection.prepare(&sql)?;
        let mut found = statement.query(params_from_iter(ids))?;
        let mut skeletons: HashMap<String, Skeleton> = HashMap::new();
        while let Some(row) = found.next()? {
            let skeleton = skeletons.entry(rows::text(row, 0)?).or_default();
            if skeleton.messages.is_empty() {
                skeleton.title = rows::text(row, 1)?;
            }
            let position = row.get_ref(3)?.as_i64().ok();
            let time = functions::instant(row.get_ref(4)?);
            skeleton.messages.push((rows::text(row, 2)?, position, time));
        }
        Ok(skeletons)
    })
}
