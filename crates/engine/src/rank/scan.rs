//! Ranks messages without an index, by one scan of the database for the words of the question.
//!
//! ```text
//! score(m) = 0.8 * S(m) * (1 + C(m)) / 2;   1 if m contains the whole question literally
//! S = IDF of the words in m, C = number of the words in m, both as shares of all words that occur
//! ```
//!
//! Of messages with the same set of words, only the newest are kept, so that memory is bounded.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BinaryHeap, HashMap, HashSet},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{
    answer::{joined, weights},
    passage,
    question::{ConversationMatch, Fields, MAX_MATCHES, Match},
    ranker::Ranker,
};
use crate::{
    error::Result,
    source::{Description, Note, ScanStore, Source, SourceKind},
};
use verbatim_base::model::{Hit, Instant};
use verbatim_chats::db::{ScanFilter, ScanPlace};
use verbatim_text::{
    hash::fnv1a,
    literal::LiteralPattern,
    query::Query,
    snippet,
    words::{Token, Tokenizer, is_character, tokens},
};

/// Maximum number of words of a concept. The longest words are taken, because they are the rarest.
const MAX_WORDS: usize = 24;

/// Length in letters up to which a word must be at the beginning of a word in the text.
const SHORT_WORD: usize = 3;

/// The bit of messages that contain the whole concept literally.
const PHRASE: u32 = 1 << 31;

/// Upper limit of the score of messages that do not contain the whole concept. A conversation of several
/// such messages still scores less than one with the whole concept.
const MAX_BY_WORDS: f32 = 0.8;

/// Number of messages that are kept for each concept, and for each combination of words.
const DEPTH: usize = 200;

/// Number of messages that are kept for each of several concepts, which must occur in one conversation.
const DEPTH_OF_SEVERAL: usize = 1000;

/// Number of kept messages above which the worst are dropped.
const MAX_KEPT: usize = 100 * DEPTH;

pub(super) struct ScannedHit {
    kind: SourceKind,
    score: f32,
    hit: Hit<'static>,
}

pub(super) struct ScanResult {
    /// The found messages, the best first.
    hits: Vec<ScannedHit>,
    titles: HashMap<(SourceKind, String), f32>,
    /// Number of messages that contain at least one of the words.
    pub(super) matching: usize,
    /// Whether `hits` has only the best of the found messages.
    pub(super) is_cut: bool,
}

struct ScanTask<'a> {
    concepts: &'a [WordFinder],
    passages: &'a PassageFinder,
    /// Function that returns whether a conversation is in the scope.
    is_wanted: &'a dyn Fn(&str) -> bool,
    with_titles: bool,
    /// Number of messages that are kept for each concept.
    depth: usize,
    /// Whether of each conversation only as many messages are kept as its answer shows.
    is_grouped: bool,
}

