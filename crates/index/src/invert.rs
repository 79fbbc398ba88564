//! Inverts documents into postings by sorting, in bounded memory and on every core.
//!
//! Documents come in doc-id order and go to workers in jobs of consecutive documents. A worker
//! cuts its job into (gram, document) pairs and drops them into buckets by ranges of the gram space.
//! It groups each bucket by gram in the cache and appends the result, a run, to a spill file. At the end the
//! runs are merged bucket by bucket, on every core again, into blocks of postings in gram order. This
//! is the sort-based inversion of Witten, Moffat and Bell, "Managing Gigabytes" (chapter 5). The
//! buckets keep both the sort and the merge in the cache.
//!
//! Memory: grouping a job takes up to 60 bytes per byte of text, and each worker has one job. A merge takes
//! the memory of about 10 buckets per worker. The sizes of jobs and buckets keep both within the bound. A
//! text that is longer than a job is cut into slices, so a document may be in several runs. A bucket that
//! turns out too large, because the sample differed from the texts, is merged piece by piece.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;

use super::pairs::{PairGroups, RecentPairs};
use super::varint::take_varint;
use verbatim_text::grams::{CommonGrams, Gram, GramTokenizer, LONGEST};
use verbatim_text::{loose, up_to};

/// The texts of consecutive documents, to cut into grams.
#[derive(Debug, Default)]
struct Job {
    number: u64,
    first_doc: u32,
    text: String,
    /// The document of each text, and the end of the text in `text`. A document may have several texts.
    ends: Vec<(u32, usize)>,
}

/// The sorted postings of one job, in the spill file.
#[derive(Debug)]
struct Run {
    /// The number of the job. Runs are merged in the order of their jobs.
    job: u64,
    first_doc: u32,
    start: u64,
    /// The ends of the buckets, counted from `start`.
    ends: Vec<u32>,
}

impl Run {
    fn bucket_range(&self, bucket: usize) -> Range<u64> {
        let before = if bucket == 0 { 0 } else { self.ends[bucket - 1] };
        self.start + u64::from(before)..self.start + u64::from(self.ends[bucket])
    }
}

#[derive(Debug, Default)]
pub(super) struct Block {
    /// The grams, and the number of documents of each gram.
    pub(super) grams: Vec<(Gram, u32)>,
    /// The documents of all grams, one after the other, ascending within a gram.
    pub(super) docs: Vec<u32>,
}

#[derive(Debug)]
struct SharedRuns {
    common: Arc<CommonGrams>,
    /// The bucket of each [`region`] of the gram space, ascending.
    bucket_of: Vec<u16>,
    buckets: usize,
    spill: Mutex<PostingSpill>,
}

#[derive(Debug)]
struct PostingSpill {
    file: File,
    length: u64,
    runs: Vec<Run>,
}

impl PostingSpill {
    fn size(&self, bucket: usize) -> u64 {
        self.runs.iter().map(|run| run.bucket_range(bucket)).map(|it| it.end - it.start).sum()
    }

    /// Returns one reader per run for a bucket. Each reader buffers `buffer` bytes.
    ///
    /// The file is not mapped, because mapped pages count as memory of the process.
    fn readers(&self, bucket: usize, buffer: usize) -> Vec<RunReader<'_>> {
        let readers = self.runs.iter().map(|run| RunReader {
            file: &self.file,
            rest: run.bucket_range(bucket),
            buffer,
            bytes: Vec::new(),
            at: 0,
            gram: 0,
            first_doc: run.first_doc,
        });
        readers.collect()
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[derive(Debug)]
pub(super) struct Inverter {
    shared: Arc<SharedRuns>,
    jobs: Option<mpsc::SyncSender<Job>>,
    workers: Vec<thread::JoinHandle<io::Result<()>>>,
    job: Job,
    job_bytes: usize,
    most_merged: usize,
    threads: usize,
}

/// The memory and threads that a build may use.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// The maximum memory in bytes.
    pub memory: usize,
    /// Threads for the work.
    pub threads: usize,
}

