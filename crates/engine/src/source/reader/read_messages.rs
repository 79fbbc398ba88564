//! The messages of a conversation in memory.

use super::{Messages, turns::TurnFinder};
use verbatim_base::model::{Hit, Instant};
use verbatim_chats::db::LongContents;

#[derive(Debug)]
pub(crate) struct ReadMessages {
    messages: Vec<Hit<'static>>,
    long: LongContents,
    finder: TurnFinder,
}

impl ReadMessages {
    /// Returns the messages. Long contents are stored separately, in `long`.
    pub(crate) fn new(messages: Vec<Hit<'static>>, long: LongContents) -> ReadMessages {
        ReadMessages { messages, long, finder: TurnFinder::default() }
    }
}

impl Messages for ReadMessages {
    fn turns(&self) -> usize {
        self.messages.len()
    }

    fn role(&self, turn: usize) -> &str {
        &self.messages[turn].role
    }

    fn time(&self, turn: usize) -> Option<Instant> {
        self.messages[turn].time
    }

    fn position(&self, turn: usize) -> Option<i64> {
        self.messages[turn].position
    }

    fn message(&self, turn: usize) -> Hit<'_> {
        self.long.complete(turn, self.messages[turn].lent())
    }

    fn turn_of(&self, hit: &Hit<'_>) -> Option<usize> {
        let key = |turn: usize| &*self.messages[turn].message_id;
        let is_same =
            |turn| key(turn) == hit.message_id && self.messages[turn].position == hit.position;
        self.finder.find(self.messages.len(), &&*hit.message_id, key, is_same)
    }
}
