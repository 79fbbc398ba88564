//! Makes the vectors of messages by the sentence encoder, which takes a thousand times longer than the other
//! work on a message: part by part, the newest messages first.
//!
//! Nothing waits for it. Each part is used by the next search, work that was interrupted continues after the
//! last part, and texts whose vectors a replaced segment had are not encoded again.
//!
//! Invariant: one thread or process at a time makes the parts of a segment.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{ops::Range, thread};

use crate::error::{Error, Result};
use crate::source::{Source, Sources};
use verbatim_base::{call::Call, lock::lock, private::FileLock};
use verbatim_embed::SentenceEncoder;
use verbatim_index::{
    self as index, KeptVectors, SegmentRef, Snapshot, VectorPartWriter, VectorParts,
};
use verbatim_text::hash::fnv1a;

/// The file in a segment's folder that is locked while a part is made.
const LOCK: &str = "encode.lock";

/// How long a part is worked on, and the maximum number of its messages. The first part is shorter, so that
/// the newest messages are found soon.
const PART: Duration = Duration::from_secs(10);
const FIRST_PART: Duration = Duration::from_secs(2);
const MAX_PART: u32 = 1 << 16;

/// Number of messages that a thread encodes before it looks whether the part is complete.
const SLICE: u32 = 32;

/// Bits of a number in a code.
const BITS: u32 = 2;

/// The maximum number of threads that encode in the background.
const MAX_BACKGROUND_THREADS: usize = 4;

/// The number of messages that lack the encoder's vectors for which a person waits: about a second.
pub const MAX_IN_PASSING: u64 = 500;

/// The number of short messages that one thread encodes in a second.
const SPEED: u64 = 500;

/// The progress of encoding the messages of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Number of messages whose vectors are made.
    pub made: u64,
    /// Number of messages that get a vector: all, or none if the model has no encoder.
    pub total: u64,
}

impl Encoded {
    /// Returns the number of messages whose vectors are not made yet.
    pub fn missing(self) -> u64 {
        self.total.saturating_sub(self.made)
    }

    /// Returns about how long some threads need for the missing vectors, if the messages are short.
    pub fn time_left(self, threads: usize) -> Duration {
        Duration::from_secs(self.missing().div_ceil(SPEED * threads.max(1) as u64))
    }
}

impl Source {
    /// Returns how far the sentence encoder has read the messages in the index.
    pub fn encoded(&self, call: &Call) -> Encoded {
        let encoder = self.model().sentence_encoder();
        let Some((encoder, snapshot)) = encoder.zip(self.latest_index(call)) else {
            return Encoded::default();
        };
        Encoded { made: made(&snapshot, encoder), total: snapshot.messages().into() }
    }

    /// Returns the same for the messages that answers show.
    pub(crate) fn visible_encoded(&self, call: &Call) -> Encoded {
        let all = self.encoded(call);
        let left_out = self.left_out(call).unwrap_or_default();
        let encoder = self.model().sentence_encoder();
        let Some((encoder, snapshot)) = encoder.zip(self.latest_index(call)) else { return all };
        if left_out.is_empty() {
            return all;
        }
        let mut visible = Encoded::default();
        for segment in snapshot.segments() {
            let end_of_made = segment.doc_ids.start + parts(&segment, encoder).made();
            for doc_id in segment.doc_ids.clone().filter(|doc_id| snapshot.is_alive(*doc_id)) {
                if !left_out.contains(&*snapshot.hit(doc_id, false).conversation_id) {
                    visible.total += 1;
                    visible.made += u64::from(doc_id < end_of_made);
                }
            }
        }
        visible
    }

    /// Returns whether a process is making the vectors of messages in the index. It goes on with the messages
    /// that the index gets meanwhile.
    pub fn is_being_encoded(&self, call: &Call) -> bool {
        self.latest_index(call).is_some_and(|snapshot| {
            snapshot.segments().iter().any(|it| FileLock::is_held(&it.folder.join(LOCK)))
        })
    }

    /// Makes the vectors by the sentence encoder that messages lack, the newest messages first. Returns the
    /// number of vectors that were made; stops early if another process makes them.
    pub fn encode(&self, threads: usize, call: &Call, progress: &dyn Fn(Encoded)) -> Result<u64> {
        self.make_parts(threads, u32::MAX, call, progress)
    }

