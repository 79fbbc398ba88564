//! Opening databases so that nothing about them changes.
//!
//! SQLite alone would leave files behind: a read-only connection to a database in WAL mode creates
//! `-wal` and `-shm` where there are none, and cannot roll a crashed writer's journal back. So the
//! way in depends on what lies beside the database, and where it bypasses SQLite's locks the files
//! are compared before and after: an answer counts only if nobody wrote meanwhile.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, ffi};
use tempfile::TempDir;

use super::{
    Error, Layout, functions,
    header::{self, SharedFile, Stamp},
    layout,
};
use crate::{map_faults, model::Stop};

/// How long another program's lock is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Attempts at finding the files at rest.
const ATTEMPTS: u32 = 8;

/// The attempt from which on a private copy is read.
const COPY_FROM: u32 = 4;

/// A write this recent could be followed by another that leaves the same time on the file.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Steps of SQLite's machine between two looks at the stop: some 10 to 100 µs.
const STEPS: i32 = 1_000;

/// SQLite's VFS without locks.
const LOCKLESS: &str = if cfg!(windows) { "win32-none" } else { "unix-none" };

/// An open database, inside one read transaction from first to last.
#[derive(Debug)]
pub struct Database {
    // Fields drop in order: the connection goes before the files it reads.
    connection: Connection,
    layout: Layout,
    path: PathBuf,
    files: Files,
    way: Way,
    stop: Stop,
    /// How many pages of maps had been missing before.
    faults: u64,
}

/// How SQLite reads the files.
#[derive(Debug)]
enum Way {
    /// In rollback mode, under SQLite's locks.
    Locked,
    /// In WAL mode, through the `-wal` and `-shm` that are there.
    Wal,
    /// In WAL mode with nothing in the log: as a file that does not change.
    Still,
    /// In WAL mode with a log and no `-shm`: the log is indexed in memory, without locks.
    Log,
    /// A private copy, because SQLite must write to recover.
    Copy { folder: TempDir },
}

/// A database and what lies beside it.
#[derive(Debug)]
struct Files {
    database: SharedFile,
    real: PathBuf,
    before: State,
}

/// What the files were at one moment.
#[derive(Debug, PartialEq, Eq)]
struct State {
    header: [u8; 100],
    database: Stamp,
    wal: Option<Stamp>,
    shm: bool,
    journal: Option<Stamp>,
}

/// Opens the database for reading and begins a read transaction.
///
/// What is read counts only if [`Database::steady`] afterwards; [`read`] sees to that.
pub fn open(path: &Path, stop: &Stop) -> Result<Database, Error> {
    attempt(path, stop, 0, None)
}

/// Opens a database as [`open`] does, of a state whose layout is known: it is not looked for again.
pub fn open_again(path: &Path, layout: &Layout, stop: &Stop) -> Result<Database, Error> {
    attempt(path, stop, 0, Some(layout))
}

/// Reads from a database, again if another program wrote to it meanwhile.
///
/// `work` sees one state of the database from first to last. It runs once per attempt, so it must
/// begin anew each time.
pub fn read<T>(
    path: &Path,
    stop: &Stop,
    mut work: impl FnMut(&Database) -> Result<T, Error>,
) -> Result<T, Error> {
    for number in 0..ATTEMPTS {
        match attempt(path, stop, number, None) {
            Ok(database) => match work(&database) {
                Err(Error::Stopped) => return Err(Error::Stopped),
                answer if database.steady() => return answer,
                _ => {}
            },
            Err(Error::Unsteady { .. }) => {}
            Err(error) => return Err(error),
        }
        pause(Duration::from_millis(5 << number), stop)?;
    }
    Err(Error::Unsteady { path: path.to_owned() })
}

impl Database {
    /// Returns the shape of the database.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether nobody has changed the database since it was opened.
    ///
    /// Always so where SQLite's own locks and logs keep readers and writers apart.
    pub fn steady(&self) -> bool {
        // SQLite maps the index of a log.
        if map_faults::count() != self.faults {
            return false;
        }
        let now = match self.way {
            Way::Wal | Way::Copy { .. } => return true,
            Way::Locked | Way::Still | Way::Log => self.files.now(),
        };
        let before = &self.files.before;
        now.is_ok_and(|now| match self.way {
            Way::Locked => (now.header, now.database) == (before.header, before.database),
            _ => &now == before,
        })
    }

