//! The messages of a snapshot, one by one, for whatever else is derived from them.
//!
//! A snapshot consists of parts. A message is known by its doc id: its place in
//! the parts one after the other. Within a part, doc ids stand in result order.

use std::{borrow::Cow, cmp::Ordering, ops::Range, path::Path};

use super::{Document, Snapshot, snapshot::SegmentReader, store::Rows};
use crate::model::{Hit, Instant};

/// A part of a snapshot: a folder of files that never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRef<'g> {
    /// Its folder, which what is derived from it may share.
    pub folder: &'g Path,
    /// Its doc ids.
    pub doc_ids: Range<u32>,
}

impl Snapshot {
    /// The parts, the oldest and largest first.
    pub fn parts(&self) -> Vec<SegmentRef<'_>> {
        let mut parts = Vec::with_capacity(self.members.len());
        for SegmentReader { part, first, .. } in &self.members {
            parts.push(SegmentRef {
                folder: &part.folder,
                doc_ids: *first..first + part.rows.messages(),
            });
        }
        parts
    }

    /// How many doc ids there are, those of messages that are gone included.
    pub fn max_doc(&self) -> u32 {
        self.members.last().map_or(0, |last| last.first + last.part.rows.messages())
    }

    /// Whether the message in a doc id is in the database still, as it is here.
    pub fn is_live(&self, doc_id: u32) -> bool {
        let (member, doc) = self.at(doc_id);
        member.dead.as_ref().is_none_or(|dead| !dead.contains(doc))
    }

    /// Compares two messages by their place in an answer.
    pub fn order(&self, doc_id: u32, other: u32) -> Ordering {
        let ((member, doc), (other, other_doc)) = (self.at(doc_id), self.at(other));
        member.part.rows.order(doc, &other.part.rows, other_doc)
    }

    /// The message in a doc id, as a row of an answer.
    pub fn hit(&self, doc_id: u32, raw_content: bool) -> Hit {
        let (rows, doc) = self.row(doc_id);
        rows.hit(doc, raw_content)
    }

    /// The text of a message as it is shown; U+FFFD for what is not UTF-8.
    pub fn content(&self, doc_id: u32) -> Cow<'_, str> {
        let (rows, doc) = self.row(doc_id);
        String::from_utf8_lossy(rows.texts(doc).shown)
    }

    /// How many bytes the text of a message has as it is stored; reads none of them.
    pub fn content_length(&self, doc_id: u32) -> usize {
        let (rows, doc) = self.row(doc_id);
        rows.texts(doc).shown.len()
    }

    /// The role of a message; empty for NULL.
    pub fn role(&self, doc_id: u32) -> &str {
        let (rows, doc) = self.row(doc_id);
        rows.role_name(doc)
    }

    /// When a message was written.
    pub fn time(&self, doc_id: u32) -> Option<Instant> {
        let (rows, doc) = self.row(doc_id);
        rows.time(doc)
    }

    /// The position of a message in its conversation, where the database has one.
    pub fn position(&self, doc_id: u32) -> Option<i64> {
        let (rows, doc) = self.row(doc_id);
        rows.position(doc)
    }

    /// The key of a message's row in the database.
    pub fn key(&self, doc_id: u32) -> i64 {
        let (rows, doc) = self.row(doc_id);
        rows.key(doc)
    }

    /// Returns whether a message is here as the database has it, `stored` being the text as it
    /// stands there; the number of the conversation is not looked at, but its id.
    pub fn is_same(&self, doc_id: u32, row: &Document<'_>, conversation_id: &[u8]) -> bool {
        let (rows, doc) = self.row(doc_id);
        rows.conversation_id(rows.conversation(doc)) == conversation_id && rows.is_same(doc, row)
    }

    /// A message as it went into the index; `id` takes its id.
    pub fn document<'a>(&'a self, doc_id: u32, id: &'a mut String) -> Document<'a> {
        let (rows, doc) = self.row(doc_id);
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
    pub fn conversation(&self, doc_id: u32) -> u32 {
        let (rows, doc) = self.row(doc_id);
        rows.conversation(doc)
    }

    /// The id of a message's conversation.
    pub fn conversation_id(&self, doc_id: u32) -> Cow<'_, str> {
        let (rows, doc) = self.row(doc_id);
        String::from_utf8_lossy(rows.conversation_id(rows.conversation(doc)))
    }

    /// The title of a message's conversation; empty for NULL.
    pub fn title(&self, doc_id: u32) -> Cow<'_, str> {
        let (rows, doc) = self.row(doc_id);
        String::from_utf8_lossy(rows.title(rows.conversation(doc)))
    }

    /// The part of a doc id, and the message in it.
    fn at(&self, doc_id: u32) -> (&SegmentReader, u32) {
        let place = self.members.partition_point(|member| member.first <= doc_id) - 1;
        let member = &self.members[place];
        (member, doc_id - member.first)
    }

    fn row(&self, doc_id: u32) -> (&Rows, u32) {
        let (member, doc) = self.at(doc_id);
        (&member.part.rows, doc)
    }
}
