//! Says whether the index mirrors the database as it is now.

use std::{
    fmt,
    path::Path,
    sync::{Arc, PoisonError},
};

use crate::engine::{Engine, Source};
use crate::{
    db::{self, Probe, State},
    index::{Generation, Note, Shelf},
};

/// Why `LIKE` answers and not the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is none for this database.
    NoIndex,
    /// It mirrors another state of the database.
    Stale,
    /// It cannot be read; the reason.
    Unreadable(String),
    /// The request is one that it does not answer.
    NotForIndex,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::NoIndex => "there is no index of this database; `verbatim reindex` builds it",
            Why::Stale => {
                "the database has changed since it was indexed; `verbatim reindex` follows it"
            }
            Why::Unreadable(reason) => reason,
            Why::NotForIndex => "the index does not tell empty roles apart",
        })
    }
}

/// The database that was searched last, with its index.
#[derive(Debug)]
pub(crate) struct Held {
    probe: Probe,
    shelf: Shelf,
    note: Note,
    generation: Result<(Arc<Generation>, State), Why>,
}

impl Held {
    fn of(engine: &Engine, path: &Path) -> Result<Held, db::Error> {
        let probe = Probe::of(path)?;
        let shelf = Shelf::of(&engine.config().index_folder(), probe.real());
        let note = shelf.note();
        let generation = match shelf.current().map(|current| shelf.open(&current)) {
            None => Err(Why::NoIndex),
            Some(Err(error)) => Err(Why::Unreadable(error.to_string())),
            Some(Ok(generation)) => {
                // A state that cannot be read is equal to none.
                let state = generation.state().parse().unwrap_or_default();
                Ok((generation, state))
            }
        };
        Ok(Held { probe, shelf, note, generation })
    }

    /// Returns whether the files of the index are still as they were when they were opened.
    fn is_intact(&self) -> bool {
        self.generation.as_ref().is_ok_and(|(generation, _)| generation.is_intact())
    }

    /// Returns the generation if it mirrors the state that the database is in now.
    fn mirror(&self, now: &State) -> Result<Arc<Generation>, Why> {
        match &self.generation {
            Ok((generation, state)) if state == now => Ok(Arc::clone(generation)),
            Ok(_) => Err(Why::Stale),
            Err(why) => Err(why.clone()),
        }
    }
}

impl Engine {
    /// Returns the generation that mirrors a source's database as it is now.
    pub(crate) fn mirror(&self, source: &Source) -> Result<Arc<Generation>, Why> {
        let path = source.path.as_path();
        let held = &self.held[source.kind as usize];
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*held
            && known.probe.path() == path
            && known.note == known.shelf.note()
            && known.is_intact()
            && let Ok(Some(now)) = known.probe.state()
        {
            return known.mirror(&now);
        }
        // Another database, or another generation, or another file under the same name.
        let found = Held::of(self, path).map_err(|_| Why::NoIndex)?;
        let now = found.probe.state();
        let found = held.insert(found);
        match now {
            Ok(Some(now)) => found.mirror(&now),
            _ => Err(Why::Stale),
        }
    }
    /// Returns the generation in use of a source, whichever state of its database it mirrors.
    pub(crate) fn latest(&self, source: &Source) -> Option<Arc<Generation>> {
        if let Ok(generation) = self.mirror(source) {
            return Some(generation);
        }
        let held = &self.held[source.kind as usize];
        let held = held.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, _) = held.as_ref()?.generation.as_ref().ok()?;
        Some(Arc::clone(generation))
    }
}
