//! Records threads: starts them, adds their turns, deletes them.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::database::{Error, Result, Threads};
use crate::db::canonical::{self, ConversationRow, MessageRow};
use crate::db::{functions, scrub};
use verbatim_base::model::Instant;

/// The separator in a continuation id, between the thread's id and the number of the next turn.
const NEXT: &str = "_turn";

/// A thread in its current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The id of the thread, which is also the id of its conversation.
    pub id: String,
    /// The id that continues the thread.
    pub continuation: String,
    /// The topic, which is the title of the conversation.
    pub topic: String,
    /// The user whom the thread belongs to.
    pub user: String,
    /// The platform that the client named at the start; `None` if it named none.
    pub platform: Option<String>,
    /// The key under which the thread was saved.
    pub key: Option<String>,
    /// The time when the thread was started.
    pub begun: Option<Instant>,
    /// The time when the thread's last message was recorded.
    pub last: Option<Instant>,
    /// The number of the thread's messages, not counting a saved summary.
    pub messages: u64,
}

/// The SQL condition that a row of `messages` is a turn. A saved summary is the first message of its
/// conversation and is not a turn.
pub(super) const IS_TURN: &str = "NOT (position = 1 AND role = 'system')";

/// The data of a new thread.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The topic, which becomes the title of the conversation.
    pub topic: &'a str,
    /// The user whom the thread belongs to.
    pub user: &'a str,
    /// The name of the platform; `None` if the client names none.
    pub platform: Option<&'a str>,
    /// The role and the text of the first turn; `None` if the thread starts without messages.
    pub turn: Option<(&'a str, &'a str)>,
}

/// Returns a query for the columns that [`read_thread`] reads; `rest` is the SQL after the FROM clause.
pub(super) fn select(rest: &str) -> String {
    format!(
        "SELECT c.id, c.title, t.user_id, t.platform, t.session_key, c.create_time, t.next,
            (SELECT create_time FROM messages WHERE conversation_id = c.id
             ORDER BY position DESC LIMIT 1),
            (SELECT count(*) FROM messages WHERE conversation_id = c.id AND {IS_TURN})
         FROM conversations AS c JOIN verbatim_threads AS t ON t.conversation_id = c.id {rest}"
    )
}

impl Threads {
    /// Adds a thread, begun at `now`, and returns it.
    pub fn start(&mut self, start: &Start<'_>, now: Instant) -> Result<Thread> {
        self.write(|connection| {
            let id = insert(connection, start, None, now)?;
            if let Some((role, text)) = start.turn {
                add_turn(connection, &id, role, text, now)?;
            }
            thread(connection, &id)
        })?
        .ok_or_else(|| Error::NoThread { id: String::new() })
    }

    /// Returns the thread with this id; `None` if there is none.
    pub fn thread(&self, id: &str) -> Result<Option<Thread>> {
        self.query(|connection| thread(connection, id))
    }

    /// Returns the thread that a continuation id continues.
    pub fn find_continued(&self, continuation: &str) -> Result<Thread> {
        self.query(|connection| resolve_continuation(connection, continuation))?
    }

    /// Records a turn of the thread that a continuation id continues.
    pub fn turn(
        &mut self,
        continuation: &str,
        role: &str,
        text: &str,
        now: Instant,
    ) -> Result<Thread> {
        self.write(|connection| {
            let known = match resolve_continuation(connection, continuation)? {
                Ok(known) => known,
                Err(refused) => return Ok(Err(refused)),
            };
            add_turn(connection, &known.id, role, text, now)?;
            let now = thread(connection, &known.id)?;
            Ok(now.ok_or(Error::NoThread { id: known.id }))
        })?
    }

    /// Removes a thread and all its messages; returns whether the thread existed.
    pub fn delete(&mut self, id: &str) -> Result<bool> {
        let deleted = self.write(|connection| {
            connection.execute("DELETE FROM verbatim_threads WHERE conversation_id = ?1", [id])?;
            canonical::delete_conversation(connection, id)
        })?;
        // The log must lose the text too. If a reader uses the log, that happens later.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(deleted)
    }
}

