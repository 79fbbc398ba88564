//! Facts about conversations that readers do not provide, and their stores do.

use std::collections::HashMap;

use super::{kind::SourceKind, scope::About, sources::Sources};
use crate::error::Result;
use verbatim_base::{call::Call, model::Provenance};

impl Sources {
    /// Returns the services that conversations of a source are from, by conversation id.
    pub fn provenance(
        &self,
        kind: SourceKind,
        ids: &[&str],
        call: &Call,
    ) -> Result<HashMap<String, Provenance>> {
        let Some(source) = self.of_kind(kind)? else { return Ok(HashMap::new()) };
        source.store().provenance(&source, Some(ids), call)
    }

    /// Returns the messages of a conversation that its service does not show, as `db::branches` does.
    pub fn branches(
        &self,
        kind: SourceKind,
        id: &str,
        call: &Call,
    ) -> Result<HashMap<String, String>> {
        let Some(source) = self.of_kind(kind)?.filter(|_| kind == SourceKind::Export) else {
            return Ok(HashMap::new());
        };
        source.store().branches(&source, id, call)
    }

    /// Returns the conversation that a coding agent's session was forked from, if it is known.
    pub fn forked_from(&self, id: &str, call: &Call) -> Result<Option<About>> {
        let Some(source) = self.of_kind(SourceKind::Archive)? else { return Ok(None) };
        match source.store().forked_from(&source, id, call)? {
            Some(parent) if parent != id => self.about(SourceKind::Archive, &parent, call),
            _ => match self.about(SourceKind::Archive, id, call)?.and_then(|it| it.continues) {
                Some(earlier) => self.about(SourceKind::Archive, &earlier, call),
                None => Ok(None),
            },
        }
    }
}
