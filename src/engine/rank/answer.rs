//! Answers by rank: messages and conversations, best first.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    ConversationMatch, Fields, Match, Mode, Question, Ranking,
    concept::{ParsedConcept, ask},
    passage,
    prepare::Searcher,
    score::{Filter, Scored, weigh},
};
use crate::{
    engine::{Engine, Error, SourceKind},
    model::Stop,
    text::{snippet, words::Tokenizer},
};

/// Messages that stand for a conversation, the most.
const MATCHES: usize = 5;

/// What the second message of a conversation adds to the score of its best, and the third.
const FURTHER: [f32; 2] = [0.15, 0.05];

/// What a title and a summary that say all that is asked count beside the best of the messages.
const GIST: f32 = 0.5;

/// Bytes of white space around a text that make no other text of it.
const SPACE: usize = 64;

/// Bytes of a text that are compared with the question piece by piece for the best passage.
const MOST_CHUNKED: usize = 16 << 10;

/// What was found for a question.
pub(crate) struct Found {
    pub(crate) searchers: Vec<Arc<Searcher>>,
    pub(crate) concept: Vec<ParsedConcept>,
    scored: Vec<Scored>,
    pub(crate) notes: Vec<String>,
}

impl Engine {
    /// Returns the messages that answer a question best.
    ///
    /// A text that several messages have is given once, with their number.
    pub fn rank(&self, question: &Question, stop: &Stop) -> Result<Ranking<Match>, Error> {
        if question.mode == Mode::Exact {
            return self.rank_exactly(question, stop);
        }
        let Some(found) = self.find(question, stop)? else {
            return self.rank_exactly(question, stop);
        };
        let items = self.matches(&found, &found.scored, question.limit);
        Ok(Ranking { items, notes: found.notes })
    }

    /// Returns the messages that answer a question best by their ids, duplicates and all.
    pub fn rank_ids(&self, question: &Question, stop: &Stop) -> Result<Vec<String>, Error> {
        let Some(found) = self.find(question, stop)? else {
            let ranking = self.rank_exactly(question, stop)?;
            return Ok(ranking.items.into_iter().map(|one| one.hit.message_id).collect());
        };
        let id = |scored: &Scored| {
            found.searchers[scored.searcher].snapshot().hit(scored.doc_id, false).message_id
        };
        Ok(found.scored.iter().take(question.limit).map(id).collect())
    }

    /// Returns the conversations that answer a question best.
    pub fn rank_conversations(
        &self,
        question: &Question,
        stop: &Stop,
    ) -> Result<Ranking<ConversationMatch>, Error> {
        if question.mode == Mode::Exact {
            return self.conversations_exactly(question, stop);
        }
        let Some(mut found) = self.find(question, stop)? else {
            return self.conversations_exactly(question, stop);
        };
        let gists = match question.fields {
            Fields::Messages => HashMap::new(),
            Fields::Summaries | Fields::Both => self.weigh_gists(question, &mut found, stop)?,
        };
        let mut of: HashMap<(usize, u32), Vec<Scored>> = HashMap::new();
        for scored in &found.scored {
            let catalogue = &found.searchers[scored.searcher].catalogue;
            if let Some(conversation) = catalogue.conversation(scored.doc_id) {
                of.entry((scored.searcher, conversation)).or_default().push(*scored);
            }
        }
        let mut scores: HashMap<(usize, u32), f32> = HashMap::new();
        for (conversation, messages) in &of {
            let further = messages[1..].iter().zip(FURTHER).map(|(one, part)| part * one.score);
            scores.insert(*conversation, messages[0].score + further.sum::<f32>());
        }
        let of_messages = 1.0 + FURTHER.iter().sum::<f32>();
        let (share, most) = match question.fields {
            Fields::Messages => (0.0, of_messages),
            Fields::Summaries => (1.0, 1.0),
            Fields::Both => (GIST, of_messages + GIST),
        };
        for (conversation, score) in gists {
            *scores.entry(conversation).or_default() += share * score;
        }
        let mut order: Vec<((usize, u32), f32)> = scores.into_iter().collect();
        order.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        order.truncate(question.limit);
        let items = order
            .into_iter()
            .map(|(conversation, score)| {
                let searcher = &found.searchers[conversation.0];
                let messages = of.remove(&conversation).unwrap_or_default();
                ConversationMatch {
                    about: self.about_ready(searcher, conversation.1),
                    score: f64::from(score / most),
                    matches: self.matches(&found, &messages, MATCHES),
                }
            })
            .collect();
        Ok(Ranking { items, notes: std::mem::take(&mut found.notes) })
    }

