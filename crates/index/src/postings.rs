//! The posting lists of a segment, in a tantivy index whose doc ids are places in result order.
//!
//! There are three fields: the grams of the texts, the grams of the titles, and the role. Postings have no
//! frequencies. [`super::invert`] makes the lists of grams. The lists of titles hold conversations and not
//! messages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use tantivy::postings::{FieldSerializer, InvertedIndexSerializer, SegmentPostings, TermInfo};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, InvertedIndexReader, TERMINATED};

use super::invert::Inverter;
use super::lists::{self, ListMaps};
use super::store::{DocStore, DocStoreWriter, Members};
use verbatim_base::call::Stop;
use verbatim_text::grams::Gram;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Grams of the shown text, and of the stored text if it differs.
    Text,
    /// Grams of titles. The postings are conversations, not documents.
    Title,
    Role,
}

impl List {
    fn field(self) -> Field {
        Field::from_field_id(self as u32)
    }
}

pub(super) struct PostingsWriter<'a> {
    /// The grams of the texts, by document.
    pub(super) texts: Inverter,
    /// The grams of the titles, by conversation.
    pub(super) titles: Inverter,
    pub(super) store: &'a DocStoreWriter,
}

impl PostingsWriter<'_> {
    /// Writes the index into an empty folder; calls `progress` with the last written gram.
    pub(super) fn write(
        self,
        folder: &Path,
        mut progress: impl FnMut(Gram) -> io::Result<()>,
    ) -> tantivy::Result<()> {
        let schema = lists::schema(&["text", "title", "role"], IndexRecordOption::Basic);
        let PostingsWriter { texts, titles, store } = self;
        lists::create(folder, schema, |serializer| {
            write_grams(serializer, List::Text, texts, &mut progress)?;
            write_grams(serializer, List::Title, titles, &mut |_| Ok(()))?;
            let mut field = serializer.new_field(List::Role.field(), 0, None)?;
            for (role, docs) in store.docs_by_role() {
                write_list(&mut field, role.as_bytes(), &docs)?;
            }
            Ok(field.close()?)
        })
    }
}

fn write_grams(
    serializer: &mut InvertedIndexSerializer,
    list: List,
    texts: Inverter,
    progress: &mut impl FnMut(Gram) -> io::Result<()>,
) -> tantivy::Result<()> {
    let mut field = serializer.new_field(list.field(), 0, None)?;
    texts.finish(|block| {
        let mut docs = &block.docs[..];
        for (gram, count) in &block.grams {
            let (these, rest) = docs.split_at(*count as usize);
            write_list(&mut field, gram.term(&mut [0; 8]), these)?;
            docs = rest;
        }
        block.grams.last().map_or(Ok(()), |(gram, _)| progress(*gram))
    })?;
    Ok(field.close()?)
}

fn write_list(field: &mut FieldSerializer<'_>, term: &[u8], docs: &[u32]) -> io::Result<()> {
    field.new_term(term, docs.len() as u32, false)?;
    for doc in docs {
        field.write_doc(*doc, 1, &[]);
    }
    field.close_term()
}

pub(super) struct Postings {
    lists: [Arc<InvertedIndexReader>; 3],
    _maps: ListMaps,
}

impl std::fmt::Debug for Postings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postings").finish_non_exhaustive()
    }
}

impl Postings {
    /// Opens the index; returns `None` if it does not have exactly one segment.
    pub(super) fn open(folder: &Path) -> tantivy::Result<Option<Postings>> {
        let Some((reader, maps)) = lists::open(folder)? else { return Ok(None) };
        let [text, title, role] =
            [List::Text, List::Title, List::Role].map(|list| reader.inverted_index(list.field()));
        Ok(Some(Postings { lists: [text?, title?, role?], _maps: maps }))
    }

    pub(super) fn find(&self, list: List, term: &[u8]) -> io::Result<Option<TermInfo>> {
        self.lists[list as usize].terms().get(term)
    }

    pub(super) fn read(&self, list: List, info: &TermInfo) -> io::Result<SegmentPostings> {
        self.lists[list as usize].read_postings_from_terminfo(info, IndexRecordOption::Basic)
    }

