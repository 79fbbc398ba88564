//! The messages of a snapshot, one by one.
//!
//! A doc id is the place of a message in the sequence of all segments. Within a segment, doc ids are
//! in result order.

use std::{borrow::Cow, cmp::Ordering, ops::Range, path::Path};

use super::{
    Document, Snapshot,
    snapshot::SegmentReader,
    store::{DocStore, lossy},
};
use crate::model::{Hit, Instant};

/// A segment of a snapshot: a folder of files that never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRef<'g> {
    /// The segment's folder, which also holds its term index and its vectors.
    pub folder: &'g Path,
    /// The segment's doc ids.
    pub doc_ids: Range<u32>,
}

impl Snapshot {
    /// Returns the segments, the oldest and largest first.
    pub fn segments(&self) -> Vec<SegmentRef<'_>> {
        let mut segments = Vec::with_capacity(self.segments.len());
        for SegmentReader { data, first, .. } in &self.segments {
            segments.push(SegmentRef {
                folder: &data.folder,
                doc_ids: *first..first + data.store.messages(),
            });
        }
        segments
    }

    /// Returns the number of doc ids, including deleted documents.
    pub fn max_doc(&self) -> u32 {
        self.segments.last().map_or(0, |last| last.first + last.data.store.messages())
    }

    /// Returns whether a document is not deleted: the database has the message in this form.
    pub fn is_alive(&self, doc_id: u32) -> bool {
        let (reader, doc) = self.at(doc_id);
        reader.deleted.as_ref().is_none_or(|deleted| !deleted.contains(doc))
    }

    /// Compares two messages by their order in an answer.
    pub fn order(&self, doc_id: u32, other: u32) -> Ordering {
        let ((reader, doc), (other, other_doc)) = (self.at(doc_id), self.at(other));
        reader.data.store.order(doc, &other.data.store, other_doc)
    }

    /// Returns a message as a hit.
    pub fn hit(&self, doc_id: u32, raw_content: bool) -> Hit<'_> {
        let (store, doc) = self.store(doc_id);
        store.hit(doc, raw_content)
    }

    /// Returns the text of a message as it is shown, with U+FFFD for bytes that are not UTF-8.
    pub fn content(&self, doc_id: u32) -> Cow<'_, str> {
        let (store, doc) = self.store(doc_id);
        lossy(store.texts(doc).shown)
    }

    /// Returns the length of a message's text in bytes, without reading the text.
    pub fn content_length(&self, doc_id: u32) -> usize {
        let (store, doc) = self.store(doc_id);
        store.texts(doc).shown.len()
    }

    /// Lends the role of a message; empty for NULL.
    pub fn role(&self, doc_id: u32) -> &str {
        let (store, doc) = self.store(doc_id);
        store.role_name(doc)
    }

    /// Returns when a message was written.
    pub fn time(&self, doc_id: u32) -> Option<Instant> {
        let (store, doc) = self.store(doc_id);
        store.time(doc)
    }

    /// Returns the position of a message in its conversation, if the database has one.
    pub fn position(&self, doc_id: u32) -> Option<i64> {
        let (store, doc) = self.store(doc_id);
        store.position(doc)
    }

    /// Returns the key of a message's row in the database.
    pub fn key(&self, doc_id: u32) -> i64 {
        let (store, doc) = self.store(doc_id);
        store.key(doc)
    }

    /// Returns whether a message equals a row of the database, whose text is in `stored`. The
    /// conversations are compared by id, not by number.
    pub fn is_same(&self, doc_id: u32, row: &Document<'_>, conversation_id: &[u8]) -> bool {
        let (store, doc) = self.store(doc_id);
        store.conversation_id(store.conversation(doc)) == conversation_id && store.is_same(doc, row)
    }

    /// Returns a message as it was added to the index; `id` is the buffer for its id.
    pub fn document<'a>(&'a self, doc_id: u32, id: &'a mut String) -> Document<'a> {
        let (store, doc) = self.store(doc_id);
        store.document(doc, id)
    }

    /// Returns the number of conversations in a segment.
    pub fn conversations_in(&self, segment: usize) -> u32 {
        self.segments[segment].data.store.conversations()
    }

    /// Returns the id and the title of a segment's conversation.
    pub fn conversation_in(&self, segment: usize, number: u32) -> (&[u8], Option<&[u8]>) {
        let store = &self.segments[segment].data.store;
        (store.conversation_id(number), store.title_text(number))
    }

    /// Returns the number of a message's conversation, which is valid within its segment only.
    pub fn conversation(&self, doc_id: u32) -> u32 {
        let (store, doc) = self.store(doc_id);
        store.conversation(doc)
    }

    /// Lends the id of a message's conversation.
    pub fn conversation_id(&self, doc_id: u32) -> Cow<'_, str> {
        let (store, doc) = self.store(doc_id);
        lossy(store.conversation_id(store.conversation(doc)))
    }

    /// Lends the title of a message's conversation; empty for NULL.
    pub fn title(&self, doc_id: u32) -> Cow<'_, str> {
        let (store, doc) = self.store(doc_id);
        lossy(store.title(store.conversation(doc)))
    }

    /// Returns the segment of a doc id, and the document's number in it.
    fn at(&self, doc_id: u32) -> (&SegmentReader, u32) {
        let place = self.segments.partition_point(|reader| reader.first <= doc_id) - 1;
        let reader = &self.segments[place];
        (reader, doc_id - reader.first)
    }

    fn store(&self, doc_id: u32) -> (&DocStore, u32) {
        let (reader, doc) = self.at(doc_id);
        (&reader.data.store, doc)
    }
}
