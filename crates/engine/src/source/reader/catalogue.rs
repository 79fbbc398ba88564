//! The conversations of a snapshot, with their times and their messages in reading order.
//!
//! The conversations are in a table that is kept beside the snapshot. Reading order depends on positions,
//! which are stored with the texts, so the messages of a conversation are sorted when it is first read.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use super::{catalogue_table::CatalogueTable, slots::Slots};
use crate::source::{kind::SourceKind, scope::Scope};
use verbatim_base::lock::lock;
use verbatim_base::model::Origin;
use verbatim_chats::db;
use verbatim_index::Snapshot;
use verbatim_text::summary::Summary;

/// The origins of coding agents' conversations, by id.
pub(crate) type Origins = HashMap<String, Origin>;

/// The conversations of one snapshot. Those with messages have numbers from 0, latest activity first, then
/// by id. Those without a time are last.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) kind: SourceKind,
    table: CatalogueTable,
    readings: Slots<CatalogueReading>,
    pub(crate) summaries: Slots<Summary>,
    origins: Mutex<Option<Arc<Origins>>>,
    pub(crate) title_terms: Mutex<Option<Arc<[TitleTerms]>>>,
}

impl Deref for Catalogue {
    type Target = CatalogueTable;

    fn deref(&self) -> &CatalogueTable {
        &self.table
    }
}

/// The terms of the title and the summary of a conversation, as hashes.
#[derive(Debug)]
pub(crate) struct TitleTerms {
    pub(crate) of_title: Box<[u32]>,
    pub(crate) of_summary: Box<[u32]>,
}

/// The doc ids of a conversation in reading order.
#[derive(Debug)]
struct CatalogueReading {
    order: Vec<u32>,
    /// (doc id, turn), sorted by doc id.
    turns: Vec<(u32, u32)>,
}

impl Catalogue {
    pub(crate) fn open(kind: SourceKind, snapshot: Arc<Snapshot>) -> Catalogue {
        let table = CatalogueTable::open(snapshot);
        Catalogue {
            kind,
            readings: Slots::new(table.count()),
            summaries: Slots::new(table.count()),
            table,
            origins: Mutex::default(),
            title_terms: Mutex::default(),
        }
    }

    /// Returns whether this is the catalogue of a snapshot, and its file is unchanged.
    pub(crate) fn is_of(&self, snapshot: &Arc<Snapshot>) -> bool {
        Arc::ptr_eq(self.snapshot(), snapshot) && self.table.is_intact()
    }

    /// Returns the doc ids of a conversation in reading order: sorted by position, then by time, then by
    /// row in the database.
    pub(crate) fn reading(&self, conversation: u32) -> &[u32] {
        &self.in_order(conversation).order
    }

    /// Returns the place of a message in the reading order of its conversation, from 0.
    pub(crate) fn place(&self, doc_id: u32) -> Option<u32> {
        let turns = &self.in_order(self.conversation(doc_id)?).turns;
        let at = turns.binary_search_by_key(&doc_id, |(doc_id, _)| *doc_id).ok()?;
        Some(turns[at].1)
    }

    /// Returns the conversations in a scope, latest activity first.
    pub(crate) fn within(&self, scope: &Scope, origins: Option<&Origins>) -> Vec<u32> {
        let only = scope.only();
        let mut all: Vec<u32> = match only.as_deref().map(|ids| ids.get(&self.kind)) {
            Some(ids) => ids.into_iter().flatten().filter_map(|id| self.find(id)).collect(),
            None => (0..self.count() as u32).collect(),
        };
        all.sort_unstable();
        if !scope.is_open() {
            let has_names = scope.conversation.is_some() || scope.has_names();
            all.retain(|number| {
                if !scope.covers(self.begun(*number), self.last(*number))
                    || has_names && !scope.accepts_id(self.kind, self.id(*number))
                {
                    return false;
                }
                if scope.has_origin() {
                    let origin = origins.and_then(|origins| origins.get(self.id(*number)));
                    if !scope.accepts_origin(self.kind, origin) {
                        return false;
                    }
                }
                let has_role = |doc_id: &u32| scope.accepts_role(self.snapshot().role(*doc_id));
                scope.roles.is_empty() || self.doc_ids(*number).iter().any(has_role)
            });
        }
        all
    }

    /// Returns the origins of conversations. The result of `read` is cached, but not an error, so
    /// that the next question reads again.
    pub(crate) fn origins(
        &self,
        read: impl FnOnce() -> db::Result<Origins>,
    ) -> db::Result<Arc<Origins>> {
        let mut known = lock(&self.origins);
        if let Some(origins) = &*known {
            return Ok(Arc::clone(origins));
        }
        Ok(Arc::clone(known.insert(Arc::new(read()?))))
    }

    fn in_order(&self, conversation: u32) -> &CatalogueReading {
        self.readings.slot(conversation).get_or_init(|| {
            let snapshot = self.snapshot();
            // A single segment already sorts messages of equal position and time by their rows. With several
            // segments, a later segment may have rows that come before those of an earlier segment.
            let is_one_segment = snapshot.segments().len() == 1;
            let mut order = self.doc_ids(conversation);
            // The sort is stable, so messages with equal keys stay in the order of their segment.
            order.sort_by_cached_key(|doc_id| {
                let row = if is_one_segment { 0 } else { snapshot.key(*doc_id) };
                (snapshot.position(*doc_id), snapshot.time(*doc_id), row)
            });
            let mut turns: Vec<(u32, u32)> = order.iter().copied().zip(0..).collect();
            turns.sort_unstable();
            CatalogueReading { order, turns }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;
    use verbatim_base::call::Call;

    impl Catalogue {
        pub(crate) fn summaries_made(&self) -> usize {
            self.summaries.filled()
        }
    }

    #[test]
    fn a_failed_read_of_origins_is_not_kept() {
        let export = TestExport::indexed(&["red"]);
        let source = export.engine.sources().remove(0);
        let snapshot = source.current_index(&Call::default()).unwrap();
        let catalogue = source.catalogue(&snapshot);
        let failed = catalogue.origins(|| Err(db::Error::Stopped));
        assert!(matches!(failed, Err(db::Error::Stopped)), "{failed:?}");
        let origins = Origins::from([("0".to_owned(), Origin::default())]);
        assert_eq!(catalogue.origins(|| Ok(origins)).unwrap().len(), 1);
        let kept = catalogue.origins(|| panic!("they are known"));
        assert_eq!(kept.unwrap().len(), 1);
    }
}