    /// Returns the connection, for the other files of this room.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns an error of SQLite's as ours.
    pub(super) fn error(&self, error: rusqlite::Error) -> Error {
        explain(&self.path, &self.stop, error)
    }
}

fn attempt(
    path: &Path,
    stop: &Stop,
    number: u32,
    known: Option<&Layout>,
) -> Result<Database, Error> {
    let faults = map_faults::count();
    let mut files = Files::find(path)?;
    let mut way = if number < COPY_FROM { files.way() } else { files.copy(path, stop)? };
    if matches!(way, Way::Still | Way::Log) {
        files.settle(path)?;
    }
    let (connection, detected) = loop {
        let error = match begin(path, stop, &mut files, &way, known) {
            Ok(begun) => break begun,
            Err(error) => error,
        };
        if !files.in_place() {
            return Err(Error::Unsteady { path: path.to_owned() });
        }
        way = match (sqlite_code(&error), way) {
            (Some(ffi::SQLITE_READONLY_ROLLBACK), Way::Locked | Way::Wal) => {
                files.copy(path, stop)?
            }
            (
                Some(
                    ffi::SQLITE_READONLY_CANTINIT
                    | ffi::SQLITE_READONLY_RECOVERY
                    | ffi::SQLITE_CANTOPEN,
                ),
                Way::Wal,
            ) => Way::Log,
            _ => return Err(error),
        };
    };
    // What lies beside a database is found by its name: SQLite may have opened one file and then
    // the log of another, or ours may be gone.
    if !matches!(way, Way::Copy { .. }) && !files.in_place() {
        return Err(Error::Unsteady { path: path.to_owned() });
    }
    let layout =
        detected.map_err(|missing| Error::NotCanonical { path: path.to_owned(), missing })?;
    let (path, stop) = (path.to_owned(), stop.clone());
    Ok(Database { connection, layout, path, files, way, stop, faults })
}

/// Opens a connection and begins its transaction.
fn begin(
    path: &Path,
    stop: &Stop,
    files: &mut Files,
    way: &Way,
    known: Option<&Layout>,
) -> Result<(Connection, layout::Detected), Error> {
    let explained = |error| explain(path, stop, error);
    let connection = connect(&files.real, stop, way).map_err(explained)?;
    if matches!(way, Way::Wal) && !matches!(files.way(), Way::Wal) {
        return Err(Error::Unsteady { path: path.to_owned() });
    }
    let begun = "BEGIN; SELECT count(*) FROM sqlite_schema";
    connection.execute_batch(begun).map_err(explained)?;
    if matches!(way, Way::Locked) {
        files.before = files.now().map_err(|source| Error::Io { path: path.to_owned(), source })?;
    }
    let detected = match known {
        Some(layout) => Ok(layout.clone()),
        None => layout::detect(&connection).map_err(explained)?,
    };
    Ok((connection, detected))
}

fn connect(real: &Path, stop: &Stop, way: &Way) -> rusqlite::Result<Connection> {
    let mut access = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let uri = match way {
        Way::Locked | Way::Wal => uri(real, "mode=ro"),
        Way::Still => uri(real, "mode=ro&immutable=1"),
        Way::Log => uri(real, &format!("mode=ro&vfs={LOCKLESS}")),
        Way::Copy { folder } => {
            access = OpenFlags::SQLITE_OPEN_READ_WRITE;
            uri(&folder.path().join(COPY_NAME), "mode=rw")
        }
    };
    let flags = access | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(uri, flags)?;
    // Else closing the last connection would move a log into the database and delete it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    let patience = stop.clone();
    let mut since = None;
    connection.busy_handler(Some(move |tries| {
        let since: &mut Option<Instant> = &mut since;
        if tries == 0 {
            *since = None;
        }
        thread::sleep(Duration::from_millis(if tries < 10 { 2 } else { 15 }));
        since.get_or_insert_with(Instant::now).elapsed() < PATIENCE && !patience.requested()
    }))?;
    let asked = stop.clone();
    connection.progress_handler(STEPS, Some(move || asked.requested()))?;
    // No mmap: a database that another program truncates would end ours with SIGBUS, and a scan
    // of 532,167 messages takes 0.27 s with and without.
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY")?;
    if matches!(way, Way::Log) {
        connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
    }
    functions::add(&connection)?;
    Ok(connection)
}

