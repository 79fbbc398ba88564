//! Reads rows as hits, and reads all messages of one conversation.

use std::borrow::Cow;

use rusqlite::{Row, types::ValueRef};

use super::{
    Database, Result, functions, long_column,
    long_content::{LongContent, LongContents, LongTexts},
};
use verbatim_base::{
    long_text::LongText,
    model::{Hit, Instant},
};
use verbatim_text::content;

/// The content as text: SQLite's LIKE also reads numbers and BLOBs as this text.
const CONTENT: &str = "CAST(m.content AS TEXT)";

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

/// Returns a conversation's messages in reading order: by position, else by time. Long contents are separate.
pub fn conversation(
    database: &Database,
    id: &str,
    raw: bool,
) -> Result<(Vec<Hit<'static>>, LongContents)> {
    let failed = |error| database.error(error);
    let layout = database.layout();
    let position = if layout.position { "m.position, " } else { "" };
    let last = layout.message_key.unwrap_or("id");
    let sql = format!(
        "SELECT {} FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id \
         WHERE m.conversation_id = ?1 \
         ORDER BY {position}verbatim_instant(m.create_time), m.{last}",
        columns(database)?
    );
    let mut statement = database.connection().prepare(&sql).map_err(failed)?;
    let mut rows = statement.query([id]).map_err(failed)?;
    let (mut messages, mut contents) = (Vec::new(), LongContents::default());
    while let Some(row) = rows.next().map_err(failed)? {
        let (hit, long) = hit(database, row, layout.parts && !raw)?;
        contents.keep(messages.len(), long);
        messages.push(hit);
    }
    Ok((messages, contents))
}

pub(super) fn columns(database: &Database) -> Result<String> {
    let layout = database.layout();
    let position = if layout.position { "m.position" } else { "NULL" };
    Ok(format!(
        "CAST(m.id AS TEXT), CAST(m.conversation_id AS TEXT), CAST(c.title AS TEXT), \
         CAST(m.role AS TEXT), m.create_time, {position}, {}",
        content_columns(database)?
    ))
}

/// Returns a select list of three columns: the content as text, or NULL if it is too long, and two columns
/// that [`long`] reads.
fn content_columns(database: &Database) -> Result<String> {
    let key = database.layout().message_key.map_or("NULL".to_owned(), |key| format!("m.{key}"));
    let by_pieces = LongContent::are_readable(database)?;
    Ok(format!("{}, {key}", long_column::columns(CONTENT, "m.content", by_pieces)))
}

/// Returns the content of a row if it is too long to be read in one piece. `from` is the first of the
/// [`content_columns`].
fn long<'d>(
    database: &'d Database,
    row: &Row<'_>,
    from: usize,
) -> rusqlite::Result<Option<LongContent<'d>>> {
    let (length, key): (_, Option<i64>) = (row.get(from + 1)?, row.get(from + 2)?);
    Ok(key.and_then(|key| LongContent::if_long(database, key, length)))
}

/// Reads a row of [`columns`]. Returns a long content separately. `parts` tells whether to decode JSON parts.
pub(super) fn hit(
    database: &Database,
    row: &Row<'_>,
    parts: bool,
) -> Result<(Hit<'static>, Option<LongText>)> {
    let read = || {
        let stored = text(row, 6)?;
        let decoded = if parts { content::decode_parts(&stored) } else { None };
        let hit = Hit {
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
        };
        Ok((hit, long(database, row, 6)?))
    };
    let (hit, long) = read().map_err(|error| database.error(error))?;
    let texts = long.map(|long| long.texts(parts, None)).transpose()?;
    Ok((hit, texts.map(LongTexts::into_shown)))
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