    /// Calls `each` with every packed gram of eight bytes in a range, and with its list.
    /// Ends when `each` returns false.
    pub(super) fn grams_between(
        &self,
        list: List,
        grams: Range<Gram>,
        mut each: impl FnMut(Gram, &TermInfo) -> bool,
    ) -> io::Result<()> {
        let terms = self.lists[list as usize].terms().range();
        let terms = terms.ge(grams.start.0.to_be_bytes()).lt(grams.end.0.to_be_bytes());
        let mut terms = terms.into_stream()?;
        while terms.advance() {
            let packed = <[u8; 8]>::try_from(terms.key()).map(u64::from_be_bytes);
            if packed.is_ok_and(|packed| !each(Gram(packed), terms.value())) {
                break;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(super) struct DocBits(FixedBitSet);

impl DocBits {
    pub(super) fn new(messages: u32) -> DocBits {
        DocBits(FixedBitSet::with_capacity(messages as usize))
    }

    pub(super) fn from_bools(documents: &[bool]) -> DocBits {
        let mut bits = DocBits::new(documents.len() as u32);
        bits.0.extend((0..documents.len()).filter(|doc| documents[*doc]));
        bits
    }

    /// Reads the bytes of [`DocBits::to_bytes`]; `None` if they are for another number of messages.
    pub(super) fn from_bytes(bytes: &[u8], messages: u32) -> Option<DocBits> {
        let mut bits = DocBits::new(messages);
        let (words, rest) = bytes.as_chunks::<{ size_of::<usize>() }>();
        if !rest.is_empty() || words.len() != bits.0.as_slice().len() {
            return None;
        }
        for (to, from) in bits.0.as_mut_slice().iter_mut().zip(words) {
            *to = usize::from_le_bytes(*from);
        }
        bits.0.maximum().is_none_or(|last| last < messages as usize).then_some(bits)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.0.as_slice().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[inline]
    pub(super) fn contains(&self, doc: u32) -> bool {
        self.0.contains(doc as usize)
    }

    pub(super) fn count(&self) -> u32 {
        self.0.count_ones(..) as u32
    }

    pub(super) fn insert(&mut self, doc: u32) {
        self.0.insert(doc as usize);
    }

    /// Inserts the documents of a list, from its current one on.
    pub(super) fn insert_list(&mut self, mut list: SegmentPostings) {
        let mut doc = list.doc();
        while doc != END {
            self.insert(doc);
            doc = list.advance();
        }
    }

    /// Returns the first document of the set at or after `doc`; [`END`] if there is none.
    fn seek(&self, doc: u32) -> u32 {
        let words = self.0.as_slice();
        let mut place = (doc / usize::BITS) as usize;
        let Some(first) = words.get(place) else { return END };
        let mut word = first >> (doc % usize::BITS) << (doc % usize::BITS);
        while word == 0 {
            place += 1;
            match words.get(place) {
                Some(next) => word = *next,
                None => return END,
            }
        }
        place as u32 * usize::BITS + word.trailing_zeros()
    }
}

pub(super) struct DocTree<'a>(DocNode<'a>);

enum DocNode<'a> {
    List(Box<SegmentPostings>),
    All(Vec<DocTree<'a>>),
    /// The trees, and a heap with the next document of each tree.
    OneOf(Vec<DocTree<'a>>, BinaryHeap<Reverse<(u32, usize)>>),
    Messages(Box<MemberMessages<'a>>),
}

impl<'a> DocTree<'a> {
    /// Returns the documents of a list, from its current one on.
    pub(super) fn list(list: SegmentPostings) -> DocTree<'a> {
        DocTree(DocNode::List(Box::new(list)))
    }

    pub(super) fn messages(store: &'a DocStore, mut conversations: DocTree<'a>) -> DocTree<'a> {
        let next = first_from(store, &mut conversations, 0);
        let begun = BinaryHeap::new();
        DocTree(DocNode::Messages(Box::new(MemberMessages { store, conversations, next, begun })))
    }

    pub(super) fn intersection(trees: Vec<DocTree<'a>>) -> DocTree<'a> {
        DocTree(DocNode::All(trees))
    }

    pub(super) fn union(mut trees: Vec<DocTree<'a>>) -> DocTree<'a> {
        let next = trees.iter_mut().enumerate().map(|(tree, docs)| Reverse((docs.seek(0), tree)));
        let heap = next.collect();
        DocTree(DocNode::OneOf(trees, heap))
    }

    /// Returns the first document at or after `target`; [`END`] if there is none. `target` must not
    /// decrease from call to call.
    fn seek(&mut self, target: u32) -> u32 {
        match &mut self.0 {
            DocNode::List(list) if list.doc() >= target => list.doc(),
            DocNode::List(list) => list.seek(target),
            DocNode::Messages(messages) => messages.seek(target),
            DocNode::OneOf(trees, heap) => loop {
                let Some(mut least) = heap.peek_mut() else { return END };
                let Reverse((doc, tree)) = *least;
                if doc >= target {
                    return doc;
                }
                *least = Reverse((trees[tree].seek(target), tree));
            },
            DocNode::All(trees) => {
                let mut doc = target;
                'documents: loop {
                    for tree in &mut *trees {
                        let found = tree.seek(doc);
                        if found == END {
                            return END;
                        }
                        if found > doc {
                            doc = found;
                            continue 'documents;
                        }
                    }
                    return doc;
                }
            }
        }
    }
}

/// The messages of the conversations in a tree, ascending. A conversation with a higher number begins later,
/// because conversations are numbered in the order of their first messages.
struct MemberMessages<'a> {
    store: &'a DocStore,
    conversations: DocTree<'a>,
    /// The next conversation and its messages; `None` after the last.
    next: Option<(u32, Members<'a>)>,
    /// The messages of the conversations before `next`, the smallest next message first.
    begun: BinaryHeap<Reverse<Members<'a>>>,
}

impl MemberMessages<'_> {
    fn seek(&mut self, target: u32) -> u32 {
        loop {
            while let Some(mut least) = self.begun.peek_mut()
                && least.0.doc() < target
            {
                if !least.0.seek(target) {
                    PeekMut::pop(least);
                }
            }
            let least = self.begun.peek().map_or(END, |members| members.0.doc());
            let Some((number, mut members)) = self.next else { return least };
            if members.doc() > least {
                return least;
            }
            if members.seek(target) {
                self.begun.push(Reverse(members));
            }
            self.next = first_from(self.store, &mut self.conversations, number + 1);
        }
    }
}

/// Returns the first conversation of a tree at or after `number`, with its messages.
fn first_from<'a>(
    store: &'a DocStore,
    conversations: &mut DocTree<'_>,
    number: u32,
) -> Option<(u32, Members<'a>)> {
    let number = conversations.seek(number);
    Some((number, store.members(number)?))
}

/// The intersection of lists, sets and trees of documents. Without any of them, it has all documents.
pub(super) struct Conjunction<'a> {
    lists: Vec<SegmentPostings>,
    sets: Vec<DocBits>,
    trees: Vec<DocTree<'a>>,
}

const STEPS: usize = 4;

/// Moves a list to its first document at or after `target`, and returns the document. In lists of similar
/// lengths that document is near, and a few steps take less time than a search.
#[inline]
fn advance_to(list: &mut SegmentPostings, target: u32) -> u32 {
    let mut doc = list.doc();
    for _ in 0..STEPS {
        if doc >= target {
            return doc;
        }
        doc = list.advance();
    }
    if doc >= target { doc } else { list.seek(target) }
}

/// A stop, and whether the search has noticed that it is requested.
pub(super) struct StopCheck<'a> {
    pub(super) stop: &'a Stop,
    pub(super) is_noticed: bool,
}

impl<'a> StopCheck<'a> {
    pub(super) fn new(stop: &'a Stop) -> StopCheck<'a> {
        StopCheck { stop, is_noticed: false }
    }

    pub(super) fn requested(&mut self) -> bool {
        self.is_noticed = self.is_noticed || self.stop.requested();
        self.is_noticed
    }
}

/// The number after the last document, where a [`Conjunction`] ends.
pub(super) const END: u32 = TERMINATED;

impl<'a> Conjunction<'a> {
    /// Returns the intersection of lists. The shortest list must come first, the longest last.
    pub(super) fn new(lists: Vec<SegmentPostings>) -> Conjunction<'a> {
        Conjunction { lists, sets: Vec::new(), trees: Vec::new() }
    }

