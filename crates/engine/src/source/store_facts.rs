//! Facts about a source that readers do not provide. They are read in another way for each kind of store.

use std::collections::HashMap;

use super::{
    kind::SourceKind,
    scope::About,
    sources::{Source, Sources},
    store::Store,
};
use crate::error::Result;
use verbatim_base::model::{Hit, Provenance, Stop};
use verbatim_chats::{db, import::transcript::TranscriptReader};

impl Source {
    /// Fails if the source cannot be read.
    pub(crate) fn check(&self, stop: &Stop) -> Result<()> {
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { cluster, .. } => {
                cluster.view(stop)?;
                Ok(())
            }
            Store::Database(_) if self.current_index(stop).is_ok() => Ok(()),
            Store::Database(_) => self.read_database(stop, |_| Ok(())),
        }
    }

    /// Returns the models that answered in each conversation, by conversation id.
    pub(super) fn models(&self, stop: &Stop) -> Result<HashMap<String, Vec<String>>> {
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { cluster, .. } => super::clustered::models(cluster, stop),
            Store::Database(_) => self.read_database(stop, db::tally::models_by_conversation),
        }
    }

    /// Returns the services that conversations are from, by conversation id. Without `ids`, returns all.
    pub(super) fn provenance(
        &self,
        ids: Option<&[&str]>,
        stop: &Stop,
    ) -> Result<HashMap<String, Provenance>> {
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { cluster, .. } => super::clustered::provenance(cluster, ids, stop),
            Store::Database(_) => self.on_database(|path| {
                db::read_tables(path, stop, |database| db::provenance(database, ids))
            }),
        }
    }

    /// Returns the messages of a conversation that its service does not show, like `db::branches`. A
    /// cluster does not store which messages these are.
    pub(super) fn branches(&self, id: &str, stop: &Stop) -> Result<HashMap<String, String>> {
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { .. } => Ok(HashMap::new()),
            Store::Database(_) => self.read_database(stop, |database| db::branches(database, id)),
        }
    }

    /// Returns the first messages of conversations that have messages.
    pub(crate) fn first_messages(&self, ids: &[&str], stop: &Stop) -> Result<Vec<Hit<'static>>> {
        #[cfg(feature = "cluster")]
        if let Store::Cluster { cluster, .. } = self.store() {
            return super::clustered::first_messages(cluster, ids, stop);
        }
        let reader = self.reader(stop);
        let mut first = Vec::new();
        for id in ids {
            let messages = reader.read(id, false, stop)?.filter(|it| it.turns() > 0);
            first.extend(messages.map(|messages| messages.message(0).into_owned()));
        }
        Ok(first)
    }

    /// Returns the id of the conversation that a transcript continues, if it names one.
    pub(super) fn forked_from(&self, id: &str, stop: &Stop) -> Result<Option<String>> {
        let reader = match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { .. } => return Ok(None),
            Store::Database(_) => {
                self.read_database(stop, |database| db::reader_state(database, id))?
            }
        };
        let reader = reader.and_then(|state| TranscriptReader::restore(&state));
        Ok(reader.and_then(|reader| reader.parent().map(str::to_owned)))
    }

    /// Returns the ids of the conversations whose transcripts are known but not stored. A cluster has no
    /// transcripts.
    pub(crate) fn withheld(&self, stop: &Stop) -> Result<Vec<String>> {
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { .. } => Ok(Vec::new()),
            Store::Database(_) => self.read_database(stop, db::withheld),
        }
    }

    /// Returns a text that changes whenever the store or its index changes. This takes some system calls, or
    /// a request to a cluster.
    pub(crate) fn stamp(&self, stop: &Stop) -> String {
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { cluster, .. } => {
                cluster.view(stop).map_or_else(|_| String::new(), |view| view.index().to_owned())
            }
            Store::Database(path) => {
                let state = db::state(path).map(|state| state.to_string()).unwrap_or_default();
                let commit = self.index_dir().ok().and_then(|index| index.current());
                format!("{state} {commit:?}")
            }
        }
    }

    /// Returns whether the store has row ids, which an index needs.
    pub(crate) fn can_be_indexed(&self, stop: &Stop) -> bool {
        let has_keys = |database: &db::Database| {
            let layout = database.layout();
            Ok(layout.message_key.is_some() && layout.conversation_key.is_some())
        };
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { .. } => false,
            Store::Database(_) => self.read_database(stop, has_keys).unwrap_or(true),
        }
    }

    /// Returns whether an index can answer, either in the cluster or a current index on this computer.
    pub fn is_indexed(&self, stop: &Stop) -> bool {
        match self.store() {
            #[cfg(feature = "cluster")]
            Store::Cluster { .. } => true,
            Store::Database(_) => self.current_index(stop).is_ok(),
        }
    }
}

impl Sources {
    /// Returns the services that conversations of a source are from, by conversation id.
    pub fn provenance(
        &self,
        kind: SourceKind,
        ids: &[&str],
        stop: &Stop,
    ) -> Result<HashMap<String, Provenance>> {
        let Some(source) = self.of_kind(kind)? else { return Ok(HashMap::new()) };
        source.provenance(Some(ids), stop)
    }

    /// Returns the messages of a conversation that its service does not show, as `db::branches` does.
    pub fn branches(
        &self,
        kind: SourceKind,
        id: &str,
        stop: &Stop,
    ) -> Result<HashMap<String, String>> {
        let Some(source) = self.of_kind(kind)?.filter(|_| kind == SourceKind::Export) else {
            return Ok(HashMap::new());
        };
        source.branches(id, stop)
    }

    /// Returns the conversation that a coding agent's session was forked from, if it is known.
    pub fn forked_from(&self, id: &str, stop: &Stop) -> Result<Option<About>> {
        let Some(source) = self.of_kind(SourceKind::Archive)? else { return Ok(None) };
        match source.forked_from(id, stop)? {
            Some(parent) if parent != id => self.about(SourceKind::Archive, &parent, stop),
            _ => match self.about(SourceKind::Archive, id, stop)?.and_then(|it| it.continues) {
                Some(earlier) => self.about(SourceKind::Archive, &earlier, stop),
                None => Ok(None),
            },
        }
    }
}
