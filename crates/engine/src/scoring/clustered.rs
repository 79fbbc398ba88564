//! Scores of the messages of a cluster, by the formula of [`super::formula`].
//!
//! The cluster proposes messages by its own BM25, and by words that stand for vectors. Their texts are
//! fetched, and scored in the same way as messages of an index.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::{borrow::Cow, cell::RefCell, cmp::Reverse};

use super::formula::{self, Formula, Scores, Surroundings, keep_best};
use super::scorer::{Concept, ConceptScorer, Scale, Scorer, Statistics, TermCandidates};
use super::scorer::{TitleQuery, TitleScores, VectorCandidates, VectorWeights};
use super::searcher::people;
use crate::error::Result;
use crate::source::reader::cluster_about::{KIND, about, within};
use crate::source::{About, Scope};
use verbatim_base::call::{Call, Stop};
use verbatim_base::lock::lock;
use verbatim_base::model::{Hit, Request};
use verbatim_chats::db;
use verbatim_cluster::{Cluster, ClusterConversation, MessagePlace, RankFilter, RankReader};
use verbatim_cluster::{RankedMessage, RankedSize, View};
use verbatim_embed::{self as embed, Model, dot};
use verbatim_index::{self as index, Norms, PackedQuery, WeightedTerm};
use verbatim_text::query::{PhraseSearch, Query};
use verbatim_text::{matcher::Matchers, words::Tokenizer};

/// Minimum length in letters of a term that is corrected, as for an index.
const SHORTEST_SLIP: usize = 4;

/// Number of messages that are fetched in addition, because the cluster's ranking differs from this one.
const MARGIN: usize = 50;

/// Maximum number of messages with a phrase that are fetched.
const MOST_PHRASED: usize = 2_000;

/// Maximum number of pages of messages to fetch, if messages with excluded words are dropped.
const MOST_PAGES: usize = 10;

/// Number of nearest messages whose cosines are computed again with vectors that are not packed.
const SCORED_AGAIN: usize = 200;

/// Number of best messages that are scored with all neighbours. Only questions with several concepts have
/// more messages.
const WITH_NEIGHBOURS: usize = 400;

pub(crate) struct ClusterScorer {
    cluster: Arc<Cluster>,
    view: Arc<View>,
    size: RankedSize,
    model: Model,
    scope: Scope,
    filter: RankFilter,
    call: Call,
    /// Number of messages in the index for each term that was looked up.
    frequencies: Mutex<HashMap<String, u64>>,
    fetched: Mutex<FetchedMessages>,
}

/// The fetched messages. A message's doc id is its position in the list.
#[derive(Default)]
struct FetchedMessages {
    all: Vec<Arc<RankedMessage>>,
    doc_ids: HashMap<MessagePlace, u32>,
}

impl FetchedMessages {
    /// Adds messages, newest first, and returns the doc ids of all given messages.
    fn add(&mut self, mut messages: Vec<RankedMessage>) -> Vec<u32> {
        messages.sort_by_key(|message| Reverse(message.order));
        let doc_ids = messages.into_iter().map(|message| {
            *self.doc_ids.entry(message.at).or_insert_with(|| {
                self.all.push(Arc::new(message));
                self.all.len() as u32 - 1
            })
        });
        doc_ids.collect()
    }
}

