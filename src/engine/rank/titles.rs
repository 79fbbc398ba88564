//! Scores of conversations by their titles and summaries.
//!
//! ```text
//! W(c) = what of the question's weight is in the title, and 0.8 of what is in the summary alone
//! V(c) = max(0, (cos(c) - cos_K) / (cos_1 - cos_K))
//! gist(c) = (1 - v) W(c) + v V(c);   v = 0.4; 0 by words alone, 1 by meaning alone
//! ```
//!
//! Where the model does not know all of the question, v is less.

use std::collections::HashMap;

use super::{
    Question, Scope, answer::Found, concept::ParsedConcept, prepare::Searcher, score::nearness,
};
use crate::{
    engine::{
        Engine, Error,
        source::summaries::{SummaryFeatures, hash},
    },
    model::Stop,
    text::words::Tokenizer,
};

/// What a word counts that is in the summary and not in the title.
const IN_SUMMARY: f32 = 0.8;

/// What the vector counts beside the words.
const VECTOR: f32 = 0.4;

/// The conversations nearest to the question among which nearness is measured.
const DEPTH: usize = 100;

/// What one thing asked for is compared with gists by.
struct Wanted<'a> {
    /// Hashes of its terms with what they weigh, which is 1 in all.
    terms: Vec<(u32, f32)>,
    vector: Option<&'a [f32]>,
    /// How much of it the model knows.
    known: f32,
}

impl Wanted<'_> {
    fn of(concept: &ParsedConcept, with_words: bool) -> Wanted<'_> {
        // A word of no message stands in titles alone: it is rare.
        let rarest = concept.terms.iter().map(|term| term.weight).fold(1.0, f32::max);
        let is_known = |term: &String| concept.terms.iter().any(|known| known.term == *term);
        let others = Tokenizer::default().question(&concept.query.text).into_iter();
        let others = others.filter(|term| !is_known(term)).map(|term| (hash(&term), rarest));
        let known = concept.terms.iter().map(|term| (hash(&term.term), term.weight));
        let mut terms: Vec<(u32, f32)> = known.chain(others).filter(|_| with_words).collect();
        let total: f32 = terms.iter().map(|(_, weight)| weight).sum();
        terms.iter_mut().for_each(|(_, weight)| *weight /= total.max(f32::MIN_POSITIVE));
        Wanted { terms, vector: concept.vector.as_deref(), known: concept.known }
    }

    fn words_of(&self, gists: &SummaryFeatures, at: usize) -> f32 {
        let [of_title, of_summary] = gists.terms(at);
        let of = |(term, weight): &(u32, f32)| match () {
            () if of_title.contains(term) => *weight,
            () if of_summary.contains(term) => IN_SUMMARY * weight,
            () => 0.0,
        };
        self.terms.iter().map(of).sum()
    }
}

impl Engine {
    /// Returns the scores, between 0 and 1, of the conversations that answer everything asked for by
    /// their titles and summaries: by source and place.
    pub(crate) fn weigh_gists(
        &self,
        question: &Question,
        found: &mut Found,
        stop: &Stop,
    ) -> Result<HashMap<(usize, u32), f32>, Error> {
        let mut all: Vec<((usize, u32), Vec<f32>)> = Vec::new();
        let with_words = question.mode != super::Mode::Vector;
        let wanted: Vec<Wanted<'_>> =
            found.concept.iter().map(|concept| Wanted::of(concept, with_words)).collect();
        let mut cosines: Vec<Vec<f32>> = vec![Vec::new(); wanted.len()];
        for (place, searcher) in found.searchers.iter().enumerate() {
            let gists = self.gists(&searcher.catalogue, stop)?;
            if gists.lacking > 0 {
                found.notes.push(format!(
                    "{} conversations of the {} have no summary to rank by yet; `verbatim reindex` \
                     makes them",
                    gists.lacking,
                    searcher.kind.name()
                ));
            }
            let near: Vec<Vec<f32>> = wanted
                .iter()
                .map(|wanted| wanted.vector.map_or_else(Vec::new, |it| gists.vectors().scores(it)))
                .collect();
            for conversation in self.asked_conversations(searcher, &question.scope) {
                let at = conversation as usize;
                let words = wanted.iter().map(|wanted| wanted.words_of(&gists, at)).collect();
                all.push(((place, conversation), words));
                for (near, cosines) in near.iter().zip(&mut cosines) {
                    cosines.push(near.get(at).copied().unwrap_or(f32::NEG_INFINITY));
                }
            }
        }
        for ((number, wanted), cosines) in wanted.iter().enumerate().zip(&cosines) {
            let mut best = cosines.clone();
            best.sort_unstable_by(|a, b| b.total_cmp(a));
            best.retain(|cosine| *cosine > 0.0);
            best.truncate(DEPTH);
            let share = match (wanted.terms.is_empty(), best.is_empty()) {
                (_, true) => 0.0,
                (true, false) => 1.0,
                (false, false) => VECTOR * wanted.known,
            };
            let near = nearness(&best);
            for ((_, scores), cosine) in all.iter_mut().zip(cosines) {
                let by_vector = if best.is_empty() { 0.0 } else { near(*cosine) };
                scores[number] = (1.0 - share) * scores[number] + share * by_vector;
            }
        }
        let least = |scores: Vec<f32>| scores.into_iter().fold(1.0, f32::min);
        let scored = all.into_iter().map(|(conversation, scores)| (conversation, least(scores)));
        Ok(scored.filter(|(_, score)| *score > 0.0 && !wanted.is_empty()).collect())
    }

    /// Returns the conversations of a source that are in a scope.
    fn asked_conversations(&self, searcher: &Searcher, scope: &Scope) -> Vec<u32> {
        let catalogue = &searcher.catalogue;
        let snapshot = searcher.snapshot();
        let some = self.conversations_of(searcher.kind, catalogue, scope);
        let is_asked = |conversation: &u32| {
            let listed = &catalogue.conversations()[*conversation as usize];
            let mut doc_ids = catalogue.doc_ids(*conversation).iter();
            scope.conversation.as_ref().is_none_or(|id| *id == listed.id)
                && some.as_ref().is_none_or(|some| some.contains(conversation))
                && scope.since.is_none_or(|since| listed.last.is_some_and(|at| at >= since))
                && scope.until.is_none_or(|until| listed.begun.is_some_and(|at| at <= until))
                && (scope.roles.is_empty()
                    || doc_ids
                        .any(|doc_id| scope.roles.iter().any(|it| it == snapshot.role(*doc_id))))
        };
        (0..catalogue.conversations().len() as u32).filter(is_asked).collect()
    }
}
