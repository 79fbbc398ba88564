//! What of a source can be ranked: its conversations, and the words and vectors of its messages.
//!
//! TermIndex and vectors are derived from an index once it is in use. Where a few messages have none
//! yet, the question that comes first makes them; where many have none, it answers from the others
//! and says so.

use std::{
    collections::HashSet,
    ops::Range,
    sync::{Arc, PoisonError},
    thread,
    time::Duration,
};

use crate::{
    embed::{self, Model, Texts},
    engine::{Catalogue, Engine, Error, Reindex, Scope, Source, SourceKind},
    index::{
        self, Resources, SegmentRef, Snapshot, TermIndex, VectorBuilder, VectorOptions, Vectors,
        build_terms,
    },
    model::Stop,
};

/// Messages whose words and vectors a question waits for: about a second.
const FEW: u32 = 20_000;

/// How long a question waits for an index that is no mirror of its database.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks whether another has made the index that it waits for.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a question may use to bring things up to date.
const RESOURCES: Resources = Resources { memory: 128 << 20, threads: 1 };

/// Roles that name no person.
pub(crate) const PLAIN_ROLES: [&str; 6] = ["", "user", "assistant", "tool", "system", "unknown"];

/// A source, ready to be ranked.
#[derive(Debug)]
pub(crate) struct Searcher {
    pub(crate) kind: SourceKind,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) parts: Vec<SegmentSearcher>,
    /// The names of those who speak, where roles are names.
    pub(crate) authors: Vec<String>,
    model: String,
}

/// A part of it.
#[derive(Debug)]
pub(crate) struct SegmentSearcher {
    pub(crate) doc_ids: Range<u32>,
    pub(crate) words: Option<Arc<TermIndex>>,
    pub(crate) vectors: Option<Arc<Vectors>>,
}

/// What came of making words and vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enriched {
    /// Messages whose words were made.
    pub words: u32,
    /// Messages whose vectors were made.
    pub vectors: u32,
}

impl Searcher {
    pub(crate) fn snapshot(&self) -> &Snapshot {
        self.catalogue.snapshot()
    }

    /// How many messages have no words, and how many no vectors.
    fn lacking(&self) -> (u32, u32) {
        let count = |lacks: &dyn Fn(&SegmentSearcher) -> bool| {
            let parts = self.parts.iter().filter(|part| lacks(part));
            parts.map(|part| part.doc_ids.len() as u32).sum()
        };
        (count(&|part| part.words.is_none()), count(&|part| part.vectors.is_none()))
    }

    /// The words of each part that has them.
    pub(crate) fn words(&self) -> Vec<(Range<u32>, &TermIndex)> {
        let words = |part: &'_ SegmentSearcher| part.doc_ids.clone();
        let parts = self.parts.iter();
        parts.filter_map(|part| Some((words(part), part.words.as_deref()?))).collect()
    }

    /// How many words that count a message has; `None` where that was not counted.
    pub(crate) fn length(&self, doc_id: u32) -> Option<u32> {
        let part = self.parts.iter().find(|part| part.doc_ids.contains(&doc_id))?;
        Some(part.words.as_ref()?.length(doc_id - part.doc_ids.start))
    }
}

