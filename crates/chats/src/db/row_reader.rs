//! Reads the messages of a database for an index: single messages by key, or all in key order.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rusqlite::{Statement, types::ValueRef};

use super::{Database, Result, functions, rows, search};
use verbatim_base::model::{Instant, Request};
use verbatim_text::content;

/// A row of `conversations`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationEntry {
    /// The rowid in `conversations`.
    pub key: i64,
    /// The id, as text.
    pub id: String,
    /// The title as SQLite's LIKE reads it; `None` for NULL.
    pub title: Option<Vec<u8>>,
    /// Whether the id is stored as text.
    pub is_plain: bool,
}

/// A row of `messages`; empty strings for NULL.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The rowid in `messages`.
    pub key: i64,
    /// The id, as text.
    pub id: &'a str,
    /// The role, as text.
    pub role: &'a str,
    /// Whether the role is stored as a text, or is NULL.
    pub is_text_role: bool,
    /// The instant that the time denotes.
    pub time: Option<Instant>,
    /// The position, if it is an integer.
    pub position: Option<i64>,
    /// Whether the position is an integer or NULL. Then `position` sorts like the column.
    pub is_plain: bool,
    /// The content as SQLite's LIKE reads it; `None` for NULL.
    pub stored: Option<&'a [u8]>,
    /// The text of JSON parts, if the database stores JSON parts and this content is in that form.
    pub decoded: Option<&'a str>,
}

/// A row of `messages`, as [`RowReader::scan`] reads it.
#[derive(Clone, Debug)]
pub struct Scanned<'a> {
    /// The rowid in `messages`.
    pub key: i64,
    /// The id, as text.
    pub id: Cow<'a, str>,
    /// The role, as text.
    pub role: Cow<'a, str>,
    /// Whether the role is stored as a text, or is NULL.
    pub is_text_role: bool,
    /// The instant that the time denotes.
    pub time: Option<Instant>,
    /// The position, if it is an integer.
    pub position: Option<i64>,
    /// The content as SQLite's LIKE reads it; `None` for NULL.
    pub stored: Option<&'a [u8]>,
    /// The id of the conversation; `None` if it is not stored as text.
    pub conversation_id: Option<&'a [u8]>,
    /// Whether the position is an integer or NULL, and the conversation's id is text or NULL.
    pub is_plain: bool,
}

const CONTENT: &str = "CAST(content AS TEXT)";

const KEYS_AT_ONCE: usize = 500;

/// Whether a role is a text or NULL. A BLOB or a number never equals a text.
const IS_TEXT_ROLE: &str = "typeof(role) IN ('text', 'null')";

/// A reader of all messages in one state of a database.
#[derive(Debug)]
pub struct RowReader<'d> {
    database: &'d Database,
    message: Statement<'d>,
    keys: (&'static str, &'static str),
    id: String,
    role: String,
    decoded: String,
}

