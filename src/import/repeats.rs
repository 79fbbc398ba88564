//! The rule by which repeated messages of transcripts are left out, and the conversations of an
//! import that it is applied to.
//!
//! A session that is resumed or forked may write down again all messages that came before. A message
//! is told once, however many lines, records or files hold it:
//!
//! - A message with an id of its own repeats another if the id, the role, the time and the text are
//!   the same. The text is the one that the message begins with: what later lines add to it does
//!   not count.
//! - A message without an id repeats another only at the beginning of a transcript, before the
//!   transcript tells anything new. It must have the role and the text of the message at the same
//!   place of an earlier transcript: of the same session, or else of the session that the
//!   transcript names as its parent. Places count the messages without ids, repeated ones too.
//!
//! A transcript can repeat only what was read before it. So transcripts are read in their
//! [`ReadingOrder`].
//!
//! `verbatim import` and the transcript store both apply this rule, to a [`History`] of their own.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    io::Read,
    path::{Path, PathBuf},
};

use memchr::memmem;

use super::{
    compressed,
    fields::derived_hash,
    transcript::{Event, Reader},
};
use crate::model::{Conversation, Instant, Message};

/// Bytes of a transcript in which its first time is looked for.
const START: u64 = 64 << 10;

/// The messages that this transcript and those before it hold.
pub trait History {
    /// What can go wrong with looking something up.
    type Error;

    /// Records a message with an id by its fingerprint; returns whether it is new.
    fn record(&mut self, fingerprint: u64) -> Result<bool, Self::Error>;

    /// Records the next message without an id of this transcript; returns its place, from 0.
    fn record_next(&mut self, transcript: &str, fingerprint: u64) -> Result<u64, Self::Error>;

    /// Returns whether this transcript has told anything new yet.
    fn has_begun(&self) -> bool;

    /// Returns whether an earlier transcript has this message without an id at a place. The
    /// transcript is one of the id `transcript`, or else one of the id `parent`.
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

/// Records a message, and returns whether it repeats one that was told before.
pub fn is_repeat<H: History>(
    history: &mut H,
    reader: &Reader,
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
    reader: &Reader,
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

/// The order in which transcripts are read: by the first time that they name. Of two transcripts that
/// begin alike the longer one repeats the shorter one, so it comes later.
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

/// Returns the first time that a transcript names, as it is written there.
fn first_time(content: impl Read) -> Option<String> {
    let mut start = Vec::new();
    content.take(START).read_to_end(&mut start).ok()?;
    let name: &[u8] = b"\"timestamp\":";
    let after = memmem::find(&start, name)? + name.len();
    let value = start[after..].trim_ascii_start().strip_prefix(b"\"")?;
    let end = value.iter().take(40).position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}

/// The messages that the transcripts of an import hold.
#[derive(Clone, Debug, Default)]
pub(super) struct ImportHistory {
    /// Fingerprints of messages with ids.
    fingerprints: HashSet<u64>,
    /// Fingerprints of the messages without ids, by the id of the transcript; of several transcripts
    /// with one id, those of the first.
    sequences: HashMap<String, Vec<u64>>,
    conversations: HashSet<String>,
}

/// Builds the conversation of one transcript.
#[derive(Debug)]
pub(super) struct ConversationBuilder<'a> {
    history: &'a mut ImportHistory,
    file: &'a Path,
    /// The conversation's id, once a message has been taken.
    id: Option<String>,
    messages: Vec<Message>,
    /// Places in `messages`, by the ids that the transcript gives.
    by_id: HashMap<String, usize>,
    /// Fingerprints of the messages without ids.
    sequence: Vec<u64>,
}

impl<'a> ConversationBuilder<'a> {
    pub(super) fn new(history: &'a mut ImportHistory, file: &'a Path) -> ConversationBuilder<'a> {
        let (id, messages, by_id, sequence) = Default::default();
        ConversationBuilder { history, file, id, messages, by_id, sequence }
    }

    /// Adds what a line says; returns whether it was taken.
    pub(super) fn add(&mut self, reader: &Reader, event: Event) -> bool {
        match event {
            Event::Message(mut message) => {
                let Ok(is_repeat) = is_repeat(self, reader, &message);
                if is_repeat {
                    return false;
                }
                self.by_id.insert(message.id.clone(), self.messages.len());
                if self.id.is_none() {
                    let Ok(id) = conversation_id(self, reader, self.file);
                    self.id = Some(id);
                }
                if let (true, Some(id)) = (message.id.starts_with('/'), &self.id) {
                    message.id.insert_str(0, id);
                }
                self.messages.push(message);
            }
            Event::More { id, text } => {
                if let Some(at) = self.by_id.get(&id) {
                    self.messages[*at].content.push_str(&text);
                }
            }
        }
        true
    }

    /// Returns the conversation; `None` if the transcript told nothing new.
    pub(super) fn build(self, reader: &Reader) -> Option<Conversation> {
        let ConversationBuilder { history, file, id, messages, sequence, .. } = self;
        if !sequence.is_empty() {
            history.sequences.entry(reader.id()).or_insert(sequence);
        }
        let id = id?;
        history.conversations.insert(id.clone());
        let mut times = messages.iter().filter_map(|message| message.create_time);
        let first = times.next();
        let last = times.next_back().or(first);
        Some(Conversation {
            id,
            title: reader.title().map(str::to_owned),
            create_time: first,
            update_time: last,
            model: reader.model().map(str::to_owned),
            origin: Some(reader.origin(file)),
            messages,
            ..Conversation::default()
        })
    }
}

impl History for ConversationBuilder<'_> {
    type Error = Infallible;

    fn record(&mut self, fingerprint: u64) -> Result<bool, Infallible> {
        Ok(self.history.fingerprints.insert(fingerprint))
    }

    fn record_next(&mut self, _transcript: &str, fingerprint: u64) -> Result<u64, Infallible> {
        self.sequence.push(fingerprint);
        Ok(self.sequence.len() as u64 - 1)
    }

    fn has_begun(&self) -> bool {
        self.id.is_some()
    }

    fn is_at(
        &mut self,
        transcript: &str,
        parent: Option<&str>,
        place: u64,
        fingerprint: u64,
    ) -> Result<bool, Infallible> {
        let sequences = &self.history.sequences;
        let same = sequences.get(transcript);
        let earlier = same.or_else(|| parent.and_then(|parent| sequences.get(parent)));
        Ok(earlier.and_then(|it| it.get(place as usize)) == Some(&fingerprint))
    }

    fn has_conversation(&self, id: &str) -> Result<bool, Infallible> {
        Ok(self.history.conversations.contains(id))
    }
}
