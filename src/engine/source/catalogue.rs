//! Which conversations a generation holds, when they took place, and their messages in reading order.
//!
//! Made in memory from the columns of a generation, once for each: no text is read, and no message
//! takes more than eight bytes. Reading order asks for positions, which stand with the texts, so a
//! conversation is put into it when it is first read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use crate::engine::{Brief, SourceKind, source::summaries::Gists};
use crate::{db::Whence, index::Generation, model::Instant};

/// The place of a slot whose message is gone.
const GONE: u32 = u32::MAX;

/// The conversations of one generation.
#[derive(Debug)]
pub struct Catalogue {
    kind: SourceKind,
    generation: Arc<Generation>,
    /// Latest activity first, those without a time last, equal ones by id.
    conversations: Vec<Listed>,
    /// The place in `conversations` of each slot's conversation; [`GONE`] for no live message.
    conversation_of: Vec<u32>,
    /// The live slots of one conversation after the other, oldest first.
    slots: Vec<u32>,
    /// Places in `conversations`, by id.
    by_id: Vec<u32>,
    /// Where conversations come from, by id, once that was asked.
    whences: OnceLock<HashMap<String, Whence>>,
    /// What they are ranked by as a whole, once that was asked.
    pub(crate) gists: Mutex<Option<Arc<Gists>>>,
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
    /// Where its slots begin, and how many there are.
    slots: (u32, u32),
    reading: OnceLock<Reading>,
    /// What it is about, once that was asked.
    pub(crate) brief: OnceLock<Brief>,
}

/// The slots of a conversation in reading order, and where each of them stands in it.
#[derive(Debug)]
struct Reading {
    order: Vec<u32>,
    /// By slot.
    places: Vec<(u32, u32)>,
}

impl Listed {
    /// How many messages it has.
    pub fn turns(&self) -> u32 {
        self.slots.1
    }
}

impl Catalogue {
    /// Reads the columns of a generation of a source's index.
    pub fn of(kind: SourceKind, generation: Arc<Generation>) -> Catalogue {
        let slots = generation.slots();
        let mut conversations: Vec<Listed> = Vec::new();
        let mut conversation_of = vec![GONE; slots as usize];
        let mut by_name: HashMap<String, u32> = HashMap::new();
        let parts = generation.parts();
        let mut is_open = false;
        for part in &parts {
            // A part's own numbers of conversations, as places here.
            let mut places: Vec<u32> = Vec::new();
            for slot in part.slots.clone().filter(|slot| generation.is_live(*slot)) {
                let number = generation.conversation(slot) as usize;
                if number >= places.len() {
                    places.resize(number + 1, GONE);
                }
                if places[number] == GONE {
                    let id = generation.conversation_id(slot).into_owned();
                    let title = generation.title(slot).into_owned();
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
                            slots: (0, 0),
                            reading: OnceLock::new(),
                            brief: OnceLock::new(),
                        }),
                    }
                }
                let place = places[number];
                conversation_of[slot as usize] = place;
                let listed = &mut conversations[place as usize];
                listed.slots.1 += 1;
                if let Some(time) = generation.time(slot) {
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
            listed.slots.0 = at;
            at += listed.slots.1;
        }
        let mut next: Vec<u32> = conversations.iter().map(|listed| listed.slots.0).collect();
        let mut all = vec![0; at as usize];
        for part in &parts {
            // Slots stand newest first; among those without a time, which come last, likewise.
            for slot in part.slots.clone().rev() {
                let place = &mut conversation_of[slot as usize];
                if *place != GONE {
                    *place = place_of[*place as usize];
                    let next = &mut next[*place as usize];
                    all[*next as usize] = slot;
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
            generation,
            conversations,
            conversation_of,
            slots: all,
            by_id,
            whences: OnceLock::new(),
            gists: Mutex::default(),
        }
    }

    /// The source it is of.
    pub fn kind(&self) -> SourceKind {
        self.kind
    }

    /// The generation it is of.
    pub fn generation(&self) -> &Arc<Generation> {
        &self.generation
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
    pub fn conversation(&self, slot: u32) -> Option<u32> {
        self.conversation_of.get(slot as usize).copied().filter(|place| *place != GONE)
    }

    /// The live slots of a conversation in no order that means anything.
    pub fn slots(&self, conversation: u32) -> &[u32] {
        let (start, count) = self.conversations[conversation as usize].slots;
        &self.slots[start as usize..(start + count) as usize]
    }

    /// The live slots of a conversation in reading order: by position, else by time, else as they
    /// were written.
    pub fn reading(&self, conversation: u32) -> &[u32] {
        &self.read(conversation).order
    }

    /// Where a message stands in the reading order of its conversation, from 0.
    pub fn place(&self, slot: u32) -> Option<u32> {
        let places = &self.read(self.conversation(slot)?).places;
        let at = places.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        Some(places[at].1)
    }

    /// Where a conversation comes from, as `read` tells once of all.
    pub(crate) fn whence(
        &self,
        conversation: u32,
        read: impl FnOnce() -> HashMap<String, Whence>,
    ) -> Option<&Whence> {
        self.whences.get_or_init(read).get(&self.conversations[conversation as usize].id)
    }

    fn read(&self, conversation: u32) -> &Reading {
        self.conversations[conversation as usize].reading.get_or_init(|| {
            let generation = &self.generation;
            let key = |slot: u32| (generation.position(slot), generation.time(slot), slot);
            let mut keyed: Vec<_> = self.slots(conversation).iter().copied().map(key).collect();
            // Stable: what is alike in both stays as its part and its place there have it.
            keyed.sort_by_key(|(position, time, _)| (*position, *time));
            let order: Vec<u32> = keyed.into_iter().map(|(_, _, slot)| slot).collect();
            let mut places: Vec<(u32, u32)> = order.iter().copied().zip(0..).collect();
            places.sort_unstable();
            Reading { order, places }
        })
    }
}
