//! Moves a database of this program to another folder.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use rusqlite::{Connection, OpenFlags};

use super::{open::beside, temporary::TemporaryDatabase, writer::Error};
use verbatim_base::private;

/// Moves a database that no other program has open. The target must not exist. The database is
/// removed from its old place only after the new file is complete and on disk.
pub fn relocate(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| Error::Io { path, source }
    };
    let sqlite = |source| Error::Sqlite { path: from.to_owned(), source };
    let folder = to.parent().unwrap_or(Path::new("."));
    private::create_dir_all(folder).map_err(failed(folder))?;
    // This file stays open longer than the connection: closing it would drop the connection's locks.
    let mut old = File::open(from).map_err(failed(from))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(from, flags).map_err(sqlite)?;
    // Outside WAL mode a database is one file. The statement fails if another program has the database open.
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(sqlite)?;
    let temporary = TemporaryDatabase::begin(folder).map_err(failed(folder))?;
    if cfg!(windows) {
        // On Windows another handle cannot read the bytes that the connection has locked.
        copy_by_sqlite(&connection, temporary.path()).map_err(sqlite)?;
    } else {
        connection.execute_batch("BEGIN EXCLUSIVE").map_err(sqlite)?;
        let mut new = private::open_file(temporary.path()).map_err(failed(to))?;
        io::copy(&mut old, &mut new).and_then(|_| new.sync_all()).map_err(failed(to))?;
    }
    temporary.take_place(to).map_err(|error| failed(to)(error.error))?;
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))?;
    // Windows does not remove open files.
    if cfg!(windows) {
        drop(connection);
        drop(old);
        return fs::remove_file(from).map_err(failed(from));
    }
    fs::remove_file(from).map_err(failed(from))?;
    for end in ["-wal", "-shm", "-journal"] {
        drop(fs::remove_file(beside(from, end)));
    }
    Ok(())
}

fn copy_by_sqlite(connection: &Connection, to: &Path) -> rusqlite::Result<()> {
    connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_by_sqlite_has_every_row() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("old.db")).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (id TEXT PRIMARY KEY); INSERT INTO t VALUES ('a'), ('b')",
            )
            .unwrap();
        let temporary = TemporaryDatabase::begin(folder.path()).unwrap();
        copy_by_sqlite(&connection, temporary.path()).unwrap();
        let copy = Connection::open(temporary.path()).unwrap();
        let count: u32 = copy.query_one("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 2);
    }
}
