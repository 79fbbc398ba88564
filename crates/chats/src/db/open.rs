//! Opens databases without changing anything in their folders.
//!
//! A plain read-only connection is not enough. In WAL mode it creates `-wal` and `-shm` files if there are
//! none, and it cannot roll back the journal of a crashed writer. So the kind of access depends on the files
//! beside the database. If the access bypasses SQLite's locks, the files are compared before and after the
//! read. An answer counts only if no program wrote meanwhile.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, ffi};
use tempfile::TempDir;

use super::error::LOCK_WAIT;
use super::header::{self, SharedFile, Stamp};
use super::{Error, Layout, Result, functions, layout};
use verbatim_base::call::{Call, Stop};
use verbatim_base::files;
use verbatim_base::map_faults::FaultWatch;
use verbatim_base::private;

const ATTEMPTS: u32 = 8;

/// The first attempt that reads a private copy, unless the database has a WAL with a `-shm` file.
const COPY_FROM: u32 = 4;

/// Two writes within this time may get the same modification time.
pub(super) const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Steps of SQLite's virtual machine between two checks for a stop request: about 10 to 100 µs.
const STEPS: i32 = 1_000;

/// SQLite's VFS without locks.
const LOCKLESS: &str = if cfg!(windows) { "win32-none" } else { "unix-none" };

/// An open database. All its reads are in one transaction.
#[derive(Debug)]
pub struct Database {
    // Fields are dropped in order, and the connection must close before the files that it reads.
    connection: Connection,
    layout: Layout,
    path: PathBuf,
    files: DatabaseFiles,
    access: FileAccess,
    call: Call,
    faults: FaultWatch,
}

#[derive(Debug)]
enum FileAccess {
    /// The database is in rollback mode. SQLite's locks protect the read.
    Locked,
    /// The database is in WAL mode. SQLite reads through the existing `-wal` and `-shm` files.
    Wal,
    /// The database is in WAL mode with an empty log. SQLite treats the file as immutable.
    Immutable,
    /// The database has a log but no `-shm` file. SQLite indexes the log in memory, without locks.
    Log,
    /// The program reads a private copy, because SQLite must write to recover.
    Copy { folder: TempDir },
}

#[derive(Debug)]
struct DatabaseFiles {
    database: SharedFile,
    real: PathBuf,
    before: FileState,
}

#[derive(Debug, PartialEq, Eq)]
struct FileState {
    header: [u8; 100],
    database: Stamp,
    wal: Option<Stamp>,
    shm: bool,
    journal: Option<Stamp>,
}

/// Opens the database for reading and begins a read transaction.
///
/// The rows count only if [`Database::steady`] is true afterwards; [`read`] checks this.
pub fn open(path: &Path, call: &Call) -> Result<Database> {
    attempt(path, call, 0, None)
}

/// Opens a database whose layout is known, so that the layout is not detected again.
pub fn open_again(path: &Path, layout: &Layout, call: &Call) -> Result<Database> {
    attempt(path, call, 0, Some(layout))
}

/// Reads from a database, and reads again if another program wrote to the database at the same time.
///
/// `work` sees one state of the database. Each attempt calls `work` again, so it must start over.
pub fn read<T>(path: &Path, call: &Call, work: impl FnMut(&Database) -> Result<T>) -> Result<T> {
    read_in(path, None, call, work)
}

/// Works like [`read`], for work that needs neither conversations nor messages. Does not detect the layout,
/// because that reads hundreds of messages.
pub fn read_tables<T>(
    path: &Path,
    call: &Call,
    work: impl FnMut(&Database) -> Result<T>,
) -> Result<T> {
    read_in(path, Some(&Layout::default()), call, work)
}

fn read_in<T>(
    path: &Path,
    known: Option<&Layout>,
    call: &Call,
    mut work: impl FnMut(&Database) -> Result<T>,
) -> Result<T> {
    for number in 0..ATTEMPTS {
        match attempt(path, call, number, known) {
            Ok(database) => match work(&database) {
                Err(Error::Stopped) => return Err(Error::Stopped),
                answer if database.steady() => return answer,
                _ => {}
            },
            Err(Error::Unsteady { .. }) => {}
            Err(error) => return Err(error),
        }
        call.stop.pause(Duration::from_millis(5 << number), Error::Stopped)?;
    }
    Err(Error::Unsteady { path: path.to_owned() })
}

