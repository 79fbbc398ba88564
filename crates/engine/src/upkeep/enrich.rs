//! Builds the files of ranked search: term indexes and vectors.
//!
//! All of them are derived from an index after it came into use.
//!
//! Invariant: one thread at a time builds the files of a segment. A second thread, or another process, waits,
//! and then finds the files.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::source::Source;
use verbatim_base::call::{Call, Stop};
use verbatim_base::private::FileLock;
use verbatim_embed::{self as embed, Model, Texts};
use verbatim_index::{
    self as index, Resources, SegmentRef, Snapshot, TermIndex, VectorBuilder, VectorOptions,
    Vectors, build_terms,
};

/// The file in a segment's folder that is locked while its words and vectors are built.
const LOCK: &str = "words.lock";

/// Maximum wait of a question for another thread or process that builds the same files.
const QUESTION_WAIT: Duration = Duration::from_secs(2);

/// Maximum number of messages in a segment for which a question builds terms and vectors: about a
/// second of work.
pub(crate) const MAX_IN_A_QUESTION: u32 = 20_000;

/// Steps of progress per message: its terms, its vector, and the grouping of vectors.
const STEPS: u64 = 3;

/// Number of bytes of text that are read before their memory is given back.
const RELEASED: u64 = 64 << 20;

/// Number of bytes of a message that are embedded. Models read even less.
const MAX_EMBEDDED: usize = 1 << 20;

/// How the files of ranked search are built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnrichOptions {
    pub(crate) resources: Resources,
    /// Whether vectors are built too, and not only term indexes.
    pub(crate) with_vectors: bool,
    /// Maximum wait for another thread or process that builds the same files.
    pub(crate) patience: Duration,
}

impl EnrichOptions {
    /// Returns the options that build all files and wait for others.
    pub(crate) fn all(resources: Resources) -> EnrichOptions {
        EnrichOptions { resources, with_vectors: true, patience: Duration::MAX }
    }
}

/// Counts of the messages that got terms and vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enriched {
    /// Number of messages whose terms were indexed.
    pub words: u32,
    /// Number of messages whose vectors were made.
    pub vectors: u32,
}

/// A stage of building the files of ranked search. The stages follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnrichStage {
    /// The terms of messages are indexed.
    Words,
    /// Vectors of messages are made.
    Vectors,
    /// Vectors are put into clusters.
    Groups,
}

/// The progress of building the files of ranked search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnrichProgress {
    /// The current stage.
    pub stage: EnrichStage,
    /// Number of messages that this stage has finished.
    pub done: u64,
    /// All messages.
    pub total: u64,
    /// Number of finished steps of all stages, and number of all steps.
    pub(crate) steps: (u64, u64),
}

impl EnrichProgress {
    /// Returns the share of all stages that is done, from 0 to 1.
    pub fn share(self) -> f64 {
        self.steps.0 as f64 / self.steps.1.max(1) as f64
    }
}

impl Source {
    /// Builds the term indexes and vectors that the index of the source lacks.
    pub fn enrich(
        &self,
        resources: Resources,
        call: &Call,
        progress: &mut dyn FnMut(EnrichProgress),
    ) -> Result<Enriched> {
        enrich(self, EnrichOptions::all(resources), call, progress)
    }

    /// Returns whether no other process has replaced the index in use since a snapshot of it was opened.
    pub(super) fn is_latest(&self, snapshot: &Snapshot, call: &Call) -> bool {
        self.latest_index(call).is_some_and(|latest| latest.name() == snapshot.name())
    }
}

/// Does the same as [`Source::enrich`]. It is an error if another thread or process builds the same files for
/// longer than `options.patience`.
pub(crate) fn enrich(
    source: &Source,
    options: EnrichOptions,
    call: &Call,
    progress: &mut dyn FnMut(EnrichProgress),
) -> Result<Enriched> {
    while let Some(snapshot) = source.latest_index(call) {
        let done = enrich_index(source, &snapshot, options, call, progress);
        // Another process may have replaced the index meanwhile, and removed a segment of this one.
        if done.is_ok() || call.stop.requested() || source.is_latest(&snapshot, call) {
            return done;
        }
    }
    Ok(Enriched::default())
}

/// Reports the stages, and gives back the memory of text that was read.
struct StageReport<'a> {
    snapshot: &'a Snapshot,
    released: u64,
    progress: &'a mut dyn FnMut(EnrichProgress),
}

impl StageReport<'_> {
    fn tell(&mut self, stage: EnrichStage, done: u64, steps: u64) {
        let total = u64::from(self.snapshot.max_doc());
        let parts = steps / (RELEASED * total / self.snapshot.text_bytes().max(1)).max(1);
        if parts > std::mem::replace(&mut self.released, parts) {
            self.snapshot.release();
        }
        (self.progress)(EnrichProgress { stage, done, total, steps: (steps, STEPS * total) });
    }
}