impl ClusterScorer {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        view: Arc<View>,
        model: &Model,
        scope: &Scope,
        call: &Call,
    ) -> Result<ClusterScorer> {
        let size = cluster.size(&view, &call.stop)?;
        let is_named =
            scope.conversation.is_some() || scope.conversations.is_some() || scope.has_origin();
        let mut filter = RankFilter {
            roles: scope.roles.clone(),
            since: scope.since,
            until: scope.until,
            ..RankFilter::default()
        };
        if is_named {
            // Roles and dates are filters on messages, so they do not apply to conversations.
            let places = within(&view, &scope.any_message()).into_iter();
            let ids = places.map(|place| view.conversations()[place].stored.id.clone());
            filter.within = Some(ids.collect());
        } else {
            let of_source = scope.without.get(&KIND).into_iter().flatten();
            filter.without = scope.excluded.iter().chain(of_source).cloned().collect();
        }
        Ok(ClusterScorer {
            cluster,
            view,
            size,
            model: model.clone(),
            scope: scope.clone(),
            filter,
            call: call.clone(),
            frequencies: Mutex::default(),
            fetched: Mutex::default(),
        })
    }

    fn ranked<'a>(&'a self, stop: &'a Stop) -> Result<RankReader<'a>> {
        Ok(RankReader::new(self.cluster.client()?, &self.view, stop))
    }

    fn has_vectors(&self) -> bool {
        self.size.model == self.model.name()
    }

    fn message(&self, doc_id: u32) -> Arc<RankedMessage> {
        Arc::clone(&lock(&self.fetched).all[doc_id as usize])
    }

    /// Returns whether a message is in the scope, and has what a question requires.
    fn accepts(&self, doc_id: u32, query: &Query) -> bool {
        let message = self.message(doc_id);
        let hit = &message.hit;
        self.scope.accepts_message(&hit.role, hit.time)
            && self.scope.accepts_id(KIND, &hit.conversation_id)
            && query.allows(&hit.content)
    }

    fn conversation_of(&self, message: &RankedMessage) -> &ClusterConversation {
        &self.view.conversations()[message.at.0]
    }

    /// Returns, for each term, the number of messages in the index that contain it.
    fn frequencies(&self, terms: &[String], stop: &Stop) -> Result<Vec<u64>> {
        let mut new = terms.to_vec();
        new.retain(|term| !lock(&self.frequencies).contains_key(term));
        if !new.is_empty() {
            let counts = self.ranked(stop)?.frequencies(&new)?;
            lock(&self.frequencies).extend(new.into_iter().zip(counts));
        }
        let known = lock(&self.frequencies);
        Ok(terms.iter().map(|term| known.get(term).copied().unwrap_or_default()).collect())
    }

    /// Fetches the messages at some places, unless they were fetched before. Returns the doc ids of the
    /// messages that exist.
    fn fetch(&self, places: &HashSet<MessagePlace>, stop: &Stop) -> Result<Vec<u32>> {
        let mut new: Vec<MessagePlace> = places.iter().copied().collect();
        new.retain(|at| !lock(&self.fetched).doc_ids.contains_key(at));
        let messages = self.ranked(stop)?.at(&new)?;
        let mut fetched = lock(&self.fetched);
        fetched.add(messages);
        Ok(places.iter().filter_map(|at| fetched.doc_ids.get(at).copied()).collect())
    }

    /// Returns the places of some messages and of their neighbours.
    fn neighbourhood(&self, doc_ids: &[u32]) -> HashSet<MessagePlace> {
        let mut all = HashSet::new();
        for doc_id in doc_ids {
            let message = self.message(*doc_id);
            let (conversation, turn) = message.at;
            let turns = formula::context(turn, self.conversation_of(&message).turns);
            all.extend(turns.map(|turn| (conversation, turn as u32)));
        }
        all
    }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Scorer for ClusterScorer {
    fn missing(&self) -> (u32, u32) {
        (0, if self.has_vectors() { 0 } else { small(self.size.messages) })
    }

    fn authors(&self) -> Vec<&str> {
        let mut all: Vec<&ClusterConversation> = self.view.conversations().iter().collect();
        if let Some(id) = &self.scope.conversation {
            all.retain(|it| *id == it.stored.id);
        }
        people(all.into_iter().flat_map(|it| &it.roles).map(String::as_str))
    }

    fn statistics(&self, terms: &[String]) -> Result<Statistics> {
        let (frequencies, messages, tokens) = if let Some(id) = &self.scope.conversation {
            let filter = RankFilter { within: Some(vec![id.clone()]), ..RankFilter::default() };
            self.ranked(&self.call.stop)?.counts(&filter, terms)?
        } else {
            let all = self.frequencies(terms, &self.call.stop)?;
            (all, self.size.messages, self.size.tokens)
        };
        let frequencies = frequencies.into_iter().map(small).collect();
        Ok(Statistics { frequencies, messages, tokens })
    }

    fn look_up(&self, terms: &[String]) -> Result<()> {
        self.frequencies(terms, &self.call.stop).map(drop)
    }

    fn has_term(&self, term: &str) -> Result<bool> {
        Ok(self.frequencies(&[term.to_owned()], &self.call.stop)?[0] > 0)
    }

    fn has_in_scope(&self, terms: &[String]) -> Result<Vec<bool>> {
        let counts = if self.scope.is_open() {
            self.frequencies(terms, &self.call.stop)?
        } else {
            self.ranked(&self.call.stop)?.counts(&self.filter, terms)?.0
        };
        Ok(counts.into_iter().map(|count| count > 0).collect())
    }

    fn corrections(&self, term: &str, found: &mut BTreeMap<String, u32>) -> Result<()> {
        if term.len() < SHORTEST_SLIP {
            return Ok(());
        }
        let ranked = self.ranked(&self.call.stop)?;
        let (terms, mut counts): (Vec<String>, Vec<u64>) = ranked.slips(term)?.into_iter().unzip();
        if !self.scope.is_open() {
            // The terms in the index include those of excluded conversations.
            (counts, _, _) = ranked.counts(&self.filter, &terms)?;
        }
        for (other, count) in terms.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
            *found.entry(other).or_default() += small(count);
        }
        Ok(())
    }

    fn containing(&self, phrase: &PhraseSearch, most: usize, call: &Call) -> Result<Vec<u32>> {
        let RankFilter { roles, since, until, .. } = self.filter.clone();
        let request = Request { roles, since, until, ..phrase.request.clone() };
        // Messages outside of the scope's conversations are left out later.
        let most = if most == 0 || self.scope.is_open() { most } else { most.max(MOST_PHRASED) };
        let messages = self.ranked(&call.stop)?.containing(&request, most.min(MOST_PHRASED))?;
        let mut doc_ids = lock(&self.fetched).add(messages);
        let required = phrase.required.clone().unwrap_or_default();
        let matchers = Matchers::of(&phrase.request).map_err(index::Error::from)?;
        doc_ids.retain(|doc_id| {
            self.accepts(*doc_id, &required)
                && matchers.accept_text(&self.message(*doc_id).hit.content)
        });
        doc_ids.truncate(most);
        Ok(doc_ids)
    }

    fn open<'a>(
        &'a self,
        concept: &'a Concept,
        call: &Call,
    ) -> Result<Box<dyn ConceptScorer + 'a>> {
        let mut phrased = None;
        if let Some(phrase) = concept.query.phrases.iter().max_by_key(|phrase| phrase.len()) {
            let mut doc_ids = self.containing(&PhraseSearch::quoted(phrase), MOST_PHRASED, call)?;
            doc_ids.retain(|doc_id| self.accepts(*doc_id, &concept.query));
            phrased = Some(doc_ids);
        }
        let vector = concept.vector.as_deref().filter(|_| self.has_vectors());
        Ok(Box::new(ClusterConceptScorer {
            scorer: self,
            concept,
            norms: formula::norms(concept.average),
            phrased,
            tokenizer: Tokenizer::default(),
            vector,
            packed: vector.map(PackedQuery::new),
            exact: RefCell::default(),
        }))
    }

    fn titles(&self, queries: &[TitleQuery], call: &Call) -> Result<TitleScores> {
        let places: Option<HashSet<usize>> =
            (!self.scope.is_open()).then(|| within(&self.view, &self.scope).into_iter().collect());
        let mut titles = self.ranked(&call.stop)?.titles(queries, places.as_ref())?;
        titles.sort_by_key(|title| title.place);
        let columns = (0..queries.len()).map(|at| titles.iter().map(|it| it.terms[at]).collect());
        Ok(TitleScores {
            conversations: titles.iter().map(|title| title.place as u32).collect(),
            terms: columns.collect(),
        })
    }

    fn conversation(&self, doc_id: u32) -> Option<u32> {
        u32::try_from(self.message(doc_id).at.0).ok()
    }

    fn about(&self, conversation: u32) -> About {
        about(&self.view.conversations()[conversation as usize])
    }

    fn hit(&self, doc_id: u32) -> Hit<'_> {
        self.message(doc_id).hit.clone()
    }

    fn content(&self, doc_id: u32) -> Cow<'_, str> {
        self.message(doc_id).hit.content.clone()
    }

    fn content_length(&self, doc_id: u32) -> usize {
        self.message(doc_id).hit.content.len()
    }

    fn role(&self, doc_id: u32) -> &str {
        let message = self.message(doc_id);
        let roles = &self.conversation_of(&message).roles;
        roles.iter().find(|role| **role == message.hit.role).map_or("", String::as_str)
    }

    fn turn(&self, doc_id: u32) -> Option<u32> {
        Some(self.message(doc_id).at.1)
    }
}

