//! The filters for the messages that a concept ranks: the scope, and the concept's phrases.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};

use super::formula::keep_best;
use super::scorer::{Concept, Similarity, VectorCandidates, VectorWeights};
use super::searcher::{Searcher, SegmentSearcher};
use crate::error::Result;
use crate::source::{Scope, catalogue::Origins};
use verbatim_base::call::{Call, Stop};
use verbatim_embed::dot;
use verbatim_index::{self as index, DocSet, TermIndex, Vectors, holding};
use verbatim_text::query::{PhraseSearch, Query};
use verbatim_text::words::Tokenizer;

#[derive(Debug)]
pub(super) struct ScopeFilter {
    /// For each segment, the doc ids within the dates.
    intervals: Vec<Range<u32>>,
    /// The doc ids of the scope's conversation, ascending.
    pub(super) conversation: Option<Vec<u32>>,
    /// The numbers of the conversations that the scope names, or of its project or session.
    conversations: Option<HashSet<u32>>,
    roles: Vec<String>,
}

impl ScopeFilter {
    pub(super) fn new(searcher: &Searcher, scope: &Scope, origins: Option<&Origins>) -> Self {
        let segments = searcher.segments.iter();
        let catalogue = &searcher.catalogue;
        let conversation = scope.conversation.as_ref().map(|id| {
            let number = catalogue.find(id);
            let mut doc_ids = number.map_or(Vec::new(), |number| catalogue.doc_ids(number));
            doc_ids.sort_unstable();
            doc_ids
        });
        let of_origin = Scope { conversation: None, ..scope.any_message() };
        let is_narrow = scope.has_origin() || scope.has_names();
        ScopeFilter {
            intervals: segments.map(|it| interval(searcher, &it.doc_ids, scope)).collect(),
            conversation,
            conversations: is_narrow
                .then(|| catalogue.within(&of_origin, origins).into_iter().collect()),
            roles: scope.roles.clone(),
        }
    }

    /// Returns whether a message is in the scope, and in the scope's conversation if it names one.
    pub(super) fn has(&self, searcher: &Searcher, doc_id: u32) -> bool {
        let of_conversation = self.conversation.as_ref();
        of_conversation.is_none_or(|doc_ids| doc_ids.binary_search(&doc_id).is_ok())
            && self.accepts(searcher, doc_id)
    }

    pub(super) fn accepts(&self, searcher: &Searcher, doc_id: u32) -> bool {
        let snapshot = searcher.snapshot();
        (self.roles.is_empty() || self.roles.iter().any(|role| role == snapshot.role(doc_id)))
            && snapshot.is_alive(doc_id)
            && self.intervals.iter().any(|interval| interval.contains(&doc_id))
            && self.conversations.as_ref().is_none_or(|wanted| {
                let conversation = searcher.catalogue.conversation(doc_id);
                conversation.is_some_and(|conversation| wanted.contains(&conversation))
            })
    }
}

/// Returns the doc ids of a segment that are within the dates of a scope. Within a segment the
/// newest message comes first, and messages without a time come last.
fn interval(searcher: &Searcher, doc_ids: &Range<u32>, scope: &Scope) -> Range<u32> {
    let snapshot = searcher.snapshot();
    let start = match scope.until {
        Some(until) => first_past(doc_ids, |id| snapshot.time(id).is_none_or(|it| it <= until)),
        None => doc_ids.start,
    };
    let end = match (scope.since, scope.until) {
        (Some(since), _) => first_past(doc_ids, |id| snapshot.time(id).is_none_or(|it| it < since)),
        (None, Some(_)) => first_past(doc_ids, |id| snapshot.time(id).is_none()),
        (None, None) => doc_ids.end,
    };
    start..end.max(start)
}

