//! Checks whether a database file is complete.

use std::{fs, path::Path};

use super::{
    header::{shared_file, stamp_at},
    open::beside,
};

/// The first bytes of every database that is not empty.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Returns whether a file is a database of the length that its header says, and not a copy in
/// progress or another kind of file. If the database has a log, the header may be ahead of the file.
///
/// This takes a few system calls and reads 100 bytes.
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

/// Returns whether a database has a log that is not empty: a program has it open in WAL mode, or a
/// program left it there.
pub fn has_log(path: &Path) -> bool {
    let log = fs::canonicalize(path).map(|real| beside(&real, "-wal"));
    log.and_then(|log| stamp_at(&log)).is_ok_and(|log| log.is_some_and(|log| log.size > 0))
}
