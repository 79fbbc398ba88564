//! Descriptions of the conversations of an answer.

use std::collections::{BTreeMap, HashMap};

use super::{
    error::Result,
    lookup::Lookup,
    source::{Sketch, SourceKind},
};
use crate::model::{Origin, Provenance};

/// The key of a conversation among all sources.
pub(crate) type ConversationKey = (SourceKind, String);

/// The facts that can be read about a conversation.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) short_id: String,
    pub(crate) sketch: Option<Sketch>,
    pub(crate) origin: Option<Origin>,
    pub(crate) provenance: Option<Provenance>,
}

impl Lookup<'_> {
    /// Describes conversations. Conversations that cannot be read get a description without details.
    pub(crate) fn described(
        &self,
        keys: &[ConversationKey],
    ) -> Result<HashMap<ConversationKey, Described>> {
        let mut by_kind: BTreeMap<SourceKind, Vec<&str>> = BTreeMap::new();
        for (kind, id) in keys {
            by_kind.entry(*kind).or_default().push(id);
        }
        let mut described = HashMap::new();
        for (kind, mut ids) in by_kind {
            ids.sort_unstable();
            ids.dedup();
            let mut sketches = match self.sources.of_kind(kind)? {
                Some(source) => source.sketched(&ids, &|listing| listing.brief(0), self.stop)?,
                None => HashMap::new(),
            };
            let mut provenance = self.sources.provenance(kind, &ids, self.stop)?;
            let short = self.short_ids(&ids)?;
            for (id, short_id) in ids.into_iter().zip(short) {
                let sketch = sketches.remove(id);
                let origin = sketch.as_ref().and_then(|sketch| sketch.origin.clone());
                let provenance = provenance.remove(id);
                let one = Described { short_id, sketch, origin, provenance };
                described.insert((kind, id.to_owned()), one);
            }
        }
        Ok(described)
    }
}
