//! Builds the ranked answer: messages with passages, and conversations with their messages.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
};

use super::{
    fuse::Scored,
    passage,
    question::{ConversationMatch, Fields, MAX_MATCHES, Match, Mode},
    ranker::{ConversationPlace, Ranker},
    sources::{OpenedSources, RankedSource},
    substring::span_of,
};
use crate::{
    error::Result,
    scoring::Concept,
    source::{Note, Source, line_number},
};
use verbatim_base::model::{MOST_KEPT, Stop};
use verbatim_embed::SentenceEncoder;
use verbatim_text::{
    matcher::Matchers,
    query::{PhraseSearch, Query},
    snippet, up_to,
    words::Tokenizer,
};

/// Shares of the second and the third message's scores that are added to the best message's score.
const FURTHER_SHARES: [f32; 2] = [0.15, 0.05];

/// The weight of the share of the question's IDF that a conversation covers with all its messages and its
/// title.
///
/// With it, a session of LoCoMo that answers is the first of all ten chats' for .67 of 700 questions, and for
/// .64 without it.
const COVERAGE_WEIGHT: f32 = 0.4;

/// The weight of title and summary scores. Message scores have weight 1.
const TITLE_WEIGHT: f32 = 0.5;

/// Maximum difference in bytes of two texts that may be equal apart from white space.
const MAX_SPACE: usize = 64;

/// Number of bytes of a text in which the passage nearest to the query's vector is searched.
const MAX_CHUNKED: usize = 16 << 10;

/// The share of the question's IDF from which a passage is chosen by its terms, and not by meaning.
const LEAST_BY_TERMS: f32 = 0.5;

/// Maximum number of chunks of a message of which the encoder chooses the passage, after the other model.
const MAX_COMPARED: usize = 4;

/// Maximum number of groups of chunks of a message that the encoder compares without the other model.
const MAX_GROUPS: usize = 12;

/// Number of bytes of a chunk, or of a group of chunks, that the encoder reads.
const MAX_ENCODED_OF_CHUNK: usize = 300;

/// Number of bytes at the beginning of a quoted text that a passage is placed around.
const MAX_SPAN: usize = 200;

/// Number of bytes of a text that are searched for terms if the text may have none of them.
const MAX_WITHOUT_TERMS: usize = 64 << 20;

/// The scored messages for a question, with the sources and concepts.
pub(super) struct ScoredMessages {
    pub(super) sources: Vec<RankedSource>,
    pub(super) concepts: Vec<Concept>,
    pub(super) scored: Vec<Scored>,
}

/// The result of ranking by the indexes, and the sources without an index.
pub(super) enum FoundBy {
    /// The scored messages, and the sources that have to be scanned.
    Scores(ScoredMessages, Vec<Source>),
    /// The question has no terms and no vector. These sources are searched for its text as a substring.
    Substring(Vec<Source>),
}

