//! What is known of the conversations of an answer, beside its messages.

use std::collections::{BTreeMap, HashMap};

use super::{
    Engine,
    error::Error,
    source::{Sketch, SourceKind},
};
use crate::model::{Origin, Provenance, Stop};

/// What a conversation is known by among those of all sources.
pub(crate) type ConversationKey = (SourceKind, String);

/// What is known of a conversation, as far as it can be read.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) short_id: String,
    pub(crate) sketch: Option<Sketch>,
    pub(crate) origin: Option<Origin>,
    pub(crate) provenance: Option<Provenance>,
}

impl Engine {
    /// Describes conversations; each is in the answer, whatever of it can be read.
    pub(crate) fn described(
        &self,
        keys: &[ConversationKey],
        stop: &Stop,
    ) -> Result<HashMap<ConversationKey, Described>, Error> {
        let mut by_kind: BTreeMap<SourceKind, Vec<&str>> = BTreeMap::new();
        for (kind, id) in keys {
            by_kind.entry(*kind).or_default().push(id);
        }
        let mut described = HashMap::new();
        for (kind, mut ids) in by_kind {
            ids.sort_unstable();
            ids.dedup();
            let mut sketches = self.sketches(kind, &ids, stop)?;
            let mut provenance = self.provenance(kind, &ids, stop)?;
            let short = self.find(stop).short_ids(&ids)?;
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
