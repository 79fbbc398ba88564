//! The database that transcripts are mirrored into, and what is known of their files.
//!
//! Invariant: it holds nothing that the files do not; a damaged one is made anew.
//! Invariant: what is committed of a file and what is noted of it are of the same moment.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};

use super::{
    canonical::{self, ConversationRow, MessageRow},
    making::Making,
    open::beside,
    schema::{self, Found},
};
use crate::model::{Instant, Message, Origin};

/// The version of what is mirrored and how; another one is made anew.
const VERSION: i64 = 1;

/// How long a reader that is in the way is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Memory for pages of the database.
const CACHE_KIB: i64 = 16 << 10;

/// Beside the tables of every canonical database.
const FILES: &str = "
CREATE TABLE verbatim_files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    stamp TEXT NOT NULL,        -- identity, size and times
    taken INTEGER NOT NULL,     -- bytes read
    ends TEXT NOT NULL,         -- the first and the last of them
    reader TEXT NOT NULL,       -- what its reader knows; empty for a file that is no transcript
    conversation_id TEXT,       -- once a message has come
    parent TEXT,                -- the conversation that it repeats the beginning of
    repeated INTEGER            -- messages of the parent's that it repeated, as long as it does
);
CREATE TABLE verbatim_repeats ( -- a file leaves out what another's conversation holds
    file INTEGER NOT NULL REFERENCES verbatim_files(id) ON DELETE CASCADE,
    conversation_id TEXT NOT NULL,
    PRIMARY KEY (file, conversation_id)
) WITHOUT ROWID;
CREATE INDEX verbatim_repeats_by_conversation ON verbatim_repeats(conversation_id);
";

/// What can go wrong with the mirror.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database or its folder cannot be made or read.
    #[error("{}: cannot write the mirror of the transcripts: {source}; name another folder with --index", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// SQLite could not do what it was told.
    #[error("{}: cannot write the mirror of the transcripts: {source}{}", path.display(), hint(source))]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// Returns what would help against an error of SQLite.
fn hint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            "; the disk may be full: what is mirrored already stays, the rest follows"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "; its folder must be writable, or name another with --index"
        }
        _ => "",
    }
}

/// What is known of a transcript's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Its number; 0 for one that is not known yet.
    pub id: i64,
    /// Its path.
    pub path: String,
    /// What changes when it is written.
    pub stamp: String,
    /// Bytes read of it.
    pub taken: u64,
    /// What the first and the last of them are.
    pub ends: String,
    /// What its reader knows; empty for a file that is no transcript.
    pub reader: String,
    /// Its conversation, once a message has come.
    pub conversation: Option<String>,
    /// The conversation that it repeats the beginning of.
    pub parent: Option<String>,
    /// Messages of the parent's that it repeated, as long as it does.
    pub repeated: Option<u64>,
}

/// The database of transcripts, open for writing.
#[derive(Debug)]
pub struct TranscriptStore {
    path: PathBuf,
    connection: Connection,
}

/// What a conversation is called, and when it was going on.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// `claude_code` or `codex`.
    pub source: &'a str,
    /// Its title.
    pub title: Option<&'a str>,
    /// The model it was held with.
    pub model: Option<&'a str>,
    /// The time of a message: the first one for a new conversation, else the last.
    pub time: Option<Instant>,
    /// Where it is from.
    pub origin: &'a Origin,
}

