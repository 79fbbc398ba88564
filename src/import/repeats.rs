//! Puts transcripts together, and leaves out what another one has told already: a session that is
//! resumed or forked may begin with all that was said before.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{
    derived_hash,
    transcript::{Event, Reader},
};
use crate::model::{Conversation, Instant, Message};

/// What transcripts have told.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeats {
    /// Hashes of messages that have ids of their own.
    told: HashSet<u64>,
    /// The messages of whole conversations, by id; for those whose messages have no ids.
    sequences: HashMap<String, Vec<u64>>,
}

/// A transcript that is put together.
#[derive(Debug, Default)]
pub(super) struct Whole {
    id: Option<String>,
    messages: Vec<Message>,
    by_id: HashMap<String, usize>,
    /// Whether messages have ids of their own, by which repeats are known.
    has_ids: bool,
}

impl Whole {
    /// Adds a piece; returns whether it was taken.
    pub(super) fn add(&mut self, reader: &Reader, piece: Event, repeats: &mut Repeats) -> bool {
        match piece {
            Event::Message(mut message) => {
                let id = self.id.get_or_insert_with(|| reader.id());
                if message.id.starts_with('/') {
                    message.id.insert_str(0, id);
                } else {
                    self.has_ids = true;
                    let time = message.create_time.map(Instant::to_decimal).unwrap_or_default();
                    let texts = [&*message.id, &*message.role, &*time, &*message.content];
                    if !repeats.told.insert(derived_hash(&texts)) {
                        return false;
                    }
                }
                self.by_id.insert(message.id.clone(), self.messages.len());
                self.messages.push(message);
            }
            Event::More { id, text } => {
                if let Some(message) = self.by_id.get(&id).map(|at| &mut self.messages[*at]) {
                    message.content.push_str(&text);
                }
            }
        }
        true
    }

    /// Returns the conversation; `None` if nothing is said in it that was not said before.
    pub(super) fn conversation(
        self,
        reader: &Reader,
        file: &Path,
        repeats: &mut Repeats,
    ) -> Option<Conversation> {
        let Whole { id, mut messages, has_ids, .. } = self;
        let id = id?;
        if !has_ids {
            let hash = |message: &Message| derived_hash(&[&message.role, &message.content]);
            let sequence: Vec<u64> = messages.iter().map(hash).collect();
            if let Some(parent) = reader.parent().and_then(|id| repeats.sequences.get(id)) {
                let same = sequence.iter().zip(parent).take_while(|(own, its)| own == its);
                messages.drain(..same.count());
            }
            repeats.sequences.insert(id.clone(), sequence);
        }
        let mut times = messages.iter().filter_map(|message| message.create_time);
        let first = times.next();
        let last = times.next_back().or(first);
        (!messages.is_empty()).then(|| Conversation {
            id,
            title: reader.title().map(str::to_owned),
            create_time: first,
            update_time: last,
            model: reader.model().map(str::to_owned),
            origin: Some(reader.origin(file)),
            messages,
            ..Conversation::default()
        })
    }
}
