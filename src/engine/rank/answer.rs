//! Makes the ranked answer: messages with their passages, and conversations with their messages.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    fuse::Scored,
    passage,
    prepare::RankedSource,
    question::{ConversationMatch, Fields, MAX_MATCHES, Match, Mode},
    ranker::Ranker,
};
use crate::{
    engine::{
        error::Error,
        source::{line_number, scoring::Concept},
    },
    model::{MOST_KEPT, Stop},
    text::{snippet, words::Tokenizer},
};

/// Shares of the second and the third message's scores that are added to the best message's score.
const FURTHER_SHARES: [f32; 2] = [0.15, 0.05];

/// The weight of titles and summaries. Messages have weight 1.
const TITLE_WEIGHT: f32 = 0.5;

/// Texts whose lengths differ by more bytes than this are different even without white space.
const MAX_SPACE: usize = 64;

/// The most bytes of a text that are searched for the passage that is nearest to the query.
const MAX_CHUNKED: usize = 16 << 10;

/// A conversation: the place of its source among the ranked sources, and its number there.
pub(super) type ConversationKey = (usize, u32);

/// The scored messages for a question, with the sources and concepts.
pub(super) struct ScoredMessages {
    pub(super) sources: Vec<RankedSource>,
    pub(super) concepts: Vec<Concept>,
    pub(super) scored: Vec<Scored>,
}

impl Ranker<'_> {
    /// Scores every message that answers. Returns `None` if there is nothing to rank by, so that
    /// the text has to be searched as a substring.
    pub(super) fn find(&mut self) -> Result<Option<ScoredMessages>, Error> {
        if self.question.mode == Mode::Exact {
            return Ok(None);
        }
        let texts = self.concepts();
        let sources = self.open_sources()?;
        if texts.is_empty() {
            return Ok(Some(ScoredMessages { sources, concepts: Vec::new(), scored: Vec::new() }));
        }
        if sources.is_empty() {
            return Ok(None);
        }
        let is_single = texts.len() == 1;
        let mut concepts = Vec::new();
        let mut by_concept: Vec<Vec<Scored>> = Vec::new();
        for text in texts {
            let mut concept = self.parse_concept(text, &sources)?;
            if is_single && is_without_words(&concept) {
                return Ok(None);
            }
            if self.question.fields != Fields::Summaries {
                by_concept.push(self.score_messages(&sources, &mut concept)?);
            }
            concepts.push(concept);
        }
        self.notes.dedup();
        let scored = match by_concept.len() {
            0 => Vec::new(),
            1 => by_concept.remove(0),
            _ => in_common_conversations(&sources, by_concept),
        };
        Ok(Some(ScoredMessages { sources, concepts, scored }))
    }

    /// Returns the conversations that answer best.
    pub(super) fn ranked_conversations(
        &mut self,
        found: &ScoredMessages,
    ) -> Result<Vec<ConversationMatch>, Error> {
        let fields = self.question.fields;
        let titles = match fields {
            Fields::Messages => HashMap::new(),
            Fields::Summaries | Fields::Both => self.score_titles(found)?,
        };
        let mut messages: HashMap<ConversationKey, Vec<Scored>> = HashMap::new();
        for scored in &found.scored {
            let scorer = &found.sources[scored.source].scorer;
            if let Some(conversation) = scorer.conversation(scored.doc_id) {
                messages.entry((scored.source, conversation)).or_default().push(*scored);
            }
        }
        let mut scores: HashMap<ConversationKey, f32> = HashMap::new();
        for (conversation, scored) in &messages {
            let further =
                scored[1..].iter().zip(FURTHER_SHARES).map(|(scored, share)| share * scored.score);
            scores.insert(*conversation, scored[0].score + further.sum::<f32>());
        }
        let of_messages = 1.0 + FURTHER_SHARES.iter().sum::<f32>();
        let (title_weight, max_score) = match fields {
            Fields::Messages => (0.0, of_messages),
            Fields::Summaries => (1.0, 1.0),
            Fields::Both => (TITLE_WEIGHT, of_messages + TITLE_WEIGHT),
        };
        for (conversation, score) in titles {
            *scores.entry(conversation).or_default() += title_weight * score;
        }
        let mut order: Vec<(ConversationKey, f32)> = scores.into_iter().collect();
        order.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        order.truncate(self.question.limit);
        let items = order.into_iter().map(|((source, conversation), score)| {
            let scored = messages.remove(&(source, conversation)).unwrap_or_default();
            ConversationMatch {
                about: found.sources[source].scorer.about(conversation),
                score: f64::from(score / max_score),
                matches: self.matches(found, &scored, MAX_MATCHES),
            }
        });
        Ok(items.collect())
    }

    /// Returns the first of some messages; messages with the same text are returned once.
    pub(super) fn matches(
        &self,
        found: &ScoredMessages,
        scored: &[Scored],
        limit: usize,
    ) -> Vec<Match> {
        let passages = Passages::new(self, found);
        let mut matches: Vec<Match> = Vec::new();
        let mut known: HashMap<u64, usize> = HashMap::new();
        for scored in scored {
            let source = &found.sources[scored.source];
            let scorer = &source.scorer;
            let next = matches.len();
            // Beyond the limit only copies are counted. Reading all texts for that is expensive.
            let length = scorer.content_length(scored.doc_id);
            let may_be_copy = |other: &Match| {
                other.hit.content.len().abs_diff(length.min(MOST_KEPT)) <= MAX_SPACE
            };
            if next == limit && !matches.iter().any(may_be_copy) {
                continue;
            }
            let content = scorer.content(scored.doc_id);
            let mut hasher = DefaultHasher::new();
            (snippet::trim(&content), scorer.role(scored.doc_id)).hash(&mut hasher);
            match known.entry(hasher.finish()) {
                Entry::Occupied(first) => {
                    if let Some(first) = matches.get_mut(*first.get()) {
                        first.copies += 1;
                    }
                }
                Entry::Vacant(entry) if next < limit => {
                    entry.insert(next);
                    let hit = scorer.hit(scored.doc_id).kept(0);
                    let turn = scorer.turn(scored.doc_id).unwrap_or(0) as usize;
                    matches.push(Match {
                        source: source.kind,
                        score: f64::from(scored.score),
                        line: line_number(source.kind, hit.position, turn),
                        passage: passages.best(&content),
                        copies: 1,
                        hit,
                    });
                }
                Entry::Vacant(_) => {}
            }
        }
        matches
    }
}