    /// Takes over the vectors that replaced segments and deleted messages have left for texts of the index, the
    /// newest first. Encodes at most `most_new` other texts; the messages after them have their vectors later.
    pub(super) fn take_over_vectors(&self, most_new: u32, call: &Call) -> Result<()> {
        self.make_parts(1, most_new, call, &|_| ()).map(drop)
    }

    /// Returns whether replaced segments have left vectors.
    pub(super) fn has_kept_vectors(&self) -> bool {
        self.index_dir().is_ok_and(|index_dir| KeptVectors::are_in(index_dir.folder()))
    }

    /// Removes the vectors of texts that the index does not hold.
    pub(super) fn prune_vectors(&self, call: &Call) -> Result<()> {
        let index_dir = self.index_dir()?;
        if !self.has_kept_vectors() {
            return Ok(());
        }
        let encoder = self.model().sentence_encoder();
        let Some((encoder, snapshot)) = encoder.zip(self.latest_index(call)) else {
            KeptVectors::remove(index_dir.folder());
            return Ok(());
        };
        let mut needed = HashSet::new();
        for segment in snapshot.segments() {
            let made = parts(&segment, encoder).made();
            for doc_id in segment.doc_ids.start + made..segment.doc_ids.end {
                call.stop.check(index::Error::Stopped)?;
                if !snapshot.is_alive(doc_id) {
                    continue;
                }
                needed.insert(fnv1a(snapshot.beginning(doc_id, encoder.most_read()).as_bytes()));
            }
        }
        Ok(KeptVectors::retain(index_dir.folder(), encoder.name(), &needed)?)
    }

    fn make_parts(
        &self,
        threads: usize,
        most_new: u32,
        call: &Call,
        progress: &dyn Fn(Encoded),
    ) -> Result<u64> {
        let Some(encoder) = self.model().sentence_encoder() else { return Ok(0) };
        let mut done = 0;
        while let Some(snapshot) = self.latest_index(call) {
            let may_encode = AtomicU32::new(most_new);
            let work = PartWork { snapshot: &snapshot, encoder, threads, may_encode, call };
            let made = work.run(progress);
            done += *made.as_ref().unwrap_or(&0);
            // Another process may have replaced the index meanwhile, and removed a segment of this one.
            if self.is_latest(&snapshot, call) || made.is_err() && call.stop.requested() {
                return made.map(|_| done);
            }
        }
        Ok(done)
    }
}

fn parts(segment: &SegmentRef<'_>, encoder: SentenceEncoder) -> VectorParts {
    VectorParts::open(segment.folder, encoder.name(), segment.doc_ids.len() as u32)
}

/// Returns the number of messages whose vectors are made.
fn made(snapshot: &Snapshot, encoder: SentenceEncoder) -> u64 {
    let made = snapshot.segments().into_iter().map(|segment| {
        let start = segment.doc_ids.start;
        u64::from(snapshot.messages_in(start..start + parts(&segment, encoder).made()))
    });
    made.sum()
}

struct PartWork<'a> {
    snapshot: &'a Snapshot,
    encoder: SentenceEncoder,
    threads: usize,
    /// How many texts may still be encoded, whose vectors no replaced segment had. The parts end before the others.
    may_encode: AtomicU32,
    call: &'a Call,
}