impl Inverter {
    /// Starts the workers. The spill file in `folder` has no name and disappears with the process. `sample`
    /// has some of the texts to add; `total_bytes` is the length of all texts to add.
    pub(super) fn start<'a>(
        folder: &Path,
        common: Arc<CommonGrams>,
        sample: impl Iterator<Item = &'a str>,
        total_bytes: u64,
        resources: Resources,
    ) -> io::Result<Inverter> {
        let threads = resources.threads.max(1);
        // Every thread holds several buckets in memory at once.
        let bucket =
            (resources.memory / (BUCKETS_AT_ONCE * threads)).clamp(SMALLEST_BUCKET, BUCKET);
        let buckets = (total_bytes / bucket as u64).clamp(64, 4096) as usize;
        let shared = Arc::new(SharedRuns {
            bucket_of: balance(sample, &common, buckets),
            common,
            buckets,
            spill: Mutex::new(PostingSpill {
                file: tempfile::tempfile_in(folder)?,
                length: 0,
                runs: Vec::new(),
            }),
        });
        let (sender, receiver) = mpsc::sync_channel::<Job>(1);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut workers = Vec::new();
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            let receiver = Arc::clone(&receiver);
            workers.push(thread::spawn(move || work(&shared, &receiver)));
        }
        let job_bytes = (resources.memory / (256 * threads)).clamp(64 << 10, 32 << 20);
        Ok(Inverter {
            shared,
            jobs: Some(sender),
            workers,
            job: Job::default(),
            job_bytes,
            most_merged: MERGED_AT_ONCE * bucket,
            threads,
        })
    }

    /// Adds the next document with one or two texts; returns whether a text differs from its loose form.
    pub(super) fn add(&mut self, doc: u32, text: &str, second: Option<&str>) -> io::Result<bool> {
        let mut differs = false;
        for text in [text, second.unwrap_or_default()] {
            for slice in slices(text, self.job_bytes / SLICES_IN_JOB) {
                self.push(doc, slice)?;
            }
            loose::windows(text, |window| {
                differs = true;
                self.push(doc, window)
            })?;
        }
        Ok(differs)
    }

    fn push(&mut self, doc: u32, slice: &str) -> io::Result<()> {
        if self.job.ends.is_empty() {
            self.job.first_doc = doc;
        }
        self.job.text.push_str(slice);
        self.job.ends.push((doc, self.job.text.len()));
        if self.job.text.len() >= self.job_bytes { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> io::Result<()> {
        let next = Job { number: self.job.number + 1, ..Job::default() };
        let job = std::mem::replace(&mut self.job, next);
        let sender = self.jobs.as_ref().expect("jobs are sent before `finish` only");
        if sender.send(job).is_ok() {
            return Ok(());
        }
        // All workers ended; `join` returns the error of one of them.
        self.join()?;
        Err(io::Error::other("the indexing threads ended early"))
    }

    fn join(&mut self) -> io::Result<()> {
        self.jobs = None;
        for worker in self.workers.drain(..) {
            worker.join().map_err(|_| io::Error::other("an indexing thread panicked"))??;
        }
        Ok(())
    }

    /// Calls `write` with the blocks of postings in gram order, on this thread.
    pub(super) fn finish(
        mut self,
        mut write: impl FnMut(Block) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.job.ends.is_empty() {
            self.send()?;
        }
        self.join()?;
        let mut spill = self.shared.spill.lock().expect("workers that panicked were reported");
        spill.runs.sort_by_key(|run| run.job);
        let spill = &*spill;
        let most_merged = self.most_merged;
        let queue = Queue::new(self.shared.buckets, self.threads + 1);
        thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    // Without this guard, all other threads would wait forever if this thread panicked.
                    let closing = CloseOnUnwind(&queue);
                    while let Some(bucket) = queue.claim() {
                        queue.put_block(bucket, merge_whole(spill, bucket, most_merged));
                    }
                    std::mem::forget(closing);
                });
            }
            for bucket in 0..self.shared.buckets {
                let written = match queue.wait_for_block(bucket) {
                    Some(Ok(Some(block))) => write(block),
                    Some(Ok(None)) => {
                        let buffer = most_merged / spill.runs.len().max(1);
                        let readers = spill.readers(bucket, buffer);
                        merge(readers, most_merged / size_of::<u32>(), &mut write)
                    }
                    Some(Err(error)) => Err(error),
                    None => Err(io::Error::other("a merging thread panicked")),
                };
                if written.is_err() {
                    queue.close();
                    return written;
                }
            }
            Ok(())
        })
    }
}

