//! Forgets conversations: removes them from our own databases and from all that is derived of these.
//!
//! Invariant: an id is in the list before its conversation is removed, so that no import and no
//! synchronisation that runs meanwhile brings it back.
//! Invariant: a database that we only read is not written to.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use super::{
    error::Error,
    forgotten::{Forgotten, ForgottenId},
    import::may_write,
    source::{SourceKind, Sources},
    upkeep::{Upkeep, enrich, transcripts},
    withheld::Withheld,
};
use crate::{
    db::{self, Probe, threads::Threads, writer::Writer},
    index::{IndexDir, Resources},
    model::Stop,
};

/// How often to look whether another process has finished its build.
const ELSEWHERE: Duration = Duration::from_millis(50);

/// A conversation that can be forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Forgettable {
    pub(crate) id: String,
    pub(crate) title: String,
    /// The sources that have it; none if it is forgotten already.
    pub(crate) sources: Vec<SourceKind>,
    /// The service that the export says it is from.
    pub(crate) service: Option<String>,
    /// The messages of all its copies.
    pub(crate) messages: u64,
}

/// Forgets conversations.
pub(crate) struct Forgetter<'a> {
    pub(super) sources: &'a Arc<Sources>,
}

impl Forgetter<'_> {
    /// Returns what is to be forgotten of a conversation; `None` if there is none of that id. It is an
    /// error if a database has it that we only read.
    pub(crate) fn find(&self, id: &str, stop: &Stop) -> Result<Option<Forgettable>, Error> {
        let config = self.sources.config();
        let mut found = Forgettable {
            id: id.to_owned(),
            title: String::new(),
            sources: Vec::new(),
            service: None,
            messages: 0,
        };
        for source in self.sources.present() {
            let Some(about) = source.about(id, stop)? else { continue };
            if source.cluster().is_some() {
                let reason = format!(
                    "{}: conversations in a cluster cannot be forgotten yet; conversation {id} \
                     stays in it",
                    source.path.display()
                );
                return Err(Error::Cluster { reason });
            }
            if source.kind == SourceKind::Export {
                if config.local_folder().is_some() || !may_write(&source.path)? {
                    return Err(Error::ReadOnly { path: source.path, id: id.to_owned() });
                }
                let known = self.sources.provenance(source.kind, &[id], stop)?;
                found.service = known.get(id).map(|known| known.service.clone());
            }
            found.title = about.title;
            found.messages += u64::from(about.turns);
            found.sources.push(source.kind);
        }
        let is_known = !found.sources.is_empty()
            || Forgotten::of(config)?.0.iter().any(|known| known.id == id);
        Ok(is_known.then_some(found))
    }

    /// Forgets conversations that [`Forgetter::find`] found, and builds the indexes anew. Returns the
    /// databases whose log still has text, because somebody reads an older state.
    pub(crate) fn forget(
        &self,
        found: &[Forgettable],
        resources: Resources,
        stop: &Stop,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Vec<PathBuf>, Error> {
        Forgotten::change(self.sources.config(), |list| {
            for one in found.iter().filter(|one| one.sources != [SourceKind::Threads]) {
                if !list.iter().any(|known| known.id == one.id) {
                    list.push(ForgottenId::now(one.id.clone(), one.service.clone()));
                }
            }
        })?;
        let removed = self.remove(found, stop)?;
        for (path, _) in &removed {
            self.wipe_index(path, stop)?;
        }
        self.sources.close();
        let is_removed = |path: &Path| removed.iter().any(|(removed, _)| removed == path);
        for source in self.sources.present().iter().filter(|source| is_removed(&source.path)) {
            let upkeep = Upkeep { sources: self.sources };
            upkeep.complete(source, resources, stop, progress)?;
            enrich::prune_caches(source, stop)?;
        }
        Ok(removed.into_iter().filter(|(_, is_clean)| !is_clean).map(|(path, _)| path).collect())
    }

    /// Removes conversations from every database of ours. Returns the databases that had one of them,
    /// each with whether its log is clean.
    fn remove(&self, found: &[Forgettable], stop: &Stop) -> Result<Vec<(PathBuf, bool)>, Error> {
        let ids: Vec<String> = found.iter().map(|one| one.id.clone()).collect();
        let ids = ids.as_slice();
        // What was broken off is done again.
        let again = found.iter().any(|one| one.sources.is_empty());
        // Another process may have removed it a moment ago, and left its text in free pages.
        let had = |kind| again || found.iter().any(|one| one.sources.contains(&kind));
        let config = self.sources.config();
        let mut removed = Vec::new();
        let mut exports = config.home_databases();
        exports.extend(config.db.clone().filter(|path| !exports.contains(path)));
        for path in exports {
            // Others are no databases of ours, so nothing was found in them.
            if matches!(db::read(&path, stop, db::is_imported), Ok(true)) {
                let done = Writer::open(&path).and_then(|writer| writer.remove(ids, again))?;
                removed.extend(done.map(|is_clean| (path, is_clean)));
            }
        }
        let threads = config.threads_database();
        if let Some(mut open) = Threads::open(&threads)? {
            removed.extend(
                open.purge(ids, had(SourceKind::Threads))?.map(|is_clean| (threads, is_clean)),
            );
        }
        for path in config.archive_databases() {
            let done = transcripts::withhold(&path, config, ids, had(SourceKind::Archive))?;
            removed.extend(done.map(|is_clean| (path, is_clean)));
        }
        Ok(removed)
    }

    /// Removes the index of a database.
    fn wipe_index(&self, database: &Path, stop: &Stop) -> Result<(), Error> {
        let probe = Probe::of(database)?;
        let index_dir = IndexDir::of(&self.sources.config().index_folder(), probe.real());
        if !index_dir.folder().exists() {
            return Ok(());
        }
        let writing = loop {
            match index_dir.lock()? {
                Some(writing) => break writing,
                None if stop.requested() => return Err(db::Error::Stopped.into()),
                None => thread::sleep(ELSEWHERE),
            }
        };
        match writing.wipe() {
            true => Ok(()),
            false => Err(Error::NotWiped { folder: index_dir.folder().to_owned() }),
        }
    }

    /// Returns what was forgotten since something was known to be withheld. An import that began
    /// then may have written it again.
    pub(crate) fn since(&self, withheld: &Withheld) -> Result<Vec<Forgettable>, Error> {
        let new = self.list()?.into_iter().filter(|one| !withheld.lists(&one.id));
        let new = new.map(|one| Forgettable {
            id: one.id,
            title: String::new(),
            sources: Vec::new(),
            service: one.service,
            messages: 0,
        });
        Ok(new.collect())
    }

    /// Returns the forgotten conversations.
    pub(crate) fn list(&self) -> Result<Vec<ForgottenId>, Error> {
        Ok(Forgotten::of(self.sources.config())?.0)
    }

    /// Lets a conversation come back; returns whether it was forgotten.
    pub(crate) fn undo(&self, id: &str) -> Result<bool, Error> {
        Forgotten::change(self.sources.config(), |list| {
            let before = list.len();
            list.retain(|known| known.id != id);
            list.len() < before
        })
    }
}
