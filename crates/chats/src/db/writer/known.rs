//! The exports that need not be read again, because the database has everything that they hold.
//!
//! Each is a row in `verbatim_meta`: its path, and the key of its state and of the options of the import. An
//! import that replaces stored messages removes the rows, because the other exports hold what it replaced.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, params};

use super::{Error, SourceCounts, Writer, configure};
use crate::db::{functions, schema::SchemaState};
use verbatim_base::model::Instant;

/// The beginning of the names of the rows.
const NAME: &str = "import ";

/// An export, and the key of its state and of the options with which it was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownExport {
    /// The path of the export.
    pub path: PathBuf,
    /// The key, in the caller's format.
    pub key: String,
}

/// The last import of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierImport {
    /// The time of the import.
    pub time: Option<Instant>,
    /// What was read.
    pub counts: SourceCounts,
}

impl Writer {
    /// Returns the last import of an export, if reading the export again would change nothing.
    pub fn earlier_import(&self, export: &KnownExport) -> Option<EarlierImport> {
        let connection = self.connection.as_ref().filter(|_| self.found == SchemaState::Ours)?;
        find(connection, export).ok().flatten()
    }

    pub(super) fn forget_known(connection: &Connection) -> Result<()> {
        let sql = "DELETE FROM verbatim_meta WHERE substr(name, 1, length(?1)) = ?1";
        connection.execute(sql, [NAME]).map(drop)
    }
}

/// Records exports that were imported into a database.
pub fn remember(database: &Path, exports: &[KnownExport]) -> Result<(), Error> {
    write(database, exports).map_err(|source| Error::Sqlite { path: database.to_owned(), source })
}

fn write(database: &Path, exports: &[KnownExport]) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(database, flags)?;
    configure(&mut connection, None)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for export in exports {
        let sql = "INSERT OR REPLACE INTO verbatim_meta (name, value) VALUES (?1, ?2)";
        connection.execute(sql, [name(&export.path), export.key.clone()])?;
    }
    connection.execute_batch("COMMIT")
}

fn find(connection: &Connection, export: &KnownExport) -> Result<Option<EarlierImport>> {
    let sql =
        "SELECT i.time, i.conversations, i.messages FROM verbatim_imports AS i, verbatim_meta AS m
               WHERE i.path = ?1 AND m.name = ?2 AND m.value = ?3 ORDER BY i.id DESC LIMIT 1";
    let path = export.path.to_string_lossy();
    let values = params![path, name(&export.path), export.key];
    let earlier = connection.query_row(sql, values, |row| {
        let counts = SourceCounts {
            conversations: row.get::<_, i64>(1)? as u64,
            messages: row.get::<_, i64>(2)? as u64,
            skipped: 0,
        };
        Ok(EarlierImport { time: functions::instant(row.get_ref(0)?), counts })
    });
    earlier.optional()
}

fn name(path: &Path) -> String {
    format!("{NAME}{}", path.to_string_lossy())
}