struct ClusterConceptScorer<'a> {
    scorer: &'a ClusterScorer,
    concept: &'a Concept,
    norms: Norms,
    /// The messages with the quoted phrases, the newest first; `None` if nothing is quoted.
    phrased: Option<Vec<u32>>,
    tokenizer: Tokenizer,
    /// The vector of the concept, if the index has vectors of the same model.
    vector: Option<&'a [f32]>,
    packed: Option<PackedQuery>,
    /// Cosines computed with vectors that are not packed.
    exact: RefCell<HashMap<u32, f32>>,
}

impl ConceptScorer for ClusterConceptScorer<'_> {
    fn by_terms(&self, depth: usize, call: &Call) -> Result<TermCandidates> {
        let messages = self.best_by_terms(depth, call)?;
        let presences = messages.iter().map(|(id, _)| self.bm25(*id, &formula::PRESENCE));
        let covered = presences.fold(0.0, f32::max);
        call.stop.check(db::Error::Stopped)?;
        Ok(TermCandidates { messages, covered })
    }

    fn by_vector(&self, _: VectorWeights, depth: usize, call: &Call) -> Result<VectorCandidates> {
        let messages = self.nearest(depth, call)?;
        call.stop.check(db::Error::Stopped)?;
        Ok(VectorCandidates { messages, not_encoded: Vec::new() })
    }

    fn scores(
        &self,
        candidates: &mut dyn Iterator<Item = u32>,
        scale: &Scale,
        call: &Call,
    ) -> Result<Vec<(u32, f32)>> {
        let mut own: Scores =
            candidates.map(|doc_id| (doc_id, self.own_score(doc_id, scale))).collect();
        let mut best: Vec<(u32, f32)> = own.iter().map(|(id, score)| (*id, *score)).collect();
        keep_best(&mut best, WITH_NEIGHBOURS);
        let best: Vec<u32> = best.into_iter().map(|(doc_id, _)| doc_id).collect();
        let beside = self.scorer.fetch(&self.scorer.neighbourhood(&best), &call.stop)?;
        for doc_id in beside {
            if self.accepts(doc_id) {
                own.entry(doc_id).or_insert_with(|| self.own_score(doc_id, scale));
            }
        }
        let mut doc_ids: Vec<u32> = own.keys().copied().collect();
        doc_ids.sort_unstable();
        let newest = self.scorer.view.conversations().first().and_then(|it| it.last);
        let known = lock(&self.scorer.fetched).doc_ids.clone();
        let mut formula = Formula::new(self.concept, &own, newest);
        let mut scores = Vec::new();
        for doc_id in doc_ids {
            let message = self.scorer.message(doc_id);
            let (conversation, turn) = message.at;
            let surroundings = Surroundings {
                conversation: conversation as u32,
                title: &self.scorer.conversation_of(&message).title,
                turn,
                length: message.length,
                role: &message.hit.role,
                time: message.hit.time,
            };
            let score = formula.score(doc_id, &surroundings, &|turn| {
                known.get(&(conversation, turn as u32)).copied()
            });
            scores.extend(score.map(|score| (doc_id, score)));
        }
        Ok(scores)
    }
}

