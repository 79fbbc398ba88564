//! The rule for leaving out repeated messages of transcripts.
//!
//! The transcript of a resumed or forked session may repeat all earlier messages, a stream may repeat its own, and
//! a transcript may be in several folders. Each message is read only once, even if several lines, records or files
//! contain it:
//!
//! - A message with an id is a repeat of another message if the id, the role, the time and the text are the
//!   same. Only the text of the message's first record counts, not the text that later records add. In one
//!   session, and between a fork and the session that it names, the id may differ; for results of tools, of which
//!   two may be equal, only once the transcript has repeated a prompt or an answer.
//! - A transcript that begins with a prompt or an answer of its own is no copy. What it has in common with other
//!   sessions, such as a prompt to several, is read in each of them.
//! - A message without an id can be a repeat only at the beginning of a transcript, before the first new
//!   message. Its role and text must equal those of the message at the same place in an earlier transcript: a
//!   transcript of the same session, or else of the parent session that the transcript names. A place is a
//!   number among the messages without ids, including repeats.
//!
//! Several files of one session are one conversation: a further file adds the messages that the others lack.
//!
//! A transcript can only repeat a transcript that was read before. So transcripts are read in their
//! [`ReadingOrder`].
//!
//! `verbatim import` and the transcript store both apply this rule. Each has its own [`History`].

use std::io::Read;
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::{compressed, transcript::TranscriptReader};
use crate::fingerprint::Fingerprints;
use verbatim_base::model::Message;

/// The number of bytes at the beginning of a transcript that are searched for its first time.
const START: u64 = 64 << 10;

/// A history of the messages of this transcript and of all transcripts read before.
pub trait History {
    /// The error of a failed look-up.
    type Error;
    /// What names a file of a transcript.
    type File: Copy;

    /// Looks up the fingerprints of a message with an id, of which the second is that with its time.
    /// `conversations` are those of the transcript and of its parent.
    fn known(
        &mut self,
        conversations: [&str; 2],
        fingerprints: [u64; 2],
    ) -> Result<MessageHolders<Self::File>, Self::Error>;

    /// Records the fingerprints of a message that this transcript has.
    fn add(&mut self, fingerprints: [u64; 2]) -> Result<(), Self::Error>;

    /// Records that this transcript leaves out a message that a file has.
    fn leave_out(&mut self, file: Self::File) -> Result<(), Self::Error>;

    /// What is known of the transcript so far.
    fn seen(&mut self) -> &mut Repetitions;

    /// Records the next message without an id of this transcript; returns its place, from 0.
    fn record_next(&mut self, transcript: &str, fingerprint: u64) -> Result<u64, Self::Error>;

    /// Returns whether this transcript has already had a new message.
    fn has_begun(&self) -> bool;

    /// Returns whether an earlier transcript has this message without an id at the same place. The earlier
    /// transcript is one with the id `transcript`, or else with the id `parent`.
    fn is_at(
        &mut self,
        transcript: &str,
        parent: Option<&str>,
        place: u64,
        fingerprint: u64,
    ) -> Result<bool, Self::Error>;

    /// Returns whether a conversation already uses this id.
    fn has_conversation(&self, id: &str) -> Result<bool, Self::Error>;

    /// Returns whether this transcript may add messages to the conversation with this id.
    fn may_join(&self, id: &str) -> Result<bool, Self::Error>;
}

/// The files that have a message already.
#[derive(Clone, Copy, Debug)]
pub struct MessageHolders<F> {
    /// A file of the session, or of its parent, that has the message with any id.
    pub timed: Option<F>,
    /// A file of the session, or of its parent, that has the message with its id.
    pub in_session: Option<F>,
    /// Any file that has the message with its id.
    pub anywhere: Option<F>,
}

/// What is known of a transcript's repetitions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repetitions {
    /// Whether the transcript may repeat other sessions; `None` before its first prompt or answer.
    pub is_copy: Option<bool>,
    /// Whether the transcript has repeated a prompt or an answer of its session.
    pub repeats_session: bool,
}