impl PartWork<'_> {
    /// Makes all parts that are missing. Returns the number of vectors.
    fn run(&self, progress: &dyn Fn(Encoded)) -> Result<u64> {
        let segments = self.snapshot.segments();
        let Some(index_dir) = segments.first().and_then(|segment| segment.folder.parent()) else {
            return Ok(0);
        };
        let total = u64::from(self.snapshot.messages());
        let mut made = made(self.snapshot, self.encoder);
        let takes_all = self.may_encode.load(Ordering::Relaxed) == u32::MAX;
        let mut kept = None;
        let mut done = 0;
        // The last segment has the newest messages.
        for segment in segments.iter().rev() {
            let mut parts = parts(segment, self.encoder);
            if parts.is_whole() {
                continue;
            }
            let lock = segment.folder.join(LOCK);
            let Some(_lock) = FileLock::try_acquire(&lock, 1)
                .map_err(|error| index::Error::Write { path: lock.clone(), error })?
            else {
                return Ok(done);
            };
            parts.extend(segment.folder, self.encoder.name());
            while !parts.is_complete() {
                let kept =
                    kept.get_or_insert_with(|| KeptVectors::of(self.snapshot, self.encoder.name()));
                let part = self.part(segment, parts.made(), kept, &|encoded| {
                    // Deleted documents are among them.
                    let made = (made + u64::from(encoded)).min(total);
                    progress(Encoded { made, total });
                })?;
                let Some(part) = part else { break };
                let count = part.count() as u64;
                part.append(segment.folder, self.encoder.name(), &parts)?;
                if !parts.extend(segment.folder, self.encoder.name()) {
                    return Err(Error::Indexing { folder: segment.folder.to_owned() });
                }
                made = (made + count).min(total);
                done += count;
            }
            parts.join(segment.folder, self.encoder.name())?;
        }
        if takes_all {
            KeptVectors::remove(index_dir);
        }
        Ok(done)
    }

    /// Encodes the next messages of a segment, from the doc id `first` of the segment, until the time of a part
    /// is over. `progress` gets the number of those that are encoded, on this thread. Returns `None` if none were.
    fn part(
        &self,
        segment: &SegmentRef<'_>,
        first: u32,
        kept: &KeptVectors,
        progress: &dyn Fn(u32),
    ) -> Result<Option<VectorPartWriter>> {
        let count = segment.doc_ids.len() as u32;
        let end = count.min(first.saturating_add(MAX_PART));
        let limit = if first == 0 { FIRST_PART } else { PART };
        let next = AtomicU32::new(first);
        let done = AtomicU32::new(0);
        let slices = Mutex::new(Vec::new());
        let begun = Instant::now();
        let work = |tell: &dyn Fn(u32)| {
            while begun.elapsed() < limit || done.load(Ordering::Relaxed) == 0 {
                let start = next.fetch_add(SLICE, Ordering::Relaxed);
                if start >= end || self.call.stop.requested() {
                    return;
                }
                let offset = segment.doc_ids.start;
                let ids = offset + start..offset + end.min(start + SLICE);
                let encoded = ids.len() as u32;
                let Some(slice) = self.slice(ids, kept) else { return };
                lock(&slices).push((start, slice));
                tell(done.fetch_add(encoded, Ordering::Relaxed) + encoded);
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(|| work(&|_| ()));
            }
            work(progress);
        });
        if done.load(Ordering::Relaxed) > 0 {
            progress(done.load(Ordering::Relaxed));
        }
        self.call.stop.check(index::Error::Stopped)?;
        let mut slices = slices.into_inner().unwrap_or_default();
        slices.sort_unstable_by_key(|(start, _)| *start);
        // The model is not loaded for nothing.
        if slices.first().is_none_or(|(start, _)| *start != first) {
            return Ok(None);
        }
        let mut part = VectorPartWriter::new(self.encoder.mean(), BITS);
        for (start, slice) in slices {
            if start as usize != first as usize + part.count() {
                break;
            }
            part.append_all(&slice);
        }
        Ok(Some(part))
    }

    /// Returns the codes of some messages; `None` if texts must be encoded for them and may not be.
    fn slice(&self, doc_ids: Range<u32>, kept: &KeptVectors) -> Option<VectorPartWriter> {
        let texts: Vec<_> = doc_ids
            .map(|doc_id| {
                if self.snapshot.is_alive(doc_id) {
                    self.snapshot.beginning(doc_id, self.encoder.most_read())
                } else {
                    "".into()
                }
            })
            .collect();
        let hashes: Vec<u64> = texts.iter().map(|text| fnv1a(text.as_bytes())).collect();
        let new: Vec<usize> = (0..texts.len())
            .filter(|at| !texts[*at].trim().is_empty() && kept.get(hashes[*at]).is_none())
            .collect();
        let count = new.len() as u32;
        let left = self.may_encode.load(Ordering::Relaxed);
        if left < u32::MAX {
            self.may_encode.store(left.checked_sub(count)?, Ordering::Relaxed);
        }
        let mut part = VectorPartWriter::new(self.encoder.mean(), BITS);
        let encoded = self.encoder.encode(&new.iter().map(|at| &*texts[*at]).collect::<Vec<_>>());
        let mut encoded = new.into_iter().zip(encoded).peekable();
        let none = vec![0.0; self.encoder.dimensions()];
        for (at, hash) in hashes.into_iter().enumerate() {
            match (encoded.next_if(|(new, _)| *new == at), kept.get(hash)) {
                (Some((_, vector)), _) => part.encode(hash, &vector),
                (None, Some(known)) => part.push(known),
                (None, None) => part.encode(hash, &none),
            }
        }
        Some(part)
    }
}

