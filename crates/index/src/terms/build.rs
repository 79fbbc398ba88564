//! Builds the term index of a segment: inverts in memory, spills sorted runs, merges them.
//!
//! This is the single-pass inversion of Heinz and Zobel (2003). Every thread takes consecutive messages and
//! keeps a growing list for each term. When the lists fill their share of the memory, the thread writes them
//! as a run in term order. A dictionary from written words to terms avoids stemming a word twice.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tantivy::postings::FieldSerializer;

use super::{FOLDER, FORMAT, LENGTHS, TERMS, TermManifest, encode_length, field, schema};
use crate::artifact::{self, Unfinished};
use crate::documents::content_pieces;
use crate::varint::{push_varint, take_varint};
use crate::{Resources, Result, SegmentRef, Snapshot, lists, write_error_unless_stopped};
use verbatim_base::{call::Stop, private};
use verbatim_text::words::{Token, Tokenizer, grams, tokens};

/// The approximate memory of a term in bytes, without its letters and its list. The tables grow by doubling.
const TERM_BYTES: usize = 180;

/// The approximate memory of a word in bytes, without its letters and its terms.
const WORD_BYTES: usize = 90;

/// The maximum number of term occurrences of a document that are counted at once.
const MOST_SEEN: usize = 1 << 18;

const PIECE: usize = 1 << 20;

/// The maximum and minimum size in bytes of the buffer for reading a run.
const MOST_READ: usize = 1 << 18;
const LEAST_READ: usize = 1 << 12;

/// The share of the memory that the lists fill: the texts are read from a map, and lists grow by doubling.
const RUNS_SHARE: usize = 2;

/// The minimum memory for the lists of a thread in bytes.
const LEAST_RUN: usize = 4 << 20;

/// Roles that do not name a speaker.
const PLAIN_ROLES: [&str; 4] = ["user", "assistant", "tool", "system"];

/// Returns the role if it is the name of a speaker, otherwise an empty text. The terms of the name are
/// indexed with those of the message's text.
pub fn speaker(role: &str) -> &str {
    if PLAIN_ROLES.contains(&role) { "" } else { role }
}

/// Builds the term index of a segment. Only one thread may do this at a time.
///
/// Calls `progress` with the number of finished messages.
pub fn build_terms(
    snapshot: &Snapshot,
    segment: &SegmentRef<'_>,
    resources: Resources,
    stop: &Stop,
    progress: &mut dyn FnMut(u32),
) -> Result<()> {
    build(snapshot, segment, resources, stop, progress)
        .map_err(write_error_unless_stopped(segment.folder, stop))
}

fn build(
    snapshot: &Snapshot,
    segment: &SegmentRef<'_>,
    resources: Resources,
    stop: &Stop,
    progress: &mut dyn FnMut(u32),
) -> io::Result<()> {
    let unfinished = Unfinished::begin(segment.folder, FOLDER)?;
    let folder = unfinished.folder();
    let inversion = Inversion { snapshot, doc_ids: segment.doc_ids.clone(), folder, stop };
    let inverted = inversion.run(resources, progress)?;
    let tokens = inverted.iter().map(|share| share.tokens).sum();
    let lengths: Vec<u8> =
        inverted.iter().flat_map(|share| share.lengths.iter().copied()).collect();
    let runs = inverted.into_iter().flat_map(|share| share.runs).collect();
    let documents = segment.doc_ids.len() as u32;
    let lengths = artifact::write_file(folder, LENGTHS, &lengths)?;
    let terms = folder.join(TERMS);
    private::create_dir(&terms)?;
    let lists = lists::create(&terms, schema(), |serializer| {
        let mut out = serializer.new_field(field(), 0, None)?;
        merge(runs, resources.memory, &mut out, stop)?;
        Ok(out.close()?)
    });
    lists.map_err(lists::io_error)?;
    stop.check(io::ErrorKind::Interrupted)?;
    let files = artifact::seal(folder, &[lengths])?;
    lists::check(&terms)?;
    let checksum = artifact::manifest_checksum(segment.folder)?;
    unfinished.publish(&TermManifest {
        format: FORMAT,
        segment: checksum,
        documents,
        tokens,
        files,
    })
}

struct Inversion<'a> {
    snapshot: &'a Snapshot,
    doc_ids: Range<u32>,
    folder: &'a Path,
    stop: &'a Stop,
}

