//! Merges conversations into a canonical database.
//!
//! Invariant: nothing is deleted except on the user's request, and no message moves to another conversation.
//! Invariant: readers always see whole conversations, even after a crash.
//! Invariant: if neither a conversation nor the export is new, no message is written.

mod changes;
mod fresh;
mod known;
mod merge;
mod publish;
mod remove;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io, thread};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, params};

pub use self::changes::Changes;
use self::fresh::FreshDatabase;
pub use self::known::{EarlierImport, KnownExport, remember};
use self::merge::{Merge, MergeMode};
use crate::db::header;
use crate::db::schema::{self, SchemaState};
use verbatim_base::failpoint;
use verbatim_base::model::{self, Conversation};

/// The number of bytes of text in one transaction. With more, readers and other imports would wait
/// longer; with fewer, commits would cost more.
const BATCH_BYTES: usize = 16 << 20;

/// The size of SQLite's page cache in KiB. Ids are random, so a merge uses every page of the id index.
const CACHE_KIB: i64 = 48 << 10;

/// The number of pages in the write-ahead log that triggers a checkpoint: 64 MB.
const CHECKPOINT_PAGES: i64 = 16 << 10;

/// The maximum wait for another writer. The lock is tried every millisecond, because an import releases the
/// lock only for a moment between two batches.
const LOCK_WAIT: Duration = Duration::from_secs(60);

const TOLD_AFTER: Duration = Duration::from_secs(2);

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a database could not be written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// The target exists and is not a canonical database.
    #[error("{}: not written to: {reason}; name another file with --db", path.display())]
    Foreign { path: PathBuf, reason: String },
    /// Another version of this program made the target.
    #[error(
        "{}: not written to: another version of verbatim made it (schema {version}, this one \
         knows {}); move it away and import again",
        path.display(),
        schema::SCHEMA_VERSION
    )]
    OtherVersion { path: PathBuf, version: i64 },
    /// The target or its folder cannot be made or read.
    #[error("{}: cannot write the database: {source}; name another place with --db", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// SQLite failed.
    #[error("{}: cannot write the database: {source}{}", path.display(), hint(source))]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}

fn hint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "; free some space and run the import again",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "; its file and folder must be writable, or name another with --db"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "; another program, perhaps another import, is writing to it; try again when it is done"
        }
        Some(ErrorCode::SystemIoFailure) => "; the disk may be full or failing",
        _ => "",
    }
}

/// Returns the keys of a conversation's messages: their ids, with a number if an id is repeated.
pub fn message_keys(conversation: &Conversation) -> Vec<String> {
    merge::keyed(&conversation.messages).into_iter().map(|(key, _)| key.into_owned()).collect()
}

/// A canonical database that conversations are merged into.
#[derive(Debug, Default)]
pub struct Writer {
    path: PathBuf,
    on_wait: Option<fn()>,
    /// The connection; `None` before the first conversation if there is no database yet.
    connection: Option<Connection>,
    /// The new database, which has a temporary name until it is complete.
    fresh: Option<FreshDatabase>,
    found: SchemaState,
    parts: bool,
    state: WriterState,
    pending: usize,
    /// The ids of the conversations merged in this run, and whether this run created each conversation.
    met: HashMap<String, bool>,
    /// Whether this run changed a conversation that was stored before.
    has_replaced: bool,
    is_ambiguous: bool,
    changes: Changes,
    noted: Changes,
    stored: Changes,
}

/// Counts of the conversations and messages that were read from one export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// The number of conversations that were read.
    pub conversations: u64,
    /// The number of messages in these conversations.
    pub messages: u64,
    /// The number of conversations that could not be read.
    pub skipped: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WriterState {
    /// Every conversation so far equals its stored version.
    #[default]
    Comparing,
    /// A conversation was written. Each batch of conversations is one transaction.
    Writing,
}

impl Writer {
    /// Opens the database at `path` for merging. If there is none, the first conversation creates it.
    pub fn open(path: &Path) -> Result<Writer> {
        Writer::open_telling(path, None)
    }

