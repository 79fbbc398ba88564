//! The conversations of a snapshot, with their times and their messages in reading order.
//!
//! A catalogue is built in memory from the snapshot's fast fields. Building it reads no texts, and needs
//! at most eight bytes per message. Reading order depends on positions, which are stored with the texts,
//! so the messages of a conversation are sorted when it is first read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use super::{
    kind::SourceKind,
    scope::Scope,
    sorted_ids::SortedIds,
    summaries::features::{Summary, SummaryFeatures},
};
use verbatim_base::{
    lock::lock,
    model::{Instant, Origin},
};
use verbatim_chats::db;
use verbatim_index::Snapshot;
use verbatim_text::lossy;

/// The origins of coding agents' conversations, by id.
pub(super) type Origins = HashMap<String, Origin>;

/// The conversation number of a deleted message.
const DELETED: u32 = u32::MAX;

/// The conversations of one snapshot.
#[derive(Debug)]
pub(crate) struct Catalogue {
    kind: SourceKind,
    snapshot: Arc<Snapshot>,
    /// The conversations, latest activity first, then by id. Those without a time are last.
    conversations: Vec<Listed>,
    /// For each doc id, the number of the conversation, or [`DELETED`].
    conversation_of: Vec<u32>,
    /// The doc ids of all conversations, one conversation after the other; within a segment, the oldest
    /// message first. Built at the first use.
    doc_ids: OnceLock<Vec<u32>>,
    /// The ids in sorted order; built at the first use.
    sorted_ids: OnceLock<SortedIds>,
    /// The cached origins of conversations.
    origins: Mutex<Option<Arc<Origins>>>,
    /// The cached features of the summaries.
    pub(super) features: Mutex<Option<Arc<SummaryFeatures>>>,
}

#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) id: String,
    /// `conversations.title`; empty for NULL.
    pub(crate) title: String,
    /// The time of the conversation's first message.
    pub(crate) begun: Option<Instant>,
    /// The time of the conversation's last message.
    pub(crate) last: Option<Instant>,
    /// The position of the conversation's first doc id in [`Catalogue::doc_ids`]; `turns` ids follow.
    first_doc: u32,
    turns: u32,
    reading: OnceLock<CatalogueReading>,
    pub(super) summary: OnceLock<Summary>,
}

/// The doc ids of a conversation in reading order.
#[derive(Debug)]
struct CatalogueReading {
    order: Vec<u32>,
    /// (doc id, turn), sorted by doc id.
    turns: Vec<(u32, u32)>,
}

impl Listed {
    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    fn add(&mut self, part: &ListedPart, snapshot: &Snapshot) {
        self.turns += part.turns;
        let newest = snapshot.time(part.newest);
        self.last = self.last.max(newest);
        let oldest = part.oldest.and_then(|doc_id| snapshot.time(doc_id)).or(newest);
        self.begun = self.begun.into_iter().chain(oldest).min();
    }
}

impl Catalogue {
    pub(crate) fn of(kind: SourceKind, snapshot: Arc<Snapshot>) -> Catalogue {
        let (unsorted, mut conversation_of) = collect(&snapshot);
        let (mut conversations, place_of) = sort_by_activity(unsorted);
        let mut end = 0;
        for listed in &mut conversations {
            listed.first_doc = end;
            end += listed.turns;
        }
        for number in conversation_of.iter_mut().filter(|number| **number != DELETED) {
            *number = place_of[*number as usize];
        }
        Catalogue {
            kind,
            snapshot,
            conversations,
            conversation_of,
            doc_ids: OnceLock::new(),
            sorted_ids: OnceLock::new(),
            origins: Mutex::default(),
            features: Mutex::default(),
        }
    }

    pub(crate) fn kind(&self) -> SourceKind {
        self.kind
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Returns the conversations with messages, latest activity first. A position is a conversation's number.
    pub(crate) fn conversations(&self) -> &[Listed] {
        &self.conversations
    }

    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.sorted_ids().find(id, |number| &self.conversations[number as usize].id)
    }

    /// Does the same as [`Listing::shared_start`](super::reader::Listing::shared_start).
    pub(crate) fn shared_start(&self, id: &str) -> usize {
        self.sorted_ids().shared_start(id, |number| &self.conversations[number as usize].id)
    }

