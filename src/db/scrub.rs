//! Leaves no byte of what was deleted in a database's files.

use rusqlite::Connection;

/// Makes SQLite overwrite the text that is deleted from now on.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))
}

/// Rewrites the database without its free pages, where older versions of a text may be left, and
/// empties the log. Returns whether the log is empty: it is not empty while a reader uses an older state.
pub(super) fn finish(connection: &Connection) -> rusqlite::Result<bool> {
    connection.execute_batch("VACUUM")?;
    let is_busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(!is_busy)
}
