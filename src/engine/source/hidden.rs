//! Which conversations answers leave out, because another source has a newer state of them.
//!
//! A transcript may be in two sources: the transcript store follows its file, and an import may have
//! copied it into a database. Answers about all sources have it once: of two conversations of one id
//! that are transcripts, the one that changed last; if both did, the one that is followed. A transcript
//! whose file is in none of the configured folders is left out too: another configuration of the same
//! home follows it.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use super::lock::lock;
use crate::{
    db::{self, State},
    engine::config::Config,
    model::Stop,
};

/// Ids of conversations.
pub(crate) type Ids = Arc<HashSet<String>>;

/// The path and the state of a database; `None` if there is none.
type Seen = Option<(PathBuf, State)>;

/// The conversations that are left out, of the states of the databases that were seen last.
#[derive(Debug, Default)]
pub(super) struct HiddenIds(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    /// The transcript store and the export.
    of: [Seen; 2],
    in_store: Ids,
    in_export: Ids,
}

impl HiddenIds {
    /// Returns the conversations that are left out of the transcript store, and those of the export;
    /// `None` if there is no store, or if one of the databases cannot be read.
    pub(super) fn of(
        &self,
        store: PathBuf,
        export: Option<PathBuf>,
        config: &Config,
        stop: &Stop,
    ) -> Option<(Ids, Ids)> {
        let seen = |path: PathBuf| db::state(&path).ok().map(|state| (path, state));
        let of = [Some(seen(store)?), export.and_then(seen)];
        let mut known = lock(&self.0);
        if known.as_ref().is_none_or(|known| known.of != of) {
            *known = Some(Known::read(of, config, stop)?);
        }
        let known = known.as_ref()?;
        Some((Arc::clone(&known.in_store), Arc::clone(&known.in_export)))
    }
}

impl Known {
    fn read(of: [Seen; 2], config: &Config, stop: &Stop) -> Option<Known> {
        let transcripts = |of: &Seen| match of {
            Some((path, _)) => db::read(path, stop, db::last_changes),
            None => Ok(HashMap::new()),
        };
        let (store, export) = (transcripts(&of[0]).ok()?, transcripts(&of[1]).ok()?);
        let roots = config.archive_roots();
        let (mut in_store, mut in_export) = (HashSet::new(), HashSet::new());
        for (id, (file, last)) in store {
            if !roots.iter().any(|root| Path::new(&file).starts_with(root)) {
                in_store.insert(id);
                continue;
            }
            match export.get(&id) {
                Some((_, imported)) if *imported > last => drop(in_store.insert(id)),
                Some(_) => drop(in_export.insert(id)),
                None => {}
            }
        }
        Some(Known { of, in_store: Arc::new(in_store), in_export: Arc::new(in_export) })
    }
}
