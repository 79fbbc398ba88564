//! The list of finished imports of a database. An import in the list need not be repeated.
//!
//! The list is a value in `verbatim_meta`. The list is valid only if no transaction followed the one that
//! wrote it. To check this, the list holds the value of SQLite's change counter after that transaction; every
//! later transaction raises the counter.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Result};
use serde::{Deserialize, Serialize};

use crate::db::header::shared_file;

const NAME: &str = "imports";

/// The maximum number of imports in a list. A further import removes the oldest one.
const MOST: usize = 32;

/// The positions of two fields in a database header: the write and read versions, and the change counter.
const WAYS: std::ops::Range<usize> = 18..20;
const COUNTER: std::ops::Range<usize> = 24..28;

/// The write version of a database with a rollback journal. Each transaction raises the change counter by
/// one.
const ROLLBACK: u8 = 1;

/// The write version of a database with a write-ahead log.
const LOG: u8 = 2;

/// A finished import. Repeating it would change nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedImport {
    /// The key: it identifies the exports, their state and the options of the import.
    pub key: String,
    /// The result of the import, in the caller's format.
    pub found: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredLedger {
    counter: u32,
    imports: Vec<FinishedImport>,
}

/// The list of a database during an import.
#[derive(Debug, Default)]
pub struct Ledger {
    imports: Vec<FinishedImport>,
    counter: Option<u32>,
    /// The last value of SQLite's `data_version` that this connection read.
    seen: Option<i64>,
    is_disturbed: bool,
}

impl Ledger {
    /// Reads the list of a database that has the tables of this program.
    pub(super) fn read(connection: &Connection, path: &Path) -> Result<Ledger> {
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

    /// Returns the result of an earlier import, if the database is unchanged since, so that repeating the
    /// import would change nothing.
    pub fn earlier_result(&self, key: &str) -> Option<&str> {
        self.imports.iter().find(|import| import.key == key).map(|import| import.found.as_str())
    }

    /// Returns whether the database holds the result of an import whose key begins with `start`.
    pub fn has_result(&self, start: &str) -> bool {
        self.imports.iter().any(|import| import.key.starts_with(start))
    }

    /// Checks whether another connection wrote since the last call.
    pub(super) fn check_for_writers(&mut self, connection: &Connection) -> Result<()> {
        let now = data_version(connection)?;
        self.is_disturbed |= self.seen.is_some_and(|seen| seen != now);
        self.seen = Some(now);
        Ok(())
    }

    /// Updates the counters after this connection switched the database to WAL mode. The switch raises the
    /// change counter once and may change `data_version`.
    pub(super) fn go_on_with_log(&mut self, connection: &Connection, path: &Path) -> Result<()> {
        self.seen = Some(data_version(connection)?);
        let is_raised_once =
            self.counter.is_none_or(|before| counter(path, LOG) == Some(before.wrapping_add(1)));
        self.is_disturbed |= !is_raised_once;
        Ok(())
    }

    pub(super) fn remove(connection: &Connection) -> Result<()> {
        connection.execute("DELETE FROM verbatim_meta WHERE name = ?1", [NAME]).map(drop)
    }

    /// Adds an import that was just committed, and writes the list. Keeps earlier imports in the list if
    /// `keeps_earlier` is set: this import changed no existing conversation.
    ///
    /// Writes nothing if another connection wrote during the import; the next import then runs in full.
    pub(super) fn write(
        mut self,
        connection: &Connection,
        path: &Path,
        import: Option<FinishedImport>,
        keeps_earlier: bool,
    ) -> Result<()> {
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
        let written =
            self.check_for_writers(connection).and_then(|()| match counter(path, ROLLBACK) {
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

fn data_version(connection: &Connection) -> Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

/// Returns the change counter of a database with the write version `way`; `None` if the version differs.
fn counter(path: &Path, way: u8) -> Option<u32> {
    let mut header = [0; 100];
    let read = shared_file(path).and_then(|file| file.read_at(&mut header, 0)).ok()?;
    let number = header[COUNTER].try_into().map(u32::from_be_bytes).ok()?;
    (read == header.len() && header[WAYS] == [way; 2]).then_some(number)
}