impl Database {
    /// Returns the layout that was detected when the database was opened.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the path by which the database was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the database is unchanged since it was opened.
    ///
    /// Returns true without a comparison if SQLite itself isolates readers from writers.
    pub fn steady(&self) -> bool {
        // SQLite maps the index of a log into memory, so a map fault may mean wrong rows.
        if self.faults.has_noticed() {
            return false;
        }
        let now = match self.access {
            FileAccess::Wal | FileAccess::Copy { .. } => return true,
            FileAccess::Locked | FileAccess::Immutable | FileAccess::Log => self.files.now(),
        };
        let before = &self.files.before;
        now.is_ok_and(|now| match self.access {
            FileAccess::Locked => (now.header, now.database) == (before.header, before.database),
            _ => &now == before,
        })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs `read` on the connection. Its error becomes one that names the database.
    pub(super) fn query<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        read(&self.connection).map_err(|error| self.error(error))
    }

    pub(super) fn error(&self, error: rusqlite::Error) -> Error {
        explain(&self.path, &self.call.stop, error)
    }
}

fn attempt(path: &Path, call: &Call, number: u32, known: Option<&Layout>) -> Result<Database> {
    let faults = FaultWatch::begin();
    let mut files = DatabaseFiles::find(path)?;
    let mut access = files.access();
    if number >= COPY_FROM && !matches!(access, FileAccess::Wal) {
        access = files.copy(path, &call.stop)?;
        // The log of an open database may end with an unfinished commit, whose frames are written but not yet
        // synchronised. Only the -shm file tells, and a copy has no -shm file.
        if matches!(files.access(), FileAccess::Wal) {
            return Err(Error::Unsteady { path: path.to_owned() });
        }
    }
    if matches!(access, FileAccess::Immutable | FileAccess::Log) {
        files.settle(path)?;
    }
    let (connection, detected) = loop {
        let error = match begin(path, call, &mut files, &access, known) {
            Ok(begun) => break begun,
            Err(error) => error,
        };
        if !files.in_place() {
            return Err(Error::Unsteady { path: path.to_owned() });
        }
        access = match (sqlite_code(&error), access) {
            (Some(ffi::SQLITE_READONLY_ROLLBACK), FileAccess::Locked | FileAccess::Wal) => {
                files.copy(path, &call.stop)?
            }
            (
                Some(
                    ffi::SQLITE_READONLY_CANTINIT
                    | ffi::SQLITE_READONLY_RECOVERY
                    | ffi::SQLITE_CANTOPEN
                    // The disk is full, so the -shm file cannot grow to its size.
                    | ffi::SQLITE_IOERR_SHMSIZE
                    | ffi::SQLITE_IOERR_SHMMAP
                    | ffi::SQLITE_IOERR_SHMOPEN,
                ),
                FileAccess::Wal,
            ) => {
                // The attempt may have changed the files, as SQLite sets their owner if root runs it.
                files.before =
                    files.now().map_err(io_error(path))?;
                files.settle(path)?;
                match &files.before.wal {
                    Some(wal) if wal.size > 0 && number >= COPY_FROM => files.copy(path, &call.stop)?,
                    Some(wal) if wal.size > 0 => FileAccess::Log,
                    _ => FileAccess::Immutable,
                }
            }
            _ => return Err(error),
        };
    };
    // SQLite finds the log of a database by name. So it may have opened one file and the log of another file.
    if !matches!(access, FileAccess::Copy { .. }) && !files.in_place() {
        return Err(Error::Unsteady { path: path.to_owned() });
    }
    let layout =
        detected.map_err(|missing| Error::NotCanonical { path: path.to_owned(), missing })?;
    let path = path.to_owned();
    let call = call.clone();
    Ok(Database { connection, layout, path, files, access, call, faults })
}

fn begin(
    path: &Path,
    call: &Call,
    files: &mut DatabaseFiles,
    access: &FileAccess,
    known: Option<&Layout>,
) -> Result<(Connection, layout::Detected)> {
    let connection =
        connect(&files.real, call, access).map_err(|error| explain(path, &call.stop, error))?;
    if matches!(access, FileAccess::Wal) && !matches!(files.access(), FileAccess::Wal) {
        return Err(Error::Unsteady { path: path.to_owned() });
    }
    let begun = "BEGIN; SELECT count(*) FROM sqlite_schema";
    connection.execute_batch(begun).map_err(|error| explain(path, &call.stop, error))?;
    if matches!(access, FileAccess::Locked) {
        files.before = files.now().map_err(io_error(path))?;
    }
    let detected = match known {
        Some(layout) => Ok(layout.clone()),
        None => layout::detect(&connection).map_err(|error| explain(path, &call.stop, error))?,
    };
    Ok((connection, detected))
}

