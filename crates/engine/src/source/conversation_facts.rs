//! Facts about conversations that readers do not provide, and their stores do.

use std::collections::HashMap;

use super::{kind::SourceKind, scope::About, sources::Sources};
use crate::error::Result;
use verbatim_base::model::{Provenance, Stop};

impl Sources {
    /// Returns the services that conversations of a source are from, by conversation id.
    pub fn provenance(
        &self,
        kind: SourceKind,
        ids: &[&str],
        stop: &Stop,
    ) -> Result<HashMap<String, Provenance>> {
        let Some(source) = self.of_kind(kind)? else { return Ok(HashMap::new()) };
        source.store().provenance(&source, Some(ids), stop)
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
        source.store().branches(&source, id, stop)
    }

    /// Returns the conversation that a coding agent's session was forked from, if it is known.
    pub fn forked_from(&self, id: &str, stop: &Stop) -> Result<Option<About>> {
        let Some(source) = self.of_kind(SourceKind::Archive)? else { return Ok(None) };
        match source.store().forked_from(&source, id, stop)? {
            Some(parent) if parent != id => self.about(SourceKind::Archive, &parent, stop),
            _ => match self.about(SourceKind::Archive, id, stop)?.and_then(|it| it.continues) {
                Some(earlier) => self.about(SourceKind::Archive, &earlier, stop),
                None => Ok(None),
            },
        }
    }
}
