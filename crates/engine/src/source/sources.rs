//! The sources that a configuration names.

use std::sync::Arc;

#[cfg(feature = "cluster")]
use super::store::cluster::ClusterStore;
use super::store::database::DatabaseStore;
use super::store::work::UpkeepState;
use super::store::{KindState, SharedState, Source, Store};
use super::{kind::SourceKind, note::Note};
use crate::config::{Config, StoreAddress};
use crate::decisions::exclusions::CurrentExclusions;
use crate::decisions::superseded::SupersededIds;
use crate::error::{Error, Result};
use verbatim_base::{call::Call, files, map_faults};
use verbatim_chats::db;
use verbatim_embed::Model;

/// The most attempts of work that reads indexes, if their files change meanwhile.
const ATTEMPTS: u32 = 3;

#[derive(Debug)]
pub struct Sources {
    shared: Arc<SharedState>,
    states: [Arc<KindState>; SourceKind::ALL.len()],
    /// The store that the user named. A cluster stays open as long as the sources.
    named: Option<Arc<dyn Store>>,
}

impl Sources {
    /// Returns the sources of a configuration. Opens nothing.
    pub(crate) fn new(config: Config) -> Sources {
        let config = Arc::new(config);
        let named = config.db.clone().map(|address| store_at(address, &config));
        let shared = SharedState {
            model: Model::new(&config.embeddings),
            upkeep_state: UpkeepState::default(),
            superseded: SupersededIds::default(),
            exclusions: CurrentExclusions::new(Arc::clone(&config)),
            config,
        };
        Sources { shared: Arc::new(shared), states: Default::default(), named }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Returns the configuration with the current exclusions.
    pub fn current_config(&self) -> Arc<Config> {
        self.shared.exclusions.now().0
    }

    pub fn exclusions(&self) -> &CurrentExclusions {
        &self.shared.exclusions
    }

    pub(crate) fn model(&self) -> &Model {
        &self.shared.model
    }

    /// Returns the share of vectors in ranked search, if the words of the best messages cover a question.
    pub fn vector_share(&self) -> f32 {
        match self.shared.config.vector_share {
            Some(percent) => f32::from(percent) / 100.0,
            None => self.shared.model.vector_share(),
        }
    }

    /// Returns the sources that exist now, the export first. Looks them up at every call.
    pub(crate) fn present(&self) -> Vec<Source> {
        self.present_of(&SourceKind::ALL)
    }

    /// Returns the sources of some kinds that exist now, in this order.
    pub fn present_of(&self, kinds: &[SourceKind]) -> Vec<Source> {
        kinds.iter().filter_map(|kind| self.locate(*kind).ok().flatten()).collect()
    }

    /// Returns the sources that exist now, the export first. Returns an error for each source that is
    /// configured but missing, or that cannot be looked up.
    pub(crate) fn all(&self) -> Vec<Result<Source>> {
        SourceKind::ALL.into_iter().filter_map(|kind| self.locate(kind).transpose()).collect()
    }

    /// Returns the source of a kind, if it exists, for a question to this source alone.
    pub(crate) fn of_kind(&self, kind: SourceKind) -> Result<Option<Source>> {
        Ok(self.locate(kind)?.map(|source| source.asked_alone(true)))
    }

    fn locate(&self, kind: SourceKind) -> Result<Option<Source>> {
        let path = match kind {
            SourceKind::Export => {
                return match self.shared.config.export_store() {
                    Ok(address) => Ok(Some(self.at(kind, address))),
                    Err(Error::NoDatabase { .. }) => Ok(None),
                    Err(error) => Err(error),
                };
            }
            SourceKind::Archive => self.shared.config.archive_database(),
            SourceKind::Threads => self.shared.config.threads_database(),
        };
        // If something else is in the place of the file, reading it says so.
        Ok(files::is_there(&path).then(|| self.at(kind, path.into())))
    }

    /// Returns the source of a kind that this question has read before, for a question to it alone.
    ///
    /// It is an error if the source no longer exists, because its part of the answer would be missing.
    pub(crate) fn reopen(&self, kind: SourceKind) -> Result<Source> {
        self.of_kind(kind)?
            .ok_or_else(|| Error::NoDatabase { folder: self.shared.config.db_folder() })
    }

    /// Returns the export, for a question to it alone. If there is none, the error names the folder that was searched.
    pub fn export(&self) -> Result<Source> {
        let export = self.at(SourceKind::Export, self.shared.config.export_store()?);
        Ok(export.asked_alone(true))
    }

    pub(crate) fn upkeep_state(&self) -> &UpkeepState {
        &self.shared.upkeep_state
    }

    /// Runs `work` for each source of some kinds (of all kinds if none is named), the export first. If a
    /// source is configured but missing, or cannot be read, adds a note and goes on with the next one.
    ///
    /// It is an error if there is nothing to ask, or if no source can be read.
    pub(crate) fn each<T>(
        &self,
        kinds: &[SourceKind],
        mut work: impl FnMut(Source) -> Result<T>,
    ) -> Result<(Vec<T>, Vec<Note>)> {
        let mut done = Vec::new();
        let mut notes = Vec::new();
        let mut first = None;
        let kinds = if kinds.is_empty() { &SourceKind::ALL } else { kinds };
        let is_alone = is_alone(kinds);
        for kind in SourceKind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
            let outcome = match self.locate(kind) {
                Ok(Some(source)) => work(source.asked_alone(is_alone)),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(one) => done.push(one),
                Err(error) if error.is_of_source() => {
                    notes.push(Note::Unreadable { source: kind, reason: error.to_string() });
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = first.filter(|_| done.is_empty()) {
            return Err(error);
        }
        if kinds.contains(&SourceKind::Archive) {
            notes.extend(self.unread_transcripts());
            notes.extend(self.set_aside());
        }
        let may_be_empty = done.is_empty() && notes.is_empty();
        if may_be_empty && kinds.contains(&SourceKind::Export) && self.all().is_empty() {
            self.export()?;
        }
        Ok((done, notes))
    }

    /// Returns the sources of some kinds that can be read, and notes about the others.
    pub(crate) fn readable(
        &self,
        kinds: &[SourceKind],
        call: &Call,
    ) -> Result<(Vec<Source>, Vec<Note>)> {
        self.each(kinds, |source| source.store().check(&source, call).map(|()| source))
    }

    /// Returns notes about the sources that cannot be read.
    pub fn problems(&self, call: &Call) -> Vec<Note> {
        let mut problems = Vec::new();
        for kind in SourceKind::ALL {
            match self.readable(&[kind], call) {
                Ok((_, notes)) => problems.extend(notes),
                Err(error) if error.is_of_source() => {
                    problems.push(Note::Unreadable { source: kind, reason: error.to_string() });
                }
                Err(_) => {}
            }
        }
        problems
    }

    fn unread_transcripts(&self) -> Option<Note> {
        if self.shared.config.archives.is_empty() {
            return None;
        }
        if self.shared.upkeep_state.is_running() {
            return (!self.shared.upkeep_state.are_transcripts_read())
                .then_some(Note::ReadingTranscripts);
        }
        let is_unread =
            self.shared.config.leave_indexes && !self.shared.config.archive_database().is_file();
        is_unread.then_some(Note::TranscriptsNotRead)
    }

    /// Returns a note if a damaged transcript store was set aside. It may have the only copy of
    /// transcripts that their programs deleted.
    fn set_aside(&self) -> Option<Note> {
        let path = db::transcripts::first_aside(&self.shared.config.archive_database());
        path.exists().then_some(Note::SetAside { path })
    }

    /// Returns the sources of some kinds (of all kinds if none is named). It is an error if there is no
    /// source at all.
    pub(crate) fn within(&self, kinds: &[SourceKind]) -> Result<Vec<Source>> {
        let kinds = if kinds.is_empty() { &SourceKind::ALL } else { kinds };
        let mut sources = self.present();
        if sources.is_empty() && kinds.contains(&SourceKind::Export) {
            sources.push(self.export()?);
        }
        sources.retain(|source| kinds.contains(&source.kind));
        let is_alone = is_alone(kinds);
        Ok(sources.into_iter().map(|source| source.asked_alone(is_alone)).collect())
    }

    /// Closes all open indexes. The next question opens them again.
    pub(crate) fn close(&self) {
        self.states.iter().for_each(|state| state.close());
    }

    /// Runs work that reads indexes. If it panics, if a mapped file was cut meanwhile, or if `is_torn` says so of
    /// what it returns, it runs again on the current files; at last it reads no index. Fails with the message
    /// of the last attempt's panic.
    pub fn attempt<T>(
        &self,
        call: &Call,
        is_torn: impl Fn(&T) -> bool,
        work: impl Fn(&Call) -> T,
    ) -> Result<T, String> {
        for _ in 1..ATTEMPTS {
            match map_faults::sound(|| work(call)) {
                Ok(done) if !is_torn(&done) => return Ok(done),
                _ => self.close(),
            }
        }
        let done = map_faults::caught(|| work(&call.without_indexes()));
        if done.is_err() {
            self.close();
        }
        done
    }

    fn at(&self, kind: SourceKind, address: StoreAddress) -> Source {
        let known = self.named.clone().filter(|named| named.address() == address);
        let store = known.unwrap_or_else(|| store_at(address, &self.shared.config));
        let state = Arc::clone(&self.states[kind as usize]);
        Source { kind, store, is_alone: false, shared: Arc::clone(&self.shared), state }
    }
}

/// Returns the store at an address. Opens nothing.
pub(crate) fn store_at(address: StoreAddress, config: &Config) -> Arc<dyn Store> {
    match address {
        StoreAddress::Database(path) => Arc::new(DatabaseStore(path)),
        #[cfg(feature = "cluster")]
        StoreAddress::Cluster(address) => {
            let cluster = config.cluster(&address);
            Arc::new(ClusterStore { address, cluster: Arc::new(cluster) })
        }
        // No file has this name, and [`Config::export_store`] says why.
        #[cfg(not(feature = "cluster"))]
        StoreAddress::Cluster(address) => Arc::new(DatabaseStore(address.into())),
    }
}

/// Returns whether these sources include at most one of the two that may have the same conversations: the
/// export and the transcript store.
fn is_alone(kinds: &[SourceKind]) -> bool {
    !(kinds.contains(&SourceKind::Export) && kinds.contains(&SourceKind::Archive))
}
