//! Exact search.

use std::ops::ControlFlow;

use super::{Engine, Error, query};
use crate::{
    db,
    model::{Hit, Request, Stop},
};

impl Engine {
    /// Hands the messages that match to `sink`, newest first, until it breaks off.
    ///
    /// The hits are those of SQLite's `LIKE '%text%'` over contents and titles.
    pub fn exact(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let request = query::checked(request)?;
        let hits = self
            .on_database(|path| db::read(path, stop, |database| db::search(database, &request)))?;
        Ok(hits.hand_over(sink)?)
    }
}