impl Threads {
    /// Removes threads and every byte of them from the database's files. If the database has none of these
    /// threads, returns `None` and writes nothing, unless `always` is set.
    ///
    /// Otherwise returns whether the log is clean too. A reader of an older state prevents that.
    pub fn purge(&mut self, ids: &[String], always: bool) -> Result<Option<bool>> {
        self.query(scrub::begin)?;
        let mut is_there = always;
        for id in ids {
            is_there |= self.delete(id)?;
        }
        if is_there { self.query(scrub::finish).map(Some) } else { Ok(None) }
    }
}

pub(super) fn insert(
    connection: &Connection,
    start: &Start<'_>,
    key: Option<&str>,
    now: Instant,
) -> rusqlite::Result<String> {
    let id: String =
        connection.query_row("SELECT lower(hex(randomblob(16)))", [], |row| row.get(0))?;
    let id = uuid(&id);
    let create_time = Some(now);
    let update_time = Some(now);
    let row = ConversationRow { id: &id, title: Some(start.topic), create_time, update_time };
    row.insert(connection)?;
    let sql = "INSERT INTO verbatim_threads (conversation_id, user_id, platform, session_key, next)
               VALUES (?1, ?2, ?3, ?4, 0)";
    canonical::execute(connection, sql, params![id, start.user, start.platform, key])?;
    Ok(id)
}

pub(super) fn append_message(
    connection: &Connection,
    id: &str,
    role: &str,
    text: &str,
    now: Instant,
) -> rusqlite::Result<()> {
    let last = "SELECT coalesce(max(position), 0) FROM messages WHERE conversation_id = ?1";
    let last: i64 = connection.prepare_cached(last)?.query_row([id], |row| row.get(0))?;
    let position = last + 1;
    let row = MessageRow {
        id: &format!("{id}:{position}"),
        conversation: id,
        role: Some(role),
        content: text.into(),
        create_time: Some(now),
        update_time: None,
        position,
    };
    row.insert(connection)?;
    let update_time = Some(now);
    ConversationRow { id, update_time, ..ConversationRow::default() }.update(connection)
}

/// Adds a turn to a thread, whose continuation id then changes.
fn add_turn(
    connection: &Connection,
    id: &str,
    role: &str,
    text: &str,
    now: Instant,
) -> rusqlite::Result<()> {
    append_message(connection, id, role, text, now)?;
    let next = "UPDATE verbatim_threads SET next = next + 1 WHERE conversation_id = ?1";
    connection.prepare_cached(next)?.execute([id])?;
    Ok(())
}

pub(super) fn thread(connection: &Connection, id: &str) -> rusqlite::Result<Option<Thread>> {
    let sql = select("WHERE c.id = ?1");
    connection.prepare_cached(&sql)?.query_row([id], read_thread).optional()
}

pub(super) fn read_thread(row: &Row<'_>) -> rusqlite::Result<Thread> {
    let id: String = row.get(0)?;
    let next: i64 = row.get(6)?;
    Ok(Thread {
        continuation: format!("{id}{NEXT}{next}"),
        id,
        topic: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        user: row.get(2)?,
        platform: row.get(3)?,
        key: row.get(4)?,
        begun: functions::instant(row.get_ref(5)?),
        last: functions::instant(row.get_ref(7)?),
        messages: row.get::<_, i64>(8)?.unsigned_abs(),
    })
}

fn resolve_continuation(
    connection: &Connection,
    continuation: &str,
) -> rusqlite::Result<Result<Thread>> {
    let unknown = || Error::NoContinuation { id: continuation.to_owned() };
    let parsed = continuation.rsplit_once(NEXT).and_then(|(id, next)| {
        let number = next.parse::<i64>().ok().filter(|number| number.to_string() == next)?;
        Some((id, number))
    });
    let Some((id, number)) = parsed else { return Ok(Err(unknown())) };
    let Some(known) = thread(connection, id)? else { return Ok(Err(unknown())) };
    if known.continuation == continuation {
        return Ok(Ok(known));
    }
    let next = known.continuation.rsplit_once(NEXT).and_then(|(_, next)| next.parse().ok());
    Ok(Err(if (0..next.unwrap_or(0)).contains(&number) {
        Error::OutOfDate { id: continuation.to_owned(), thread: known.id }
    } else {
        unknown()
    }))
}

fn uuid(digits: &str) -> String {
    let ranges = [0..8, 8..12, 13..16, 17..20, 20..32];
    let [a, b, c, d, e] = ranges.map(|range| digits.get(range).unwrap_or_default());
    format!("{a}-{b}-4{c}-a{d}-{e}")
}
