//! The database of recorded threads, opened when it is first needed.

use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::source::Sources;
use verbatim_base::{call::Call, lock::lock};
use verbatim_chats::db::threads::{Error as ThreadsError, Threads};
use verbatim_index as index;

/// The database of recorded threads, and recall for their turns.
#[derive(Debug)]
pub struct Memory {
    pub(super) sources: Arc<Sources>,
    /// The open database of threads; `None` until a thread is requested.
    threads: Mutex<Option<Threads>>,
}

impl Memory {
    /// Returns the memory of some sources. Opens no database.
    pub(crate) fn new(sources: Arc<Sources>) -> Memory {
        Memory { sources, threads: Mutex::default() }
    }

    /// Runs `work` on the database of threads; `None` if no thread was ever recorded.
    pub(super) fn reading<T>(
        &self,
        work: impl FnOnce(&mut Threads) -> Result<T, ThreadsError>,
    ) -> Result<Option<T>> {
        self.with_threads(false, work)
    }

    /// Runs `work` on the database of threads. Creates the database if it does not exist.
    pub(super) fn writing<T>(
        &self,
        work: impl FnOnce(&mut Threads) -> Result<T, ThreadsError>,
    ) -> Result<T> {
        let done = self.with_threads(true, work)?;
        Ok(done.expect("a database is made where there is none"))
    }

    /// Runs work that reads indexes, as [`Sources::attempt`] does. A panic is an error.
    pub(super) fn on_indexes<T>(
        &self,
        call: &Call,
        work: impl Fn(&Call) -> Result<T>,
    ) -> Result<T> {
        let is_torn = |done: &Result<T>| done.as_ref().is_err_and(Error::is_of_index);
        self.sources.attempt(call, is_torn, work).unwrap_or_else(|reason| {
            let path = self.sources.config().index_folder();
            Err(index::Error::Damaged { path, reason }.into())
        })
    }

    fn with_threads<T>(
        &self,
        makes_database: bool,
        work: impl FnOnce(&mut Threads) -> Result<T, ThreadsError>,
    ) -> Result<Option<T>> {
        let mut held = lock(&self.threads);
        // A turn that is written to a deleted or replaced file would be lost.
        if !held.as_ref().is_some_and(Threads::is_there) {
            *held = None;
            let path = self.sources.config().threads_database();
            *held = if makes_database {
                Some(Threads::open_or_make(&path)?)
            } else {
                Threads::open(&path)?
            };
        }
        let Some(threads) = &mut *held else { return Ok(None) };
        let done = work(threads);
        if matches!(done, Err(ThreadsError::Sqlite { .. })) {
            *held = None;
        }
        Ok(Some(done?))
    }
}
