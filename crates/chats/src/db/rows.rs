//! Reads rows as hits, and reads all messages of one conversation.

use std::borrow::Cow;

use rusqlite::{Row, types::ValueRef};

use super::{Database, Layout, Result, functions};
use verbatim_base::model::{Hit, Instant};
use verbatim_text::content;

/// The content as text: SQLite's LIKE also reads numbers and BLOBs as this text.
pub(super) const CONTENT: &str = "CAST(m.content AS TEXT)";

/// The data that helps people to distinguish conversations in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The conversation's id, from `conversations.id`.
    pub id: String,
    /// `conversations.title`; empty for NULL.
    pub title: String,
    /// The number of messages of the conversation.
    pub messages: u32,
    /// The time of the conversation's last message.
    pub last: Option<Instant>,
}

/// Returns a conversation's messages in reading order: by position, else by time.
pub fn conversation(database: &Database, id: &str, raw: bool) -> Result<Vec<Hit<'static>>> {
    let layout = database.layout();
    let position = if layout.position { "m.position, " } else { "" };
    let last = layout.message_key.unwrap_or("id");
    let sql = format!(
        "SELECT {} FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id \
         WHERE m.conversation_id = ?1 \
         ORDER BY {position}verbatim_instant(m.create_time), m.{last}",
        columns(layout)
    );
    database.query(|connection| {
        let mut statement = connection.prepare(&sql)?;
        statement.query_map([id], |row| hit(row, layout.parts && !raw))?.collect()
    })
}

pub(super) fn columns(layout: &Layout) -> String {
    let position = if layout.position { "m.position" } else { "NULL" };
    format!(
        "CAST(m.id AS TEXT), CAST(m.conversation_id AS TEXT), CAST(c.title AS TEXT), \
         CAST(m.role AS TEXT), m.create_time, {position}, {CONTENT}"
    )
}

/// Reads a row of [`columns`]. `parts` tells whether to decode JSON parts.
pub(super) fn hit(row: &Row<'_>, parts: bool) -> rusqlite::Result<Hit<'static>> {
    let stored = text(row, 6)?;
    let decoded = if parts { content::decode_parts(&stored) } else { None };
    Ok(Hit {
        message_id: text(row, 0)?.into(),
        conversation_id: text(row, 1)?.into(),
        title: text(row, 2)?.into(),
        role: text(row, 3)?.into(),
        time: functions::instant(row.get_ref(4)?),
        content: decoded.unwrap_or(stored).into(),
        position: match row.get_ref(5)? {
            ValueRef::Integer(position) => Some(position),
            _ => None,
        },
    })
}

/// Returns the text of a column: empty for NULL, with U+FFFD for invalid UTF-8.
pub(super) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(lent_text(row, column)?.into_owned())
}

/// Returns the same text as [`text`], borrowed if possible.
pub(super) fn lent_text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes),
        _ => Cow::Borrowed(""),
    })
}
