//! The messages of a conversation, all read.

use super::reader::Messages;
use crate::model::Hit;

/// The messages of a conversation, all read.
#[derive(Debug)]
pub(super) struct ReadMessages(pub(super) Vec<Hit<'static>>);

impl Messages for ReadMessages {
    fn turns(&self) -> usize {
        self.0.len()
    }

    fn role(&self, turn: usize) -> &str {
        &self.0[turn].role
    }

    fn position(&self, turn: usize) -> Option<i64> {
        self.0[turn].position
    }

    fn message(&self, turn: usize) -> Hit<'_> {
        self.0[turn].lent()
    }

    fn turn_of(&self, hit: &Hit<'_>) -> Option<usize> {
        let is_same =
            |other: &Hit<'_>| other.message_id == hit.message_id && other.position == hit.position;
        self.0.iter().position(is_same)
    }
}