    /// Works like [`Writer::open`], and calls `on_wait` when the writer has waited a while for another
    /// program.
    pub fn open_telling(path: &Path, on_wait: Option<fn()>) -> Result<Writer> {
        let mut writer = Writer { path: path.to_owned(), on_wait, ..Writer::default() };
        match fs::metadata(path) {
            // Opening a pipe would wait for another program.
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                let source = io::Error::other("it is not a file");
                return Err(Error::Io { path: path.to_owned(), source });
            }
            Ok(_) => writer.connect()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
        }
        Ok(writer)
    }

    /// Merges a conversation: adds new messages and updates changed ones. Returns the id of its row. The
    /// row's id differs from the conversation's id if another service uses the same id.
    pub fn put(&mut self, source: &str, conversation: &Conversation) -> Result<String> {
        if self.connection.is_none() {
            self.create()?;
        }
        self.merge(source, conversation)
            .map_err(|source| Error::Sqlite { path: self.path.clone(), source })
    }

    /// Returns the changes that stay if the next write fails.
    pub fn stored(&self) -> Changes {
        self.stored
    }

    /// Adds a row to the history of imports, if the export was read completely. Adds no row if nothing
    /// changed since the last row and the export is not newer than its own last row.
    pub fn note(&mut self, path: &Path, is_whole: bool, counts: SourceCounts) -> Result<()> {
        let SourceCounts { conversations, messages, skipped } = counts;
        let changes = self.changes.since(self.noted);
        self.noted = self.changes;
        let name = path.to_string_lossy();
        if is_whole && (changes.any() || self.is_new(path, &name)) {
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let time =
                model::Instant { seconds: time.as_secs() as i64, nanos: time.subsec_nanos() };
            self.begin().and_then(|connection| {
                connection.execute(
                    "INSERT INTO verbatim_imports (time, path, conversations, messages, new_conversations,
                         new_messages, updated_conversations, updated_messages, skipped)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    params![
                        time.to_decimal(),
                        name,
                        conversations as i64,
                        messages as i64,
                        changes.new_conversations as i64,
                        changes.new_messages as i64,
                        changes.updated_conversations as i64,
                        changes.updated_messages as i64,
                        skipped as i64
                    ],
                )
            })
            .map_err(|source| Error::Sqlite { path: self.path.clone(), source })?;
        }
        Ok(())
    }

    /// Returns whether an export has no row in the history, or was written to after its last row.
    fn is_new(&self, path: &Path, name: &str) -> bool {
        let ours = self.connection.as_ref().filter(|_| self.found == SchemaState::Ours);
        let Some(connection) = ours else { return false };
        let written = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let written = written.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let sql = "SELECT max(CAST(time AS REAL)) FROM verbatim_imports WHERE path = ?1";
        let last = connection.query_row(sql, [name], |row| row.get::<_, Option<f64>>(0));
        let last = last.map(|last| last.unwrap_or_default());
        last.is_ok_and(|last| written.is_some_and(|written| last < written.as_secs_f64()))
    }

    /// Returns whether the exports of this run hold a conversation twice. Then only reading them again shows
    /// which version stays.
    pub fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    /// Commits the open transaction. Leaves only the database file, unless another program uses the database.
    pub fn finish(mut self) -> Result<Changes> {
        if let Some(fresh) = self.fresh.take() {
            self.publish(fresh)?;
            // With a connection, this import was merged into a database that another import created first.
            return if self.connection.is_some() { self.finish() } else { Ok(self.changes) };
        }
        let Some(connection) = self.connection.take() else { return Ok(self.changes) };
        if self.state == WriterState::Writing {
            if !connection.is_autocommit() {
                failpoint::pass("import to be committed");
                connection.execute_batch("COMMIT").map_err(|source| self.failed(source))?;
            }
            // If a reader still uses the log, the log remains until the next import.
            let _ = connection.busy_timeout(Duration::from_millis(50));
            failpoint::pass("import committed");
            let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            failpoint::pass("log moved into the database");
            let _ = connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
            failpoint::pass("log removed");
        }
        connection.close().map_err(|(_, source)| self.failed(source))?;
        Ok(self.changes)
    }

    fn connect(&mut self) -> Result<()> {
        let path = &self.path;
        // Read through a shared descriptor: closing any other descriptor would drop the locks of our readers.
        let mut magic = [0; 16];
        let read = header::shared_file(path)
            .and_then(|file| file.read_at(&mut magic, 0))
            .map_err(|source| Error::Io { path: path.clone(), source })?;
        if read > 0 && magic != *b"SQLite format 3\0" {
            let reason = "it is not an SQLite database".to_owned();
            return Err(Error::Foreign { path: path.clone(), reason });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection =
            Connection::open_with_flags(path, flags).map_err(|source| self.failed(source))?;
        self.found = configure(&mut connection, self.on_wait)
            .and_then(|()| schema::find(&connection))
            .map_err(|source| self.failed(source))?
            .map_err(|reason| {
                let reason = format!("{reason}, as canonical databases have");
                Error::Foreign { path: path.clone(), reason }
            })?;
        if let SchemaState::OtherVersion(version) = self.found {
            return Err(Error::OtherVersion { path: path.clone(), version });
        }
        self.parts = self.found != SchemaState::Empty
            && holds_parts(&connection).map_err(|source| self.failed(source))?;
        self.connection = Some(connection);
        Ok(())
    }

    /// Merges a conversation. Starts to write only if the conversation differs from its stored version.
    fn merge(&mut self, source: &str, conversation: &Conversation) -> rusqlite::Result<String> {
        if self.state == WriterState::Comparing
            && self.found == SchemaState::Ours
            && let Some(connection) = &self.connection
        {
            let merge = self.merger(connection, MergeMode::Compare);
            let (changes, id) = merge.conversation(source, conversation, &self.met)?;
            if !changes.any() {
                self.count(changes, id.clone());
                return Ok(id);
            }
        }
        self.begin()?;
        if let (Some(fresh), Some(connection)) = (&mut self.fresh, &self.connection)
            && self.met.contains_key(&conversation.id)
        {
            fresh.complete(connection)?;
        }
        let connection = self.connection.as_ref().expect("it was just used");
        let merge = self.merger(connection, MergeMode::Write);
        let (changes, id) = merge.conversation(source, conversation, &self.met)?;
        let comes_again = self.met.contains_key(&id);
        let replaces = changes.updated_conversations > 0 || comes_again && changes.any();
        if replaces && !std::mem::replace(&mut self.has_replaced, true) {
            Writer::forget_known(connection)?;
        }
        self.count(changes, id.clone());
        self.pending += conversation.messages.iter().map(|m| m.content.len() + 200).sum::<usize>();
        if self.pending > BATCH_BYTES && self.fresh.is_none() {
            self.pending = 0;
            self.begin()?.execute_batch("COMMIT")?;
            self.stored = self.changes;
            failpoint::pass("batch committed");
            // The pause lets another import take the lock.
            thread::sleep(Duration::from_millis(2));
        }
        Ok(id)
    }

    fn merger<'a>(&'a self, connection: &'a Connection, mode: MergeMode) -> Merge<'a> {
        let late = self.fresh.as_ref().and_then(FreshDatabase::late);
        Merge { connection, parts: self.parts, mode, late }
    }

    /// Counts the changes of one conversation. An export may hold a conversation several times. If this run
    /// created the conversation, a later version counts as new, not as updated.
    fn count(&mut self, changes: Changes, id: String) {
        let met = self.met.get(&id).copied();
        self.is_ambiguous |= met.is_some();
        let is_created = met.unwrap_or(false);
        let counted = if is_created {
            Changes { new_messages: changes.new_messages, ..Changes::default() }
        } else {
            changes
        };
        self.met.insert(id, is_created || changes.new_conversations > 0);
        self.changes.add(counted);
    }

    /// Begins a write transaction unless one is open; returns the connection.
    fn begin(&mut self) -> rusqlite::Result<&Connection> {
        let connection =
            self.connection.as_ref().expect("there is a database once a conversation came");
        if connection.is_autocommit() {
            if journal_mode(connection)? != "wal" {
                // Waits here while another program writes. Otherwise the change of the mode would
                // wait in vain, and then the transaction would wait again.
                connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
                // In WAL mode, readers continue during a write. Without WAL mode they wait.
                let _ = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
                if journal_mode(connection)? == "wal" {
                    connection.execute_batch("PRAGMA synchronous = NORMAL")?;
                }
            }
            failpoint::pass("transaction to begin");
            connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        self.state = WriterState::Writing;
        if self.found != SchemaState::Ours {
            // Another program may have created the tables meanwhile.
            if let Ok(found) = schema::find(connection)?
                && found != SchemaState::Ours
            {
                schema::create(connection, found)?;
            }
            self.found = SchemaState::Ours;
        }
        Ok(connection)
    }
}

fn journal_mode(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))
}

