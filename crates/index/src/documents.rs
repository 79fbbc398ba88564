//! Access to single messages of a snapshot by doc id.
//!
//! A doc id is the place of a message in the sequence of all segments. Within a segment, doc ids are
//! in result order.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeSet, iter, ops::Range, path::Path};

use super::snapshot::SegmentReader;
use super::store::{DocStore, DocumentBuffer, lossy_text};
use super::{Document, Snapshot};
use verbatim_base::model::{Hit, Instant};
use verbatim_text::lossy;

/// A segment of a snapshot: a folder of files that never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRef<'g> {
    /// The segment's folder, which also holds its term index and its vectors.
    pub folder: &'g Path,
    /// The segment's doc ids.
    pub doc_ids: Range<u32>,
}

const LONGEST_CHARACTER: usize = 4;

/// The number of bytes before a cut that are searched for white space.
const LOOK_BACK: usize = 1 << 10;

/// Returns the start of the character that the byte at `at` belongs to; `at` itself if the bytes are not
/// UTF-8.
fn boundary(text: &[u8], at: usize) -> usize {
    let mut places = (at.saturating_sub(LONGEST_CHARACTER)..=at).rev();
    let start = places.find(|at| text.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80));
    start.unwrap_or(at)
}

/// Cuts a text into pieces of about `most` bytes. Pieces end at white space if possible. Copies only one
/// piece at a time, even if the text is not UTF-8.
pub(super) fn content_pieces(text: &[u8], most: usize) -> impl Iterator<Item = Cow<'_, str>> {
    pieces(text, most).map(lossy)
}

