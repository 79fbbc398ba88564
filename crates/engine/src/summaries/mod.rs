//! The summaries of conversations, and generated titles for conversations without a title.
//!
//! A summary is made from the first messages of a conversation and cached in a file. The cache is
//! looked up by a fingerprint of the places of these messages, because the messages of a segment never
//! change. After a merge it is looked up by a fingerprint of their texts. So only conversations with new
//! first messages are summarised.
//!
//! Invariant: the file holds only what can be made again from the texts. A missing summary is made at
//! the first request.

mod features;
mod file;

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, UNIX_EPOCH},
};

use crate::{
    error::Result,
    source::{
        About, SourceKind, cache_file,
        catalogue::{Catalogue, Origins},
    },
};
use verbatim_base::{lock::lock, model::Stop};
use verbatim_chats::db::{self, Outline};
use verbatim_embed::{self as embed, Model};
use verbatim_index::{self as index, Snapshot};
use verbatim_text::{
    hash::Fnv1a,
    snippet,
    summary::{self, term_hashes},
    words::Tokenizer,
};

use file::{Fingerprints, SummaryCache};

pub(crate) use features::{Summary, SummaryFeatures};

const FILE: &str = "summaries";

/// The name of the file beside a snapshot that says that its summaries are built, and the file's version.
const BUILT: &str = "summarised";
const MARK_FORMAT: u32 = 1;

/// Number of summaries that a question may wait for, which takes some tenths of a second.
const MAX_IN_A_QUESTION: usize = 500;

/// Number of summaries above which reading the whole cache is faster than making the summaries.
const MANY: usize = 200;

/// Number of texts that are sent to a provider in one request.
const BATCH_SUMMARIES: usize = 64;

/// Time between two writes of the cache file while a provider is making vectors.
const STORE_EVERY: Duration = Duration::from_secs(30);

/// The role of a thread's first message if this message is the summary that a client saved.
pub const SAVED: &str = "system";

/// Number of bytes of a message that its fingerprint covers.
const MAX_FINGERPRINTED: usize = 64 << 10;

/// Maximum number of characters of a summary that a client saved.
const MAX_SAVED: usize = 10_000;

impl Catalogue {
    /// Returns the summary of a conversation. Makes it from the messages at the first request.
    pub(crate) fn summary(&self, conversation: u32) -> &Summary {
        self.summaries.slot(conversation).get_or_init(|| self.summarise(conversation))
    }

    /// Takes the summaries of conversations from the cache, if there are many. Missing summaries are made
    /// at the first request.
    pub(crate) fn take_stored_summaries(&self, conversations: &[u32]) {
        let wanted = conversations.iter().filter(|it| self.summaries.slot(**it).get().is_none());
        let wanted: Vec<u32> = wanted.copied().collect();
        if wanted.len() < MANY {
            return;
        }
        let Some((path, segments)) = self.cache_place() else { return };
        // Vectors are not needed here, so no model is named.
        let cache = SummaryCache::load(&path, "");
        if cache.len() == 0 {
            return;
        }
        for number in wanted {
            let known = cache
                .at_place(self.place_fingerprint(number, &segments))
                .or_else(|| cache.of_text(self.text_fingerprint(number)));
            if let Some(record) = known {
                drop(self.summaries.slot(number).set(record.summary));
            }
        }
    }

    pub(crate) fn about(&self, conversation: u32, origins: Option<&Origins>) -> About {
        let summary = self.summary(conversation);
        About { summary: summary.text.clone(), ..self.about_without_summary(conversation, origins) }
    }

    /// Returns the description of a conversation without its summary, because making a summary is slow.
    pub(crate) fn about_without_summary(
        &self,
        conversation: u32,
        origins: Option<&Origins>,
    ) -> About {
        let (id, title) = (self.id(conversation), self.title(conversation));
        let made = match title.trim() {
            "" => Some(&self.summary(conversation).title).filter(|made| !made.is_empty()),
            _ => None,
        };
        let origin = origins.and_then(|origins| origins.get(id));
        let origin = origin.cloned().unwrap_or_default();
        let outline = Outline {
            id: id.to_owned(),
            title: made.map_or(title, String::as_str).to_owned(),
            turns: self.turns(conversation),
            begun: self.begun(conversation),
            last: self.last(conversation),
        };
        let is_title_made = made.is_some();
        About { is_title_made, ..About::of_outline(self.kind(), outline, origin) }
    }

