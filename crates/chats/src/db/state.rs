//! The state of a database, read from its files without SQLite.
//!
//! An index is built from one state. Checking whether the database is still in this state must take only
//! microseconds, and must never succeed after a change. So the state has all properties of the files that a
//! change must alter:
//!
//! - of the database file: device, inode, length, times, and the change counter in SQLite's header. Every
//!   transaction in rollback mode increments this counter (<https://www.sqlite.org/fileformat.html>);
//! - in WAL mode: the same properties of the log, the log's header with its salts, and the head of the `-shm`
//!   file if processes have the database open. Every commit rewrites that head
//!   (<https://www.sqlite.org/walformat.html>);
//! - a rollback journal that is in use.
//!
//! Times alone are not enough, because two writes within one tick of the clock get the same time. So a build
//! of an index waits for one tick before it stores the state ([`settled`]).
//!
//! Invariant: equal states have equal rows. The reverse is not always true: a checkpoint changes
//! the state and no row.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};
use std::{fmt, thread};

use super::header::{self, SharedFile, Stamp};
use super::open::{CLOCK_TICK, beside};
use super::{Error, Result};
use verbatim_base::files;

/// The clock tick of file systems that store times in whole seconds, or in steps of two seconds as FAT does.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// The first bytes of a rollback journal that is in use.
const JOURNAL_MAGIC: [u8; 8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7];

/// A state of a database: equal states have equal rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(Vec<u8>);

/// A reader of the current state of one database. Each reading takes about five system calls.
#[derive(Debug)]
pub struct Probe {
    path: PathBuf,
    file: SharedFile,
    real: PathBuf,
    wal: PathBuf,
    shm: PathBuf,
    journal: PathBuf,
}

impl Probe {
    /// Returns a probe for the database at `path`. The probe keeps the database file open.
    pub fn new(path: &Path) -> Result<Probe> {
        files::check(path).map_err(|source| explain(path, source))?;
        let real = dunce::canonicalize(path).map_err(|source| explain(path, source))?;
        Ok(Probe {
            path: path.to_owned(),
            file: header::shared_file(&real).map_err(|source| explain(path, source))?,
            wal: beside(&real, "-wal"),
            shm: beside(&real, "-shm"),
            journal: beside(&real, "-journal"),
            real,
        })
    }

    /// Returns the path that the probe was made with, which may contain symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the database without symbolic links.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Returns the current state of the database. Returns `None` if the path now names another file. The
    /// caller then needs a new probe.
    pub fn state(&self) -> Result<Option<State>> {
        let stamp = Stamp::from_path(&self.path).map_err(|source| explain(&self.path, source))?;
        if stamp.identity != self.file.identity() {
            return Ok(None);
        }
        let (state, _) = self.name(&stamp).map_err(|source| explain(&self.path, source))?;
        Ok(Some(state))
    }

    /// Returns the state, and the time of the last write to the files.
    fn name(&self, stamp: &Stamp) -> io::Result<(State, Option<SystemTime>)> {
        let mut head = [0; 100];
        self.file.read_at(&mut head, 0)?;
        let mut newest = stamp.modified;
        let mut state = State(Vec::with_capacity(256));
        state.add_stamp(stamp);
        let (seconds, nanos) = stamp.changed();
        state.add(&seconds.to_le_bytes());
        state.add(&nanos.to_le_bytes());
        state.add(&head[18..40]);
        state.add(&head[92..100]);
        if let Some(stamp) = header::stamp_at(&self.wal)?.filter(|stamp| stamp.size > 0) {
            newest = newest.max(stamp.modified);
            let mut head = [0; 32];
            read_start(&self.wal, &mut head)?;
            state.add(b"wal");
            // The time of the last metadata change is left out: if root runs SQLite, each opening sets the
            // owner.
            state.add_stamp(&stamp);
            state.add(&head);
            // SQLite holds locks on the -shm file, so the file is read through a descriptor that stays open.
            match header::shared_file(&self.shm) {
                Ok(shared) => {
                    let mut copies = [0; 96];
                    shared.read_at(&mut copies, 0)?;
                    state.add(b"shm");
                    state.add(&copies);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(stamp) = header::stamp_at(&self.journal)?.filter(|stamp| stamp.size > 0) {
            let mut head = [0; 8];
            read_start(&self.journal, &mut head)?;
            if head == JOURNAL_MAGIC {
                newest = newest.max(stamp.modified);
                state.add(b"journal");
                state.add_stamp(&stamp);
            }
        }
        Ok((state, newest))
    }
}

/// Returns the current state of the database at `path`. Fails if its files cannot be read.
pub fn state(path: &Path) -> Result<State> {
    // Another file may replace the database between the two calls.
    loop {
        if let Some(state) = Probe::new(path)?.state()? {
            return Ok(state);
        }
    }
}

/// Waits until every later write will change the times of the files; returns the state.
pub fn settled(path: &Path) -> Result<State> {
    let probe = Probe::new(path)?;
    let named = probe.file.stamp().and_then(|stamp| probe.name(&stamp));
    let (_, newest) = named.map_err(|source| explain(path, source))?;
    if let Some(newest) = newest {
        let is_coarse = newest
            .duration_since(SystemTime::UNIX_EPOCH)
            .is_ok_and(|since| since.subsec_nanos() == 0);
        let tick = if is_coarse { COARSE_TICK } else { CLOCK_TICK };
        // A time in the future (the clock was set back) counts as old.
        if let Ok(age) = SystemTime::now().duration_since(newest)
            && age < tick
        {
            thread::sleep(tick - age);
        }
    }
    state(path)
}

/// What a state says of the database file: device, inode, length and times, then bytes of SQLite's header.
const LENGTH: Range<usize> = 16..24;
const HEADER: Range<usize> = 56..86;

impl State {
    /// Returns whether another state may be that of the same file before it was moved or copied: length and header
    /// are equal, and no log or journal has more. The rows are equal if nobody wrote to the file since, which must
    /// be checked.
    pub fn may_be_moved(&self, other: &State) -> bool {
        [self, other].iter().all(|state| state.0.len() == HEADER.end)
            && [LENGTH, HEADER].into_iter().all(|part| self.0[part.clone()] == other.0[part])
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn add_stamp(&mut self, stamp: &Stamp) {
        let since = stamp.modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        for number in stamp.identity.numbers() {
            self.add(&number.to_le_bytes());
        }
        self.add(&stamp.size.to_le_bytes());
        self.add(&since.map_or(0, |since| since.as_nanos()).to_le_bytes());
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for State {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<State, Self::Err> {
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(text.get(at..at + 2).unwrap_or_default(), 16))
            .collect::<Result<_, _>>()
            .map(State)
    }
}

fn explain(path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::NotFound { path: path.to_owned() }
        }
        _ => Error::Io { path: path.to_owned(), source },
    }
}

/// Reads the first bytes of a file that SQLite does not lock. A shorter or missing file gives fewer bytes.
fn read_start(path: &Path, buffer: &mut [u8]) -> io::Result<()> {
    let mut file = match files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(())
}