impl TranscriptStore {
    /// Opens the database at `path`; one that is not there, is damaged or of another version is
    /// made anew.
    pub fn open(path: &Path) -> Result<TranscriptStore, Error> {
        match TranscriptStore::connect(path) {
            Ok(Some(mirror)) => return Ok(mirror),
            Ok(None) => {}
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
        TranscriptStore::remove(path)?;
        TranscriptStore::make(path)?;
        let made = TranscriptStore::connect(path)?;
        Ok(made.expect("a database that was made a moment ago is of this version"))
    }

    /// Makes an empty database, and only then gives it its name: nobody sees one without tables.
    fn make(path: &Path) -> Result<(), Error> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let failed = |source| Error::Io { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let file = Making::begin(folder).map_err(failed)?;
        let make = || -> rusqlite::Result<()> {
            let connection = Connection::open(file.path())?;
            connection.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
            connection.execute_batch("BEGIN")?;
            schema::create(&connection, Found::Empty)?;
            connection.execute_batch(FILES)?;
            connection.execute_batch(&format!("PRAGMA user_version = {VERSION}; COMMIT"))?;
            connection.close().map_err(|(_, error)| error)
        };
        make().map_err(|source| Error::Sqlite { path: path.to_owned(), source })?;
        file.replace(path).map_err(|error| failed(error.error))
    }

    /// Removes a database, with what lies beside it.
    pub fn remove(path: &Path) -> Result<(), Error> {
        for path in
            [path.to_owned(), beside(path, "-wal"), beside(path, "-shm"), beside(path, "-journal")]
        {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::Io { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Connects to a database of this version; `None` where there is none.
    fn connect(path: &Path) -> Result<Option<TranscriptStore>, Error> {
        if !path.is_file() {
            return Ok(None);
        }
        let open = || -> rusqlite::Result<Option<Connection>> {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            connection.set_prepared_statement_cache_capacity(32);
            let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version != VERSION {
                return Ok(None);
            }
            // A reader goes on reading while it is written. Where it cannot be had, we do without.
            let _ = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
            connection.execute_batch(&format!(
                "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{CACHE_KIB}; \
                 PRAGMA wal_autocheckpoint = 4096"
            ))?;
            Ok(Some(connection))
        };
        let connection =
            open().map_err(|source| Error::Sqlite { path: path.to_owned(), source })?;
        Ok(connection.map(|connection| TranscriptStore { path: path.to_owned(), connection }))
    }

    /// Begins a transaction, unless one is open.
    pub fn begin(&self) -> Result<(), Error> {
        if self.connection.is_autocommit() {
            self.done(self.connection.execute_batch("BEGIN IMMEDIATE"))?;
        }
        Ok(())
    }

    /// Commits the transaction that is open, if one is.
    pub fn commit(&self) -> Result<(), Error> {
        if !self.connection.is_autocommit() {
            self.done(self.connection.execute_batch("COMMIT"))?;
        }
        Ok(())
    }

    /// Returns the files by path; of their readers, only whether there is one.
    pub fn files(&self) -> Result<HashMap<String, TranscriptFile>, Error> {
        self.done((|| {
            let mut statement = self.connection.prepare(
                "SELECT id, path, stamp, taken, reader <> '' FROM verbatim_files ORDER BY id",
            )?;
            let files = statement.query_map([], |row| {
                let path: String = row.get(1)?;
                let file = TranscriptFile {
                    id: row.get(0)?,
                    path: path.clone(),
                    stamp: row.get(2)?,
                    taken: row.get::<_, i64>(3)? as u64,
                    ..TranscriptFile::default()
                };
                Ok((path, file))
            })?;
            files.collect()
        })())
    }

    /// Returns all that is known of a file.
    pub fn file(&self, id: i64) -> Result<Option<TranscriptFile>, Error> {
        self.done(
            self.connection
                .prepare_cached(
                    "SELECT id, path, stamp, taken, ends, reader, conversation_id, parent, repeated
                     FROM verbatim_files WHERE id = ?1",
                )
                .and_then(|mut statement| {
                    statement
                        .query_row([id], |row| {
                            Ok(TranscriptFile {
                                id: row.get(0)?,
                                path: row.get(1)?,
                                stamp: row.get(2)?,
                                taken: row.get::<_, i64>(3)? as u64,
                                ends: row.get(4)?,
                                reader: row.get(5)?,
                                conversation: row.get(6)?,
                                parent: row.get(7)?,
                                repeated: row.get::<_, Option<i64>>(8)?.map(|it| it as u64),
                            })
                        })
                        .optional()
                }),
        )
    }

    /// Notes what is known of a file; a new one gets its number.
    pub fn save(&self, file: &mut TranscriptFile) -> Result<(), Error> {
        let number = Some(file.id).filter(|id| *id != 0);
        let id = self.done(
            self.connection
                .prepare_cached(
                    "INSERT INTO verbatim_files
                         (id, path, stamp, taken, ends, reader, conversation_id, parent, repeated)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                     ON CONFLICT (id) DO UPDATE SET stamp = excluded.stamp, taken = excluded.taken,
                         ends = excluded.ends, reader = excluded.reader, parent = excluded.parent,
                         conversation_id = excluded.conversation_id, repeated = excluded.repeated
                     RETURNING id",
                )
                .and_then(|mut statement| {
                    statement.query_row(
                        params![
                            number,
                            file.path,
                            file.stamp,
                            file.taken as i64,
                            file.ends,
                            file.reader,
                            file.conversation,
                            file.parent,
                            file.repeated.map(|it| it as i64)
                        ],
                        |row| row.get(0),
                    )
                }),
        )?;
        file.id = id;
        Ok(())
    }

    /// Removes a file and its conversation; returns the files that left out what it held, which
    /// are to be read anew.
    pub fn forget(&self, id: i64) -> Result<Vec<i64>, Error> {
        self.done((|| {
            let conversation: Option<String> = self
                .connection
                .prepare_cached(
                    "DELETE FROM verbatim_files WHERE id = ?1 RETURNING conversation_id",
                )?
                .query_row([id], |row| row.get(0))
                .optional()?
                .flatten();
            let Some(conversation) = conversation else { return Ok(Vec::new()) };
            canonical::delete_conversation(&self.connection, &conversation)?;
            let mut statement = self.connection.prepare_cached(
                "SELECT file FROM verbatim_repeats WHERE conversation_id = ?1 ORDER BY file",
            )?;
            statement.query_map([&conversation], |row| row.get(0))?.collect()
        })())
    }

    /// Returns whether there is a conversation of that id.
    pub fn has(&self, conversation: &str) -> Result<bool, Error> {
        self.done(canonical::has_conversation(&self.connection, conversation))
    }

    /// Adds a conversation without messages, or sets what is known of one.
    pub fn conversation(&self, id: &str, about: About<'_>) -> Result<(), Error> {
        let (title, time, origin) = (about.title, about.time, about.origin);
        let row = ConversationRow { id, title, create_time: time, update_time: time };
        self.done((|| {
            if canonical::has_conversation(&self.connection, id)? {
                canonical::continue_conversation(&self.connection, &row)?;
            } else {
                canonical::insert_conversation(&self.connection, &row)?;
            }
            self.connection
                .prepare_cached(
                    "INSERT INTO verbatim_conversations (conversation_id, source, model, archived, starred)
                     VALUES (?1, ?2, ?3, 0, 0)
                     ON CONFLICT (conversation_id) DO UPDATE SET model = excluded.model",
                )?
                .execute(params![id, about.source, about.model])?;
            schema::set_origin(&self.connection, id, origin)
        })())
    }

    /// Adds a message to a conversation, at the place of its line.
    pub fn message(&self, conversation: &str, message: &Message) -> Result<(), Error> {
        let row = MessageRow {
            id: &whole_id(conversation, &message.id),
            conversation,
            role: Some(&message.role),
            content: message.content.as_str().into(),
            create_time: message.create_time,
            update_time: None,
            position: message.line.map_or(0, i64::from),
        };
        self.done(canonical::insert_message(&self.connection, &row).map(drop))
    }

    /// Puts more text behind a message's; one that is elsewhere stays as it is.
    pub fn more(&self, conversation: &str, id: &str, text: &str) -> Result<(), Error> {
        let id = whole_id(conversation, id);
        self.done(canonical::append_to_message(&self.connection, conversation, &id, text))
    }

    /// Returns the conversation that holds a message which begins as this one does, under its id.
    pub fn holder(&self, message: &Message) -> Result<Option<String>, Error> {
        self.done((|| {
            self.connection
                .prepare_cached(
                    "SELECT conversation_id FROM messages WHERE id = ?1 AND role = ?2
                         AND create_time IS ?3 AND substr(content, 1, length(?4)) = ?4",
                )?
                .query_row(
                    params![
                        message.id,
                        message.role,
                        message.create_time.map(Instant::to_decimal),
                        message.content
                    ],
                    |row| row.get(0),
                )
                .optional()
        })())
    }

    /// Returns whether the message at a place of a conversation, counted from 0, is this one.
    pub fn is_at(&self, conversation: &str, place: u64, message: &Message) -> Result<bool, Error> {
        self.done((|| {
            self.connection
                .prepare_cached(
                    "SELECT role = ?3 AND content = ?4 FROM messages WHERE conversation_id = ?1
                     ORDER BY position, rowid LIMIT 1 OFFSET ?2",
                )?
                .query_row(
                    params![conversation, place as i64, message.role, message.content],
                    |row| row.get(0),
                )
                .optional()
                .map(|found| found.unwrap_or(false))
        })())
    }

    /// Notes that a file leaves out what a conversation holds.
    pub fn note_repeat(&self, file: i64, conversation: &str) -> Result<(), Error> {
        self.done((|| {
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO verbatim_repeats VALUES (?1, ?2)")?
                .execute(params![file, conversation])?;
            Ok(())
        })())
    }

    /// Closes the database, and leaves one file unless somebody reads it.
    pub fn close(self) -> Result<(), Error> {
        self.commit()?;
        let TranscriptStore { path, connection } = self;
        connection.close().map_err(|(_, source)| Error::Sqlite { path, source })
    }

    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|source| Error::Sqlite { path: self.path.clone(), source })
    }
}

impl Error {
    /// Returns whether the file is damaged, and not the moment.
    pub fn is_damage(&self) -> bool {
        let Error::Sqlite { source, .. } = self else { return false };
        matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        ) || matches!(
            source,
            rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::SqlInputError { .. }
        )
    }
}

/// Returns the id of a message's row; one that begins with `/` goes behind the conversation's.
fn whole_id(conversation: &str, id: &str) -> String {
    if id.starts_with('/') { format!("{conversation}{id}") } else { id.to_owned() }
}
