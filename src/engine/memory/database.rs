//! The database of recorded threads, opened when it is first needed.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use crate::{
    db::threads::{Error as ThreadsError, Threads},
    engine::{
        error::Error,
        source::{Sources, lock},
    },
};

/// The recorded threads, and what is recalled for their turns.
#[derive(Debug)]
pub struct Memory {
    pub(super) sources: Arc<Sources>,
    /// The database of threads, once one was asked for.
    threads: Mutex<Option<Threads>>,
}

impl Memory {
    /// Returns the memory of some sources; opens nothing.
    pub(crate) fn new(sources: Arc<Sources>) -> Memory {
        Memory { sources, threads: Mutex::default() }
    }

    /// Runs `work` on the threads; `None` if none was ever recorded.
    pub(super) fn reading<T>(
        &self,
        work: impl FnOnce(&mut Threads) -> Result<T, ThreadsError>,
    ) -> Result<Option<T>, Error> {
        self.with_threads(Threads::open, work)
    }

    /// Runs `work` on the threads; makes their database if there is none.
    pub(super) fn writing<T>(
        &self,
        work: impl FnOnce(&mut Threads) -> Result<T, ThreadsError>,
    ) -> Result<T, Error> {
        let made = |path: &Path| Threads::open_or_make(path).map(Some);
        let done = self.with_threads(made, work)?;
        Ok(done.expect("a database is made where there is none"))
    }

    fn with_threads<T>(
        &self,
        open: impl FnOnce(&Path) -> Result<Option<Threads>, ThreadsError>,
        work: impl FnOnce(&mut Threads) -> Result<T, ThreadsError>,
    ) -> Result<Option<T>, Error> {
        let mut held = lock(&self.threads);
        // A turn that is written to a deleted or replaced file would be lost.
        if !held.as_ref().is_some_and(Threads::is_there) {
            *held = None;
            *held = open(&self.sources.config().threads_database())?;
        }
        let Some(threads) = &mut *held else { return Ok(None) };
        let done = work(threads);
        if matches!(done, Err(ThreadsError::Sqlite { .. })) {
            *held = None;
        }
        Ok(Some(done?))
    }
}
