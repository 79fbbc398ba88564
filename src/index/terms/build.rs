//! Builds the words of a part: inverts in memory, spills sorted runs, merges them.
//!
//! The single-pass inversion of Heinz and Zobel (2003): every thread takes consecutive messages
//! and keeps a growing list for each term; when the lists take what they may, they are written as a
//! run in term order. A dictionary from words as they are written to their terms spares stemming
//! a word again.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, binary_heap::PeekMut},
    fs::{self, File},
    hash::{BuildHasherDefault, Hasher},
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    ops::Range,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use tantivy::{
    Index, IndexSettings, TantivyDocument,
    directory::MmapDirectory,
    index::SegmentComponent,
    postings::{FieldSerializer, InvertedIndexSerializer},
    store::Compressor,
};

use super::{FOLDER, FORMAT, LENGTHS, MANIFEST, Manifest, TERMS, code_of, field, schema};
use crate::{
    index::{
        Error, Resources, SegmentRef, Snapshot,
        segment::{FileRecord, sync_folder},
        varint::{push_varint, take_varint},
    },
    model::Stop,
    text::words::{Token, Tokenizer, grams, tokens},
};

/// What a term and a word take in memory beside their letters and lists, about.
const ENTRY_BYTES: usize = 120;

/// The least that a thread's lists may take.
const LEAST_RUN: usize = 4 << 20;

/// The prefix of folders under construction.
const UNFINISHED: &str = "words-";

const LOCK: &str = "words.lock";

/// Roles that say nothing about who speaks.
const PLAIN_ROLES: [&str; 4] = ["user", "assistant", "tool", "system"];

/// Builds the words of a part; `false` where another process is about it.
///
/// `progress` is told how many messages are done.
pub fn build_terms(
    snapshot: &Snapshot,
    part: &SegmentRef<'_>,
    resources: Resources,
    stop: &Stop,
    progress: &mut dyn FnMut(u32),
) -> Result<bool, Error> {
    let failed = |error| Error::Write { path: part.folder.to_owned(), error };
    let lock = File::options().create(true).append(true).open(part.folder.join(LOCK));
    let lock = lock.map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(false),
        Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
    }
    clean(part.folder);
    let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(part.folder);
    let folder = folder.map_err(failed)?;
    let doc_ids = part.doc_ids.clone();
    let threads = resources.threads.clamp(1, 1 + doc_ids.len() / 10_000);
    let budget = (resources.memory / threads).max(LEAST_RUN);
    let done = AtomicU32::new(0);
    let step = doc_ids.len().div_ceil(threads).max(1);
    let (stop, done) = (stop, &done);
    let inverted: io::Result<Vec<Inverted>> = thread::scope(|scope| {
        let workers: Vec<_> = doc_ids
            .clone()
            .step_by(step)
            .map(|start| {
                let range = start..doc_ids.end.min(start + step as u32);
                let (base, spill) = (doc_ids.start, folder.path());
                scope.spawn(move || invert(snapshot, range, base, spill, budget, done, stop))
            })
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::sleep(Duration::from_millis(if doc_ids.len() < 10_000 { 1 } else { 20 }));
            progress(done.load(Ordering::Relaxed));
        }
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().map_err(|_| io::Error::other("an indexing thread panicked"))?
        };
        workers.into_iter().map(join).collect()
    });
    if stop.requested() {
        return Err(Error::Stopped);
    }
    let inverted = inverted.map_err(failed)?;
    let tokens = inverted.iter().map(|part| part.tokens).sum();
    let lengths: Vec<u8> = inverted.iter().flat_map(|part| part.lengths.iter().copied()).collect();
    let runs = inverted.into_iter().flat_map(|part| part.runs).collect();
    let written = write(folder.path(), doc_ids.len() as u32, runs, &lengths, stop);
    written.map_err(|error| failed(io::Error::other(error)))?;
    if stop.requested() {
        return Err(Error::Stopped);
    }
    let seal = || -> io::Result<()> {
        let files = records(folder.path())?;
        let manifest = Manifest {
            format: FORMAT,
            part: crc32fast::hash(&fs::read(part.folder.join(MANIFEST))?),
            documents: doc_ids.len() as u32,
            tokens,
            files,
        };
        let mut file = File::create_new(folder.path().join(MANIFEST))?;
        file.write_all(&serde_json::to_vec_pretty(&manifest)?)?;
        file.sync_all()?;
        sync_folder(folder.path())?;
        let place = part.folder.join(FOLDER);
        if place.exists() {
            // Not ours, or damaged: whoever has it open keeps it.
            fs::rename(&place, part.folder.join(format!("{UNFINISHED}replaced")))?;
        }
        fs::rename(folder.path(), place)?;
        sync_folder(part.folder)
    };
    seal().map_err(failed)?;
    // It is no longer where it was made.
    let _ = folder.keep();
    clean(part.folder);
    Ok(true)
}