impl Engine {
    /// Makes the words and the vectors that a source's messages have not, of the index in use, and
    /// the summaries of its conversations.
    ///
    /// `progress` is told how many messages of how many are done.
    pub fn enrich(
        &self,
        source: &Source,
        resources: Resources,
        stop: &Stop,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Enriched, Error> {
        let Some(snapshot) = self.latest_index(source) else { return Ok(Enriched::default()) };
        let model = self.model();
        let mut done = Enriched::default();
        let mut failed = None;
        let total = 2 * u64::from(snapshot.max_doc());
        let mut before = 0;
        for part in snapshot.parts() {
            let count = part.doc_ids.len() as u32;
            if TermIndex::open(part.folder, count).is_err()
                && build_terms(&snapshot, &part, resources, stop, &mut |some| {
                    progress(before + u64::from(some), total);
                })?
            {
                done.words += count;
            }
            before += u64::from(count);
            if failed.is_none() && Vectors::open(part.folder, model.name(), count).is_none() {
                let threads = resources.threads;
                let built = build_vectors(&snapshot, &part, model, threads, stop, &mut |some| {
                    progress(before + u64::from(some), total);
                });
                match built {
                    Ok(()) => done.vectors += count,
                    // A provider that is away keeps no words from being made.
                    Err(error) => failed = Some(error),
                }
            }
            before += u64::from(count);
        }
        self.build_summaries(source, stop)?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(index_dir) = snapshot.parts().first().and_then(|part| part.folder.parent()) {
            let text = |doc_id: u32| snapshot.content(doc_id);
            let texts = Texts { count: snapshot.max_doc(), text: &text };
            model.tidy(index_dir, &texts, stop)?;
        }
        Ok(done)
    }

    /// Returns whether some part of the index in use has no words, or no vectors of our model.
    pub(crate) fn is_lacking(&self, source: &Source) -> bool {
        let Some(snapshot) = self.latest_index(source) else { return false };
        snapshot.parts().into_iter().any(|part| {
            let count = part.doc_ids.len() as u32;
            TermIndex::open(part.folder, count).is_err()
                || Vectors::open(part.folder, self.model().name(), count).is_none()
        })
    }

    /// Returns what of the sources in a scope can be ranked, and what a reader should know of it.
    pub(crate) fn searcher(
        &self,
        scope: &Scope,
        stop: &Stop,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Arc<Searcher>>, Error> {
        let mut all = Vec::new();
        for source in self.sources_of(scope)? {
            let name = source.kind.name();
            let Some(snapshot) = self.freshest(&source, stop, notes)? else {
                notes.push(format!(
                    "the {name} has no index yet and was not ranked; `verbatim reindex` makes one"
                ));
                continue;
            };
            let catalogue = self.catalogue_of(source.kind, &snapshot);
            let known = self.searchers[source.kind as usize]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
                .filter(|known| Arc::ptr_eq(&known.catalogue, &catalogue))
                .filter(|known| known.lacking() == (0, 0) && known.model == self.model().name());
            let searcher = match known {
                Some(searcher) => searcher,
                None => {
                    let searcher = Arc::new(self.open_ready(source.kind, catalogue, stop)?);
                    let mut searchers = self.searchers[source.kind as usize]
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    Arc::clone(searchers.insert(searcher))
                }
            };
            let (words, vectors) = searcher.lacking();
            for (count, what) in [(words, "words"), (vectors, "vectors")] {
                if count > 0 {
                    notes.push(format!(
                        "{count} messages of the {name} have no {what} to rank by yet; \
                         `verbatim reindex` makes them"
                    ));
                }
            }
            all.push(searcher);
        }
        Ok(all)
    }

    /// Returns the index that mirrors a source, brought up to date where that is soon done; else
    /// the one before, with a note.
    fn freshest(
        &self,
        source: &Source,
        stop: &Stop,
        notes: &mut Vec<String>,
    ) -> Result<Option<Arc<Snapshot>>, Error> {
        if let Ok(snapshot) = self.current_index(source) {
            return Ok(Some(snapshot));
        }
        let options = Reindex { resources: RESOURCES, full: false };
        let patience = stop.within(PATIENCE);
        // Whatever hinders it, the index before is better than nothing; the first is waited for,
        // whoever makes it.
        while let Err(Error::Indexing { .. }) =
            self.reindex_source(source, options, &patience, &mut |_| ())
            && self.latest_index(source).is_none()
            && !patience.requested()
        {
            thread::sleep(LOOK_AGAIN);
        }
        if stop.requested() {
            return Err(crate::db::Error::Stopped.into());
        }
        if let Ok(snapshot) = self.current_index(source) {
            return Ok(Some(snapshot));
        }
        let latest = self.latest_index(source);
        if latest.is_some() {
            notes.push(format!(
                "the index of the {} is older than its database: what was written since is not \
                 ranked; `verbatim reindex` brings it up to date",
                source.kind.name()
            ));
        }
        Ok(latest)
    }

    fn open_ready(
        &self,
        kind: SourceKind,
        catalogue: Arc<Catalogue>,
        stop: &Stop,
    ) -> Result<Searcher, Error> {
        let snapshot = catalogue.snapshot();
        let model = self.model();
        let mut parts = Vec::new();
        for part in snapshot.parts() {
            let count = part.doc_ids.len() as u32;
            let is_few = count <= FEW;
            let mut words = TermIndex::open(part.folder, count).ok();
            if words.is_none()
                && is_few
                && build_terms(snapshot, &part, RESOURCES, stop, &mut |_| ()).is_ok()
            {
                words = TermIndex::open(part.folder, count).ok();
            }
            let mut vectors = Vectors::open(part.folder, model.name(), count);
            if vectors.is_none()
                && is_few
                // Nobody who asks waits for a provider to embed what is new.
                && model.is_built_in()
                && build_vectors(snapshot, &part, model, 1, stop, &mut |_| ()).is_ok()
            {
                vectors = Vectors::open(part.folder, model.name(), count);
            }
            if stop.requested() {
                return Err(index::Error::Stopped.into());
            }
            parts.push(SegmentSearcher {
                doc_ids: part.doc_ids,
                words: words.map(Arc::new),
                vectors: vectors.map(Arc::new),
            });
        }
        let authors = authors(snapshot);
        Ok(Searcher { kind, catalogue, parts, authors, model: model.name().to_owned() })
    }
}

/// Makes the vectors of a part.
fn build_vectors(
    snapshot: &Snapshot,
    part: &SegmentRef<'_>,
    model: &Model,
    threads: usize,
    stop: &Stop,
    progress: &mut dyn FnMut(u32),
) -> Result<(), Error> {
    let text = |doc_id: u32| snapshot.content(part.doc_ids.start + doc_id);
    let texts = Texts { count: part.doc_ids.len() as u32, text: &text };
    let cache = part.folder.parent().unwrap_or(part.folder);
    let mut tell = |step: embed::Progress| progress(step.done as u32);
    let encoder = model.encoder(cache, &texts, threads, stop, &mut tell)?;
    let options = VectorOptions { threads, ..VectorOptions::default() };
    let (name, dimensions) = (model.name(), encoder.dimensions());
    let mut builder = VectorBuilder::begin(part.folder, name, dimensions, texts.count, options)?;
    encoder.run(&mut |rows, scales| builder.add(rows, scales).map_err(Error::from))?;
    let total = f64::from(texts.count);
    builder.finish(stop, &mut |share| progress((total * share) as u32))?;
    Ok(())
}

/// Returns the roles that are names, in order.
fn authors(snapshot: &Snapshot) -> Vec<String> {
    let mut roles: HashSet<&str> = HashSet::new();
    let mut before = "";
    for doc_id in 0..snapshot.max_doc() {
        let role = snapshot.role(doc_id);
        if role != before {
            roles.insert(role);
            before = role;
        }
    }
    let mut authors: Vec<String> =
        roles.into_iter().filter(|role| !PLAIN_ROLES.contains(role)).map(str::to_owned).collect();
    authors.sort_unstable();
    authors
}