impl ClusterConceptScorer<'_> {
    fn accepts(&self, doc_id: u32) -> bool {
        self.scorer.accepts(doc_id, &self.concept.query)
    }

    fn best_by_terms(&self, depth: usize, call: &Call) -> Result<Vec<(u32, f32)>> {
        if let Some(phrased) = &self.phrased {
            let scores =
                phrased.iter().map(|id| (*id, self.bm25(*id, &self.norms) + formula::LEAST));
            let mut best: Vec<(u32, f32)> = scores.collect();
            keep_best(&mut best, depth);
            return Ok(best);
        }
        let terms: Vec<String> = self.concept.terms.iter().map(|term| term.term.clone()).collect();
        if terms.is_empty() || depth == 0 {
            return Ok(Vec::new());
        }
        let frequencies = self.scorer.frequencies(&terms, &call.stop)?;
        let mut boosts: Vec<(&str, f32)> = Vec::new();
        for (WeightedTerm { term, weight }, frequency) in self.concept.terms.iter().zip(frequencies)
        {
            if *weight > 0.0 {
                // The cluster multiplies the boost by the IDF.
                let idf = formula::idf(self.scorer.size.messages as f32, frequency as f32);
                boosts.push((term, (weight / idf.max(f32::MIN_POSITIVE)).min(f32::MAX)));
            }
        }
        let ranked = self.scorer.ranked(&call.stop)?;
        let mut best = Vec::new();
        let mut after = None;
        for _ in 0..MOST_PAGES {
            let page =
                ranked.by_terms(&self.scorer.filter, &boosts, depth + MARGIN, after.as_ref())?;
            let mut doc_ids = lock(&self.scorer.fetched).add(page.messages);
            doc_ids.retain(|doc_id| self.accepts(*doc_id));
            best.extend(doc_ids.into_iter().map(|id| (id, self.bm25(id, &self.norms))));
            after = page.next;
            if after.is_none() || best.len() >= depth {
                break;
            }
        }
        best.retain(|(_, score)| *score > 0.0);
        keep_best(&mut best, depth);
        Ok(best)
    }

    fn nearest(&self, depth: usize, call: &Call) -> Result<Vec<(u32, f32)>> {
        let Some(vector) = self.vector.filter(|_| depth > 0) else { return Ok(Vec::new()) };
        let mut best: Vec<(u32, f32)> = Vec::new();
        if let (Some(phrased), Some(packed)) = (&self.phrased, &self.packed) {
            for id in phrased {
                let cosine = packed.cosine(&self.scorer.message(*id).packed);
                best.extend(cosine.map(|cosine| (*id, cosine)));
            }
        } else {
            let ranked = self.scorer.ranked(&call.stop)?;
            let near = ranked.by_vector(&self.scorer.filter, vector, depth + MARGIN)?;
            let estimates: HashMap<MessagePlace, f32> = near.into_iter().collect();
            for id in self.scorer.fetch(&estimates.keys().copied().collect(), &call.stop)? {
                let estimate = estimates.get(&self.scorer.message(id).at);
                best.extend(estimate.map(|cosine| (id, *cosine)));
            }
        }
        best.retain(|(doc_id, _)| self.accepts(*doc_id));
        keep_best(&mut best, depth);
        for (doc_id, cosine) in best.iter_mut().take(SCORED_AGAIN) {
            let message = self.scorer.message(*doc_id);
            let of_text = match self.scorer.model.encode(&[&message.hit.content], &call.stop) {
                Ok(mut vectors) => vectors.pop().unwrap_or_default(),
                Err(embed::Error::Stopped) => return Err(db::Error::Stopped.into()),
                Err(_) => continue,
            };
            *cosine = dot(vector, &of_text);
            self.exact.borrow_mut().insert(*doc_id, *cosine);
        }
        keep_best(&mut best, depth);
        Ok(best)
    }

    fn bm25(&self, doc_id: u32, norms: &Norms) -> f32 {
        let message = self.scorer.message(doc_id);
        let terms = &self.concept.terms;
        let mut frequencies = vec![0; terms.len()];
        for text in [index::speaker(&message.hit.role), &message.hit.content] {
            self.tokenizer.tokenize(text, |cut| {
                if let Some(at) = terms.iter().position(|term| term.term == cut) {
                    frequencies[at] += 1;
                }
            });
        }
        let weighted = terms.iter().zip(frequencies).filter(|(_, frequency)| *frequency > 0);
        weighted.map(|(term, count)| term.weight * norms.score(count, message.length)).sum()
    }

    /// Returns `f` in the formula, the score of the message without its surroundings.
    fn own_score(&self, doc_id: u32, scale: &Scale) -> f32 {
        let mut own = if self.phrased.is_some() { formula::LEAST } else { 0.0 };
        if scale.term_share > 0.0 {
            own += scale.term_share * self.bm25(doc_id, &self.norms) / scale.best_terms;
        }
        if let Some(packed) = &self.packed {
            let exact = self.exact.borrow().get(&doc_id).copied();
            let cosine = exact.or_else(|| packed.cosine(&self.scorer.message(doc_id).packed));
            own += cosine.map_or(0.0, |it| scale.vector_share * scale.nearness.normalise(it));
        }
        own
    }
}
