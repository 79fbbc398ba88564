//! Scores the messages of all sources for one concept, on a common scale.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::sources::{OpenedSources, RankedSource};
use super::{notes::Notes, question::Mode, ranker::Ranker};
use crate::error::Result;
use crate::scoring::{Concept, ConceptScorer, Nearness, Scale, VectorWeights};
use crate::source::{Note, SourceKind};
use verbatim_text::query::{PhraseSearch, Query, normalise_phrase};
use verbatim_text::{snippet, words::is_unspaced};

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

/// Number of messages with the whole question that are looked up, the newest.
const MOST_WHOLE: usize = 1_000;

/// Minimum number of characters of a question that is looked up as a whole, and of one in a script without
/// spaces.
const LEAST_WHOLE: usize = 4;
const LEAST_UNSPACED: usize = 2;

/// The factor for the scores of messages without the whole question, if others have it. The scores of
/// several such messages in one conversation stay below the score of a message that has it.
const OTHER_SHARE: f32 = 0.4;

/// Number of bytes of a recorded question, in addition to twice those of the question.
const MOST_SIGNS: usize = 64;

/// A message: the position of its source among the ranked sources, and its doc id in that source.
type MessagePlace = (usize, u32);

/// A conversation: the position of its source among the ranked sources, and its number in that source.
pub(super) type ConversationPlace = (usize, u32);

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
        other.score.total_cmp(&self.score).then_with(|| self.place().cmp(&other.place()))
    }

    fn place(&self) -> MessagePlace {
        (self.source, self.doc_id)
    }

    /// Returns the message's conversation; `None` if it is in none.
    pub(super) fn conversation(&self, sources: &[RankedSource]) -> Option<ConversationPlace> {
        Some((self.source, sources[self.source].scorer.conversation(self.doc_id)?))
    }
}

/// The scores of the messages that answer a concept.
pub(super) struct ConceptScores {
    /// The messages, the best first.
    pub(super) messages: Vec<Scored>,
    /// The share of the question's IDF that conversations cover with all their messages and their titles.
    pub(super) covered: HashMap<ConversationPlace, f32>,
    /// Whether only the best candidates were scored.
    pub(super) is_cut: bool,
}

/// Scores the messages that answer a concept. `text` is the concept as it was typed.
///
/// If a sentence quotes a text, messages with this text come first. If no message has the quoted
/// text, its words count like the others, because people quote from memory.
pub(super) fn scored(
    opened: &OpenedSources<'_>,
    concept: &mut Concept,
    text: &str,
    notes: &mut Notes,
) -> Result<ConceptScores> {
    let whole = whole_question(opened, concept, text);
    let first = Scoring { opened, concept, whole: whole.as_ref() }.run(notes)?;
    let query = &mut concept.query;
    let is_enough = !first.messages.is_empty() && !query.is_sentence;
    if query.phrases.is_empty() || query.is_all_quoted || is_enough {
        return Ok(first);
    }
    let phrases = std::mem::take(&mut query.phrases);
    if first.messages.is_empty() {
        let quoted: Vec<_> = phrases.iter().map(|phrase| format!("“{phrase}”")).collect();
        notes.add(Note::NoPhrase { phrases: quoted.join(" and ") });
    }
    let mut all = Scoring { opened, concept, whole: whole.as_ref() }.run(notes)?;
    all.is_cut |= first.is_cut;
    if !first.messages.is_empty() {
        let known: HashSet<MessagePlace> = first.messages.iter().map(Scored::place).collect();
        let mut others = std::mem::replace(&mut all.messages, first.messages);
        others.retain(|scored| !known.contains(&scored.place()));
        all.messages.iter_mut().for_each(|it| it.score = f32::midpoint(it.score, 1.0));
        others.iter_mut().for_each(|scored| scored.score /= 2.0);
        all.messages.extend(others);
    }
    Ok(all)
}

/// The messages with terms of the question in the conversations that contain most of them, and how much each
/// of these conversations covers.
#[derive(Default)]
struct Covering {
    messages: Vec<MessagePlace>,
    conversations: HashMap<ConversationPlace, f32>,
}

/// What the scores for a concept depend on.
#[derive(Clone, Copy)]
struct Scoring<'a> {
    opened: &'a OpenedSources<'a>,
    concept: &'a Concept,
    whole: Option<&'a WholeQuestion>,
}

