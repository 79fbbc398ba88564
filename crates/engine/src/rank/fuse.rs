//! Scores the messages of all sources for one concept, on a common scale.

use std::{cmp::Ordering, collections::HashSet};

use super::{prepare::RankedSource, question::Mode, ranker::Ranker};
use crate::{
    error::Result,
    source::{
        Note,
        scoring::{Concept, ConceptScorer, Nearness, Scale, longness},
    },
};

/// Number of candidates by terms, and by vectors, if the scope is one conversation.
const DEPTH_IN_CONVERSATION: usize = 100;

/// Number of candidates for a single concept over all conversations.
const FUSED_DEPTH: usize = 200;

/// How many times as many candidates to score if a few long conversations have most of the best ones.
const DEEPER: usize = 8;

/// Maximum number of candidates. It is below OpenSearch's limit for one page of results, 10,000.
const MAX_DEPTH: usize = 9_600;

/// Number of candidates for each of several concepts, which must occur in the same conversation.
const DEPTH_OF_SEVERAL: usize = 1000;

/// The share of vectors in scores, for short and for long messages. Terms have the rest.
///
/// Shares from .2 to .4 give nearly the same results on LoCoMo. A share of .2 is best for MT-RAG's
/// passages and Cranfield's abstracts.
const VECTOR_SHARE_SHORT: f32 = 0.35;
const VECTOR_SHARE_LONG: f32 = 0.2;

/// Maximum number of times that deleted messages of an outdated index are replaced by the next candidates.
const MAX_ROUNDS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scored {
    /// The place of the message's source among the ranked sources.
    pub(super) source: usize,
    pub(super) doc_id: u32,
    pub(super) score: f32,
}

impl Scored {
    /// Orders by score, best first, then by source, then newest first.
    pub(super) fn order(&self, other: &Scored) -> Ordering {
        let place = |scored: &Scored| (scored.source, scored.doc_id);
        other.score.total_cmp(&self.score).then_with(|| place(self).cmp(&place(other)))
    }
}

