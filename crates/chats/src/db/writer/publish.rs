//! Creates a database under a temporary name. It has no readers yet, so it is written without protection for
//! readers. The file is renamed when it is complete.

#[cfg(unix)]
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params_from_iter, types::Value};

use super::fresh::FreshDatabase;
use super::merge::{Merge, MergeMode};
use super::{Changes, Error, Result, Writer, WriterState, configure};
use crate::db::schema::{self, SchemaState};
use crate::db::temporary::TemporaryDatabase;
use verbatim_base::{failpoint, private};

const HISTORY: &str = "time, path, conversations, messages, new_conversations, new_messages,
    updated_conversations, updated_messages, skipped";

impl Writer {
    /// Begins a database under a temporary name.
    ///
    /// Only its owner can read the database, because chats are private.
    pub(super) fn create(&mut self) -> Result<()> {
        let folder = self.folder();
        let file = private::create_dir_all(&folder)
            .and_then(|()| TemporaryDatabase::begin(&folder))
            .map_err(|source| Error::Io { path: folder, source })?;
        let made = (|| {
            let mut connection = Connection::open(file.path())?;
            configure(&mut connection, None)?;
            connection.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
            connection.execute_batch("PRAGMA synchronous = OFF; BEGIN")?;
            schema::create_without_key(&connection)?;
            Ok(connection)
        })();
        self.connection = Some(made.map_err(|error| self.failed(error))?);
        self.found = SchemaState::Ours;
        self.state = WriterState::Writing;
        self.fresh = Some(FreshDatabase::new(file));
        Ok(())
    }

    /// Finishes the new database and renames it. If another import created a database with that name first,
    /// merges the new database into the other one.
    pub(super) fn publish(&mut self, mut fresh: FreshDatabase) -> Result<()> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        let ended = (|| {
            fresh.complete(&connection)?;
            failpoint::pass("import to be committed");
            connection.execute_batch("COMMIT")?;
            connection.close().map_err(|(_, error)| error)
        })();
        ended.map_err(|error| self.failed(error))?;
        fresh.file.sync().map_err(|source| Error::Io { path: self.path.clone(), source })?;
        failpoint::pass("database made");
        match fresh.file.take_place(&self.path) {
            Ok(()) => {
                failpoint::pass("database in its place");
                // The new name is durable only after the folder is synced.
                #[cfg(unix)]
                drop(File::open(self.folder()).and_then(|folder| folder.sync_all()));
                Ok(())
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                self.connect()?;
                self.state = WriterState::Comparing;
                self.met.clear();
                self.has_replaced = false;
                self.take_in(&error.path).map_err(|error| self.failed(error))
            }
            Err(error) => Err(Error::Io { path: self.path.clone(), source: error.error }),
        }
    }

    /// Merges another database that an import made, with its history of imports.
    fn take_in(&mut self, path: &Path) -> rusqlite::Result<()> {
        self.changes = Changes::default();
        let made = Connection::open(path)?;
        let merge = Merge { connection: &made, parts: false, mode: MergeMode::Compare, late: None };
        let mut ids = made.prepare("SELECT id FROM conversations ORDER BY rowid")?;
        let mut ids = ids.query([])?;
        while let Some(row) = ids.next()? {
            if let Some((source, conversation)) = merge.read(&row.get::<_, String>(0)?)? {
                self.merge(&source, &conversation)?;
            }
        }
        let mut history = made.prepare(&format!("SELECT {HISTORY} FROM verbatim_imports"))?;
        let columns = history.column_count();
        let sql = format!(
            "INSERT INTO verbatim_imports ({HISTORY}) VALUES ({})",
            vec!["?"; columns].join(", ")
        );
        let mut rows = history.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<Value> =
                (0..columns).map(|column| row.get(column)).collect::<Result<_, _>>()?;
            self.begin()?.execute(&sql, params_from_iter(values))?;
        }
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    pub(super) fn failed(&self, source: rusqlite::Error) -> Error {
        Error::Sqlite { path: self.path.clone(), source }
    }
}
