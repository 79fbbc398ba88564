//! Ranks by substring: the messages that contain the text, the newest first.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    ops::{ControlFlow, Range},
};

use super::{
    passage,
    question::{ConversationMatch, MAX_MATCHES, Match, Ranking},
    ranker::Ranker,
};
use crate::{
    engine::{
        error::Error,
        source::{Scope, Source, SourceKind, line_number, request::trimmed, sink::Rendered},
    },
    model::{Hit, MOST_KEPT, Request},
    text::literal::LiteralPattern,
};

/// Messages that are read for each of several concepts that a conversation must contain.
const MAX_OF_SEVERAL: usize = 20_000;

/// Messages that are read to rank conversations.
const MAX_OF_CONVERSATIONS: usize = 2_000;

/// At this place the score is half of the first score.
const HALF: f64 = 20.0;

type SourceHit = (SourceKind, Hit<'static>);

impl Ranker<'_> {
    /// Returns the messages that contain a concept, the newest first, from conversations that
    /// contain every concept.
    pub(super) fn messages_by_substring(&self) -> Result<Ranking<Match>, Error> {
        let mut found = self.containing(self.question.limit)?;
        found.truncate(self.question.limit);
        let mut matches: Vec<Match> = Vec::new();
        let mut copies: HashMap<(String, String), usize> = HashMap::new();
        for (kind, hit) in found {
            let key = (hit.role.to_string(), hit.content.trim().to_owned());
            if let Some(place) = copies.get(&key) {
                matches[*place].copies += 1;
                continue;
            }
            copies.insert(key, matches.len());
            let score = HALF / (HALF + matches.len() as f64);
            matches.push(self.substring_match(kind, hit, score)?);
        }
        Ok(Ranking { items: matches, notes: Vec::new() })
    }

    /// Returns the conversations that contain every concept, by their newest message that does.
    pub(super) fn conversations_by_substring(&self) -> Result<Ranking<ConversationMatch>, Error> {
        let found = self.containing(MAX_OF_CONVERSATIONS)?;
        let mut order: Vec<(SourceKind, String)> = Vec::new();
        let mut hits_of: HashMap<(SourceKind, String), Vec<Hit<'static>>> = HashMap::new();
        for (kind, hit) in found {
            let key = (kind, hit.conversation_id.to_string());
            let hits = hits_of.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                Vec::new()
            });
            if hits.len() < MAX_MATCHES {
                hits.push(hit);
            }
        }
        let mut items = Vec::new();
        for key in order.into_iter().take(self.question.limit) {
            let hits = hits_of.remove(&key).unwrap_or_default();
            let Some(about) = self.sources.about(key.0, &key.1, self.stop)? else { continue };
            let matches = hits
                .into_iter()
                .enumerate()
                .map(|(place, hit)| self.substring_match(key.0, hit, HALF / (HALF + place as f64)));
            let matches = matches.collect::<Result<_, _>>()?;
            items.push(ConversationMatch {
                about,
                score: HALF / (HALF + items.len() as f64),
                matches,
            });
        }
        Ok(Ranking { items, notes: Vec::new() })
    }

    /// Returns the messages that contain the concepts, newest first, at least `count` if there are.
    fn containing(&self, count: usize) -> Result<Vec<SourceHit>, Error> {
        let concepts = self.question.concepts.iter().map(|concept| trimmed(concept));
        let concepts: Vec<&str> = concepts.filter(|concept| !concept.is_empty()).collect();
        let count = if concepts.len() > 1 { MAX_OF_SEVERAL } else { count };
        let mut by_concept: Vec<Vec<SourceHit>> = Vec::new();
        for concept in concepts {
            let mut found: Vec<SourceHit> = Vec::new();
            for source in self.sources.within(&self.question.scope)? {
                self.containing_in(&source, concept, count, &mut found)?;
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
        // A stable sort: each source's own order stays.
        found.sort_by_key(|(_, hit)| Reverse(hit.time));
        Ok(found)
    }

    /// Adds the messages of a source that contain a concept, at most `count`.
    fn containing_in(
        &self,
        source: &Source,
        concept: &str,
        count: usize,
        found: &mut Vec<SourceHit>,
    ) -> Result<(), Error> {
        let scope = &self.question.scope;
        let ids = self.conversations_of_origin(source)?;
        let request = Request {
            text: concept.to_owned(),
            literal: true,
            roles: scope.roles.clone(),
            since: scope.since,
            until: scope.until,
            limit: (ids.is_none() && scope.conversation.is_none()).then_some(count),
            ..Request::default()
        };
        let is_wanted = |hit: &Hit<'_>| {
            scope.conversation.as_ref().is_none_or(|id| *id == hit.conversation_id)
                && ids.as_ref().is_none_or(|ids| ids.contains(&*hit.conversation_id))
        };
        let mut left = count;
        let mut sink = Rendered::new(
            |hit: Hit<'_>| {
                is_wanted(&hit).then(|| {
                    let place = match hit.content.len() > MOST_KEPT {
                        true => span_of(&hit.content, concept).map_or(0, |span| span.start),
                        false => 0,
                    };
                    (source.kind, hit.kept(place))
                })
            },
            |hit| {
                if left > 0 {
                    found.push(hit);
                    left -= 1;
                }
                if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        source.search(&request, self.stop, &mut sink)?;
        Ok(())
    }

    /// Returns the ids of the conversations of the scope's project or session; `None` for all.
    fn conversations_of_origin(&self, source: &Source) -> Result<Option<HashSet<String>>, Error> {
        let scope = &self.question.scope;
        if scope.project.is_none() && scope.session.is_none() {
            return Ok(None);
        }
        let scope = Scope {
            project: scope.project.clone(),
            session: scope.session.clone(),
            ..Scope::default()
        };
        let listing = source.reader(self.stop).list(&scope, self.stop)?;
        let ids = (0..listing.len()).map(|place| listing.heading(place).0.to_owned());
        Ok(Some(ids.collect()))
    }

    fn substring_match(
        &self,
        source: SourceKind,
        hit: Hit<'static>,
        score: f64,
    ) -> Result<Match, Error> {
        let line = self.line_of(source, &hit)?;
        let passage = passage_around(&hit.content, &self.question.concepts);
        Ok(Match { source, hit, score, line, passage, copies: 1 })
    }

    /// Returns the line of a message in its conversation.
    fn line_of(&self, kind: SourceKind, hit: &Hit<'_>) -> Result<u32, Error> {
        let Some(source) = self.sources.of_kind(kind) else { return Ok(1) };
        let messages = source.reader(self.stop).read(&hit.conversation_id, false, self.stop)?;
        let turn = messages.and_then(|messages| messages.turn_of(hit));
        Ok(line_number(kind, hit.position, turn.unwrap_or(0)))
    }
}

/// Returns the first place of a concept in a text.
fn span_of(text: &str, concept: &str) -> Option<Range<usize>> {
    LiteralPattern::new(trimmed(concept), false).first_spans(text, 1).into_iter().next()
}

/// Returns the passage around the first of the concepts that is in a text.
fn passage_around(text: &str, concepts: &[String]) -> String {
    let first =
        concepts.iter().find_map(|concept| span_of(text, concept)).filter(|span| !span.is_empty());
    passage::around_span(text, first.unwrap_or(0..0))
}
