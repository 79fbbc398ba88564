//! The index of a source: opened once, and compared with the database before every answer.

use std::{
    fmt, fs,
    path::Path,
    sync::{Arc, TryLockError},
    thread,
    time::Duration,
};

use super::{Source, lock};
use crate::{
    db::{self, Probe, State},
    index::{CommitStamp, IndexDir, Snapshot},
    model::Stop,
};

/// How often a question looks whether another one has opened the index that both need.
const RETRY: Duration = Duration::from_millis(1);

/// Why `LIKE` answers and not the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// This database has no index.
    NoIndex,
    /// The index is of another state of the database.
    Stale,
    /// The index cannot be read; the reason.
    Unreadable(String),
    /// The request asks for an empty role.
    EmptyRole,
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
            FallbackReason::EmptyRole => "the index does not tell empty roles apart",
        })
    }
}

/// The database that was searched last, with its index.
#[derive(Debug)]
pub(super) struct IndexHandle {
    probe: Probe,
    index_dir: IndexDir,
    stamp: CommitStamp,
    opened: Result<(Arc<Snapshot>, State), FallbackReason>,
}

impl IndexHandle {
    fn open(index_folder: &Path, path: &Path) -> Result<IndexHandle, db::Error> {
        let probe = Probe::of(path)?;
        let index_dir = IndexDir::of(index_folder, probe.real());
        let stamp = index_dir.note();
        let opened = match index_dir.current().map(|commit| index_dir.open(&commit)) {
            None => Err(FallbackReason::NoIndex),
            Some(Err(error)) => Err(FallbackReason::Unreadable(error.to_string())),
            Some(Ok(snapshot)) => {
                // The default state equals no state that a database can be in.
                let state = snapshot.state().parse().unwrap_or_default();
                Ok((snapshot, state))
            }
        };
        Ok(IndexHandle { probe, index_dir, stamp, opened })
    }

    /// Returns the snapshot if it is of the state that the database is in now; `None` if the handle
    /// itself is out of date and has to be opened again.
    fn snapshot(&self, path: &Path) -> Option<Result<Arc<Snapshot>, FallbackReason>> {
        let is_same = self.probe.path() == path
            && self.stamp == self.index_dir.note()
            && self.opened.as_ref().is_ok_and(|(snapshot, _)| snapshot.is_intact());
        if !is_same {
            return None;
        }
        let now = self.probe.state().ok()??;
        Some(self.compared(&now))
    }

    /// Returns the snapshot if it is of the state `now`.
    fn compared(&self, now: &State) -> Result<Arc<Snapshot>, FallbackReason> {
        match &self.opened {
            Ok((snapshot, state)) if state == now => Ok(Arc::clone(snapshot)),
            Ok(_) => Err(FallbackReason::Stale),
            Err(reason) => Err(reason.clone()),
        }
    }
}

impl Source {
    /// Returns the snapshot of the index if it is of the state that the database is in now.
    pub(crate) fn current_index(&self, stop: &Stop) -> Result<Arc<Snapshot>, FallbackReason> {
        let known = || lock(&self.state.index).as_ref()?.snapshot(&self.path);
        if let Some(answer) = known() {
            return answer;
        }
        // Opening reads files that were copied or restored from first to last byte. Whoever needs
        // the index waits for that, but no longer than the question may take.
        let _opening = loop {
            match self.state.opening.try_lock() {
                Ok(guard) => break guard,
                Err(TryLockError::Poisoned(guard)) => break guard.into_inner(),
                Err(TryLockError::WouldBlock) if stop.requested() => {
                    return Err(FallbackReason::Stale);
                }
                Err(TryLockError::WouldBlock) => thread::sleep(RETRY),
            }
        };
        if let Some(answer) = known() {
            return answer;
        }
        let handle = IndexHandle::open(&self.state.config.index_folder(), &self.path)
            .map_err(|_| FallbackReason::NoIndex)?;
        let now = handle.probe.state();
        let handle = lock(&self.state.index).insert(handle).opened_for(now);
        handle
    }

    /// Returns the snapshot of the index in use, whichever state of the database it is of.
    pub(crate) fn latest_index(&self, stop: &Stop) -> Option<Arc<Snapshot>> {
        if let Ok(snapshot) = self.current_index(stop) {
            return Some(snapshot);
        }
        let index = lock(&self.state.index);
        let (snapshot, _) = index.as_ref()?.opened.as_ref().ok()?;
        Some(Arc::clone(snapshot))
    }

    /// Returns how many bytes the database takes; 0 if it cannot be read.
    pub(crate) fn bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }
}

impl IndexHandle {
    fn opened_for(
        &self,
        now: Result<Option<State>, db::Error>,
    ) -> Result<Arc<Snapshot>, FallbackReason> {
        match now {
            Ok(Some(now)) => self.compared(&now),
            _ => Err(FallbackReason::Stale),
        }
    }
}
