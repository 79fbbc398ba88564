//! Writes the rows of the canonical tables, `conversations` and `messages`, for all our writers.

use std::borrow::Cow;

use rusqlite::{Connection, params};

use crate::model::Instant;

/// A row of `conversations`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConversationRow<'a> {
    pub(super) id: &'a str,
    pub(super) title: Option<&'a str>,
    pub(super) create_time: Option<Instant>,
    pub(super) update_time: Option<Instant>,
}

/// A row of `messages`.
#[derive(Clone, Debug)]
pub(super) struct MessageRow<'a> {
    pub(super) id: &'a str,
    pub(super) conversation: &'a str,
    pub(super) role: Option<&'a str>,
    /// The content as it is stored.
    pub(super) content: Cow<'a, str>,
    pub(super) create_time: Option<Instant>,
    pub(super) update_time: Option<Instant>,
    pub(super) position: i64,
}

/// Adds a conversation.
pub(super) fn insert_conversation(
    connection: &Connection,
    row: &ConversationRow<'_>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO conversations (id, create_time, update_time, title) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![row.id, decimal(row.create_time), decimal(row.update_time), row.title])?;
    Ok(())
}

/// Updates a conversation; `None` leaves the stored value.
pub(super) fn update_conversation(
    connection: &Connection,
    row: &ConversationRow<'_>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE conversations SET create_time = coalesce(?2, create_time),
                 update_time = coalesce(?3, update_time), title = coalesce(?4, title) WHERE id = ?1",
        )?
        .execute(params![row.id, decimal(row.create_time), decimal(row.update_time), row.title])?;
    Ok(())
}

/// Updates a conversation that continues: its start time stays. `None` leaves the stored value.
pub(super) fn continue_conversation(
    connection: &Connection,
    row: &ConversationRow<'_>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE conversations SET create_time = coalesce(create_time, ?2),
                 update_time = coalesce(?3, update_time), title = coalesce(?4, title) WHERE id = ?1",
        )?
        .execute(params![row.id, decimal(row.create_time), decimal(row.update_time), row.title])?;
    Ok(())
}

/// Removes a conversation and its messages; returns whether there was one.
pub(super) fn delete_conversation(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("DELETE FROM messages WHERE conversation_id = ?1")?.execute([id])?;
    let deleted =
        connection.prepare_cached("DELETE FROM conversations WHERE id = ?1")?.execute([id])?;
    Ok(deleted > 0)
}

/// Returns whether there is a conversation of an id.
pub(super) fn has_conversation(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM conversations WHERE id = ?1)")?
        .query_row([id], |row| row.get(0))
}

/// Adds a message; returns the id of its row.
///
/// If the id is taken, the conversation's id is put before it, and then a number after it.
pub(super) fn insert_message(
    connection: &Connection,
    row: &MessageRow<'_>,
) -> rusqlite::Result<String> {
    let mut id = row.id.to_owned();
    let mut attempt = 1;
    let mut statement = connection.prepare_cached(
        "INSERT INTO messages (id, conversation_id, role, content, create_time, update_time, position)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING",
    )?;
    while statement.execute(params![
        id,
        row.conversation,
        row.role,
        row.content,
        decimal(row.create_time),
        decimal(row.update_time),
        row.position
    ])? == 0
    {
        id = renamed(row.conversation, row.id);
        if attempt > 1 {
            id.push_str(&format!("#{attempt}"));
        }
        attempt += 1;
    }
    Ok(id)
}

/// Updates the message of the row's id; a time of `None` leaves the stored one.
pub(super) fn update_message(
    connection: &Connection,
    row: &MessageRow<'_>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE messages SET role = ?2, content = ?3, create_time = coalesce(?4, create_time),
                 update_time = coalesce(?5, update_time), position = ?6 WHERE id = ?1",
        )?
        .execute(params![
            row.id,
            row.role,
            row.content,
            decimal(row.create_time),
            decimal(row.update_time),
            row.position
        ])?;
    Ok(())
}

/// Moves a message to another position in its conversation.
pub(super) fn move_message(
    connection: &Connection,
    id: &str,
    position: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE messages SET position = ?2 WHERE id = ?1")?
        .execute(params![id, position])?;
    Ok(())
}

/// Replaces the content of the message at a position, if the message has this role.
pub(super) fn replace_content(
    connection: &Connection,
    conversation: &str,
    position: i64,
    role: &str,
    content: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE messages SET content = ?4
             WHERE conversation_id = ?1 AND position = ?2 AND role = ?3",
        )?
        .execute(params![conversation, position, role, content])?;
    Ok(())
}

/// Appends text to the last message that [`insert_message`] added with this id.
pub(super) fn append_to_message(
    connection: &Connection,
    conversation: &str,
    id: &str,
    text: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE messages SET content = content || ?4 WHERE rowid =
                 (SELECT max(rowid) FROM messages WHERE id IN (?2, ?3) AND conversation_id = ?1)",
        )?
        .execute(params![conversation, id, renamed(conversation, id), text])?;
    Ok(())
}

fn renamed(conversation: &str, id: &str) -> String {
    format!("{conversation}/{id}")
}

fn decimal(time: Option<Instant>) -> Option<String> {
    time.map(Instant::to_decimal)
}
