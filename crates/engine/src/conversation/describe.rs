//! Descriptions of the conversations of an answer.

use std::collections::{BTreeMap, HashMap};

use crate::source::{Description, SourceKind};
use crate::{conversation::lookup::Lookup, error::Result};
use verbatim_base::model::{Origin, Provenance};

/// The key of a conversation among all sources.
pub type ConversationKey = (SourceKind, String);

/// The facts that can be read about a conversation.
#[derive(Debug)]
pub struct Described {
    /// The shortest beginning of the id, from 8 characters on, that no other conversation has.
    pub short_id: String,
    /// The title, the summary and the turns; `None` if the source does not have the conversation.
    pub description: Option<Description>,
    /// The origin, if the conversation is from a coding agent.
    pub origin: Option<Origin>,
    /// The service of the conversation; `None` if the source does not name it.
    pub provenance: Option<Provenance>,
}

impl Lookup<'_> {
    /// Describes conversations. Conversations that cannot be read get a description without details.
    pub fn described(
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
            let mut descriptions = match self.sources.of_kind(kind)? {
                Some(source) => source.descriptions(&ids, false, self.call)?,
                None => HashMap::new(),
            };
            let mut provenance = self.sources.provenance(kind, &ids, self.call)?;
            let short = self.short_ids(&ids)?;
            for (id, short_id) in ids.into_iter().zip(short) {
                let description = descriptions.remove(id);
                let origin =
                    description.as_ref().and_then(|description| description.origin.clone());
                let provenance = provenance.remove(id);
                let one = Described { short_id, description, origin, provenance };
                described.insert((kind, id.to_owned()), one);
            }
        }
        Ok(described)
    }
}