fn lacks_words(segment: &SegmentRef<'_>) -> bool {
    TermIndex::open(segment.folder, segment.doc_ids.len() as u32).is_err()
}

fn lacks_vectors(segment: &SegmentRef<'_>, model: &Model) -> bool {
    Vectors::open(segment.folder, model.name(), segment.doc_ids.len() as u32).is_none()
}

fn enrich_index(
    source: &Source,
    snapshot: &Snapshot,
    options: EnrichOptions,
    call: &Call,
    progress: &mut dyn FnMut(EnrichProgress),
) -> Result<Enriched> {
    let EnrichOptions { resources, with_vectors, patience } = options;
    let model = source.model();
    let stop = &call.stop;
    let mut done = Enriched::default();
    let mut failed = None;
    let mut report = StageReport { snapshot, released: 0, progress };
    let mut before = 0;
    for segment in &snapshot.segments() {
        let count = segment.doc_ids.len() as u64;
        let first = u64::from(segment.doc_ids.start);
        let mut _lock = None;
        if lacks_words(segment) || with_vectors && lacks_vectors(segment, model) {
            _lock = lock(segment.folder, patience, stop)?;
            if _lock.is_none() {
                return Err(Error::Indexing { folder: segment.folder.to_owned() });
            }
        }
        if lacks_words(segment) {
            report.tell(EnrichStage::Words, first, before);
            build_terms(snapshot, segment, resources, stop, &mut |some: u32| {
                let some = u64::from(some);
                report.tell(EnrichStage::Words, first + some, before + some);
            })?;
            done.words += count as u32;
        }
        before += count;
        if failed.is_none() && with_vectors && lacks_vectors(segment, model) {
            report.tell(EnrichStage::Vectors, first, before);
            let threads = resources.threads;
            let made =
                build_vectors(snapshot, segment, model, threads, stop, &mut |some: u64| match some
                    .checked_sub(count)
                {
                    Some(grouped) => {
                        report.tell(EnrichStage::Groups, first + grouped, before + some);
                    }
                    None => report.tell(EnrichStage::Vectors, first + some, before + some),
                });
            match made {
                Ok(()) => {
                    report.tell(EnrichStage::Groups, first + count, before + 2 * count);
                    done.vectors += count as u32;
                }
                // The terms of the next segments are built even if a provider does not answer.
                Err(error) => failed = Some(error),
            }
        }
        before += 2 * count;
    }
    if with_vectors && let Ok(snapshot) = source.current_index(call) {
        // Makes and keeps the table of conversations, so that the first list need not wait for it.
        source.catalogue(&snapshot);
    }
    failed.map_or(Ok(done), Err)
}

/// Removes the vectors of texts that the index of a source does not hold.
pub(crate) fn prune_caches(source: &Source, call: &Call) -> Result<()> {
    let Some(snapshot) = source.latest_index(call) else { return Ok(()) };
    source.prune_vectors(call)?;
    let texts = Texts {
        count: snapshot.max_doc(),
        text: &|doc_id| snapshot.beginning(doc_id, MAX_EMBEDDED),
    };
    Ok(embed::prune_caches(source.index_dir()?.folder(), &texts, &call.stop)?)
}

/// Returns whether a segment of the index in use lacks a term index or, if `with_vectors`, vectors of
/// the current model.
pub(crate) fn is_lacking(source: &Source, with_vectors: bool, call: &Call) -> bool {
    let Some(snapshot) = source.latest_index(call) else { return false };
    snapshot.segments().iter().any(|segment| {
        lacks_words(segment) || with_vectors && lacks_vectors(segment, source.model())
    })
}

/// Builds missing terms and vectors of small segments, for a question that comes before the maintainer.
/// If something cannot be built, ranking works without it.
pub(crate) fn enrich_small(snapshot: &Snapshot, model: &Model, resources: Resources, stop: &Stop) {
    // Questions do not wait for a provider to embed new messages.
    let with_vectors = model.is_built_in();
    for segment in &snapshot.segments() {
        if segment.doc_ids.len() > MAX_IN_A_QUESTION as usize || stop.requested() {
            continue;
        }
        if !(lacks_words(segment) || with_vectors && lacks_vectors(segment, model)) {
            continue;
        }
        let Ok(Some(_lock)) = lock(segment.folder, QUESTION_WAIT, stop) else { continue };
        if lacks_words(segment) {
            drop(build_terms(snapshot, segment, resources, stop, &mut |_| ()));
        }
        if with_vectors && lacks_vectors(segment, model) {
            drop(build_vectors(snapshot, segment, model, 1, stop, &mut |_| ()));
        }
    }
}

