//! Inverts documents into postings by sorting, in bounded memory and on every core.
//!
//! Documents come in doc-id order and go to workers in jobs of consecutive documents. A worker
//! cuts its job into (gram, document) pairs and drops them into buckets by ranges of the gram space.
//! It sorts each bucket in the cache and appends the result, a run, to a spill file. At the end the
//! runs are merged bucket by bucket, on every core again, into blocks of postings in gram order. This
//! is the sort-based inversion of Witten, Moffat and Bell, "Managing Gigabytes" (chapter 5). The
//! buckets keep both the sort and the merge in the cache.
//!
//! Memory: a job of B bytes of text takes up to 60 B while it is sorted, and each worker has one job.
//! Merging takes about 10 buckets per worker. The sizes of both are chosen to stay within the bound.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{Arc, Condvar, Mutex, mpsc},
    thread,
};

use super::varint::{push_varint, take_varint};
use crate::text::grams::{CommonGrams, Gram, GramTokenizer};

/// The texts of consecutive documents, to cut into grams.
#[derive(Debug, Default)]
struct Job {
    first_doc: u32,
    /// The texts of all documents, one after the other.
    text: String,
    /// The ends of each document's first and second text in `text`.
    ends: Vec<(usize, usize)>,
}

/// A job's postings in the spill file.
#[derive(Debug)]
struct Run {
    first_doc: u32,
    /// The start of each bucket in the spill file, and the end of the last one.
    bounds: Vec<u64>,
}

/// Postings of consecutive grams.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Each gram with the number of its documents.
    pub(super) grams: Vec<(Gram, u32)>,
    /// The documents of all grams, one after the other, ascending within a gram.
    pub(super) docs: Vec<u32>,
}

/// The state that all workers share.
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
    /// Reads one bucket of all runs, each with its first document.
    ///
    /// The file is not mapped, because mapped pages count as memory of the process.
    fn read(&self, bucket: usize) -> io::Result<Vec<(u32, Vec<u8>)>> {
        let read = |run: &Run| {
            let (start, end) = (run.bounds[bucket], run.bounds[bucket + 1]);
            let mut bytes = vec![0; (end - start) as usize];
            read_exact_at(&self.file, &mut bytes, start)?;
            Ok((run.first_doc, bytes))
        };
        self.runs.iter().map(read).collect()
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

/// Takes documents in doc-id order and gives their postings in gram order.
#[derive(Debug)]
pub(super) struct Inverter {
    shared: Arc<SharedRuns>,
    jobs: Option<mpsc::SyncSender<Job>>,
    workers: Vec<thread::JoinHandle<io::Result<()>>>,
    job: Job,
    job_bytes: usize,
    threads: usize,
}

/// The memory and threads that a build may use.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// The most bytes of memory.
    pub memory: usize,
    /// Threads for the work.
    pub threads: usize,
}

