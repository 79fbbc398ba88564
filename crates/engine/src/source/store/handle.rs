//! The index of a source. It is opened once, and its state is compared with the database at each question.

use std::{fmt, path::Path, sync::Arc};

use verbatim_base::call::Freshness;
use verbatim_chats::db::{self, Probe, State};
use verbatim_index::{CommitStamp, IndexDir, Snapshot};

/// The reason why `LIKE` answers and not the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// This database has no index.
    NoIndex,
    /// The index is of another state of the database.
    Stale,
    /// The database was moved, copied or restored since it was indexed, as far as its length and header tell.
    Moved,
    /// The index cannot be read. The text is the error.
    Unreadable(String),
    /// The request is for an empty role, or for a role with a replacement character.
    EmptyRole,
    /// The pattern contains a NUL character, where SQLite stops reading it.
    NulInPattern,
    /// The request names roles, and the column `role` has a collation other than BINARY, or a numeric type.
    /// So SQLite compares roles in another way than the index.
    RoleColumn,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FallbackReason::NoIndex => "there is no index of this database",
            FallbackReason::Stale => "the database has changed since it was indexed",
            FallbackReason::Moved => "the database was moved or copied since it was indexed",
            FallbackReason::Unreadable(reason) => reason,
            FallbackReason::EmptyRole => "the index cannot tell this role from others",
            FallbackReason::NulInPattern => "the text contains a NUL character",
            FallbackReason::RoleColumn => {
                "the column \"role\" of the database has a special collation or type"
            }
        })
    }
}

/// Returns the index directory of a database. If it has none, and was moved or renamed, its index comes along:
/// an index whose own database is gone, of the same state, or else of the same name. The next refresh compares it
/// with the database row by row, as it does after any change.
pub(crate) fn index_dir_of(index_folder: &Path, probe: &Probe) -> IndexDir {
    let index_dir = IndexDir::for_database(index_folder, probe.real());
    if index_dir.folder().exists() {
        return index_dir;
    }
    let mut orphans = IndexDir::all(index_folder);
    orphans.retain(IndexDir::is_orphan);
    let now = probe.state().ok().flatten().unwrap_or_default();
    let of_state = orphans.iter().find(|orphan| {
        let state = orphan.state().and_then(|state| state.parse::<State>().ok());
        state.is_some_and(|state| now.may_be_moved(&state))
    });
    let name = probe.real().file_name();
    let of_name = orphans.iter().find(|orphan| orphan.database().file_name() == name);
    if let Some(orphan) = of_state.or(of_name) {
        index_dir.adopt(orphan);
    }
    index_dir
}

/// The database that was searched last, with its index.
#[derive(Debug)]
pub(crate) struct IndexHandle {
    pub(crate) probe: Probe,
    index_dir: IndexDir,
    stamp: CommitStamp,
    pub(crate) opened: Result<(Arc<Snapshot>, State), FallbackReason>,
    /// The call that found the snapshot to be current, if it compares only once.
    current_for: Freshness,
}

impl IndexHandle {
    pub(crate) fn open(index_folder: &Path, path: &Path) -> db::Result<IndexHandle> {
        let probe = Probe::new(path)?;
        let index_dir = index_dir_of(index_folder, &probe);
        let stamp = index_dir.note();
        let opened = match index_dir.current().map(|commit| index_dir.open(&commit)) {
            None => Err(FallbackReason::NoIndex),
            Some(Err(error)) => Err(FallbackReason::Unreadable(error.to_string())),
            Some(Ok(snapshot)) => {
                // The default state differs from the state of any database.
                let state = snapshot.state().parse().unwrap_or_default();
                Ok((snapshot, state))
            }
        };
        Ok(IndexHandle { probe, index_dir, stamp, opened, current_for: Freshness::EachUse })
    }

    /// Returns the snapshot if it holds the current state of the database; `None` if the handle is
    /// outdated and must be reopened. Checks only once per call. If `checks_files` is not set, the caller
    /// checks the files of the index after reading them.
    pub(crate) fn snapshot(
        &mut self,
        path: &Path,
        freshness: Freshness,
        checks_files: bool,
    ) -> Option<Result<Arc<Snapshot>, FallbackReason>> {
        if freshness != Freshness::EachUse
            && self.current_for == freshness
            && self.probe.path() == path
            && let Ok((snapshot, _)) = &self.opened
        {
            return Some(Ok(Arc::clone(snapshot)));
        }
        let is_same = self.probe.path() == path
            && self.stamp == self.index_dir.note()
            && self.opened.as_ref().is_ok_and(|(it, _)| !checks_files || it.is_intact());
        if !is_same {
            return None;
        }
        let now = self.probe.state().ok()??;
        let freshness = if checks_files { freshness } else { Freshness::EachUse };
        Some(self.compared(&now, freshness))
    }

    /// Returns the snapshot if it holds the state `now` of the database.
    fn compared(
        &mut self,
        now: &State,
        freshness: Freshness,
    ) -> Result<Arc<Snapshot>, FallbackReason> {
        self.current_for = Freshness::EachUse;
        match &self.opened {
            Ok((snapshot, state)) if state == now => {
                self.current_for = freshness;
                Ok(Arc::clone(snapshot))
            }
            Ok((_, state)) if now.may_be_moved(state) => Err(FallbackReason::Moved),
            Ok(_) => Err(FallbackReason::Stale),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// Returns the snapshot of the handle, which was opened just now, if it holds the current state.
    pub(crate) fn opened_for(
        &mut self,
        freshness: Freshness,
    ) -> Result<Arc<Snapshot>, FallbackReason> {
        match self.probe.state() {
            Ok(Some(now)) => self.compared(&now, freshness),
            _ => Err(FallbackReason::Stale),
        }
    }
}
