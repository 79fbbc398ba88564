//! Removes conversations that the user forgets.

use std::time::Duration;

use super::{Error, Writer, ledger::Ledger};
use crate::db::{canonical, scrub};

/// How long to wait for readers of an older state: the log has the removed text until they are done.
const READER_WAIT: Duration = Duration::from_secs(10);

impl Writer {
    /// Removes conversations so that no byte of them is left in the database's files. Returns `None` and
    /// writes nothing if the database has none of them; with `always`, it cleans the files all the same.
    ///
    /// Otherwise returns whether the log is clean too: a reader may still use an older state.
    pub(crate) fn remove(mut self, ids: &[String], always: bool) -> Result<Option<bool>, Error> {
        let path = self.path.clone();
        let removed = self.remove_rows(ids, always);
        let removed = removed.map_err(|source| Error::Sqlite { path, source })?;
        self.finish()?;
        Ok(removed)
    }

    fn remove_rows(&mut self, ids: &[String], always: bool) -> rusqlite::Result<Option<bool>> {
        let Some(connection) = &self.connection else { return Ok(None) };
        let has = |id: &String| {
            let sql = "SELECT EXISTS (SELECT 1 FROM conversations WHERE id = ?1)
                           OR EXISTS (SELECT 1 FROM messages WHERE conversation_id = ?1)";
            connection.query_row(sql, [id], |row| row.get::<_, bool>(0))
        };
        let mut is_there = always;
        for id in ids {
            is_there |= has(id)?;
        }
        if !is_there {
            return Ok(None);
        }
        scrub::begin(connection)?;
        connection.execute_batch("PRAGMA foreign_keys = ON")?;
        // A later import of the removed conversations must not be skipped as already done.
        self.ledger = Ledger::default();
        let connection = self.begin()?;
        Ledger::remove(connection)?;
        for id in ids {
            canonical::delete_conversation(connection, id)?;
        }
        connection.execute_batch("COMMIT")?;
        connection.busy_timeout(READER_WAIT)?;
        scrub::finish(connection).map(Some)
    }
}
