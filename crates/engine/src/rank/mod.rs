//! Ranked search for messages and conversations, best first.

mod all_concepts;
mod answer;
mod concept;
mod distance;
mod fuse;
mod outdated;
mod passage;
mod question;
mod ranker;
mod scan;
mod sources;
mod substring;
mod titles;

use super::{
    error::Result,
    source::{Note, Source},
};
use answer::{FoundBy, ScoredMessages};

pub use question::{ConversationMatch, Fields, Match, Mode, Question, Ranking};
pub use ranker::Ranker;

impl Ranker<'_> {
    /// Returns the messages that answer best. Messages with the same text are returned once, with their
    /// number.
    pub(crate) fn messages(mut self) -> Result<Ranking<Match>> {
        let (found, scanned) = match self.find()? {
            FoundBy::Scores(found, scanned) => (found, scanned),
            FoundBy::Substring(sources) => return self.messages_by_substring(&sources),
        };
        let limit = self.question.limit;
        let matches = self.matches(&found, &found.scored, limit);
        let mut items = self.as_they_are_now(&found.sources, matches);
        let mut total = found.scored.len();
        let mut is_cut = self.is_cut;
        let scanned = self.to_scan(&found, scanned, items.is_empty());
        if !scanned.is_empty() {
            let scan = self.scan(&scanned)?;
            total += scan.matching;
            is_cut |= scan.is_cut;
            items.extend(self.scanned_messages(scan)?);
            items.sort_by(|a, b| b.score.total_cmp(&a.score));
            items.truncate(limit);
        }
        distance::mark(&mut items, &found.concepts);
        self.note_unknown_role(items.is_empty())?;
        self.settle_notes(items.is_empty());
        let is_total_exact = total <= limit && !is_cut;
        Ok(Ranking { total: total.max(items.len()), items, is_total_exact, notes: self.notes })
    }

    /// Returns the ids of the messages that answer best, and the notes. Messages with the same text all count.
    pub fn message_ids(mut self) -> Result<(Vec<String>, Vec<Note>)> {
        let found = match self.find()? {
            FoundBy::Scores(found, scanned) if scanned.is_empty() => found,
            _ => {
                let Ranking { items, notes, .. } = self.messages()?;
                let ids = items.into_iter().map(|item| item.hit.message_id.into_owned());
                return Ok((ids.collect(), notes));
            }
        };
        let best = found.scored.iter().take(self.question.limit);
        let id = |scored: &fuse::Scored| {
            let scorer = &found.sources[scored.source].scorer;
            scorer.hit(scored.doc_id).message_id.into_owned()
        };
        Ok((best.map(id).collect(), self.notes))
    }

    pub(crate) fn conversations(mut self) -> Result<Ranking<ConversationMatch>> {
        self.wanted = self.question.limit;
        let (found, scanned) = match self.find()? {
            FoundBy::Scores(found, scanned) => (found, scanned),
            FoundBy::Substring(sources) => return self.conversations_by_substring(&sources),
        };
        let (mut items, mut total) = self.ranked_conversations(&found)?;
        let mut is_cut = self.is_cut;
        let scanned = self.to_scan(&found, scanned, items.is_empty());
        if !scanned.is_empty() {
            let scan = self.scan(&scanned)?;
            is_cut |= scan.is_cut;
            let (more, count) = self.scanned_conversations(scan)?;
            total += count;
            items.extend(more);
            items.sort_by(|a, b| b.score.total_cmp(&a.score));
            items.truncate(self.question.limit);
        }
        self.note_unknown_role(items.is_empty())?;
        self.settle_notes(items.is_empty());
        if self.common.is_some() {
            return self.completed(items);
        }
        let is_total_exact = total <= self.question.limit && !is_cut;
        Ok(Ranking { items, total, is_total_exact, notes: self.notes })
    }

    /// Returns the sources to scan, which are those without an index. If nothing was found and an index is
    /// incomplete, returns all other sources too.
    fn to_scan(
        &self,
        found: &ScoredMessages,
        mut scanned: Vec<Source>,
        is_empty: bool,
    ) -> Vec<Source> {
        let is_partial = self.notes.iter().any(|note| {
            matches!(
                note,
                Note::OlderIndex { .. } | Note::NotEmbedded { .. } | Note::Building { .. }
            )
        });
        if is_empty && is_partial {
            scanned.extend(found.sources.iter().map(|ranked| ranked.source.clone()));
        }
        scanned.retain(|source| !self.is_quick || source.store().bytes() <= ranker::SMALL);
        scanned
    }
}