impl Drop for Inverter {
    fn drop(&mut self) {
        self.jobs = None;
        for worker in self.workers.drain(..) {
            // An unfinished inverter was dropped because of an error, which the caller reports.
            drop(worker.join());
        }
    }
}

/// The number of bytes of text per bucket, if there is enough memory.
const BUCKET: usize = 3_000_000;

/// The minimum number of bytes of text per bucket.
const SMALLEST_BUCKET: usize = 200_000;

/// The memory per thread, as a number of buckets. A merge takes a bit less.
const BUCKETS_AT_ONCE: usize = 16;

/// A bucket may be this many times larger than planned and still be merged in one piece. Sizes differ from
/// the plan, because the plan is based on a sample.
const MERGED_AT_ONCE: usize = 4;

/// The minimum number of slices of a long text per job. Slices are small, so that no job gets much too large.
const SLICES_IN_JOB: usize = 8;

/// The overlap of consecutive slices in bytes: longer than any gram, so that each gram is whole in a slice.
const OVERLAP: usize = 4 * LONGEST;

/// Cuts a text into slices of about `most` bytes that overlap. Together they have all grams of the text.
fn slices(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let most = most.max(2 * OVERLAP);
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.len() - start;
        let end = if rest <= most { text.len() } else { up_to(text, start + most).len() };
        let slice = &text[start..end];
        start = if end == text.len() { end } else { up_to(text, end - OVERLAP).len() };
        if slice.is_empty() { None } else { Some(slice) }
    })
}

/// Returns the region of a gram in the gram space: its first two characters if they are ASCII,
/// otherwise the upper bits of its first character. Regions are in the order of their grams.
#[inline]
fn region(gram: Gram) -> usize {
    let upper = (gram.0 >> 48) as usize;
    if upper < 0x8000 { (upper >> 8) << 7 | upper & 0x7F } else { upper - 0x4000 }
}

const REGIONS: usize = 0xC000;

/// Returns the bucket of each region, such that all buckets get about the same number of sampled grams.
fn balance<'a>(
    sample: impl Iterator<Item = &'a str>,
    common: &CommonGrams,
    buckets: usize,
) -> Vec<u16> {
    let mut weights = vec![0u64; REGIONS];
    let mut tokenizer = GramTokenizer::default();
    for text in sample {
        tokenizer.tokenize(text, common, |gram| weights[region(gram)] += 1);
    }
    let total: u64 = weights.iter().sum::<u64>().max(1);
    let mut before = 0;
    weights
        .iter()
        .map(|weight| {
            let bucket = (before * buckets as u64 / total).min(buckets as u64 - 1);
            before += weight;
            bucket as u16
        })
        .collect()
}

