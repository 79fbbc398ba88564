//! The posting lists: a tantivy index of one segment whose doc ids are places in result order.
//!
//! Three fields, all of documents only: the grams of the texts, the grams of the titles, the role.
//! tantivy's own indexing writer spends most of its time in its hash map of terms, so the lists
//! are inverted by [`super::invert`] and written through tantivy's serializer; what comes out is
//! an ordinary tantivy index.

use std::{io, path::Path, sync::Arc};

use tantivy::{
    DocSet, Index, IndexSettings, InvertedIndexReader, SegmentReader, TERMINATED, TantivyDocument,
    directory::MmapDirectory,
    index::SegmentComponent,
    postings::{FieldSerializer, InvertedIndexSerializer, SegmentPostings, TermInfo},
    schema::{Field, IndexRecordOption, Schema, SchemaBuilder, TextFieldIndexing, TextOptions},
    store::Compressor,
};

use super::{invert::Inverter, store};
use crate::text::grams::Gram;

/// A field of the tantivy index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Grams of the text, and of the stored text where it differs.
    Text,
    /// Grams of the conversation's title.
    Title,
    /// The role, whole.
    Role,
}

impl List {
    fn field(self) -> Field {
        Field::from_field_id(self as u32)
    }
}

fn schema() -> Schema {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    let options = TextOptions::default().set_indexing_options(indexing);
    let mut schema = SchemaBuilder::new();
    for (list, name) in [(List::Text, "text"), (List::Title, "title"), (List::Role, "role")] {
        let field = schema.add_text_field(name, options.clone());
        debug_assert_eq!(field, list.field());
    }
    schema.build()
}

/// Writes the index of `messages` documents into an empty folder.
pub(super) fn write(
    folder: &Path,
    messages: u32,
    texts: Inverter,
    titles: Inverter,
    rows: &store::Writer,
    conversations: usize,
    mut progress: impl FnMut(Gram) -> io::Result<()>,
) -> tantivy::Result<()> {
    let settings = IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    };
    let mut writer = Index::builder()
        .schema(schema())
        .settings(settings)
        .single_segment_index_writer(MmapDirectory::open(folder)?, 64 << 20)?;
    for _ in 0..messages {
        writer.add_document(TantivyDocument::new())?;
    }
    let index = writer.finalize()?;
    let segments = index.searchable_segments()?;
    let Some(segment) = segments.first() else { return Ok(()) };
    for component in
        [SegmentComponent::Terms, SegmentComponent::Postings, SegmentComponent::Positions]
    {
        std::fs::remove_file(folder.join(segment.relative_path(component)))?;
    }
    let mut serializer = InvertedIndexSerializer::open(segment)?;

    let mut field = serializer.new_field(List::Text.field(), 0, None)?;
    texts.finish(|block| {
        let mut docs = &block.docs[..];
        for (gram, count) in &block.grams {
            let (these, rest) = docs.split_at(*count as usize);
            write_list(&mut field, gram.term(&mut [0; 8]), these)?;
            docs = rest;
        }
        block.grams.last().map_or(Ok(()), |(gram, _)| progress(*gram))
    })?;
    field.close()?;

    // Titles were inverted by conversation: a list is that of all messages of its conversations.
    let docs_by_conversation = rows.docs_by_conversation(conversations);
    let mut field = serializer.new_field(List::Title.field(), 0, None)?;
    let mut docs: Vec<u32> = Vec::new();
    titles.finish(|block| {
        let mut conversations = block.docs.iter();
        for (gram, count) in &block.grams {
            docs.clear();
            for conversation in conversations.by_ref().take(*count as usize) {
                docs.extend_from_slice(docs_by_conversation.of(*conversation));
            }
            docs.sort_unstable();
            if !docs.is_empty() {
                write_list(&mut field, gram.term(&mut [0; 8]), &docs)?;
            }
        }
        Ok(())
    })?;
    field.close()?;

    let mut field = serializer.new_field(List::Role.field(), 0, None)?;
    for (role, docs) in rows.docs_by_role() {
        write_list(&mut field, role.as_bytes(), &docs)?;
    }
    field.close()?;
    serializer.close()?;
    Ok(())
}

fn write_list(field: &mut FieldSerializer<'_>, term: &[u8], docs: &[u32]) -> io::Result<()> {
    field.new_term(term, docs.len() as u32, false)?;
    for doc in docs {
        field.write_doc(*doc, 1, &[]);
    }
    field.close_term()
}

/// The posting lists, open for reading.
pub(super) struct Postings {
    lists: [Arc<InvertedIndexReader>; 3],
}

impl std::fmt::Debug for Postings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postings").finish_non_exhaustive()
    }
}

impl Postings {
    /// Opens the index; `None` where it does not hold one segment of `messages` documents.
    pub(super) fn open(folder: &Path, messages: u32) -> tantivy::Result<Option<Postings>> {
        let index = Index::open(MmapDirectory::open(folder)?)?;
        let segments = index.searchable_segments()?;
        let [segment] = &segments[..] else { return Ok(None) };
        // A segment reader of its own: an index reader would watch the folder and lock it.
        let reader = SegmentReader::open(segment)?;
        if reader.max_doc() != messages {
            return Ok(None);
        }
        let list = |list: List| reader.inverted_index(list.field());
        Ok(Some(Postings { lists: [list(List::Text)?, list(List::Title)?, list(List::Role)?] }))
    }

