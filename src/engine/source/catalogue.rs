//! Which conversations a snapshot holds, when they took place, and their messages in reading order.
//!
//! Made in memory from the columns of a snapshot, once for each: no text is read, and no message
//! takes more than eight bytes. Reading order asks for positions, which stand with the texts, so a
//! conversation is put into it when it is first read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use crate::engine::{SourceKind, Summary, source::summaries::SummaryFeatures};
use crate::{db::StoredOrigin, index::Snapshot, model::Instant};

/// The place of a doc id whose message is gone.
const GONE: u32 = u32::MAX;

/// The conversations of one snapshot.
#[derive(Debug)]
pub struct Catalogue {
    kind: SourceKind,
    snapshot: Arc<Snapshot>,
    /// Latest activity first, those without a time last, equal ones by id.
    conversations: Vec<Listed>,
    /// The place in `conversations` of each doc id's conversation; [`GONE`] for no live message.
    conversation_of: Vec<u32>,
    /// The live doc ids of one conversation after the other, oldest first.
    doc_ids: Vec<u32>,
    /// Places in `conversations`, by id.
    by_id: Vec<u32>,
    /// Where conversations come from, by id, once that was asked.
    origins: OnceLock<HashMap<String, StoredOrigin>>,
    /// What they are ranked by as a whole, once that was asked.
    pub(crate) gists: Mutex<Option<Arc<SummaryFeatures>>>,
}

/// A conversation of a [`Catalogue`].
#[derive(Debug)]
pub struct Listed {
    /// `conversations.id`.
    pub id: String,
    /// `conversations.title`; empty for NULL.
    pub title: String,
    /// When its first message was written.
    pub begun: Option<Instant>,
    /// When its last message was written.
    pub last: Option<Instant>,
    /// Where its doc ids begin, and how many there are.
    doc_ids: (u32, u32),
    reading: OnceLock<Reading>,
    /// What it is about, once that was asked.
    pub(crate) brief: OnceLock<Summary>,
}

/// The doc ids of a conversation in reading order, and where each of them stands in it.
#[derive(Debug)]
struct Reading {
    order: Vec<u32>,
    /// By doc id.
    places: Vec<(u32, u32)>,
}

impl Listed {
    /// How many messages it has.
    pub fn turns(&self) -> u32 {
        self.doc_ids.1
    }
}

impl Catalogue {
    /// Reads the columns of a snapshot of a source's index.
    pub fn of(kind: SourceKind, snapshot: Arc<Snapshot>) -> Catalogue {
        let doc_ids = snapshot.max_doc();
        let mut conversations: Vec<Listed> = Vec::new();
        let mut conversation_of = vec![GONE; doc_ids as usize];
        let mut by_name: HashMap<String, u32> = HashMap::new();
        let parts = snapshot.parts();
        let mut is_open = false;
        for part in &parts {
            // A part's own numbers of conversations, as places here.
            let mut places: Vec<u32> = Vec::new();
            for doc_id in part.doc_ids.clone().filter(|doc_id| snapshot.is_live(*doc_id)) {
                let number = snapshot.conversation(doc_id) as usize;
                if number >= places.len() {
                    places.resize(number + 1, GONE);
                }
                if places[number] == GONE {
                    let id = snapshot.conversation_id(doc_id).into_owned();
                    let title = snapshot.title(doc_id).into_owned();
                    let known = if is_open { by_name.get(&id).copied() } else { None };
                    places[number] = known.unwrap_or(conversations.len() as u32);
                    match known {
                        // Later parts know better what it is called now.
                        Some(place) => conversations[place as usize].title = title,
                        None => conversations.push(Listed {
                            id,
                            title,
                            begun: None,
                            last: None,
                            doc_ids: (0, 0),
                            reading: OnceLock::new(),
                            brief: OnceLock::new(),
                        }),
                    }
                }
                let place = places[number];
                conversation_of[doc_id as usize] = place;
                let listed = &mut conversations[place as usize];
                listed.doc_ids.1 += 1;
                if let Some(time) = snapshot.time(doc_id) {
                    listed.last = listed.last.max(Some(time));
                    listed.begun = Some(listed.begun.map_or(time, |begun| begun.min(time)));
                }
            }
            // Names are compared from the second part on: one part has no conversation twice.
            if parts.len() > 1 {
                let named = conversations.iter().zip(0..).skip(by_name.len());
                by_name.extend(named.map(|(listed, place)| (listed.id.clone(), place)));
                is_open = true;
            }
        }
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
        let mut sorted: Vec<(u32, Listed)> = place_of.iter().copied().zip(conversations).collect();
        sorted.sort_unstable_by_key(|(place, _)| *place);
        let mut conversations: Vec<Listed> = sorted.into_iter().map(|(_, listed)| listed).collect();
        let mut at = 0;
        for listed in &mut conversations {
            listed.doc_ids.0 = at;
            at += listed.doc_ids.1;
        }
        let mut next: Vec<u32> = conversations.iter().map(|listed| listed.doc_ids.0).collect();
        let mut all = vec![0; at as usize];
        for part in &parts {
            // Slots stand newest first; among those without a time, which come last, likewise.
            for doc_id in part.doc_ids.clone().rev() {
                let place = &mut conversation_of[doc_id as usize];
                if *place != GONE {
                    *place = place_of[*place as usize];
                    let next = &mut next[*place as usize];
                    all[*next as usize] = doc_id;
                    *next += 1;
                }
            }
        }
        let mut by_id: Vec<u32> = (0..conversations.len() as u32).collect();
        by_id.sort_unstable_by(|a, b| {
            conversations[*a as usize].id.cmp(&conversations[*b as usize].id)
        });
        drop(parts);
        Catalogue {
            kind,
            snapshot,
            conversations,
            conversation_of,
            doc_ids: all,
            by_id,
            origins: OnceLock::new(),
            gists: Mutex::default(),
        }
    }

