//! The file of the threads database: complete or absent, and private to its owner.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::db::header::{self, Identity, SharedFile};
use crate::db::open::beside;
use crate::db::schema::{self, SchemaState};
use crate::db::temporary::TemporaryDatabase;
use verbatim_base::private;
use verbatim_text::snippet;

/// The version of the table of threads, stored in `verbatim_meta`.
const VERSION: i64 = 1;

/// The table that other canonical databases do not have.
const TABLE: &str = "
    CREATE TABLE verbatim_threads (
        conversation_id TEXT PRIMARY KEY REFERENCES conversations(id),
        user_id TEXT NOT NULL,
        platform TEXT,
        session_key TEXT UNIQUE,
        next INTEGER NOT NULL       -- the number in the id that continues the thread
    ) WITHOUT ROWID;
    CREATE INDEX verbatim_threads_by_user ON verbatim_threads (user_id);";

pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of recorded threads.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// There is no thread with the given id.
    #[error("Thread {} not found", snippet::echo(id))]
    NoThread { id: String },
    /// No thread has this continuation id.
    #[error(
        "continuation_id {:?} not found; start a thread, or resume one with its thread_id",
        snippet::echo(id)
    )]
    NoContinuation { id: String },
    /// The caller's id is out of date, because a later turn was added to the thread.
    #[error(
        "continuation_id {id} is out of date: the thread has gone on since; read its latest turns \
         with history and resume thread {thread} to continue from there"
    )]
    OutOfDate { id: String, thread: String },
    /// The file is not a database of threads.
    #[error("{}: not a database of threads: {reason}; move it away to begin a new one", path.display())]
    Foreign { path: PathBuf, reason: String },
    /// The file or its folder cannot be created.
    #[error("{}: cannot record threads: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// SQLite failed.
    #[error("{}: cannot read or record threads: {source}{}", path.display(), hint(source))]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}

/// The database, open for reading and writing.
#[derive(Debug)]
pub struct Threads {
    // Fields are dropped in order, and the connection must close before the files that it locks.
    pub(super) connection: Connection,
    path: PathBuf,
    identity: Identity,
    _files: [Option<SharedFile>; 2],
}

/// The maximum wait for other writers. Each writer takes a millisecond, and thousands may be waiting.
const LOCK_WAIT: Duration = Duration::from_secs(60);

impl Threads {
    /// Opens the database; `None` if there is none.
    pub fn open(path: &Path) -> Result<Option<Threads>> {
        let Some(stamp) =
            header::stamp_at(path).map_err(|source| Error::Io { path: path.to_owned(), source })?
        else {
            return Ok(None);
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags)
            .and_then(|mut connection| configure(&mut connection).map(|()| connection));
        let connection = opened.map_err(|source| explain(path, source))?;
        // All readers of these files share descriptors, because closing any other descriptor would drop the
        // locks.
        let shared = beside(path, "-shm");
        let files = [header::shared_file(path), header::shared_file(&shared)].map(Result::ok);
        let path = path.to_owned();
        let identity = stamp.identity;
        let threads = Threads { connection, path, identity, _files: files };
        threads.check()?;
        Ok(Some(threads))
    }

    /// Opens the database, and creates it if there is none.
    pub fn open_or_make(path: &Path) -> Result<Threads> {
        // Another process may create the database first, or remove it again.
        for _ in 0..10 {
            if let Some(threads) = Threads::open(path)? {
                return Ok(threads);
            }
            make(path)?;
        }
        let source = io::Error::other("another process removes it each time it is made");
        Err(Error::Io { path: path.to_owned(), source })
    }

    /// Returns whether the database's path still names the open file.
    pub fn is_there(&self) -> bool {
        header::stamp_at(&self.path)
            .is_ok_and(|stamp| stamp.is_some_and(|stamp| stamp.identity == self.identity))
    }

