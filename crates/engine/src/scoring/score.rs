//! Scores of the messages of an index, by the formula of [`super::formula`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::{borrow::Cow, sync::Arc};

use super::filter::{ConceptFilter, ScopeFilter, containing};
use super::formula::{self, Formula, Scores, Surroundings, keep_best};
use super::scorer::{Concept, ConceptScorer, Coverage, Scale, Scorer, Statistics, TermCandidates};
use super::scorer::{TitleQuery, TitleScores, VectorCandidates, VectorWeights};
use super::searcher::Searcher;
use crate::error::Result;
use crate::source::catalogue::{Origins, TitleTerms};
use crate::source::{About, Scope};
use verbatim_base::call::{Call, Stop};
use verbatim_base::model::Hit;
use verbatim_chats::db;
use verbatim_index::{self as index, Bm25, DocSet, Norms, TermIndex, WeightedTerm, holding};
use verbatim_text::{query::PhraseSearch, summary::SUMMARY_WEIGHT, words::Tokenizer};

/// The number of terms of a query whose spread over conversations is looked at.
const MAX_COVERING: usize = 32;

/// The number of conversations with the most terms whose titles are looked at.
const MAX_TITLED: usize = 4_000;

/// The number of conversations with the most terms whose messages are scored, and of those messages.
const MAX_COVERED: usize = 100;
const MAX_COVERING_MESSAGES: usize = 2_000;

#[derive(Debug)]
pub(crate) struct IndexedScorer {
    searcher: Arc<Searcher>,
    origins: Option<Arc<Origins>>,
    scope: Scope,
    filter: ScopeFilter,
}

impl IndexedScorer {
    pub(crate) fn new(
        searcher: Arc<Searcher>,
        scope: &Scope,
        origins: Option<Arc<Origins>>,
    ) -> IndexedScorer {
        let filter = ScopeFilter::new(&searcher, scope, origins.as_deref());
        IndexedScorer { searcher, origins, scope: scope.clone(), filter }
    }
}

impl Scorer for IndexedScorer {
    fn missing(&self) -> (u32, u32) {
        self.searcher.missing()
    }

    fn encoded(&self) -> (u32, u32) {
        self.searcher.encoded()
    }

    fn authors(&self) -> Vec<&str> {
        self.searcher.authors_of(self.filter.conversation.as_deref())
    }

    fn statistics(&self, terms: &[String]) -> Result<Statistics> {
        let mut statistics =
            Statistics { frequencies: vec![0; terms.len()], ..Statistics::default() };
        if let Some(doc_ids) = &self.filter.conversation {
            statistics.frequencies = index::frequencies(&self.searcher.terms(), terms, doc_ids)?;
            statistics.messages = doc_ids.len() as u64;
            let lengths = doc_ids.iter().map(|doc_id| self.searcher.length(*doc_id).unwrap_or(1));
            statistics.tokens = lengths.map(u64::from).sum();
            return Ok(statistics);
        }
        for (_, index) in self.searcher.terms() {
            let (messages, tokens) = TermIndex::size(index);
            statistics.messages += u64::from(messages);
            statistics.tokens += tokens;
            for (sum, term) in statistics.frequencies.iter_mut().zip(terms) {
                *sum += index.frequency(term)?;
            }
        }
        Ok(statistics)
    }

    fn has_term(&self, term: &str) -> Result<bool> {
        for (_, index) in self.searcher.terms() {
            if index.frequency(term)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_in_scope(&self, terms: &[String]) -> Result<Vec<bool>> {
        let segments = self.searcher.terms();
        let mut has = Vec::new();
        for term in terms {
            has.push(if self.scope.is_open() {
                self.has_term(term)?
            } else {
                let with_term = holding(&segments, std::slice::from_ref(term), &Stop::never())?;
                with_term.into_iter().any(|doc_id| self.filter.has(&self.searcher, doc_id))
            });
        }
        Ok(has)
    }

    fn corrections(&self, term: &str, found: &mut BTreeMap<String, u32>) -> Result<()> {
        for (doc_ids, index) in self.searcher.terms() {
            let mut similar = Vec::new();
            index
                .slips(term, &mut |other, frequency| similar.push((other.to_owned(), frequency)))?;
            for (other, mut frequency) in similar {
                if !self.scope.is_open() {
                    // The terms in the index include those of excluded conversations.
                    let segment = [(doc_ids.clone(), index)];
                    let mut with_term =
                        holding(&segment, std::slice::from_ref(&other), &Stop::never())?;
                    with_term.retain(|doc_id| self.filter.has(&self.searcher, *doc_id));
                    frequency = with_term.len() as u32;
                }
                if frequency > 0 {
                    *found.entry(other).or_default() += frequency;
                }
            }
        }
        Ok(())
    }

    fn containing(&self, phrase: &PhraseSearch, most: usize, call: &Call) -> Result<Vec<u32>> {
        containing(&self.searcher, &self.filter, phrase, most, call)
    }

    fn open<'a>(
        &'a self,
        concept: &'a Concept,
        call: &Call,
    ) -> Result<Box<dyn ConceptScorer + 'a>> {
        let filter = ConceptFilter::new(&self.searcher, &self.filter, concept, call)?;
        let norms = formula::norms(concept.average);
        Ok(Box::new(IndexedConceptScorer { filter, concept, norms }))
    }