    fn summarise(&self, conversation: u32) -> Summary {
        let snapshot = self.snapshot();
        let mut doc_ids = self.opening(conversation);
        // The summary needs the messages in reading order.
        doc_ids.sort_by_key(|doc_id| (snapshot.position(*doc_id), snapshot.time(*doc_id)));
        let is_untitled = self.title(conversation).trim().is_empty();
        let turns: Vec<(&str, Cow<'_, str>)> = doc_ids
            .into_iter()
            .map(|doc_id| (snapshot.role(doc_id), snapshot.beginning(doc_id, summary::BYTES_READ)))
            .collect();
        let turns: Vec<(&str, &str)> = turns.iter().map(|(role, text)| (*role, &**text)).collect();
        let (title, text) = summary::of_messages(&turns, is_untitled);
        let text = self.saved_summary(conversation).unwrap_or(text);
        Summary { title, text }
    }

    /// Returns the first messages of a conversation, the earliest first.
    fn opening(&self, conversation: u32) -> Vec<u32> {
        let mut doc_ids = self.doc_ids(conversation);
        doc_ids.sort_unstable_by_key(|doc_id| (self.snapshot().time(*doc_id), Reverse(*doc_id)));
        doc_ids.truncate(summary::TURNS);
        doc_ids
    }

    fn saved_summary(&self, conversation: u32) -> Option<String> {
        if self.kind() != SourceKind::Threads {
            return None;
        }
        let first = *self.reading(conversation).first()?;
        let snapshot = self.snapshot();
        (snapshot.role(first) == SAVED).then(|| {
            let content = snapshot.beginning(first, MAX_FINGERPRINTED);
            let content = snippet::trim(&content);
            snippet::cut(content, MAX_SAVED).unwrap_or(content).to_owned()
        })
    }

    /// Returns a fingerprint of the places of a conversation's first messages. `segments` has the first
    /// doc id and the name of each segment.
    fn place_fingerprint(&self, conversation: u32, segments: &[(u32, String)]) -> u64 {
        let mut hash = Fnv1a::default();
        for doc_id in self.opening(conversation) {
            let at = segments.partition_point(|(first, _)| *first <= doc_id).saturating_sub(1);
            let Some((first, name)) = segments.get(at) else { continue };
            hash.write_text(name);
            hash.write(&(doc_id - first).to_le_bytes());
        }
        hash.finish()
    }

    /// Returns a fingerprint of a conversation's title and the texts of its first messages.
    fn text_fingerprint(&self, conversation: u32) -> u64 {
        let mut hash = Fnv1a::default();
        hash.write_text(self.title(conversation));
        let snapshot = self.snapshot();
        for doc_id in self.opening(conversation) {
            hash.write_text(snapshot.role(doc_id));
            hash.write_text(&snapshot.beginning(doc_id, MAX_FINGERPRINTED));
        }
        hash.finish()
    }

    /// Returns the path of the cache, and the first doc id and the name of each segment.
    fn cache_place(&self) -> Option<(PathBuf, Vec<(u32, String)>)> {
        let segments = self.snapshot().segments();
        let name =
            |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let names = segments.iter().map(|it| (it.doc_ids.start, name(it.folder))).collect();
        Some((cache_path(self.snapshot())?, names))
    }
}

fn cache_path(snapshot: &Snapshot) -> Option<PathBuf> {
    Some(snapshot.segments().first()?.folder.parent()?.join(FILE))
}

/// Returns a text that names a model and a state of the cache file.
fn mark(path: &Path, model: &Model) -> Option<String> {
    let file = fs::metadata(path).ok()?;
    let since = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}", file.len(), since.as_nanos(), model.name()))
}

/// Returns whether [`build`] found or made all summaries of a snapshot, and the cache is as it left it.
pub(crate) fn are_built(snapshot: &Snapshot, model: &Model) -> bool {
    let mark = cache_path(snapshot).and_then(|path| mark(&path, model));
    let kept = snapshot.kept(BUILT, MARK_FORMAT).ok();
    mark.is_some_and(|mark| kept.is_some_and(|kept| *kept == *mark.as_bytes()))
}

