//! The messages of a generation, one by one, for whatever else is derived from them.
//!
//! A generation consists of parts, each written once. A message is known by its slot: its place in
//! the parts one after the other. Within a part, slots stand in result order.

use std::{borrow::Cow, ops::Range, path::Path};

use super::Generation;
use crate::model::{Hit, Instant};

/// A part of a generation: a folder of files that never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'g> {
    /// Its folder, which what is derived from it may share.
    pub folder: &'g Path,
    /// Its slots.
    pub slots: Range<u32>,
}

impl Generation {
    /// The parts, the oldest and largest first.
    pub fn parts(&self) -> Vec<Part<'_>> {
        vec![Part { folder: &self.folder, slots: 0..self.rows.messages() }]
    }

    /// How many slots there are, those of messages that are gone included.
    pub fn slots(&self) -> u32 {
        self.rows.messages()
    }

    /// Whether the message in a slot is in the database still, as it is here.
    pub fn is_live(&self, slot: u32) -> bool {
        slot < self.slots()
    }

    /// The message in a slot, as a row of an answer.
    pub fn hit(&self, slot: u32, raw_content: bool) -> Hit {
        self.rows.hit(slot, raw_content)
    }

    /// The text of a message as it is shown; U+FFFD for what is not UTF-8.
    pub fn content(&self, slot: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(self.rows.texts(slot).shown)
    }

    /// The role of a message; empty for NULL.
    pub fn role(&self, slot: u32) -> &str {
        self.rows.role_name(slot)
    }

    /// When a message was written.
    pub fn time(&self, slot: u32) -> Option<Instant> {
        self.rows.time(slot)
    }

    /// The position of a message in its conversation, where the database has one.
    pub fn position(&self, slot: u32) -> Option<i64> {
        self.rows.position(slot)
    }

    /// The number of a message's conversation within its part; other parts may have the same
    /// conversation under another number, and the same number for another conversation.
    pub fn conversation(&self, slot: u32) -> u32 {
        self.rows.conversation(slot)
    }

    /// The id of a message's conversation.
    pub fn conversation_id(&self, slot: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(self.rows.conversation_id(self.rows.conversation(slot)))
    }

    /// The title of a message's conversation; empty for NULL.
    pub fn title(&self, slot: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(self.rows.title(self.rows.conversation(slot)))
    }
}