impl Inverter {
    /// Starts the workers. The spill file in `folder` has no name and disappears with the process.
    /// `sample` are some of the texts to come, which have `total_bytes` together.
    pub(super) fn start<'a>(
        folder: &Path,
        common: Arc<CommonGrams>,
        sample: impl Iterator<Item = &'a str>,
        total_bytes: u64,
        resources: Resources,
    ) -> io::Result<Inverter> {
        // A bucket holds about 3 MB of text, so that many fit into the memory at once.
        let buckets = (total_bytes / 3_000_000).clamp(64, 4096) as usize;
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
        let threads = resources.threads.max(1);
        let (sender, receiver) = mpsc::sync_channel::<Job>(1);
        let receiver = Arc::new(Mutex::new(receiver));
        let workers = (0..threads)
            .map(|_| {
                let (shared, receiver) = (Arc::clone(&shared), Arc::clone(&receiver));
                thread::spawn(move || work(&shared, &receiver))
            })
            .collect();
        let job_bytes = (resources.memory / (256 * threads)).clamp(64 << 10, 32 << 20);
        Ok(Inverter {
            shared,
            jobs: Some(sender),
            workers,
            job: Job::default(),
            job_bytes,
            threads,
        })
    }

    /// Adds the next document with one or two texts.
    pub(super) fn add(&mut self, doc: u32, text: &str, second: Option<&str>) -> io::Result<()> {
        if self.job.ends.is_empty() {
            self.job.first_doc = doc;
        }
        // Skipped documents have no text.
        while self.job.first_doc as usize + self.job.ends.len() < doc as usize {
            self.job.ends.push((self.job.text.len(), self.job.text.len()));
        }
        self.job.text.push_str(text);
        let first = self.job.text.len();
        self.job.text.push_str(second.unwrap_or_default());
        self.job.ends.push((first, self.job.text.len()));
        if self.job.text.len() >= self.job_bytes {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let job = std::mem::take(&mut self.job);
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

    /// Gives the blocks of postings in gram order to `write`, which runs on this thread.
    pub(super) fn finish(
        mut self,
        mut write: impl FnMut(Block) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.job.ends.is_empty() {
            self.send()?;
        }
        self.join()?;
        let mut spill = self.shared.spill.lock().expect("workers that panicked were reported");
        spill.runs.sort_by_key(|run| run.first_doc);
        let spill = &*spill;
        let queue = Queue::new(self.shared.buckets, self.threads + 1);
        thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    // Without this, the other threads would wait for the bucket of a thread that panics.
                    let closing = CloseOnUnwind(&queue);
                    while let Some(bucket) = queue.claim() {
                        queue.put(bucket, spill.read(bucket).map(|parts| merge(&parts)));
                    }
                    std::mem::forget(closing);
                });
            }
            for bucket in 0..self.shared.buckets {
                let written = match queue.take(bucket) {
                    Some(block) => block.and_then(&mut write),
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

/// Returns the region of a gram in the gram space: its first two characters if they are ASCII,
/// otherwise the upper bits of its first character. Regions are in the order of their grams.
#[inline]
fn region(gram: Gram) -> usize {
    let upper = (gram.0 >> 48) as usize;
    if upper < 0x8000 { (upper >> 8) << 7 | upper & 0x7F } else { upper - 0x4000 }
}

const REGIONS: usize = 0xC000;

/// Returns the bucket of each region, such that all buckets get about as many grams of the sample.
fn balance<'a>(
    sample: impl Iterator<Item = &'a str>,
    common: &CommonGrams,
    buckets: usize,
) -> Vec<u16> {
    let mut weights = vec![0u64; REGIONS];
    let mut tokenizer = GramTokenizer::default();
    for text in sample {
        tokenizer.cut(text, common, |gram| weights[region(gram)] += 1);
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

/// The pairs of a job in one bucket, in the order of their documents.
///
/// Most grams have up to three ASCII characters. Such a gram and its document fit into one word and
/// differ in few bytes, so they are sorted apart, in fewer passes.
#[derive(Debug, Default)]
struct Bucket {
    short: Vec<u64>,
    long: Vec<(u64, u32)>,
}

impl Bucket {
    #[inline]
    fn push(&mut self, gram: Gram, doc: u32) {
        if gram.0 & 0x8000_00FF_FFFF_FFFF == 0 {
            self.short.push(gram.0 >> 40 << 32 | u64::from(doc));
        } else {
            self.long.push((gram.0, doc));
        }
    }

    /// Writes the pairs by gram and empties the bucket. For each gram, writes the bytes that differ
    /// from the gram before, the number of its documents, and the distances between them.
    fn encode(&mut self, spare: &mut Bucket, docs: &mut Vec<u32>, out: &mut Vec<u8>) {
        sort(&mut self.short, &mut spare.short, |pair| pair >> 32);
        sort(&mut self.long, &mut spare.long, |pair| pair.0);
        let mut short = self.short.iter().map(|pair| (pair >> 32 << 40, *pair as u32)).peekable();
        let mut long = self.long.iter().copied().peekable();
        let mut previous = 0u64;
        loop {
            let of_short = short.peek().map_or(u64::MAX, |pair| pair.0);
            let gram = of_short.min(long.peek().map_or(u64::MAX, |pair| pair.0));
            if gram == u64::MAX {
                break;
            }
            docs.clear();
            if gram == of_short {
                take_docs(&mut short, gram, docs);
            } else {
                take_docs(&mut long, gram, docs);
            }
            let shared = ((gram ^ previous).leading_zeros() / 8).min(7) as usize;
            let length = (8 - gram.trailing_zeros() as usize / 8).max(shared + 1);
            out.push((shared << 4 | length) as u8);
            out.extend_from_slice(&gram.to_be_bytes()[shared..length]);
            previous = gram;
            push_varint(out, docs.len() as u64);
            let mut last = 0;
            for doc in &*docs {
                push_varint(out, u64::from(doc - last));
                last = *doc;
            }
        }
        self.short.clear();
        self.long.clear();
    }
}

/// Moves the documents of a gram from the front of sorted pairs to `docs`, without repeats.
fn take_docs(
    pairs: &mut std::iter::Peekable<impl Iterator<Item = (u64, u32)>>,
    gram: u64,
    docs: &mut Vec<u32>,
) {
    while let Some((_, doc)) = pairs.next_if(|pair| pair.0 == gram) {
        if docs.last() != Some(&doc) {
            docs.push(doc);
        }
    }
}

/// Sorts by key and keeps the order of equal keys: radix sort over the bytes that differ anywhere.
fn sort<T: Copy + Default>(pairs: &mut Vec<T>, spare: &mut Vec<T>, key: impl Fn(&T) -> u64) {
    let Some(first) = pairs.first().map(&key) else { return };
    let differing = pairs.iter().fold(0, |sum, pair| sum | (key(pair) ^ first));
    spare.resize(pairs.len(), T::default());
    for shift in (0..64).step_by(8).filter(|shift| differing >> shift & 0xFF != 0) {
        let mut places = [0u32; 256];
        for pair in &*pairs {
            places[(key(pair) >> shift & 0xFF) as usize] += 1;
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for pair in &*pairs {
            let place = &mut places[(key(pair) >> shift & 0xFF) as usize];
            spare[*place as usize] = *pair;
            *place += 1;
        }
        std::mem::swap(pairs, spare);
    }
}

/// Cuts, sorts and spills jobs until there are no more.
fn work(shared: &SharedRuns, jobs: &Mutex<mpsc::Receiver<Job>>) -> io::Result<()> {
    let mut tokenizer = GramTokenizer::default();
    let mut buckets: Vec<Bucket> = (0..shared.buckets).map(|_| Bucket::default()).collect();
    let (mut spare, mut docs, mut encoded) = (Bucket::default(), Vec::new(), Vec::new());
    loop {
        let job = match jobs.lock().expect("a thread that panicked was reported").recv() {
            Ok(job) => job,
            Err(mpsc::RecvError) => return Ok(()),
        };
        let mut from = 0;
        for (doc, (first, second)) in (0..).zip(&job.ends) {
            for text in [&job.text[from..*first], &job.text[*first..*second]] {
                tokenizer.cut(text, &shared.common, |gram| {
                    buckets[usize::from(shared.bucket_of[region(gram)])].push(gram, doc);
                });
            }
            from = *second;
        }
        encoded.clear();
        let mut bounds = Vec::with_capacity(shared.buckets + 1);
        for bucket in &mut buckets {
            bounds.push(encoded.len() as u64);
            bucket.encode(&mut spare, &mut docs, &mut encoded);
        }
        bounds.push(encoded.len() as u64);
        let mut spill = shared.spill.lock().expect("a thread that panicked was reported");
        spill.file.write_all(&encoded)?;
        let base = spill.length;
        bounds.iter_mut().for_each(|bound| *bound += base);
        spill.length += encoded.len() as u64;
        spill.runs.push(Run { first_doc: job.first_doc, bounds });
    }
}

/// Reads what [`Bucket::encode`] wrote.
struct RunReader<'a> {
    bytes: &'a [u8],
    gram: u64,
    first_doc: u32,
}

impl RunReader<'_> {
    /// Moves to the next gram, if there is one.
    fn advance(&mut self) -> bool {
        let Some((&head, rest)) = self.bytes.split_first() else { return false };
        let (shared, length) = (usize::from(head >> 4), usize::from(head & 15));
        let mut gram = [0; 8];
        gram[..shared].copy_from_slice(&self.gram.to_be_bytes()[..shared]);
        gram[shared..length].copy_from_slice(&rest[..length - shared]);
        self.gram = u64::from_be_bytes(gram);
        self.bytes = &rest[length - shared..];
        true
    }

    /// Reads the documents of the gram that [`RunReader::advance`] moved to.
    fn read_docs(&mut self, docs: &mut Vec<u32>) {
        let count = take_varint(&mut self.bytes) as u32;
        let mut doc = self.first_doc;
        docs.extend((0..count).map(|_| {
            doc += take_varint(&mut self.bytes) as u32;
            doc
        }));
    }
}

/// Merges one bucket of all runs, which are in the order of their documents.
fn merge(runs: &[(u32, Vec<u8>)]) -> Block {
    let mut block = Block::default();
    debug_assert!(runs.is_sorted_by_key(|(first_doc, _)| first_doc));
    let mut readers: Vec<RunReader<'_>> = runs
        .iter()
        .map(|(first_doc, bytes)| RunReader { bytes, gram: 0, first_doc: *first_doc })
        .collect();
    let mut heap = BinaryHeap::with_capacity(readers.len());
    for (place, reader) in readers.iter_mut().enumerate() {
        if reader.advance() {
            heap.push(Reverse((reader.gram, place)));
        }
    }
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((gram, place)) = *top;
        let before = block.docs.len();
        readers[place].read_docs(&mut block.docs);
        let count = (block.docs.len() - before) as u32;
        match block.grams.last_mut() {
            Some((last, total)) if last.0 == gram => *total += count,
            _ => block.grams.push((Gram(gram), count)),
        }
        if readers[place].advance() {
            *top = Reverse((readers[place].gram, place));
        } else {
            std::collections::binary_heap::PeekMut::pop(top);
        }
    }
    block
}

/// Hands out buckets to merge and returns their blocks in order. Few blocks wait at a time.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    buckets: usize,
    ahead: usize,
}

