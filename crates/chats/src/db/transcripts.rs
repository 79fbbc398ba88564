//! The transcript store: a database of coding agents' transcripts and the reading states of their files.
//!
//! Invariant: if a file is gone, or was cut or rewritten, the store keeps the texts that were read from it.
//! These texts exist nowhere else, so no store is ever removed.
//! Invariant: the messages of a file and its reading state are committed together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Params, Row, params};

use super::canonical::{self, ConversationRow, MessageRow};
use super::open::beside;
use super::schema::{self, SchemaState};
use super::temporary::TemporaryDatabase;
use super::{functions, scrub, threads};
use crate::import::repeats::{MessageHolders, Repetitions};
use verbatim_base::model::{Instant, Message, Origin};
use verbatim_base::{files, private};
use verbatim_text::hash::fnv1a;

/// The version of the tables and of the texts in them.
const VERSION: i64 = 9;

const LOCK_WAIT: Duration = Duration::from_secs(30);

/// The suffixes of a store's files. The store itself has no suffix and comes last.
const DATABASE_FILES: [&str; 4] = ["-wal", "-shm", "-journal", ""];

const CACHE_KIB: i64 = 16 << 10;

/// The tables of the store that other canonical databases do not have.
const FILES_TABLE: &str = "
CREATE TABLE verbatim_files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    stamp TEXT NOT NULL,        -- identity, size and times
    taken INTEGER NOT NULL,     -- bytes read
    ends TEXT NOT NULL,         -- hashes of the first and of the last bytes read
    reader TEXT NOT NULL,       -- the reader's state; empty if the file is no transcript
    conversation_id TEXT,       -- once a message has been added
    transcript TEXT,            -- the transcript's own id, once a message without an id has come
    unnamed INTEGER NOT NULL,   -- messages without ids, repeated ones too
    is_part INTEGER NOT NULL,   -- whether another file began the conversation
    parent TEXT,                -- the transcript whose beginning this one may repeat
    is_copy INTEGER,            -- whether it may repeat other sessions; NULL if it is not known yet
    repeats_session INTEGER NOT NULL, -- whether it has repeated a prompt or an answer of its session
    gone TEXT                   -- since when the file is gone, in seconds since 1970
);
CREATE INDEX verbatim_files_by_transcript ON verbatim_files(transcript);
CREATE INDEX verbatim_files_by_conversation ON verbatim_files(conversation_id);
CREATE TABLE verbatim_parts ( -- messages of files that did not begin the conversation
    message_id TEXT PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
    file INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE verbatim_fingerprints ( -- of messages with ids
    fingerprint INTEGER NOT NULL,
    file INTEGER NOT NULL REFERENCES verbatim_files(id) ON DELETE CASCADE,
    PRIMARY KEY (fingerprint, file)
) WITHOUT ROWID;
CREATE INDEX verbatim_fingerprints_by_file ON verbatim_fingerprints(file);
CREATE TABLE verbatim_sequences ( -- fingerprints of messages without ids, by their places
    file INTEGER NOT NULL REFERENCES verbatim_files(id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    holder INTEGER,             -- the other file that has the message, if this one leaves it out
    PRIMARY KEY (file, place)
) WITHOUT ROWID;
CREATE TABLE verbatim_repeats ( -- a file leaves out messages that another file has
    file INTEGER NOT NULL REFERENCES verbatim_files(id) ON DELETE CASCADE,
    repeated INTEGER NOT NULL REFERENCES verbatim_files(id) ON DELETE CASCADE,
    PRIMARY KEY (file, repeated)
) WITHOUT ROWID;
CREATE INDEX verbatim_repeats_by_repeated ON verbatim_repeats(repeated);
";

/// The condition that a message `m` is of a conversation (`?1`) and a file: `?2` is the number of a file that did not
/// begin the conversation, and NULL for the one that did.
const ADDED_BY_FILE: &str = "m.conversation_id = ?1
    AND (SELECT file FROM verbatim_parts WHERE message_id = m.id) IS ?2";

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the transcript store.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// The database or its folder cannot be created or read.
    #[error("{}: cannot write the transcript store: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// SQLite failed.
    #[error("{}: cannot write the transcript store: {source}{}", path.display(), hint(source))]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    /// Another version of the program made the store.
    #[error(
        "{}: another version of verbatim made this transcript store (format {version}, this one \
         reads {VERSION}); move it away to make a new one from the transcripts that are there",
        path.display()
    )]
    OtherVersion { path: PathBuf, version: i64 },
}

