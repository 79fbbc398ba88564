//! Finds by text: the messages that contain a question's text or its words, newest first.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    ops::ControlFlow,
};

use super::{
    notes::Notes,
    passage::{self, span_of},
    question::{ConversationMatch, MAX_MATCHES, Match, Question, Ranking},
    scoped::Scoped,
    word_request::{WantedWords, WordRequest},
};
use crate::{
    error::Result,
    source::{
        Description, Note, Source, SourceKind,
        request::{checked, trimmed},
        sink::Rendered,
    },
};
use verbatim_base::model::{Hit, MOST_KEPT, Matching, Request};
use verbatim_index as index;
use verbatim_text::{matcher::Matchers, query::Query};

/// Number of messages that are read for each of several concepts that a conversation must contain.
const MAX_OF_SEVERAL: usize = 20_000;

/// Number of messages that are read to rank conversations. If these messages are from too few
/// conversations, more are read.
const MAX_OF_CONVERSATIONS: usize = 500;

/// Total size in bytes of the texts that are kept of a concept's messages. Of each further message, only
/// `MAX_BEYOND` bytes are kept, which are enough for a passage.
const MAX_CONTENTS: usize = 64 << 20;
const MAX_BEYOND: usize = 8 << 10;

/// The position in the list at which the score is half of the first score.
const HALF: f64 = 20.0;

type SourceHit = (SourceKind, Hit<'static>);

/// A conversation: the kind of its source and its id.
type ConversationKey = (SourceKind, String);

/// The limit at which a search by text ends.
#[derive(Clone, Copy)]
enum Most {
    /// This many messages were found.
    Messages(usize),
    /// Messages of more than this many conversations were found.
    Conversations(usize),
}

/// What is searched for in place of a concept.
#[derive(Clone, Copy)]
pub(super) enum TextReading {
    /// Its text, which matches as the question says.
    AsTyped,
    /// Its text without white space at the ends.
    Literal,
    /// Its words, without those that are too frequent to say anything.
    Words(WantedWords),
}

/// A concept with the texts that are searched for in its place.
struct ConceptText {
    request: Request,
    matchers: Matchers,
    /// What each found text must have, and must not have.
    required: Option<Query>,
}

impl ConceptText {
    fn new(concept: &str, question: &Question, reading: TextReading) -> Result<ConceptText> {
        let text = trimmed(concept).to_owned();
        let literal = Request { text, matching: Matching::Literal, ..Request::default() };
        let (request, required) = match reading {
            TextReading::Literal => (literal, None),
            TextReading::AsTyped => {
                let matching = question.matching.unwrap_or(Matching::Literal);
                // In an exact search, white space at the ends belongs to the text.
                let text = match matching {
                    Matching::Literal | Matching::Regex => concept.to_owned(),
                    Matching::Like | Matching::Word => literal.text,
                };
                let ignore_accents = question.ignore_accents;
                (Request { text, matching, ignore_accents, ..Request::default() }, None)
            }
            TextReading::Words(words) => {
                let WordRequest { request, required } = WordRequest::new(concept, words);
                (request.unwrap_or(literal), required)
            }
        };
        let matchers = Matchers::of(&*checked(&request)?).map_err(index::Error::from)?;
        Ok(ConceptText { request, matchers, required })
    }

    /// Returns whether the text of a message contains the concept. The title does not count.
    fn is_in(&self, text: &str) -> bool {
        self.matchers.has_any(text)
    }

    fn accepts(&self, text: &str) -> bool {
        self.required.as_ref().is_none_or(|required| required.allows(text))
    }
}

/// A search for the messages that contain the concepts of a question, newest first. Their conversations contain
/// every concept.
pub(super) struct TextSearch<'a> {
    scoped: Scoped<'a>,
    sources: Vec<Source>,
    concepts: Vec<ConceptText>,
}

/// The messages of a search by text, newest first.
struct TextHits {
    hits: Vec<SourceHit>,
    /// Whether there are no more messages.
    is_whole: bool,
    notes: Notes,
}

/// What was found with the words of a question.
pub(super) struct FoundByWords<T> {
    pub(super) ranking: Ranking<T>,
    pub(super) words: WantedWords,
}