    /// Runs `work` in a write transaction, and makes its changes durable.
    pub(super) fn write<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let done = transaction.and_then(|transaction| {
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        done.map_err(|source| Error::Sqlite { path: self.path.clone(), source })
    }

    /// Runs `read` on the connection. Its error becomes one that names the database.
    pub(super) fn query<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        read(&self.connection).map_err(|source| Error::Sqlite { path: self.path.clone(), source })
    }

    fn check(&self) -> Result<()> {
        let reason = obstacle(&self.connection).map_err(|source| explain(&self.path, source))?;
        let path = self.path.clone();
        reason.map_or(Ok(()), |reason| Err(Error::Foreign { path, reason }))
    }
}

/// Returns why threads cannot be recorded in a database; `None` if they can.
pub(in crate::db) fn obstacle(connection: &Connection) -> rusqlite::Result<Option<String>> {
    const NO_TABLE: &str = "it has no table of threads";
    let sql = "SELECT CAST(value AS INTEGER) FROM verbatim_meta WHERE name = 'threads'";
    Ok(match schema::find(connection)? {
        Err(reason) => Some(reason),
        Ok(SchemaState::OtherVersion(version)) => {
            Some(other_version("schema", version, schema::SCHEMA_VERSION))
        }
        Ok(SchemaState::Empty | SchemaState::Canonical) => Some(NO_TABLE.to_owned()),
        Ok(SchemaState::Ours) => {
            match connection.query_row(sql, [], |row| row.get(0)).optional()? {
                Some(VERSION) => None,
                Some(version) => Some(other_version("threads", version, VERSION)),
                None => Some(NO_TABLE.to_owned()),
            }
        }
    })
}

pub(in crate::db) fn other_version(tables: &str, found: i64, ours: i64) -> String {
    format!("another version of verbatim made it ({tables} {found}, this one knows {ours})")
}

/// Creates the database under a temporary name and then renames it. If another process was faster, keeps its
/// database.
///
/// Only its owner can read the database, because chats are private.
fn make(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let file = private::create_dir_all(folder)
        .and_then(|()| TemporaryDatabase::begin(folder))
        .map_err(|source| Error::Io { path: folder.to_owned(), source })?;
    create_tables(file.path()).map_err(|source| explain(path, source))?;
    match file.take_place(path) {
        Ok(()) => {
            // Some systems, such as Windows, cannot synchronise a folder and do not need to.
            drop(File::open(folder).and_then(|folder| folder.sync_all()));
            Ok(())
        }
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::Io { path: path.to_owned(), source: error.error }),
    }
}

fn create_tables(path: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = EXTRA")?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    schema::create(&connection, SchemaState::Empty)?;
    connection.execute_batch(TABLE)?;
    let sql = "INSERT INTO verbatim_meta (name, value) VALUES ('threads', ?1)";
    connection.execute(sql, [VERSION])?;
    connection.execute_batch("COMMIT")?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.close().map_err(|(_, source)| source)
}

fn configure(connection: &mut Connection) -> rusqlite::Result<()> {
    let patience = LOCK_WAIT.as_millis();
    let mut waited = 0;
    connection.busy_handler(Some(move |tries: i32| {
        if tries == 0 {
            waited = 0;
        }
        // The pause depends on the process id, so that no process is always the last to try.
        let pause = 1 + u64::from(std::process::id().wrapping_add(tries.unsigned_abs()) % 5);
        waited += u128::from(pause);
        thread::sleep(Duration::from_millis(pause));
        waited < patience
    }))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // Every commit is synchronised, so a confirmed turn survives a power cut. Deleted text is
    // overwritten.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))
}

fn explain(path: &Path, source: rusqlite::Error) -> Error {
    let path = path.to_owned();
    if source.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
        return Error::Foreign { path, reason: "it is no SQLite database".to_owned() };
    }
    Error::Sqlite { path, source }
}

fn hint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "; free some space and try again: what was recorded stays",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "; the file and its folder must be writable"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "; another program is writing to it; try again when it is done"
        }
        Some(ErrorCode::SystemIoFailure) => "; the disk may be full or failing",
        _ => "",
    }
}
