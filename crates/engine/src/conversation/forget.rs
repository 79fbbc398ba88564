//! Forgets conversations: removes them from Verbatim's own databases and from all derived files.
//!
//! Invariant: a conversation's id is in the list of forgotten ones before the conversation is removed.
//! So an import or a synchronisation that runs at the same time does not bring it back.
//! Invariant: databases of other programs are not written to.

use std::path::{Path, PathBuf};
use std::{sync::Arc, thread, time::Duration};

use crate::config::{StoreAddress, may_write};
use crate::decisions::{Decisions, flags::Flags, forgotten::ForgottenId, list};
use crate::error::{Error, Result};
use crate::source::{SourceKind, Sources, forget_vectors, wipe_indexes};
use crate::upkeep::{Upkeep, enrich, transcripts};
use crate::{attachments::AttachmentStore, conversation::lookup::SHORT_ID};
use verbatim_base::call::{Call, Stop};
use verbatim_chats::db::{self, threads::Threads, transcripts::TranscriptStore, writer::Writer};
#[cfg(feature = "cluster")]
use verbatim_cluster::{self as cluster, Forgot};
use verbatim_index::Resources;

/// Wait between two checks whether another process has finished its build.
const ELSEWHERE: Duration = Duration::from_millis(50);

/// A conversation that can be forgotten.
#[derive(Clone, Debug, Default)]
pub struct Forgettable {
    /// The id of the conversation, the same in all its sources.
    pub id: String,
    /// The title in one of the sources; it may be empty.
    pub title: String,
    /// The sources that have the conversation; none if it is forgotten already.
    pub sources: Vec<SourceKind>,
    /// The service that the conversation is from, according to the export.
    pub(crate) service: Option<String>,
    /// Number of messages in all copies of the conversation.
    pub messages: u64,
}

/// The current step of [`Forgetter::forget`].
#[derive(Clone, Copy, Debug)]
pub enum ForgetProgress<'a> {
    /// Waiting for another process that writes this database or index.
    Waiting(&'a Path),
    /// Rebuilding the indexes. The number is the finished share, from 0 to 1.
    Indexing(f64),
}

/// Files that still contain text of forgotten conversations, and databases without an index.
#[derive(Debug, Default)]
pub struct Remains {
    /// Databases whose write-ahead log still has text, because another program reads an older state.
    pub logs: Vec<PathBuf>,
    /// The address of the cluster whose files still have the text, until the cluster merges them.
    pub in_cluster: Option<StoreAddress>,
    /// Damaged lists of attached files. While a list is damaged, no attached file is removed.
    pub lists: Vec<PathBuf>,
    /// Cleaned databases without an index, because other programs kept writing to them.
    pub not_indexed: Vec<PathBuf>,
}

impl Remains {
    /// Returns whether no text of the forgotten conversations is left.
    pub fn is_clean(&self) -> bool {
        self.logs.is_empty() && self.in_cluster.is_none() && self.lists.is_empty()
    }
}

/// Access to the functions that forget conversations.
pub struct Forgetter<'a> {
    sources: &'a Arc<Sources>,
}

