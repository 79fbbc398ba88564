//! The rule by which repeated messages of transcripts are left out.
//!
//! The transcript of a resumed or forked session may repeat all earlier messages. A message is read
//! once, however many lines, records or files hold it:
//!
//! - A message with an id of its own repeats another if the id, the role, the time and the text are
//!   the same. Only the text of the record that the message begins with counts, not the text that
//!   later records add.
//! - A message without an id can be a repeat only at the beginning of a transcript, before the first
//!   new message. It must have the role and the text of the message at the same place of an earlier
//!   transcript: one of the same session, or else of the session that the transcript names as its
//!   parent. Places count the messages without ids, repeated ones too.
//!
//! A transcript can only repeat a transcript that was read before. So transcripts are read in their
//! [`ReadingOrder`].
//!
//! `verbatim import` and the transcript store both apply this rule, to a [`History`] of their own.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use memchr::memmem;

use super::{compressed, fields::derived_hash, transcript::TranscriptReader};
use crate::model::{Instant, Message};

/// Bytes of a transcript in which its first time is looked for.
const START: u64 = 64 << 10;

/// The messages of this transcript and of all transcripts read before.
pub trait History {
    /// The error of a failed look-up.
    type Error;

    /// Records a message with an id by its fingerprint; returns whether it is new.
    fn record(&mut self, fingerprint: u64) -> Result<bool, Self::Error>;

    /// Records the next message without an id of this transcript; returns its place, from 0.
    fn record_next(&mut self, transcript: &str, fingerprint: u64) -> Result<u64, Self::Error>;

    /// Returns whether this transcript has already had a new message.
    fn has_begun(&self) -> bool;

    /// Returns whether an earlier transcript has this message without an id at the same place. The
    /// earlier transcript has the id `transcript`, or else the id `parent`.
    fn is_at(
        &mut self,
        transcript: &str,
        parent: Option<&str>,
        place: u64,
        fingerprint: u64,
    ) -> Result<bool, Self::Error>;

    /// Returns whether there is a conversation of an id.
    fn has_conversation(&self, id: &str) -> Result<bool, Self::Error>;
}

/// Records a message; returns whether it repeats an earlier one.
pub fn is_repeat<H: History>(
    history: &mut H,
    reader: &TranscriptReader,
    message: &Message,
) -> Result<bool, H::Error> {
    let Message { id, role, content, .. } = message;
    if !id.starts_with('/') {
        let time = message.create_time.map(Instant::to_decimal).unwrap_or_default();
        return Ok(!history.record(derived_hash(&[id, role, &time, content]))?);
    }
    let transcript = reader.id();
    let fingerprint = derived_hash(&[role, content]);
    let place = history.record_next(&transcript, fingerprint)?;
    Ok(!history.has_begun() && history.is_at(&transcript, reader.parent(), place, fingerprint)?)
}

/// Returns an id for the conversation of a transcript that no other conversation has.
///
/// The file's name makes the id unique if possible, so that it does not depend on the other files.
pub fn conversation_id<H: History>(
    history: &H,
    reader: &TranscriptReader,
    file: &Path,
) -> Result<String, H::Error> {
    let id = reader.id();
    if !history.has_conversation(&id)? {
        return Ok(id);
    }
    let named = format!("{id}/{}", compressed::stem(file));
    let mut unique = named.clone();
    let mut number = 1;
    while history.has_conversation(&unique)? {
        number += 1;
        unique = format!("{named}#{number}");
    }
    Ok(unique)
}

/// The order in which transcripts are read: by their first time. If two begin with the same record,
/// the longer one repeats the shorter one, so it comes later.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadingOrder {
    has_no_time: bool,
    time: String,
    size: u64,
    path: PathBuf,
}

impl ReadingOrder {
    /// Returns the place of the transcript at `path`, which holds `content` in `size` bytes.
    pub fn of(path: &Path, size: u64, content: Option<impl Read>) -> ReadingOrder {
        let time = content.and_then(first_time);
        let has_no_time = time.is_none();
        ReadingOrder { has_no_time, time: time.unwrap_or_default(), size, path: path.to_owned() }
    }
}

/// Returns the first time in a transcript, as it is written there.
fn first_time(content: impl Read) -> Option<String> {
    let mut start = Vec::new();
    content.take(START).read_to_end(&mut start).ok()?;
    let name: &[u8] = b"\"timestamp\":";
    let after = memmem::find(&start, name)? + name.len();
    let value = start[after..].trim_ascii_start().strip_prefix(b"\"")?;
    let end = value.iter().take(40).position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}
