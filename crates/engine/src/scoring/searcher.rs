//! The term and vector indexes of a snapshot's segments, open for ranking.

use std::{ops::Range, sync::Arc};

use crate::source::catalogue::Catalogue;
use verbatim_embed::Model;
use verbatim_index::{Snapshot, TermIndex, VectorParts, Vectors};

/// Roles that are not names of people.
const PLAIN_ROLES: [&str; 6] = ["", "user", "assistant", "tool", "system", "unknown"];

/// Returns the roles that are names of people, sorted.
pub(super) fn people<'a>(roles: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut people: Vec<&str> = roles.filter(|role| !PLAIN_ROLES.contains(role)).collect();
    people.sort_unstable();
    people.dedup();
    people
}

/// A snapshot of a source with everything that ranking needs.
#[derive(Debug)]
pub(crate) struct Searcher {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(super) segments: Vec<SegmentSearcher>,
    /// The roles that are names of people, sorted.
    authors: Vec<String>,
    pub(super) model: Model,
}

#[derive(Clone, Debug)]
pub(super) struct SegmentSearcher {
    pub(super) doc_ids: Range<u32>,
    pub(super) terms: Option<Arc<TermIndex>>,
    pub(super) vectors: Option<Arc<Vectors>>,
    /// The vectors by the encoder, as far as they are made.
    pub(super) encoded: VectorParts,
}

impl Searcher {
    pub(crate) fn open(catalogue: Arc<Catalogue>, model: &Model) -> Searcher {
        let mut segments = Vec::new();
        for segment in catalogue.snapshot().segments() {
            let count = segment.doc_ids.len() as u32;
            segments.push(SegmentSearcher {
                terms: TermIndex::open(segment.folder, count).ok().map(Arc::new),
                vectors: Vectors::open(segment.folder, model.name(), count).map(Arc::new),
                encoded: match model.sentence_encoder() {
                    Some(encoder) => VectorParts::open(segment.folder, encoder.name(), count),
                    None => VectorParts::default(),
                },
                doc_ids: segment.doc_ids,
            });
        }
        let roles = catalogue.snapshot().roles();
        let authors = people(roles.into_iter()).into_iter().map(str::to_owned).collect();
        Searcher { catalogue, segments, authors, model: model.clone() }
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        self.catalogue.snapshot()
    }

    /// Returns the number of messages without a term index, and the number without a vector.
    pub(crate) fn missing(&self) -> (u32, u32) {
        let mut without_terms = 0;
        let mut without_vectors = 0;
        for SegmentSearcher { doc_ids, terms, vectors, .. } in &self.segments {
            let count = doc_ids.len() as u32;
            without_terms += if terms.is_none() { count } else { 0 };
            without_vectors += if vectors.is_none() { count } else { 0 };
        }
        (without_terms, without_vectors)
    }

    /// Returns this searcher with the vectors by the encoder that were made since; `None` if there are none.
    pub(crate) fn extended(&self) -> Option<Searcher> {
        let encoder = self.model.sentence_encoder()?;
        let mut segments = self.segments.clone();
        let folders = self.snapshot().segments();
        let mut is_extended = false;
        for (segment, of_snapshot) in segments.iter_mut().zip(folders) {
            is_extended |= segment.encoded.extend(of_snapshot.folder, encoder.name());
        }
        is_extended.then(|| Searcher {
            catalogue: Arc::clone(&self.catalogue),
            segments,
            authors: self.authors.clone(),
            model: self.model.clone(),
        })
    }

    /// Returns the number of messages whose vectors by the encoder are made, and the number of those that get
    /// one.
    pub(crate) fn encoded(&self) -> (u32, u32) {
        let made = self.segments.iter().map(|segment| segment.encoded.made()).sum();
        let all = self.segments.iter().map(|segment| segment.doc_ids.len() as u32).sum();
        (made, if self.model.sentence_encoder().is_some() { all } else { 0 })
    }

    /// Returns the existing term indexes of segments, with the doc ids of these segments.
    pub(super) fn terms(&self) -> Vec<(Range<u32>, &TermIndex)> {
        let segments = self.segments.iter();
        segments.filter_map(|it| Some((it.doc_ids.clone(), it.terms.as_deref()?))).collect()
    }

    /// Returns the length of a message in terms; `None` if its segment has no term index.
    pub(super) fn length(&self, doc_id: u32) -> Option<u32> {
        let segment = self.segments.iter().find(|segment| segment.doc_ids.contains(&doc_id))?;
        Some(segment.terms.as_ref()?.length(doc_id - segment.doc_ids.start))
    }

    /// Returns the authors of the given messages, or of all messages if `doc_ids` is `None`.
    pub(super) fn authors_of(&self, doc_ids: Option<&[u32]>) -> Vec<&str> {
        let Some(doc_ids) = doc_ids else {
            return self.authors.iter().map(String::as_str).collect();
        };
        people(doc_ids.iter().map(|doc_id| self.snapshot().role(*doc_id)))
    }
}
