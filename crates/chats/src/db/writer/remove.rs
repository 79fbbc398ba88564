//! Removes conversations on the user's request.

use std::time::Duration;

use super::{Error, Result, Writer};
use crate::db::{canonical, scrub};

/// The maximum wait for readers of an older state. They keep the removed texts in the log.
const READER_WAIT: Duration = Duration::from_secs(10);

impl Writer {
    /// Removes conversations and every byte of them from the database's files. If the database has none of
    /// these conversations, returns `None` and writes nothing, unless `always` is set.
    ///
    /// Otherwise returns whether the log is clean too. A reader of an older state prevents that.
    pub fn remove(mut self, ids: &[String], always: bool) -> Result<Option<bool>> {
        let path = self.path.clone();
        let removed = self.remove_rows(ids, always);
        let removed = removed.map_err(|source| Error::Sqlite { path, source })?;
        self.finish()?;
        Ok(removed)
    }

    fn remove_rows(&mut self, ids: &[String], always: bool) -> rusqlite::Result<Option<bool>> {
        let Some(connection) = &self.connection else { return Ok(None) };
        let mut is_there = always;
        for id in ids {
            let sql = "SELECT EXISTS (SELECT 1 FROM conversations WHERE id = ?1)
                           OR EXISTS (SELECT 1 FROM messages WHERE conversation_id = ?1)";
            is_there |= connection.query_row(sql, [id], |row| row.get::<_, bool>(0))?;
        }
        if !is_there {
            return Ok(None);
        }
        scrub::begin(connection)?;
        connection.execute_batch("PRAGMA foreign_keys = ON")?;
        // A later import of the removed conversations must not be skipped as already done.
        let connection = self.begin()?;
        Writer::forget_known(connection)?;
        for id in ids {
            canonical::delete_conversation(connection, id)?;
        }
        connection.execute_batch("COMMIT")?;
        connection.busy_timeout(READER_WAIT)?;
        scrub::finish(connection).map(Some)
    }
}
