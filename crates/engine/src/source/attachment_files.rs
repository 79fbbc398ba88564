//! The files of messages, of imports and of transcripts alike.

use std::fs::File;

use super::kind::SourceKind;
use crate::attachments::{Attachment, AttachmentStore};
use crate::{config::Config, error::Result};

/// The files of messages that imports and transcripts kept.
pub struct AttachmentFiles {
    imported: AttachmentStore,
    of_transcripts: AttachmentStore,
}

impl AttachmentFiles {
    /// Returns access to the files in the home folder. Opens nothing.
    pub fn from_config(config: &Config) -> AttachmentFiles {
        let imported = AttachmentStore::from_config(config);
        AttachmentFiles { imported, of_transcripts: AttachmentStore::of_transcripts(config) }
    }

    /// Returns the files of a conversation's messages. [`Attachment::is_of`] says which are of a
    /// message.
    pub fn list(&self, source: SourceKind, conversation: &str) -> Result<Vec<Attachment>> {
        match source {
            SourceKind::Export => self.imported.list(conversation),
            SourceKind::Archive => self.of_transcripts.list(conversation),
            SourceKind::Threads => Ok(Vec::new()),
        }
    }

    /// Returns whether the copy of a file is there.
    pub fn has(&self, file: &Attachment) -> bool {
        self.imported.has(file) || self.of_transcripts.has(file)
    }

    /// Opens the copy of a file for reading. Fails if there is no copy.
    pub fn open(&self, file: &Attachment) -> Result<File> {
        // Files with the same hash have the same content, so either store will do.
        let transcripts = &self.of_transcripts;
        if transcripts.has(file) { transcripts.open(file) } else { self.imported.open(file) }
    }
}