    fn titles(&self, queries: &[TitleQuery], call: &Call) -> Result<TitleScores> {
        let catalogue = &self.searcher.catalogue;
        let titles = catalogue.title_terms(&call.stop)?;
        let conversations = catalogue.within(&self.scope, self.origins.as_deref());
        let terms = queries.iter().map(|query| {
            conversations.iter().map(|it| weight_in(query, &titles[*it as usize])).collect()
        });
        Ok(TitleScores { terms: terms.collect(), conversations })
    }

    fn conversation(&self, doc_id: u32) -> Option<u32> {
        self.searcher.catalogue.conversation(doc_id)
    }

    fn about(&self, conversation: u32) -> About {
        self.searcher.catalogue.about(conversation, self.origins.as_deref(), true)
    }

    fn hit(&self, doc_id: u32) -> Hit<'_> {
        self.searcher.snapshot().hit(doc_id, false)
    }

    fn content(&self, doc_id: u32) -> Cow<'_, str> {
        self.searcher.snapshot().content(doc_id)
    }

    fn content_length(&self, doc_id: u32) -> usize {
        self.searcher.snapshot().content_length(doc_id)
    }

    fn role(&self, doc_id: u32) -> &str {
        self.searcher.snapshot().role(doc_id)
    }

    fn turn(&self, doc_id: u32) -> Option<u32> {
        self.searcher.catalogue.place(doc_id)
    }
}

struct IndexedConceptScorer<'a> {
    filter: ConceptFilter<'a>,
    concept: &'a Concept,
    norms: Norms,
}