impl Ranker<'_> {
    /// Scores every message that fits the question, in the sources that have an index.
    pub(super) fn find(&mut self) -> Result<FoundBy> {
        if self.question.mode == Mode::Exact {
            return Ok(FoundBy::Substring(self.readable_sources()?));
        }
        let texts = self.concepts();
        let OpenedSources { ranked: sources, scanned } = self.open_sources()?;
        let all = || sources.iter().map(|it| it.source.clone()).chain(scanned.clone()).collect();
        let is_single = texts.len() == 1;
        let is_quoted = |text: &str| !Query::parse(text).phrases.is_empty();
        if is_single && sources.is_empty() && !has_words(texts[0]) && !is_quoted(texts[0]) {
            self.note_no_words(texts[0]);
            return Ok(FoundBy::Substring(all()));
        }
        let mut concepts = Vec::new();
        let mut by_concept: Vec<Vec<Scored>> = Vec::new();
        for text in texts.into_iter().filter(|_| !sources.is_empty()) {
            let mut concept = self.parse_concept(text, &sources)?;
            if is_single && is_without_words(&concept) {
                self.note_no_words(text);
                return Ok(FoundBy::Substring(all()));
            }
            if is_single && scanned.is_empty() && self.is_within_words(text, &concept, &all())? {
                return Ok(FoundBy::Substring(all()));
            }
            if self.question.fields != Fields::Summaries {
                by_concept.push(self.score_messages(&sources, &mut concept, text)?);
            }
            concepts.push(concept);
        }
        let scored = match by_concept.len() {
            0 => Vec::new(),
            1 => by_concept.remove(0),
            _ => in_common_conversations(&sources, by_concept, self.common.is_some()),
        };
        Ok(FoundBy::Scores(ScoredMessages { sources, concepts, scored }, scanned))
    }

    fn note_no_words(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.note(Note::NoWords { text: text.to_owned() });
        }
    }

    /// Returns whether no message contains a word of the question that ranks, but some contain its text. Adds
    /// a note if so.
    fn is_within_words(
        &mut self,
        text: &str,
        concept: &Concept,
        sources: &[Source],
    ) -> Result<bool> {
        let is_plain = concept.query.text == text;
        let asks_for_words =
            self.question.mode != Mode::Vector && self.question.fields != Fields::Summaries;
        let may_be_incomplete = self.notes.iter().any(Note::is_gap);
        if !concept.terms.is_empty() || !is_plain || !asks_for_words || may_be_incomplete {
            return Ok(false);
        }
        let is_found = !self.containing(sources, 1, 0)?.0.is_empty();
        if is_found {
            self.notes.retain(|note| !matches!(note, Note::NoWord { .. }));
        }
        match is_found {
            true if has_words(text) => self.note(Note::WithinWords { text: text.to_owned() }),
            true => self.note_no_words(text),
            false => {}
        }
        Ok(is_found)
    }

    pub(super) fn ranked_conversations(
        &mut self,
        found: &ScoredMessages,
    ) -> Result<(Vec<ConversationMatch>, usize)> {
        let fields = self.question.fields;
        let titles = match fields {
            Fields::Messages | Fields::Turns => HashMap::new(),
            Fields::Summaries | Fields::Both => self.score_titles(found)?,
        };
        let mut messages: HashMap<ConversationPlace, Vec<Scored>> = HashMap::new();
        for scored in &found.scored {
            let scorer = &found.sources[scored.source].scorer;
            if let Some(conversation) = scorer.conversation(scored.doc_id) {
                messages.entry((scored.source, conversation)).or_default().push(*scored);
            }
        }
        let mut scores: HashMap<ConversationPlace, f32> = HashMap::new();
        for (conversation, scored) in &messages {
            scores.insert(*conversation, joined(scored.iter().map(|scored| scored.score)));
        }
        for (conversation, covered) in &self.covered {
            if let Some(score) = scores.get_mut(conversation) {
                *score += COVERAGE_WEIGHT * covered;
            }
        }
        let (title_weight, mut max_score) = weights(fields);
        if !self.covered.is_empty() {
            max_score += COVERAGE_WEIGHT;
        }
        for (conversation, score) in titles {
            *scores.entry(conversation).or_default() += title_weight * score;
        }
        let mut order: Vec<(ConversationPlace, f32)> = scores.into_iter().collect();
        order.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut total = order.len();
        let mut items = Vec::new();
        // An outdated index may list deleted conversations. The next ones replace them.
        for some in order.chunks(self.question.limit.max(1)) {
            let old: Vec<ConversationPlace> = some.iter().map(|(key, _)| *key).collect();
            let mut descriptions = self.descriptions_of_outdated(&found.sources, &old);
            for &((source, conversation), score) in some {
                let ranked = &found.sources[source];
                let scored = messages.remove(&(source, conversation)).unwrap_or_default();
                let mut matches = self.matches(found, &scored, MAX_MATCHES);
                let about = match &ranked.checked {
                    None => ranked.scorer.about(conversation),
                    Some(_) => {
                        let Some(description) = descriptions.remove(&(source, conversation)) else {
                            total -= 1;
                            continue;
                        };
                        matches.iter_mut().for_each(|it| it.place_in(&description));
                        description.about
                    }
                };
                let score = f64::from(score / max_score);
                items.push(ConversationMatch { about, score, matches });
                if items.len() == self.question.limit {
                    return Ok((items, total));
                }
            }
        }
        Ok((items, total))
    }

    /// Returns the best messages, at most `limit`. Messages with the same text are returned once.
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
            // Beyond the limit, only copies are counted. It would be expensive to read all texts for this.
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
                    // Of a conversation, the best message is shown first or alone.
                    let may_encode = self.wanted == 0 || next == 0;
                    let (passage, place) = passages.best(&content, may_encode);
                    let hit = scorer.hit(scored.doc_id).into_owned_at(place, MOST_KEPT);
                    let turn = scorer.turn(scored.doc_id).unwrap_or(0) as usize;
                    matches.push(Match {
                        source: source.kind,
                        score: f64::from(scored.score),
                        line: line_number(source.kind, hit.position, turn),
                        passage,
                        is_far: false,
                        is_title_only: false,
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

/// Returns the score of a conversation from the scores of its messages, which are sorted, best first.
pub(super) fn joined(scores: impl Iterator<Item = f32>) -> f32 {
    let shares = [1.0].into_iter().chain(FURTHER_SHARES);
    scores.zip(shares).map(|(score, share)| share * score).sum()
}

/// Returns the weight of title scores, and the highest possible score of a conversation.
pub(super) fn weights(fields: Fields) -> (f32, f32) {
    let of_messages = 1.0 + FURTHER_SHARES.iter().sum::<f32>();
    match fields {
        Fields::Messages | Fields::Turns => (0.0, of_messages),
        Fields::Summaries => (1.0, 1.0),
        Fields::Both => (TITLE_WEIGHT, of_messages + TITLE_WEIGHT),
    }
}

/// Returns whether a concept has no term, no vector and no quoted phrase to rank by.
fn is_without_words(concept: &Concept) -> bool {
    concept.terms.is_empty()
        && concept.vector.is_none()
        && concept.query.phrases.is_empty()
        && !has_words(&concept.query.text)
}

fn has_words(text: &str) -> bool {
    !Tokenizer::default().question(text).is_empty()
}

/// Finder of the passages that answer a question best.
struct Passages<'a> {
    ranker: &'a Ranker<'a>,
    /// The quoted texts, or the whole question.
    phrases: Vec<Matchers>,
    terms: Vec<(String, f32)>,
    /// The sum of the IDFs of the question's terms, also of those that occur in no message.
    weight: f32,
    vector: Option<&'a [f32]>,
    /// The encoder, and its vector of the question.
    encoded: Option<(SentenceEncoder, &'a [f32])>,
    tokenizer: Tokenizer,
}

impl<'a> Passages<'a> {
    fn new(ranker: &'a Ranker<'a>, found: &'a ScoredMessages) -> Passages<'a> {
        let terms = found.concepts.iter().flat_map(|concept| &concept.terms);
        let quoted = found.concepts.iter().flat_map(|concept| &concept.query.phrases);
        let quoted = quoted.map(|phrase| PhraseSearch::quoted(phrase));
        let texts = found.concepts.iter().map(|concept| &concept.query.text);
        let whole = texts.filter(|text| !text.is_empty()).map(|text| PhraseSearch::literal(text));
        let phrases = quoted.chain(whole);
        let encoded = found.concepts.iter().find_map(|concept| concept.encoded.as_deref());
        let matchers = |phrase: PhraseSearch| Matchers::of(&phrase.request).ok();
        Passages {
            ranker,
            phrases: phrases.filter_map(matchers).collect(),
            terms: terms.map(|term| (term.term.clone(), term.weight)).collect(),
            weight: found.concepts.iter().map(|concept| concept.weight).sum(),
            vector: found.concepts.iter().find_map(|concept| concept.vector.as_deref()),
            encoded: ranker.sources.model().sentence_encoder().zip(encoded),
            tokenizer: Tokenizer::default(),
        }
    }

    /// Returns the passage with the quoted text, the whole question or the query's terms, and its offset in the
    /// text. If there are none, or too few terms, returns the passage nearest to the query's vector, by the
    /// encoder if `may_encode`.
    fn best(&self, text: &str, may_encode: bool) -> (String, usize) {
        let trimmed = snippet::trim(text);
        let before = trimmed.as_ptr().addr() - text.as_ptr().addr();
        let range = self.range(trimmed, may_encode).unwrap_or(0..0);
        (passage::passage_around(trimmed, range.clone()), before + range.start)
    }

    fn range(&self, text: &str, may_encode: bool) -> Option<Range<usize>> {
        if let Some(span) = self.phrases.iter().find_map(|phrase| span_of(text, phrase)) {
            let start = span.start;
            return Some(start..start + up_to(&text[span], MAX_SPAN).len());
        }
        // Without a vector, the message was found by a term, so its text has one.
        let has_vector = self.vector.is_some() || self.encoded.is_some();
        let most = if has_vector { MAX_WITHOUT_TERMS } else { usize::MAX };
        let of_terms = passage::heaviest_place(text, &self.terms, &self.tokenizer, most);
        let is_enough = of_terms.as_ref().is_some_and(|(weight, _)| {
            self.encoded.is_none() || *weight >= LEAST_BY_TERMS * self.weight
        });
        let of_terms = of_terms.map(|(_, range)| range);
        let is_short = snippet::cut(text, passage::LENGTH).is_none();
        if is_enough || is_short || !self.ranker.sources.model().is_built_in() {
            return of_terms;
        }
        match self.encoded {
            Some(encoded) if may_encode && self.ranker.chunks_left.get() > 0 => {
                self.nearest_encoded(text, of_terms, encoded)
            }
            _ => of_terms.or_else(|| self.nearest_chunks(text)?.into_iter().next()),
        }
    }

    /// Returns the chunks at the beginning of a text, the nearest to the question's vector by the model of all
    /// messages first; `None` if the question has no such vector.
    fn nearest_chunks(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let vector = self.vector?;
        let chunks = passage::chunks(up_to(text, MAX_CHUNKED));
        let texts: Vec<&str> = chunks.iter().map(|chunk| &text[chunk.clone()]).collect();
        let vectors = self.ranker.sources.model().encode(&texts, &Stop::never()).ok()?;
        let cosines = vectors.iter().map(|other| cosine(vector, other));
        let mut found: Vec<_> = cosines.zip(chunks).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(found.into_iter().map(|(_, chunk)| chunk).collect())
    }

    /// Returns the chunk of a text that is nearest to the question's vector by the encoder. Compares the chunk
    /// with the terms, and the nearest ones by the other model. If that does not know the question, compares
    /// groups of neighbouring chunks by their beginnings, and then the chunks of the nearest group.
    fn nearest_encoded(
        &self,
        text: &str,
        of_terms: Option<Range<usize>>,
        encoded: (SentenceEncoder, &[f32]),
    ) -> Option<Range<usize>> {
        let is_of_terms =
            |chunk: &Range<usize>| of_terms.as_ref().is_some_and(|it| chunk.contains(&it.start));
        if let Some(mut chunks) = self.nearest_chunks(text) {
            let place = chunks.iter().position(is_of_terms);
            let by_terms = place.map(|place| chunks.remove(place)).or(of_terms.clone());
            chunks.truncate(MAX_COMPARED - usize::from(by_terms.is_some()));
            chunks.splice(..0, by_terms);
            return self.nearest_of(text, &chunks, encoded);
        }
        let chunks = passage::chunks(up_to(text, MAX_CHUNKED));
        let most = MAX_GROUPS.min(self.ranker.chunks_left.get());
        let groups: Vec<&[Range<usize>]> =
            chunks.chunks(chunks.len().div_ceil(most).max(1)).collect();
        let whole = |group: &&[Range<usize>]| group[0].start..group[group.len() - 1].end;
        let wholes: Vec<Range<usize>> = groups.iter().map(whole).collect();
        let nearest = self.nearest_of(text, &wholes, encoded)?;
        let group = groups.into_iter().find(|group| group[0].start == nearest.start)?;
        match group.len() {
            1 => Some(nearest),
            _ => self.nearest_of(text, group, encoded).or(Some(nearest)),
        }
    }

    /// Returns the range of a text whose beginning is nearest to the question's vector by the encoder.
    fn nearest_of(
        &self,
        text: &str,
        ranges: &[Range<usize>],
        (encoder, vector): (SentenceEncoder, &[f32]),
    ) -> Option<Range<usize>> {
        let left = self.ranker.chunks_left.get();
        let ranges = &ranges[..ranges.len().min(left)];
        self.ranker.chunks_left.set(left - ranges.len());
        let beginning = |range: &Range<usize>| up_to(&text[range.clone()], MAX_ENCODED_OF_CHUNK);
        let texts: Vec<&str> = ranges.iter().map(beginning).collect();
        let cosines: Vec<f32> =
            encoder.encode(&texts).iter().map(|other| cosine(vector, other)).collect();
        let nearest = cosines.iter().zip(ranges).max_by(|a, b| a.0.total_cmp(b.0));
        nearest.map(|(_, range)| range.clone())
    }
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Returns the messages of the conversations that answer every concept. `are_common` says that all found
/// conversations contain every concept. The score of a message is the mean of its best score and of its
/// conversation's score for all concepts.
fn in_common_conversations(
    sources: &[RankedSource],
    by_concept: Vec<Vec<Scored>>,
    are_common: bool,
) -> Vec<Scored> {
    let conversation = |scored: &Scored| -> Option<ConversationPlace> {
        Some((scored.source, sources[scored.source].scorer.conversation(scored.doc_id)?))
    };
    let count = by_concept.len() as f32;
    let mut common: Option<HashSet<ConversationPlace>> = None;
    let mut sums: HashMap<ConversationPlace, f32> = HashMap::new();
    for scored in &by_concept {
        let mut best: HashMap<ConversationPlace, f32> = HashMap::new();
        for scored in scored {
            if let Some(conversation) = conversation(scored) {
                let score = best.entry(conversation).or_default();
                *score = score.max(scored.score);
            }
        }
        let here: HashSet<_> = best.keys().copied().collect();
        common = Some(match common {
            Some(common) if are_common => &common | &here,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Question, TestExport};

    #[test]
    fn of_a_very_long_message_the_part_with_the_words_is_kept() {
        let filler = "nothing to see here at all, ".repeat(MOST_KEPT / 28 + 1);
        let text = format!("{filler} the turtle swam over the reef. {}", &filler[..MOST_KEPT / 9]);
        for is_indexed in [true, false] {
            // The messages differ, although the part that is kept is the same.
            let other = format!("another beginning {text}");
            let export = TestExport::of(&[&text, &other, "something else"]);
            let mut config = export.engine.config().clone();
            if is_indexed {
                export.reindex();
            }
            // Without an index the messages are scanned.
            config.leave_indexes = !is_indexed;
            let engine = crate::Engine::new(config);
            for mode in [Mode::Text, Mode::Both] {
                let concepts = vec!["turtle reef".to_owned()];
                let question = Question { concepts, mode, limit: 5, ..Question::default() };
                let items = engine.rank(&question, &Stop::never()).unwrap().items;
                let case = format!("{mode:?}, indexed: {is_indexed}");
                let ids: Vec<&str> = items[..2].iter().map(|it| &*it.hit.message_id).collect();
                assert!(ids.contains(&"m0") && ids.contains(&"m1"), "{case}: {ids:?}");
                let found = &items[0];
                assert!(found.passage.contains("turtle swam"), "{case}: {}", found.passage);
                assert!(found.hit.content.contains("turtle swam"), "{case}");
                assert!(found.hit.content.len() <= MOST_KEPT + 16, "{case}");
            }
        }
    }

    #[test]
    fn the_passage_is_the_sentence_that_answers() {
        let filler = |topics: &[&str]| -> String {
            let sentence = |topic: &&str| {
                format!(
                    "Here are some thoughts about {topic} that you may want to keep in mind for later. "
                )
            };
            topics.iter().map(sentence).collect()
        };
        let before = filler(&[
            "packing for a holiday",
            "the weather in spring",
            "painting the kitchen",
            "a birthday cake",
            "repairing a bicycle",
            "learning the guitar",
            "the train timetable",
            "a garden fence",
        ]);
        let after = filler(&[
            "buying new shoes",
            "a school trip",
            "cleaning windows",
            "the neighbour's dog",
            "board games",
            "sorting photographs",
            "a broken lamp",
            "the town library",
        ]);
        let answer =
            "To end your gym membership, send a written notice four weeks before the month ends.";
        let text = format!("{before}{answer} {after}");
        let other = "The sourdough needs flour, water and salt, and a night in the refrigerator.";
        let export = TestExport::indexed(&[&text, other]);
        for source in export.engine.all_sources().present() {
            source.encode(1, &Stop::never(), &|_| ()).unwrap();
        }
        for (question, mode) in [
            ("Wie kündige ich meinen Vertrag im Fitnessstudio?", Mode::Both),
            ("Как мне расторгнуть договор с фитнес-клубом?", Mode::Both),
            ("我怎么取消健身房的会员？", Mode::Vector),
            ("how can I cancel the contract with my fitness studio", Mode::Vector),
            // Only “keep” is a word of the message, and not of the sentence that answers.
            ("keep quitting a subscribed fitness studio", Mode::Both),
        ] {
            let concepts = vec![question.to_owned()];
            let question = Question { concepts, mode, limit: 5, ..Question::default() };
            let ranking = export.engine.rank(&question, &Stop::never()).unwrap();
            let found = ranking.items.iter().find(|it| it.hit.message_id == "m0").unwrap();
            assert!(found.passage.contains(answer), "{:?}: {}", question.concepts, found.passage);
            let ranking = export.engine.rank_conversations(&question, &Stop::never()).unwrap();
            let found = ranking.items.iter().find(|it| it.about.id == "0").unwrap();
            assert!(found.matches[0].passage.contains(answer), "{}", found.matches[0].passage);
        }
        // Words that are most of the question decide.
        let concepts = vec!["painting the kitchen".to_owned()];
        let question = Question { concepts, limit: 5, ..Question::default() };
        let found = export.engine.rank(&question, &Stop::never()).unwrap().items;
        assert!(found[0].passage.contains("painting the kitchen"), "{}", found[0].passage);
    }
}
