//! Keeps the files that transcripts hold, while the transcripts are read.

use std::collections::HashMap;

use super::attachment_writer::{AttachmentWriter, LeftOut, MAX_ALL, MAX_FILE};
use super::{attachment::Attachment, store::AttachmentStore};
use crate::error::Result;
use verbatim_base::call::Call;

/// Writer of the files in transcripts into an attachment store.
///
/// Lists are written before the messages are committed, because committed messages are not read again.
/// If the process is killed in between, the messages are read again and give the same lists.
#[derive(Debug)]
pub(crate) struct TranscriptFiles<'a> {
    writer: AttachmentWriter<'a>,
    /// Changed lists of files, by conversation id.
    lists: HashMap<String, Vec<Attachment>>,
}

impl<'a> TranscriptFiles<'a> {
    pub(crate) fn new(store: &'a AttachmentStore, call: &'a Call) -> TranscriptFiles<'a> {
        TranscriptFiles { writer: AttachmentWriter::new(store, call), lists: HashMap::new() }
    }

    /// Stores a file of a message, or returns why the file is not kept. Only a stop is an error, because
    /// the messages are more important than their files.
    pub(crate) fn store_file(
        &mut self,
        conversation: &str,
        message: &str,
        name: &str,
        base64: String,
    ) -> Result<Option<String>> {
        let kept = match self.writer.write_base64(&base64) {
            Ok(kept) => kept,
            Err(LeftOut::Failed(error)) if error.is_stopped() => return Err(error),
            Err(reason) => {
                return Ok(Some(match reason {
                    LeftOut::TooLarge => format!("it has more than {} MB", MAX_FILE / 1_000_000),
                    LeftOut::NoRoom => {
                        format!("all files have more than {} GB", MAX_ALL / 1_000_000_000)
                    }
                    LeftOut::Unreadable(reason) => reason,
                    LeftOut::NoContent(reason) => reason.to_owned(),
                    LeftOut::Failed(error) => error.to_string(),
                }));
            }
        };
        if !self.lists.contains_key(conversation) {
            match self.writer.store.list(conversation) {
                Ok(list) => self.lists.insert(conversation.to_owned(), list),
                Err(error) => return Ok(Some(error.to_string())),
            };
        }
        let list = self.lists.get_mut(conversation).expect("it was added if it was not there");
        let number = list.iter().filter(|it| it.message == message).count() + 1;
        // The list may already name the file, from an earlier version of the transcript.
        if !list.iter().any(|it| it.message == message && it.sha256 == kept.sha256) {
            let file = Attachment { message: message.to_owned(), name: name.to_owned(), ..kept };
            list.push(file.named(number));
        }
        Ok(None)
    }

    pub(crate) fn write(&mut self) -> Result<()> {
        self.writer.write_lists(std::mem::take(&mut self.lists))
    }

    pub(crate) fn forget(&mut self, conversations: &[String]) -> Result<()> {
        self.close()?;
        self.writer.store.forget(conversations, &mut |_| self.writer.wait()).map(drop)
    }

    /// Writes the lists, and unlocks the store.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.write()?;
        self.writer.close(true)
    }
}