fn connect(real: &Path, call: &Call, access: &FileAccess) -> rusqlite::Result<Connection> {
    let mut mode = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let uri = match access {
        FileAccess::Locked | FileAccess::Wal => uri(real, "mode=ro"),
        FileAccess::Immutable => uri(real, "mode=ro&immutable=1"),
        FileAccess::Log => uri(real, &format!("mode=ro&vfs={LOCKLESS}")),
        FileAccess::Copy { folder } => {
            mode = OpenFlags::SQLITE_OPEN_READ_WRITE;
            uri(&folder.path().join(COPY_NAME), "mode=rw")
        }
    };
    let flags = mode | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(uri, flags)?;
    // By default, closing the last connection moves a log into the database and deletes the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    let patience = call.clone();
    let mut since = None;
    connection.busy_handler(Some(move |tries| {
        let since: &mut Option<Instant> = &mut since;
        if tries == 0 {
            *since = None;
        }
        let since = since.get_or_insert_with(Instant::now);
        let pause = Instant::now();
        thread::sleep(Duration::from_millis(if tries < 10 { 2 } else { 15 }));
        patience.may_wait_for_lock(pause.elapsed(), since.elapsed(), LOCK_WAIT)
            && !patience.stop.requested()
    }))?;
    let flag = call.clone();
    connection.progress_handler(STEPS, Some(move || flag.stop.requested()))?;
    // No mmap: if another program truncated the database, reading the map would raise SIGBUS. A scan of
    // 532,167 messages takes 0.27 s with and without a map.
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY")?;
    if matches!(access, FileAccess::Log) {
        connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
    }
    functions::register(&connection)?;
    Ok(connection)
}

impl DatabaseFiles {
    fn find(path: &Path) -> Result<DatabaseFiles> {
        DatabaseFiles::at(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Error::NotFound { path: path.to_owned() }
            }
            _ => Error::Io { path: path.to_owned(), source },
        })
    }

    fn at(path: &Path) -> io::Result<DatabaseFiles> {
        files::check(path)?;
        let real = dunce::canonicalize(path)?;
        let database = header::shared_file(&real)?;
        let before = FileState::of(&database, &real)?;
        Ok(DatabaseFiles { database, real, before })
    }

    fn access(&self) -> FileAccess {
        // The state is read again, so that little time passes before SQLite itself reads the files.
        let now = self.now();
        let state = now.as_ref().unwrap_or(&self.before);
        // SQLite removes a log or journal beside an empty file, even if it opens the file read-only. SQLite
        // treats a file of one byte as empty (unixFileSize in os_unix.c).
        if state.database.size <= 1 {
            return FileAccess::Immutable;
        }
        if !state.in_wal_mode() {
            return FileAccess::Locked;
        }
        match (&state.wal, state.shm) {
            (None, _) => FileAccess::Immutable,
            (Some(wal), false) if wal.size == 0 => FileAccess::Immutable,
            (Some(_), true) => FileAccess::Wal,
            (Some(_), false) => FileAccess::Log,
        }
    }

    fn now(&self) -> io::Result<FileState> {
        FileState::of(&self.database, &self.real)
    }

    fn in_place(&self) -> bool {
        let there = header::stamp_at(&self.real);
        there.is_ok_and(|stamp| stamp.is_some_and(|s| s.identity == self.database.identity()))
    }

    /// Waits until every later write will change the file's modification time.
    fn settle(&mut self, path: &Path) -> Result<()> {
        let newest = self
            .before
            .database
            .modified
            .max(self.before.wal.as_ref().and_then(|wal| wal.modified));
        if newest.and_then(|time| SystemTime::now().duration_since(time).ok()) < Some(CLOCK_TICK) {
            thread::sleep(CLOCK_TICK);
        }
        let now = self.now().map_err(io_error(path))?;
        if now != self.before {
            return Err(Error::Unsteady { path: path.to_owned() });
        }
        Ok(())
    }

    /// Copies the database and its log or journal into a private folder.
    fn copy(&mut self, path: &Path, stop: &Stop) -> Result<FileAccess> {
        self.before = self.now().map_err(io_error(path))?;
        let folder = private::temporary_dir().map_err(io_error(path))?;
        let copy = folder.path().join(COPY_NAME);
        let mut target = private::create_file(&copy).map_err(io_error(path))?;
        let mut buffer = vec![0; 1 << 20];
        let mut offset = 0;
        loop {
            stop.check(Error::Stopped)?;
            let read = self.database.read_at(&mut buffer, offset).map_err(io_error(path))?;
            target.write_all(&buffer[..read]).map_err(io_error(path))?;
            offset += read as u64;
            if read < buffer.len() {
                break;
            }
        }
        for suffix in ["-wal", "-journal"] {
            match files::open(&beside(&self.real, suffix)) {
                Ok(mut file) => private::create_file(&beside(&copy, suffix))
                    .and_then(|mut copy| io::copy(&mut file, &mut copy))
                    .map(drop)
                    .map_err(io_error(path))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_error(path)(error)),
            }
        }
        if self.now().map_err(io_error(path))? != self.before {
            return Err(Error::Unsteady { path: path.to_owned() });
        }
        Ok(FileAccess::Copy { folder })
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| Error::Io { path: path.to_owned(), source }
}