/// Result of one scan: the best messages of each concept with their scores, the ids and titles of
/// conversations, and the number of messages with at least one of the words.
type ScanFound = (Vec<Vec<(f32, Hit<'static>)>>, Vec<(String, String)>, usize);

impl ScanTask<'_> {
    fn run(&self, store: &mut dyn ScanStore) -> Result<ScanFound> {
        let mut tops: Vec<Top> = self.concepts.iter().map(|_| Top::default()).collect();
        let mut seen = HashSet::new();
        store.scan(&mut |message| {
            if !(self.is_wanted)(message.conversation) {
                return;
            }
            if self.with_titles && !seen.contains(message.conversation) {
                seen.insert(message.conversation.to_owned());
            }
            for (finder, top) in self.concepts.iter().zip(&mut tops) {
                let group = self.is_grouped.then_some(message.conversation);
                top.add(finder.word_mask(message.text), group, message.time, message.place);
            }
        })?;
        let mut found = Vec::new();
        for top in &tops {
            let best = top.best(self.depth);
            let places: Vec<ScanPlace> = best.iter().map(|(_, place)| *place).collect();
            let hits = store.fetch(&places, &|text| self.passages.place(text))?;
            found.push(hits.into_iter().zip(best).map(|(hit, (score, _))| (score, hit)).collect());
        }
        let titles = if self.with_titles { store.titles()? } else { Vec::new() };
        // A title counts only if its conversation has messages in the scope.
        let titles = titles.into_iter().filter(|(id, _)| seen.contains(id)).collect();
        Ok((found, titles, tops.iter().map(|top| top.matching).max().unwrap_or(0)))
    }
}

impl Ranker<'_> {
    /// Ranks the messages of some sources by the words of the question.
    ///
    /// Adds a note if a source cannot be read. It is an error if there is no other source.
    pub(super) fn scan(&mut self, sources: &[Source]) -> Result<ScanResult> {
        let mut result =
            ScanResult { hits: Vec::new(), titles: HashMap::new(), matching: 0, is_cut: false };
        for source in sources {
            match self.scan_one(source, &mut result) {
                Err(error) if error.is_of_source() && self.sources.present().len() > 1 => {
                    self.note(Note::Unreadable { source: source.kind, reason: error.reason() });
                }
                outcome => outcome?,
            }
        }
        result.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.hit.time.cmp(&a.hit.time)));
        Ok(result)
    }

    fn scan_one(&self, source: &Source, result: &mut ScanResult) -> Result<()> {
        let ids = self.conversations_of_origin(source)?;
        let concepts: Vec<WordFinder> = self.concepts().into_iter().map(WordFinder::new).collect();
        let (scope, roles) = (&self.scope, self.roles_in(source.kind));
        let filter = ScanFilter { roles: &roles, since: scope.since, until: scope.until };
        let is_wanted = |id: &str| {
            scope.conversation.as_ref().is_none_or(|wanted| wanted == id)
                && ids.as_ref().is_none_or(|ids| ids.contains(id))
        };
        let task = ScanTask {
            concepts: &concepts,
            passages: &PassageFinder::new(self),
            is_wanted: &is_wanted,
            with_titles: matches!(self.question.fields, Fields::Summaries | Fields::Both),
            depth: match concepts.len() {
                ..=1 => DEPTH.max(MAX_MATCHES * self.wanted),
                _ => DEPTH_OF_SEVERAL,
            },
            is_grouped: self.wanted > 0 && concepts.len() == 1,
        };
        let words = concepts.iter().flat_map(|finder| finder.texts.clone()).collect();
        let mut scanned = ScanFound::default();
        source.store().scan(source, (words, filter), self.stop, &mut |store| {
            scanned = task.run(store)?;
            Ok(())
        })?;
        let (found, titles, count) = scanned;
        let depth = task.depth;
        result.matching += count;
        result.is_cut |= count > depth;
        let kind = source.kind;
        let common = in_common(&found);
        let are_common = self.common.is_some();
        for (score, hit) in found.into_iter().flatten() {
            if are_common || common.contains(&*hit.conversation_id) {
                result.hits.push(ScannedHit { kind, score, hit });
            }
        }
        for (id, score) in score_titles(&concepts, titles) {
            result.titles.insert((kind, id), score);
        }
        Ok(())
    }

    /// Returns the messages of a scan, the best first. Messages with the same text are returned once.
    pub(super) fn scanned_messages(&self, result: ScanResult) -> Result<Vec<Match>> {
        let mut best: Vec<(ScannedHit, u32)> = Vec::new();
        let mut known: HashMap<(String, String), usize> = HashMap::new();
        for scanned in result.hits {
            let key = scanned.hit.copy_key();
            match known.get(&key) {
                Some(place) => best[*place].1 += 1,
                None if best.len() < self.question.limit => {
                    known.insert(key, best.len());
                    best.push((scanned, 1));
                }
                None => {}
            }
        }
        let descriptions = self.descriptions(
            best.iter().map(|(scanned, _)| (scanned.kind, scanned.hit.conversation_id.to_string())),
            false,
        )?;
        let finder = PassageFinder::new(self);
        let matches = best.into_iter().map(|(scanned, copies)| {
            let description =
                descriptions.get(&(scanned.kind, scanned.hit.conversation_id.to_string()));
            Match { copies, ..finder.matched(scanned, description) }
        });
        Ok(matches.collect())
    }

    /// Returns the conversations of a scan, best first, and their total number.
    pub(super) fn scanned_conversations(
        &self,
        result: ScanResult,
    ) -> Result<(Vec<ConversationMatch>, usize)> {
        let (mut title_weight, max_score) = weights(self.question.fields);
        let mut hits_of: HashMap<(SourceKind, String), Vec<ScannedHit>> = HashMap::new();
        for scanned in result.hits {
            let key = (scanned.kind, scanned.hit.conversation_id.to_string());
            hits_of.entry(key).or_default().push(scanned);
        }
        // A scan has no summaries, so the messages count in their place.
        let mut share = 1.0;
        if self.question.fields == Fields::Summaries {
            (title_weight, share) = (0.5, 0.5 / joined([1.0; MAX_MATCHES].into_iter()));
        }
        let mut scores: HashMap<(SourceKind, String), f32> = HashMap::new();
        for (key, hits) in &hits_of {
            scores.insert(key.clone(), share * joined(hits.iter().map(|scanned| scanned.score)));
        }
        for (key, score) in result.titles {
            *scores.entry(key).or_default() += title_weight * score;
        }
        let newest = |key: &(SourceKind, String)| hits_of.get(key).map(|hits| hits[0].hit.time);
        let mut order: Vec<((SourceKind, String), f32)> = scores.into_iter().collect();
        order.sort_by(|a, b| {
            let by_time = || newest(&b.0).cmp(&newest(&a.0));
            b.1.total_cmp(&a.1).then_with(by_time).then_with(|| a.0.cmp(&b.0))
        });
        let total = order.len();
        order.truncate(self.question.limit);
        let mut descriptions = self.descriptions(order.iter().map(|(key, _)| key.clone()), true)?;
        let finder = PassageFinder::new(self);
        let mut items = Vec::new();
        for (key, score) in order {
            let Some(description) = descriptions.remove(&key) else { continue };
            let hits = hits_of.remove(&key).unwrap_or_default().into_iter().take(MAX_MATCHES);
            let matches = hits.map(|scanned| finder.matched(scanned, Some(&description))).collect();
            let score = f64::from(score / max_score).min(1.0);
            items.push(ConversationMatch { about: description.about, score, matches });
        }
        Ok((items, total))
    }

    pub(super) fn descriptions(
        &self,
        keys: impl Iterator<Item = (SourceKind, String)>,
        with_summaries: bool,
    ) -> Result<HashMap<(SourceKind, String), Description>> {
        let mut by_kind: BTreeMap<SourceKind, HashSet<String>> = BTreeMap::new();
        for (kind, id) in keys {
            by_kind.entry(kind).or_default().insert(id);
        }
        let mut descriptions = HashMap::new();
        for (kind, ids) in by_kind {
            let source = self.sources.reopen(kind)?;
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let found = source.descriptions(&ids, with_summaries, self.stop)?;
            descriptions
                .extend(found.into_iter().map(|(id, description)| ((kind, id), description)));
        }
        Ok(descriptions)
    }
}