    fn sorted_ids(&self) -> &SortedIds {
        let id_of = |number: u32| self.conversations[number as usize].id.as_str();
        self.sorted_ids.get_or_init(|| SortedIds::of(self.conversations.len(), id_of))
    }

    /// Returns the number of a message's conversation; `None` for a deleted message.
    pub(crate) fn conversation(&self, doc_id: u32) -> Option<u32> {
        self.conversation_of.get(doc_id as usize).copied().filter(|number| *number != DELETED)
    }

    /// Returns the doc ids of a conversation without deleted messages, in no particular order.
    pub(crate) fn doc_ids(&self, conversation: u32) -> &[u32] {
        let listed = &self.conversations[conversation as usize];
        let start = listed.first_doc as usize;
        let doc_ids = self.doc_ids.get_or_init(|| self.by_conversation());
        &doc_ids[start..start + listed.turns as usize]
    }

    fn by_conversation(&self) -> Vec<u32> {
        let mut next: Vec<u32> = self.conversations.iter().map(|listed| listed.first_doc).collect();
        let mut doc_ids = vec![0; self.conversations.iter().map(|it| it.turns as usize).sum()];
        for segment in self.snapshot.segments() {
            // Doc ids of a segment begin with the newest message, so the loop runs backwards to begin with
            // the oldest.
            for doc_id in segment.doc_ids.rev() {
                let number = self.conversation_of[doc_id as usize];
                if number != DELETED {
                    let next = &mut next[number as usize];
                    doc_ids[*next as usize] = doc_id;
                    *next += 1;
                }
            }
        }
        doc_ids
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
        let all: Vec<u32> = match &scope.conversation {
            Some(id) => self.find(id).into_iter().collect(),
            None => (0..self.conversations.len() as u32).collect(),
        };
        let is_within = |number: &u32| {
            let listed = &self.conversations[*number as usize];
            let origin = || origins.and_then(|origins| origins.get(&listed.id));
            scope.covers(listed.begun, listed.last)
                && scope.accepts_id(self.kind, &listed.id)
                && (!scope.has_origin() || scope.accepts_origin(self.kind, origin()))
                && self.has_role(*number, &scope.roles)
        };
        all.into_iter().filter(is_within).collect()
    }

    fn has_role(&self, conversation: u32, roles: &[String]) -> bool {
        let is_wanted = |doc_id: &u32| roles.iter().any(|role| role == self.snapshot.role(*doc_id));
        roles.is_empty() || self.doc_ids(conversation).iter().any(is_wanted)
    }

    /// Returns the origins of conversations. The result of `read` is cached, but not an error, so
    /// that the next question reads again.
    pub(super) fn origins(
        &self,
        read: impl FnOnce() -> db::Result<Origins>,
    ) -> db::Result<Arc<Origins>> {
        let mut known = lock(&self.origins);
        match &*known {
            Some(origins) => Ok(Arc::clone(origins)),
            None => Ok(Arc::clone(known.insert(Arc::new(read()?)))),
        }
    }

    fn in_order(&self, conversation: u32) -> &CatalogueReading {
        self.conversations[conversation as usize].reading.get_or_init(|| {
            let snapshot = &self.snapshot;
            // A single segment already sorts messages of equal position and time by their rows. With several
            // segments, a later segment may have rows that come before those of an earlier segment.
            let is_one_segment = snapshot.segments().len() == 1;
            let row = |doc_id| if is_one_segment { 0 } else { snapshot.key(doc_id) };
            let key = |doc_id: u32| {
                (snapshot.position(doc_id), snapshot.time(doc_id), row(doc_id), doc_id)
            };
            let mut keyed: Vec<_> = self.doc_ids(conversation).iter().copied().map(key).collect();
            // The sort is stable, so messages with equal keys stay in the order of their segment.
            keyed.sort_by_key(|(position, time, row, _)| (*position, *time, *row));
            let order: Vec<u32> = keyed.into_iter().map(|(.., doc_id)| doc_id).collect();
            let mut turns: Vec<(u32, u32)> = order.iter().copied().zip(0..).collect();
            turns.sort_unstable();
            CatalogueReading { order, turns }
        })
    }
}