impl<'d> RowReader<'d> {
    /// Returns a row reader; `None` if the rows of the database have no keys.
    pub fn open(database: &'d Database) -> Result<Option<RowReader<'d>>> {
        let layout = database.layout();
        let Some(keys) = layout.message_key.zip(layout.conversation_key) else { return Ok(None) };
        // With these settings, a sort that is larger than the cache uses temporary files and not memory.
        let settings = "PRAGMA temp_store = FILE; PRAGMA cache_size = -65536";
        database.query(|connection| connection.execute_batch(settings))?;
        let position = if layout.position { "position" } else { "NULL" };
        let sql = format!(
            "SELECT CAST(id AS TEXT), CAST(role AS TEXT), create_time, {position}, \
             {CONTENT}, {IS_TEXT_ROLE} FROM messages WHERE {} = ?1",
            keys.0
        );
        let message = database.connection().prepare(&sql).map_err(|error| database.error(error))?;
        Ok(Some(RowReader {
            database,
            message,
            keys,
            id: String::new(),
            role: String::new(),
            decoded: String::new(),
        }))
    }

    /// Returns how many messages the database has.
    pub fn count(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM messages";
        self.database.query(|connection| {
            connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
        })
    }

    /// Returns the keys of each message and its conversation, in result order, 16 bytes per message. Counts
    /// the messages read so far in `seen`.
    pub fn order(&self, seen: &Arc<AtomicU64>) -> Result<Vec<[i64; 2]>> {
        self.database.query(|connection| functions::count_instants(connection, seen))?;
        search::keys(self.database, &Request::default(), self.keys.0, self.keys.1)
    }

    /// Returns all conversations by ascending key, also those without messages.
    pub fn conversations(&self) -> Result<Vec<ConversationEntry>> {
        let key = self.keys.1;
        let sql = format!(
            "SELECT {key}, CAST(id AS TEXT), CAST(title AS TEXT), typeof(id) = 'text' \
             FROM conversations ORDER BY {key}"
        );
        self.database.query(|connection| {
            connection
                .prepare(&sql)?
                .query_map([], |row| {
                    Ok(ConversationEntry {
                        key: row.get(0)?,
                        id: rows::text(row, 1)?,
                        title: bytes(row.get_ref(2)?).map(<[u8]>::to_vec),
                        is_plain: row.get(3)?,
                    })
                })?
                .collect()
        })
    }

    /// Returns whether a constraint ensures that ids are unique, byte for byte.
    pub fn has_unique_ids(&self) -> Result<bool> {
        let sql = "SELECT count(*) > 0 FROM pragma_index_list('conversations') AS list \
                   WHERE list.\"unique\" AND list.origin IN ('pk', 'u') AND NOT list.partial \
                   AND (SELECT count(*) = 1 AND min(lower(name)) = 'id' AND min(coll) = 'BINARY' \
                        FROM pragma_index_xinfo(list.name) WHERE \"key\")";
        self.database.query(|connection| connection.query_row(sql, [], |row| row.get(0)))
    }

    /// Returns the keys of messages with the keys of their conversations. Leaves out messages without a
    /// conversation.
    pub fn with_conversations(&self, messages: &[i64]) -> Result<Vec<[i64; 2]>> {
        let (message, conversation) = self.keys;
        self.database.query(|connection| {
            let mut pairs = Vec::with_capacity(messages.len());
            for some in messages.chunks(KEYS_AT_ONCE) {
                let some: Vec<String> = some.iter().map(i64::to_string).collect();
                let sql = format!(
                    "SELECT m.{message}, c.{conversation} FROM messages AS m \
                     JOIN conversations AS c ON c.id = m.conversation_id \
                     WHERE m.{message} IN ({})",
                    some.join(", ")
                );
                let mut statement = connection.prepare(&sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    pairs.push([row.get(0)?, row.get(1)?]);
                }
            }
            Ok(pairs)
        })
    }

    /// Calls `each` with every message whose key is above `after`, in key order, until `each` breaks. Returns
    /// whether the scan reached the end.
    pub fn scan(
        &self,
        after: Option<i64>,
        each: &mut dyn FnMut(Scanned<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        let key = self.keys.0;
        let position = if self.database.layout().position { "position" } else { "NULL" };
        // Each page is read once, so SQLite's page cache should fit into the processor's cache.
        let small = "PRAGMA cache_size = -512";
        self.database.query(|connection| connection.execute_batch(small))?;
        let from = after.map_or_else(String::new, |after| format!("WHERE {key} > {after}"));
        let sql = format!(
            "SELECT {key}, CAST(id AS TEXT), CAST(role AS TEXT), create_time, {position}, \
             {CONTENT}, conversation_id, {IS_TEXT_ROLE} FROM messages {from} ORDER BY {key}"
        );
        self.database.query(|connection| {
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let position = row.get_ref(4)?;
                let conversation = row.get_ref(6)?;
                let key = row.get(0)?;
                let (position, is_plain) = self::position(position);
                let scanned = Scanned {
                    key,
                    id: String::from_utf8_lossy(bytes(row.get_ref(1)?).unwrap_or_default()),
                    role: String::from_utf8_lossy(bytes(row.get_ref(2)?).unwrap_or_default()),
                    is_text_role: row.get(7)?,
                    time: functions::instant(row.get_ref(3)?),
                    position,
                    stored: bytes(row.get_ref(5)?),
                    conversation_id: match conversation {
                        ValueRef::Text(id) => Some(id),
                        _ => None,
                    },
                    is_plain: is_plain
                        && matches!(conversation, ValueRef::Text(_) | ValueRef::Null),
                };
                if each(scanned).is_break() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Calls `with` with the message that has a key, if there is one.
    pub fn message<T>(&mut self, key: i64, with: impl FnOnce(Row<'_>) -> T) -> Result<Option<T>> {
        let is_parts = self.database.layout().parts;
        let RowReader { database, message, id, role, decoded, .. } = self;
        let database = *database;
        database.query(|_| {
            let mut rows = message.query([key])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            for (text, column) in [(&mut *id, 0), (&mut *role, 1)] {
                text.clear();
                let bytes = bytes(row.get_ref(column)?).unwrap_or_default();
                text.push_str(&String::from_utf8_lossy(bytes));
            }
            let stored = bytes(row.get_ref(4)?);
            let text = stored
                .filter(|_| is_parts)
                .and_then(|stored| content::decode_parts(&String::from_utf8_lossy(stored)));
            let is_decoded = text.is_some();
            if let Some(text) = text {
                *decoded = text;
            }
            let (position, is_plain) = position(row.get_ref(3)?);
            Ok(Some(with(Row {
                key,
                id,
                role,
                is_text_role: row.get(5)?,
                time: functions::instant(row.get_ref(2)?),
                position,
                is_plain,
                stored,
                decoded: is_decoded.then_some(decoded.as_str()),
            })))
        })
    }
}

fn bytes(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    }
}

/// Returns the position if it is an integer, and whether it is an integer or NULL.
fn position(value: ValueRef<'_>) -> (Option<i64>, bool) {
    match value {
        ValueRef::Integer(position) => (Some(position), true),
        ValueRef::Null => (None, true),
        _ => (None, false),
    }
}
