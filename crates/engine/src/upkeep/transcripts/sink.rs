//! Adds the messages of one transcript to the store, without messages that repeat earlier ones.

use std::path::Path;

use super::{earlier_states, report::SyncError};
use crate::{attachments::TranscriptFiles, decisions::Decisions};
use verbatim_base::model::{self, Message};
use verbatim_chats::db::transcripts::{ConversationData, TranscriptFile, TranscriptStore};
use verbatim_chats::import::Format;
use verbatim_chats::import::repeats::{
    History, MessageHolders, Repetitions, TranscriptConversation, conversation_of, is_repeat,
};
use verbatim_chats::import::results;
use verbatim_chats::import::transcript::{TranscriptEvent, TranscriptReader};

/// The receiver of one transcript's messages, which adds them to the store.
pub(super) struct StoreSink<'a, 's> {
    store: &'a TranscriptStore,
    decisions: &'a Decisions,
    /// Whether the transcript's conversation is left out of the store.
    is_left_out: bool,
    /// The number of lines by which the messages are moved, so that they follow those of the conversation's other
    /// files; `None` before the first message.
    moved: Option<u32>,
    files: &'a mut TranscriptFiles<'s>,
    file: &'a mut TranscriptFile,
    pub(super) messages: u64,
    /// The reasons why attached files are not kept, one sentence each.
    pub(super) not_kept: Vec<String>,
    /// The time of the last message that has a time.
    pub(super) last: Option<model::Instant>,
}

impl<'a, 's> StoreSink<'a, 's> {
    pub(super) fn new(
        store: &'a TranscriptStore,
        decisions: &'a Decisions,
        files: &'a mut TranscriptFiles<'s>,
        file: &'a mut TranscriptFile,
        reader: &TranscriptReader,
    ) -> StoreSink<'a, 's> {
        let is_left_out = file.conversation.as_ref().is_some_and(|id| {
            let service = reader.format().map_or("", Format::name);
            decisions.leaves_out(id, service, &reader.origin(Path::new(&file.path)))
        });
        let not_kept = Vec::new();
        StoreSink {
            store,
            decisions,
            is_left_out,
            moved: None,
            files,
            file,
            messages: 0,
            not_kept,
            last: None,
        }
    }

    /// Adds an event. Returns false if the event is left out.
    pub(super) fn add(
        &mut self,
        reader: &TranscriptReader,
        event: TranscriptEvent,
    ) -> Result<bool, SyncError> {
        match event {
            TranscriptEvent::Message(message) => {
                if is_repeat(self, reader, &message)? {
                    return Ok(false);
                }
                let mut message = message;
                results::complete_beside(&mut message, Path::new(&self.file.path));
                let conversation = self.conversation(reader, &message)?;
                self.last = message.create_time.or(self.last);
                if !self.is_left_out {
                    let moved = match self.moved {
                        Some(moved) => moved,
                        None => moved_by(self.store, &conversation, self.file, &message)?,
                    };
                    self.moved = Some(moved);
                    let line = message.line.map(|line| line.saturating_add(moved));
                    self.store.message(self.file, &Message { line, ..message })?;
                    self.messages += 1;
                }
            }
            TranscriptEvent::File { message, name, base64 } => {
                if let Some(conversation) = &self.file.conversation
                    && !self.is_left_out
                {
                    let message = self.file.whole_id(&message);
                    let why_not = self.files.store_file(conversation, &message, &name, base64)?;
                    let line = reader.lines();
                    self.not_kept.extend(why_not.map(|why| {
                        format!("a picture or file of message {line} is not kept: {why}")
                    }));
                }
            }
            TranscriptEvent::More { id, text } => {
                if self.file.conversation.is_some() && !self.is_left_out {
                    self.store.append(self.file, &id, &text)?;
                }
            }
        }
        Ok(true)
    }

    /// Returns the id of the transcript's conversation. Adds the conversation before its first message.
    fn conversation(
        &mut self,
        reader: &TranscriptReader,
        first: &Message,
    ) -> Result<String, SyncError> {
        if let Some(id) = &self.file.conversation {
            return Ok(id.clone());
        }
        let path = Path::new(&self.file.path);
        let TranscriptConversation { id, is_part } = conversation_of(self, reader, path)?;
        let origin = reader.origin(path);
        let source = reader.format().map_or("", Format::name);
        self.is_left_out = self.decisions.leaves_out(&id, source, &origin);
        self.file.is_part = is_part;
        if is_part {
            self.store.join(&id)?;
        } else if !self.is_left_out {
            let time = first.create_time;
            let data = ConversationData { source, title: None, model: None, time, origin: &origin };
            self.store.conversation(&id, data)?;
        }
        Ok(self.file.conversation.insert(id).clone())
    }
}

/// Returns by how many lines a message of `file` and those after it are moved, so that they follow those that
/// other files have added to the conversation.
pub(super) fn moved_by(
    store: &TranscriptStore,
    conversation: &str,
    file: &TranscriptFile,
    first: &Message,
) -> Result<u32, SyncError> {
    // The store may not know yet that this file has a part of the conversation.
    if store.paths_of(conversation)?.iter().all(|path| *path == file.path) {
        return Ok(0);
    }
    let next = store.last_position(conversation)?.saturating_add(1);
    Ok(next.saturating_sub(first.line.unwrap_or_default()))
}

impl History for StoreSink<'_, '_> {
    type Error = SyncError;
    type File = i64;

    fn known(
        &mut self,
        conversations: [&str; 2],
        fingerprints: [u64; 2],
    ) -> Result<MessageHolders<i64>, SyncError> {
        Ok(self.store.known(self.file.id, conversations, fingerprints)?)
    }

    fn add(&mut self, fingerprints: [u64; 2]) -> Result<(), SyncError> {
        Ok(self.store.record(self.file.id, fingerprints)?)
    }

    fn leave_out(&mut self, file: i64) -> Result<(), SyncError> {
        Ok(self.store.leave_out(self.file.id, file)?)
    }

    fn seen(&mut self) -> &mut Repetitions {
        &mut self.file.seen
    }

    fn record_next(&mut self, transcript: &str, fingerprint: u64) -> Result<u64, SyncError> {
        let place = self.file.unnamed;
        self.file.unnamed += 1;
        self.file.transcript.get_or_insert_with(|| transcript.to_owned());
        self.store.record_at(self.file.id, place, fingerprint)?;
        Ok(place)
    }

    fn has_begun(&self) -> bool {
        self.file.conversation.is_some()
    }

    fn is_at(
        &mut self,
        transcript: &str,
        parent: Option<&str>,
        place: u64,
        fingerprint: u64,
    ) -> Result<bool, SyncError> {
        let id = self.file.id;
        let mut earlier = self.store.files_of(transcript, id)?;
        if earlier.is_empty()
            && let Some(parent) = parent
        {
            earlier = self.store.files_of(parent, id)?;
        }
        for earlier in earlier {
            if self.store.is_at(id, earlier, place, fingerprint)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_conversation(&self, id: &str) -> Result<bool, SyncError> {
        Ok(self.store.has_conversation(id)?
            || !self.decisions.is_empty() && self.store.has_file_of(id)?)
    }

    /// A conversation that is not stored stays so, and an earlier state of the file stays what it is.
    fn may_join(&self, id: &str) -> Result<bool, SyncError> {
        let mut paths = self.store.paths_of(id)?.into_iter();
        Ok(self.store.has_conversation(id)?
            && !paths.any(|path| earlier_states::is_earlier(&path, &self.file.path)))
    }
}
