//! Removes every byte of deleted texts from a database's files.

use rusqlite::Connection;

/// Makes SQLite overwrite all texts that are deleted from now on.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))
}

/// Rewrites the database without free pages, because they may contain deleted texts, and empties the log.
/// Returns whether the log is empty: a reader of an older state prevents that.
pub(super) fn finish(connection: &Connection) -> rusqlite::Result<bool> {
    connection.execute_batch("VACUUM")?;
    let is_busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(!is_busy)
}