/// Takes jobs until there are no more: cuts their texts into grams, sorts the postings, and writes them to
/// the spill file.
fn work(shared: &SharedRuns, jobs: &Mutex<mpsc::Receiver<Job>>) -> io::Result<()> {
    let mut tokenizer = GramTokenizer::default();
    let mut buckets: Vec<Vec<(u64, u32)>> = vec![Vec::new(); shared.buckets];
    let mut recent = RecentPairs::new();
    let mut groups = PairGroups::new();
    let mut encoded = Vec::new();
    loop {
        let job = match jobs.lock().expect("a thread that panicked was reported").recv() {
            Ok(job) => job,
            Err(mpsc::RecvError) => return Ok(()),
        };
        let mut from = 0;
        for (doc, end) in job.ends {
            tokenizer.tokenize(&job.text[from..end], &shared.common, |gram| {
                if recent.is_new(gram, doc) {
                    let bucket = usize::from(shared.bucket_of[region(gram)]);
                    buckets[bucket].push((gram.0, doc - job.first_doc));
                }
            });
            from = end;
        }
        encoded.clear();
        let mut ends = Vec::with_capacity(shared.buckets);
        for bucket in &mut buckets {
            groups.encode(bucket, &mut encoded);
            ends.push(encoded.len() as u32);
        }
        let mut spill = shared.spill.lock().expect("a thread that panicked was reported");
        spill.file.write_all(&encoded)?;
        let start = spill.length;
        spill.length += encoded.len() as u64;
        spill.runs.push(Run { job: job.number, first_doc: job.first_doc, start, ends });
    }
}

struct RunReader<'a> {
    file: &'a File,
    /// The bytes of the file that are not read yet.
    rest: Range<u64>,
    buffer: usize,
    bytes: Vec<u8>,
    at: usize,
    gram: u64,
    first_doc: u32,
}

impl RunReader<'_> {
    const LONGEST_ITEM: usize = 32;

    /// Reads more of the file if the next item may not be whole in the buffer.
    #[inline]
    fn fill(&mut self) -> io::Result<()> {
        if self.rest.is_empty() || self.at + Self::LONGEST_ITEM <= self.bytes.len() {
            return Ok(());
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        let before = self.bytes.len();
        let more = (self.rest.end - self.rest.start).min(self.buffer.max(1 << 10) as u64);
        // No spare capacity, because many runs are read at once.
        self.bytes.reserve_exact(more as usize);
        self.bytes.resize(before + more as usize, 0);
        read_exact_at(self.file, &mut self.bytes[before..], self.rest.start)?;
        self.rest.start += more;
        Ok(())
    }

    fn advance(&mut self) -> io::Result<bool> {
        self.fill()?;
        let Some((&head, rest)) = self.bytes[self.at..].split_first() else { return Ok(false) };
        let shared = usize::from(head >> 4);
        let length = usize::from(head & 15);
        let mut gram = [0; 8];
        gram[..shared].copy_from_slice(&self.gram.to_be_bytes()[..shared]);
        gram[shared..length].copy_from_slice(&rest[..length - shared]);
        self.gram = u64::from_be_bytes(gram);
        self.at += 1 + length - shared;
        Ok(true)
    }

    #[inline]
    fn number(&mut self) -> io::Result<u64> {
        self.fill()?;
        let mut bytes = &self.bytes[self.at..];
        let before = bytes.len();
        let number = take_varint(&mut bytes);
        self.at += before - bytes.len();
        Ok(number)
    }

    /// Adds the documents of the gram that [`RunReader::advance`] moved to. Skips the first document if it
    /// equals `last`: its slices are in several runs.
    fn read_docs(&mut self, last: Option<u32>, docs: &mut Vec<u32>) -> io::Result<()> {
        let count = self.number()?;
        let mut doc = self.first_doc;
        for place in 0..count {
            doc += self.number()? as u32;
            if place > 0 || Some(doc) != last {
                docs.push(doc);
            }
        }
        Ok(())
    }
}

/// Merges one bucket of all runs; returns `None` if the bucket has more than `most` bytes.
fn merge_whole(spill: &PostingSpill, bucket: usize, most: usize) -> io::Result<Option<Block>> {
    if spill.size(bucket) > most as u64 {
        return Ok(None);
    }
    let mut whole = Block::default();
    merge(spill.readers(bucket, most), usize::MAX, &mut |block| {
        whole = block;
        Ok(())
    })?;
    Ok(Some(whole))
}

