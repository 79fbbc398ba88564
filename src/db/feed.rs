//! Reads every message of a database in result order, for an index.

use rusqlite::{Statement, types::ValueRef};

use super::{Database, Error, functions, search};
use crate::{
    model::{Instant, Request},
    text::content,
};

/// A conversation as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The row's key.
    pub key: i64,
    /// Its id, as text.
    pub id: String,
    /// Its title as SQLite's LIKE reads it; `None` for NULL.
    pub title: Option<Vec<u8>>,
}

/// A message as it stands in the database; empty strings for NULL.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its id, as text.
    pub id: &'a str,
    /// Its role, as text.
    pub role: &'a str,
    /// The instant that its time denotes.
    pub time: Option<Instant>,
    /// Its position, where that is an integer.
    pub position: Option<i64>,
    /// The content as SQLite's LIKE reads it; `None` for NULL.
    pub stored: Option<&'a [u8]>,
    /// The text that JSON parts hold, where the database is of those and this is one.
    pub decoded: Option<&'a str>,
}

/// All messages of one state of a database.
#[derive(Debug)]
pub struct Feed<'d> {
    database: &'d Database,
    message: Statement<'d>,
    keys: (&'static str, &'static str),
    id: String,
    role: String,
    decoded: String,
}

impl<'d> Feed<'d> {
    /// Returns a feed; `None` for a database whose rows have no key to fetch them by.
    pub fn of(database: &'d Database) -> Result<Option<Feed<'d>>, Error> {
        let layout = database.layout();
        let Some(keys) = layout.message_key.zip(layout.conversation_key) else { return Ok(None) };
        // Sorting what is larger than the cache takes temporary files, not memory.
        let settings = "PRAGMA temp_store = FILE; PRAGMA cache_size = -65536";
        let connection = database.connection();
        connection.execute_batch(settings).map_err(|error| database.error(error))?;
        let position = if layout.position { "position" } else { "NULL" };
        let sql = format!(
            "SELECT CAST(id AS TEXT), CAST(role AS TEXT), create_time, {position}, \
             CAST(content AS TEXT) FROM messages WHERE {} = ?1",
            keys.0
        );
        let message = connection.prepare(&sql).map_err(|error| database.error(error))?;
        let (id, role, decoded) = Default::default();
        Ok(Some(Feed { database, message, keys, id, role, decoded }))
    }

    /// Returns the keys of every message and its conversation, in result order: 16 bytes each.
    pub fn order(&self) -> Result<Vec<[i64; 2]>, Error> {
        search::keys(self.database, &Request::default(), self.keys)
    }

    /// Returns every conversation, by key.
    pub fn conversations(&self) -> Result<Vec<Conversation>, Error> {
        let key = self.keys.1;
        let sql = format!(
            "SELECT {key}, CAST(id AS TEXT), CAST(title AS TEXT) FROM conversations ORDER BY {key}"
        );
        let read = || -> rusqlite::Result<Vec<Conversation>> {
            let mut statement = self.database.connection().prepare(&sql)?;
            let mut rows = statement.query([])?;
            let mut conversations = Vec::new();
            while let Some(row) = rows.next()? {
                conversations.push(Conversation {
                    key: row.get(0)?,
                    id: String::from_utf8_lossy(bytes(row.get_ref(1)?).unwrap_or_default())
                        .into_owned(),
                    title: bytes(row.get_ref(2)?).map(<[u8]>::to_vec),
                });
            }
            Ok(conversations)
        };
        read().map_err(|error| self.database.error(error))
    }

    /// Calls `with` with the message of a key.
    pub fn message<T>(
        &mut self,
        key: i64,
        with: impl FnOnce(Row<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        let is_parts = self.database.layout().parts;
        let Feed { database, message, id, role, decoded, .. } = self;
        let read = || -> rusqlite::Result<Option<T>> {
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
            Ok(Some(with(Row {
                id,
                role,
                time: functions::instant(row.get_ref(2)?),
                position: match row.get_ref(3)? {
                    ValueRef::Integer(position) => Some(position),
                    _ => None,
                },
                stored,
                decoded: is_decoded.then_some(decoded.as_str()),
            })))
        };
        read().map_err(|error| database.error(error))
    }
}

fn bytes(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    }
}