/// Cuts a text into pieces of at most `most` bytes, after white space if possible.
fn pieces(mut text: &[u8], most: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let end = if text.len() <= most {
            text.len()
        } else {
            let from = most.saturating_sub(LOOK_BACK);
            match text[from..most].iter().rposition(u8::is_ascii_whitespace) {
                Some(space) => from + space + 1,
                None => boundary(text, most),
            }
        };
        let (piece, rest) = text.split_at(end);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

impl Snapshot {
    /// Returns the segments, the oldest and largest first.
    pub fn segments(&self) -> Vec<SegmentRef<'_>> {
        let segments = self.segments.iter().map(|SegmentReader { data, first, .. }| SegmentRef {
            folder: &data.folder,
            doc_ids: *first..first + data.store.messages(),
        });
        segments.collect()
    }

    /// Returns the number of doc ids, including deleted documents.
    pub fn max_doc(&self) -> u32 {
        self.segments.last().map_or(0, |last| last.first + last.data.store.messages())
    }

    /// Returns whether a document is alive: the database still has the message in this form.
    pub fn is_alive(&self, doc_id: u32) -> bool {
        let (reader, doc) = self.locate(doc_id);
        reader.is_alive(doc)
    }

    /// Compares two messages by their order in an answer.
    pub fn order(&self, doc_id: u32, other: u32) -> Ordering {
        let (store, doc) = self.store(doc_id);
        let (other, other_doc) = self.store(other);
        store.order(doc, other, other_doc)
    }

    /// Returns a message with its shown text, or with its stored text if `raw_content` is set.
    pub fn hit(&self, doc_id: u32, raw_content: bool) -> Hit<'_> {
        let (store, doc) = self.store(doc_id);
        store.hit(doc, raw_content)
    }

    /// Returns the shown text of a message, with U+FFFD for bytes that are not UTF-8.
    pub fn content(&self, doc_id: u32) -> Cow<'_, str> {
        let (store, doc) = self.store(doc_id);
        lossy_text(store.texts(doc).shown.bytes())
    }

    /// Returns the text of a message as bytes.
    pub fn content_bytes(&self, doc_id: u32) -> Cow<'_, [u8]> {
        let (store, doc) = self.store(doc_id);
        store.texts(doc).shown.bytes()
    }

    /// Returns the beginning of a message's text: all of it, or at least `least` bytes.
    pub fn beginning(&self, doc_id: u32, least: usize) -> Cow<'_, str> {
        let (store, doc) = self.store(doc_id);
        let text = store.texts(doc).shown;
        let end = text.len().min(least.saturating_add(LONGEST_CHARACTER));
        // The byte after the end tells whether a character ends there.
        match text.until(end.saturating_add(1).min(text.len())) {
            Cow::Borrowed(begin) => lossy(&begin[..boundary(begin, end)]),
            Cow::Owned(mut begin) => {
                begin.truncate(boundary(&begin, end));
                lossy_text(Cow::Owned(begin))
            }
        }
    }

    /// Returns the length of a message's text in bytes, without reading the text.
    pub fn content_length(&self, doc_id: u32) -> usize {
        let (store, doc) = self.store(doc_id);
        store.texts(doc).shown.len()
    }

    /// Returns the role of a message; empty for NULL.
    pub fn role(&self, doc_id: u32) -> &str {
        let (store, doc) = self.store(doc_id);
        store.role_name(doc)
    }

    /// Returns the roles of all messages, sorted, including those of deleted documents.
    pub fn roles(&self) -> BTreeSet<&str> {
        self.segments.iter().flat_map(|reader| reader.data.store.role_names()).collect()
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

    /// Returns the text of a message as the database stores it; empty for NULL.
    pub fn stored(&self, doc_id: u32) -> Cow<'_, [u8]> {
        let (store, doc) = self.store(doc_id);
        store.texts(doc).stored.bytes()
    }

    /// Returns whether a message equals a row of the database. The row's text is in `stored`. Compares
    /// conversations by id, not by number.
    pub fn is_same(&self, doc_id: u32, row: &Document<'_>, conversation_id: &[u8]) -> bool {
        let (store, doc) = self.store(doc_id);
        store.conversation_id(store.conversation(doc)) == conversation_id && store.is_same(doc, row)
    }

    /// Returns a message as it was added to the index.
    pub fn document<'a>(&'a self, doc_id: u32, buffer: &'a mut DocumentBuffer) -> Document<'a> {
        let (store, doc) = self.store(doc_id);
        store.document(doc, buffer)
    }

    /// Returns the living documents of a segment's conversation, ascending.
    pub fn living_in_conversation(&self, segment: usize, number: u32) -> impl Iterator<Item = u32> {
        let reader = &self.segments[segment];
        let mut members = reader.data.store.members(number);
        let mut target = 0;
        let docs = iter::from_fn(move || {
            let members = members.as_mut()?;
            let doc = members.seek(target).then(|| members.doc())?;
            target = doc.checked_add(1)?;
            Some(doc)
        });
        docs.filter(|doc| reader.is_alive(*doc)).map(|doc| reader.first + doc)
    }

    /// Returns the number of a living message's segment, and that of its conversation in the segment;
    /// `None` for a deleted document and an unknown doc id.
    pub fn living_place(&self, doc_id: u32) -> Option<(usize, u32)> {
        let segment =
            self.segments.partition_point(|reader| reader.first <= doc_id).checked_sub(1)?;
        let reader = &self.segments[segment];
        let store = &reader.data.store;
        let doc = doc_id - reader.first;
        let is_alive = doc < store.messages() && reader.is_alive(doc);
        if is_alive { Some((segment, store.conversation(doc))) } else { None }
    }

    /// Returns the number of conversations in a segment, also those without living documents.
    pub fn conversations_in(&self, segment: usize) -> u32 {
        self.segments[segment].data.store.conversations()
    }

    /// Returns the doc id of a segment's first message without a time. All messages after it have none.
    pub fn first_undated_in(&self, segment: usize) -> u32 {
        let SegmentReader { data, first, .. } = &self.segments[segment];
        first + data.store.dated()
    }

    /// Returns the id and the title of a segment's conversation.
    pub fn conversation_in(&self, segment: usize, number: u32) -> (&[u8], Option<&[u8]>) {
        let store = &self.segments[segment].data.store;
        (store.conversation_id(number), store.title_text(number))
    }

    /// Returns the number of a message's conversation. The number is valid only within the segment.
    pub fn conversation(&self, doc_id: u32) -> u32 {
        let (store, doc) = self.store(doc_id);
        store.conversation(doc)
    }

    fn locate(&self, doc_id: u32) -> (&SegmentReader, u32) {
        let place = self.segments.partition_point(|reader| reader.first <= doc_id) - 1;
        let reader = &self.segments[place];
        (reader, doc_id - reader.first)
    }

    fn store(&self, doc_id: u32) -> (&DocStore, u32) {
        let (reader, doc) = self.locate(doc_id);
        (&reader.data.store, doc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_text_and_end_at_spaces() {
        let long = "日本語 ".repeat(300) + &"é".repeat(2_000) + "a\u{10348}";
        for most in [1 << 11, 1_500, 1_001, 1 << 20] {
            let all: Vec<&[u8]> = pieces(long.as_bytes(), most).collect();
            assert_eq!(all.concat(), long.as_bytes());
            assert!(all.iter().all(|piece| std::str::from_utf8(piece).is_ok()), "{most}");
            assert!(all.iter().all(|piece| piece.len() <= most));
            assert!(most > 2_000 || all[0].ends_with(b" "));
        }
        // Bytes that are not UTF-8 are cut too.
        let noise = [0x80; 5_000];
        assert_eq!(pieces(&noise, 1_024).map(<[u8]>::len).sum::<usize>(), noise.len());
        assert_eq!(pieces(b"", 10).count(), 0);
    }
}