/// Removes what earlier builds left.
fn clean(part: &Path) {
    let Ok(entries) = fs::read_dir(part) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            // What cannot be removed now is in nobody's way.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Records every file and makes it durable.
fn records(folder: &Path) -> io::Result<Vec<FileRecord>> {
    let mut files = vec![FileRecord::seal(LENGTHS.to_owned(), &folder.join(LENGTHS))?];
    for entry in fs::read_dir(folder.join(TERMS))? {
        let entry = entry?;
        let name = format!("{TERMS}/{}", entry.file_name().to_string_lossy());
        files.push(FileRecord::seal(name, &entry.path())?);
    }
    sync_folder(&folder.join(TERMS))?;
    Ok(files)
}

/// What a thread made of its messages.
struct Inverted {
    runs: Vec<File>,
    lengths: Vec<u8>,
    tokens: u64,
}

/// The list of a term, as it grows: distances of documents and frequencies, packed.
#[derive(Debug, Default)]
struct List {
    bytes: Vec<u8>,
    last: u32,
    count: u32,
}

/// Terms and words seen since the last run.
#[derive(Default)]
struct Run {
    terms: HashMap<Box<str>, u32, BuildHasherDefault<Fast>>,
    /// For each word as it is written, where its terms are in `ids`.
    words: HashMap<Box<str>, Range<u32>, BuildHasherDefault<Fast>>,
    ids: Vec<u32>,
    lists: Vec<List>,
    bytes: usize,
}

impl Run {
    fn term(&mut self, term: &str) -> u32 {
        if let Some(id) = self.terms.get(term) {
            return *id;
        }
        let id = self.lists.len() as u32;
        self.terms.insert(term.into(), id);
        self.lists.push(List::default());
        self.bytes += term.len() + ENTRY_BYTES;
        id
    }

    /// Adds the terms of a word to `seen`; returns whether it has any.
    fn word(&mut self, word: &str, cutter: &Tokenizer, seen: &mut Vec<u32>) -> bool {
        let range = match self.words.get(word) {
            Some(range) => range.clone(),
            None => {
                let start = self.ids.len() as u32;
                cutter.word(word, &mut |term| {
                    let id = self.term(term);
                    self.ids.push(id);
                });
                let range = start..self.ids.len() as u32;
                self.bytes += word.len() + 4 * range.len() + ENTRY_BYTES / 2;
                self.words.insert(word.into(), range.clone());
                range
            }
        };
        seen.extend_from_slice(&self.ids[range.start as usize..range.end as usize]);
        !range.is_empty()
    }

    /// Adds a document that has the terms in `seen`, as often as they stand there.
    fn add(&mut self, document: u32, seen: &mut [u32]) {
        seen.sort_unstable();
        for same in seen.chunk_by(|a, b| a == b) {
            let list = &mut self.lists[same[0] as usize];
            let before = list.bytes.len();
            let distance = u64::from(document - list.last);
            let is_once = same.len() == 1;
            push_varint(&mut list.bytes, distance << 1 | u64::from(is_once));
            if !is_once {
                push_varint(&mut list.bytes, same.len() as u64);
            }
            list.last = document;
            list.count += 1;
            self.bytes += list.bytes.len() - before;
        }
    }

    /// Writes the lists in term order and forgets them.
    fn spill(&mut self, folder: &Path) -> io::Result<File> {
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
        *self = Run::default();
        Ok(file)
    }
}

/// Inverts the messages of a range of doc ids; documents count from `base`.
fn invert(
    snapshot: &Snapshot,
    doc_ids: Range<u32>,
    base: u32,
    folder: &Path,
    budget: usize,
    done: &AtomicU32,
    stop: &Stop,
) -> io::Result<Inverted> {
    let cutter = Tokenizer::default();
    let mut run = Run::default();
    let mut made =
        Inverted { runs: Vec::new(), lengths: Vec::with_capacity(doc_ids.len()), tokens: 0 };
    let mut seen: Vec<u32> = Vec::new();
    for (count, doc_id) in doc_ids.enumerate() {
        seen.clear();
        let role = snapshot.role(doc_id);
        let role = if PLAIN_ROLES.contains(&role) { "" } else { role };
        let content = snapshot.content(doc_id);
        let mut length = 0;
        for text in [role, &content] {
            tokens(text, |token| match token {
                Token::Word(word) => length += u32::from(run.word(word, &cutter, &mut seen)),
                Token::Run(chars) => {
                    length += grams(chars, &mut |gram| seen.push(run.term(gram)));
                }
            });
        }
        run.add(doc_id - base, &mut seen);
        made.lengths.push(code_of(length));
        made.tokens += u64::from(length);
        if run.bytes > budget {
            made.runs.push(run.spill(folder)?);
        }
        if count % 1024 == 1023 {
            done.fetch_add(1024, Ordering::Relaxed);
            if stop.requested() {
                break;
            }
        }
    }
    made.runs.push(run.spill(folder)?);
    Ok(made)
}

/// Writes the files of the folder but for the manifest; runs stand in the order of their documents.
fn write(
    folder: &Path,
    documents: u32,
    runs: Vec<File>,
    lengths: &[u8],
    stop: &Stop,
) -> tantivy::Result<()> {
    fs::write(folder.join(LENGTHS), lengths)?;
    let terms = folder.join(TERMS);
    fs::create_dir(&terms)?;
    let settings = IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    };
    let mut writer = Index::builder()
        .schema(schema())
        .settings(settings)
        .single_segment_index_writer(MmapDirectory::open(&terms)?, 64 << 20)?;
    for _ in 0..documents {
        writer.add_document(TantivyDocument::new())?;
    }
    let index = writer.finalize()?;
    let segments = index.searchable_segments()?;
    let Some(segment) = segments.first() else { return Ok(()) };
    for component in
        [SegmentComponent::Terms, SegmentComponent::Postings, SegmentComponent::Positions]
    {
        fs::remove_file(terms.join(segment.relative_path(component)))?;
    }
    let mut serializer = InvertedIndexSerializer::open(segment)?;
    let mut out = serializer.new_field(field(), 0, None)?;
    merge(runs, &mut out, stop)?;
    out.close()?;
    serializer.close()?;
    Ok(())
}