impl Scoring<'_> {
    fn run(self, notes: &mut Notes) -> Result<ConceptScores> {
        let sources = &self.opened.ranked;
        let call = self.ranker().call;
        let scorers = sources.iter().map(|source| source.scorer.open(self.concept, call));
        let scorers: Vec<Box<dyn ConceptScorer + '_>> = scorers.collect::<Result<_>>()?;
        let with_whole = match self.whole {
            Some(whole) => self.with_whole(whole)?,
            None => Vec::new(),
        };
        let covering = self.covering(&scorers)?;
        let others: Vec<MessagePlace> =
            with_whole.iter().chain(&covering.messages).copied().collect();
        let mut depth = if self.ranker().concepts().len() > 1 {
            DEPTH_OF_SEVERAL
        } else if self.opened.scoped.scope.conversation.is_some() {
            DEPTH_IN_CONVERSATION
        } else {
            FUSED_DEPTH
        };
        if !self.concept.query.phrases.is_empty() {
            depth = depth.max(self.ranker().question.limit.min(MAX_DEPTH));
        }
        loop {
            let candidates = self.candidates(&scorers, depth, notes)?;
            let mut messages = self.scores(&scorers, &candidates, &others)?;
            let known: HashSet<MessagePlace> = messages.iter().map(Scored::place).collect();
            for (source, doc_id) in with_whole.iter().copied() {
                if !known.contains(&(source, doc_id)) {
                    messages.push(Scored { source, doc_id, score: 0.0 });
                }
            }
            messages.sort_unstable_by(Scored::order);
            drop_recorded_questions(sources, &mut messages, self.concept);
            let is_cut = candidates.is_cut;
            if !is_cut || depth >= MAX_DEPTH || !self.is_crowded(&messages) {
                if let Some(whole) = self.whole {
                    put_first(sources, &mut messages, whole, with_whole);
                }
                return Ok(ConceptScores { messages, covered: covering.conversations, is_cut });
            }
            depth = (DEEPER * depth).min(MAX_DEPTH);
        }
    }

    fn ranker(&self) -> &Ranker<'_> {
        self.opened.scoped.ranker
    }

    /// Returns whether the question has several concepts, or is about one conversation.
    fn is_narrow(&self) -> bool {
        self.ranker().concepts().len() > 1 || self.opened.scoped.scope.conversation.is_some()
    }

    fn covering(&self, scorers: &[Box<dyn ConceptScorer + '_>]) -> Result<Covering> {
        let mut all = Covering::default();
        if self.ranker().wanted == 0 || self.is_narrow() || self.concept.terms.len() < 2 {
            return Ok(all);
        }
        for (place, scorer) in scorers.iter().enumerate() {
            let coverage = scorer.coverage(self.ranker().call)?;
            all.messages.extend(coverage.doc_ids.into_iter().map(|doc_id| (place, doc_id)));
            let sums = coverage.conversations.into_iter();
            all.conversations
                .extend(sums.map(|(number, sum)| ((place, number), sum / self.concept.weight)));
        }
        Ok(all)
    }

    /// Returns whether the scored messages are of fewer conversations than the question asks for.
    fn is_crowded(&self, messages: &[Scored]) -> bool {
        if self.is_narrow() {
            return false;
        }
        let sources = &self.opened.ranked;
        let conversations: HashSet<_> =
            messages.iter().map(|it| (it.source, it.conversation(sources))).collect();
        conversations.len() < self.ranker().wanted
    }

    /// Returns the scores of the candidates, of some other messages, and of the neighbours of both.
    fn scores(
        &self,
        scorers: &[Box<dyn ConceptScorer + '_>],
        candidates: &Candidates,
        others: &[MessagePlace],
    ) -> Result<Vec<Scored>> {
        let scale = self.scale(candidates);
        let mut all = Vec::new();
        for (place, scorer) in scorers.iter().enumerate() {
            let found = candidates.by_terms.iter().chain(&candidates.by_vector);
            let found = found.chain(&candidates.by_vector_not_encoded);
            let here = found.map(Scored::place).chain(others.iter().copied());
            let mut here = here.filter(|(source, _)| *source == place).map(|(_, doc_id)| doc_id);
            let scores = scorer.scores(&mut here, &scale, self.ranker().call)?;
            all.extend(of_source(place, scores));
        }
        Ok(all)
    }

    /// Returns the newest messages with the whole question. Messages with a single word are not looked up,
    /// because they are among the candidates.
    fn with_whole(&self, whole: &WholeQuestion) -> Result<Vec<MessagePlace>> {
        let mut found = Vec::new();
        if whole.is_word {
            return Ok(found);
        }
        let search = PhraseSearch::literal(&whole.text);
        let query = &self.concept.query;
        for (place, source) in self.opened.ranked.iter().enumerate() {
            for doc_id in source.scorer.containing(&search, MOST_WHOLE, self.ranker().call)? {
                if (query.phrases.is_empty() || query.allows(&source.scorer.content(doc_id)))
                    && !is_recorded_question(source, doc_id, self.concept)
                {
                    found.push((place, doc_id));
                }
            }
        }
        Ok(found)
    }

    /// Returns the best candidates of all sources together.
    fn candidates(
        &self,
        scorers: &[Box<dyn ConceptScorer + '_>],
        depth: usize,
        notes: &mut Notes,
    ) -> Result<Candidates> {
        let call = self.ranker().call;
        let mut by_terms = Vec::new();
        let mut covered = 0.0;
        for (place, scorer) in scorers.iter().enumerate() {
            let found = scorer.by_terms(depth, call)?;
            covered = f32::max(covered, found.covered);
            by_terms.extend(of_source(place, found.messages));
        }
        let share = covered / self.concept.weight.max(f32::MIN_POSITIVE);
        let coverage = (share / WELL_COVERED).min(1.0);
        let encoder = ENCODER_WEIGHT + ENCODER_GROWTH * (1.0 - coverage).powi(2);
        let encoder = encoder * self.concept.encoded_known;
        let vectors = VectorWeights { model: self.concept.known, encoder };
        let mut by_vector = Vec::new();
        let mut by_vector_not_encoded = Vec::new();
        for (place, scorer) in scorers.iter().enumerate().filter(|_| self.concept.has_vector()) {
            match scorer.by_vector(vectors, depth, call) {
                Ok(found) => {
                    by_vector.extend(of_source(place, found.messages));
                    by_vector_not_encoded.extend(of_source(place, found.not_encoded));
                }
                Err(error) if error.is_stopped() => return Err(error),
                Err(error) => notes.add(Note::ProviderAway { reason: error.to_string() }),
            }
        }
        let mut is_cut = false;
        for found in [&mut by_terms, &mut by_vector, &mut by_vector_not_encoded] {
            is_cut |= found.len() >= depth;
            found.sort_unstable_by(Scored::order);
            found.truncate(depth);
        }
        Ok(Candidates { by_terms, by_vector, by_vector_not_encoded, coverage, vectors, is_cut })
    }

    fn scale(&self, candidates: &Candidates) -> Scale {
        let concept = self.concept;
        let vector_share = if !concept.has_vector() {
            0.0
        } else if self.ranker().question.mode == Mode::Vector || concept.terms.is_empty() {
            1.0
        } else {
            // The less the words cover, the larger is the share of vectors.
            let share = self.ranker().vector_share * concept.known_to_models();
            concept.known_to_any() * (1.0 - (1.0 - share) * candidates.coverage.powi(2))
        };
        Scale {
            term_share: 1.0 - vector_share,
            vector_share,
            best_terms: candidates.by_terms.first().map_or(1.0, |scored| scored.score),
            vectors: candidates.vectors,
            nearness: nearness(&candidates.by_vector),
            nearness_not_encoded: nearness(&candidates.by_vector_not_encoded),
        }
    }
}

/// Returns the whole question, if messages with it come first: a question of several words or with other
/// characters than letters and digits, of at least four characters. Of a single word, messages with the
/// same form come before those with another form, but by meaning alone they do not.
fn whole_question(
    opened: &OpenedSources<'_>,
    concept: &Concept,
    text: &str,
) -> Option<WholeQuestion> {
    let ranker = opened.scoped.ranker;
    let query = &concept.query;
    if ranker.concepts().len() > 1 || query.is_all_quoted || query.excludes() {
        return None;
    }
    let text = snippet::trim(text);
    let phrase = normalise_phrase(text);
    let is_word = phrase.chars().all(|c| c.is_alphanumeric() && !is_unspaced(c));
    let least = if phrase.contains(is_unspaced) { LEAST_UNSPACED } else { LEAST_WHOLE };
    let is_wanted =
        phrase.chars().count() >= least && !(is_word && ranker.question.mode == Mode::Vector);
    is_wanted.then(|| WholeQuestion { text: text.to_owned(), phrase, is_word })
}

/// Returns the scale for the similarities of messages, which are sorted, the best first.
fn nearness(found: &[Scored]) -> Nearness {
    let cosines: Vec<f32> = found.iter().map(|scored| scored.score).collect();
    Nearness::among(&cosines)
}

/// The whole question, and whether it is a single word.
struct WholeQuestion {
    /// The question as it was typed.
    text: String,
    phrase: String,
    is_word: bool,
}

/// Drops the recorded questions that are this question, if there are other messages: they do not answer it.
fn drop_recorded_questions(
    sources: &[RankedSource],
    messages: &mut Vec<Scored>,
    concept: &Concept,
) {
    let recorded = messages
        .iter()
        .filter(|it| is_recorded_question(&sources[it.source], it.doc_id, concept))
        .map(Scored::place);
    let recorded: HashSet<MessagePlace> = recorded.collect();
    if recorded.len() < messages.len() {
        messages.retain(|scored| !recorded.contains(&scored.place()));
    }
}

/// Returns whether a message is a turn of a user in a recorded thread that asks the same: it has the words of
/// the question, or it is a question with no other words.
fn is_recorded_question(source: &RankedSource, doc_id: u32, concept: &Concept) -> bool {
    let text = &concept.query.text;
    let scorer = &source.scorer;
    if source.source.kind != SourceKind::Threads
        || scorer.role(doc_id) != "user"
        || scorer.content_length(doc_id) > 2 * text.len() + MOST_SIGNS
    {
        return false;
    }
    let content = scorer.content(doc_id);
    let said = words_of(&content);
    let asked = words_of(text);
    let is_question = content.trim_end().ends_with(['?', '？', '؟']);
    said == asked || is_question && said.iter().all(|word| asked.contains(word))
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Puts the messages with the whole question first. Beyond those that were looked up, the texts of the best
/// messages are compared.
fn put_first(
    sources: &[RankedSource],
    all: &mut [Scored],
    whole: &WholeQuestion,
    with_whole: Vec<MessagePlace>,
) {
    let is_complete = !whole.is_word && with_whole.len() < MOST_WHOLE;
    let with_whole: HashSet<MessagePlace> = with_whole.into_iter().collect();
    let mut query = Query::default();
    let phrases = if whole.is_word { &mut query.excluded } else { &mut query.phrases };
    phrases.push(whole.phrase.clone());
    let mut are_first = Vec::new();
    for (at, scored) in all.iter().enumerate() {
        let scorer = &sources[scored.source].scorer;
        let may_have = !is_complete && at < MOST_WHOLE;
        are_first.push(
            with_whole.contains(&scored.place())
                || may_have && query.allows(&scorer.content(scored.doc_id)) != whole.is_word,
        );
    }
    if !are_first.contains(&true) {
        return;
    }
    for (scored, is_first) in all.iter_mut().zip(are_first) {
        scored.score =
            if is_first { f32::midpoint(scored.score, 1.0) } else { OTHER_SHARE * scored.score };
    }
    all.sort_unstable_by(Scored::order);
}

fn of_source(source: usize, found: Vec<(u32, f32)>) -> impl Iterator<Item = Scored> {
    found.into_iter().map(move |(doc_id, score)| Scored { source, doc_id, score })
}

/// The best candidates of all sources for a concept, the best first.
struct Candidates {
    by_terms: Vec<Scored>,
    by_vector: Vec<Scored>,
    /// The best messages that the encoder has not read yet.
    by_vector_not_encoded: Vec<Scored>,
    /// How much of the question the words of the best message cover, from 0 to 1: 1 if they have
    /// [`WELL_COVERED`] of its IDF or more.
    coverage: f32,
    /// The weights of the cosines in the similarities.
    vectors: VectorWeights,
    /// Whether there may be more.
    is_cut: bool,
}
