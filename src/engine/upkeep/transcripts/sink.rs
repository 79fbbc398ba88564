//! Takes what a transcript says into the store, unless that has it already.

use std::path::Path;

use super::Error;
use crate::{
    db::transcripts::{About, TranscriptFile, TranscriptStore},
    import::transcript::{Event, Reader},
    model::{self, Message},
};

/// Takes the pieces of one file.
pub(crate) struct Sink<'a> {
    pub(crate) store: &'a TranscriptStore,
    pub(crate) file: &'a mut TranscriptFile,
    pub(crate) messages: u64,
    /// The time of the last message that has one.
    pub(crate) last: Option<model::Instant>,
}

impl Sink<'_> {
    pub(crate) fn add(&mut self, reader: &Reader, piece: Event) -> Result<bool, Error> {
        let message = match piece {
            Event::Message(message) => message,
            Event::More { id, text } => {
                if let Some(conversation) = &self.file.conversation {
                    self.store.more(conversation, &id, &text)?;
                }
                return Ok(true);
            }
        };
        if self.is_told(reader, &message)? {
            return Ok(false);
        }
        let conversation = match &self.file.conversation {
            Some(conversation) => conversation,
            None => {
                let conversation = self.own_id(reader)?;
                let origin = reader.origin(Path::new(&self.file.path));
                let kind = reader.kind().map_or("", |kind| kind.name());
                let time = message.create_time;
                let about = About { source: kind, title: None, model: None, time, origin: &origin };
                self.store.conversation(&conversation, about)?;
                self.file.conversation.insert(conversation)
            }
        };
        self.store.message(conversation, &message)?;
        self.messages += 1;
        self.last = message.create_time.or(self.last);
        Ok(true)
    }

    /// Returns whether a message was told before, by this file or another.
    fn is_told(&mut self, reader: &Reader, message: &Message) -> Result<bool, Error> {
        if !message.id.starts_with('/') {
            let holder = self.store.holder(message)?;
            if let Some(holder) = &holder
                && self.file.conversation.as_ref() != Some(holder)
            {
                self.store.note_repeat(self.file.id, holder)?;
            }
            return Ok(holder.is_some());
        }
        if self.file.conversation.is_some() {
            return Ok(false);
        }
        // Without ids only a beginning can be known to be another's.
        if self.file.parent.is_none() {
            let id = reader.id();
            let parent = match self.store.has(&id)? {
                true => Some(id),
                false => reader.parent().map(str::to_owned),
            };
            let Some(parent) = parent else { return Ok(false) };
            self.file.parent = Some(parent);
            self.file.repeated = Some(0);
        }
        let (Some(parent), Some(place)) = (&self.file.parent, self.file.repeated) else {
            return Ok(false);
        };
        if !self.store.is_at(parent, place, message)? {
            self.file.repeated = None;
            return Ok(false);
        }
        self.store.note_repeat(self.file.id, parent)?;
        self.file.repeated = Some(place + 1);
        Ok(true)
    }

    /// Returns an id for the file's conversation that no other one has.
    fn own_id(&self, reader: &Reader) -> Result<String, Error> {
        let id = reader.id();
        if !self.store.has(&id)? {
            return Ok(id);
        }
        // The same whenever the files are read: by the file's name, and only then by a number.
        let stem = Path::new(&self.file.path).file_stem().unwrap_or_default().to_string_lossy();
        let mut other = format!("{id}/{stem}");
        let mut number = 1;
        while self.store.has(&other)? {
            number += 1;
            other = format!("{id}/{stem}#{number}");
        }
        Ok(other)
    }
}