/// Returns the first doc id that is past a point in the order, or the end.
fn first_past(doc_ids: &Range<u32>, is_past: impl Fn(u32) -> bool) -> u32 {
    let mut low = doc_ids.start;
    let mut high = doc_ids.end;
    while low < high {
        let middle = low.midpoint(high);
        if is_past(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Returns the messages in a scope whose texts contain a phrase, in result order, at most `most`.
pub(super) fn containing(
    searcher: &Searcher,
    scope: &ScopeFilter,
    PhraseSearch { request, required }: &PhraseSearch,
    most: usize,
    call: &Call,
) -> Result<Vec<u32>> {
    let snapshot = searcher.snapshot();
    let mut doc_ids = Vec::new();
    if most == 0 {
        return Ok(doc_ids);
    }
    snapshot.search_texts(request, &call.stop, &mut |doc_id| {
        if scope.has(searcher, doc_id)
            && required.as_ref().is_none_or(|it| it.allows(&snapshot.content(doc_id)))
        {
            doc_ids.push(doc_id);
        }
        if doc_ids.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(doc_ids)
}

pub(super) struct ConceptFilter<'a> {
    pub(super) searcher: &'a Searcher,
    scope: &'a ScopeFilter,
    pub(super) terms: Vec<(Range<u32>, &'a TermIndex)>,
    /// The only possible doc ids, ascending: those of one conversation, or those with the quoted phrases.
    /// `None` if there is no such restriction.
    doc_ids: Option<Vec<u32>>,
    /// The messages with the quoted phrases, in result order; `None` if nothing is quoted.
    pub(super) phrased: Option<Vec<u32>>,
    excluded: HashSet<u32>,
    /// The excluded words that the text of each message must be checked for.
    query: Option<Query>,
    /// Exact cosines that replace estimates of the index.
    exact: RefCell<HashMap<u32, f32>>,
}

impl<'a> ConceptFilter<'a> {
    pub(super) fn new(
        searcher: &'a Searcher,
        scope: &'a ScopeFilter,
        concept: &'a Concept,
        call: &Call,
    ) -> Result<ConceptFilter<'a>> {
        let query = &concept.query;
        let mut filter = ConceptFilter {
            searcher,
            scope,
            terms: searcher.terms(),
            doc_ids: scope.conversation.clone(),
            phrased: None,
            excluded: HashSet::new(),
            query: None,
            exact: RefCell::default(),
        };
        for phrase in &query.phrases {
            let with_phrase = filter.quoted(phrase, call)?;
            let mut ascending = with_phrase.clone();
            ascending.sort_unstable();
            match (&mut filter.doc_ids, &mut filter.phrased) {
                (Some(doc_ids), Some(phrased)) => {
                    doc_ids.retain(|doc_id| ascending.binary_search(doc_id).is_ok());
                    phrased.retain(|doc_id| ascending.binary_search(doc_id).is_ok());
                }
                _ => {
                    filter.doc_ids = Some(ascending);
                    filter.phrased = Some(with_phrase);
                }
            }
        }
        for phrase in &query.excluded_phrases {
            let excluded = filter.quoted(phrase, call)?;
            filter.excluded.extend(excluded);
        }
        let has_all_terms = searcher.segments.iter().all(|segment| segment.terms.is_some());
        let tokenizer = Tokenizer::default();
        for phrase in &query.excluded {
            let required = tokenizer.required(phrase);
            if required.is_empty() || !has_all_terms {
                filter.query.get_or_insert_default().excluded.push(phrase.clone());
                continue;
            }
            let phrase = Query { excluded: vec![phrase.clone()], ..Query::default() };
            let mut doc_ids = holding(&filter.terms, &required, &call.stop)?;
            doc_ids.retain(|doc_id| !phrase.allows(&searcher.snapshot().content(*doc_id)));
            filter.excluded.extend(doc_ids);
        }
        Ok(filter)
    }

    /// Returns the messages in the scope with a quoted phrase, in result order.
    fn quoted(&self, phrase: &str, call: &Call) -> Result<Vec<u32>> {
        containing(self.searcher, self.scope, &PhraseSearch::quoted(phrase), usize::MAX, call)
    }

    pub(super) fn is_phrased(&self, doc_id: u32) -> bool {
        let doc_ids = self.doc_ids.as_ref().filter(|_| self.phrased.is_some());
        doc_ids.is_none_or(|doc_ids| doc_ids.binary_search(&doc_id).is_ok())
    }

    pub(super) fn accepts(&self, doc_id: u32) -> bool {
        self.scope.accepts(self.searcher, doc_id)
            && !self.excluded.contains(&doc_id)
            && self.is_phrased(doc_id)
            && (self.query.as_ref())
                .is_none_or(|query| query.allows(&self.searcher.snapshot().content(doc_id)))
    }

    pub(super) fn doc_set(&self) -> DocSet<'_> {
        match &self.doc_ids {
            Some(doc_ids) => DocSet::DocIds(doc_ids),
            None => DocSet::Intervals(&self.scope.intervals),
        }
    }

    /// Returns the messages that are most similar to a concept by their vectors, the nearest first; then those
    /// of the messages that the encoder has not read yet.
    pub(super) fn nearest(
        &self,
        concept: &Concept,
        weights: VectorWeights,
        count: usize,
        stop: &Stop,
    ) -> Result<VectorCandidates> {
        let mut doc_ids = match &self.doc_ids {
            Some(doc_ids) => {
                doc_ids.iter().copied().filter(|doc_id| self.accepts(*doc_id)).collect()
            }
            None => self.nearest_by_each(concept, count)?,
        };
        doc_ids.sort_unstable();
        doc_ids.dedup();
        let similarities = self.similarities(concept, weights, &doc_ids)?;
        let mut all = VectorCandidates::default();
        for (doc_id, similarity) in doc_ids.into_iter().zip(similarities) {
            let Some(Similarity { cosine, is_partial }) = similarity else { continue };
            let list = if is_partial { &mut all.not_encoded } else { &mut all.messages };
            list.push((doc_id, cosine));
        }
        for found in [&mut all.messages, &mut all.not_encoded] {
            keep_best(found, count);
            self.score_again(concept, weights, found, stop)?;
            keep_best(found, count);
        }
        Ok(all)
    }

    fn nearest_by_each(&self, concept: &Concept, count: usize) -> index::Result<Vec<u32>> {
        let mut found = Vec::new();
        for segment in &self.searcher.segments {
            let first = segment.doc_ids.start;
            if let (Some(vectors), Some(vector)) = (&segment.vectors, &concept.vector) {
                let best = vectors.top_k(vector, count, |id| self.accepts(first + id))?;
                found.extend(best.iter().map(|scored| first + scored.doc_id));
            }
            if let Some(encoded) = &concept.encoded {
                let best = segment.encoded.top_k(encoded, count, |id| self.accepts(first + id))?;
                found.extend(best.iter().map(|scored| first + scored.doc_id));
            }
        }
        Ok(found)
    }

    /// Replaces the estimated cosines of the first messages by exact cosines.
    fn score_again(
        &self,
        concept: &Concept,
        weights: VectorWeights,
        found: &mut [(u32, f32)],
        stop: &Stop,
    ) -> Result<()> {
        let segments = &self.searcher.segments;
        let vectors = segments.iter().filter_map(|segment| segment.vectors.as_deref());
        let count = vectors.map(Vectors::scored_again).max().unwrap_or(0);
        let (1.., Some(most_read), Some(vector)) =
            (count, self.searcher.model.most_read(), &concept.vector)
        else {
            return Ok(());
        };
        let mut first: Vec<u32> = found.iter().take(count).map(|(doc_id, _)| *doc_id).collect();
        for doc_id in &first {
            let text = self.searcher.snapshot().beginning(*doc_id, most_read);
            let Some(of_text) = self.searcher.model.encode(&[&text], stop)?.pop() else { continue };
            self.exact.borrow_mut().insert(*doc_id, dot(vector, &of_text));
        }
        first.sort_unstable();
        let similarities = self.similarities(concept, weights, &first)?;
        for (doc_id, cosine) in found.iter_mut().take(count) {
            let at = first.binary_search(doc_id).ok();
            *cosine = at.and_then(|at| similarities[at]).map_or(*cosine, |it| it.cosine);
        }
        Ok(())
    }

    /// Returns the similarity of each message to a concept; `None` for messages without a vector. `doc_ids` are
    /// ascending.
    pub(super) fn similarities(
        &self,
        concept: &Concept,
        weights: VectorWeights,
        doc_ids: &[u32],
    ) -> index::Result<Vec<Option<Similarity>>> {
        let by_model = match &concept.vector {
            Some(vector) => self.cosines(vector, doc_ids)?,
            None => vec![None; doc_ids.len()],
        };
        let Some(encoded) = &concept.encoded else {
            let all = by_model.into_iter();
            return Ok(all
                .map(|it| it.map(|cosine| Similarity { cosine, is_partial: false }))
                .collect());
        };
        let by_encoder =
            self.by_segment(doc_ids, |segment, here| segment.encoded.scores(encoded, here))?;
        let VectorWeights { model, encoder } = weights;
        let means = by_model.into_iter().zip(by_encoder).map(|(by_model, by_encoder)| {
            // The cosine -1 means that the encoder has read the message, and that it has no vector.
            let cosine = match (by_model, by_encoder.filter(|cosine| *cosine > -1.0)) {
                (Some(one), Some(other)) => (model * one + encoder * other) / (model + encoder),
                (one, other) => other.or(one)?,
            };
            Some(Similarity { cosine, is_partial: by_encoder.is_none() })
        });
        Ok(means.collect())
    }

    /// Returns the cosine of `vector` and each message's vector by the model; `None` for messages without it.
    fn cosines(&self, vector: &[f32], doc_ids: &[u32]) -> index::Result<Vec<Option<f32>>> {
        let mut cosines = self.by_segment(doc_ids, |segment, here| {
            let Some(vectors) = &segment.vectors else { return Ok(vec![None; here.len()]) };
            let scores = vectors.scores(vector, here)?.into_iter();
            Ok(scores.map(|score| Some(score).filter(|score| *score > -1.0)).collect())
        })?;
        let exact = self.exact.borrow();
        for (cosine, doc_id) in cosines.iter_mut().zip(doc_ids) {
            *cosine = cosine.map(|cosine| exact.get(doc_id).copied().unwrap_or(cosine));
        }
        Ok(cosines)
    }

    /// Returns what `cosines` returns for the messages of each segment, which it gets as places in the segment.
    /// `doc_ids` are ascending.
    fn by_segment(
        &self,
        doc_ids: &[u32],
        cosines: impl Fn(&SegmentSearcher, &[u32]) -> index::Result<Vec<Option<f32>>>,
    ) -> index::Result<Vec<Option<f32>>> {
        let mut all = vec![None; doc_ids.len()];
        for segment in &self.searcher.segments {
            let [start, end] = [segment.doc_ids.start, segment.doc_ids.end]
                .map(|least| doc_ids.partition_point(|doc_id| *doc_id < least));
            let here: Vec<u32> =
                doc_ids[start..end].iter().map(|id| id - segment.doc_ids.start).collect();
            all[start..end].copy_from_slice(&cosines(segment, &here)?);
        }
        Ok(all)
    }
}
