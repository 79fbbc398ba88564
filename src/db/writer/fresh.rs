//! A database that is being made: under a temporary name, without the care that a database with
//! readers needs. It gets its name when everything is in it.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};

use super::{
    Error, FinishedImport, Ledger, Writer, WriterState, configure,
    merge::{Merge, MergeMode},
};
use crate::{
    db::{
        schema::{self, SchemaState},
        temporary::TemporaryDatabase,
    },
    failpoint, private,
};

/// How many rows of details are sorted at once.
const ROWS: usize = 100_000;

/// A database that has no name yet.
#[derive(Debug)]
pub(super) struct FreshDatabase {
    file: TemporaryDatabase,
    /// Whether conversations can be looked up: the index of `messages` is there, and all details.
    is_complete: bool,
    details: LateDetails,
}

/// Rows of `verbatim_messages` that are still to be written. Written in the order of their keys, they
/// take a fraction of the time.
#[derive(Debug, Default)]
pub(super) struct LateDetails(RefCell<Vec<DetailRow>>);

/// The columns of `verbatim_messages`.
type DetailRow = (String, Option<String>, Option<String>);

impl LateDetails {
    pub(super) fn push(&self, connection: &Connection, row: DetailRow) -> rusqlite::Result<()> {
        self.0.borrow_mut().push(row);
        if self.0.borrow().len() < ROWS { Ok(()) } else { self.write(connection) }
    }

    fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut rows = self.0.take();
        rows.sort_unstable();
        let sql =
            "INSERT INTO verbatim_messages (message_id, export_id, model) VALUES (?1, ?2, ?3)";
        let mut statement = connection.prepare_cached(sql)?;
        for (message, export, model) in rows {
            statement.execute(params![message, export, model])?;
        }
        Ok(())
    }
}

impl FreshDatabase {
    /// Returns where details are to go; `None` if they are to be written at once.
    pub(super) fn details(&self) -> Option<&LateDetails> {
        (!self.is_complete).then_some(&self.details)
    }

    /// Adds what lookups of conversations need.
    pub(super) fn complete(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if !self.is_complete {
            self.details.write(connection)?;
            schema::index(connection)?;
            self.is_complete = true;
        }
        Ok(())
    }
}

impl Writer {
    /// Begins a database under a temporary name.
    ///
    /// Only its owner can read it, as with any temporary file: chats are private.
    pub(super) fn create(&mut self) -> Result<(), Error> {
        let folder = self.folder();
        let failed = |source| Error::Io { path: folder.clone(), source };
        private::create_dir_all(&folder).map_err(failed)?;
        let file = TemporaryDatabase::begin(&folder).map_err(failed)?;
        let made = (|| {
            let mut connection = Connection::open(file.path())?;
            configure(&mut connection)?;
            connection.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
            connection.execute_batch("PRAGMA synchronous = OFF; BEGIN")?;
            schema::create_tables(&connection, SchemaState::Empty)?;
            Ok(connection)
        })();
        self.connection = Some(made.map_err(|error| self.failed(error))?);
        self.found = SchemaState::Ours;
        self.state = WriterState::Writing;
        let (is_complete, details) = Default::default();
        self.fresh = Some(FreshDatabase { file, is_complete, details });
        Ok(())
    }

    /// Ends the new database and gives it its name. If another import was faster, merges it into the
    /// database that has the name now.
    pub(super) fn publish(
        &mut self,
        mut fresh: FreshDatabase,
        import: Option<FinishedImport>,
    ) -> Result<(), Error> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        let ended = (|| {
            fresh.complete(&connection)?;
            failpoint::pass("import to be committed");
            connection.execute_batch("COMMIT")?;
            Ledger::default().write(&connection, fresh.file.path(), import, true)?;
            connection.close().map_err(|(_, error)| error)
        })();
        ended.map_err(|error| self.failed(error))?;
        fresh.file.sync().map_err(|source| Error::Io { path: self.path.clone(), source })?;
        failpoint::pass("database made");
        match fresh.file.take_place(&self.path) {
            Ok(()) => {
                failpoint::pass("database in its place");
                // The name is on the disk when its folder is.
                #[cfg(unix)]
                drop(std::fs::File::open(self.folder()).and_then(|folder| folder.sync_all()));
                Ok(())
            }
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.connect()?;
                self.state = WriterState::Comparing;
                self.met.clear();
                self.take_in(&error.path).map_err(|error| self.failed(error))
            }
            Err(error) => Err(Error::Io { path: self.path.clone(), source: error.error }),
        }
    }

    /// Merges a database that an import made, with its history.
    fn take_in(&mut self, path: &Path) -> rusqlite::Result<()> {
        self.changes = super::Changes::default();
        let made = Connection::open(path)?;
        let merge = Merge { connection: &made, parts: false, mode: MergeMode::Compare, late: None };
        let mut ids = made.prepare("SELECT id FROM conversations ORDER BY rowid")?;
        let mut ids = ids.query([])?;
        while let Some(row) = ids.next()? {
            if let Some((source, conversation)) = merge.read(&row.get::<_, String>(0)?)? {
                self.merge(&source, &conversation)?;
            }
        }
        let columns = "time, path, conversations, messages, new_conversations, new_messages,
                       updated_conversations, updated_messages, skipped";
        let mut history = made.prepare(&format!("SELECT {columns} FROM verbatim_imports"))?;
        let mut rows = history.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<rusqlite::types::Value> =
                (0..9).map(|column| row.get(column)).collect::<Result<_, _>>()?;
            let sql = format!(
                "INSERT INTO verbatim_imports ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
            );
            self.begin()?.execute(&sql, rusqlite::params_from_iter(values))?;
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
