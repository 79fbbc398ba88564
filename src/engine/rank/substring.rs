//! Ranking by text as it stands: what holds it, the newest first.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    ops::ControlFlow,
};

use super::{ConversationMatch, Match, Question, Ranking, answer::line, passage};
use crate::{
    db,
    engine::{Engine, Error, SourceKind, trimmed},
    model::{Hit, Request, Stop},
    text::like::LikePattern,
};

/// Messages read for each of several things that a conversation must hold.
const MOST_OF_SEVERAL: usize = 20_000;

/// Messages read for conversations to rank.
const MOST_OF_CONVERSATIONS: usize = 2_000;

/// Messages that stand for a conversation, the most.
const MATCHES: usize = 5;

/// How many places further down a score is half of the first.
const HALF: f64 = 20.0;

/// A hit and where it is from.
type Found = (SourceKind, Hit);

impl Engine {
    /// Returns the messages that hold every concept as text, the newest first; of several concepts
    /// those of conversations that hold all.
    pub(crate) fn rank_exactly(
        &self,
        question: &Question,
        stop: &Stop,
    ) -> Result<Ranking<Match>, Error> {
        let mut found = self.holding(question, question.limit, stop)?;
        found.truncate(question.limit);
        let mut matches: Vec<Match> = Vec::new();
        let mut copies: HashMap<(String, String), usize> = HashMap::new();
        for (kind, hit) in found {
            let key = (hit.role.clone(), hit.content.trim().to_owned());
            if let Some(place) = copies.get(&key) {
                matches[*place].copies += 1;
                continue;
            }
            copies.insert(key, matches.len());
            let score = HALF / (HALF + matches.len() as f64);
            matches.push(self.exact_match(kind, hit, score, question, stop)?);
        }
        Ok(Ranking { items: matches, notes: Vec::new() })
    }

    /// Returns the conversations that hold every concept as text, by their newest message that does.
    pub(crate) fn conversations_exactly(
        &self,
        question: &Question,
        stop: &Stop,
    ) -> Result<Ranking<ConversationMatch>, Error> {
        let found = self.holding(question, MOST_OF_CONVERSATIONS, stop)?;
        let mut order: Vec<(SourceKind, String)> = Vec::new();
        let mut of: HashMap<(SourceKind, String), Vec<Hit>> = HashMap::new();
        for (kind, hit) in found {
            let key = (kind, hit.conversation_id.clone());
            let hits = of.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                Vec::new()
            });
            if hits.len() < MATCHES {
                hits.push(hit);
            }
        }
        let mut items = Vec::new();
        for key in order.into_iter().take(question.limit) {
            let hits = of.remove(&key).unwrap_or_default();
            let Some(about) = self.about(key.0, &key.1)? else { continue };
            let score = HALF / (HALF + items.len() as f64);
            let matches = hits.into_iter().enumerate().map(|(place, hit)| {
                let score = HALF / (HALF + place as f64);
                self.exact_match(key.0, hit, score, question, stop)
            });
            items.push(ConversationMatch {
                about,
                score,
                matches: matches.collect::<Result<_, _>>()?,
            });
        }
        Ok(Ranking { items, notes: Vec::new() })
    }

    /// Returns the messages that hold the concepts, newest first, at least `most` if there are.
    fn holding(&self, question: &Question, most: usize, stop: &Stop) -> Result<Vec<Found>, Error> {
        let scope = &question.scope;
        let concepts = question.concepts.iter().map(|concept| trimmed(concept));
        let concepts: Vec<&str> = concepts.filter(|concept| !concept.is_empty()).collect();
        let is_filtered = scope.project.is_some() || scope.session.is_some();
        let most = if concepts.len() > 1 { MOST_OF_SEVERAL } else { most };
        let mut every: Vec<Vec<Found>> = Vec::new();
        for concept in concepts {
            let mut found: Vec<Found> = Vec::new();
            for source in self.sources_of(scope)? {
                let some = if is_filtered { Some(self.ids_of(&source, scope)?) } else { None };
                let request = Request {
                    text: concept.to_owned(),
                    roles: scope.roles.clone(),
                    since: scope.since,
                    until: scope.until,
                    ..Request::default()
                };
                let mut count = 0;
                self.exact_in(&source, &request, stop, &mut |hit| {
                    let is_asked =
                        scope.conversation.as_ref().is_none_or(|id| *id == hit.conversation_id)
                            && some.as_ref().is_none_or(|some| some.contains(&hit.conversation_id));
                    if is_asked {
                        count += 1;
                        found.push((source.kind, hit));
                    }
                    if count < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
            }
            every.push(found);
        }
        let key = |(kind, hit): &Found| (*kind, hit.conversation_id.clone());
        let mut in_all: Option<HashSet<(SourceKind, String)>> = None;
        for found in &every {
            let here: HashSet<_> = found.iter().map(key).collect();
            in_all = Some(match in_all {
                Some(in_all) => in_all.intersection(&here).cloned().collect(),
                None => here,
            });
        }
        let in_all = in_all.unwrap_or_default();
        let mut seen = HashSet::new();
        let mut found: Vec<Found> = every.into_iter().flatten().collect();
        found.retain(|one| {
            in_all.contains(&key(one)) && seen.insert((key(one), one.1.message_id.clone()))
        });
        // Stable: each source's own order stays.
        found.sort_by_key(|(_, hit)| Reverse(hit.time));
        Ok(found)
    }

    fn exact_match(
        &self,
        source: SourceKind,
        hit: Hit,
        score: f64,
        question: &Question,
        stop: &Stop,
    ) -> Result<Match, Error> {
        let line = self.line_of(source, &hit, stop)?;
        let passage = exact_passage(&hit.content, &question.concepts);
        Ok(Match { source, hit, score, line, passage, copies: 1 })
    }

    /// Returns the number of a message's line in its conversation.
    fn line_of(&self, kind: SourceKind, hit: &Hit, stop: &Stop) -> Result<u32, Error> {
        let Some(source) = self.sources().into_iter().find(|source| source.kind == kind) else {
            return Ok(1);
        };
        if let Ok(catalogue) = self.catalogue(&source)
            && let Some(conversation) = catalogue.find(&hit.conversation_id)
        {
            let snapshot = catalogue.snapshot();
            let mut reading = catalogue.reading(conversation).iter();
            let place = reading.position(|doc_id| {
                snapshot.time(*doc_id) == hit.time
                    && snapshot.position(*doc_id) == hit.position
                    && snapshot.hit(*doc_id, false).message_id == hit.message_id
            });
            return Ok(line(kind, hit.position, place.unwrap_or(0) as u32));
        }
        let messages = self.on_source(&source, |path| {
            db::read(path, stop, |database| db::conversation(database, &hit.conversation_id, false))
        })?;
        let place = messages.iter().position(|other| other.message_id == hit.message_id);
        Ok(line(kind, hit.position, place.unwrap_or(0) as u32))
    }
}

/// Returns what of a text is around the first of the concepts that is in it.
fn exact_passage(text: &str, concepts: &[String]) -> String {
    let spans = |concept: &String| {
        LikePattern::parse(trimmed(concept), false).spans(text).into_iter().next()
    };
    let first = concepts.iter().find_map(spans).filter(|span| !span.is_empty());
    passage::around_span(text, first.unwrap_or(0..0))
}