/// Merges runs into lists.
fn merge(runs: Vec<File>, out: &mut FieldSerializer<'_>, stop: &Stop) -> io::Result<()> {
    let mut readers: Vec<Reader> = runs.into_iter().map(Reader::new).collect();
    let mut heap = BinaryHeap::new();
    for (place, reader) in readers.iter_mut().enumerate() {
        if reader.advance()? {
            heap.push(Reverse((std::mem::take(&mut reader.term), place)));
        }
    }
    let (mut term, mut postings) = (Vec::new(), Vec::new());
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

/// Reads a run list by list.
struct Reader {
    input: BufReader<File>,
    term: Vec<u8>,
    count: u64,
    list: Vec<u8>,
}

impl Reader {
    fn new(file: File) -> Reader {
        let input = BufReader::with_capacity(1 << 18, file);
        Reader { input, term: Vec::new(), count: 0, list: Vec::new() }
    }

    /// Moves to the next term, if there is one.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(length) = self.number()? else { return Ok(false) };
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        self.term.resize(length as usize, 0);
        self.input.read_exact(&mut self.term)?;
        self.count = self.number()?.ok_or_else(ended)?;
        let bytes = self.number()?.ok_or_else(ended)?;
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
            postings.push((document, frequency));
        }
    }

    fn number(&mut self) -> io::Result<Option<u64>> {
        let (mut number, mut shift) = (0, 0);
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

/// A hash of short texts that need not withstand an adversary for longer than a build: what an
/// adversary could make slow is the index of their own texts.
#[derive(Default)]
struct Fast(u64);

impl Hasher for Fast {
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