impl Inversion<'_> {
    /// Inverts all messages on several threads; returns the shares in the order of the messages.
    fn run(
        &self,
        resources: Resources,
        progress: &mut dyn FnMut(u32),
    ) -> io::Result<Vec<Inverted>> {
        let count = self.doc_ids.len();
        let threads = resources.threads.clamp(1, 1 + count / 10_000);
        let budget = (resources.memory / RUNS_SHARE / threads).max(LEAST_RUN);
        let step = count.div_ceil(threads).max(1);
        let done = AtomicU32::new(0);
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for start in self.doc_ids.clone().step_by(step) {
                let share = start..self.doc_ids.end.min(start + step as u32);
                let done = &done;
                workers.push(scope.spawn(move || self.invert(share, budget, done)));
            }
            while workers.iter().any(|worker| !worker.is_finished()) {
                thread::sleep(Duration::from_millis(if count < 10_000 { 1 } else { 20 }));
                progress(done.load(Ordering::Relaxed));
            }
            let mut shares = Vec::new();
            for worker in workers {
                let share = worker.join();
                shares.push(share.map_err(|_| io::Error::other("an indexing thread panicked"))??);
            }
            Ok(shares)
        })
    }

    /// Inverts a share of the messages in about `budget` bytes of memory.
    fn invert(&self, share: Range<u32>, budget: usize, done: &AtomicU32) -> io::Result<Inverted> {
        let tokenizer = Tokenizer::default();
        let mut run = TermRun::default();
        let mut made =
            Inverted { runs: Vec::new(), lengths: Vec::with_capacity(share.len()), tokens: 0 };
        let mut seen: Vec<u32> = Vec::new();
        for (count, doc_id) in share.enumerate() {
            let document = doc_id - self.doc_ids.start;
            let speaker = speaker(self.snapshot.role(doc_id));
            let content = self.snapshot.content_bytes(doc_id);
            let texts = content_pieces(&content, PIECE);
            let mut length = 0;
            for text in std::iter::once(speaker.into()).chain(texts) {
                let mut spilled = Ok(());
                tokens(&text, |token| {
                    match token {
                        Token::Word(word) => {
                            length += u32::from(run.word(word, &tokenizer, &mut seen));
                        }
                        Token::Run(chars) => {
                            length += grams(chars, &mut |gram| seen.push(run.term(gram)));
                        }
                    }
                    // A long document may be in several runs.
                    if seen.len() >= MOST_SEEN || run.bytes > budget {
                        run.add(document, &mut seen);
                        if run.bytes > budget && spilled.is_ok() {
                            spilled = run.write_run(self.folder).map(|file| made.runs.push(file));
                        }
                    }
                });
                spilled?;
            }
            run.add(document, &mut seen);
            made.lengths.push(encode_length(length));
            made.tokens += u64::from(length);
            if count % 1024 == 1023 {
                done.fetch_add(1024, Ordering::Relaxed);
                self.stop.check(io::ErrorKind::Interrupted)?;
            }
        }
        made.runs.push(run.write_run(self.folder)?);
        Ok(made)
    }
}

/// The inverted messages of one thread.
struct Inverted {
    runs: Vec<File>,
    lengths: Vec<u8>,
    tokens: u64,
}

/// The growing list of a term: gaps between documents, and frequencies, as varints.
#[derive(Debug, Default)]
struct TermList {
    bytes: Vec<u8>,
    last: u32,
    count: u32,
}

/// The terms and words since the last run was written.
#[derive(Default)]
struct TermRun {
    terms: HashMap<Box<str>, u32, BuildHasherDefault<FastHasher>>,
    /// For each written word, the range of its terms in `ids`.
    words: HashMap<Box<str>, Range<u32>, BuildHasherDefault<FastHasher>>,
    ids: Vec<u32>,
    lists: Vec<TermList>,
    bytes: usize,
}

impl TermRun {
    fn term(&mut self, term: &str) -> u32 {
        if let Some(id) = self.terms.get(term) {
            return *id;
        }
        let id = self.lists.len() as u32;
        self.terms.insert(term.into(), id);
        self.lists.push(TermList::default());
        self.bytes += term.len() + TERM_BYTES;
        id
    }

    /// Adds the terms of a word to `seen`; returns whether the word has terms.
    fn word(&mut self, word: &str, tokenizer: &Tokenizer, seen: &mut Vec<u32>) -> bool {
        let range = match self.words.get(word) {
            Some(range) => range.clone(),
            None => {
                let start = self.ids.len() as u32;
                tokenizer.word(word, &mut |term| {
                    let id = self.term(term);
                    self.ids.push(id);
                });
                let range = start..self.ids.len() as u32;
                self.bytes += word.len() + 4 * range.len() + WORD_BYTES;
                self.words.insert(word.into(), range.clone());
                range
            }
        };
        seen.extend_from_slice(&self.ids[range.start as usize..range.end as usize]);
        !range.is_empty()
    }

    /// Adds the terms in `seen` to a document, and empties `seen`. `seen` has a term once per occurrence. If
    /// a document is added several times, the reader sums its frequencies.
    fn add(&mut self, document: u32, seen: &mut Vec<u32>) {
        seen.sort_unstable();
        for same in seen.chunk_by(|a, b| a == b) {
            let list = &mut self.lists[same[0] as usize];
            let before = list.bytes.capacity();
            let distance = u64::from(document - list.last);
            let is_once = same.len() == 1;
            push_varint(&mut list.bytes, distance << 1 | u64::from(is_once));
            if !is_once {
                push_varint(&mut list.bytes, same.len() as u64);
            }
            list.last = document;
            list.count += 1;
            self.bytes += list.bytes.capacity() - before;
        }
        seen.clear();
    }

