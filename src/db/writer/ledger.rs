//! The list of imports whose results the database holds, so that the same import need not be repeated.
//!
//! The list is a value in `verbatim_meta`. It counts only while nobody else has written to the
//! database since: it names the value that SQLite's change counter has after it was written, and
//! every later transaction raises the counter.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::db::header::shared_file;

/// The name of the list in `verbatim_meta`.
const NAME: &str = "imports";

/// The most imports of a list; a new import removes the oldest one.
const MOST: usize = 32;

/// The bytes of a database header that are read: the versions for writing and reading, and the change
/// counter.
const WAYS: std::ops::Range<usize> = 18..20;
const COUNTER: std::ops::Range<usize> = 24..28;

/// The write version of a database with a rollback journal. Each transaction raises the change counter by
/// one.
const ROLLBACK: u8 = 1;

/// The write version of a database with a write-ahead log.
const LOG: u8 = 2;

/// An import that would change nothing if it were repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinishedImport {
    /// Identifies the exports and their state, and how they were imported.
    pub(crate) key: String,
    /// The result of the import, as the caller describes it.
    pub(crate) found: String,
}

/// The list as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredLedger {
    counter: u32,
    imports: Vec<FinishedImport>,
}

/// The list of one database while it is written to.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    imports: Vec<FinishedImport>,
    /// The change counter when the list was read.
    counter: Option<u32>,
    /// The value of SQLite's `data_version` when this connection last read.
    seen: Option<i64>,
    /// Whether another connection wrote during this import.
    is_disturbed: bool,
}

impl Ledger {
    /// Reads the list of a database that has our tables.
    pub(super) fn read(connection: &Connection, path: &Path) -> rusqlite::Result<Ledger> {
        let sql = "SELECT value FROM verbatim_meta WHERE name = ?1";
        let stored: Option<String> =
            connection.query_row(sql, [NAME], |row| row.get(0)).optional().unwrap_or_default();
        let stored: Option<StoredLedger> = stored.and_then(|json| serde_json::from_str(&json).ok());
        // This value is read before the change counter, so a write between the two reads is noticed.
        let seen = Some(data_version(connection)?);
        let counter = counter(path, ROLLBACK);
        let valid = stored.filter(|stored| counter == Some(stored.counter));
        let imports = valid.map(|stored| stored.imports).unwrap_or_default();
        Ok(Ledger { imports, counter, seen, is_disturbed: false })
    }

    /// Returns the result of an earlier import, if the database still holds this result.
    pub(super) fn found(&self, key: &str) -> Option<&str> {
        self.imports.iter().find(|import| import.key == key).map(|import| import.found.as_str())
    }

    /// Returns whether the database holds the result of an import whose key begins with `start`.
    pub(super) fn any_found(&self, start: &str) -> bool {
        self.imports.iter().any(|import| import.key.starts_with(start))
    }

    /// Notices whether another connection wrote since the last call.
    pub(super) fn look(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let now = data_version(connection)?;
        self.is_disturbed |= self.seen.is_some_and(|seen| seen != now);
        self.seen = Some(now);
        Ok(())
    }

    /// Updates the counters after this connection has switched the database to WAL mode, which raises the
    /// change counter once and may change `data_version`.
    pub(super) fn go_on_with_log(
        &mut self,
        connection: &Connection,
        path: &Path,
    ) -> rusqlite::Result<()> {
        self.seen = Some(data_version(connection)?);
        let is_raised_once =
            self.counter.is_none_or(|before| counter(path, LOG) == Some(before.wrapping_add(1)));
        self.is_disturbed |= !is_raised_once;
        Ok(())
    }

    /// Removes the list from a database.
    pub(super) fn remove(connection: &Connection) -> rusqlite::Result<()> {
        connection.execute("DELETE FROM verbatim_meta WHERE name = ?1", [NAME]).map(drop)
    }

    /// Adds an import that was just committed, and writes the list. Earlier imports stay if this import
    /// did not change conversations that were already there.
    ///
    /// Writes nothing if another connection wrote during the import; the next import then runs in full.
    pub(super) fn write(
        mut self,
        connection: &Connection,
        path: &Path,
        import: Option<FinishedImport>,
        keeps_earlier: bool,
    ) -> rusqlite::Result<()> {
        if !keeps_earlier {
            self.imports.clear();
        }
        if let Some(import) = import {
            self.imports.retain(|earlier| earlier.key != import.key);
            self.imports.push(import);
        }
        if self.imports.is_empty() {
            return Ok(());
        }
        self.imports.drain(..self.imports.len().saturating_sub(MOST));
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let written = self.look(connection).and_then(|()| match counter(path, ROLLBACK) {
            Some(counter) if !self.is_disturbed => {
                let stored =
                    StoredLedger { counter: counter.wrapping_add(1), imports: self.imports };
                let json = serde_json::to_string(&stored).unwrap_or_default();
                let sql = "INSERT OR REPLACE INTO verbatim_meta (name, value) VALUES (?1, ?2)";
                connection.execute(sql, [NAME, &json]).map(drop)
            }
            _ => Ok(()),
        });
        let end = if written.is_ok() { "COMMIT" } else { "ROLLBACK" };
        connection.execute_batch(end).and(written)
    }
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

/// Returns the change counter of a database with this write version; `None` if it has another write
/// version.
fn counter(path: &Path, way: u8) -> Option<u32> {
    let mut header = [0; 100];
    let read = shared_file(path).and_then(|file| file.read_at(&mut header, 0)).ok()?;
    let number = header[COUNTER].try_into().map(u32::from_be_bytes).ok()?;
    (read == header.len() && header[WAYS] == [way; 2]).then_some(number)
}