impl Ranker<'_> {
    /// Returns the messages that answer a concept, the best first.
    ///
    /// If a sentence quotes a text, messages with this text come first. If no message has the quoted
    /// text, its words count like the others, because people quote from memory.
    pub(super) fn score_messages(
        &mut self,
        sources: &[RankedSource],
        concept: &mut Concept,
    ) -> Result<Vec<Scored>> {
        let mut found = self.score_once(sources, concept)?;
        let query = &mut concept.query;
        let is_enough = !found.is_empty() && !query.is_sentence;
        if query.phrases.is_empty() || query.is_all_quoted || is_enough {
            return Ok(found);
        }
        let phrases = std::mem::take(&mut query.phrases);
        if found.is_empty() {
            let quoted: Vec<_> = phrases.iter().map(|phrase| format!("“{phrase}”")).collect();
            self.note(Note::NoPhrase { phrases: quoted.join(" and ") });
        }
        let mut others = self.score_once(sources, concept)?;
        if !found.is_empty() {
            let first: HashSet<(usize, u32)> =
                found.iter().map(|scored| (scored.source, scored.doc_id)).collect();
            others.retain(|scored| !first.contains(&(scored.source, scored.doc_id)));
            found.iter_mut().for_each(|scored| scored.score = f32::midpoint(scored.score, 1.0));
            others.iter_mut().for_each(|scored| scored.score /= 2.0);
        }
        found.extend(others);
        Ok(found)
    }

    fn score_once(&mut self, sources: &[RankedSource], concept: &Concept) -> Result<Vec<Scored>> {
        let scorers: Vec<Box<dyn ConceptScorer + '_>> = sources
            .iter()
            .map(|source| source.scorer.open(concept, self.stop))
            .collect::<Result<_, _>>()?;
        let mut depth = self.depth();
        let mut rounds = 0..MAX_ROUNDS;
        loop {
            let (mut all, is_cut) = self.score_candidates(sources, &scorers, concept, depth)?;
            if self.check(sources, &all) && rounds.next().is_some() {
                continue;
            }
            all.retain(|scored| !sources[scored.source].is_gone(scored.doc_id));
            if !is_cut || depth >= MAX_DEPTH || !self.is_crowded(sources, &all) {
                self.is_cut |= is_cut;
                return Ok(all);
            }
            depth = (DEEPER * depth).min(MAX_DEPTH);
        }
    }

    /// Returns whether the scored messages are of fewer conversations than the question asks for.
    fn is_crowded(&self, sources: &[RankedSource], all: &[Scored]) -> bool {
        if self.concepts().len() > 1 || self.scope.conversation.is_some() {
            return false;
        }
        let place = |it: &Scored| (it.source, sources[it.source].scorer.conversation(it.doc_id));
        let conversations: HashSet<_> = all.iter().map(place).collect();
        conversations.len() < self.wanted
    }

    /// Returns the candidates and their neighbours with their scores, and whether there are more candidates.
    fn score_candidates(
        &mut self,
        sources: &[RankedSource],
        scorers: &[Box<dyn ConceptScorer + '_>],
        concept: &Concept,
        depth: usize,
    ) -> Result<(Vec<Scored>, bool)> {
        let candidates = self.candidates(sources, scorers, depth)?;
        let scale = self.scale(concept, &candidates);
        let mut all = Vec::new();
        for (place, scorer) in scorers.iter().enumerate() {
            let found = candidates.by_terms.iter().chain(&candidates.by_vector);
            let mut here =
                found.filter(|scored| scored.source == place).map(|scored| scored.doc_id);
            let scores = scorer.scores(&mut here, &scale, self.stop)?;
            let scored = |(doc_id, score)| Scored { source: place, doc_id, score };
            all.extend(scores.into_iter().map(scored));
        }
        all.sort_unstable_by(Scored::order);
        Ok((all, candidates.is_cut))
    }

    /// Returns the best candidates of all sources together.
    fn candidates(
        &mut self,
        sources: &[RankedSource],
        scorers: &[Box<dyn ConceptScorer + '_>],
        depth: usize,
    ) -> Result<AllCandidates> {
        let mut all = AllCandidates::default();
        for (place, scorer) in scorers.iter().enumerate() {
            let source = &sources[place];
            let found = scorer.candidates(depth + source.to_replace(), self.stop)?;
            let is_there = |(doc_id, _): &(u32, f32)| !source.is_gone(*doc_id);
            let scored = |(doc_id, score)| Scored { source: place, doc_id, score };
            all.by_terms.extend(found.by_terms.into_iter().filter(is_there).map(scored));
            all.by_vector.extend(found.by_vector.into_iter().filter(is_there).map(scored));
            if let Some(error) = found.vector_error {
                self.note(Note::ProviderAway { reason: error });
            }
        }
        for found in [&mut all.by_terms, &mut all.by_vector] {
            all.is_cut |= found.len() >= depth;
            found.sort_unstable_by(Scored::order);
            found.truncate(depth);
        }
        Ok(all)
    }

    /// Returns the number of candidates for each concept.
    fn depth(&self) -> usize {
        match (self.concepts().len() > 1, self.scope.conversation.is_some()) {
            (true, _) => DEPTH_OF_SEVERAL,
            (false, true) => DEPTH_IN_CONVERSATION,
            (false, false) => FUSED_DEPTH,
        }
    }

    fn scale(&self, concept: &Concept, candidates: &AllCandidates) -> Scale {
        let (term_share, vector_share) = match (self.question.mode, concept.vector.is_some()) {
            (Mode::Vector, true) => (0.0, 1.0),
            (_, true) if !concept.terms.is_empty() => {
                let range = VECTOR_SHARE_LONG - VECTOR_SHARE_SHORT;
                let share = VECTOR_SHARE_SHORT + range * longness(concept.average);
                (1.0 - concept.known * share, concept.known * share)
            }
            (_, true) => (0.0, 1.0),
            (_, false) => (1.0, 0.0),
        };
        let cosines: Vec<f32> = candidates.by_vector.iter().map(|scored| scored.score).collect();
        Scale {
            term_share,
            vector_share,
            best_terms: candidates.by_terms.first().map_or(1.0, |scored| scored.score),
            nearness: Nearness::among(&cosines),
        }
    }
}

#[derive(Default)]
struct AllCandidates {
    by_terms: Vec<Scored>,
    by_vector: Vec<Scored>,
    /// Whether only the best candidates are here.
    is_cut: bool,
}
