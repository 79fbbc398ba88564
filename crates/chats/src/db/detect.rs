//! Tells whether a file is a database that was copied completely and has the canonical tables.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use super::Error;
use super::header::{Identity, Stamp, shared_file, stamp_at};
use super::open::{self, beside};
use verbatim_base::{call::Call, lock::lock};

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Returns whether a file is a database with the length that its header records. A copy in progress is
/// shorter. If the database has a log, the file may be shorter too.
///
/// The check takes a few system calls and reads 100 bytes.
pub fn is_whole(path: &Path) -> bool {
    let Ok(file) = shared_file(path) else { return false };
    let mut head = [0; 100];
    let (Ok(100), Ok(stamp)) = (file.read_at(&mut head, 0), file.stamp()) else { return false };
    if !head.starts_with(MAGIC) {
        return false;
    }
    let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let page = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    // SQLite before 3.7 does not update the number of pages; then the two counters differ.
    let is_counted = number(24) == number(92);
    if !is_counted || stamp.size >= page * u64::from(number(28)) {
        return true;
    }
    has_log(path)
}

/// Returns whether a database has a log that is not empty: a program has the database open in WAL mode, or
/// left the log behind.
pub fn has_log(path: &Path) -> bool {
    let log = dunce::canonicalize(path).map(|real| beside(&real, "-wal"));
    log.and_then(|log| stamp_at(&log)).is_ok_and(|log| log.is_some_and(|log| log.size > 0))
}

/// Returns whether a file is a whole database with the canonical tables. Also returns true if another program
/// keeps the database busy, or if it is damaged.
///
/// Opening a database takes longer than a search, so the result is cached: by identity for a canonical
/// database, by stamp for any other file.
pub fn is_canonical(path: &Path) -> bool {
    /// A locked file counts as a database, so a long wait would not change the result.
    const MAX_LOCK_WAIT: Duration = Duration::from_millis(100);

    static KNOWN: Mutex<Vec<(PathBuf, Identity)>> = Mutex::new(Vec::new());
    static OTHERS: Mutex<Vec<(PathBuf, Stamp)>> = Mutex::new(Vec::new());

    let Ok(file) = shared_file(path) else { return false };
    let identity = file.identity();
    let stamp = file.stamp();
    drop(file);
    if !is_whole(path) {
        return false;
    }
    if lock(&KNOWN).iter().any(|known| known.0 == path && known.1 == identity) {
        return true;
    }
    if let Ok(stamp) = &stamp
        && lock(&OTHERS).iter().any(|(other, old)| other == path && old == stamp)
        && !has_log(path)
    {
        return false;
    }
    match open::open(path, &Call::default().waiting_for_locks(MAX_LOCK_WAIT)) {
        Ok(_) => {
            let mut known = lock(&KNOWN);
            known.retain(|(other, _)| other != path);
            known.push((path.to_owned(), identity));
            true
        }
        Err(Error::Busy { .. } | Error::Unsteady { .. } | Error::Sqlite { .. }) => true,
        Err(_) => {
            // A write to the log does not change the stamp of the database.
            if let (Ok(stamp), false) = (stamp, has_log(path)) {
                let mut others = lock(&OTHERS);
                others.retain(|(other, _)| other != path);
                others.push((path.to_owned(), stamp));
            }
            false
        }
    }
}