    /// Writes the lists in term order and empties them.
    fn write_run(&mut self, folder: &Path) -> io::Result<File> {
        let mut terms: Vec<(&str, u32)> =
            self.terms.iter().map(|(term, id)| (&**term, *id)).collect();
        terms.sort_unstable();
        let mut out = BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(folder)?);
        let mut head = Vec::new();
        for (term, id) in terms {
            let list = &self.lists[id as usize];
            head.clear();
            push_varint(&mut head, term.len() as u64);
            head.extend_from_slice(term.as_bytes());
            push_varint(&mut head, list.count.into());
            push_varint(&mut head, list.bytes.len() as u64);
            out.write_all(&head)?;
            out.write_all(&list.bytes)?;
        }
        let mut file = out.into_inner()?;
        file.rewind()?;
        *self = TermRun::default();
        Ok(file)
    }
}

/// Merges runs, which are in the order of their documents, into posting lists; ends early if `stop` is
/// requested.
fn merge(
    runs: Vec<File>,
    memory: usize,
    out: &mut FieldSerializer<'_>,
    stop: &Stop,
) -> io::Result<()> {
    let buffer = (memory / (4 * runs.len().max(1))).clamp(LEAST_READ, MOST_READ);
    let mut readers: Vec<TermRunReader> =
        runs.into_iter().map(|file| TermRunReader::new(file, buffer)).collect();
    let mut heap = BinaryHeap::new();
    for (place, reader) in readers.iter_mut().enumerate() {
        if reader.advance()? {
            heap.push(Reverse((std::mem::take(&mut reader.term), place)));
        }
    }
    let mut term = Vec::new();
    let mut postings = Vec::new();
    let mut written = 0u32;
    loop {
        let next = heap.peek_mut();
        let is_same = next.as_ref().is_some_and(|next| next.0.0 == term);
        if !is_same && !postings.is_empty() {
            out.new_term(&term, postings.len() as u32, true)?;
            for (document, frequency) in postings.drain(..) {
                out.write_doc(document, frequency, &[]);
            }
            out.close_term()?;
            written += 1;
            if written.is_multiple_of(1024) && stop.requested() {
                return Ok(());
            }
        }
        let Some(mut next) = next else { return Ok(()) };
        let Reverse((next_term, place)) = &mut *next;
        let reader = &mut readers[*place];
        reader.read(&mut postings);
        std::mem::swap(&mut term, next_term);
        reader.term = std::mem::take(next_term);
        if reader.advance()? {
            *next_term = std::mem::take(&mut reader.term);
        } else {
            PeekMut::pop(next);
        }
    }
}

struct TermRunReader {
    input: BufReader<File>,
    term: Vec<u8>,
    count: u64,
    list: Vec<u8>,
}

impl TermRunReader {
    fn new(file: File, buffer: usize) -> TermRunReader {
        let input = BufReader::with_capacity(buffer, file);
        TermRunReader { input, term: Vec::new(), count: 0, list: Vec::new() }
    }

    fn advance(&mut self) -> io::Result<bool> {
        let Some(length) = self.number()? else { return Ok(false) };
        self.term.resize(length as usize, 0);
        self.input.read_exact(&mut self.term)?;
        self.count = self.number()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = self.number()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.list.resize(bytes as usize, 0);
        self.input.read_exact(&mut self.list)?;
        Ok(true)
    }

    /// Adds the documents of the term to `postings`.
    fn read(&self, postings: &mut Vec<(u32, u32)>) {
        let mut bytes = &self.list[..];
        let mut document = 0;
        for _ in 0..self.count {
            let head = take_varint(&mut bytes);
            document += (head >> 1) as u32;
            let frequency = if head & 1 == 1 { 1 } else { take_varint(&mut bytes) as u32 };
            // A long document may be several times in a list, and in several runs.
            match postings.last_mut() {
                Some((last, sum)) if *last == document => *sum = sum.saturating_add(frequency),
                _ => postings.push((document, frequency)),
            }
        }
    }

    fn number(&mut self) -> io::Result<Option<u64>> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let mut byte = [0];
            if self.input.read(&mut byte)? == 0 {
                return Ok(None);
            }
            number |= u64::from(byte[0] & 0x7F) << shift;
            if byte[0] < 0x80 {
                return Ok(Some(number));
            }
            shift += 7;
        }
    }
}

/// A fast hash of short texts. Crafted texts can cause collisions, but only slow down the build of their own
/// index.
#[derive(Default)]
struct FastHasher(u64);

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for eight in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.0 = mixed ^ mixed >> 29;
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
