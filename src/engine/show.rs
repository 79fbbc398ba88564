//! One conversation, whole or around a message.

use super::{Engine, Error};
use crate::{
    db::{self, Heading},
    model::{Hit, Stop},
};

/// A conversation with its messages in reading order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Its id and title.
    pub heading: Heading,
    /// Its messages.
    pub messages: Vec<Hit>,
}

impl Engine {
    /// Returns the conversation that `word` means: its id, its title, or the beginning of its id.
    pub fn conversation(&self, word: &str, raw: bool, stop: &Stop) -> Result<Transcript, Error> {
        let found = self.on_database(|path| {
            db::read(path, stop, |database| {
                let headings = db::find_conversations(database, word)?;
                let messages = match &headings[..] {
                    [one] => db::conversation(database, &one.id, raw)?,
                    _ => Vec::new(),
                };
                Ok((headings, messages))
            })
        })?;
        let word = word.to_owned();
        match found {
            (headings, messages) if headings.len() == 1 => {
                let heading = headings.into_iter().next().expect("there is one");
                Ok(Transcript { heading, messages })
            }
            (none, _) if none.is_empty() => Err(Error::NoConversation { word }),
            (candidates, _) => Err(Error::Ambiguous { word, candidates }),
        }
    }

    /// Returns up to `count` messages before a hit and as many after it, in reading order.
    pub fn neighbours(
        &self,
        hit: &Hit,
        count: usize,
        raw: bool,
        stop: &Stop,
    ) -> Result<(Vec<Hit>, Vec<Hit>), Error> {
        let mut before = self.on_database(|path| {
            db::read(path, stop, |database| db::conversation(database, &hit.conversation_id, raw))
        })?;
        let same =
            |other: &Hit| other.message_id == hit.message_id && other.position == hit.position;
        let Some(at) = before.iter().position(same) else { return Ok((Vec::new(), Vec::new())) };
        let mut after = before.split_off(at + 1);
        before.truncate(at);
        before.drain(..at.saturating_sub(count));
        after.truncate(count);
        Ok((before, after))
    }
}
