//! Stores whose messages a scan reads: a database, or an index in a cluster.

use crate::error::Result;
use verbatim_base::model::Hit;
use verbatim_chats::db::{self, Database, ScanFilter, ScanPlace, ScannedMessage};

/// A store that reads every message that passes a filter.
pub(crate) trait ScanStore {
    /// Passes every message to `each`. If a message has none of the words, its text may be left out.
    fn scan(&mut self, each: &mut dyn FnMut(ScannedMessage<'_>)) -> Result<()>;

    /// Returns the messages at some places of the scan, in the same order. Only a part of a very long
    /// text is kept. This part surrounds the offset that `find` returns.
    fn fetch(
        &mut self,
        places: &[ScanPlace],
        find: &dyn Fn(&str) -> usize,
    ) -> Result<Vec<Hit<'static>>>;

    /// Returns the ids and titles of all conversations.
    fn titles(&mut self) -> Result<Vec<(String, String)>>;
}

/// A database with the filter of its messages.
pub(crate) struct DatabaseScan<'a> {
    pub(crate) database: &'a Database,
    pub(crate) filter: ScanFilter<'a>,
}

impl ScanStore for DatabaseScan<'_> {
    fn scan(&mut self, each: &mut dyn FnMut(ScannedMessage<'_>)) -> Result<()> {
        Ok(db::scan(self.database, self.filter, each)?)
    }

    fn fetch(
        &mut self,
        places: &[ScanPlace],
        find: &dyn Fn(&str) -> usize,
    ) -> Result<Vec<Hit<'static>>> {
        Ok(db::fetch(self.database, self.filter, places, find)?)
    }

    fn titles(&mut self) -> Result<Vec<(String, String)>> {
        Ok(db::titles(self.database)?)
    }
}