/// A thread that encodes the messages of all sources in the background. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct EncoderThread {
    call: Call,
    thread: Option<thread::JoinHandle<()>>,
    is_due: Arc<AtomicBool>,
}

impl EncoderThread {
    pub(super) fn start(sources: Arc<Sources>) -> EncoderThread {
        let call = Call::default();
        let is_due = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name("encoder".to_owned()).spawn({
            let call = call.clone();
            let is_due = Arc::clone(&is_due);
            move || {
                lower_priority();
                while !call.stop.requested() {
                    while !is_due.swap(false, Ordering::Relaxed) && !call.stop.requested() {
                        thread::park();
                    }
                    encode_all(&sources, &call);
                }
            }
        });
        // Without the thread, searches use the other vectors.
        EncoderThread { call, thread: thread.ok(), is_due }
    }

    /// Looks for messages to encode.
    pub(super) fn wake(&self) {
        self.is_due.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for EncoderThread {
    fn drop(&mut self) {
        self.call.stop.request();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was reported when it happened.
            drop(thread.join());
        }
    }
}

/// Lowers the priority of this thread and of those that it starts. Elsewhere than on Linux, a process has one
/// priority for all its threads, and questions must not wait.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}

/// Encodes the messages of all sources whose words and other vectors are made.
fn encode_all(sources: &Sources, call: &Call) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    for source in sources.present() {
        let is_ready = source.database().is_some()
            && source.current_index(call).is_ok()
            && !super::enrich::is_lacking(&source, true, call);
        if is_ready && !call.stop.requested() {
            // Without the vectors, searches use the others. A later poll tries again.
            drop(source.encode(threads.min(MAX_BACKGROUND_THREADS), call, &|_| ()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Question, Scope, TestExport};
    use verbatim_index::Resources;

    const TEXTS: [&str; 4] = [
        "The tomatoes need more water in the afternoon, the leaves hang down.",
        "I booked the hotel in Lisbon for three nights.",
        "My landlord wants to raise the rent by ten percent.",
        "   ",
    ];

    fn encode(source: &Source) -> u64 {
        source.encode(2, &Call::default(), &|_| ()).unwrap()
    }

    fn found(export: &TestExport, text: &str) -> Vec<String> {
        let concepts = vec![text.to_owned()];
        let question = Question { concepts, mode: Mode::Both, limit: 3, ..Question::default() };
        let items = export.engine.rank(&question, &Call::default()).unwrap().items;
        items.into_iter().map(|found| found.hit.content.into_owned()).collect()
    }

    #[test]
    fn a_question_in_another_language_finds_what_is_encoded() {
        let export = TestExport::indexed(&TEXTS);
        let source = export.engine.sources().remove(0);
        let question = "Wann habe ich eine Unterkunft in Portugal reserviert?";
        assert_eq!(source.encoded(&Call::default()), Encoded { made: 0, total: 4 });
        assert_ne!(found(&export, "房租要涨价吗？").first().map(String::as_str), Some(TEXTS[2]));
        assert_eq!(encode(&source), 4);
        assert_eq!(source.encoded(&Call::default()), Encoded { made: 4, total: 4 });
        assert_eq!(found(&export, question)[0], TEXTS[1]);
        assert_eq!(found(&export, "房租要涨价吗？")[0], TEXTS[2]);
        assert_eq!(encode(&source), 0);
    }

    #[test]
    fn a_blank_message_does_not_end_the_scale_of_nearness() {
        let export = TestExport::of(&[TEXTS[1]]);
        for (id, text) in [("printer", "The printer needs new ink."), ("blank", "  ")] {
            let sql = "INSERT INTO messages VALUES (?1, '0', 'user', ?2, 1700000100)";
            export.connection.execute(sql, (id, text)).unwrap();
        }
        export.reindex();
        encode(&export.engine.sources().remove(0));
        let scope = Scope { conversation: Some("0".to_owned()), ..Scope::default() };
        let concepts = vec!["a hotel in Lisbon".to_owned()];
        let question =
            Question { concepts, mode: Mode::Vector, scope, limit: 3, ..Question::default() };
        let items = export.engine.rank(&question, &Call::default()).unwrap().items;
        let score = |id| items.iter().find(|it| it.hit.message_id == id).map(|it| it.score);
        // It has a share of the score of the message before it, and none of its own.
        assert!(score("m0") > Some(0.4) && score("printer") < Some(0.3), "{items:?}");
    }

    #[test]
    fn vectors_of_replaced_segments_are_taken_over_or_removed() {
        let export = TestExport::indexed(&TEXTS);
        let source = export.engine.sources().remove(0);
        encode(&source);
        export.add(9, "Please remind me of the dentist on Friday.");
        export.reindex();
        let never = Call::default();
        assert_eq!(source.encoded(&never), Encoded { made: 4, total: 5 });
        assert_eq!(encode(&source), 1);
        let resources = Resources { memory: 64 << 20, threads: 1 };
        assert!(source.merge(resources, &never.stop, &mut |_| ()).unwrap());
        assert_eq!(source.encoded(&never).made, 0);
        let kept = |source: &Source| {
            let folder = source.index_dir().unwrap().folder().to_owned();
            let names = std::fs::read_dir(folder).unwrap().flatten();
            names.filter(|it| it.file_name().to_string_lossy().starts_with("kept-")).count()
        };
        assert!(kept(&source) > 0);
        // Nothing is encoded here.
        source.take_over_vectors(0, &never).unwrap();
        assert_eq!(source.encoded(&never), Encoded { made: 5, total: 5 });
        source.prune_vectors(&never).unwrap();
        assert_eq!(kept(&source), 0);
        let question = "Wann habe ich einen Termin beim Zahnarzt?";
        assert!(found(&export, question)[0].contains("dentist"));
    }

    #[test]
    fn texts_keep_their_vectors_whatever_happens_to_the_index() {
        let export = TestExport::indexed(&TEXTS);
        let source = export.engine.sources().remove(0);
        let never = Call::default();
        encode(&source);
        let change = |sql: &str| {
            export.connection.execute_batch(sql).unwrap();
            export.reindex();
            source.encoded(&never)
        };
        // A message goes, and comes back under another id.
        let gone = change("DELETE FROM messages WHERE id = 'm1'");
        assert_eq!(gone, Encoded { made: 3, total: 3 });
        let text = TEXTS[1];
        let back = change(&format!("INSERT INTO messages VALUES ('x', '1', 'user', '{text}', 1)"));
        assert_eq!(back, Encoded { made: 4, total: 4 });
        // One changes: its vector is missing, and so are those after it in the same new segment.
        let changed = change("UPDATE messages SET content = 'a new text' WHERE id = 'm0'");
        assert_eq!(changed, Encoded { made: 2, total: 4 });
        encode(&source);
        let resources = Resources { memory: 64 << 20, threads: 1 };
        let full = crate::Reindex { resources, full: true };
        source.reindex(full, &never, &mut |_| ()).unwrap();
        assert_eq!(source.encoded(&never), Encoded { made: 4, total: 4 });
        assert!(!KeptVectors::are_in(source.index_dir().unwrap().folder()));
        // A new text does not keep the others from having theirs.
        export
            .connection
            .execute_batch("UPDATE messages SET content = 'b' WHERE id = 'm3'")
            .unwrap();
        source.reindex(full, &never, &mut |_| ()).unwrap();
        assert_eq!(source.encoded(&never), Encoded { made: 4, total: 4 });
        assert!(!KeptVectors::are_in(source.index_dir().unwrap().folder()));
    }

    #[test]
    fn work_that_was_stopped_keeps_whole_parts_only() {
        let export = TestExport::indexed(&TEXTS);
        let source = export.engine.sources().remove(0);
        let call = Call::default();
        call.stop.request();
        assert!(source.encode(1, &call, &|_| ()).is_err());
        assert_eq!(source.encoded(&Call::default()).made, 0);
        assert_eq!(encode(&source), 4);
    }
}
