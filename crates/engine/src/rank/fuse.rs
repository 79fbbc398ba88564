//! Scores the messages of all sources for one concept, on a common scale.

use std::{cmp::Ordering, collections::HashSet};

use super::{question::Mode, ranker::Ranker, sources::RankedSource};
use crate::{
    error::Result,
    scoring::{Concept, ConceptScorer, Nearness, Scale, VectorWeights},
    source::Note,
};
use verbatim_text::{
    query::{PhraseSearch, Query, normalise_phrase},
    snippet,
    words::is_unspaced,
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

/// The share of a question's IDF from which it counts as covered.
///
/// In answers to questions of LoCoMo and REALTALK, the best message by words covers .65 to .75 of it, in
/// answers without a common word .2.
const WELL_COVERED: f32 = 0.35;

/// The weight of the encoder, if the weight of the other model is 1 and words cover the question. On LoCoMo,
/// MRR@10 is .541 without the encoder, .535 with the weight .5 and .531 with 1; on REALTALK .485, .494 and .492.
const ENCODER_WEIGHT: f32 = 0.7;

/// By how much the weight of the encoder grows if words cover nothing, because the other model hardly
/// compares languages.
const ENCODER_GROWTH: f32 = 3.0;

/// Maximum number of times that deleted messages of an outdated index are replaced by the next candidates.
const MAX_ROUNDS: usize = 8;

/// Number of messages with the whole question that are looked up, the newest.
const MOST_WHOLE: usize = 1_000;

/// Minimum number of characters of a question that is looked up as a whole, and of one in a script without
/// spaces.
const LEAST_WHOLE: usize = 4;
const LEAST_UNSPACED: usize = 2;

/// The factor for the scores of messages without the whole question, if others have it. The scores of
/// several such messages in one conversation stay below the score of a message that has it.
const OTHER_SHARE: f32 = 0.4;

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
    /// Returns the messages that answer a concept, the best first. `text` is the concept as it was typed.
    ///
    /// If a sentence quotes a text, messages with this text come first. If no message has the quoted
    /// text, its words count like the others, because people quote from memory.
    pub(super) fn score_messages(
        &mut self,
        sources: &[RankedSource],
        concept: &mut Concept,
        text: &str,
    ) -> Result<Vec<Scored>> {
        let whole = self.whole_question(concept, text);
        let mut found = self.score_once(sources, concept, whole.as_ref())?;
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
        let mut others = self.score_once(sources, concept, whole.as_ref())?;
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

    fn score_once(
        &mut self,
        sources: &[RankedSource],
        concept: &Concept,
        whole: Option<&WholeQuestion>,
    ) -> Result<Vec<Scored>> {
        let scorers: Vec<Box<dyn ConceptScorer + '_>> = sources
            .iter()
            .map(|source| source.scorer.open(concept, self.stop))
            .collect::<Result<_, _>>()?;
        let with_whole = match whole {
            Some(whole) => self.with_whole(sources, concept, whole)?,
            None => Vec::new(),
        };
        let covering = self.covering(&scorers, concept)?;
        let mut depth = self.depth();
        if !concept.query.phrases.is_empty() {
            depth = depth.max(self.question.limit.min(MAX_DEPTH));
        }
        let mut rounds = 0..MAX_ROUNDS;
        loop {
            let candidates = self.candidates(sources, &scorers, concept, depth)?;
            let mut all = self.scored(&scorers, concept, &candidates, [&with_whole, &covering])?;
            let is_cut = candidates.is_cut;
            if self.check(sources, &all) && rounds.next().is_some() {
                continue;
            }
            all.retain(|scored| !sources[scored.source].is_changed_or_deleted(scored.doc_id));
            if !is_cut || depth >= MAX_DEPTH || !self.is_crowded(sources, &all) {
                self.is_cut |= is_cut;
                if let Some(whole) = whole {
                    put_first(sources, &mut all, whole, with_whole);
                }
                return Ok(all);
            }
            depth = (DEEPER * depth).min(MAX_DEPTH);
        }
    }

    /// Returns the messages with terms of the question in the conversations that contain most of them. Stores
    /// how much each of these conversations covers.
    fn covering(
        &mut self,
        scorers: &[Box<dyn ConceptScorer + '_>],
        concept: &Concept,
    ) -> Result<Vec<(usize, u32)>> {
        let mut messages = Vec::new();
        self.covered.clear();
        if self.wanted == 0
            || self.concepts().len() > 1
            || self.scope.conversation.is_some()
            || concept.terms.len() < 2
        {
            return Ok(messages);
        }
        for (place, scorer) in scorers.iter().enumerate() {
            let coverage = scorer.coverage(self.stop)?;
            messages.extend(coverage.doc_ids.into_iter().map(|doc_id| (place, doc_id)));
            let shares = coverage.conversations.into_iter();
            let shares = shares.map(|(number, sum)| ((place, number), sum / concept.weight));
            self.covered.extend(shares);
        }
        Ok(messages)
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

    /// Returns the scores of the candidates, of their neighbours, and of the messages with the whole question.
    fn scored(
        &self,
        scorers: &[Box<dyn ConceptScorer + '_>],
        concept: &Concept,
        candidates: &AllCandidates,
        [with_whole, covering]: [&[(usize, u32)]; 2],
    ) -> Result<Vec<Scored>> {
        let scale = self.scale(concept, candidates);
        let mut all = Vec::new();
        for (place, scorer) in scorers.iter().enumerate() {
            let found = candidates.by_terms.iter().chain(&candidates.by_vector);
            let found = found.chain(&candidates.by_vector_not_encoded);
            let found = found.map(|scored| (scored.source, scored.doc_id));
            let here = found.chain(with_whole.iter().chain(covering).copied());
            let mut here = here.filter(|(source, _)| *source == place).map(|(_, doc_id)| doc_id);
            let scores = scorer.scores(&mut here, &scale, self.stop)?;
            let scored = |(doc_id, score)| Scored { source: place, doc_id, score };
            all.extend(scores.into_iter().map(scored));
        }
        let known: HashSet<(usize, u32)> = all.iter().map(|it| (it.source, it.doc_id)).collect();
        let others = with_whole.iter().filter(|place| !known.contains(place));
        all.extend(others.map(|(source, doc_id)| Scored {
            source: *source,
            doc_id: *doc_id,
            score: 0.0,
        }));
        all.sort_unstable_by(Scored::order);
        Ok(all)
    }

    /// Returns the whole question, if messages with it come first: a question of several words or with other
    /// characters than letters and digits, of at least four characters. Of a single word, messages with the
    /// same form come before those with another form, but by meaning alone they do not.
    fn whole_question(&self, concept: &Concept, text: &str) -> Option<WholeQuestion> {
        let query = &concept.query;
        if self.concepts().len() > 1 || query.is_all_quoted || query.excludes() {
            return None;
        }
        let text = snippet::trim(text);
        let phrase = normalise_phrase(text);
        let is_word = phrase.chars().all(|c| c.is_alphanumeric() && !is_unspaced(c));
        let least = if phrase.contains(is_unspaced) { LEAST_UNSPACED } else { LEAST_WHOLE };
        let is_wanted =
            phrase.chars().count() >= least && !(is_word && self.question.mode == Mode::Vector);
        is_wanted.then(|| WholeQuestion { text: text.to_owned(), phrase, is_word })
    }

    /// Returns the newest messages with the whole question. Messages with a single word are not looked up,
    /// because they are among the candidates.
    fn with_whole(
        &self,
        sources: &[RankedSource],
        concept: &Concept,
        whole: &WholeQuestion,
    ) -> Result<Vec<(usize, u32)>> {
        let mut found = Vec::new();
        if whole.is_word {
            return Ok(found);
        }
        let search = PhraseSearch::literal(&whole.text);
        for (place, source) in sources.iter().enumerate() {
            let here = source.scorer.containing(&search, MOST_WHOLE, self.stop)?;
            let is_wanted = |doc_id: &u32| {
                !source.is_changed_or_deleted(*doc_id)
                    && (concept.query.phrases.is_empty()
                        || concept.query.allows(&source.scorer.content(*doc_id)))
            };
            found.extend(here.into_iter().filter(is_wanted).map(|doc_id| (place, doc_id)));
        }
        Ok(found)
    }

    /// Returns the best candidates of all sources together.
    fn candidates(
        &mut self,
        sources: &[RankedSource],
        scorers: &[Box<dyn ConceptScorer + '_>],
        concept: &Concept,
        depth: usize,
    ) -> Result<AllCandidates> {
        let mut by_terms = Vec::new();
        let mut covered = 0.0;
        for (place, scorer) in scorers.iter().enumerate() {
            let found = scorer.by_terms(depth + sources[place].to_replace(), self.stop)?;
            covered = f32::max(covered, found.covered);
            by_terms.extend(existing(place, &sources[place], found.messages));
        }
        let coverage = WordCoverage::new(covered, concept);
        let weights = coverage.weights(concept);
        let (mut by_vector, mut by_vector_not_encoded) = (Vec::new(), Vec::new());
        for (place, scorer) in scorers.iter().enumerate().filter(|_| concept.has_vector()) {
            let depth = depth + sources[place].to_replace();
            match scorer.by_vector(weights, depth, self.stop) {
                Ok(found) => {
                    by_vector.extend(existing(place, &sources[place], found.messages));
                    by_vector_not_encoded.extend(existing(
                        place,
                        &sources[place],
                        found.not_encoded,
                    ));
                }
                Err(error) if error.is_stopped() => return Err(error),
                Err(error) => self.note(Note::ProviderAway { reason: error.to_string() }),
            }
        }
        let mut is_cut = false;
        for found in [&mut by_terms, &mut by_vector, &mut by_vector_not_encoded] {
            is_cut |= found.len() >= depth;
            found.sort_unstable_by(Scored::order);
            found.truncate(depth);
        }
        Ok(AllCandidates { by_terms, by_vector, by_vector_not_encoded, coverage, is_cut })
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
        let (term_share, vector_share) = match (self.question.mode, concept.has_vector()) {
            (Mode::Vector, true) => (0.0, 1.0),
            (_, true) if !concept.terms.is_empty() => {
                let share = self.vector_share * concept.known_to_models();
                let share = concept.known_to_any() * candidates.coverage.vector_share(share);
                (1.0 - share, share)
            }
            (_, true) => (0.0, 1.0),
            (_, false) => (1.0, 0.0),
        };
        let among = |found: &[Scored]| {
            let cosines: Vec<f32> = found.iter().map(|scored| scored.score).collect();
            Nearness::among(&cosines)
        };
        Scale {
            term_share,
            vector_share,
            best_terms: candidates.by_terms.first().map_or(1.0, |scored| scored.score),
            vectors: candidates.coverage.weights(concept),
            nearness: among(&candidates.by_vector),
            nearness_not_encoded: among(&candidates.by_vector_not_encoded),
        }
    }
}

/// The whole question, and whether it is a single word.
struct WholeQuestion {
    /// The question as it was typed.
    text: String,
    phrase: String,
    is_word: bool,
}

/// Puts the messages with the whole question first. Beyond those that were looked up, the texts of the best
/// messages are compared.
fn put_first(
    sources: &[RankedSource],
    all: &mut [Scored],
    whole: &WholeQuestion,
    with_whole: Vec<(usize, u32)>,
) {
    let is_complete = !whole.is_word && with_whole.len() < MOST_WHOLE;
    let with_whole: HashSet<(usize, u32)> = with_whole.into_iter().collect();
    let required = Query { phrases: vec![whole.phrase.clone()], ..Query::default() };
    let excluded = Query { excluded: vec![whole.phrase.clone()], ..Query::default() };
    let has_whole = |at: usize, scored: &Scored| {
        if with_whole.contains(&(scored.source, scored.doc_id)) {
            return true;
        }
        if is_complete || at >= MOST_WHOLE {
            return false;
        }
        let content = sources[scored.source].scorer.content(scored.doc_id);
        if whole.is_word { !excluded.allows(&content) } else { required.allows(&content) }
    };
    let are_first: Vec<bool> = all.iter().enumerate().map(|(at, it)| has_whole(at, it)).collect();
    if !are_first.contains(&true) {
        return;
    }
    for (scored, is_first) in all.iter_mut().zip(are_first) {
        scored.score = match is_first {
            true => f32::midpoint(scored.score, 1.0),
            false => OTHER_SHARE * scored.score,
        };
    }
    all.sort_unstable_by(Scored::order);
}

/// Returns the messages of a source that are not known to be deleted or changed.
fn existing(
    place: usize,
    source: &RankedSource,
    found: Vec<(u32, f32)>,
) -> impl Iterator<Item = Scored> {
    let found = found.into_iter().filter(|(doc_id, _)| !source.is_changed_or_deleted(*doc_id));
    found.map(move |(doc_id, score)| Scored { source: place, doc_id, score })
}

struct AllCandidates {
    by_terms: Vec<Scored>,
    by_vector: Vec<Scored>,
    /// The best messages that the encoder has not read yet.
    by_vector_not_encoded: Vec<Scored>,
    coverage: WordCoverage,
    /// Whether only the best candidates are here.
    is_cut: bool,
}

/// How much of a question the words of the best message cover, from 0 to 1: 1 if they have
/// [`WELL_COVERED`] of its IDF or more.
#[derive(Clone, Copy, Debug)]
struct WordCoverage(f32);

impl WordCoverage {
    fn new(covered: f32, concept: &Concept) -> WordCoverage {
        let share = covered / concept.weight.max(f32::MIN_POSITIVE);
        WordCoverage((share / WELL_COVERED).min(1.0))
    }

    /// Returns the share of vectors in scores. `share` is the share where the words cover the question.
    fn vector_share(self, share: f32) -> f32 {
        1.0 - (1.0 - share) * self.0.powi(2)
    }

    fn weights(self, concept: &Concept) -> VectorWeights {
        let weight = ENCODER_WEIGHT + ENCODER_GROWTH * (1.0 - self.0).powi(2);
        VectorWeights { model: concept.known, encoder: weight * concept.encoded_known }
    }
}
