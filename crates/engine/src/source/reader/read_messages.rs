//! The messages of a conversation in memory.

use super::{Messages, turns::TurnFinder};
use verbatim_base::model::{Hit, Instant};

#[derive(Debug)]
pub(crate) struct ReadMessages {
    messages: Vec<Hit<'static>>,
    finder: TurnFinder,
}

impl ReadMessages {
    pub(crate) fn new(messages: Vec<Hit<'static>>) -> ReadMessages {
        ReadMessages { messages, finder: TurnFinder::default() }
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
        self.messages[turn].lent()
    }

    fn turn_of(&self, hit: &Hit<'_>) -> Option<usize> {
        let key = |turn: usize| &*self.messages[turn].message_id;
        let is_same =
            |turn| key(turn) == hit.message_id && self.messages[turn].position == hit.position;
        self.finder.find(self.messages.len(), &&*hit.message_id, key, is_same)
    }
}