fn configure(connection: &mut Connection, on_wait: Option<fn()>) -> rusqlite::Result<()> {
    // Without this setting, SQLite may prepare a statement again for each new value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let mut begun = Instant::now();
    let mut is_told = false;
    connection.busy_handler(Some(move |tries| {
        if tries == 0 {
            begun = Instant::now();
        }
        if begun.elapsed() >= TOLD_AFTER && !std::mem::replace(&mut is_told, true) {
            on_wait.inspect(|tell| tell());
        }
        thread::sleep(Duration::from_millis(1));
        begun.elapsed() < LOCK_WAIT
    }))?;
    connection.set_prepared_statement_cache_capacity(32);
    // A merge writes a row before the rows that refer to it, so foreign keys need no checks.
    connection.execute_batch(&format!(
        "PRAGMA cache_size = -{CACHE_KIB}; PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};
         PRAGMA foreign_keys = OFF;"
    ))
}

/// Returns whether most of the contents are JSON lists, as ChatGPT Browser writes them.
fn holds_parts(connection: &Connection) -> rusqlite::Result<bool> {
    let (parts, all): (i64, i64) = connection.query_one(
        "SELECT coalesce(sum(json_valid(content) AND substr(content, 1, 1) = '['), 0), count(*)
         FROM (SELECT content FROM messages WHERE length(content) > 0 LIMIT 200)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(parts * 2 > all)
}
