//! Which state of a database its files hold, told without asking SQLite.
//!
//! An index mirrors one state. Whether the database is still in it must cost microseconds, and must
//! never be answered "yes" after a change. So the state is named by all that a change cannot leave
//! as it was:
//!
//! - the file: device, inode, length, times, and in SQLite's header the change counter, which every
//!   transaction in rollback mode counts up (<https://www.sqlite.org/fileformat.html>);
//! - in WAL mode the log's file in the same way, its header with the salts, and, where processes
//!   have the database open, the head of the `-shm`, which every commit rewrites
//!   (<https://www.sqlite.org/walformat.html>);
//! - a rollback journal that is in use.
//!
//! Times alone would not do: two writes within a tick of the clock leave the same one. That tick
//! is waited for before an index notes the state that it is of ([`settled`]).
//!
//! Invariant: equal states hold equal rows; the reverse need not be so (a checkpoint changes the
//! state and no row).

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

use super::{Error, header, open::beside};

/// Writes closer together than this may leave the same time on a file.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// The same on file systems that keep whole seconds, FAT even every second one.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// The first bytes of a rollback journal that is in use.
const JOURNAL_MAGIC: [u8; 8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7];

/// Returns the name of the state that a database is in now.
pub fn state(path: &Path) -> Result<String, Error> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::NotFound { path: path.to_owned() }
        }
        _ => Error::Io { path: path.to_owned(), source },
    };
    let real = fs::canonicalize(path).map_err(failed)?;
    name(&real).map(|(state, _)| state).map_err(failed)
}

/// Returns the state once every file is old enough that any later write shows in its times.
pub(crate) fn settled(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let real = fs::canonicalize(path).map_err(failed)?;
    let (_, newest) = name(&real).map_err(failed)?;
    if let Some(newest) = newest {
        let is_coarse = newest
            .duration_since(SystemTime::UNIX_EPOCH)
            .is_ok_and(|since| since.subsec_nanos() == 0);
        let tick = if is_coarse { COARSE_TICK } else { CLOCK_TICK };
        // A time in the future, after a clock was set back, is as good as an old one.
        if let Ok(age) = SystemTime::now().duration_since(newest)
            && age < tick
        {
            thread::sleep(tick - age);
        }
    }
    state(path)
}

/// Returns the state's name, and when the files were last written to.
fn name(real: &Path) -> io::Result<(String, Option<SystemTime>)> {
    let database = header::lease(real)?;
    let mut head = [0; 100];
    database.read_at(&mut head, 0)?;
    let stamp = database.stamp()?;
    let mut newest = stamp.modified;
    let (seconds, nanos) = stamp.changed();
    let mut state = format!("{stamp}:{seconds}.{nanos} {}", hex(&head[18..40]));
    state.push_str(&hex(&head[92..100]));
    let wal = beside(real, "-wal");
    if let Some(stamp) = header::stamp_at(&wal)?.filter(|stamp| stamp.size > 0) {
        newest = newest.max(stamp.modified);
        let mut head = [0; 32];
        read_start(&wal, &mut head)?;
        state.push_str(&format!(" wal {stamp} {}", hex(&head)));
        // SQLite locks bytes of the -shm: it is read through a descriptor that stays open.
        match header::lease(&beside(real, "-shm")) {
            Ok(shared) => {
                let mut copies = [0; 96];
                shared.read_at(&mut copies, 0)?;
                state.push_str(&format!(" shm {}", hex(&copies)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let journal = beside(real, "-journal");
    if let Some(stamp) = header::stamp_at(&journal)?.filter(|stamp| stamp.size > 0) {
        let mut head = [0; 8];
        read_start(&journal, &mut head)?;
        if head == JOURNAL_MAGIC {
            newest = newest.max(stamp.modified);
            state.push_str(&format!(" journal {stamp}"));
        }
    }
    Ok((state, newest))
}

/// Reads the first bytes of a file that SQLite does not lock; fewer where it is shorter or gone.
fn read_start(path: &Path, buffer: &mut [u8]) -> io::Result<()> {
    let mut file = match File::open(path) {
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
