//! The messages of a conversation in memory.

use super::{Messages, turns::TurnFinder};
use verbatim_base::model::{Hit, Instant};

#[derive(Debug)]
pub(crate) struct ReadMessages {
    messages: Vec<Hit<'static>>,
    finder: TurnFinder,
}

impl ReadMessages {
    /// Returns the messages of a conversation; `None` if there are none.
    pub(crate) fn opened(messages: Vec<Hit<'static>>) -> Option<Box<dyn Messages>> {
        if messages.is_empty() {
            return None;
        }
        Some(Box::new(ReadMessages { messages, finder: TurnFinder::default() }))
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
        let messages = &self.messages;
        self.finder.find(
            messages.len(),
            &&*hit.message_id,
            |turn| &*messages[turn].message_id,
            |turn| {
                messages[turn].message_id == hit.message_id
                    && messages[turn].position == hit.position
            },
        )
    }
}