/// Waits until no other thread or process builds files of a segment; returns `None` if that takes longer than
/// `patience`.
fn lock(folder: &Path, patience: Duration, stop: &Stop) -> Result<Option<FileLock>, Error> {
    /// The number of attempts between two checks of the stop.
    const ATTEMPTS: u32 = 5;

    let begun = Instant::now();
    loop {
        stop.check(index::Error::Stopped)?;
        let lock = FileLock::try_acquire(&folder.join(LOCK), ATTEMPTS)
            .map_err(|error| index::Error::Write { path: folder.to_owned(), error })?;
        if lock.is_some() || begun.elapsed() >= patience {
            return Ok(lock);
        }
    }
}

/// Builds the vectors of a segment. `progress` gets the number of finished steps, two for each message.
fn build_vectors(
    snapshot: &Snapshot,
    segment: &SegmentRef<'_>,
    model: &Model,
    threads: usize,
    stop: &Stop,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let texts = Texts {
        count: segment.doc_ids.len() as u32,
        text: &|doc_id| snapshot.beginning(segment.doc_ids.start + doc_id, MAX_EMBEDDED),
    };
    let cache = segment.folder.parent().unwrap_or(segment.folder);
    let mut embedded = |step: embed::EmbedProgress| progress(step.done);
    let encoder = model.encoder(cache, &texts, threads, stop, &mut embedded)?;
    let average = snapshot.text_bytes() / u64::from(snapshot.max_doc().max(1));
    let is_built_in = model.is_built_in();
    let options =
        if is_built_in { VectorOptions::codes(average) } else { VectorOptions::default() };
    let options = VectorOptions { threads, ..options };
    let dimensions = encoder.dimensions();
    let mut builder =
        VectorBuilder::begin(segment.folder, model.name(), dimensions, texts.count, options)?;
    encoder.run(&mut |rows, scales| builder.add(rows, scales).map_err(Error::from))?;
    let count = f64::from(texts.count);
    builder.finish(stop, &mut |share| progress((count * (1.0 + share)) as u64))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::TestExport;

    #[test]
    fn threads_that_begin_at_once_make_each_file_once() {
        let export = TestExport::indexed(&["red", "green and blue", "a longer text about trees"]);
        let source = export.engine.sources().remove(0);
        let resources = Resources { memory: 64 << 20, threads: 1 };
        let options = EnrichOptions::all(resources);
        let make = || enrich(&source, options, &Call::default(), &mut |_| ()).unwrap();
        let made = thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(make));
            threads.map(|thread| thread.join().unwrap())
        });
        let sum = |count: fn(&Enriched) -> u32| made.iter().map(count).sum::<u32>();
        assert_eq!((sum(|it| it.words), sum(|it| it.vectors)), (3, 3), "{made:?}");
    }

    #[test]
    fn a_maintainer_does_not_wait_for_words_that_another_process_makes() {
        let export = TestExport::indexed(&["red"]);
        let source = export.engine.sources().remove(0);
        let snapshot = source.latest_index(&Call::default()).unwrap();
        let folder = snapshot.segments()[0].folder.to_owned();
        let lock = FileLock::try_acquire(&folder.join(LOCK), 1).unwrap();
        let mut maintainer = export.engine.upkeep().maintainer();
        let mut told = Vec::new();
        let (begun, call) = (Instant::now(), Call::default());
        let next = maintainer.poll(&call, &mut |event| told.push(format!("{event:?}")));
        assert!(next.is_some() && begun.elapsed() < Duration::from_secs(5), "{next:?}, {told:?}");
        assert!(told.is_empty() && is_lacking(&source, true, &call), "{told:?}");
        drop(lock);
        maintainer.poll(&call, &mut |_| ());
        assert!(!is_lacking(&source, true, &call));
    }

    #[test]
    fn each_stage_tells_how_far_it_is() {
        let export = TestExport::indexed(&["red", "green and blue", "a longer text about trees"]);
        let source = export.engine.sources().remove(0);
        let resources = Resources { memory: 64 << 20, threads: 1 };
        let mut told: Vec<EnrichProgress> = Vec::new();
        let mut tell = |now| told.push(now);
        enrich(&source, EnrichOptions::all(resources), &Call::default(), &mut tell).unwrap();
        assert!(told.is_sorted_by_key(|now| now.steps.0), "{told:?}");
        assert!(told.iter().all(|now| now.done <= now.total && now.total == 3), "{told:?}");
        let last = told.pop().unwrap();
        assert_eq!((last.done, last.share()), (3, 1.0));
        assert!(told.iter().any(|now| now.stage == EnrichStage::Words), "{told:?}");
        assert!(told.iter().any(|now| now.stage == EnrichStage::Vectors), "{told:?}");
    }
}