    pub(super) fn narrow(&mut self, set: DocBits) {
        self.sets.push(set);
    }

    pub(super) fn narrow_by(&mut self, tree: DocTree<'a>) {
        self.trees.push(tree);
    }

    /// Returns the first document at or after `target` and before `end` that is in all lists and passes
    /// `accepts`; [`END`] if there is none.
    ///
    /// Calls `accepts` before it looks at the longer lists. Checks `stop` from time to time, and returns
    /// [`END`] once a stop is requested.
    pub(super) fn seek(
        &mut self,
        target: u32,
        end: u32,
        accepts: impl Fn(u32) -> bool,
        stop: &mut StopCheck<'_>,
    ) -> u32 {
        let mut doc = target;
        let mut turns = 0u32;
        'candidates: loop {
            turns = turns.wrapping_add(1);
            if doc >= end || turns.is_multiple_of(4096) && stop.requested() {
                return END;
            }
            for tree in &mut self.trees {
                let found = tree.seek(doc);
                if found > doc {
                    if found >= end {
                        return END;
                    }
                    doc = found;
                    continue 'candidates;
                }
            }
            if self.lists.is_empty() && !accepts(doc) {
                doc += 1;
                continue;
            }
            for (place, list) in self.lists.iter_mut().enumerate() {
                let found = advance_to(list, doc);
                if found > doc {
                    if found == END {
                        return END;
                    }
                    doc = found;
                    if place > 0 || !self.trees.is_empty() {
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