    /// The source it is of.
    pub fn kind(&self) -> SourceKind {
        self.kind
    }

    /// The snapshot it is of.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Every conversation that has messages, latest activity first.
    pub fn conversations(&self) -> &[Listed] {
        &self.conversations
    }

    /// The place among [`Catalogue::conversations`] of the one with an id.
    pub fn find(&self, id: &str) -> Option<u32> {
        let id_of = |place: &u32| self.conversations[*place as usize].id.as_str();
        let at = self.by_id.binary_search_by(|place| id_of(place).cmp(id)).ok()?;
        Some(self.by_id[at])
    }

    /// The place among [`Catalogue::conversations`] of a message's; `None` where it is gone.
    pub fn conversation(&self, doc_id: u32) -> Option<u32> {
        self.conversation_of.get(doc_id as usize).copied().filter(|place| *place != GONE)
    }

    /// The live doc ids of a conversation in no order that means anything.
    pub fn doc_ids(&self, conversation: u32) -> &[u32] {
        let (start, count) = self.conversations[conversation as usize].doc_ids;
        &self.doc_ids[start as usize..(start + count) as usize]
    }

    /// The live doc ids of a conversation in reading order: by position, else by time, else as they
    /// were written.
    pub fn reading(&self, conversation: u32) -> &[u32] {
        &self.read(conversation).order
    }

    /// Where a message stands in the reading order of its conversation, from 0.
    pub fn place(&self, doc_id: u32) -> Option<u32> {
        let places = &self.read(self.conversation(doc_id)?).places;
        let at = places.binary_search_by_key(&doc_id, |(doc_id, _)| *doc_id).ok()?;
        Some(places[at].1)
    }

    /// Where a conversation comes from, as `read` tells once of all.
    pub(crate) fn origin(
        &self,
        conversation: u32,
        read: impl FnOnce() -> HashMap<String, StoredOrigin>,
    ) -> Option<&StoredOrigin> {
        self.origins.get_or_init(read).get(&self.conversations[conversation as usize].id)
    }

    fn read(&self, conversation: u32) -> &Reading {
        self.conversations[conversation as usize].reading.get_or_init(|| {
            let snapshot = &self.snapshot;
            let key = |doc_id: u32| (snapshot.position(doc_id), snapshot.time(doc_id), doc_id);
            let mut keyed: Vec<_> = self.doc_ids(conversation).iter().copied().map(key).collect();
            // Stable: what is alike in both stays as its part and its place there have it.
            keyed.sort_by_key(|(position, time, _)| (*position, *time));
            let order: Vec<u32> = keyed.into_iter().map(|(_, _, doc_id)| doc_id).collect();
            let mut places: Vec<(u32, u32)> = order.iter().copied().zip(0..).collect();
            places.sort_unstable();
            Reading { order, places }
        })
    }
}
