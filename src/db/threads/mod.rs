//! The database of threads: conversations that are recorded turn by turn, while they are held.
//!
//! A canonical database like any other, with a table beside it that says how each thread goes on.
//!
//! Invariant: a turn is on disk before anyone is told that it was recorded.
//! Invariant: of several writers that continue a thread from the same point, one succeeds.

mod file;
mod read;
mod saved;

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::{
    canonical::{self, ConversationRow, MessageRow},
    header::{Identity, SharedFile},
};
use crate::model::Instant;

pub use read::{Analytics, Turn};
pub use saved::{Save, Saved};

/// What separates a thread's id from the number of the turn that is to come, in a continuation id.
const NEXT: &str = "_turn";

/// What can go wrong with threads.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such thread.
    #[error("Thread {id} not found")]
    NoThread {
        /// What was asked for.
        id: String,
    },
    /// No thread ever gave this id out.
    #[error("continuation_id {id:?} not found; start a thread, or resume one with its thread_id")]
    NoContinuation {
        /// What was asked for.
        id: String,
    },
    /// The thread has gone on since it gave this id out.
    #[error(
        "continuation_id {id} is out of date: the thread has gone on since; read its latest turns \
         with history and resume thread {thread} to continue from there"
    )]
    OutOfDate {
        /// What was asked for.
        id: String,
        /// Its thread.
        thread: String,
    },
    /// The file is something else.
    #[error("{}: not a database of threads: {reason}; move it away to begin a new one", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        reason: String,
    },
    /// A later version of this program made it.
    #[error("{}: written by a later version of verbatim (threads {version}, this one knows {}); update verbatim", path.display(), file::VERSION)]
    Later {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// The file or its folder cannot be made.
    #[error("{}: cannot record threads: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite could not do what it was told.
    #[error("{}: cannot read or record threads: {source}{}", path.display(), file::hint(source))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// The database, open for reading and writing.
#[derive(Debug)]
pub struct Threads {
    // Fields drop in order: the connection goes before the files that it locks.
    connection: Connection,
    path: PathBuf,
    identity: Identity,
    _leases: [Option<SharedFile>; 2],
}

/// A thread as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// `conversations.id`.
    pub id: String,
    /// The id that continues it from where it stands.
    pub continuation: String,
    /// What it is about: its title.
    pub topic: String,
    /// Whose it is.
    pub user: String,
    /// Where it is held.
    pub platform: Option<String>,
    /// The key that it was saved under.
    pub key: Option<String>,
    /// When it was begun.
    pub begun: Option<Instant>,
    /// When its last message was recorded.
    pub last: Option<Instant>,
    /// How many messages it has.
    pub messages: u64,
}

/// What a thread is begun with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// What it is about.
    pub topic: &'a str,
    /// Whose it is.
    pub user: &'a str,
    /// Where it is held.
    pub platform: Option<&'a str>,
}

/// The columns that [`thread`] reads.
const COLUMNS: &str = "
    c.id, c.title, t.user_id, t.platform, t.session_key, c.create_time, t.next,
    (SELECT create_time FROM messages WHERE conversation_id = c.id ORDER BY position DESC LIMIT 1),
    (SELECT count(*) FROM messages WHERE conversation_id = c.id)
    FROM conversations AS c JOIN verbatim_threads AS t ON t.conversation_id = c.id";

impl Threads {
    /// Begins a thread.
    pub fn start(&mut self, start: &Start<'_>, now: Instant) -> Result<Thread, Error> {
        self.write(|connection| {
            let id = insert(connection, start, None, now)?;
            thread(connection, &id)
        })?
        .ok_or_else(|| Error::NoThread { id: String::new() })
    }

    /// Returns a thread.
    pub fn thread(&self, id: &str) -> Result<Option<Thread>, Error> {
        thread(&self.connection, id).map_err(|error| self.error(error))
    }

    /// Returns the thread that a continuation id continues, if it may.
    pub fn continued(&self, continuation: &str) -> Result<Thread, Error> {
        let found = continued(&self.connection, continuation);
        found.map_err(|error| self.error(error))?
    }

