//! The messages of a generation, one by one, for whatever else is derived from them.
//!
//! A generation consists of parts. A message is known by its slot: its place in
//! the parts one after the other. Within a part, slots stand in result order.

use std::{borrow::Cow, cmp::Ordering, ops::Range, path::Path};

use super::{Document, Generation, generation::Member, rows::Rows};
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
        let mut parts = Vec::with_capacity(self.members.len());
        for Member { part, first, .. } in &self.members {
            parts.push(Part { folder: &part.folder, slots: *first..first + part.rows.messages() });
        }
        parts
    }

    /// How many slots there are, those of messages that are gone included.
    pub fn slots(&self) -> u32 {
        self.members.last().map_or(0, |last| last.first + last.part.rows.messages())
    }

    /// Whether the message in a slot is in the database still, as it is here.
    pub fn is_live(&self, slot: u32) -> bool {
        let (member, doc) = self.at(slot);
        member.dead.as_ref().is_none_or(|dead| !dead.contains(doc))
    }

    /// Compares two messages by their place in an answer.
    pub fn order(&self, slot: u32, other: u32) -> Ordering {
        let ((member, doc), (other, other_doc)) = (self.at(slot), self.at(other));
        member.part.rows.order(doc, &other.part.rows, other_doc)
    }

    /// The message in a slot, as a row of an answer.
    pub fn hit(&self, slot: u32, raw_content: bool) -> Hit {
        let (rows, doc) = self.row(slot);
        rows.hit(doc, raw_content)
    }

    /// The text of a message as it is shown; U+FFFD for what is not UTF-8.
    pub fn content(&self, slot: u32) -> Cow<'_, str> {
        let (rows, doc) = self.row(slot);
        String::from_utf8_lossy(rows.texts(doc).shown)
    }

    /// How many bytes the text of a message has as it is stored; reads none of them.
    pub fn content_length(&self, slot: u32) -> usize {
        let (rows, doc) = self.row(slot);
        rows.texts(doc).shown.len()
    }

    /// The role of a message; empty for NULL.
    pub fn role(&self, slot: u32) -> &str {
        let (rows, doc) = self.row(slot);
        rows.role_name(doc)
    }

    /// When a message was written.
    pub fn time(&self, slot: u32) -> Option<Instant> {
        let (rows, doc) = self.row(slot);
        rows.time(doc)
    }

    /// The position of a message in its conversation, where the database has one.
    pub fn position(&self, slot: u32) -> Option<i64> {
        let (rows, doc) = self.row(slot);
        rows.position(doc)
    }

    /// The key of a message's row in the database.
    pub fn key(&self, slot: u32) -> i64 {
        let (rows, doc) = self.row(slot);
        rows.key(doc)
    }

    /// Returns whether a message is here as the database has it, `stored` being the text as it
    /// stands there; the number of the conversation is not looked at, but its id.
    pub fn is_same(&self, slot: u32, row: &Document<'_>, conversation_id: &[u8]) -> bool {
        let (rows, doc) = self.row(slot);
        rows.conversation_id(rows.conversation(doc)) == conversation_id && rows.is_same(doc, row)
    }

    /// A message as it went into the index; `id` takes its id.
    pub fn document<'a>(&'a self, slot: u32, id: &'a mut String) -> Document<'a> {
        let (rows, doc) = self.row(slot);
        rows.document(doc, id)
    }

    /// How many conversations a part knows; its messages name them by number.
    pub fn conversations_in(&self, part: usize) -> u32 {
        self.members[part].part.rows.conversations()
    }

    /// The id and the title of a part's conversation.
    pub fn conversation_in(&self, part: usize, number: u32) -> (&[u8], Option<&[u8]>) {
        let rows = &self.members[part].part.rows;
        (rows.conversation_id(number), rows.title_text(number))
    }

    /// The number of a message's conversation within its part; other parts may have the same
    /// conversation under another number, and the same number for another conversation.
    pub fn conversation(&self, slot: u32) -> u32 {
        let (rows, doc) = self.row(slot);
        rows.conversation(doc)
    }

    /// The id of a message's conversation.
    pub fn conversation_id(&self, slot: u32) -> Cow<'_, str> {
        let (rows, doc) = self.row(slot);
        String::from_utf8_lossy(rows.conversation_id(rows.conversation(doc)))
    }

    /// The title of a message's conversation; empty for NULL.
    pub fn title(&self, slot: u32) -> Cow<'_, str> {
        let (rows, doc) = self.row(slot);
        String::from_utf8_lossy(rows.title(rows.conversation(doc)))
    }

    /// The part of a slot, and the message in it.
    fn at(&self, slot: u32) -> (&Member, u32) {
        let place = self.members.partition_point(|member| member.first <= slot) - 1;
        let member = &self.members[place];
        (member, slot - member.first)
    }

    fn row(&self, slot: u32) -> (&Rows, u32) {
        let (member, doc) = self.at(slot);
        (&member.part.rows, doc)
    }
}
