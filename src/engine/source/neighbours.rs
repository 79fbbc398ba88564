//! What stands around a message in its conversation.

use crate::engine::{Engine, Error};
use crate::{
    db,
    model::{Hit, Stop},
};

impl Engine {
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