    /// Records a turn of the thread that a continuation id continues, a message if there is one.
    pub fn turn(
        &mut self,
        continuation: &str,
        message: Option<(&str, &str)>,
        now: Instant,
    ) -> Result<Thread, Error> {
        self.write(|connection| {
            let known = match continued(connection, continuation)? {
                Ok(known) => known,
                Err(refused) => return Ok(Err(refused)),
            };
            if let Some((role, text)) = message {
                add(connection, &known.id, role, text, now)?;
            }
            let next = "UPDATE verbatim_threads SET next = next + 1 WHERE conversation_id = ?1";
            connection.prepare_cached(next)?.execute([&known.id])?;
            let now = thread(connection, &known.id)?;
            Ok(now.ok_or(Error::NoThread { id: known.id }))
        })?
    }

    /// Removes a thread and all its messages; returns whether there was one.
    pub fn delete(&mut self, id: &str) -> Result<bool, Error> {
        let deleted = self.write(|connection| {
            connection.execute("DELETE FROM verbatim_threads WHERE conversation_id = ?1", [id])?;
            canonical::delete_conversation(connection, id)
        })?;
        // So that the log does not keep the text either; a reader in the way leaves that to later.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(deleted)
    }

    /// Runs `work` in a transaction that may write from its beginning, and makes it durable.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let path = &self.path;
        let run = |connection: &mut Connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        run(&mut self.connection).map_err(|source| Error::Sqlite { path: path.clone(), source })
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        Error::Sqlite { path: self.path.clone(), source }
    }
}

/// Adds a conversation with a new id; returns it.
fn insert(
    connection: &Connection,
    start: &Start<'_>,
    key: Option<&str>,
    now: Instant,
) -> rusqlite::Result<String> {
    let id: String =
        connection.query_row("SELECT lower(hex(randomblob(16)))", [], |row| row.get(0))?;
    let id = uuid(&id);
    let (create_time, update_time) = (Some(now), Some(now));
    let row = ConversationRow { id: &id, title: Some(start.topic), create_time, update_time };
    canonical::insert_conversation(connection, &row)?;
    connection
        .prepare_cached(
            "INSERT INTO verbatim_threads (conversation_id, user_id, platform, session_key, next)
             VALUES (?1, ?2, ?3, ?4, 0)",
        )?
        .execute(params![id, start.user, start.platform, key])?;
    Ok(id)
}

/// Adds a message at the end of a conversation.
fn add(
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
    canonical::insert_message(connection, &row)?;
    let update_time = Some(now);
    let row = ConversationRow { id, update_time, ..ConversationRow::default() };
    canonical::update_conversation(connection, &row)
}

fn thread(connection: &Connection, id: &str) -> rusqlite::Result<Option<Thread>> {
    let sql = format!("SELECT {COLUMNS} WHERE c.id = ?1");
    connection.prepare_cached(&sql)?.query_row([id], thread_of).optional()
}

/// Reads a row of [`COLUMNS`].
fn thread_of(row: &Row<'_>) -> rusqlite::Result<Thread> {
    let id: String = row.get(0)?;
    let next: i64 = row.get(6)?;
    Ok(Thread {
        continuation: format!("{id}{NEXT}{next}"),
        id,
        topic: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        user: row.get(2)?,
        platform: row.get(3)?,
        key: row.get(4)?,
        begun: super::functions::instant(row.get_ref(5)?),
        last: super::functions::instant(row.get_ref(7)?),
        messages: row.get::<_, i64>(8)?.unsigned_abs(),
    })
}

/// Returns the thread that a continuation id continues, or why it does not.
fn continued(
    connection: &Connection,
    continuation: &str,
) -> rusqlite::Result<Result<Thread, Error>> {
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

/// Returns 32 random digits as a UUID of version 4.
fn uuid(digits: &str) -> String {
    let part = |range| digits.get::<std::ops::Range<usize>>(range).unwrap_or_default();
    format!("{}-{}-4{}-a{}-{}", part(0..8), part(8..12), part(13..16), part(17..20), part(20..32))
}