impl Files {
    fn find(path: &Path) -> Result<Files, Error> {
        let not_found = || Error::NotFound { path: path.to_owned() };
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_found(),
            _ => Error::Io { path: path.to_owned(), source },
        };
        let real = fs::canonicalize(path).map_err(failed)?;
        if !fs::metadata(&real).map_err(failed)?.is_file() {
            return Err(not_found());
        }
        let database = header::lease(&real).map_err(failed)?;
        let before = State::of(&database, &real).map_err(failed)?;
        Ok(Files { database, real, before })
    }

    /// Returns how to read the files as they were found.
    fn way(&self) -> Way {
        // Asked anew: the last look before SQLite's own should be a short time ago.
        let now = self.now();
        let state = now.as_ref().unwrap_or(&self.before);
        if !state.in_wal_mode() {
            return Way::Locked;
        }
        match (&state.wal, state.shm) {
            (None, _) => Way::Still,
            (Some(wal), false) if wal.size == 0 => Way::Still,
            (Some(_), true) => Way::Wal,
            (Some(_), false) => Way::Log,
        }
    }

    fn now(&self) -> io::Result<State> {
        State::of(&self.database, &self.real)
    }

    /// Returns whether the database that was found still has its name.
    fn in_place(&self) -> bool {
        let there = header::stamp_at(&self.real);
        there.is_ok_and(|stamp| stamp.is_some_and(|s| s.identity == self.database.identity()))
    }

    /// Waits until a write that is still to come would leave another time on the file.
    fn settle(&mut self, path: &Path) -> Result<(), Error> {
        let recent = |stamp: &Stamp| {
            stamp.modified.and_then(|time| SystemTime::now().duration_since(time).ok())
                < Some(CLOCK_TICK)
        };
        if recent(&self.before.database) || self.before.wal.as_ref().is_some_and(recent) {
            thread::sleep(CLOCK_TICK);
        }
        let now = self.now().map_err(|source| Error::Io { path: path.to_owned(), source })?;
        if now != self.before {
            return Err(Error::Unsteady { path: path.to_owned() });
        }
        Ok(())
    }

    /// Copies the database and its log or journal into a private folder.
    fn copy(&mut self, path: &Path, stop: &Stop) -> Result<Way, Error> {
        let failed = |source| Error::Io { path: path.to_owned(), source };
        self.before = self.now().map_err(failed)?;
        let folder = tempfile::Builder::new().prefix("verbatim-").tempdir().map_err(failed)?;
        let copy = folder.path().join(COPY_NAME);
        let mut target = File::create(&copy).map_err(failed)?;
        let mut buffer = vec![0; 1 << 20];
        let mut offset = 0;
        loop {
            if stop.requested() {
                return Err(Error::Stopped);
            }
            let read = self.database.read_at(&mut buffer, offset).map_err(failed)?;
            target.write_all(&buffer[..read]).map_err(failed)?;
            offset += read as u64;
            if read < buffer.len() {
                break;
            }
        }
        for suffix in ["-wal", "-journal"] {
            match fs::copy(beside(&self.real, suffix), beside(&copy, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        if self.now().map_err(failed)? != self.before {
            return Err(Error::Unsteady { path: path.to_owned() });
        }
        Ok(Way::Copy { folder })
    }
}

impl State {
    fn of(database: &SharedFile, real: &Path) -> io::Result<State> {
        let mut header = [0; 100];
        database.read_at(&mut header, 0)?;
        Ok(State {
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

/// The name of a private copy in its folder.
const COPY_NAME: &str = "copy.db";

/// Returns the path of the file that SQLite keeps beside a database.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns `file:` with the path escaped, so that no byte of it is read as syntax.
fn uri(path: &Path, parameters: &str) -> String {
    let mut uri = String::from("file://");
    let text = path.as_os_str().as_encoded_bytes();
    if text.first() != Some(&b'/') {
        uri.push('/');
    }
    for &byte in text {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
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
        _ => Error::Sqlite { path, source: error },
    }
}

fn pause(length: Duration, stop: &Stop) -> Result<(), Error> {
    let end = Instant::now() + length;
    while Instant::now() < end {
        if stop.requested() {
            return Err(Error::Stopped);
        }
        thread::sleep(Duration::from_millis(5).min(length));
    }
    Ok(())
}
