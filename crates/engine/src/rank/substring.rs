//! Ranks by substring: messages that contain the text, newest first.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    ops::{ControlFlow, Range},
};

use super::{
    passage,
    question::{ConversationMatch, MAX_MATCHES, Match, Mode, Ranking},
    ranker::Ranker,
};
use crate::{
    error::Result,
    source::{
        Description, Note, Scope, Source, SourceKind,
        request::{checked, trimmed},
        sink::{Rendered, Sparing},
    },
};
use verbatim_base::model::{Hit, MOST_KEPT, Matching, Request};
use verbatim_index as index;
use verbatim_text::matcher::Matchers;

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

/// The limit at which a search by substring ends.
#[derive(Clone, Copy)]
enum Most {
    /// This many messages were found.
    Messages(usize),
    /// Messages of more than this many conversations were found.
    Conversations(usize),
}

impl Ranker<'_> {
    /// Returns the messages that contain a concept, newest first. Their conversations contain every
    /// concept.
    pub(super) fn messages_by_substring(&mut self, sources: &[Source]) -> Result<Ranking<Match>> {
        let matchers = self.matchers()?;
        let limit = self.question.limit;
        // One message more than the limit is read, to see whether there are more.
        let (mut found, is_whole) = self.containing(sources, limit.saturating_add(1), 0)?;
        let (total, is_total_exact) = (found.len(), is_whole && found.len() <= limit);
        found.truncate(limit);
        let mut best: Vec<(SourceHit, u32)> = Vec::new();
        let mut copies: HashMap<(String, String), usize> = HashMap::new();
        for (kind, hit) in found {
            let key = hit.copy_key();
            if let Some(place) = copies.get(&key) {
                best[*place].1 += 1;
                continue;
            }
            copies.insert(key, best.len());
            best.push(((kind, hit), 1));
        }
        let key = |((kind, hit), _): &(SourceHit, u32)| (*kind, hit.conversation_id.to_string());
        let descriptions = self.descriptions(best.iter().map(key), false)?;
        let matches = best.into_iter().enumerate().map(|(place, one)| {
            let description = descriptions.get(&key(&one));
            let ((_, hit), copies) = one;
            let score = HALF / (HALF + place as f64);
            description.map(|description| Match {
                copies,
                ..substring_match(&matchers, description, hit, score)
            })
        });
        let items = matches.flatten().collect();
        Ok(Ranking { items, total, is_total_exact, notes: std::mem::take(&mut self.notes) })
    }

    /// Returns the conversations that contain every concept, in the order of their newest such message.
    pub(super) fn conversations_by_substring(
        &mut self,
        sources: &[Source],
    ) -> Result<Ranking<ConversationMatch>> {
        let matchers = self.matchers()?;
        let limit = self.question.limit;
        let (found, is_total_exact) = self.containing(sources, MAX_OF_CONVERSATIONS, limit)?;
        let is_in_text = |hit: &Hit<'_>| is_in_text(&matchers, hit);
        let mut order: Vec<(SourceKind, String)> = Vec::new();
        let mut hits_of: HashMap<(SourceKind, String), Vec<Hit<'static>>> = HashMap::new();
        for (kind, hit) in found {
            let key = (kind, hit.conversation_id.to_string());
            let hits = hits_of.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                Vec::new()
            });
            if hits.len() == MAX_MATCHES {
                continue;
            }
            let has_text = is_in_text(&hit);
            // If the text of a message matches, messages of which only the title matches are dropped.
            if has_text && hits.first().is_some_and(|first| !is_in_text(first)) {
                hits.clear();
            }
            if hits.is_empty() || has_text {
                hits.push(hit);
            }
        }
        let total = order.len();
        order.truncate(limit);
        let descriptions = self.descriptions(order.iter().cloned(), true)?;
        let is_of_title =
            |key: &&(SourceKind, String)| hits_of[*key].first().is_some_and(|it| !is_in_text(it));
        let mut first = self.first_messages(order.iter().filter(is_of_title))?;
        let mut items = Vec::new();
        for key in order {
            let Some(description) = descriptions.get(&key) else { continue };
            let mut hits = hits_of.remove(&key).unwrap_or_default();
            if let Some(first) = first.remove(&key) {
                hits = vec![first];
            } else if hits.first().is_some_and(|first| !is_in_text(first)) {
                hits.truncate(1);
            }
            let score = |place: usize| HALF / (HALF + place as f64);
            let matches = hits.into_iter().enumerate();
            let matches = matches
                .map(|(place, hit)| substring_match(&matchers, description, hit, score(place)));
            items.push(ConversationMatch {
                about: description.about.clone(),
                score: score(items.len()),
                matches: matches.collect(),
            });
        }
        Ok(Ranking { items, total, is_total_exact, notes: std::mem::take(&mut self.notes) })
    }

    /// Returns the first messages of conversations.
    fn first_messages<'k>(
        &self,
        keys: impl Iterator<Item = &'k (SourceKind, String)>,
    ) -> Result<HashMap<(SourceKind, String), Hit<'static>>> {
        let mut by_kind: BTreeMap<SourceKind, Vec<&str>> = BTreeMap::new();
        keys.for_each(|(kind, id)| by_kind.entry(*kind).or_default().push(id));
        let mut first = HashMap::new();
        for (kind, ids) in by_kind {
            let hits = {
                let source = self.sources.reopen(kind)?;
                source.store().first_messages(&source, &ids, self.stop)?
            };
            first
                .extend(hits.into_iter().map(|hit| ((kind, hit.conversation_id.to_string()), hit)));
        }
        Ok(first)
    }

    /// Returns messages that contain the concepts, newest first, and whether these are all. Returns
    /// at least `count` messages, if that many match. If these are from only `conversations`
    /// conversations or fewer, also returns messages of further conversations.
    pub(super) fn containing(
        &mut self,
        sources: &[Source],
        count: usize,
        conversations: usize,
    ) -> Result<(Vec<SourceHit>, bool)> {
        let concepts = self.question.concepts.iter();
        let concepts: Vec<&String> =
            concepts.filter(|concept| !trimmed(concept).is_empty()).collect();
        let (count, conversations) =
            if concepts.len() > 1 { (MAX_OF_SEVERAL, 0) } else { (count, conversations) };
        let mut by_concept: Vec<Vec<SourceHit>> = Vec::new();
        let mut is_whole = true;
        for concept in concepts {
            let mut found: Vec<SourceHit> = Vec::new();
            for source in sources {
                let (before, kind) = (found.len(), source.kind);
                let of = |hits: &[SourceHit]| {
                    hits.iter().map(|(_, hit)| &hit.conversation_id).collect::<HashSet<_>>().len()
                };
                let most = Most::Messages(count);
                let mut outcome =
                    self.containing_in(source, concept, (most, conversations), &mut found);
                if matches!(outcome, Ok(false)) && of(&found[before..]) <= conversations {
                    found.truncate(before);
                    let most = Most::Conversations(conversations);
                    outcome = self.containing_in(source, concept, (most, 0), &mut found);
                }
                match outcome {
                    Err(error) if error.is_of_source() && sources.len() > 1 => {
                        found.truncate(before);
                        self.note(Note::Unreadable { source: kind, reason: error.reason() });
                    }
                    outcome => is_whole &= outcome?,
                }
            }
            by_concept.push(found);
        }
        let key = |(kind, hit): &SourceHit| (*kind, hit.conversation_id.to_string());
        let mut common: Option<HashSet<(SourceKind, String)>> = None;
        for found in &by_concept {
            let here: HashSet<_> = found.iter().map(key).collect();
            common = Some(match common {
                Some(common) => common.intersection(&here).cloned().collect(),
                None => here,
            });
        }
        let common = common.unwrap_or_default();
        let mut seen = HashSet::new();
        let mut found: Vec<SourceHit> = by_concept.into_iter().flatten().collect();
        found.retain(|hit| {
            common.contains(&key(hit)) && seen.insert((key(hit), hit.1.message_id.to_string()))
        });
        // The sort is stable, so messages of one source keep their order.
        found.sort_by_key(|(_, hit)| Reverse(hit.time));
        Ok((found, is_whole))
    }

    fn request(&self, concept: &str) -> Request {
        let matching = self.question.matching.unwrap_or(Matching::Literal);
        // In an exact search, white space at the ends belongs to the text.
        let text = match matching {
            Matching::Literal | Matching::Regex if self.question.mode == Mode::Exact => {
                concept.to_owned()
            }
            _ => trimmed(concept).to_owned(),
        };
        let ignore_accents = self.question.ignore_accents;
        Request { text, matching, ignore_accents, ..Request::default() }
    }

    fn matchers(&self) -> Result<Vec<Matchers>> {
        let concepts = self.question.concepts.iter();
        let concepts = concepts.filter(|concept| !trimmed(concept).is_empty());
        concepts
            .map(|concept| {
                let request = self.request(concept);
                let matchers = Matchers::of(&*checked(&request)?);
                Ok(matchers.map_err(index::Error::from)?)
            })
            .collect()
    }

    /// Adds the messages of a source that contain a concept. Returns whether these are all. If `read` is not
    /// 0, reads only the texts that an answer shows of the first so many conversations. Of each other
    /// conversation, adds only one message, with the concept as its text.
    fn containing_in(
        &self,
        source: &Source,
        concept: &str,
        (most, read): (Most, usize),
        found: &mut Vec<SourceHit>,
    ) -> Result<bool> {
        let scope = &self.scope;
        let ids = self.conversations_of_origin(source)?;
        let limit = match most {
            Most::Messages(count) => {
                (ids.is_none() && scope.conversation.is_none()).then_some(count)
            }
            Most::Conversations(_) => None,
        };
        let request = Request {
            roles: self.roles_in(source.kind).into_owned(),
            since: scope.since,
            until: scope.until,
            limit,
            ..self.request(concept)
        };
        let matchers = Matchers::of(&request).map_err(index::Error::from)?;
        let is_wanted = |hit: &Hit<'_>| {
            scope.conversation.as_ref().is_none_or(|id| *id == hit.conversation_id)
                && ids.as_ref().is_none_or(|ids| ids.contains(&*hit.conversation_id))
        };
        let room = Cell::new(MAX_CONTENTS);
        let kept = |hit: Hit<'_>| {
            let length = hit.content.len().min(MOST_KEPT);
            let most = if length <= room.get() { MOST_KEPT } else { MAX_BEYOND };
            let place = match hit.content.len() > most {
                true => span_of(&hit.content, &matchers).map_or(0, |span| span.start),
                false => 0,
            };
            room.set(room.get().saturating_sub(length));
            hit.into_owned_at(place, most)
        };
        // For each conversation, the number of messages that were found by their texts. More
        // messages than an answer shows are left out, and so are all but the first of those found
        // only by the title.
        let by_text: RefCell<HashMap<String, usize>> = RefCell::default();
        // For each conversation, the number of its texts that were read and match; `None` if none is read.
        let texts: RefCell<HashMap<String, Option<usize>>> = RefCell::default();
        let reads = |id: &str| {
            let texts = texts.borrow();
            let is_needed = |count: &Option<usize>| count.is_some_and(|it| it < MAX_MATCHES);
            read == 0 || texts.get(id).map_or(texts.len() < read, is_needed)
        };
        let is_needed = |hit: &Hit<'_>| {
            let (id, is_read) = (&*hit.conversation_id, reads(&hit.conversation_id));
            let mut texts = texts.borrow_mut();
            let is_new = !texts.contains_key(id);
            if is_new {
                texts.insert(id.to_owned(), is_read.then_some(0));
            }
            if let Some(Some(count)) = texts.get_mut(id).filter(|_| is_read) {
                *count += usize::from(matchers.accept_text(&hit.content));
            }
            is_read || is_new
        };
        let render = |hit: Hit<'_>| {
            if read > 0 && is_wanted(&hit) && !is_needed(&hit) {
                return Some(None);
            }
            let is_enough = |known: usize| {
                known >= MAX_MATCHES || known == 0 && !matchers.accept_text(&hit.content)
            };
            let known = by_text.borrow().get(&*hit.conversation_id).copied();
            let is_left_out =
                matches!(most, Most::Conversations(_)) && known.is_some_and(is_enough);
            is_wanted(&hit).then(|| (!is_left_out).then(|| kept(hit)))
        };
        let (mut seen, mut is_whole) = (0, true);
        let mut sink = Rendered::new(render, |hit: Option<Hit<'static>>| {
            seen += 1;
            let mut by_text = by_text.borrow_mut();
            if let Some(hit) = hit {
                if matches!(most, Most::Conversations(_)) {
                    let known = by_text.entry(hit.conversation_id.to_string()).or_default();
                    *known += usize::from(matchers.accept_text(&hit.content));
                }
                found.push((source.kind, hit));
            }
            is_whole = match most {
                Most::Messages(count) => seen < count,
                Most::Conversations(count) => by_text.len() <= count,
            };
            if is_whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let mut sink = Sparing { reads: &reads, only: None, sink: &mut sink };
        source.search(&request, self.stop, &mut sink)?;
        Ok(is_whole)
    }

    /// Returns the ids of the conversations to search; `None` for all. The scope may name them directly or
    /// by a project or session. Conversations that another source has too are left out.
    pub(super) fn conversations_of_origin(
        &self,
        source: &Source,
    ) -> Result<Option<HashSet<String>>> {
        let scope = self.narrowed_scope();
        let scope = Scope { conversation: None, ..scope.any_message() };
        if scope.is_open() && source.left_out(self.stop)?.is_empty() {
            return Ok(None);
        }
        let listing = source.reader(self.stop).list(&scope, self.stop)?;
        let ids = (0..listing.len()).map(|place| listing.heading(place).0.to_owned());
        Ok(Some(ids.collect()))
    }
}