    fn about_ready(&self, searcher: &Searcher, conversation: u32) -> super::About {
        self.about_listed(searcher.kind, &searcher.catalogue, conversation)
    }

    /// Scores every message that answers, where messages are ranked; `None` where there is nothing to
    /// rank by and the text has to be found as it stands.
    fn find(&self, question: &Question, stop: &Stop) -> Result<Option<Found>, Error> {
        let mut notes = Vec::new();
        let concepts = question.concepts.iter().map(|concept| snippet::trim(concept));
        let concepts: Vec<&str> = concepts.filter(|concept| !concept.is_empty()).collect();
        let searchers = self.searcher(&question.scope, stop, &mut notes)?;
        if concepts.is_empty() {
            return Ok(Some(Found { searchers, concept: Vec::new(), scored: Vec::new(), notes }));
        }
        if searchers.is_empty() {
            return Ok(None);
        }
        let selections: Vec<Filter> = searchers
            .iter()
            .map(|searcher| {
                let some =
                    self.conversations_of(searcher.kind, &searcher.catalogue, &question.scope);
                Filter::of(searcher, &question.scope, some)
            })
            .collect();
        let model = self.model();
        let is_one_of_several = concepts.len() > 1;
        let mut all = Vec::new();
        let mut every: Vec<Vec<Scored>> = Vec::new();
        for concept in concepts {
            let mut concept =
                ask(concept, question.mode, &searchers, &selections, model, stop, &mut notes)?;
            if concept.terms.is_empty()
                && concept.vector.is_none()
                && concept.query.phrases.is_empty()
            {
                let is_wordless = Tokenizer::default().question(&concept.query.text).is_empty();
                if is_wordless && !is_one_of_several {
                    return Ok(None);
                }
            }
            if question.fields != Fields::Summaries {
                every.push(weigh(
                    &searchers,
                    &selections,
                    &mut concept,
                    question.mode,
                    is_one_of_several,
                    stop,
                    &mut notes,
                )?);
            }
            all.push(concept);
        }
        notes.dedup();
        let scored = match every.len() {
            0 => Vec::new(),
            1 => every.remove(0),
            _ => together(&searchers, every),
        };
        Ok(Some(Found { searchers, concept: all, scored, notes }))
    }

    /// Returns the first of some messages as matches, those of one text together.
    fn matches(&self, found: &Found, scored: &[Scored], limit: usize) -> Vec<Match> {
        let cutter = Tokenizer::default();
        let terms: Vec<(String, f32)> = found
            .concept
            .iter()
            .flat_map(|concept| &concept.terms)
            .map(|term| (term.term.clone(), term.weight))
            .collect();
        let mut matches: Vec<Match> = Vec::new();
        let mut known: HashMap<u64, usize> = HashMap::new();
        for one in scored {
            let searcher = &found.searchers[one.searcher];
            let snapshot = searcher.snapshot();
            let next = matches.len();
            // Beyond the limit only further copies are counted; to read all texts for that is dear.
            let length = snapshot.content_length(one.doc_id);
            let is_like = |match_: &Match| match_.hit.content.len().abs_diff(length) <= SPACE;
            if next == limit && !matches.iter().any(is_like) {
                continue;
            }
            let content = snapshot.content(one.doc_id);
            let mut hasher = DefaultHasher::new();
            (snippet::trim(&content), snapshot.role(one.doc_id)).hash(&mut hasher);
            match known.entry(hasher.finish()) {
                std::collections::hash_map::Entry::Occupied(place) => {
                    if let Some(first) = matches.get_mut(*place.get()) {
                        first.copies += 1;
                    }
                }
                std::collections::hash_map::Entry::Vacant(place) => {
                    if next < limit {
                        place.insert(next);
                        let hit = snapshot.hit(one.doc_id, false);
                        let passage = self.passage(&hit.content, found, &terms, &cutter);
                        let place = searcher.catalogue.place(one.doc_id).unwrap_or(0);
                        let line = line(searcher.kind, hit.position, place);
                        let score = f64::from(one.score);
                        let source = searcher.kind;
                        matches.push(Match { source, hit, score, line, passage, copies: 1 });
                    }
                }
            }
        }
        matches
    }