/// Merges runs, which are in the order of their documents, into blocks of about `most` documents.
fn merge(
    mut readers: Vec<RunReader<'_>>,
    most: usize,
    write: &mut impl FnMut(Block) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Block::default();
    debug_assert!(readers.is_sorted_by_key(|reader| reader.first_doc));
    let mut heap = BinaryHeap::with_capacity(readers.len());
    for (place, reader) in readers.iter_mut().enumerate() {
        if reader.advance()? {
            heap.push(Reverse((reader.gram, place)));
        }
    }
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((gram, place)) = *top;
        let is_known = block.grams.last().is_some_and(|(last, _)| last.0 == gram);
        if !is_known {
            if block.docs.len() + block.grams.len() >= most {
                write(std::mem::take(&mut block))?;
            }
            block.grams.push((Gram(gram), 0));
        }
        let before = block.docs.len();
        let last = block.docs.last().copied().filter(|_| is_known);
        readers[place].read_docs(last, &mut block.docs)?;
        if let Some((_, total)) = block.grams.last_mut() {
            *total += (block.docs.len() - before) as u32;
        }
        if readers[place].advance()? {
            *top = Reverse((readers[place].gram, place));
        } else {
            PeekMut::pop(top);
        }
    }
    write(block)
}

/// The block of a bucket; `None` if the bucket is too large for one block.
type Merged = io::Result<Option<Block>>;

/// A queue of buckets to merge. It returns their blocks in order, and limits the number of waiting blocks.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    buckets: usize,
    ahead: usize,
}

struct QueueState {
    claimed: usize,
    taken: usize,
    blocks: Vec<(usize, Merged)>,
    closed: bool,
}

impl Queue {
    fn new(buckets: usize, ahead: usize) -> Queue {
        let state = QueueState { claimed: 0, taken: 0, blocks: Vec::new(), closed: false };
        Queue { state: Mutex::new(state), changed: Condvar::new(), buckets, ahead }
    }

    /// Waits until the writer has caught up; returns the next bucket to merge.
    fn claim(&self) -> Option<usize> {
        let state = self.state.lock().expect("a merging thread panicked");
        let mut state = self
            .changed
            .wait_while(state, |state| {
                !state.closed
                    && state.claimed < self.buckets
                    && state.claimed >= state.taken + self.ahead
            })
            .expect("a merging thread panicked");
        if state.closed || state.claimed == self.buckets {
            return None;
        }
        state.claimed += 1;
        Some(state.claimed - 1)
    }

    fn put_block(&self, bucket: usize, block: Merged) {
        self.state.lock().expect("a merging thread panicked").blocks.push((bucket, block));
        self.changed.notify_all();
    }

    /// Waits for the block of a bucket; returns `None` if the queue closes first.
    fn wait_for_block(&self, bucket: usize) -> Option<Merged> {
        let state = self.state.lock().expect("a merging thread panicked");
        let mut state = self
            .changed
            .wait_while(state, |state| {
                !state.closed && !state.blocks.iter().any(|(at, _)| *at == bucket)
            })
            .expect("a merging thread panicked");
        let place = state.blocks.iter().position(|(at, _)| *at == bucket)?;
        let (_, block) = state.blocks.swap_remove(place);
        state.taken = bucket + 1;
        self.changed.notify_all();
        Some(block)
    }

    fn close(&self) {
        self.state.lock().expect("a merging thread panicked").closed = true;
        self.changed.notify_all();
    }
}

struct CloseOnUnwind<'a>(&'a Queue);

