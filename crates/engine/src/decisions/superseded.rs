//! Finds the conversations that answers leave out, because another source has a newer state of them.
//!
//! A transcript may be in two sources: the transcript store follows its file, and an import may have copied
//! it into a database. Answers about all sources show it once, in the state that changed last. If both
//! states are equally new, they show the transcript store's. If the user names the folders to search,
//! transcripts of other folders are left out too. A search of a single source leaves out only such
//! transcripts.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::config::Config;
use verbatim_base::{call::Call, lock::lock};
use verbatim_chats::db::{self, State};

pub(crate) type Ids = Arc<HashSet<String>>;

/// The path and the state of a database; `None` if there is no database.
type Seen = Option<(PathBuf, State)>;

/// The cached conversations to leave out, with the states of the databases for which they are valid.
#[derive(Debug, Default)]
pub(crate) struct SupersededIds(Mutex<Option<KnownSuperseded>>);

#[derive(Debug)]
struct KnownSuperseded {
    /// The states of the transcript store and of the export.
    of: [Seen; 2],
    superseded: Superseded,
}

/// The conversations that answers leave out.
#[derive(Clone, Debug)]
pub(crate) struct Superseded {
    /// The conversations of the transcript store whose files are in none of the folders that the user named.
    pub(crate) elsewhere: Ids,
    /// The conversations of the transcript store that are left out, including those in `elsewhere`.
    pub(crate) in_store: Ids,
    pub(crate) in_export: Ids,
}

impl SupersededIds {
    /// Returns the conversations to leave out; `None` if there is no transcript store, or if a database
    /// cannot be read.
    pub(crate) fn between(
        &self,
        store: PathBuf,
        export: Option<PathBuf>,
        config: &Config,
        call: &Call,
    ) -> Option<Superseded> {
        let of = [Some(seen(store)?), export.and_then(seen)];
        if let Some(known) = &*lock(&self.0)
            && known.of == of
        {
            return Some(known.superseded.clone());
        }
        // The lock is not held here, so that other questions do not wait while the databases are read.
        let read = KnownSuperseded::read(of, config, call)?;
        let superseded = read.superseded.clone();
        *lock(&self.0) = Some(read);
        Some(superseded)
    }
}

fn seen(path: PathBuf) -> Seen {
    let state = db::state(&path).ok()?;
    Some((path, state))
}

impl KnownSuperseded {
    fn read(of: [Seen; 2], config: &Config, call: &Call) -> Option<KnownSuperseded> {
        let [store, export] = &of;
        let mut exported = HashMap::new();
        if let Some((path, _)) = export {
            exported = db::read(path, call, db::last_changes).ok()?;
        }
        let mut stored = HashMap::new();
        if let Some((path, _)) = store {
            stored = db::read(path, call, db::last_changes).ok()?;
        }
        let roots = config.searched_roots();
        let mut elsewhere = HashSet::new();
        let mut in_store = HashSet::new();
        let mut in_export = HashSet::new();
        for (id, (file, last)) in stored {
            if let Some(roots) = &roots
                && !roots.iter().any(|root| Path::new(&file).starts_with(root))
            {
                elsewhere.insert(id.clone());
                in_store.insert(id);
                continue;
            }
            match exported.get(&id) {
                Some((_, imported)) if *imported > last => drop(in_store.insert(id)),
                Some(_) => drop(in_export.insert(id)),
                None => {}
            }
        }
        let superseded = Superseded {
            elsewhere: Arc::new(elsewhere),
            in_store: Arc::new(in_store),
            in_export: Arc::new(in_export),
        };
        Some(KnownSuperseded { of, superseded })
    }
}