/// Returns whether a concept has nothing to rank by: no term, no vector, no quoted phrase.
fn is_without_words(concept: &Concept) -> bool {
    concept.terms.is_empty()
        && concept.vector.is_none()
        && concept.query.phrases.is_empty()
        && Tokenizer::default().question(&concept.query.text).is_empty()
}

/// Finds the passages that answer a question best.
struct Passages<'a> {
    ranker: &'a Ranker<'a>,
    terms: Vec<(String, f32)>,
    vector: Option<&'a [f32]>,
    tokenizer: Tokenizer,
}

impl<'a> Passages<'a> {
    fn new(ranker: &'a Ranker<'a>, found: &'a ScoredMessages) -> Passages<'a> {
        let terms = found.concepts.iter().flat_map(|concept| &concept.terms);
        Passages {
            ranker,
            terms: terms.map(|term| (term.term.clone(), term.weight)).collect(),
            vector: found.concepts.iter().find_map(|concept| concept.vector.as_deref()),
            tokenizer: Tokenizer::default(),
        }
    }

    /// Returns the passage where the query's terms are or, without any, the nearest by its vector.
    fn best(&self, text: &str) -> String {
        let text = snippet::trim(text);
        let is_short = snippet::cut(text, passage::LENGTH).is_none();
        let start = passage::up_to(text, MAX_CHUNKED);
        let model = self.ranker.sources.model();
        match self.vector {
            Some(vector) if !is_short && model.is_built_in() && !self.has_term(start) => {
                let chunks = passage::chunks(start);
                let texts: Vec<&str> = chunks.iter().map(|chunk| &start[chunk.clone()]).collect();
                let vectors = model.encode(&texts, &Stop::never()).unwrap_or_default();
                let cosine = |other: &[f32]| -> f32 {
                    vector.iter().zip(other).map(|(one, other)| one * other).sum()
                };
                let nearest = vectors
                    .iter()
                    .map(|other| cosine(other))
                    .enumerate()
                    .fold((0, f32::MIN), |best, one| if one.1 > best.1 { one } else { best });
                passage::from_chunk(text, chunks.get(nearest.0).cloned().unwrap_or(0..0))
            }
            _ => passage::passage(text, &self.terms, &self.tokenizer),
        }
    }

    fn has_term(&self, text: &str) -> bool {
        let mut has = false;
        self.tokenizer.cut(text, |term| has |= self.terms.iter().any(|(known, _)| known == term));
        has
    }
}

/// Returns the messages of the conversations that answer all of several concepts. A message has the
/// mean of its best score and of how well its conversation answers all concepts.
fn in_common_conversations(sources: &[RankedSource], by_concept: Vec<Vec<Scored>>) -> Vec<Scored> {
    let conversation = |scored: &Scored| -> Option<ConversationKey> {
        Some((scored.source, sources[scored.source].scorer.conversation(scored.doc_id)?))
    };
    let count = by_concept.len() as f32;
    let mut common: Option<HashSet<ConversationKey>> = None;
    let mut sums: HashMap<ConversationKey, f32> = HashMap::new();
    for scored in &by_concept {
        let mut best: HashMap<ConversationKey, f32> = HashMap::new();
        for scored in scored {
            if let Some(conversation) = conversation(scored) {
                let score = best.entry(conversation).or_default();
                *score = score.max(scored.score);
            }
        }
        let here: HashSet<_> = best.keys().copied().collect();
        common = Some(match common {
            Some(common) => common.intersection(&here).copied().collect(),
            None => here,
        });
        for (conversation, score) in best {
            *sums.entry(conversation).or_default() += score / count;
        }
    }
    let common = common.unwrap_or_default();
    let mut messages: HashMap<(usize, u32), f32> = HashMap::new();
    for scored in by_concept.iter().flatten() {
        let Some(conversation) = conversation(scored).filter(|it| common.contains(it)) else {
            continue;
        };
        let score = (scored.score + sums[&conversation]) / 2.0;
        let known = messages.entry((scored.source, scored.doc_id)).or_default();
        *known = known.max(score);
    }
    let mut scored: Vec<Scored> = messages
        .into_iter()
        .map(|((source, doc_id), score)| Scored { source, doc_id, score })
        .collect();
    scored.sort_unstable_by(Scored::order);
    scored
}
