//! Merges one conversation: adds new messages and updates changed messages.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Result, Row, params, types::ValueRef};

use super::{changes::Changes, fresh::LateParts};
use crate::db::canonical::{self, ConversationRow, MessageRow};
use crate::db::schema;
use verbatim_base::model::{AttachedContent, AttachedFile, Conversation, Instant, Message, Origin};
use verbatim_text::{content::decode_parts, date};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeMode {
    Compare,
    Write,
}

pub(super) struct Merge<'a> {
    pub(super) connection: &'a Connection,
    pub(super) parts: bool,
    pub(super) mode: MergeMode,
    /// The parts that are written late, if the database is new. Then it has no older conversations.
    pub(super) late: Option<&'a LateParts>,
}

struct KnownConversation {
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

struct KnownMessage {
    id: String,
    role: Option<String>,
    content: Option<String>,
    create_time: Option<String>,
    update_time: Option<String>,
    position: Option<i64>,
    /// The export's id, with a number if the conversation repeats the id.
    key: String,
    model: Option<String>,
    follows: Option<String>,
}

/// What a transcript has of a session of which another transcript is stored.
enum PartOfSession {
    /// All of it, or what the stored messages are mixed with.
    Whole,
    /// Only messages from before the stored ones.
    First,
    /// Messages from after some stored ones, whose places in the list are given.
    After(Vec<usize>),
}

impl PartOfSession {
    fn of(new: &Conversation, rows: &[KnownMessage]) -> PartOfSession {
        let mut times = new.messages.iter().filter_map(|message| message.create_time);
        let Some(first) = times.next().filter(|_| new.origin.is_some() && !new.is_part) else {
            return PartOfSession::Whole;
        };
        let last = times.fold(first, Ord::max);
        let keys: HashSet<&str> = new.messages.iter().map(|message| &*message.id).collect();
        let mut before = Vec::new();
        let mut is_first = !rows.is_empty();
        for (at, row) in rows.iter().enumerate() {
            let time = row.create_time.as_deref().and_then(date::from_stored);
            is_first &= time.is_some_and(|time| last < time);
            if !keys.contains(&*row.key) && time.is_some_and(|time| time < first) {
                before.push(at);
            }
        }
        if is_first {
            PartOfSession::First
        } else if before.is_empty() {
            PartOfSession::Whole
        } else {
            PartOfSession::After(before)
        }
    }
}

fn lost_characters(text: &str) -> usize {
    text.matches(char::REPLACEMENT_CHARACTER).count()
}

fn has_heading(text: &str, file: &AttachedFile) -> bool {
    let AttachedContent::Id(id) = &file.content else { return false };
    text.lines().any(|line| match &*file.name {
        "" => line.starts_with(&**id),
        name => line == name,
    })
}

impl Merge<'_> {
    /// Merges a conversation. Returns the changes that were made or counted, and the id of its row.
    pub(super) fn conversation(
        &self,
        source: &str,
        new: &Conversation,
        met: &HashMap<String, bool>,
    ) -> Result<(Changes, String)> {
        let mut id = new.id.clone();
        if self.late.is_some() {
            return Ok((self.insert(source, &id, new)?, id));
        }
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
                let again = met.contains_key(&id);
                let new = self.without_loss(&id, new)?;
                self.update(source, &id, &new, &stored, again)?
            }
        };
        Ok((changes, id))
    }

    /// Returns a stored conversation in the form of an export, with its source.
    pub(super) fn read(&self, id: &str) -> Result<Option<(String, Conversation)>> {
        let Some(stored) = self.stored(id)? else { return Ok(None) };
        let mut names = self.stored_attachments(id)?;
        let messages = self.stored_messages(id)?.into_iter().map(|row| Message {
            role: row.role.unwrap_or_default(),
            content: row.content.unwrap_or_default(),
            create_time: row.create_time.as_deref().and_then(date::from_stored),
            update_time: row.update_time.as_deref().and_then(date::from_stored),
            model: row.model,
            attachments: names.remove(&row.id).unwrap_or_default(),
            line: None,
            follows: row.follows,
            id: row.key,
        });
        let conversation = Conversation {
            id: id.to_owned(),
            messages: messages.collect(),
            title: stored.title,
            create_time: stored.create_time.as_deref().and_then(date::from_stored),
            update_time: stored.update_time.as_deref().and_then(date::from_stored),
            model: stored.model,
            link: stored.link,
            archived: stored.archived,
            starred: stored.starred,
            origin: stored.origin,
            ..Conversation::default()
        };
        Ok(Some((stored.source.unwrap_or_default(), conversation)))
    }

    /// Returns a conversation with its stored title and texts wherever the new ones lost characters, because
    /// the export is not UTF-8.
    fn without_loss<'c>(&self, id: &str, new: &'c Conversation) -> Result<Cow<'c, Conversation>> {
        let stored = if new.is_lossy { self.read(id)? } else { None };
        let Some((_, stored)) = stored else { return Ok(Cow::Borrowed(new)) };
        let mut whole = new.clone();
        whole.title = match (stored.title, &new.title) {
            (Some(stored), Some(title)) if lost_characters(&stored) >= lost_characters(title) => {
                Some(title.clone())
            }
            (stored, title) => stored.or_else(|| title.clone()),
        };
        let known = stored.messages.into_iter().map(|message| (message.id.clone(), message));
        let mut known: HashMap<String, Message> = known.collect();
        for (message, (key, _)) in whole.messages.iter_mut().zip(keyed(&new.messages)) {
            let Some(stored) = known.remove(&*key) else { continue };
            let decoded = self.parts.then(|| decode_parts(&stored.content)).flatten();
            let content = decoded.unwrap_or(stored.content);
            if lost_characters(&content) < lost_characters(&message.content) {
                (message.content, message.attachments) = (content, stored.attachments);
            }
        }
        Ok(Cow::Owned(whole))
    }

    fn stored(&self, id: &str) -> Result<Option<KnownConversation>> {
        // The caller has ensured that the tables of this program exist.
        let mut statement = self.prepare(
            "SELECT c.create_time, c.update_time, c.title, v.source, v.model, v.link, v.archived, v.starred,
                 t.file, t.session, t.project, t.folder, t.branch
             FROM conversations c LEFT JOIN verbatim_conversations v ON v.conversation_id = c.id
                 LEFT JOIN verbatim_transcripts t ON t.conversation_id = c.id
             WHERE c.id = ?1",
        )?;
        statement
            .query_row([id], |row| {
                Ok(KnownConversation {
                    create_time: text_column(row, 0)?,
                    update_time: text_column(row, 1)?,
                    title: text_column(row, 2)?,
                    source: text_column(row, 3)?,
                    model: text_column(row, 4)?,
                    link: text_column(row, 5)?,
                    archived: row.get::<_, Option<bool>>(6)?.unwrap_or_default(),
                    starred: row.get::<_, Option<bool>>(7)?.unwrap_or_default(),
                    origin: match text_column(row, 8)? {
                        Some(file) => {
                            let origin = Origin {
                                file: Some(file),
                                session: text_column(row, 9)?,
                                project: text_column(row, 10)?,
                                branch: text_column(row, 12)?,
                                ..Origin::default()
                            };
                            Some(origin.with_folder_lines(text_column(row, 11)?.as_deref()))
                        }
                        None => None,
                    },
                })
            })
            .optional()
    }

    fn insert(&self, source: &str, id: &str, new: &Conversation) -> Result<Changes> {
        let changes = Changes {
            new_conversations: 1,
            new_messages: new.messages.len() as u64,
            ..Changes::default()
        };
        if self.mode == MergeMode::Compare {
            return Ok(changes);
        }
        conversation_row(id, new).insert(self.connection)?;
        self.own_row(source, id, new)?;
        let mut new_message = match self.late {
            Some(late) => Some((late, self.prepare(canonical::NEW_MESSAGE)?)),
            None => None,
        };
        for (at, (key, message)) in keyed(&new.messages).into_iter().enumerate() {
            let position = at as i64 + 1;
            match &mut new_message {
                Some((late, statement)) if late.is_new(self.connection, &key)? => {
                    self.message_row(&key, id, message, position).insert_new(statement)?;
                    self.write_details(&key, &key, message)?;
                }
                _ => self.insert_message(id, &key, message, position)?,
            }
        }
        Ok(changes)
    }

    /// Updates a stored conversation.
    ///
    /// If the new version is older than the stored one or a part, only adds missing messages. Does the same if this run
    /// has already merged the conversation: otherwise two versions in one export would replace each other at
    /// every import.
    fn update(
        &self,
        source: &str,
        id: &str,
        new: &Conversation,
        stored: &KnownConversation,
        is_again: bool,
    ) -> Result<Changes> {
        let stored_time = stored.update_time.as_deref().and_then(date::from_stored);
        let is_newer = new.update_time > stored_time;
        let is_older = new.is_part || new.update_time < stored_time || is_again && !is_newer;
        let rows = self.stored_messages(id)?;
        let part = PartOfSession::of(new, &rows);
        let (mut changes, has_moved) = self.merge_messages(id, new, is_older, &part, &rows)?;
        let mut data = Cow::Borrowed(new);
        match part {
            PartOfSession::First => {
                data = Cow::Owned(Conversation {
                    title: new.title.clone(),
                    create_time: new.create_time,
                    archived: stored.archived,
                    starred: stored.starred,
                    ..Conversation::default()
                });
            }
            PartOfSession::After(_) => {
                let whole = data.to_mut();
                whole.title = stored.title.clone().or_else(|| new.title.clone());
                whole.create_time = None;
            }
            PartOfSession::Whole => {}
        }
        let is_first = matches!(part, PartOfSession::First);
        let has_data = (!is_older || new.is_part && is_newer || is_first)
            && self.update_data(source, id, &data, stored)?;
        if changes.new_messages + changes.updated_messages > 0 || has_moved || has_data {
            changes.updated_conversations = 1;
        } else {
            changes.unchanged_conversations = 1;
        }
        Ok(changes)
    }

    /// Merges the messages of a stored conversation; returns what changed, and whether a message
    /// moved to another position.
    fn merge_messages(
        &self,
        id: &str,
        new: &Conversation,
        is_older: bool,
        part: &PartOfSession,
        rows: &[KnownMessage],
    ) -> Result<(Changes, bool)> {
        let attachments = self.stored_attachments(id)?;
        let by_key: HashMap<&str, usize> =
            rows.iter().enumerate().map(|(at, row)| (row.key.as_str(), at)).collect();
        let mut changes = Changes::default();
        let mut has_moved = false;
        let mut is_exported = vec![false; rows.len()];
        let is_first = matches!(part, PartOfSession::First);
        let mut position = if is_older && !is_first {
            rows.iter().filter_map(|row| row.position).max().unwrap_or(0)
        } else {
            0
        };
        if let (PartOfSession::After(before), false) = (part, is_older) {
            for at in before {
                position += 1;
                has_moved |= self.move_to(&rows[*at], position)?;
                is_exported[*at] = true;
            }
        }
        let mut files: HashMap<usize, Vec<&AttachedFile>> = HashMap::new();
        new.files.iter().for_each(|file| files.entry(file.message).or_default().push(file));
        for (number, (mut key, message)) in keyed(&new.messages).into_iter().enumerate() {
            // Another transcript of the session may have a message with this key and another text.
            while new.is_part
                && by_key.get(&*key).is_some_and(|at| !self.is_same(&rows[*at], message))
            {
                key += "~";
            }
            let Some(&at) = by_key.get(&*key) else {
                position += 1;
                changes.new_messages += 1;
                if self.mode == MergeMode::Write {
                    self.insert_message(id, &key, message, position)?;
                }
                continue;
            };
            let row = &rows[at];
            is_exported[at] = true;
            if is_older {
                changes.unchanged_messages += 1;
                continue;
            }
            position += 1;
            let files = files.get(&number).map(Vec::as_slice).unwrap_or_default();
            let message = &*self.with_stored_texts(row, message, files);
            let names = attachments.get(&row.id).map(Vec::as_slice).unwrap_or_default();
            if self.is_same(row, message) && names == message.attachments {
                changes.unchanged_messages += 1;
                has_moved |= self.move_to(row, position)?;
            } else {
                changes.updated_messages += 1;
                self.update_message(row, message, position)?;
            }
        }
        if !is_older || is_first {
            // Messages that are only in an earlier export are placed after the messages of this export.
            for (row, _) in rows.iter().zip(&is_exported).filter(|(_, exported)| !**exported) {
                position += 1;
                has_moved |= self.move_to(row, position)?;
            }
        }
        Ok((changes, has_moved))
    }

    /// Returns a message with its stored text if that is the new text and also has the text of an attached
    /// file, because an earlier export had the file.
    fn with_stored_texts<'m>(
        &self,
        row: &KnownMessage,
        new: &'m Message,
        files: &[&AttachedFile],
    ) -> Cow<'m, Message> {
        let stored = row.content.as_deref().unwrap_or_default();
        let decoded = self.parts.then(|| decode_parts(stored)).flatten();
        let stored = decoded.as_deref().unwrap_or(stored);
        let mut lines = stored.lines();
        let keeps =
            files.iter().any(|it| has_heading(stored, it) && !has_heading(&new.content, it))
                && new.content.lines().all(|line| lines.any(|it| it == line));
        if !keeps {
            return Cow::Borrowed(new);
        }
        Cow::Owned(Message { content: stored.to_owned(), ..new.clone() })
    }

    /// Updates the data of a conversation, without its messages; returns whether anything differed.
    fn update_data(
        &self,
        source: &str,
        id: &str,
        new: &Conversation,
        stored: &KnownConversation,
    ) -> Result<bool> {
        let canonical = new.title.is_some() && new.title != stored.title
            || differs(new.create_time, &stored.create_time)
            || differs(new.update_time, &stored.update_time);
        let own = stored.source.is_none()
            || new.model.is_some() && new.model != stored.model
            || new.link.is_some() && new.link != stored.link
            || new.origin.is_some() && new.origin != stored.origin
            || new.archived != stored.archived
            || new.starred != stored.starred;
        if self.mode == MergeMode::Write && canonical {
            conversation_row(id, new).update(self.connection)?;
        }
        if self.mode == MergeMode::Write && own {
            self.own_row(source, id, new)?;
        }
        Ok(canonical || own)
    }

    fn own_row(&self, source: &str, id: &str, new: &Conversation) -> Result<()> {
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

    fn stored_messages(&self, id: &str) -> Result<Vec<KnownMessage>> {
        let mut statement = self.prepare(
            "SELECT m.id, m.role, m.content, m.create_time, m.update_time, m.position, v.export_id, v.model,
                 b.follows
             FROM messages m LEFT JOIN verbatim_messages v ON v.message_id = m.id
                 LEFT JOIN verbatim_branches b ON b.message_id = m.id
             WHERE m.conversation_id = ?1 ORDER BY m.position, m.rowid",
        )?;
        let rows = statement.query_map([id], |row| {
            let id = text_column(row, 0)?.unwrap_or_default();
            Ok(KnownMessage {
                role: text_column(row, 1)?,
                content: text_column(row, 2)?,
                create_time: text_column(row, 3)?,
                update_time: text_column(row, 4)?,
                position: row.get::<_, Option<i64>>(5).unwrap_or(None),
                key: text_column(row, 6)?.unwrap_or_else(|| id.clone()),
                model: text_column(row, 7)?,
                follows: text_column(row, 8)?,
                id,
            })
        })?;
        rows.collect()
    }

    fn stored_attachments(&self, id: &str) -> Result<HashMap<String, Vec<String>>> {
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

    /// Returns whether a stored message equals a new message. Ignores the position.
    fn is_same(&self, row: &KnownMessage, new: &Message) -> bool {
        row.role.as_deref().unwrap_or_default() == new.role
            && row.content.as_deref() == Some(self.encode_content(&new.content).as_ref())
            && !differs(new.create_time, &row.create_time)
            && !differs(new.update_time, &row.update_time)
            && (new.model.is_none() || new.model == row.model)
            && new.follows == row.follows
    }

    /// Moves a message to a position; returns whether the message had another position.
    fn move_to(&self, row: &KnownMessage, position: i64) -> Result<bool> {
        if row.position == Some(position) {
            return Ok(false);
        }
        if self.mode == MergeMode::Write {
            let sql = "UPDATE messages SET position = ?2 WHERE id = ?1";
            canonical::execute(self.connection, sql, params![row.id, position])?;
        }
        Ok(true)
    }

    fn update_message(&self, row: &KnownMessage, new: &Message, position: i64) -> Result<()> {
        if self.mode == MergeMode::Compare {
            return Ok(());
        }
        self.message_row(&row.id, "", new, position).update(self.connection)?;
        self.prepare("DELETE FROM verbatim_attachments WHERE message_id = ?1")?
            .execute([&row.id])?;
        self.prepare("DELETE FROM verbatim_branches WHERE message_id = ?1")?.execute([&row.id])?;
        self.write_details(&row.id, &row.key, new)
    }

    fn insert_message(
        &self,
        conversation: &str,
        key: &str,
        new: &Message,
        position: i64,
    ) -> Result<()> {
        let id = self.message_row(key, conversation, new, position).insert(self.connection)?;
        self.write_details(&id, key, new)
    }

    /// Stores the data for which the canonical tables have no columns.
    fn write_details(&self, id: &str, key: &str, new: &Message) -> Result<()> {
        let export_id = (id != key).then_some(key);
        if let Some(late) = self.late.filter(|_| export_id.is_some() || new.model.is_some()) {
            late.add_details(self.connection, id, export_id, new.model.as_deref())?;
        } else if export_id.is_some() || new.model.is_some() {
            self.prepare(
                "INSERT INTO verbatim_messages (message_id, export_id, model) VALUES (?1, ?2, ?3)
                 ON CONFLICT (message_id) DO UPDATE SET model = coalesce(excluded.model, model)",
            )?
            .execute(params![id, export_id, new.model])?;
        }
        if let Some(follows) = &new.follows {
            self.prepare(
                "INSERT OR REPLACE INTO verbatim_branches (message_id, follows) VALUES (?1, ?2)",
            )?
            .execute([id, follows])?;
        }
        for (at, name) in new.attachments.iter().enumerate() {
            self.prepare(
                "INSERT INTO verbatim_attachments (message_id, number, name) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![id, at as i64 + 1, name])?;
        }
        Ok(())
    }

    fn message_row<'r>(
        &self,
        id: &'r str,
        conversation: &'r str,
        message: &'r Message,
        position: i64,
    ) -> MessageRow<'r> {
        MessageRow {
            id,
            conversation,
            role: Some(message.role.as_str()).filter(|role| !role.is_empty()),
            content: self.encode_content(&message.content),
            create_time: message.create_time,
            update_time: message.update_time,
            position,
        }
    }

    /// Returns a text in the form in which this database stores contents.
    fn encode_content<'t>(&self, content: &'t str) -> Cow<'t, str> {
        if self.parts { serde_json::json!([content]).to_string().into() } else { content.into() }
    }

    fn prepare(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }
}

/// Pairs each message with its key in the conversation: its id, and a number if the id is repeated.
pub(super) fn keyed(messages: &[Message]) -> Vec<(Cow<'_, str>, &Message)> {
    let mut used = HashSet::with_capacity(messages.len());
    let mut keyed = Vec::with_capacity(messages.len());
    for message in messages {
        let mut key = Cow::Borrowed(message.id.as_str());
        let mut number = 2;
        while !used.insert(key.clone()) {
            key = format!("{}#{number}", message.id).into();
            number += 1;
        }
        keyed.push((key, message));
    }
    keyed
}

fn conversation_row<'r>(id: &'r str, new: &'r Conversation) -> ConversationRow<'r> {
    ConversationRow {
        id,
        title: new.title.as_deref(),
        create_time: new.create_time,
        update_time: new.update_time,
    }
}

fn differs(new: Option<Instant>, stored: &Option<String>) -> bool {
    new.is_some() && new != stored.as_deref().and_then(date::from_stored)
}

fn text_column(row: &Row<'_>, column: usize) -> Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    })
}