fn hint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            "; the disk may be full: stored transcripts stay, the others follow"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "; its folder must be writable, or name another with VERBATIM_INDEX"
        }
        _ => "",
    }
}

/// The reading state of a transcript's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptFile {
    /// The number of the file; 0 for a file that is not saved yet.
    pub id: i64,
    /// The path of the file, as text.
    pub path: String,
    /// Identity, size and times of the file.
    pub stamp: String,
    /// The number of bytes that were read.
    pub taken: u64,
    /// Hashes of the first and of the last bytes read.
    pub ends: String,
    /// The saved state of the reader; empty if the file is not a transcript.
    pub reader: String,
    /// The id of the conversation, once a message has been added.
    pub conversation: Option<String>,
    /// The transcript's own id, once a message without an id has been read.
    pub transcript: Option<String>,
    /// The number of messages without ids, including repeated messages.
    pub unnamed: u64,
    /// Whether another file began the conversation.
    pub is_part: bool,
    /// The id of the transcript whose beginning this one may repeat.
    pub parent: Option<String>,
    /// What is known of its repetitions.
    pub seen: Repetitions,
    /// The time when the program first found that the file is gone.
    pub gone: Option<Instant>,
}

impl TranscriptFile {
    /// Returns the id of a message's row. If an id begins with `/`, the conversation's id is put before it, and the
    /// number of the file if the conversation has several.
    pub fn whole_id(&self, id: &str) -> String {
        match &self.conversation {
            Some(conversation) if id.starts_with('/') && self.is_part => {
                format!("{conversation}/~{}{id}", self.id)
            }
            Some(conversation) if id.starts_with('/') => format!("{conversation}{id}"),
            _ => id.to_owned(),
        }
    }
}

/// The conversations and files that [`TranscriptStore::forget`] removed.
#[derive(Debug, Default)]
pub struct RemovedFiles {
    /// The ids of the removed conversations.
    pub conversations: Vec<String>,
    /// The paths of the other files that were removed from the store and still exist on disk. They must be
    /// read again.
    pub again: Vec<String>,
}

/// The transcript store, open for writing.
#[derive(Debug)]
pub struct TranscriptStore {
    path: PathBuf,
    connection: Connection,
}

/// Connects to a store and returns its version. Prepares the connection if the version is ours.
/// Returns why transcripts cannot be added to a store; `None` if they can.
pub(super) fn obstacle(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let version = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok((version != VERSION).then(|| threads::other_version("store", version, VERSION)))
}

fn connected(path: &Path) -> rusqlite::Result<(Connection, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    connection.set_prepared_statement_cache_capacity(32);
    let version = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == VERSION {
        // In WAL mode, readers continue during a write. Without WAL mode they wait.
        let _ = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        connection.execute_batch(&format!(
            "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{CACHE_KIB}; \
             PRAGMA wal_autocheckpoint = 4096"
        ))?;
    }
    Ok((connection, version))
}

fn create_tables(path: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
    connection.execute_batch("BEGIN")?;
    schema::create(&connection, SchemaState::Empty)?;
    connection.execute_batch(FILES_TABLE)?;
    connection.execute_batch(&format!("PRAGMA user_version = {VERSION}; COMMIT"))?;
    connection.close().map_err(|(_, error)| error)
}

/// The data of a conversation, without its messages.
#[derive(Clone, Copy, Debug)]
pub struct ConversationData<'a> {
    /// The name of the format: `claude_code` or `codex`.
    pub source: &'a str,
    /// The title; `None` if the transcript has none.
    pub title: Option<&'a str>,
    /// The model that answered.
    pub model: Option<&'a str>,
    /// The time of the first message for a new conversation, otherwise of the last message.
    pub time: Option<Instant>,
    /// The session, the project, the folder and the branch of the transcript.
    pub origin: &'a Origin,
}