/// Returns what `answer` finds in some sources with all words of each concept or, if this is nothing, with any
/// of them.
pub(super) fn by_words<T>(
    scoped: &Scoped<'_>,
    sources: &[Source],
    answer: fn(&TextSearch<'_>) -> Result<Ranking<T>>,
) -> Result<FoundByWords<T>> {
    let mut words = WantedWords::All;
    loop {
        let reading = TextReading::Words(words);
        let ranking = answer(&TextSearch::new(scoped.clone(), sources.to_vec(), reading)?)?;
        if words == WantedWords::Any || !ranking.items.is_empty() {
            return Ok(FoundByWords { ranking, words });
        }
        words = WantedWords::Any;
    }
}

impl<'a> TextSearch<'a> {
    pub(super) fn new(
        scoped: Scoped<'a>,
        sources: Vec<Source>,
        reading: TextReading,
    ) -> Result<TextSearch<'a>> {
        let question = scoped.ranker.question;
        let concepts = question.concepts.iter().filter(|concept| !trimmed(concept).is_empty());
        let concepts = concepts.map(|concept| ConceptText::new(concept, question, reading));
        let concepts = concepts.collect::<Result<_>>()?;
        Ok(TextSearch { scoped, sources, concepts })
    }

    /// Returns whether a message is found, and notes about the sources that cannot be read.
    pub(super) fn finds_one(&self) -> Result<(bool, Notes)> {
        let found = self.hits(1, 0)?;
        Ok((!found.hits.is_empty(), found.notes))
    }

    /// Returns the messages.
    pub(super) fn messages(&self) -> Result<Ranking<Match>> {
        let limit = self.scoped.ranker.question.limit;
        // One message more than the limit is read, to see whether there are more.
        let TextHits { mut hits, is_whole, notes } = self.hits(limit.saturating_add(1), 0)?;
        let total = hits.len();
        hits.truncate(limit);
        let mut best: Vec<(SourceHit, u32)> = Vec::new();
        let mut copies: HashMap<(String, String), usize> = HashMap::new();
        for (kind, hit) in hits {
            let key = hit.copy_key();
            if let Some(place) = copies.get(&key) {
                best[*place].1 += 1;
                continue;
            }
            copies.insert(key, best.len());
            best.push(((kind, hit), 1));
        }
        let descriptions = self.descriptions(best.iter().map(|(hit, _)| key_of(hit)), false)?;
        let mut items = Vec::new();
        for (place, (found, copies)) in best.into_iter().enumerate() {
            if let Some(description) = descriptions.get(&key_of(&found)) {
                items.push(Match { copies, ..self.matched(description, found.1, score_at(place)) });
            }
        }
        let is_total_exact = is_whole && total <= limit;
        Ok(Ranking { items, total, is_total_exact, notes: notes.into_iter().collect() })
    }

    /// Returns the conversations, in the order of their newest message.
    pub(super) fn conversations(&self) -> Result<Ranking<ConversationMatch>> {
        let limit = self.scoped.ranker.question.limit;
        let found = self.hits(MAX_OF_CONVERSATIONS, limit)?;
        let mut order: Vec<ConversationKey> = Vec::new();
        let mut hits_of: HashMap<ConversationKey, Vec<Hit<'static>>> = HashMap::new();
        for (kind, hit) in found.hits {
            let key = (kind, hit.conversation_id.to_string());
            let hits = hits_of.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                Vec::new()
            });
            if hits.len() == MAX_MATCHES {
                continue;
            }
            let has_text = self.is_in_text(&hit);
            // If the text of a message matches, messages of which only the title matches are dropped.
            if has_text && hits.first().is_some_and(|first| !self.is_in_text(first)) {
                hits.clear();
            }
            if hits.is_empty() || has_text {
                hits.push(hit);
            }
        }
        let total = order.len();
        order.truncate(limit);
        let descriptions = self.descriptions(order.iter().cloned(), true)?;
        let is_of_title = |key: &&ConversationKey| {
            hits_of[*key].first().is_some_and(|first| !self.is_in_text(first))
        };
        let mut first = self.first_messages(order.iter().filter(is_of_title))?;
        let mut items = Vec::new();
        for key in order {
            let Some(description) = descriptions.get(&key) else { continue };
            let mut hits = hits_of.remove(&key).unwrap_or_default();
            if let Some(first) = first.remove(&key) {
                hits = vec![first];
            } else if hits.first().is_some_and(|first| !self.is_in_text(first)) {
                hits.truncate(1);
            }
            let matches = hits.into_iter().enumerate();
            let matches =
                matches.map(|(place, hit)| self.matched(description, hit, score_at(place)));
            items.push(ConversationMatch {
                about: description.about.clone(),
                score: score_at(items.len()),
                matches: matches.collect(),
            });
        }
        let is_total_exact = found.is_whole;
        Ok(Ranking { items, total, is_total_exact, notes: found.notes.into_iter().collect() })
    }

    fn descriptions(
        &self,
        keys: impl Iterator<Item = ConversationKey>,
        with_summaries: bool,
    ) -> Result<HashMap<ConversationKey, Description>> {
        let mut by_kind: BTreeMap<SourceKind, HashSet<String>> = BTreeMap::new();
        for (kind, id) in keys {
            by_kind.entry(kind).or_default().insert(id);
        }
        let mut descriptions = HashMap::new();
        for (kind, ids) in by_kind {
            let source = self.scoped.ranker.sources.reopen(kind)?;
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let found = source.descriptions(&ids, with_summaries, self.scoped.ranker.call)?;
            descriptions
                .extend(found.into_iter().map(|(id, description)| ((kind, id), description)));
        }
        Ok(descriptions)
    }

    /// Returns the first messages of conversations.
    fn first_messages<'k>(
        &self,
        keys: impl Iterator<Item = &'k ConversationKey>,
    ) -> Result<HashMap<ConversationKey, Hit<'static>>> {
        let mut by_kind: BTreeMap<SourceKind, Vec<&str>> = BTreeMap::new();
        keys.for_each(|(kind, id)| by_kind.entry(*kind).or_default().push(id));
        let mut first = HashMap::new();
        for (kind, ids) in by_kind {
            let source = self.scoped.ranker.sources.reopen(kind)?;
            let hits = source.store().first_messages(&source, &ids, self.scoped.ranker.call)?;
            first
                .extend(hits.into_iter().map(|hit| ((kind, hit.conversation_id.to_string()), hit)));
        }
        Ok(first)
    }

    /// Returns whether the text of a message contains a concept. The title does not count.
    fn is_in_text(&self, hit: &Hit<'_>) -> bool {
        self.concepts.iter().any(|concept| concept.is_in(&hit.content))
    }

    fn matched(&self, description: &Description, hit: Hit<'static>, score: f64) -> Match {
        let is_title_only = !self.is_in_text(&hit);
        let spans = self.concepts.iter().map(|concept| span_of(&hit.content, &concept.matchers));
        let first = spans.flatten().next();
        let passage = passage::around_span(&hit.content, first.unwrap_or(0..0));
        let (source, line) = (description.about.source, description.line(&hit));
        Match { source, score, line, passage, is_far: false, is_title_only, copies: 1, hit }
    }

    /// Returns at least `count` messages, if that many match. If these are from only `conversations`
    /// conversations or fewer, also returns messages of further conversations.
    fn hits(&self, count: usize, conversations: usize) -> Result<TextHits> {
        let (count, conversations) =
            if self.concepts.len() > 1 { (MAX_OF_SEVERAL, 0) } else { (count, conversations) };
        let mut by_concept: Vec<Vec<SourceHit>> = Vec::new();
        let mut is_whole = true;
        let mut notes = Notes::default();
        for concept in &self.concepts {
            let mut found: Vec<SourceHit> = Vec::new();
            for source in &self.sources {
                match self.hits_in(source, concept, count, conversations) {
                    Ok(here) => {
                        is_whole &= here.is_whole;
                        found.extend(here.hits.into_iter().map(|hit| (source.kind, hit)));
                    }
                    Err(error) if error.is_of_source() && self.sources.len() > 1 => {
                        let reason = error.reason();
                        notes.add(Note::Unreadable { source: source.kind, reason });
                    }
                    Err(error) => return Err(error),
                }
            }
            by_concept.push(found);
        }
        let in_each = by_concept.iter().map(|found| found.iter().map(key_of).collect());
        let common: HashSet<ConversationKey> =
            in_each.reduce(|one, other| &one & &other).unwrap_or_default();
        let mut seen = HashSet::new();
        let mut hits: Vec<SourceHit> = by_concept.into_iter().flatten().collect();
        hits.retain(|hit| {
            let key = key_of(hit);
            common.contains(&key) && seen.insert((key, hit.1.message_id.to_string()))
        });
        // The sort is stable, so messages of one source keep their order.
        hits.sort_by_key(|(_, hit)| Reverse(hit.time));
        Ok(TextHits { hits, is_whole, notes })
    }

    fn hits_in(
        &self,
        source: &Source,
        concept: &ConceptText,
        count: usize,
        conversations: usize,
    ) -> Result<SourceHits> {
        let ids = self.scoped.conversations_of_origin(source)?;
        let collector = |most, read| HitCollector {
            search: self,
            source,
            concept,
            ids: ids.as_ref(),
            most,
            read,
            room: Cell::new(MAX_CONTENTS),
            by_text: RefCell::default(),
            texts: RefCell::default(),
        };
        let found = collector(Most::Messages(count), conversations).run()?;
        let of: HashSet<_> = found.hits.iter().map(|hit| &hit.conversation_id).collect();
        if found.is_whole || of.len() > conversations {
            return Ok(found);
        }
        collector(Most::Conversations(conversations), 0).run()
    }
}