/// Returns the ids of the conversations that have a message of every concept.
fn in_common(found: &[Vec<(f32, Hit<'static>)>]) -> HashSet<String> {
    let ids = |hits: &Vec<(f32, Hit<'static>)>| -> HashSet<String> {
        hits.iter().map(|(_, hit)| hit.conversation_id.to_string()).collect()
    };
    found.iter().map(ids).reduce(|one, other| &one & &other).unwrap_or_default()
}

/// Returns the scores, between 0 and 1, of the conversations whose titles have words of every concept.
fn score_titles(concepts: &[WordFinder], titles: Vec<(String, String)>) -> Vec<(String, f32)> {
    let mut tops: Vec<Top> = concepts.iter().map(|_| Top::default()).collect();
    let mut masks = Vec::new();
    for (id, title) in titles {
        let found: Vec<u32> =
            concepts.iter().map(|finder| finder.word_mask(title.as_bytes())).collect();
        tops.iter_mut().zip(&found).for_each(|(top, mask)| top.count(*mask));
        if found.iter().all(|mask| *mask != 0) {
            masks.push((id, found));
        }
    }
    let scored = masks.into_iter().map(|(id, found)| {
        let scores = tops.iter().zip(found).map(|(top, mask)| top.score(mask));
        (id, scores.fold(1.0, f32::min))
    });
    scored.collect()
}

struct WordFinder {
    query: Query,
    /// Pattern of the whole concept; `None` if the concept is one word.
    phrase: Option<LiteralPattern>,
    /// Automaton for all words, including the upper and lower case forms of words that are not ASCII.
    words: Option<AhoCorasick>,
    /// For each pattern of the automaton, the bit of its word, and whether it must begin a word in the text.
    patterns: Vec<(u32, bool)>,
    /// The bits of all words.
    all: u32,
    /// The words and the whole concept. Every text with a `word_mask` contains one of them in some case.
    texts: Vec<String>,
}

impl WordFinder {
    fn new(concept: &str) -> WordFinder {
        let query = Query::parse(concept);
        let mut words = words_of(&query.text);
        words.sort_by_key(|word| Reverse(word.chars().count()));
        words.truncate(MAX_WORDS);
        let phrase = query.text.trim().to_owned();
        let mut texts = Vec::new();
        let mut patterns = Vec::new();
        let is_phrase = !phrase.is_empty() && !words.contains(&phrase.to_lowercase());
        for (word, bit) in words.iter().zip(0..) {
            let is_short = word.chars().count() <= SHORT_WORD && word.is_ascii();
            for text in cases_of(word) {
                texts.push(text);
                patterns.push((1 << bit, is_short));
            }
        }
        let all = patterns.iter().fold(0, |all, (bit, _)| all | bit);
        let mut looked_for = words;
        looked_for.extend(is_phrase.then(|| phrase.clone()));
        let parts = |phrase: &String| {
            let parts = phrase.split([' ', '\'']).map(str::to_owned);
            parts.max_by_key(String::len).filter(|part| !part.is_empty())
        };
        looked_for.extend(query.phrases.iter().filter_map(parts));
        let phrase = is_phrase.then(|| LiteralPattern::new(&phrase, false));
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&texts)
            .ok();
        WordFinder { query, phrase, words, patterns, all, texts: looked_for }
    }

    /// Returns the bits of the words in a text; 0 if the question excludes the text.
    fn word_mask(&self, text: &[u8]) -> u32 {
        let mut found = 0;
        for hit in self.words.iter().flat_map(|words| words.find_overlapping_iter(text)) {
            let (bit, is_short) = self.patterns[hit.pattern().as_usize()];
            let before = hit.start().checked_sub(1).map(|at| text[at]);
            if !is_short || !before.is_some_and(|b| b.is_ascii_alphanumeric()) {
                found |= bit;
            }
            if found == self.all {
                break;
            }
        }
        if self.phrase.as_ref().is_some_and(|phrase| phrase.matches(text)) {
            found |= PHRASE;
        }
        let is_plain = self.query.phrases.is_empty();
        if is_plain && (found == 0 || !self.query.excludes()) {
            return found;
        }
        let text = String::from_utf8_lossy(text);
        if self.query.allows(&text) {
            return if is_plain { found } else { found | PHRASE };
        }
        let without_phrases = Query { phrases: Vec::new(), ..self.query.clone() };
        let is_optional = self.query.is_sentence && without_phrases.allows(&text);
        if is_optional { found } else { 0 }
    }
}

/// Returns the content words of a question. A word is replaced by its stem if it begins with the stem.
fn words_of(text: &str) -> Vec<String> {
    let tokenizer = Tokenizer::default();
    let mut words: Vec<String> = Vec::new();
    tokens(text, |token| match token {
        Token::Word(word) => {
            if let Some(stem) = tokenizer.question(word).into_iter().next() {
                let word = word.to_lowercase();
                let is_start = word.starts_with(&stem) && stem.chars().count() > SHORT_WORD;
                words.push(if is_start { stem } else { word });
            }
        }
        Token::Run(run) => {
            let terms = tokenizer.question(run);
            let is_single = terms.len() == 1;
            words.extend(terms.into_iter().filter(|term| is_single || !is_character(term)));
        }
    });
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns a text as it is, in lower case, in upper case and with a capital first letter. Returns
/// an ASCII text only as it is, because the search ignores the case of ASCII letters.
fn cases_of(text: &str) -> Vec<String> {
    let mut cases = vec![text.to_owned(), text.to_lowercase(), text.to_uppercase()];
    let mut rest = text.chars();
    if let Some(first) = rest.next() {
        cases.push(first.to_uppercase().chain(rest.as_str().to_lowercase().chars()).collect());
    }
    if text.is_ascii() {
        cases.truncate(1);
    }
    cases.sort_unstable();
    cases.dedup();
    cases
}

/// A message with its time. A newer message compares as greater.
type Dated = (Option<Instant>, ScanPlace);

/// The best messages of a concept, grouped by the words that they contain.
#[derive(Default)]
struct Top {
    /// The newest messages for each combination of words and each hash of a group's name, as a heap with
    /// the oldest on top.
    newest: HashMap<(u32, Option<u64>), BinaryHeap<Reverse<Dated>>>,
    kept: usize,
    /// Number of messages that contain each word.
    counts: [u64; MAX_WORDS],
    messages: u64,
    matching: usize,
}

impl Top {
    fn count(&mut self, mask: u32) {
        self.messages += 1;
        self.matching += usize::from(mask != 0);
        for (bit, count) in self.counts.iter_mut().enumerate() {
            *count += u64::from(mask >> bit & 1);
        }
    }

    /// Adds a message. Of a group, only as many messages are kept as an answer shows.
    fn add(&mut self, mask: u32, group: Option<&str>, time: Option<Instant>, place: ScanPlace) {
        self.count(mask);
        if mask == 0 {
            return;
        }
        let most = if group.is_some() { MAX_MATCHES } else { DEPTH_OF_SEVERAL };
        let key = (mask, group.map(|name| fnv1a(name.as_bytes())));
        let newest = self.newest.entry(key).or_default();
        newest.push(Reverse((time, place)));
        self.kept += 1;
        if newest.len() > most {
            newest.pop();
            self.kept -= 1;
        }
        if self.kept > MAX_KEPT {
            self.drop_worst();
        }
    }

    /// Drops the combinations of words with the lowest scores so far, and of equal ones the oldest.
    fn drop_worst(&mut self) {
        let newest = |heap: &BinaryHeap<Reverse<Dated>>| heap.iter().map(|it| it.0).max();
        let keys = self.newest.iter();
        let mut keys: Vec<_> =
            keys.map(|(key, heap)| (self.score(key.0), newest(heap), *key)).collect();
        keys.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, _, key) in keys {
            if self.kept <= MAX_KEPT / 2 {
                break;
            }
            self.kept -= self.newest.remove(&key).map_or(0, |dropped| dropped.len());
        }
    }

    /// Returns the score of a message that contains the words of `mask`.
    fn score(&self, mask: u32) -> f32 {
        if mask & PHRASE != 0 {
            return 1.0;
        }
        let (mut idf, mut all) = ([0.0; 2], [0.0; 2]);
        for (bit, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (count, messages) = (*count as f32, self.messages as f32);
            let weight = (1.0 + (messages - count + 0.5).max(0.0) / (count + 0.5)).ln();
            all = [all[0] + weight, all[1] + 1.0];
            if mask >> bit & 1 == 1 {
                idf = [idf[0] + weight, idf[1] + 1.0];
            }
        }
        let share = |at: usize| idf[at] / f32::max(all[at], f32::MIN_POSITIVE);
        MAX_BY_WORDS * share(0) * f32::midpoint(1.0, share(1))
    }

    /// Returns the best messages with their scores. Among equal scores, the newest come first.
    fn best(&self, count: usize) -> Vec<(f32, ScanPlace)> {
        let mut all: Vec<(f32, Option<Instant>, ScanPlace)> = Vec::new();
        for ((mask, _), newest) in &self.newest {
            let score = self.score(*mask);
            all.extend(newest.iter().map(|Reverse((time, place))| (score, *time, *place)));
        }
        let order = |a: &(f32, Option<Instant>, ScanPlace),
                     b: &(f32, Option<Instant>, ScanPlace)| {
            b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.cmp(&a.2))
        };
        all.sort_unstable_by(order as fn(&_, &_) -> Ordering);
        all.truncate(count);
        all.into_iter().map(|(score, _, place)| (score, place)).collect()
    }
}

