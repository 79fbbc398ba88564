//! Adds the messages of one transcript to the store, without messages that repeat earlier ones.

use std::path::Path;

use super::report::SyncError;
use crate::{attachments::TranscriptFiles, decisions::Decisions};
use verbatim_base::model::{self, Message};
use verbatim_chats::db::transcripts::{
    ConversationData, TranscriptFile, TranscriptStore, whole_id,
};
use verbatim_chats::import::Format;
use verbatim_chats::import::repeats::{History, conversation_id, is_repeat};
use verbatim_chats::import::results;
use verbatim_chats::import::transcript::{TranscriptEvent, TranscriptReader};

/// The receiver of one transcript's messages, which adds them to the store.
pub(super) struct StoreSink<'a, 's> {
    store: &'a TranscriptStore,
    decisions: &'a Decisions,
    /// Whether the transcript's conversation is left out of the store.
    is_left_out: bool,
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
        StoreSink { store, decisions, is_left_out, files, file, messages: 0, not_kept, last: None }
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
                if !self.is_left_out {
                    self.store.message(&conversation, &message)?;
                    self.messages += 1;
                }
                self.last = message.create_time.or(self.last);
            }
            TranscriptEvent::File { message, name, base64 } => {
                if let Some(conversation) = &self.file.conversation
                    && !self.is_left_out
                {
                    let message = whole_id(conversation, &message);
                    let why_not = self.files.store_file(conversation, &message, &name, base64)?;
                    let line = reader.lines();
                    self.not_kept.extend(why_not.map(|why| {
                        format!("a picture or file of message {line} is not kept: {why}")
                    }));
                }
            }
            TranscriptEvent::More { id, text } => {
                if let Some(conversation) = &self.file.conversation
                    && !self.is_left_out
                {
                    self.store.append(conversation, &id, &text)?;
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
        let id = conversation_id(self, reader, path)?;
        let origin = reader.origin(path);
        let source = reader.format().map_or("", Format::name);
        self.is_left_out = self.decisions.leaves_out(&id, source, &origin);
        if !self.is_left_out {
            let time = first.create_time;
            let data = ConversationData { source, title: None, model: None, time, origin: &origin };
            self.store.conversation(&id, data)?;
        }
        Ok(self.file.conversation.insert(id).clone())
    }
}

impl History for StoreSink<'_, '_> {
    type Error = SyncError;

    fn record(&mut self, fingerprint: u64) -> Result<bool, SyncError> {
        Ok(self.store.record(self.file.id, fingerprint)?)
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
        let mut earlier = self.store.file_of(transcript, id)?;
        if earlier.is_none()
            && let Some(parent) = parent
        {
            earlier = self.store.file_of(parent, id)?;
        }
        let Some(earlier) = earlier else { return Ok(false) };
        Ok(self.store.is_at(id, earlier, place, fingerprint)?)
    }

    fn has_conversation(&self, id: &str) -> Result<bool, SyncError> {
        Ok(self.store.has_conversation(id)?
            || !self.decisions.is_empty() && self.store.has_file_of(id)?)
    }
}
