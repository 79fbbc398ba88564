//! The branches of conversations: edited prompts and regenerated answers.

use std::collections::HashMap;

use super::{Database, Result, rows};

/// Returns the messages of a conversation on branches that the chat service does not show. Maps each
/// message's id to the id of the message before it, or to an empty text.
pub fn branches(database: &Database, conversation: &str) -> Result<HashMap<String, String>> {
    database.query(|connection| {
        if !connection.table_exists(None, "verbatim_branches")? {
            return Ok(HashMap::new());
        }
        // A database may store a message under an id that differs from its id in the export.
        let sql = "SELECT m.id, coalesce(v.export_id, m.id), b.follows FROM messages AS m
                       LEFT JOIN verbatim_messages AS v ON v.message_id = m.id
                       LEFT JOIN verbatim_branches AS b ON b.message_id = m.id
                   WHERE m.conversation_id = ?1";
        let mut statement = connection.prepare(sql)?;
        let mut found = statement.query([conversation])?;
        let mut ids: HashMap<String, String> = HashMap::new();
        let mut follows: Vec<(String, String)> = Vec::new();
        while let Some(row) = found.next()? {
            let id = rows::text(row, 0)?;
            if let Some(before) = row.get::<_, Option<String>>(2)? {
                follows.push((id.clone(), before));
            }
            ids.insert(rows::text(row, 1)?, id);
        }
        let follows = follows.into_iter();
        Ok(follows
            .map(|(id, before)| (id, ids.get(&before).cloned().unwrap_or_default()))
            .collect())
    })
}