impl Drop for CloseOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    type Postings = Vec<(Gram, Vec<u32>)>;

    /// Inverts texts without slices, runs or buckets.
    fn plain(texts: &[(u32, String)], common: &CommonGrams) -> Postings {
        let mut postings: BTreeMap<Gram, BTreeSet<u32>> = BTreeMap::new();
        for (doc, text) in texts {
            let mut cut = |text: &str| -> io::Result<()> {
                GramTokenizer::default().tokenize(text, common, |gram| {
                    postings.entry(gram).or_default().insert(*doc);
                });
                Ok(())
            };
            cut(text).and_then(|()| loose::windows(text, cut)).expect("nothing is written");
        }
        postings.into_iter().map(|(gram, docs)| (gram, docs.into_iter().collect())).collect()
    }

    /// Inverts texts in jobs of some bytes, and merges buckets in pieces of some bytes.
    fn inverted(
        texts: &[(u32, String)],
        common: &Arc<CommonGrams>,
        (threads, job_bytes, most_merged): (usize, usize, usize),
    ) -> Postings {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let sample = texts.iter().step_by(10).map(|(_, text)| text.as_str());
        let resources = Resources { memory: 0, threads };
        let mut inverter =
            Inverter::start(folder.path(), Arc::clone(common), sample, 100_000, resources)
                .expect("start");
        (inverter.job_bytes, inverter.most_merged) = (job_bytes, most_merged);
        for same in texts.chunk_by(|one, other| one.0 == other.0) {
            let second = same.get(1).map(|(_, text)| text.as_str());
            inverter.add(same[0].0, &same[0].1, second).expect("add");
        }
        let mut found = Vec::new();
        inverter
            .finish(|block| {
                let mut docs = block.docs.into_iter();
                for (gram, count) in block.grams {
                    found.push((gram, docs.by_ref().take(count as usize).collect()));
                }
                Ok(())
            })
            .expect("finish");
        found
    }

    const SHAPES: [(usize, usize, usize); 5] =
        [(1, 5_000, 1 << 20), (3, 5_000, 1 << 20), (3, 100, 1 << 20), (2, 5_000, 500), (1, 1, 1)];

    #[test]
    fn postings_equal_a_plain_inversion() {
        let texts: Vec<(u32, String)> = (0u32..3000)
            .filter(|n| n % 5 != 0)
            .flat_map(|n| {
                let hash = n.wrapping_mul(2_654_435_761);
                let text = format!("{hash:x} the {} 日本{} é{n}", n % 7, n % 11);
                [(n, text), (n, format!("second {n}"))]
            })
            .collect();
        let common =
            Arc::new(CommonGrams::from_sample(texts.iter().map(|(_, text)| text.as_str())));
        for shape in SHAPES {
            assert!(inverted(&texts, &common, shape) == plain(&texts, &common), "{shape:?}");
        }
    }

    #[test]
    fn slices_of_a_text_have_its_postings() {
        const PARTS: [&str; 8] = [
            "the same words ",
            "THE same",
            "日本語",
            "é",
            "x",
            "aaaaaaaaaaaaaaa",
            "\u{10348}",
            "b1",
        ];
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for round in 0..40 {
            let texts: Vec<(u32, String)> = (0..30)
                .map(|place| {
                    let parts = if random(4) == 0 { 400 } else { 10 };
                    let text = (0..random(parts)).map(|_| PARTS[random(8) as usize]).collect();
                    (place / 2 * (1 + round % 3), text)
                })
                .collect();
            let sample = texts.iter().map(|(_, text)| text.as_str());
            let common = Arc::new(CommonGrams::from_sample(sample));
            let mut expected = plain(&texts, &common);
            let words: Postings = expected.extract_if(.., |(gram, _)| gram.is_of_word()).collect();
            for shape in SHAPES {
                let mut found = inverted(&texts, &common, shape);
                let more: Postings = found.extract_if(.., |(gram, _)| gram.is_of_word()).collect();
                assert!(found == expected, "{shape:?}");
                // The first and the last word of a slice may be a part of a longer word.
                let has = |(gram, docs): &(Gram, Vec<u32>)| {
                    let all = more.iter().find(|(other, _)| other == gram);
                    all.is_some_and(|(_, all)| docs.iter().all(|doc| all.contains(doc)))
                };
                assert!(words.iter().all(has), "{shape:?}");
            }
        }
    }
}