/// Records a message; returns whether it repeats an earlier one.
pub fn is_repeat<H: History>(
    history: &mut H,
    reader: &TranscriptReader,
    message: &Message,
) -> Result<bool, H::Error> {
    let Fingerprints { named, unnamed, timed } = Fingerprints::of(message);
    let transcript = reader.id();
    if !message.id.starts_with('/') {
        let conversations = [&*transcript, reader.parent().unwrap_or(&transcript)];
        let fingerprints = [named, timed.unwrap_or(named)];
        let known = history.known(conversations, fingerprints)?;
        let is_said = matches!(&*message.role, "user" | "assistant");
        let seen = history.seen();
        let timed = known.timed.filter(|_| timed.is_some() && (is_said || seen.repeats_session));
        let is_copy = reader.parent().is_some() || seen.is_copy.unwrap_or(true);
        let holder = timed.or(known.in_session).or(known.anywhere.filter(|_| is_copy));
        seen.repeats_session |= timed.is_some();
        if is_said {
            seen.is_copy.get_or_insert(holder.is_some());
        }
        match holder {
            Some(file) => history.leave_out(file)?,
            None => history.add(fingerprints)?,
        }
        return Ok(holder.is_some());
    }
    let place = history.record_next(&transcript, unnamed)?;
    Ok(!history.has_begun() && history.is_at(&transcript, reader.parent(), place, unnamed)?)
}

/// The conversation of a transcript.
pub struct TranscriptConversation {
    /// The id of the conversation.
    pub id: String,
    /// Whether another file of the session began the conversation.
    pub is_part: bool,
}

/// Returns the conversation of a transcript: that of its session, or else one with a unique id.
///
/// Uses the file's name to make the id unique if possible, so that the id does not depend on other files.
pub fn conversation_of<H: History>(
    history: &H,
    reader: &TranscriptReader,
    file: &Path,
) -> Result<TranscriptConversation, H::Error> {
    let id = reader.id();
    let is_part = history.has_conversation(&id)?;
    if !is_part || reader.names_session() && history.may_join(&id)? {
        return Ok(TranscriptConversation { id, is_part });
    }
    let named = format!("{id}/{}", compressed::stem(file));
    let mut unique = named.clone();
    let mut number = 1;
    while history.has_conversation(&unique)? {
        number += 1;
        unique = format!("{named}#{number}");
    }
    Ok(TranscriptConversation { id: unique, is_part: false })
}

/// A sort key for the order of reading transcripts: by their first time, then forks after their origins,
/// then by size. If two transcripts begin with the same record, the longer one repeats the shorter one, so it
/// must come later. A fork may be shorter than the session that it repeats, but it names that session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadingOrder {
    has_no_time: bool,
    time: String,
    is_fork: bool,
    size: u64,
    path: PathBuf,
}

impl ReadingOrder {
    /// Returns the sort key of the transcript at `path`. `size` is the length of the file in bytes.
    pub fn new(path: &Path, size: u64, content: Option<impl Read>) -> ReadingOrder {
        let mut start = Vec::new();
        // If reading fails, the key is made from the bytes before the failure.
        content.map(|content| content.take(START).read_to_end(&mut start));
        let time = first_time(&start);
        let is_fork = FORK_FIELDS.into_iter().any(|name| {
            first_value(&start, name)
                .is_some_and(|it| !it.starts_with(b"null") && !it.starts_with(b"false"))
        });
        ReadingOrder {
            has_no_time: time.is_none(),
            time: time.unwrap_or_default(),
            is_fork,
            size,
            path: path.to_owned(),
        }
    }
}

/// The fields with which Claude Code and Codex name the session that a fork continues, or mark an agent, whose
/// transcript may begin with the messages of its session.
const FORK_FIELDS: [&str; 4] = ["forkedFrom", "forked_from_id", "history_base", "isSidechain"];

/// Returns the first time in the beginning of a transcript as text.
fn first_time(start: &[u8]) -> Option<String> {
    let value = first_value(start, "timestamp")?.strip_prefix(b"\"")?;
    let end = value.iter().take(40).position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}

/// Returns the text from the value of the first field with a name on.
fn first_value<'a>(start: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = format!("\"{name}\":");
    let after = memmem::find(start, name.as_bytes())? + name.len();
    Some(start[after..].trim_ascii_start())
}
