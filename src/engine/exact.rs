//! Exact search: the index where it mirrors the database, SQLite's `LIKE` where it does not.

use std::{
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use super::{Engine, Error, Source, Why, query};
use crate::{
    db,
    index::{self, Trace},
    model::{Hit, Request, Stop},
};

/// How an answer was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// By the index.
    ByIndex {
        /// The name of its generation.
        generation: String,
        /// What the search did.
        trace: Trace,
    },
    /// By SQLite's `LIKE` over the database.
    ByLike {
        /// Why not by the index.
        why: Why,
        /// How long that took, rows included.
        took: Duration,
    },
}

impl Engine {
    /// Hands the messages of the export that match to `sink`, newest first, until it breaks off.
    ///
    /// The hits are those of SQLite's `LIKE '%text%'` over contents and titles, whichever way they
    /// are found; returns which.
    pub fn exact(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<Answered, Error> {
        self.exact_in(&self.export()?, request, stop, sink)
    }

    /// Does as [`Engine::exact`] does, in any source.
    pub fn exact_in(
        &self,
        source: &Source,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<Answered, Error> {
        let request = query::checked(request)?;
        let (why, handed) = match self.by_index(source, &request, stop, sink)? {
            Ok(answered) => return Ok(answered),
            Err(failed) => failed,
        };
        let begun = Instant::now();
        let hits = self.on_source(source, |path| {
            db::read(path, stop, |database| db::search(database, &request))
        })?;
        // What an index handed over before it failed was right as far as it went.
        let mut passed = 0;
        hits.hand_over(&mut |hit| {
            passed += 1;
            if passed > handed { sink(hit) } else { ControlFlow::Continue(()) }
        })?;
        Ok(Answered::ByLike { why, took: begun.elapsed() })
    }

    /// Searches the index; else says why it did not answer, and how many hits it handed over.
    fn by_index(
        &self,
        source: &Source,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<Result<Answered, (Why, usize)>, Error> {
        // An empty role means NULL to some and a text of no characters to SQLite.
        if request.roles.iter().any(String::is_empty) {
            return Ok(Err((Why::NotForIndex, 0)));
        }
        let generation = match self.mirror(source) {
            Ok(generation) => generation,
            Err(why) => return Ok(Err((why, 0))),
        };
        let mut handed = 0;
        let mut sink = |hit| {
            handed += 1;
            sink(hit)
        };
        // Its files were checked when it was opened, but not each time since.
        let search = AssertUnwindSafe(|| generation.search(request, stop, &mut sink));
        Ok(match catch_unwind(search) {
            Ok(Ok(trace)) => {
                Ok(Answered::ByIndex { generation: generation.name().to_owned(), trace })
            }
            Ok(Err(index::Error::Stopped)) => return Err(db::Error::Stopped.into()),
            Ok(Err(error)) => Err((Why::Unreadable(error.to_string()), handed)),
            Err(_) => Err((Why::Unreadable("searching it failed".to_owned()), handed)),
        })
    }
}