impl FileState {
    fn of(database: &SharedFile, real: &Path) -> io::Result<FileState> {
        let mut header = [0; 100];
        database.read_at(&mut header, 0)?;
        Ok(FileState {
            header,
            database: database.stamp()?,
            wal: header::stamp_at(&beside(real, "-wal"))?,
            shm: header::stamp_at(&beside(real, "-shm"))?.is_some(),
            journal: header::stamp_at(&beside(real, "-journal"))?,
        })
    }

    fn in_wal_mode(&self) -> bool {
        self.header[18] == 2 && self.header[19] == 2
    }
}

const COPY_NAME: &str = "copy.db";

/// Returns the path of a database's companion file, such as `-wal`.
pub fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn uri(path: &Path, parameters: &str) -> String {
    let text = path.as_os_str().as_encoded_bytes();
    // The host name in the URI is empty, and only a path that begins with a slash may follow it.
    let mut uri = String::from(if text.first() == Some(&b'/') { "file://" } else { "file:" });
    for &byte in text {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b':' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push('?');
    uri.push_str(parameters);
    uri
}

fn sqlite_code(error: &Error) -> Option<i32> {
    let Error::Sqlite { source: rusqlite::Error::SqliteFailure(failure, _), .. } = error else {
        return None;
    };
    Some(failure.extended_code)
}

fn explain(path: &Path, stop: &Stop, error: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => Error::Stopped,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) if stop.requested() => {
            Error::Stopped
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
        Some(ErrorCode::NotADatabase) => Error::NotADatabase { path },
        Some(ErrorCode::TooBig) => Error::TooLong { path },
        _ => Error::Sqlite { path, source: error },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the number of messages that an attempt reads.
    fn seen(path: &Path, number: u32) -> i64 {
        let database = attempt(path, &Call::default(), number, None).unwrap();
        let sql = "SELECT count(*) FROM messages";
        database.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn the_log_and_the_journal_of_an_empty_file_stay() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.db");
        let beside_it = [beside(&path, "-wal"), beside(&path, "-journal")];
        for content in ["", "S"] {
            fs::write(&path, content).unwrap();
            beside_it.iter().for_each(|file| fs::write(file, "text").unwrap());
            for number in 0..ATTEMPTS {
                let opened = attempt(&path, &Call::default(), number, None);
                assert!(opened.is_err(), "{opened:?}");
                for file in &beside_it {
                    assert_eq!(fs::read(file).unwrap(), b"text", "attempt {number}");
                }
            }
        }
    }

    #[test]
    fn a_commit_that_is_not_finished_is_not_seen() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.db");
        let add = "INSERT INTO messages VALUES (hex(randomblob(8)), 'c', 'user', 'red', 1)";
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE conversations (id TEXT, title TEXT);
                 CREATE TABLE messages
                     (id TEXT, conversation_id TEXT, role TEXT, content TEXT, create_time);",
            )
            .unwrap();
        writer.execute_batch(add).unwrap();
        // The log of the copy ends with one more commit, which is not in the -shm.
        let copy = home.path().join("copy.db");
        for suffix in ["", "-wal"] {
            fs::copy(beside(&path, suffix), beside(&copy, suffix)).unwrap();
        }
        let other = Connection::open(&copy).unwrap();
        other.execute_batch(add).unwrap();
        let log = fs::read(beside(&copy, "-wal")).unwrap();
        assert!(log.len() as u64 > fs::metadata(beside(&path, "-wal")).unwrap().len());
        fs::write(beside(&path, "-wal"), log).unwrap();
        for number in 0..ATTEMPTS {
            assert_eq!(seen(&path, number), 1, "attempt {number}");
        }
        drop((writer, other));
    }
}