impl<'a> Forgetter<'a> {
    /// Returns access to these sources. Reads and changes nothing.
    pub fn new(sources: &'a Arc<Sources>) -> Forgetter<'a> {
        Forgetter { sources }
    }

    /// Returns a conversation that can be forgotten; `None` if no source has the id. Fails if the
    /// conversation is in a database that Verbatim only reads.
    pub fn find(&self, id: &str, call: &Call) -> Result<Option<Forgettable>> {
        let config = self.sources.config();
        let mut found = Forgettable { id: id.to_owned(), ..Forgettable::default() };
        for source in self.sources.all() {
            let source = source?;
            let Some(about) = source.about(id, call)? else {
                if source.kind == SourceKind::Archive
                    && self.excluded_id(id, call)?.is_some_and(|excluded| excluded == id)
                {
                    found.sources.push(source.kind);
                }
                continue;
            };
            if source.kind == SourceKind::Export {
                if let Some(path) = source.database()
                    && (config.local_folder().is_some() || !may_write(path)?)
                {
                    return Err(Error::ReadOnly { path: path.to_owned(), id: id.to_owned() });
                }
                let known = self.sources.provenance(source.kind, &[id], call)?;
                found.service = known.get(id).map(|known| known.service.clone());
            }
            found.title = about.title;
            found.messages += u64::from(about.turns);
            found.sources.push(source.kind);
        }
        // If several sources have the conversation, the service may be that of only one of them.
        if found.sources.len() > 1 {
            found.service = None;
        }
        let is_known = !found.sources.is_empty() || self.list()?.iter().any(|known| known.id == id);
        Ok(is_known.then_some(found))
    }

    /// Returns the id of a transcript that was removed from the store because the user excludes it. Until it is
    /// forgotten, files still contain its text. `word` is the id, or its beginning if only one id has it.
    pub fn excluded_id(&self, word: &str, call: &Call) -> Result<Option<String>> {
        let Some(archive) = self.sources.of_kind(SourceKind::Archive)? else { return Ok(None) };
        let forgotten = self.list()?;
        let mut ids = archive.store().not_stored(&archive, call)?;
        ids.retain(|id| {
            let is_meant = id == word || word.len() >= SHORT_ID && id.starts_with(word);
            is_meant && !forgotten.iter().any(|known| known.id == *id)
        });
        let whole = ids.iter().position(|id| id == word);
        Ok(whole.or((ids.len() == 1).then_some(0)).map(|at| ids.swap_remove(at)))
    }

    /// Forgets conversations that [`Forgetter::find`] found, and rebuilds the indexes.
    pub fn forget(
        &self,
        found: &[Forgettable],
        resources: Resources,
        call: &Call,
        progress: &mut dyn FnMut(ForgetProgress<'_>),
    ) -> Result<Remains> {
        // A conversation without a source is already in the list of forgotten conversations.
        list::change(self.sources.config(), |list: &mut Vec<ForgottenId>| {
            for one in found {
                if !one.sources.is_empty()
                    && one.sources != [SourceKind::Threads]
                    && !list.iter().any(|known| known.covers(&one.id, one.service.as_deref()))
                {
                    list.push(ForgottenId::now(one.id.clone(), one.service.clone()));
                }
            }
        })?;
        let mut wait = |path: &Path| {
            progress(ForgetProgress::Waiting(path));
            thread::sleep(ELSEWHERE);
            !call.stop.requested()
        };
        let mut removed = Vec::new();
        let ids: Vec<String> = found.iter().map(|one| one.id.clone()).collect();
        let config = self.sources.config();
        let files = AttachmentStore::from_config(config).forget(&ids, &mut wait);
        let mut outcome = self.remove(found, &ids, call, &mut wait, &mut removed);
        // Another process may have stored more files from transcripts before the removal.
        let of_transcripts = AttachmentStore::of_transcripts(config).forget(&ids, &mut wait);
        // If one database failed, the indexes of the cleaned databases must still lose the text.
        let present = self.sources.present();
        for (path, _) in &removed {
            // An index that no search needs is not built again, so nobody would know which vectors to keep.
            let is_searched = present.iter().any(|source| source.database() == Some(path));
            outcome = outcome.and(wipe_indexes(config, path, is_searched, &mut wait));
        }
        self.sources.close();
        #[cfg(feature = "cluster")]
        let in_cluster = self.remove_from_cluster(&ids, &call.stop);
        #[cfg(not(feature = "cluster"))]
        let in_cluster: Result<_> = Ok(None);
        let not_indexed =
            outcome.and_then(|()| self.index_again(&removed, resources, call, progress));
        if not_indexed.is_err() {
            removed.iter().try_for_each(|(path, _)| forget_vectors(config, path))?;
        }
        let mut lists = files?;
        lists.extend(of_transcripts?);
        let not_indexed = not_indexed?;
        let logs = removed.into_iter().filter(|(_, is_clean)| !is_clean).map(|(path, _)| path);
        Ok(Remains { logs: logs.collect(), in_cluster: in_cluster?, lists, not_indexed })
    }

    /// Builds the indexes of databases from which conversations were removed, with the vectors that their texts had
    /// before. Returns the databases that have none, because other programs keep writing to them.
    fn index_again(
        &self,
        removed: &[(PathBuf, bool)],
        resources: Resources,
        call: &Call,
        progress: &mut dyn FnMut(ForgetProgress<'_>),
    ) -> Result<Vec<PathBuf>> {
        let mut not_indexed = Vec::new();
        for source in &self.sources.present() {
            let Some(path) = source.database() else { continue };
            if !removed.iter().any(|(removed, _)| removed == path) {
                continue;
            }
            let upkeep = Upkeep { sources: self.sources };
            let done = upkeep.complete(source, resources, call, &mut |step| {
                progress(ForgetProgress::Indexing(step.share()));
            });
            match done {
                // The text is gone. A later refresh builds the index when no other program writes.
                Err(error) if error.is_contention() => {
                    forget_vectors(self.sources.config(), path)?;
                    not_indexed.push(path.to_owned());
                }
                done => done?,
            }
            enrich::prune_caches(source, call)?;
        }
        Ok(not_indexed)
    }

    /// Removes conversations from the index of a cluster, if the export is in a cluster. Returns the
    /// cluster's address if its files still contain the text.
    #[cfg(feature = "cluster")]
    fn remove_from_cluster(&self, ids: &[String], stop: &Stop) -> Result<Option<StoreAddress>> {
        let Some(export) = self.sources.of_kind(SourceKind::Export)? else { return Ok(None) };
        let Some(cluster) = export.store().cluster() else { return Ok(None) };
        Ok(match cluster::forget(cluster.client()?, ids, stop)? {
            Forgot::Kept => Some(export.address()),
            Forgot::None | Forgot::Clean => None,
        })
    }

    /// Removes conversations from all of Verbatim's databases. Adds the databases that had a conversation
    /// to `removed`, each with whether its log is clean. Goes on with the other databases after an error.
    fn remove(
        &self,
        found: &[Forgettable],
        ids: &[String],
        call: &Call,
        wait: &mut dyn FnMut(&Path) -> bool,
        removed: &mut Vec<(PathBuf, bool)>,
    ) -> Result<()> {
        // If no source has a conversation, an earlier removal may have been interrupted, and is repeated.
        let again = found.iter().any(|one| one.sources.is_empty());
        let config = self.sources.config();
        let mut outcome = Ok(());
        let mut note = |path: PathBuf, done: Result<Option<bool>>| match done {
            Ok(done) => removed.extend(done.map(|is_clean| (path, is_clean))),
            Err(error) => outcome = std::mem::replace(&mut outcome, Ok(())).and(Err(error)),
        };
        note(PathBuf::new(), Flags::forget(config, ids).map(|()| None));
        let mut exports = config.home_databases();
        let named = config.db.as_ref().and_then(|named| named.path());
        exports
            .extend(named.filter(|path| !exports.iter().any(|it| it == path)).map(Path::to_owned));
        for path in exports {
            let done = remove_imported(&path, ids, again, call);
            note(path, done);
        }
        let threads = config.threads_database();
        let done = Threads::open(&threads).and_then(|open| match open {
            Some(mut open) => open.purge(ids, may_be_in(SourceKind::Threads, found)),
            None => Ok(None),
        });
        note(threads, done.map_err(Error::from));
        if let Some(path) = config.transcript_store() {
            let had = may_be_in(SourceKind::Archive, found);
            let done = transcripts::leave_out(&path, config, ids, had, &mut || wait(&path));
            note(path, done.map_err(Error::from));
        }
        outcome
    }

    /// Returns the transcript stores that were set aside as damaged and may still have one of the
    /// conversations; none if all conversations are from other sources.
    pub fn damaged_stores(&self, found: &[Forgettable]) -> Vec<PathBuf> {
        if may_be_in(SourceKind::Archive, found) {
            self.sources.config().damaged_stores()
        } else {
            Vec::new()
        }
    }

    /// Deletes a transcript store that [`Forgetter::damaged_stores`] returned.
    pub fn delete_damaged(&self, store: &Path) -> Result<()> {
        Ok(TranscriptStore::remove(store)?)
    }

    /// Forgets the conversations again that were forgotten after `decisions` was read, because an import that
    /// began at that time may have written them again.
    pub fn forget_imported_again(
        &self,
        decisions: &Decisions,
        resources: Resources,
        call: &Call,
    ) -> Result<()> {
        let new = self.list()?.into_iter().filter(|one| !decisions.lists(&one.id));
        let new: Vec<Forgettable> = new
            .map(|ForgottenId { id, service, .. }| Forgettable {
                id,
                service,
                ..Default::default()
            })
            .collect();
        if !new.is_empty() {
            self.forget(&new, resources, call, &mut |_| {})?;
        }
        Ok(())
    }

    /// Returns the list of forgotten conversations. Fails if its file cannot be read.
    pub fn list(&self) -> Result<Vec<ForgottenId>> {
        list::read(self.sources.config())
    }

    /// Takes a conversation off the list of forgotten ones. Returns whether it was in the list.
    pub fn undo(&self, id: &str) -> Result<bool> {
        list::change(self.sources.config(), |list: &mut Vec<ForgottenId>| {
            let before = list.len();
            list.retain(|known| known.id != id);
            list.len() < before
        })
    }
}

/// Returns whether a source may still have text of one of the conversations: it has one, or no source has one,
/// so that another process may have just removed it and left its text in free pages.
fn may_be_in(kind: SourceKind, found: &[Forgettable]) -> bool {
    found.iter().any(|one| one.sources.is_empty() || one.sources.contains(&kind))
}

/// Removes conversations from a database that an import made. `None` if the database had none of them.
fn remove_imported(path: &Path, ids: &[String], again: bool, call: &Call) -> Result<Option<bool>> {
    match db::read(path, call, db::is_imported) {
        Ok(true) => Ok(Writer::open(path).and_then(|writer| writer.remove(ids, again))?),
        // Databases of other programs have none of the conversations: `Forgetter::find` would have failed.
        Ok(false)
        | Err(
            db::Error::NotCanonical { .. }
            | db::Error::NotADatabase { .. }
            | db::Error::NotFound { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