fn substring_match(
    matchers: &[Matchers],
    description: &Description,
    hit: Hit<'static>,
    score: f64,
) -> Match {
    let is_title_only = !is_in_text(matchers, &hit);
    let first = matchers.iter().find_map(|concept| span_of(&hit.content, concept));
    let passage = passage::around_span(&hit.content, first.unwrap_or(0..0));
    let (source, line) = (description.about.source, description.line(&hit));
    Match { source, score, line, passage, is_far: false, is_title_only, copies: 1, hit }
}

/// Returns whether the text of a message contains a concept. The title does not count.
fn is_in_text(matchers: &[Matchers], hit: &Hit<'_>) -> bool {
    matchers.iter().any(|concept| concept.accept_text(&hit.content))
}

/// Returns the first place of a concept in a text.
pub(super) fn span_of(text: &str, concept: &Matchers) -> Option<Range<usize>> {
    concept.first_spans(text, 1).into_iter().find(|span| !span.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::{Mode, Question, TestExport};
    use verbatim_base::model::Stop;

    #[test]
    fn only_the_texts_of_the_shown_conversations_are_read_and_all_are_counted() {
        let texts: Vec<String> = (0..30).map(|n| format!("a red sky, seen {n} times")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let export = TestExport::indexed(&texts);
        let concepts = vec!["red".to_owned()];
        for limit in [1, 3, 29, 30, 40] {
            let concepts = concepts.clone();
            let question = Question { concepts, mode: Mode::Exact, limit, ..Question::default() };
            let ranking = export.engine.rank_conversations(&question, &Stop::never()).unwrap();
            assert_eq!((ranking.total, ranking.is_total_exact), (30, true), "{limit}");
            assert_eq!(ranking.items.len(), limit.min(30));
            for (item, text) in ranking.items.iter().zip(texts.iter().rev()) {
                assert_eq!(item.matches[0].hit.content, *text, "{limit}");
            }
        }
    }
}
