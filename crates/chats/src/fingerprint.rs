//! Fingerprints of messages in transcripts, by which repeated messages are found.

use verbatim_base::model::{Instant, Message};
use verbatim_text::hash::fnv1a;

/// Returns the fingerprints of a message: as a message with an id, and as one without.
pub(crate) fn fingerprints(message: &Message) -> [u64; 2] {
    let Message { id, role, content, .. } = message;
    let time = message.create_time.map(Instant::to_decimal).unwrap_or_default();
    let text = format!("{id}\0{role}\0{time}\0{content}\0");
    let unnamed = format!("{role}\0{content}\0");
    [text, unnamed].map(|text| fnv1a(text.as_bytes()))
}
