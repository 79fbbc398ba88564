//! Merges one conversation: what is new of it is added, what changed is updated.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Row, params, types::ValueRef};

use super::Changes;
use crate::{
    db::schema,
    model::{Conversation, Instant, Message, Origin},
    text::date,
};

/// Whether a merge may write, or only say whether it would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Compare,
    Write,
}

/// One merge of one conversation.
pub(super) struct Merge<'a> {
    pub(super) connection: &'a Connection,
    /// Whether content is kept as the JSON of parts.
    pub(super) parts: bool,
    pub(super) mode: Mode,
}

/// A conversation as it is stored.
struct StoredConversation {
    create_time: Option<String>,
    update_time: Option<String>,
    title: Option<String>,
    source: Option<String>,
    model: Option<String>,
    link: Option<String>,
    archived: bool,
    starred: bool,
    origin: Option<Origin>,
}

/// A message as it is stored.
struct StoredMessage {
    id: String,
    role: Option<String>,
    content: Option<String>,
    create_time: Option<String>,
    update_time: Option<String>,
    position: Option<i64>,
    /// What the export calls it: its id, with a number where the conversation repeats it.
    key: String,
    model: Option<String>,
}

impl Merge<'_> {
    /// Merges a conversation; returns what changed, or would change, and the id of its row.
    pub(super) fn conversation(
        &self,
        source: &str,
        new: &Conversation,
        met: &HashSet<String>,
    ) -> rusqlite::Result<(Changes, String)> {
        let mut id = new.id.clone();
        let mut stored = self.stored(&id)?;
        // Two services may use the same id.
        while stored.as_ref().is_some_and(|it| it.source.as_deref().is_some_and(|it| it != source))
        {
            id = format!("{source}/{id}");
            stored = self.stored(&id)?;
        }
        let changes = match stored {
            None => self.insert(source, &id, new)?,
            Some(stored) => {
                let again = met.contains(&id);
                self.update(source, &id, new, &stored, again)?
            }
        };
        Ok((changes, id))
    }

    fn stored(&self, id: &str) -> rusqlite::Result<Option<StoredConversation>> {
        // Our own tables come with the first write.
        let mut statement = self.prepare(
            "SELECT c.create_time, c.update_time, c.title, v.source, v.model, v.link, v.archived, v.starred,
                 t.file, t.session, t.project, t.folder, t.branch
             FROM conversations c LEFT JOIN verbatim_conversations v ON v.conversation_id = c.id
                 LEFT JOIN verbatim_transcripts t ON t.conversation_id = c.id
             WHERE c.id = ?1",
        )?;
        statement
            .query_row([id], |row| {
                Ok(StoredConversation {
                    create_time: text(row, 0)?,
                    update_time: text(row, 1)?,
                    title: text(row, 2)?,
                    source: text(row, 3)?,
                    model: text(row, 4)?,
                    link: text(row, 5)?,
                    archived: row.get::<_, Option<bool>>(6)?.unwrap_or_default(),
                    starred: row.get::<_, Option<bool>>(7)?.unwrap_or_default(),
                    origin: match text(row, 8)? {
                        Some(file) => Some(Origin {
                            file,
                            session: text(row, 9)?,
                            project: text(row, 10)?,
                            folder: text(row, 11)?,
                            branch: text(row, 12)?,
                        }),
                        None => None,
                    },
                })
            })
            .optional()
    }

    /// Adds a conversation that is not there.
    fn insert(&self, source: &str, id: &str, new: &Conversation) -> rusqlite::Result<Changes> {
        let changes = Changes {
            new_conversations: 1,
            new_messages: new.messages.len() as u64,
            ..Changes::default()
        };
        if self.mode == Mode::Compare {
            return Ok(changes);
        }
        self.prepare(
            "INSERT INTO conversations (id, create_time, update_time, title) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![id, decimal(new.create_time), decimal(new.update_time), new.title])?;
        self.own_row(source, id, new)?;
        for (at, (key, message)) in keyed(&new.messages).into_iter().enumerate() {
            self.insert_message(id, &key, message, at as i64 + 1)?;
        }
        Ok(changes)
    }

    /// Brings a conversation that is there up to date.
    ///
    /// One that is older than what is stored only adds what is missing, and so does the same
    /// conversation a second time in one run: else the two would take turns at every import.
    fn update(
        &self,
        source: &str,
        id: &str,
        new: &Conversation,
        stored: &StoredConversation,
        again: bool,
    ) -> rusqlite::Result<Changes> {
        let stored_time = stored.update_time.as_deref().and_then(date::from_stored);
        let older = new.update_time < stored_time || again && new.update_time == stored_time;
        let rows = self.stored_messages(id)?;
        let attachments = self.stored_attachments(id)?;
        let by_key: HashMap<&str, usize> =
            rows.iter().enumerate().map(|(at, row)| (row.key.as_str(), at)).collect();
        let mut changes = Changes::default();
        let mut moved = false;
        let mut kept = vec![true; rows.len()];
        let mut position = match older {
            true => rows.iter().filter_map(|row| row.position).max().unwrap_or(0),
            false => 0,
        };
        for (key, message) in keyed(&new.messages) {
            let Some(&at) = by_key.get(key.as_str()) else {
                position += 1;
                changes.new_messages += 1;
                if self.mode == Mode::Write {
                    self.insert_message(id, &key, message, position)?;
                }
                continue;
            };
            let row = &rows[at];
            kept[at] = false;
            if older {
                changes.unchanged_messages += 1;
                continue;
            }
            position += 1;
            let names = attachments.get(&row.id).map(Vec::as_slice).unwrap_or_default();
            if self.same(row, message) && names == message.attachments {
                changes.unchanged_messages += 1;
                moved |= self.place(row, position)?;
            } else {
                changes.updated_messages += 1;
                self.update_message(row, message, position)?;
            }
        }
        if !older {
            // What an earlier export had and this one has not: it comes after.
            for (row, _) in rows.iter().zip(&kept).filter(|(_, kept)| **kept) {
                position += 1;
                moved |= self.place(row, position)?;
            }
        }
        let data = !older && self.update_data(source, id, new, stored)?;
        if changes.new_messages + changes.updated_messages > 0 || moved || data {
            changes.updated_conversations = 1;
        } else {
            changes.unchanged_conversations = 1;
        }
        Ok(changes)
    }

    /// Updates what is stored of a conversation itself; returns whether anything differed.
    fn update_data(
        &self,
        source: &str,
        id: &str,
        new: &Conversation,
        stored: &StoredConversation,
    ) -> rusqlite::Result<bool> {
        let canonical = new.title.is_some() && new.title != stored.title
            || differs(new.create_time, &stored.create_time)
            || differs(new.update_time, &stored.update_time);
        let own = stored.source.is_none()
            || new.model.is_some() && new.model != stored.model
            || new.link.is_some() && new.link != stored.link
            || new.origin.is_some() && new.origin != stored.origin
            || new.archived != stored.archived
            || new.starred != stored.starred;
        if self.mode == Mode::Write && canonical {
            self.prepare(
                "UPDATE conversations SET create_time = coalesce(?2, create_time),
                     update_time = coalesce(?3, update_time), title = coalesce(?4, title) WHERE id = ?1",
            )?
            .execute(params![id, decimal(new.create_time), decimal(new.update_time), new.title])?;
        }
        if self.mode == Mode::Write && own {
            self.own_row(source, id, new)?;
        }
        Ok(canonical || own)
    }

    fn own_row(&self, source: &str, id: &str, new: &Conversation) -> rusqlite::Result<()> {
        self.prepare(
            "INSERT INTO verbatim_conversations (conversation_id, source, model, link, archived, starred)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (conversation_id) DO UPDATE SET model = coalesce(excluded.model, model),
                 link = coalesce(excluded.link, link), archived = excluded.archived, starred = excluded.starred",
        )?
        .execute(params![id, source, new.model, new.link, new.archived, new.starred])?;
        if let Some(origin) = &new.origin {
            schema::set_origin(self.connection, id, origin)?;
        }
        Ok(())
    }

    /// Returns the messages of a conversation in the order they are shown in.
    fn stored_messages(&self, id: &str) -> rusqlite::Result<Vec<StoredMessage>> {
        let mut statement = self.prepare(
            "SELECT m.id, m.role, m.content, m.create_time, m.update_time, m.position, v.export_id, v.model
             FROM messages m LEFT JOIN verbatim_messages v ON v.message_id = m.id
             WHERE m.conversation_id = ?1 ORDER BY m.position, m.rowid",
        )?;
        let rows = statement.query_map([id], |row| {
            let id = text(row, 0)?.unwrap_or_default();
            Ok(StoredMessage {
                role: text(row, 1)?,
                content: text(row, 2)?,
                create_time: text(row, 3)?,
                update_time: text(row, 4)?,
                position: row.get::<_, Option<i64>>(5).unwrap_or(None),
                key: text(row, 6)?.unwrap_or_else(|| id.clone()),
                model: text(row, 7)?,
                id,
            })
        })?;
        rows.collect()
    }

    fn stored_attachments(&self, id: &str) -> rusqlite::Result<HashMap<String, Vec<String>>> {
        let mut statement = self.prepare(
            "SELECT a.message_id, a.name FROM verbatim_attachments a JOIN messages m ON m.id = a.message_id
             WHERE m.conversation_id = ?1 ORDER BY a.message_id, a.number",
        )?;
        let mut names: HashMap<String, Vec<String>> = HashMap::new();
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            names.entry(row.get(0)?).or_default().push(row.get(1)?);
        }
        Ok(names)
    }

    /// Returns whether a stored message says what the new one does, its place aside.
    fn same(&self, row: &StoredMessage, new: &Message) -> bool {
        row.role.as_deref().unwrap_or_default() == new.role
            && row.content.as_deref() == Some(self.encoded(&new.content).as_ref())
            && !differs(new.create_time, &row.create_time)
            && !differs(new.update_time, &row.update_time)
            && (new.model.is_none() || new.model == row.model)
    }

    /// Puts a message where it belongs; returns whether it was elsewhere.
    fn place(&self, row: &StoredMessage, position: i64) -> rusqlite::Result<bool> {
        if row.position == Some(position) {
            return Ok(false);
        }
        if self.mode == Mode::Write {
            self.prepare("UPDATE messages SET position = ?2 WHERE id = ?1")?
                .execute(params![row.id, position])?;
        }
        Ok(true)
    }

    fn update_message(
        &self,
        row: &StoredMessage,
        new: &Message,
        position: i64,
    ) -> rusqlite::Result<()> {
        if self.mode == Mode::Compare {
            return Ok(());
        }
        self.prepare(
            "UPDATE messages SET role = ?2, content = ?3, create_time = coalesce(?4, create_time),
                 update_time = coalesce(?5, update_time), position = ?6 WHERE id = ?1",
        )?
        .execute(params![
            row.id,
            role(new),
            self.encoded(&new.content),
            decimal(new.create_time),
            decimal(new.update_time),
            position
        ])?;
        self.prepare("DELETE FROM verbatim_attachments WHERE message_id = ?1")?
            .execute([&row.id])?;
        self.details(&row.id, &row.key, new)
    }

    /// Adds a message under its own id, or under one with its conversation's id before it where
    /// another conversation has the id already.
    fn insert_message(
        &self,
        conversation: &str,
        key: &str,
        new: &Message,
        position: i64,
    ) -> rusqlite::Result<()> {
        let mut id = key.to_owned();
        let mut attempt = 1;
        let mut statement = self.prepare(
            "INSERT INTO messages (id, conversation_id, role, content, create_time, update_time, position)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING",
        )?;
        while statement.execute(params![
            id,
            conversation,
            role(new),
            self.encoded(&new.content),
            decimal(new.create_time),
            decimal(new.update_time),
            position
        ])? == 0
        {
            id = match attempt {
                1 => format!("{conversation}/{key}"),
                _ => format!("{conversation}/{key}#{attempt}"),
            };
            attempt += 1;
        }
        self.details(&id, key, new)
    }

    /// Stores what the canonical table has no place for.
    fn details(&self, id: &str, key: &str, new: &Message) -> rusqlite::Result<()> {
        if id != key || new.model.is_some() {
            self.prepare(
                "INSERT INTO verbatim_messages (message_id, export_id, model) VALUES (?1, ?2, ?3)
                 ON CONFLICT (message_id) DO UPDATE SET model = coalesce(excluded.model, model)",
            )?
            .execute(params![
                id,
                if id == key { None } else { Some(key) },
                new.model
            ])?;
        }
        for (at, name) in new.attachments.iter().enumerate() {
            self.prepare(
                "INSERT INTO verbatim_attachments (message_id, number, name) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![id, at as i64 + 1, name])?;
        }
        Ok(())
    }

    /// Returns a text as this database keeps it.
    fn encoded<'t>(&self, content: &'t str) -> std::borrow::Cow<'t, str> {
        if self.parts { serde_json::json!([content]).to_string().into() } else { content.into() }
    }

    fn prepare(&self, sql: &str) -> rusqlite::Result<rusqlite::CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }
}

/// Pairs each message with what it is known by within its conversation: its id, and from the
/// second of the same id on a number.
fn keyed(messages: &[Message]) -> Vec<(String, &Message)> {
    let mut used = HashSet::with_capacity(messages.len());
    let mut keyed = Vec::with_capacity(messages.len());
    for message in messages {
        let mut key = message.id.clone();
        let mut number = 2;
        while !used.insert(key.clone()) {
            key = format!("{}#{number}", message.id);
            number += 1;
        }
        keyed.push((key, message));
    }
    keyed
}

fn role(message: &Message) -> Option<&str> {
    Some(message.role.as_str()).filter(|role| !role.is_empty())
}

fn decimal(time: Option<Instant>) -> Option<String> {
    time.map(Instant::to_decimal)
}

/// Returns whether a new time says something else than the stored one.
fn differs(new: Option<Instant>, stored: &Option<String>) -> bool {
    new.is_some() && new != stored.as_deref().and_then(date::from_stored)
}

/// Returns a column as text, whatever type another program stored it as.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    })
}