impl TranscriptStore {
    /// Opens the store at `path`; creates a store if there is none. Renames a damaged store, and calls
    /// `aside` with its new path.
    pub fn open(path: &Path, aside: &mut dyn FnMut(PathBuf)) -> Result<TranscriptStore> {
        match TranscriptStore::connect(path) {
            Ok(Some(store)) => return Ok(store),
            Ok(None) => {}
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
        if let Some(old) = TranscriptStore::set_aside(path)? {
            aside(old);
        }
        TranscriptStore::make(path)?;
        let store = TranscriptStore::connect(path)?;
        Ok(store.expect("a store that was created a moment ago is of this version"))
    }

    /// Creates an empty store. Renames the file last, so that no process sees a store without tables.
    fn make(path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let file = private::create_dir_all(folder)
            .and_then(|()| TemporaryDatabase::begin(folder))
            .map_err(|source| Error::Io { path: folder.to_owned(), source })?;
        create_tables(file.path())
            .map_err(|source| Error::Sqlite { path: path.to_owned(), source })?;
        file.replace(path).map_err(|source| Error::Io { path: folder.to_owned(), source })
    }

    /// Renames a store and its companion files, because they may still contain conversations of files that
    /// are gone. Returns the new path; `None` if there is no store.
    pub fn set_aside(path: &Path) -> Result<Option<PathBuf>> {
        let free = (1..).map(|number| aside(path, number)).find(|name| !name.exists());
        let aside = free.expect("there are fewer files than numbers");
        let is_there = path.exists();
        if is_there && !path.is_file() {
            let source = io::ErrorKind::IsADirectory.into();
            return Err(Error::Io { path: path.to_owned(), source });
        }
        for end in DATABASE_FILES {
            let from = beside(path, end);
            match private::until_free(|| fs::rename(&from, beside(&aside, end))) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::Io { path: from, source });
                }
                _ => {}
            }
        }
        Ok(is_there.then_some(aside))
    }

    /// Removes a store and its companion files.
    pub fn remove(path: &Path) -> Result<()> {
        for end in DATABASE_FILES {
            let path = beside(path, end);
            match private::until_free(|| fs::remove_file(&path)) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::Io { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Connects to a store; returns `None` if there is none, or the file is an empty database.
    pub fn connect(path: &Path) -> Result<Option<TranscriptStore>> {
        let path = path.to_owned();
        match files::check(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // The store may be on a disk that is not mounted now.
            Err(source) => return Err(Error::Io { path, source }),
        }
        match connected(&path) {
            Err(source) => Err(Error::Sqlite { path, source }),
            Ok((connection, VERSION)) => Ok(Some(TranscriptStore { path, connection })),
            Ok((_, 0)) => Ok(None),
            Ok((_, version)) => Err(Error::OtherVersion { path, version }),
        }
    }

    /// Begins a transaction, unless one is open.
    pub fn begin(&self) -> Result<()> {
        if self.connection.is_autocommit() {
            self.done(self.connection.execute_batch("BEGIN IMMEDIATE"))?;
        }
        Ok(())
    }

    /// Commits the transaction, if one is open.
    pub fn commit(&self) -> Result<()> {
        if !self.connection.is_autocommit() {
            self.done(self.connection.execute_batch("COMMIT"))?;
        }
        Ok(())
    }

    /// Returns the numbers, stamps, sizes and ends of the files, by path.
    pub fn files(&self) -> Result<HashMap<String, TranscriptFile>> {
        self.done((|| {
            let sql = "SELECT id, path, stamp, taken, ends, gone FROM verbatim_files ORDER BY id";
            let mut statement = self.connection.prepare(sql)?;
            let files = statement.query_map([], |row| {
                let path: String = row.get(1)?;
                let file = TranscriptFile {
                    id: row.get(0)?,
                    path: path.clone(),
                    stamp: row.get(2)?,
                    taken: row.get::<_, i64>(3)? as u64,
                    ends: row.get(4)?,
                    gone: functions::instant(row.get_ref(5)?),
                    ..TranscriptFile::default()
                };
                Ok((path, file))
            })?;
            files.collect()
        })())
    }

    /// Returns the file with this number; `None` if there is none.
    pub fn file(&self, id: i64) -> Result<Option<TranscriptFile>> {
        let sql =
            "SELECT id, path, stamp, taken, ends, reader, conversation_id, transcript, unnamed, gone,
                        is_part, is_copy, parent, repeats_session
                   FROM verbatim_files WHERE id = ?1";
        let file = self.query_first(sql, [id], |row| {
            Ok(TranscriptFile {
                id: row.get(0)?,
                path: row.get(1)?,
                stamp: row.get(2)?,
                taken: row.get::<_, i64>(3)? as u64,
                ends: row.get(4)?,
                reader: row.get(5)?,
                conversation: row.get(6)?,
                transcript: row.get(7)?,
                unnamed: row.get::<_, i64>(8)? as u64,
                gone: functions::instant(row.get_ref(9)?),
                is_part: row.get(10)?,
                seen: Repetitions { is_copy: row.get(11)?, repeats_session: row.get(13)? },
                parent: row.get(12)?,
            })
        });
        self.done(file)
    }

    /// Saves the reading state of a file. Sets the number of a new file.
    pub fn save(&self, file: &mut TranscriptFile) -> Result<()> {
        let sql = "INSERT INTO verbatim_files
                       (id, path, stamp, taken, ends, reader, conversation_id, transcript, unnamed,
                        gone, is_part, is_copy, parent, repeats_session)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                   ON CONFLICT (id) DO UPDATE SET path = excluded.path, stamp = excluded.stamp,
                       taken = excluded.taken, ends = excluded.ends, reader = excluded.reader,
                       conversation_id = excluded.conversation_id,
                       transcript = excluded.transcript, unnamed = excluded.unnamed,
                       gone = excluded.gone, is_part = excluded.is_part,
                       is_copy = excluded.is_copy, parent = excluded.parent,
                       repeats_session = excluded.repeats_session
                   RETURNING id";
        let values = params![
            Some(file.id).filter(|id| *id != 0),
            file.path,
            file.stamp,
            file.taken as i64,
            file.ends,
            file.reader,
            file.conversation,
            file.transcript,
            file.unnamed as i64,
            file.gone.map(Instant::to_decimal),
            file.is_part,
            file.seen.is_copy,
            file.parent,
            file.seen.repeats_session
        ];
        let id = self.query_first(sql, values, |row| row.get(0));
        file.id = self.done(id)?.unwrap_or(file.id);
        Ok(())
    }

    /// Records the time since when a file is gone; `None` if the file exists.
    pub fn set_gone(&self, id: i64, gone: Option<Instant>) -> Result<()> {
        let sql = "UPDATE verbatim_files SET gone = ?2 WHERE id = ?1";
        let values = params![id, gone.map(Instant::to_decimal)];
        self.done(canonical::execute(&self.connection, sql, values).map(drop))
    }

    /// Gives a file another path.
    pub fn rename(&self, id: i64, path: &str) -> Result<()> {
        let sql = "UPDATE verbatim_files SET path = ?2 WHERE id = ?1";
        self.done(canonical::execute(&self.connection, sql, params![id, path]).map(drop))
    }

    /// Returns the hashes of the texts that a file has added to its conversation.
    pub fn text_hashes(&self, file: &TranscriptFile) -> Result<Vec<u64>> {
        let sql = format!("SELECT CAST(content AS BLOB) FROM messages AS m WHERE {ADDED_BY_FILE}");
        self.done((|| {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let values = params![file.conversation, file.is_part.then_some(file.id)];
            let hashes = statement.query_map(values, |row| Ok(fnv1a(row.get_ref(0)?.as_bytes()?)));
            hashes?.collect()
        })())
    }

    /// Removes a file and its messages, and also every file that left out messages of a removed file. A
    /// conversation is removed with its last file.
    pub fn forget(&self, id: i64) -> Result<RemovedFiles> {
        self.done((|| {
            let mut select = self.connection.prepare_cached(
                "SELECT file FROM verbatim_repeats JOIN verbatim_files ON id = file
                 WHERE repeated = ?1 AND gone IS NULL ORDER BY file",
            )?;
            let mut delete = self.connection.prepare_cached(
                "DELETE FROM verbatim_files WHERE id = ?1 RETURNING path, conversation_id, is_part",
            )?;
            let others = "SELECT 1 FROM verbatim_files WHERE conversation_id = ?1";
            let of_file = format!("DELETE FROM messages AS m WHERE {ADDED_BY_FILE}");
            let mut waiting = vec![id];
            let mut removed = RemovedFiles::default();
            while let Some(file) = waiting.pop() {
                for repeating in select.query_map([file], |row| row.get(0))? {
                    waiting.push(repeating?);
                }
                let deleted = delete.query_row([file], |row| {
                    Ok(TranscriptFile {
                        path: row.get(0)?,
                        conversation: row.get(1)?,
                        is_part: row.get(2)?,
                        ..TranscriptFile::default()
                    })
                });
                let Some(deleted) = deleted.optional()? else { continue };
                if let Some(conversation) = deleted.conversation {
                    if self.query_first(others, [&conversation], |_| Ok(()))?.is_none() {
                        canonical::delete_conversation(&self.connection, &conversation)?;
                        removed.conversations.push(conversation);
                    } else {
                        let values = params![conversation, deleted.is_part.then_some(file)];
                        canonical::execute(&self.connection, &of_file, values)?;
                    }
                }
                if file != id {
                    removed.again.push(deleted.path);
                }
            }
            Ok(removed)
        })())
    }

    /// Removes a conversation and its messages, but keeps the entry of its file.
    pub fn remove_conversation(&self, id: &str) -> Result<()> {
        self.done(canonical::delete_conversation(&self.connection, id).map(drop))
    }

    /// Returns the stored conversations: the number of the file, the id, the service and the origin.
    pub fn stored(&self) -> Result<Vec<(i64, String, String, Origin)>> {
        let sql = "SELECT f.id, c.id, v.source, t.session, t.project, t.folder, f.path, f.gone
                   FROM verbatim_files AS f JOIN conversations AS c ON c.id = f.conversation_id
                   LEFT JOIN verbatim_conversations AS v ON v.conversation_id = c.id
                   LEFT JOIN verbatim_transcripts AS t ON t.conversation_id = c.id";
        self.done((|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                let origin = Origin {
                    session: row.get(3)?,
                    project: row.get(4)?,
                    file: row.get(6)?,
                    gone: functions::instant(row.get_ref(7)?),
                    ..Origin::default()
                };
                let folders: Option<String> = row.get(5)?;
                let origin = origin.with_folder_lines(folders.as_deref());
                let service: Option<String> = row.get(2)?;
                Ok((row.get(0)?, row.get(1)?, service.unwrap_or_default(), origin))
            })?;
            rows.collect()
        })())
    }

    /// Returns the files whose conversations were removed.
    pub fn without_conversation(&self) -> Result<Vec<TranscriptFile>> {
        let sql =
            "SELECT id FROM verbatim_files AS f WHERE conversation_id IS NOT NULL AND NOT EXISTS
                       (SELECT 1 FROM conversations AS c WHERE c.id = f.conversation_id)";
        let ids: Vec<i64> = self.done((|| {
            self.connection.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect()
        })())?;
        ids.into_iter().filter_map(|id| self.file(id).transpose()).collect()
    }

    /// Returns whether a file belongs to the conversation with this id, even if the conversation was removed.
    pub fn has_file_of(&self, id: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM verbatim_files WHERE conversation_id = ?1";
        Ok(self.done(self.query_first(sql, [id], |_| Ok(())))?.is_some())
    }

    /// Returns whether the store contains the conversation with this id now.
    pub fn has_conversation(&self, id: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM conversations WHERE id = ?1";
        Ok(self.done(self.query_first(sql, [id], |_| Ok(())))?.is_some())
    }

    /// Adds a conversation without messages, or updates its data.
    pub fn conversation(&self, id: &str, data: ConversationData<'_>) -> Result<()> {
        let ConversationData { source, title, model, time, origin } = data;
        let row = ConversationRow { id, title, create_time: time, update_time: time };
        let sql = "INSERT INTO verbatim_conversations
                       (conversation_id, source, model, archived, starred)
                   VALUES (?1, ?2, ?3, 0, 0)
                   ON CONFLICT (conversation_id) DO UPDATE SET model = excluded.model";
        self.done((|| {
            row.insert_or_continue(&self.connection)?;
            canonical::execute(&self.connection, sql, params![id, source, model])?;
            schema::set_origin(&self.connection, id, origin)
        })())
    }

    /// Sets the time of the last change of a conversation.
    pub fn touch(&self, id: &str, time: Option<Instant>) -> Result<()> {
        let row = ConversationRow { id, update_time: time, ..ConversationRow::default() };
        self.done(row.update(&self.connection))
    }

    /// Returns the title of a conversation, empty if it has none; `None` if there is no such conversation.
    pub fn title(&self, id: &str) -> Result<Option<String>> {
        let sql = "SELECT coalesce(title, '') FROM conversations WHERE id = ?1";
        self.done(self.query_first(sql, [id], |row| row.get(0)))
    }

    /// Gives a conversation another title.
    pub fn set_title(&self, id: &str, title: &str) -> Result<()> {
        let sql = "UPDATE conversations SET title = ?2 WHERE id = ?1";
        self.done(canonical::execute(&self.connection, sql, [id, title]).map(drop))
    }

    /// Returns the files that were read before a new one and may have to be read after it: those of other
    /// conversations whose messages it leaves out, those that name `transcript` as their parent, and those with
    /// other parts of its conversation. Files that are gone cannot be read again.
    pub fn read_too_early(&self, file: i64, transcript: &str) -> Result<Vec<TranscriptFile>> {
        let sql = "SELECT e.id FROM verbatim_files AS e JOIN verbatim_files AS f ON f.id = ?1
                   WHERE e.id < f.id AND e.gone IS NULL
                       AND (e.conversation_id = f.conversation_id
                           OR e.conversation_id IS NOT coalesce(f.conversation_id, ?2)
                           AND (e.parent = ?2 OR e.id IN
                               (SELECT repeated FROM verbatim_repeats WHERE file = f.id)))";
        let ids: Vec<i64> = self.done((|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map(params![file, transcript], |row| row.get(0))?.collect()
        })())?;
        ids.into_iter().filter_map(|id| self.file(id).transpose()).collect()
    }

    /// Returns the number of the file that has the most of a conversation among the files that are there. The file of
    /// an agent comes last.
    pub fn leader(&self, conversation: &str) -> Result<Option<i64>> {
        let sql = "SELECT id FROM verbatim_files WHERE conversation_id = ?1 AND gone IS NULL
                   ORDER BY path LIKE '%agent-%.jsonl', taken DESC, path LIMIT 1";
        self.done(self.query_first(sql, [conversation], |row| row.get(0)))
    }

    /// Returns the paths of the files of a conversation.
    pub fn paths_of(&self, conversation: &str) -> Result<Vec<String>> {
        let sql = "SELECT path FROM verbatim_files WHERE conversation_id = ?1";
        self.done((|| {
            self.connection
                .prepare_cached(sql)?
                .query_map([conversation], |row| row.get(0))?
                .collect()
        })())
    }

    /// Returns the position of the last message of a conversation.
    pub fn last_position(&self, conversation: &str) -> Result<u32> {
        let sql = "SELECT max(position) FROM messages WHERE conversation_id = ?1";
        let last = self.query_first(sql, [conversation], |row| row.get::<_, Option<u32>>(0));
        Ok(self.done(last)?.flatten().unwrap_or_default())
    }

    /// Makes a file a part of the conversation that other files began. Their last messages were last only
    /// because their transcripts ended there.
    pub fn join(&self, conversation: &str) -> Result<()> {
        let sql = "DELETE FROM messages WHERE conversation_id = ?1 AND id LIKE '%#end'";
        self.done(canonical::execute(&self.connection, sql, [conversation]).map(drop))
    }

    /// Adds a message to the conversation of a file. The message's line in the file becomes its position.
    pub fn message(&self, file: &TranscriptFile, message: &Message) -> Result<()> {
        let row = MessageRow {
            id: &file.whole_id(&message.id),
            conversation: file.conversation.as_deref().unwrap_or_default(),
            role: Some(&message.role),
            content: message.content.as_str().into(),
            create_time: message.create_time,
            update_time: None,
            position: message.line.map_or(0, i64::from),
        };
        let model = "INSERT OR REPLACE INTO verbatim_messages (message_id, model) VALUES (?1, ?2)";
        let part = "INSERT OR REPLACE INTO verbatim_parts (message_id, file) VALUES (?1, ?2)";
        self.done((|| {
            let id = row.insert(&self.connection)?;
            if let Some(name) = &message.model {
                canonical::execute(&self.connection, model, params![id, name])?;
            }
            if file.is_part {
                canonical::execute(&self.connection, part, params![id, file.id])?;
            }
            Ok(())
        })())
    }

    /// Removes a message of a file, if it is there.
    pub fn remove_message(&self, file: &TranscriptFile, id: &str) -> Result<()> {
        let values = params![file.conversation, file.whole_id(id)];
        let sql = "DELETE FROM messages WHERE conversation_id = ?1 AND id = ?2";
        self.done(canonical::execute(&self.connection, sql, values).map(drop))
    }

    /// Appends text to a message of a file.
    pub fn append(&self, file: &TranscriptFile, id: &str, text: &str) -> Result<()> {
        let conversation = file.conversation.as_deref().unwrap_or_default();
        let id = file.whole_id(id);
        self.done(canonical::append_to_message(&self.connection, conversation, &id, text))
    }

    /// Looks up which files have a message, by its fingerprints: with its id, and with its time.
    pub fn known(
        &self,
        file: i64,
        conversations: [&str; 2],
        fingerprints: [u64; 2],
    ) -> Result<MessageHolders<i64>> {
        let [named, timed] = fingerprints.map(u64::cast_signed);
        let [own, parent] = conversations;
        let sql = "SELECT p.fingerprint, p.file,
                       p.file = ?3 OR f.conversation_id IS ?4 OR f.conversation_id IS ?5
                   FROM verbatim_fingerprints AS p CROSS JOIN verbatim_files AS f ON f.id = p.file
                   WHERE p.fingerprint IN (?1, ?2)";
        let mut known = MessageHolders { timed: None, in_session: None, anywhere: None };
        self.done((|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![named, timed, file, own, parent])?;
            while let Some(row) = rows.next()? {
                let found: i64 = row.get(0)?;
                let holder = row.get(1)?;
                let is_of_session: bool = row.get(2)?;
                if found == named {
                    known.anywhere = known.anywhere.or(Some(holder));
                    known.in_session = known.in_session.or(is_of_session.then_some(holder));
                }
                if found == timed {
                    known.timed = known.timed.or(is_of_session.then_some(holder));
                }
            }
            Ok(())
        })())?;
        Ok(known)
    }

    /// Records the fingerprints of a message that a file has.
    pub fn record(&self, file: i64, fingerprints: [u64; 2]) -> Result<()> {
        let [named, timed] = fingerprints.map(u64::cast_signed);
        let sql = "INSERT OR IGNORE INTO verbatim_fingerprints VALUES (?1, ?3), (?2, ?3)";
        let added = canonical::execute(&self.connection, sql, params![named, timed, file]);
        self.done(added.map(drop))
    }

    /// Records the fingerprint of a message without an id, at its place in a file.
    pub fn record_at(&self, file: i64, place: u64, fingerprint: u64) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO verbatim_sequences VALUES (?1, ?2, ?3, NULL)";
        let values = params![file, place as i64, fingerprint as i64];
        self.done(canonical::execute(&self.connection, sql, values).map(drop))
    }

    /// Returns the other files whose transcripts have an id, in the order in which they were read.
    pub fn files_of(&self, transcript: &str, file: i64) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM verbatim_files WHERE transcript = ?1 AND id <> ?2 ORDER BY id";
        self.done((|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map(params![transcript, file], |row| row.get(0))?.collect()
        })())
    }

    /// Returns whether an earlier file has the same message without an id at the same place. If so, records
    /// that `file` leaves the message out.
    ///
    /// The earlier file may be gone, and may have left out the message because a third file had it. If the
    /// third file no longer has the message, `file` becomes the holder of the messages from this place on.
    pub fn is_at(&self, file: i64, earlier: i64, place: u64, fingerprint: u64) -> Result<bool> {
        let select = "SELECT coalesce(s.holder, s.file), s.holder IS NULL OR EXISTS
                          (SELECT 1 FROM verbatim_sequences AS h WHERE h.file = s.holder
                           AND h.place = s.place AND h.fingerprint = s.fingerprint
                           AND h.holder IS NULL)
                      FROM verbatim_sequences AS s
                      WHERE s.file = ?1 AND s.place = ?2 AND s.fingerprint = ?3";
        let leave = "UPDATE verbatim_sequences SET holder = ?3 WHERE file = ?1 AND place = ?2";
        let take = "UPDATE verbatim_sequences SET holder = ?4
                    WHERE file = ?1 AND place >= ?2 AND holder = ?3";
        let place = place as i64;
        let fingerprint = fingerprint as i64;
        self.done((|| {
            let values = params![earlier, place, fingerprint];
            let found = self.query_first(select, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let Some((holder, is_held)) = found else { return Ok(false) };
            let holder: i64 = holder;
            if is_held {
                canonical::execute(&self.connection, leave, params![file, place, holder])?;
                self.record_repeat(file, earlier)?;
                self.record_repeat(file, holder)?;
            } else {
                let values = params![earlier, place, holder, file];
                canonical::execute(&self.connection, take, values)?;
                self.record_repeat(earlier, file)?;
            }
            Ok(is_held)
        })())
    }

    /// Records that a file leaves out messages that another file has.
    pub fn leave_out(&self, file: i64, repeated: i64) -> Result<()> {
        self.done(self.record_repeat(file, repeated))
    }

    fn record_repeat(&self, file: i64, repeated: i64) -> rusqlite::Result<()> {
        if file != repeated {
            let sql = "INSERT OR IGNORE INTO verbatim_repeats VALUES (?1, ?2)";
            canonical::execute(&self.connection, sql, params![file, repeated])?;
        }
        Ok(())
    }

    fn query_first<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.connection.prepare_cached(sql)?.query_row(values, read).optional()
    }

    /// Makes SQLite overwrite all texts that are deleted from now on.
    pub fn delete_securely(&self) -> Result<()> {
        self.done(scrub::begin(&self.connection))
    }

    /// Removes every deleted byte from the files. Returns whether the log is clean too.
    pub fn scrub(&self) -> Result<bool> {
        self.commit()?;
        self.done(scrub::finish(&self.connection))
    }

    /// Closes the store. Leaves only one file, unless another process reads the store.
    pub fn close(self) -> Result<()> {
        self.commit()?;
        let TranscriptStore { path, connection } = self;
        connection.close().map_err(|(_, source)| Error::Sqlite { path, source })
    }

    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|source| Error::Sqlite { path: self.path.clone(), source })
    }
}