struct QueueState {
    claimed: usize,
    taken: usize,
    blocks: Vec<(usize, io::Result<Block>)>,
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

    fn put(&self, bucket: usize, block: io::Result<Block>) {
        self.state.lock().expect("a merging thread panicked").blocks.push((bucket, block));
        self.changed.notify_all();
    }

    /// Waits for the block of a bucket; returns `None` if the queue is closed before.
    fn take(&self, bucket: usize) -> Option<io::Result<Block>> {
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

    #[test]
    fn postings_equal_a_plain_inversion() {
        let texts: Vec<String> = (0u32..3000)
            .map(|n| {
                format!("{:x} the {} 日本{} é{n}", n.wrapping_mul(2_654_435_761), n % 7, n % 11)
            })
            .collect();
        let common = Arc::new(CommonGrams::of_sample(texts.iter().map(String::as_str)));
        let mut expected: BTreeMap<Gram, BTreeSet<u32>> = BTreeMap::new();
        let mut tokenizer = GramTokenizer::default();
        for (doc, text) in texts.iter().enumerate().filter(|(doc, _)| doc % 5 != 0) {
            let second = format!("second {doc}");
            for text in [text, &second] {
                tokenizer.cut(text, &common, |gram| {
                    expected.entry(gram).or_default().insert(doc as u32);
                });
            }
        }
        for threads in [1, 3] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut inverter = Inverter::start(
                folder.path(),
                Arc::clone(&common),
                texts.iter().step_by(10).map(String::as_str),
                100_000,
                Resources { memory: 0, threads },
            )
            .expect("start");
            inverter.job_bytes = 5000;
            for (doc, text) in texts.iter().enumerate().filter(|(doc, _)| doc % 5 != 0) {
                inverter.add(doc as u32, text, Some(&format!("second {doc}"))).expect("add");
            }
            let mut found = Vec::new();
            inverter
                .finish(|block| {
                    let mut docs = block.docs.into_iter();
                    for (gram, count) in block.grams {
                        found.push((
                            gram,
                            docs.by_ref().take(count as usize).collect::<BTreeSet<_>>(),
                        ));
                    }
                    Ok(())
                })
                .expect("finish");
            assert!(found.is_sorted());
            assert_eq!(found, expected.clone().into_iter().collect::<Vec<_>>());
        }
    }
}
