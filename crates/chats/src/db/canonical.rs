//! Writes rows of the canonical tables, `conversations` and `messages`, for all writers of this crate.

use std::borrow::Cow;

use rusqlite::{Connection, Params, Result, Statement, params};

use verbatim_base::model::Instant;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConversationRow<'a> {
    pub(super) id: &'a str,
    pub(super) title: Option<&'a str>,
    pub(super) create_time: Option<Instant>,
    pub(super) update_time: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(super) struct MessageRow<'a> {
    pub(super) id: &'a str,
    pub(super) conversation: &'a str,
    pub(super) role: Option<&'a str>,
    pub(super) content: Cow<'a, str>,
    pub(super) create_time: Option<Instant>,
    pub(super) update_time: Option<Instant>,
    pub(super) position: i64,
}

impl ConversationRow<'_> {
    pub(super) fn insert(&self, connection: &Connection) -> Result<()> {
        let sql = "INSERT INTO conversations (id, create_time, update_time, title)
                   VALUES (?1, ?2, ?3, ?4)";
        self.execute(connection, sql)
    }

    /// Updates the conversation. A field that is `None` keeps its stored value.
    pub(super) fn update(&self, connection: &Connection) -> Result<()> {
        let sql = "UPDATE conversations SET create_time = coalesce(?2, create_time),
                       update_time = coalesce(?3, update_time), title = coalesce(?4, title)
                   WHERE id = ?1";
        self.execute(connection, sql)
    }

    /// Adds the conversation. If the conversation is already stored, updates it but keeps its start time.
    pub(super) fn insert_or_continue(&self, connection: &Connection) -> Result<()> {
        let sql = "INSERT INTO conversations (id, create_time, update_time, title)
                   VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (id) DO UPDATE SET title = coalesce(excluded.title, title),
                       create_time = coalesce(create_time, excluded.create_time),
                       update_time = coalesce(excluded.update_time, update_time)";
        self.execute(connection, sql)
    }

    fn execute(&self, connection: &Connection, sql: &str) -> Result<()> {
        let created = decimal(self.create_time);
        let updated = decimal(self.update_time);
        execute(connection, sql, params![self.id, created, updated, self.title]).map(drop)
    }
}

/// The SQL that adds a message whose id is unused; see [`MessageRow::insert_new`].
pub(super) const NEW_MESSAGE: &str = "INSERT INTO messages (id, conversation_id, role, content,
        create_time, update_time, position)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

impl MessageRow<'_> {
    /// Adds the message with the statement [`NEW_MESSAGE`]. Its id must be unused.
    pub(super) fn insert_new(&self, statement: &mut Statement<'_>) -> Result<()> {
        self.insert_as(self.id, statement).map(drop)
    }

    fn insert_as(&self, id: &str, statement: &mut Statement<'_>) -> Result<usize> {
        let created = decimal(self.create_time);
        let updated = decimal(self.update_time);
        let MessageRow { conversation, role, content, position, .. } = self;
        statement.execute(params![id, conversation, role, content, created, updated, position])
    }

    /// Adds the message; returns the id of its row.
    ///
    /// If the id is already used, puts the conversation's id before it, and if necessary a number after it.
    pub(super) fn insert(&self, connection: &Connection) -> Result<String> {
        let mut id = self.id.to_owned();
        let mut attempt = 1;
        let sql = format!("{NEW_MESSAGE} ON CONFLICT (id) DO NOTHING");
        let mut statement = connection.prepare_cached(&sql)?;
        while self.insert_as(&id, &mut statement)? == 0 {
            id = renamed(self.conversation, self.id);
            if attempt > 1 {
                id.push_str(&format!("#{attempt}"));
            }
            attempt += 1;
        }
        Ok(id)
    }

    /// Updates the message with this id. A time that is `None` keeps its stored value.
    pub(super) fn update(&self, connection: &Connection) -> Result<()> {
        let sql = "UPDATE messages SET role = ?2, content = ?3,
                       create_time = coalesce(?4, create_time),
                       update_time = coalesce(?5, update_time), position = ?6 WHERE id = ?1";
        let created = decimal(self.create_time);
        let updated = decimal(self.update_time);
        let MessageRow { id, role, content, position, .. } = self;
        let values = params![id, role, content, created, updated, position];
        execute(connection, sql, values).map(drop)
    }
}

pub(super) fn delete_conversation(connection: &Connection, id: &str) -> Result<bool> {
    execute(connection, "DELETE FROM messages WHERE conversation_id = ?1", [id])?;
    Ok(execute(connection, "DELETE FROM conversations WHERE id = ?1", [id])? > 0)
}

/// Appends text to the last message that [`MessageRow::insert`] added with this id.
pub(super) fn append_to_message(
    connection: &Connection,
    conversation: &str,
    id: &str,
    text: &str,
) -> Result<()> {
    let sql = "UPDATE messages SET content = content || ?4 WHERE rowid =
                   (SELECT max(rowid) FROM messages WHERE id IN (?2, ?3) AND conversation_id = ?1)";
    let values = params![conversation, id, renamed(conversation, id), text];
    execute(connection, sql, values).map(drop)
}

/// Runs a cached statement; returns how many rows it changed.
pub(super) fn execute(connection: &Connection, sql: &str, values: impl Params) -> Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

fn renamed(conversation: &str, id: &str) -> String {
    format!("{conversation}/{id}")
}

fn decimal(time: Option<Instant>) -> Option<String> {
    time.map(Instant::to_decimal)
}
