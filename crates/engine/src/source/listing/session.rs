//! A conversation that is open for reading.

use crate::source::{kind::SourceKind, reader::Messages, scope::About};
use verbatim_base::model::Hit;

/// A conversation that is open for reading. Turns are messages, counted from 0 in reading order.
#[derive(Debug)]
pub struct Session {
    /// The description of the conversation.
    pub about: About,
    messages: Box<dyn Messages>,
}

impl Session {
    pub(crate) fn new(about: About, messages: Box<dyn Messages>) -> Session {
        Session { about, messages }
    }

    /// Returns the number of messages of the conversation.
    pub fn turns(&self) -> usize {
        self.messages.turns()
    }

    /// Returns the role of a message; empty for NULL.
    pub fn role(&self, turn: usize) -> &str {
        self.messages.role(turn)
    }

    /// Returns a message's line in the transcript's file. In other sources, returns its number from 1.
    pub fn line(&self, turn: usize) -> u32 {
        line_number(self.about.source, self.messages.position(turn), turn)
    }

    /// Returns the message with a number in reading order, from 0.
    pub fn message(&self, turn: usize) -> Hit<'_> {
        self.messages.message(turn)
    }

    /// Returns the number of a message of the conversation; `None` for any other message.
    pub fn turn_of(&self, hit: &Hit<'_>) -> Option<usize> {
        self.messages.turn_of(hit)
    }
}

/// Returns the line of a message. In the transcript store, positions are lines of the transcript's file.
/// In other sources, the line is the message's number, from 1.
pub(crate) fn line_number(source: SourceKind, position: Option<i64>, turn: usize) -> u32 {
    let of_file = position.filter(|_| source.has_origins());
    let of_file = of_file.and_then(|line| u32::try_from(line).ok());
    of_file.map(|line| line.max(1)).unwrap_or_else(|| u32::try_from(turn + 1).unwrap_or(u32::MAX))
}