/// The messages of one source, newest first.
struct SourceHits {
    hits: Vec<Hit<'static>>,
    is_whole: bool,
}

/// A collector of the messages of a source that contain a concept.
struct HitCollector<'a> {
    search: &'a TextSearch<'a>,
    source: &'a Source,
    concept: &'a ConceptText,
    /// The conversations that are wanted; `None` for all.
    ids: Option<&'a HashSet<String>>,
    most: Most,
    /// If it is not 0, reads only the texts that an answer shows of the first so many conversations. Of each
    /// other conversation, keeps only one message, with the concept as its text.
    read: usize,
    /// The number of bytes of whole texts that may still be kept.
    room: Cell<usize>,
    /// For each conversation, the number of messages that were found by their texts. More
    /// messages than an answer shows are left out, and so are all but the first of those found
    /// only by the title.
    by_text: RefCell<HashMap<String, usize>>,
    /// For each conversation, the number of its texts that were read and match; `None` if none is read.
    texts: RefCell<HashMap<String, Option<usize>>>,
}

impl HitCollector<'_> {
    fn run(&self) -> Result<SourceHits> {
        let Scoped { ranker, scope, .. } = &self.search.scoped;
        let limit = match self.most {
            Most::Messages(count) => {
                let takes_all = self.ids.is_none()
                    && scope.conversation.is_none()
                    && self.concept.required.is_none();
                takes_all.then_some(count)
            }
            Most::Conversations(_) => None,
        };
        let request = Request {
            roles: self.search.scoped.roles_in(self.source.kind).into_owned(),
            since: scope.since,
            until: scope.until,
            limit,
            ..self.concept.request.clone()
        };
        let mut found = SourceHits { hits: Vec::new(), is_whole: true };
        let mut seen = 0;
        let reads = |id: &str| self.reads(id);
        let mut sink = Rendered::new(
            |hit: Hit<'_>| self.rendered(hit),
            |hit: Option<Hit<'static>>| {
                seen += 1;
                found.hits.extend(hit.inspect(|hit| self.count(hit)));
                found.is_whole = match self.most {
                    Most::Messages(count) => seen < count,
                    Most::Conversations(count) => self.by_text.borrow().len() <= count,
                };
                if found.is_whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        sink.reads = &reads;
        self.source.search(&request, ranker.call, &mut sink)?;
        Ok(found)
    }

    /// Returns the part of a message that is kept, `Some(None)` if the message counts but is not shown, and
    /// `None` if it is not wanted.
    fn rendered(&self, hit: Hit<'_>) -> Option<Option<Hit<'static>>> {
        if !self.is_wanted(&hit) {
            return None;
        }
        if self.read > 0 && !self.is_needed(&hit) {
            return Some(None);
        }
        let is_left_out = matches!(self.most, Most::Conversations(_)) && self.has_enough(&hit);
        Some((!is_left_out).then(|| self.kept(hit)))
    }

    fn is_wanted(&self, hit: &Hit<'_>) -> bool {
        let scope = &self.search.scoped.scope;
        scope.conversation.as_ref().is_none_or(|id| *id == hit.conversation_id)
            && self.ids.is_none_or(|ids| ids.contains(&*hit.conversation_id))
            && self.concept.accepts(&hit.content)
    }

    fn reads(&self, id: &str) -> bool {
        // What a text must not have is only known when it is read.
        if self.read == 0 || self.concept.required.is_some() {
            return true;
        }
        let texts = self.texts.borrow();
        let is_needed = |count: &Option<usize>| count.is_some_and(|it| it < MAX_MATCHES);
        texts.get(id).map_or(texts.len() < self.read, is_needed)
    }

    fn is_needed(&self, hit: &Hit<'_>) -> bool {
        let id = &*hit.conversation_id;
        let is_read = self.reads(id);
        let mut texts = self.texts.borrow_mut();
        let is_new = !texts.contains_key(id);
        if is_new {
            texts.insert(id.to_owned(), is_read.then_some(0));
        }
        if let Some(Some(count)) = texts.get_mut(id).filter(|_| is_read) {
            *count += usize::from(self.concept.is_in(&hit.content));
        }
        is_read || is_new
    }

    /// Returns whether an answer shows no further message of this message's conversation.
    fn has_enough(&self, hit: &Hit<'_>) -> bool {
        let known = self.by_text.borrow().get(&*hit.conversation_id).copied();
        known.is_some_and(|known| {
            known >= MAX_MATCHES || known == 0 && !self.concept.is_in(&hit.content)
        })
    }

    fn count(&self, hit: &Hit<'_>) {
        if matches!(self.most, Most::Conversations(_)) {
            let mut by_text = self.by_text.borrow_mut();
            let known = by_text.entry(hit.conversation_id.to_string()).or_default();
            *known += usize::from(self.concept.is_in(&hit.content));
        }
    }

    fn kept(&self, hit: Hit<'_>) -> Hit<'static> {
        let length = hit.content.len().min(MOST_KEPT);
        let most = if length <= self.room.get() { MOST_KEPT } else { MAX_BEYOND };
        let place = if hit.content.len() > most {
            span_of(&hit.content, &self.concept.matchers).map_or(0, |span| span.start)
        } else {
            0
        };
        self.room.set(self.room.get().saturating_sub(length));
        hit.into_owned_at(place, most)
    }
}

fn key_of((kind, hit): &SourceHit) -> ConversationKey {
    (*kind, hit.conversation_id.to_string())
}

fn score_at(place: usize) -> f64 {
    HALF / (HALF + place as f64)
}
#[cfg(test)]
mod tests {
    use crate::{Mode, Question, TestExport};
    use verbatim_base::call::Call;

    #[test]
    fn only_the_texts_of_the_shown_conversations_are_read_and_all_are_counted() {
        let texts: Vec<String> = (0..30).map(|n| format!("a red sky, seen {n} times")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let export = TestExport::indexed(&texts);
        let concepts = vec!["red".to_owned()];
        for limit in [1, 3, 29, 30, 40] {
            let concepts = concepts.clone();
            let question = Question { concepts, mode: Mode::Exact, limit, ..Question::default() };
            let ranking = export.engine.rank_conversations(&question, &Call::default()).unwrap();
            assert_eq!((ranking.total, ranking.is_total_exact), (30, true), "{limit}");
            assert_eq!(ranking.items.len(), limit.min(30));
            for (item, text) in ranking.items.iter().zip(texts.iter().rev()) {
                assert_eq!(item.matches[0].hit.content, *text, "{limit}");
            }
        }
    }
}