/// The messages that a conversation has in one segment.
#[derive(Clone)]
struct ListedPart {
    /// The place of the conversation in the catalogue; [`DELETED`] if the segment has no living message of it.
    place: u32,
    newest: u32,
    /// The oldest message with a time.
    oldest: Option<u32>,
    turns: u32,
}

impl ListedPart {
    const EMPTY: ListedPart = ListedPart { place: DELETED, newest: 0, oldest: None, turns: 0 };
}

/// Returns the conversations of a snapshot in the order of their first doc ids, and for each doc id
/// the place of its conversation.
fn collect(snapshot: &Snapshot) -> (Vec<Listed>, Vec<u32>) {
    let mut conversations: Vec<Listed> = Vec::new();
    let mut conversation_of = vec![DELETED; snapshot.max_doc() as usize];
    let mut by_name: HashMap<String, u32> = HashMap::new();
    let segments = snapshot.segments().len();
    for segment in 0..segments {
        let mut parts = vec![ListedPart::EMPTY; snapshot.conversations_in(segment) as usize];
        conversations.reserve(parts.len());
        let first_undated = snapshot.first_undated_in(segment);
        for (doc_id, number) in snapshot.living_in(segment) {
            let part = &mut parts[number as usize];
            if part.place == DELETED {
                let (id, title) = snapshot.conversation_in(segment, number);
                let (id, title) = (lossy(id).into_owned(), lossy(title.unwrap_or_default()));
                let known = by_name.get(&id).copied();
                part.place = known.unwrap_or(conversations.len() as u32);
                part.newest = doc_id;
                match known {
                    // The title in the last segment is the current title.
                    Some(place) => conversations[place as usize].title = title.into_owned(),
                    None => {
                        let title = title.into_owned();
                        conversations.push(Listed { id, title, ..Listed::default() });
                    }
                }
            }
            // The documents of a segment are in result order, those without a time last.
            if doc_id < first_undated {
                part.oldest = Some(doc_id);
            }
            part.turns += 1;
            conversation_of[doc_id as usize] = part.place;
        }
        for part in parts.iter().filter(|part| part.place != DELETED) {
            conversations[part.place as usize].add(part, snapshot);
        }
        // A segment has each conversation only once, so names are needed only for several segments.
        if segment + 1 < segments {
            let new = conversations.iter().zip(0..).skip(by_name.len());
            by_name.extend(new.map(|(listed, place)| (listed.id.clone(), place)));
        }
    }
    (conversations, conversation_of)
}

/// Sorts conversations by latest activity, newest first. Returns also the new position of each.
fn sort_by_activity(mut conversations: Vec<Listed>) -> (Vec<Listed>, Vec<u32>) {
    let mut order: Vec<u32> = (0..conversations.len() as u32).collect();
    let listed = |place: &u32| &conversations[*place as usize];
    order.sort_unstable_by(|a, b| {
        let (a, b) = (listed(a), listed(b));
        b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id))
    });
    let mut place_of = vec![0; order.len()];
    for (place, earlier) in order.iter().zip(0..) {
        place_of[*place as usize] = earlier;
    }
    // Each swap brings a conversation to its place, so nothing is copied twice.
    let mut left = place_of.clone();
    for at in 0..left.len() {
        while left[at] as usize != at {
            let place = left[at] as usize;
            conversations.swap(at, place);
            left.swap(at, place);
        }
    }
    (conversations, place_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;
    use verbatim_base::model::Stop;

    impl Catalogue {
        /// Returns how many conversations were summarised.
        pub(crate) fn summaries_made(&self) -> usize {
            self.conversations.iter().filter(|listed| listed.summary.get().is_some()).count()
        }
    }

    #[test]
    fn a_failed_read_of_origins_is_not_kept() {
        let export = TestExport::indexed(&["red"]);
        let source = export.engine.sources().remove(0);
        let snapshot = source.current_index(&Stop::never()).unwrap();
        let catalogue = source.catalogue(&snapshot);
        let failed = catalogue.origins(|| Err(db::Error::Stopped));
        assert!(matches!(failed, Err(db::Error::Stopped)), "{failed:?}");
        let origins = Origins::from([("0".to_owned(), Origin::default())]);
        assert_eq!(catalogue.origins(|| Ok(origins)).unwrap().len(), 1);
        let kept = catalogue.origins(|| panic!("they are known"));
        assert_eq!(kept.unwrap().len(), 1);
    }
}