impl ConceptScorer for IndexedConceptScorer<'_> {
    fn by_terms(&self, depth: usize, call: &Call) -> Result<TermCandidates> {
        let doc_set = self.filter.doc_set();
        let bm25 = self.bm25();
        let mut messages = bm25.best(doc_set, &|id| self.filter.accepts(id), depth, &call.stop)?;
        let mut doc_ids: Vec<u32> = messages.iter().map(|(doc_id, _)| *doc_id).collect();
        doc_ids.sort_unstable();
        let presence = Bm25 { norms: formula::PRESENCE, ..bm25 };
        let best = presence.best(DocSet::DocIds(&doc_ids), &|_| true, 1, &call.stop)?;
        if let Some(phrased) = &self.filter.phrased {
            let others = phrased
                .iter()
                .filter(|id| doc_ids.binary_search(id).is_err() && self.filter.accepts(**id));
            let others = others.take(depth.saturating_sub(doc_ids.len()));
            messages.extend(others.map(|doc_id| (*doc_id, formula::LEAST)));
        }
        let covered = best.first().map_or(0.0, |(_, weight)| *weight);
        Ok(TermCandidates { messages, covered })
    }

    fn by_vector(
        &self,
        weights: VectorWeights,
        depth: usize,
        call: &Call,
    ) -> Result<VectorCandidates> {
        let found = self.filter.nearest(self.concept, weights, depth, &call.stop);
        call.stop.check(db::Error::Stopped)?;
        found
    }

    fn coverage(&self, call: &Call) -> Result<Coverage> {
        let terms = &self.concept.terms[..self.concept.terms.len().min(MAX_COVERING)];
        let catalogue = &self.filter.searcher.catalogue;
        let mut lists = Vec::new();
        // For each conversation, the terms that it contains, one bit each.
        let mut contained = vec![0_u64; catalogue.count()];
        for (bit, term) in terms.iter().enumerate() {
            let mut list =
                holding(&self.filter.terms, std::slice::from_ref(&term.term), &call.stop)?;
            list.retain(|doc_id| self.filter.accepts(*doc_id));
            for conversation in list.iter().filter_map(|id| catalogue.conversation(*id)) {
                contained[conversation as usize] |= 1 << bit;
            }
            lists.push(list);
        }
        let mut best: Vec<(u32, f32)> = Vec::new();
        for (conversation, bits) in (0..).zip(&contained) {
            if *bits != 0 {
                best.push((conversation, weight(terms, *bits)));
            }
        }
        keep_best(&mut best, MAX_TITLED);
        let tokenizer = Tokenizer::default();
        for (conversation, sum) in &mut best {
            let title = tokenizer.question(catalogue.title(*conversation));
            let bits = (0..).zip(terms).filter(|(_, term)| title.contains(&term.term));
            let of_title = bits.fold(0, |bits, (bit, _)| bits | 1 << bit);
            *sum = weight(terms, contained[*conversation as usize] | of_title);
        }
        keep_best(&mut best, MAX_COVERED);
        let chosen: HashSet<u32> = best.iter().map(|(conversation, _)| *conversation).collect();
        let doc_ids = lists.into_iter().flatten();
        let doc_ids = doc_ids
            .filter(|id| catalogue.conversation(*id).is_some_and(|it| chosen.contains(&it)))
            .take(MAX_COVERING_MESSAGES);
        Ok(Coverage { doc_ids: doc_ids.collect(), conversations: best })
    }

    fn scores(
        &self,
        candidates: &mut dyn Iterator<Item = u32>,
        scale: &Scale,
        call: &Call,
    ) -> Result<Vec<(u32, f32)>> {
        let searcher = self.filter.searcher;
        let catalogue = &searcher.catalogue;
        let snapshot = searcher.snapshot();
        // The candidates, and those of their neighbours that pass the filter.
        let mut all: HashSet<u32> = HashSet::new();
        for doc_id in candidates {
            all.insert(doc_id);
            let (Some(conversation), Some(turn)) =
                (catalogue.conversation(doc_id), catalogue.place(doc_id))
            else {
                continue;
            };
            let reading = catalogue.reading(conversation);
            for neighbour in &reading[formula::context(turn, reading.len())] {
                if !all.contains(neighbour) && self.filter.accepts(*neighbour) {
                    all.insert(*neighbour);
                }
            }
        }
        let mut doc_ids: Vec<u32> = all.into_iter().collect();
        doc_ids.sort_unstable();
        let own = self.own_scores(&doc_ids, scale, &call.stop)?;
        let newest = if catalogue.count() > 0 { catalogue.last(0) } else { None };
        let mut formula = Formula::new(self.concept, &own, newest);
        let mut scores = Vec::new();
        for doc_id in doc_ids {
            let (Some(conversation), Some(turn)) =
                (catalogue.conversation(doc_id), catalogue.place(doc_id))
            else {
                continue;
            };
            let reading = catalogue.reading(conversation);
            let message = Surroundings {
                conversation,
                title: catalogue.title(conversation),
                turn,
                length: searcher.length(doc_id).unwrap_or(1),
                role: snapshot.role(doc_id),
                time: snapshot.time(doc_id),
            };
            let score = formula.score(doc_id, &message, &|turn| reading.get(turn).copied());
            scores.extend(score.map(|score| (doc_id, score)));
        }
        Ok(scores)
    }
}

impl IndexedConceptScorer<'_> {
    fn bm25(&self) -> Bm25<'_> {
        Bm25 { segments: &self.filter.terms, terms: &self.concept.terms, norms: self.norms }
    }

    /// Returns `f` in the formula of the module `formula`, by doc id.
    fn own_scores(&self, doc_ids: &[u32], scale: &Scale, stop: &Stop) -> Result<Scores> {
        let mut own: Scores = HashMap::with_capacity(doc_ids.len());
        if self.filter.phrased.is_some() {
            let phrased = doc_ids.iter().filter(|doc_id| self.filter.is_phrased(**doc_id));
            own.extend(phrased.map(|doc_id| (*doc_id, formula::LEAST)));
        }
        if scale.term_share > 0.0 {
            let doc_set = DocSet::DocIds(doc_ids);
            for (doc_id, score) in self.bm25().best(doc_set, &|_| true, doc_ids.len(), stop)? {
                *own.entry(doc_id).or_default() += scale.term_share * score / scale.best_terms;
            }
        }
        let similarities = self.filter.similarities(self.concept, scale.vectors, doc_ids);
        let similarities = similarities.unwrap_or_default();
        for (doc_id, similarity) in doc_ids.iter().zip(similarities) {
            let Some(similarity) = similarity else { continue };
            *own.entry(*doc_id).or_default() += scale.vector_share * scale.nearness_of(similarity);
        }
        Ok(own)
    }
}

/// Returns the sum of the weights of the terms whose bits are set.
fn weight(terms: &[WeightedTerm], bits: u64) -> f32 {
    (0..).zip(terms).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, term)| term.weight).sum()
}

/// Returns the weight of the query's terms that a conversation's title and summary contain.
fn weight_in(query: &TitleQuery, titles: &TitleTerms) -> f32 {
    let weights = query.iter().map(|(term, weight)| {
        if titles.of_title.contains(term) {
            *weight
        } else if titles.of_summary.contains(term) {
            SUMMARY_WEIGHT * weight
        } else {
            0.0
        }
    });
    weights.sum()
}