/// A finder of the passages that contain the words of a question.
struct PassageFinder {
    terms: Vec<(String, f32)>,
    tokenizer: Tokenizer,
}

impl PassageFinder {
    fn new(ranker: &Ranker<'_>) -> PassageFinder {
        let tokenizer = Tokenizer::default();
        let terms = ranker.concepts().into_iter().flat_map(|text| tokenizer.question(text));
        // The IDF is unknown without an index, so a word's length stands for its rarity.
        let terms = terms.map(|term| (term.clone(), term.chars().count() as f32)).collect();
        PassageFinder { terms, tokenizer }
    }

    /// Returns the offset in a text at which its best passage begins.
    fn place(&self, text: &str) -> usize {
        let trimmed = snippet::trim(text);
        let before = trimmed.as_ptr().addr() - text.as_ptr().addr();
        let place = passage::place(trimmed, &self.terms, &self.tokenizer, usize::MAX);
        before + place.map_or(0, |place| place.start)
    }

    fn matched(&self, scanned: ScannedHit, description: Option<&Description>) -> Match {
        Match {
            source: scanned.kind,
            score: f64::from(scanned.score),
            line: description.map_or(1, |description| description.line(&scanned.hit)),
            passage: passage::passage(&scanned.hit.content, &self.terms, &self.tokenizer),
            is_far: false,
            is_title_only: false,
            copies: 1,
            hit: scanned.hit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_word_begins_where_a_word_begins() {
        for concept in ["AI", "ai", "Ai"] {
            let finder = WordFinder::new(concept);
            assert_eq!(finder.word_mask(b"she said, by email"), 0, "{concept}");
            assert_ne!(finder.word_mask(b"what is AI?"), 0, "{concept}");
        }
        let finder = WordFinder::new("Borrow Checker");
        assert_ne!(finder.word_mask("the bORROW cHECKER".as_bytes()) & PHRASE, 0);
        assert_eq!(finder.word_mask(b"the checker does not borrow") & PHRASE, 0);
    }
}
