//! A database under a temporary name, and its rows that are written late.

use std::cell::RefCell;

use rusqlite::{Connection, params};

use crate::db::{schema, temporary::TemporaryDatabase};

/// How many rows of details are sorted at once.
const ROWS: usize = 100_000;

/// A database that is under a temporary name until it is complete.
#[derive(Debug)]
pub(super) struct FreshDatabase {
    pub(super) file: TemporaryDatabase,
    /// Whether conversations can be looked up: the index of `messages` and all details are there.
    is_complete: bool,
    details: LateDetails,
}

/// Rows of `verbatim_messages` that are written later, in the order of their keys: this takes a fraction
/// of the time.
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
    pub(super) fn new(file: TemporaryDatabase) -> FreshDatabase {
        FreshDatabase { file, is_complete: false, details: LateDetails::default() }
    }

    /// Returns the list for details that are written later; `None` if details are written at once.
    pub(super) fn details(&self) -> Option<&LateDetails> {
        (!self.is_complete).then_some(&self.details)
    }

    /// Adds the index and the rows that lookups of conversations need.
    pub(super) fn complete(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if !self.is_complete {
            self.details.write(connection)?;
            schema::index(connection)?;
            self.is_complete = true;
        }
        Ok(())
    }
}