impl Error {
    /// Returns whether the error means that the file is damaged; other errors may be temporary. SQLite
    /// reports a failed read as damage too, so this function examines the file.
    pub fn is_damage(&self) -> bool {
        let Error::Sqlite { path, source } = self else { return false };
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => !is_sound(path),
            Some(ErrorCode::NotADatabase) => true,
            _ => matches!(
                source,
                rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::SqlInputError { .. }
            ),
        }
    }
}

/// Returns the new path of the first damaged store.
pub fn first_aside(path: &Path) -> PathBuf {
    aside(path, 1)
}

fn aside(path: &Path, number: u32) -> PathBuf {
    path.with_extension(format!("damaged-{number}"))
}

fn is_sound(path: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(connection) = Connection::open_with_flags(path, flags) else { return false };
    let found: rusqlite::Result<String> = connection
        .busy_timeout(LOCK_WAIT)
        .and_then(|()| connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)));
    found.is_ok_and(|found| found == "ok")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_failed_once_is_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcripts.db");
        drop(TranscriptStore::open(&path, &mut |_| {}).unwrap());
        // SQLite reports this error if the system cannot read a page.
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        let source = || rusqlite::Error::SqliteFailure(code, None);
        let error = || Error::Sqlite { path: path.clone(), source: source() };
        assert!(!error().is_damage());
        let mut content = fs::read(&path).unwrap();
        content[100..].fill(0xA5);
        fs::write(&path, content).unwrap();
        assert!(error().is_damage());
        let aside = TranscriptStore::set_aside(&path).unwrap();
        assert_eq!(aside, Some(first_aside(&path)));
    }
}
