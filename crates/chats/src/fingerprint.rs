//! Fingerprints of messages in transcripts, by which repeated messages are found.

use verbatim_base::model::{Instant, Message};
use verbatim_text::hash::fnv1a;

/// The fingerprints of a message.
pub(crate) struct Fingerprints {
    /// As a message with an id.
    pub(crate) named: u64,
    /// As a message without an id.
    pub(crate) unnamed: u64,
    /// As a message that was said at a time, whatever its id; `None` if it has no time.
    pub(crate) timed: Option<u64>,
}

impl Fingerprints {
    pub(crate) fn of(message: &Message) -> Fingerprints {
        let Message { id, role, content, .. } = message;
        let time = message.create_time.map(Instant::to_decimal).unwrap_or_default();
        Fingerprints {
            named: fnv1a(format!("{id}\0{role}\0{time}\0{content}\0").as_bytes()),
            unnamed: fnv1a(format!("{role}\0{content}\0").as_bytes()),
            timed: (!time.is_empty())
                .then(|| fnv1a(format!("\0{role}\0{time}\0{content}\0").as_bytes())),
        }
    }
}