    /// Returns what of a text answers best: where its words stand, else what is most like it.
    fn passage(
        &self,
        text: &str,
        found: &Found,
        terms: &[(String, f32)],
        cutter: &Tokenizer,
    ) -> String {
        let text = snippet::trim(text);
        let short = snippet::cut(text, passage::LENGTH).is_none();
        let here = passage::up_to(text, MOST_CHUNKED);
        let vector = found.concept.iter().find_map(|concept| concept.vector.as_ref());
        let has_term = || {
            let mut has = false;
            cutter.cut(here, |term| has |= terms.iter().any(|(known, _)| known == term));
            has
        };
        let model = self.model();
        match vector {
            Some(vector) if !short && model.is_built_in() && !has_term() => {
                let chunks = passage::chunks(here);
                let texts: Vec<&str> = chunks.iter().map(|chunk| &here[chunk.clone()]).collect();
                let vectors = model.encode(&texts, &Stop::never()).unwrap_or_default();
                let likeness = |other: &[f32]| -> f32 {
                    vector.iter().zip(other).map(|(one, other)| one * other).sum()
                };
                let best = vectors
                    .iter()
                    .map(|other| likeness(other))
                    .enumerate()
                    .fold((0, f32::MIN), |best, one| if one.1 > best.1 { one } else { best });
                passage::from_chunk(text, chunks.get(best.0).cloned().unwrap_or(0..0))
            }
            _ => passage::passage(text, terms, cutter),
        }
    }
}

/// The number of a message's line: of a transcript's file, where that is what positions are.
pub(crate) fn line(kind: SourceKind, position: Option<i64>, place: u32) -> u32 {
    let of_file = position.and_then(|position| u32::try_from(position).ok());
    match (kind, of_file) {
        (SourceKind::Archive, Some(line)) => line.max(1),
        _ => place + 1,
    }
}

/// Returns the messages of the conversations that answer every one of several questions: each with
/// the best of its scores, and half of it for how well its conversation answers all.
fn together(searchers: &[Arc<Searcher>], every: Vec<Vec<Scored>>) -> Vec<Scored> {
    let conversation = |one: &Scored| {
        Some((one.searcher, searchers[one.searcher].catalogue.conversation(one.doc_id)?))
    };
    let count = every.len() as f32;
    let mut in_all: Option<HashSet<(usize, u32)>> = None;
    let mut sums: HashMap<(usize, u32), f32> = HashMap::new();
    for scored in &every {
        let mut best: HashMap<(usize, u32), f32> = HashMap::new();
        for one in scored {
            if let Some(conversation) = conversation(one) {
                let score = best.entry(conversation).or_default();
                *score = score.max(one.score);
            }
        }
        let here: HashSet<_> = best.keys().copied().collect();
        in_all = Some(match in_all {
            Some(in_all) => in_all.intersection(&here).copied().collect(),
            None => here,
        });
        for (conversation, score) in best {
            *sums.entry(conversation).or_default() += score / count;
        }
    }
    let in_all = in_all.unwrap_or_default();
    let mut messages: HashMap<(usize, u32), f32> = HashMap::new();
    for one in every.iter().flatten() {
        let Some(conversation) = conversation(one).filter(|one| in_all.contains(one)) else {
            continue;
        };
        let score = (one.score + sums[&conversation]) / 2.0;
        let known = messages.entry((one.searcher, one.doc_id)).or_default();
        *known = known.max(score);
    }
    let mut scored: Vec<Scored> = messages
        .into_iter()
        .map(|((searcher, doc_id), score)| Scored { searcher, doc_id, score })
        .collect();
    scored.sort_unstable_by(Scored::order);
    scored
}
