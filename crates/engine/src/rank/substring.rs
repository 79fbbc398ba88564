//! Finds by text: the messages that contain a question's text or its words, newest first.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::{cmp::Reverse, ops::ControlFlow};

use super::passage::{self, span_of};
use super::question::{ConversationMatch, MAX_MATCHES, Match, Question, Ranking};
use super::word_request::{WantedWords, WordRequest};
use super::{notes::Notes, scoped::Scoped};
use crate::error::Result;
use crate::source::request::{checked, trimmed};
use crate::source::{Description, Note, Source, SourceKind, sink::Rendered};
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
    /// All messages were found.
    All,
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

    /// Returns whether a message is found. Adds notes about the sources that cannot be read.
    pub(super) fn finds_one(&self, notes: &mut Notes) -> Result<bool> {
        Ok(!self.hits(1, 0, notes)?.hits.is_empty())
    }

    /// Returns the messages. Adds its notes to those so far.
    pub(super) fn messages(&self, mut notes: Notes) -> Result<Ranking<Match>> {
        let limit = self.scoped.ranker.question.limit;
        // One message more than the limit is read, to see whether there are more.
        let TextHits { mut hits, is_whole } = self.hits(limit.saturating_add(1), 0, &mut notes)?;
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
        let keys = best.iter().map(|((kind, hit), _)| key_of(*kind, hit));
        let descriptions = self.descriptions(keys, false)?;
        let mut items = Vec::new();
        for (place, ((kind, hit), copies)) in best.into_iter().enumerate() {
            if let Some(description) = descriptions.get(&key_of(kind, &hit)) {
                items.push(Match { copies, ..self.matched(description, hit, place) });
            }
        }
        let is_total_exact = is_whole && total <= limit;
        Ok(Ranking { items, total, is_total_exact, notes: notes.0 })
    }

    /// Returns the conversations, in the order of their newest message. Adds its notes to those so far.
    pub(super) fn conversations(&self, mut notes: Notes) -> Result<Ranking<ConversationMatch>> {
        let limit = self.scoped.ranker.question.limit;
        let found = self.hits(MAX_OF_CONVERSATIONS, limit, &mut notes)?;
        let mut order: Vec<ConversationKey> = Vec::new();
        let mut hits_of: HashMap<ConversationKey, Vec<Hit<'static>>> = HashMap::new();
        for (kind, hit) in found.hits {
            let key = key_of(kind, &hit);
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
        let of_title = order.iter().filter(|key| !self.is_in_text(&hits_of[*key][0]));
        let mut first = self.first_messages(of_title)?;
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
            let matches = matches.map(|(place, hit)| self.matched(description, hit, place));
            items.push(ConversationMatch {
                about: description.about.clone(),
                score: score_at(items.len()),
                matches: matches.collect(),
            });
        }
        let is_total_exact = found.is_whole;
        Ok(Ranking { items, total, is_total_exact, notes: notes.0 })
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
            descriptions.extend(found.into_iter().map(|(id, it)| ((kind, id), it)));
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
            first.extend(hits.into_iter().map(|hit| (key_of(kind, &hit), hit)));
        }
        Ok(first)
    }

    /// Returns whether the text of a message contains a concept. The title does not count.
    fn is_in_text(&self, hit: &Hit<'_>) -> bool {
        self.concepts.iter().any(|concept| concept.is_in(&hit.content))
    }

    /// Returns the match for a message at a place of its list.
    fn matched(&self, description: &Description, hit: Hit<'static>, place: usize) -> Match {
        let mut concepts = self.concepts.iter();
        let first = concepts.find_map(|concept| span_of(&hit.content, &concept.matchers));
        Match {
            source: description.about.source,
            score: score_at(place),
            line: description.line(&hit),
            passage: passage::around_span(&hit.content, first.unwrap_or(0..0)),
            is_far: false,
            is_title_only: !self.is_in_text(&hit),
            copies: 1,
            hit,
        }
    }

    /// Returns at least `count` messages, if that many match. If these are from only `conversations`
    /// conversations or fewer, also returns messages of further conversations.
    fn hits(
        &self,
        mut count: usize,
        mut conversations: usize,
        notes: &mut Notes,
    ) -> Result<TextHits> {
        if self.concepts.len() > 1 {
            count = MAX_OF_SEVERAL;
            conversations = 0;
        }
        let mut by_concept: Vec<Vec<SourceHit>> = Vec::new();
        let mut is_whole = true;
        for concept in &self.concepts {
            let mut found: Vec<SourceHit> = Vec::new();
            for source in &self.sources {
                match self.hits_in(source, concept, count, conversations) {
                    Ok(here) => {
                        is_whole &= here.is_whole;
                        found.extend(here.hits);
                    }
                    Err(error) if error.is_of_source() && self.sources.len() > 1 => {
                        let reason = error.to_string();
                        notes.add(Note::Unreadable { source: source.kind, reason });
                    }
                    Err(error) => return Err(error),
                }
            }
            by_concept.push(found);
        }
        let in_each = by_concept.iter().map(|hits| {
            hits.iter().map(|(kind, hit)| key_of(*kind, hit)).collect::<HashSet<ConversationKey>>()
        });
        let common = in_each.reduce(|one, other| &one & &other).unwrap_or_default();
        let mut seen = HashSet::new();
        let mut hits: Vec<SourceHit> = by_concept.into_iter().flatten().collect();
        hits.retain(|(kind, hit)| {
            let key = key_of(*kind, hit);
            common.contains(&key) && seen.insert((key, hit.message_id.to_string()))
        });
        // The sort is stable, so messages of one source keep their order.
        hits.sort_by_key(|(_, hit)| Reverse(hit.time));
        Ok(TextHits { hits, is_whole })
    }

    fn hits_in(
        &self,
        source: &Source,
        concept: &ConceptText,
        count: usize,
        conversations: usize,
    ) -> Result<TextHits> {
        let ids = self.scoped.conversations_of_origin(source)?;
        // An index counts all, because it need not read the texts of further conversations.
        let counts_all = conversations > 0
            && concept.required.is_none()
            && source.current_index(self.scoped.ranker.call).is_ok();
        let mut collector = HitCollector {
            search: self,
            source,
            concept,
            ids: ids.as_ref(),
            most: if counts_all { Most::All } else { Most::Messages(count) },
            read: conversations,
            room: Cell::new(MAX_CONTENTS),
            by_text: RefCell::default(),
            texts: RefCell::default(),
        };
        let first = collector.run()?;
        let ids: HashSet<_> = first.hits.iter().map(|(_, hit)| &hit.conversation_id).collect();
        if first.is_whole || ids.len() > conversations {
            return Ok(first);
        }
        // Without a number of texts to read, and with the messages as its limit, it has counted nothing yet.
        collector.most = Most::Conversations(conversations);
        collector.read = 0;
        collector.room = Cell::new(MAX_CONTENTS);
        collector.run()
    }
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
    fn run(&self) -> Result<TextHits> {
        let Scoped { ranker, scope, .. } = &self.search.scoped;
        let takes_all =
            self.ids.is_none() && scope.conversation.is_none() && self.concept.required.is_none();
        let limit = match self.most {
            Most::Messages(count) if takes_all => Some(count),
            _ => None,
        };
        let request = Request {
            roles: self.search.scoped.roles_in(self.source.kind).into_owned(),
            since: scope.since,
            until: scope.until,
            limit,
            ..self.concept.request.clone()
        };
        let mut found = TextHits { hits: Vec::new(), is_whole: true };
        let mut seen = 0;
        let reads = |id: &str| self.reads(id);
        let mut sink = Rendered::new(
            |hit: Hit<'_>| self.rendered(hit),
            |hit: Option<Hit<'static>>| {
                seen += 1;
                if let Some(hit) = hit {
                    self.count(&hit);
                    found.hits.push((self.source.kind, hit));
                }
                found.is_whole = match self.most {
                    Most::All => true,
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
        let scope = &self.search.scoped.scope;
        let is_wanted = scope.conversation.as_ref().is_none_or(|id| *id == hit.conversation_id)
            && self.ids.is_none_or(|ids| ids.contains(&*hit.conversation_id))
            && self.concept.required.as_ref().is_none_or(|it| it.allows(&hit.content));
        if !is_wanted {
            return None;
        }
        if self.read > 0 && !self.is_needed(&hit)
            || matches!(self.most, Most::Conversations(_)) && self.has_enough(&hit)
        {
            return Some(None);
        }
        let length = hit.content.len().min(MOST_KEPT);
        let most = if length <= self.room.get() { MOST_KEPT } else { MAX_BEYOND };
        let place = if hit.content.len() > most {
            span_of(&hit.content, &self.concept.matchers).map_or(0, |span| span.start)
        } else {
            0
        };
        self.room.set(self.room.get().saturating_sub(length));
        Some(Some(hit.into_owned_at(place, most)))
    }

    fn reads(&self, id: &str) -> bool {
        // What a text must not have is only known when it is read.
        if self.read == 0 || self.concept.required.is_some() {
            return true;
        }
        let texts = self.texts.borrow();
        match texts.get(id) {
            Some(count) => count.is_some_and(|it| it < MAX_MATCHES),
            None => texts.len() < self.read,
        }
    }

    fn is_needed(&self, hit: &Hit<'_>) -> bool {
        let id = &*hit.conversation_id;
        let is_read = self.reads(id);
        let mut texts = self.texts.borrow_mut();
        let is_new = !texts.contains_key(id);
        if is_new {
            texts.insert(id.to_owned(), is_read.then_some(0));
        }
        if is_read && let Some(Some(count)) = texts.get_mut(id) {
            *count += usize::from(self.concept.is_in(&hit.content));
        }
        is_read || is_new
    }

    /// Returns whether an answer shows no further message of this message's conversation.
    fn has_enough(&self, hit: &Hit<'_>) -> bool {
        match self.by_text.borrow().get(&*hit.conversation_id) {
            Some(0) => !self.concept.is_in(&hit.content),
            Some(count) => *count >= MAX_MATCHES,
            None => false,
        }
    }

    fn count(&self, hit: &Hit<'_>) {
        if matches!(self.most, Most::Conversations(_)) {
            let mut by_text = self.by_text.borrow_mut();
            let known = by_text.entry(hit.conversation_id.to_string()).or_default();
            *known += usize::from(self.concept.is_in(&hit.content));
        }
    }
}

fn key_of(kind: SourceKind, hit: &Hit<'_>) -> ConversationKey {
    (kind, hit.conversation_id.to_string())
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