/// Removes the cache file of an index, because it contains texts of conversations.
pub(crate) fn remove(index_dir: &Path) -> io::Result<()> {
    match fs::remove_file(index_dir.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes and stores the summaries that the conversations of a catalogue lack, with their vectors. Calls
/// `progress` after each step. If `stop` ends the work, finished summaries are kept.
pub(crate) fn build(
    catalogue: &Catalogue,
    model: &Model,
    stop: &Stop,
    progress: &mut dyn FnMut(),
) -> Result<()> {
    let Some(mut work) = SummaryWork::begin(catalogue, model, true, stop)? else { return Ok(()) };
    work.collect(usize::MAX, stop, progress)?;
    let outcome = work.encode(stop, &mut |work| {
        progress();
        if work.stored.elapsed() < STORE_EVERY { Ok(()) } else { work.store() }
    });
    // After a failure the summaries are stored too, so that no text is sent to a provider twice.
    if work.is_changed {
        work.store()?;
    }
    outcome?;
    if work.failed.is_none()
        && work.without_vector.is_empty()
        && let Some(mark) = mark(&work.path, model)
    {
        cache_file(catalogue.snapshot(), BUILT, MARK_FORMAT, mark.as_bytes());
    }
    *lock(&catalogue.features) = Some(Arc::new(work.features));
    work.failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Returns the features of the summaries in a catalogue. If many summaries are missing, makes only some
/// of them; the features then say how many are missing.
pub(crate) fn features(
    catalogue: &Catalogue,
    model: &Model,
    stop: &Stop,
) -> Result<Arc<SummaryFeatures>> {
    let mut held = lock(&catalogue.features);
    if let Some(known) = held.as_ref().filter(|known| known.missing == 0) {
        return Ok(Arc::clone(known));
    }
    let with_vectors = model.is_built_in();
    let features = match SummaryWork::begin(catalogue, model, with_vectors, stop)? {
        None => SummaryFeatures::default(),
        Some(mut work) => {
            work.collect(MAX_IN_A_QUESTION, stop, &mut || ())?;
            if with_vectors {
                work.encode(stop, &mut |_| Ok(()))?;
            }
            work.features.missing += work.without_vector.len();
            work.features
        }
    };
    Ok(Arc::clone(held.insert(Arc::new(features))))
}

/// The summaries of a catalogue, partly from the cache and partly new.
struct SummaryWork<'a> {
    catalogue: &'a Catalogue,
    model: &'a Model,
    path: PathBuf,
    /// The first doc id and the name of each segment.
    segments: Vec<(u32, String)>,
    cache: SummaryCache,
    dimensions: usize,
    features: SummaryFeatures,
    fingerprints: Vec<Fingerprints>,
    /// Conversations whose summaries must be encoded, with the texts to encode.
    to_encode: Vec<(usize, String)>,
    /// Conversations without a vector. Their summaries are not stored, because a stored summary counts as
    /// complete.
    without_vector: HashSet<usize>,
    is_changed: bool,
    stored: Instant,
    /// The reason why the model made no vectors.
    failed: Option<embed::Error>,
}

impl<'a> SummaryWork<'a> {
    fn begin(
        catalogue: &'a Catalogue,
        model: &'a Model,
        with_vectors: bool,
        stop: &Stop,
    ) -> Result<Option<SummaryWork<'a>>> {
        let Some((path, segments)) = catalogue.cache_place() else { return Ok(None) };
        let cache = SummaryCache::load(&path, model.name());
        let mut failed = None;
        let mut dimensions = cache.dimensions();
        if dimensions == 0 && with_vectors && catalogue.count() > 0 {
            match model.dimensions(stop) {
                Ok(asked) => dimensions = asked,
                Err(error) => failed = Some(error),
            }
        }
        Ok(Some(SummaryWork {
            catalogue,
            model,
            path,
            segments,
            cache,
            dimensions,
            features: SummaryFeatures::new(dimensions),
            fingerprints: Vec::with_capacity(catalogue.count()),
            to_encode: Vec::new(),
            without_vector: HashSet::new(),
            is_changed: false,
            stored: Instant::now(),
            failed,
        }))
    }

    /// Takes all known summaries from the cache, and makes at most `max` of the missing summaries.
    fn collect(&mut self, max: usize, stop: &Stop, progress: &mut dyn FnMut()) -> Result<()> {
        let count = self.catalogue.count();
        let mut made = 0;
        for conversation in 0..count as u32 {
            stop.check(db::Error::Stopped)?;
            progress();
            if self.take_from_cache(conversation, made < max) {
                continue;
            }
            if made < max {
                made += 1;
                self.make(conversation);
            } else {
                self.features.push(&[], &[], |vectors| vectors.push(&[]));
                self.features.missing += 1;
            }
        }
        self.is_changed |= made > 0 || self.cache.len() != count;
        Ok(())
    }

    /// Takes a summary from the cache. Returns whether the cache had it with its vector. Reads messages
    /// only if `may_read` is set.
    fn take_from_cache(&mut self, conversation: u32, may_read: bool) -> bool {
        let place = self.catalogue.place_fingerprint(conversation, &self.segments);
        let by_place = self.cache.at_place(place);
        // A merge moves messages, so their place is new, but the text is known.
        let text = match &by_place {
            Some(record) => record.text,
            None if may_read => self.catalogue.text_fingerprint(conversation),
            None => 0,
        };
        self.fingerprints.push(Fingerprints { place, text });
        self.is_changed |= by_place.is_none();
        let Some(record) = by_place.or_else(|| self.cache.of_text(text)) else { return false };
        drop(self.catalogue.summaries.slot(conversation).set(record.summary.clone()));
        if record.vector.0.len() != self.dimensions {
            return false;
        }
        let (row, scale) = record.vector;
        self.features.push(&record.title_terms, &record.summary_terms, |vectors| {
            vectors.push_row(&row, scale);
        });
        true
    }

    /// Makes the summary of a conversation. Its vector is made later.
    fn make(&mut self, conversation: u32) {
        let summary = self.catalogue.summary(conversation);
        let title = match &*summary.title {
            "" => self.catalogue.title(conversation),
            made => made,
        };
        let tokenizer = Tokenizer::default();
        let terms = [title, &summary.text].map(|text| term_hashes(&tokenizer, text));
        self.features.push(&terms[0], &terms[1], |vectors| vectors.push(&[]));
        if self.dimensions > 0 {
            self.without_vector.insert(conversation as usize);
            self.to_encode.push((conversation as usize, format!("{title}. {}", summary.text)));
        }
    }

    /// Makes the vectors of the new summaries. Calls `after` after each batch.
    fn encode(
        &mut self,
        stop: &Stop,
        after: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if self.dimensions == 0 {
            return Ok(());
        }
        for batch in std::mem::take(&mut self.to_encode).chunks(BATCH_SUMMARIES) {
            stop.check(db::Error::Stopped)?;
            let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
            match self.model.encode(&texts, stop) {
                Ok(vectors) => {
                    for ((at, _), vector) in batch.iter().zip(vectors) {
                        self.features.set(*at, &vector);
                        self.without_vector.remove(at);
                    }
                    self.is_changed = true;
                    after(self)?;
                }
                Err(embed::Error::Stopped) => return Err(db::Error::Stopped.into()),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes the cache file with all summaries that have a vector.
    fn store(&mut self) -> Result<()> {
        let known = self.fingerprints.iter().copied().enumerate();
        let complete: Vec<_> = known
            .filter(|(at, _)| !self.without_vector.contains(at))
            .map(|(at, fingerprints)| (at, fingerprints, self.catalogue.summary(at as u32)))
            .collect();
        let written = file::store(&self.path, self.model.name(), &complete, &self.features);
        written.map_err(|error| index::Error::Write { path: self.path.clone(), error })?;
        (self.stored, self.is_changed) = (Instant::now(), false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    #[test]
    fn fingerprints_are_those_of_the_versions_before() {
        let export = TestExport::indexed(&["red", "grün"]);
        let source = export.engine.sources().remove(0);
        let snapshot = source.current_index(&Stop::never()).unwrap();
        let catalogue = source.catalogue(&snapshot);
        let segments = [(0, "segment-1".to_owned())];
        let fingerprints = |id: &str| {
            let conversation = catalogue.find(id).unwrap();
            let place = catalogue.place_fingerprint(conversation, &segments);
            (place, catalogue.text_fingerprint(conversation))
        };
        // If these fingerprints change, every summary is sent to a provider again.
        assert_eq!(fingerprints("0"), (0x0964_12d4_9c74_f91a, 0xadfa_2866_cff0_65e7));
        assert_eq!(fingerprints("1"), (0xa95e_bedc_f2aa_b5ab, 0xc96b_886f_5f5c_62d7));
    }

    #[test]
    fn many_summaries_come_from_the_cache() {
        let texts: Vec<String> = (0..MANY)
            .map(|it| format!("How do I bake a sourdough bread of {it} grams that is not flat?"))
            .collect();
        let export = TestExport::indexed(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let stop = Stop::never();
        let source = export.engine.sources().remove(0);
        let resources = index::Resources { memory: 64 << 20, threads: 1 };
        source.enrich(resources, &stop, &mut |_, _| ()).unwrap();
        let snapshot = source.current_index(&stop).unwrap();
        let all: Vec<u32> = (0..MANY as u32).collect();
        let made = Catalogue::open(source.kind, Arc::clone(&snapshot));
        let stored = Catalogue::open(source.kind, snapshot);
        stored.take_stored_summaries(&all[1..]);
        assert_eq!(stored.summaries_made(), 0, "a few are made faster than all are read");
        stored.take_stored_summaries(&all);
        assert_eq!(stored.summaries_made(), MANY);
        for number in all {
            assert_eq!(stored.summary(number).text, made.summary(number).text);
        }
    }
}
