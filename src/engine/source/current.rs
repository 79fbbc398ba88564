//! Says whether the index mirrors the database as it is now.

use std::{
    fmt,
    path::Path,
    sync::{Arc, PoisonError},
};

use crate::engine::{Engine, Source};
use crate::{
    db::{self, Probe, State},
    index::{CommitStamp, IndexDir, Snapshot},
};

/// FallbackReason `LIKE` answers and not the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// There is none for this database.
    NoIndex,
    /// It mirrors another state of the database.
    Stale,
    /// It cannot be read; the reason.
    Unreadable(String),
    /// The request is one that it does not answer.
    NotForIndex,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FallbackReason::NoIndex => {
                "there is no index of this database; `verbatim reindex` builds it"
            }
            FallbackReason::Stale => {
                "the database has changed since it was indexed; `verbatim reindex` follows it"
            }
            FallbackReason::Unreadable(reason) => reason,
            FallbackReason::NotForIndex => "the index does not tell empty roles apart",
        })
    }
}

/// The database that was searched last, with its index.
#[derive(Debug)]
pub(crate) struct IndexHandle {
    probe: Probe,
    index_dir: IndexDir,
    note: CommitStamp,
    snapshot: Result<(Arc<Snapshot>, State), FallbackReason>,
}

impl IndexHandle {
    fn of(engine: &Engine, path: &Path) -> Result<IndexHandle, db::Error> {
        let probe = Probe::of(path)?;
        let index_dir = IndexDir::of(&engine.config().index_folder(), probe.real());
        let note = index_dir.note();
        let snapshot = match index_dir.current().map(|current| index_dir.open(&current)) {
            None => Err(FallbackReason::NoIndex),
            Some(Err(error)) => Err(FallbackReason::Unreadable(error.to_string())),
            Some(Ok(snapshot)) => {
                // A state that cannot be read is equal to none.
                let state = snapshot.state().parse().unwrap_or_default();
                Ok((snapshot, state))
            }
        };
        Ok(IndexHandle { probe, index_dir, note, snapshot })
    }

    /// Returns whether the files of the index are still as they were when they were opened.
    fn is_intact(&self) -> bool {
        self.snapshot.as_ref().is_ok_and(|(snapshot, _)| snapshot.is_intact())
    }

    /// Returns the snapshot if it mirrors the state that the database is in now.
    fn current_index(&self, now: &State) -> Result<Arc<Snapshot>, FallbackReason> {
        match &self.snapshot {
            Ok((snapshot, state)) if state == now => Ok(Arc::clone(snapshot)),
            Ok(_) => Err(FallbackReason::Stale),
            Err(why) => Err(why.clone()),
        }
    }
}

impl Engine {
    /// Returns the snapshot that mirrors a source's database as it is now.
    pub(crate) fn current_index(&self, source: &Source) -> Result<Arc<Snapshot>, FallbackReason> {
        let path = source.path.as_path();
        let held = &self.held[source.kind as usize];
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*held
            && known.probe.path() == path
            && known.note == known.index_dir.note()
            && known.is_intact()
            && let Ok(Some(now)) = known.probe.state()
        {
            return known.current_index(&now);
        }
        // Another database, or another snapshot, or another file under the same name.
        let found = IndexHandle::of(self, path).map_err(|_| FallbackReason::NoIndex)?;
        let now = found.probe.state();
        let found = held.insert(found);
        match now {
            Ok(Some(now)) => found.current_index(&now),
            _ => Err(FallbackReason::Stale),
        }
    }
    /// Returns the snapshot in use of a source, whichever state of its database it mirrors.
    pub(crate) fn latest_index(&self, source: &Source) -> Option<Arc<Snapshot>> {
        if let Ok(snapshot) = self.current_index(source) {
            return Some(snapshot);
        }
        let held = &self.held[source.kind as usize];
        let held = held.lock().unwrap_or_else(PoisonError::into_inner);
        let (snapshot, _) = held.as_ref()?.snapshot.as_ref().ok()?;
        Some(Arc::clone(snapshot))
    }
}