    /// Returns where a term's list is, and how long.
    pub(super) fn find(&self, list: List, term: &[u8]) -> io::Result<Option<TermInfo>> {
        self.lists[list as usize].terms().get(term)
    }

    /// Returns the documents of a list that was found.
    pub(super) fn read(&self, list: List, info: &TermInfo) -> io::Result<SegmentPostings> {
        self.lists[list as usize].read_postings_from_terminfo(info, IndexRecordOption::Basic)
    }

    /// Calls `each` with the packed grams from `start` up to before `end` that are terms of eight
    /// bytes, until it returns false.
    pub(super) fn grams_between(
        &self,
        list: List,
        (start, end): (Gram, Gram),
        mut each: impl FnMut(Gram) -> bool,
    ) -> io::Result<()> {
        let (start, end) = (start.0.to_be_bytes(), end.0.to_be_bytes());
        let mut terms =
            self.lists[list as usize].terms().range().ge(start).lt(end).into_stream()?;
        while terms.advance() {
            let packed = <[u8; 8]>::try_from(terms.key()).map(u64::from_be_bytes);
            if packed.is_ok_and(|packed| !each(Gram(packed))) {
                break;
            }
        }
        Ok(())
    }
}

/// A set of documents, a bit each.
#[derive(Clone, Debug)]
pub(super) struct DocBits {
    words: Vec<u64>,
}

impl DocBits {
    /// Reads what [`DocBits::to_bytes`] wrote of as many messages.
    pub(super) fn from_bytes(bytes: &[u8], messages: u32) -> Option<DocBits> {
        let mut bits = DocBits::new(messages);
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || words.len() != bits.words.len() {
            return None;
        }
        bits.words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let beyond = bits.seek(messages);
        (beyond == END).then_some(bits)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[inline]
    pub(super) fn contains(&self, doc: u32) -> bool {
        self.words[doc as usize / 64] >> (doc % 64) & 1 == 1
    }

    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    pub(super) fn new(messages: u32) -> DocBits {
        DocBits { words: vec![0; messages as usize / 64 + 1] }
    }

    /// Adds the documents of a list, from the list's present place on.
    pub(super) fn add(&mut self, mut list: SegmentPostings) {
        let mut doc = list.doc();
        while doc != END {
            self.insert(doc);
            doc = list.advance();
        }
    }

    pub(super) fn insert(&mut self, doc: u32) {
        self.words[doc as usize / 64] |= 1 << (doc % 64);
    }

    /// Returns the first document of the set at or after `doc`; [`END`] for none.
    fn seek(&self, doc: u32) -> u32 {
        let mut place = doc as usize / 64;
        let Some(first) = self.words.get(place) else { return END };
        let mut word = first >> (doc % 64) << (doc % 64);
        while word == 0 {
            place += 1;
            match self.words.get(place) {
                Some(next) => word = *next,
                None => return END,
            }
        }
        (place * 64) as u32 + word.trailing_zeros()
    }
}

/// The documents that are in all of several lists; of no lists, all documents.
pub(super) struct Conjunction {
    lists: Vec<SegmentPostings>,
    sets: Vec<DocBits>,
}

/// No document: where a [`Conjunction`] ends.
pub(super) const END: u32 = TERMINATED;

impl Conjunction {
    /// Takes lists from the shortest to the longest.
    pub(super) fn new(lists: Vec<SegmentPostings>) -> Conjunction {
        Conjunction { lists, sets: Vec::new() }
    }

    /// Asks for membership in a set too.
    pub(super) fn narrow(&mut self, set: DocBits) {
        self.sets.push(set);
    }

    /// Returns the first document at or after `target` and before `end` that is in all lists and
    /// accepted; [`END`] for none.
    ///
    /// Acceptance is asked before the longer lists are. `stop` is asked now and then; once it says
    /// so, the answer is [`END`].
    pub(super) fn seek(
        &mut self,
        target: u32,
        end: u32,
        accepts: impl Fn(u32) -> bool,
        stop: &mut impl FnMut() -> bool,
    ) -> u32 {
        let mut doc = target;
        let mut turns = 0u32;
        'candidates: loop {
            turns = turns.wrapping_add(1);
            if doc >= end || turns.is_multiple_of(4096) && stop() {
                return END;
            }
            if self.lists.is_empty() && !accepts(doc) {
                doc += 1;
                continue;
            }
            for (place, list) in self.lists.iter_mut().enumerate() {
                let found = if list.doc() >= doc { list.doc() } else { list.seek(doc) };
                if found > doc {
                    if found == END {
                        return END;
                    }
                    doc = found;
                    if place > 0 {
                        continue 'candidates;
                    }
                }
                if place == 0 && !accepts(doc) {
                    doc += 1;
                    continue 'candidates;
                }
            }
            for set in &self.sets {
                let found = set.seek(doc);
                if found > doc {
                    if found == END {
                        return END;
                    }
                    doc = found;
                    continue 'candidates;
                }
            }
            return doc;
        }
    }
}
