//! Ranked search: messages and conversations by how well they answer, best first.

mod answer;
mod concept;
mod fuse;
mod passage;
mod prepare;
mod question;
mod ranker;
mod substring;
mod titles;

use super::error::Error;

pub use question::{ConversationMatch, Fields, Match, Mode, Question, Ranking};
pub(crate) use ranker::Ranker;

impl Ranker<'_> {
    /// Returns the messages that answer best. A text that several messages have is returned once,
    /// with their number.
    pub(crate) fn messages(mut self) -> Result<Ranking<Match>, Error> {
        let items = match self.find()? {
            Some(found) => self.matches(&found, &found.scored, self.question.limit),
            None => return self.messages_by_substring(),
        };
        Ok(Ranking { items, notes: self.notes })
    }

    /// Returns the ids of the messages that answer best, duplicate texts included.
    pub(crate) fn message_ids(mut self) -> Result<Vec<String>, Error> {
        let Some(found) = self.find()? else {
            let ranking = self.messages_by_substring()?;
            let id = |item: Match| item.hit.message_id.into_owned();
            return Ok(ranking.items.into_iter().map(id).collect());
        };
        let best = found.scored.iter().take(self.question.limit);
        let id = |scored: &fuse::Scored| {
            let scorer = &found.sources[scored.source].scorer;
            scorer.hit(scored.doc_id).message_id.into_owned()
        };
        Ok(best.map(id).collect())
    }

    /// Returns the conversations that answer best.
    pub(crate) fn conversations(mut self) -> Result<Ranking<ConversationMatch>, Error> {
        let items = match self.find()? {
            Some(found) => self.ranked_conversations(&found)?,
            None => return self.conversations_by_substring(),
        };
        Ok(Ranking { items, notes: self.notes })
    }
}
