//! A file that belongs to a message.

use serde::{Deserialize, Serialize};

/// A file of a message, as an entry in the list of its conversation's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The message's id in the export, with a number added if the conversation has the id twice.
    pub(super) message: String,
    /// The file's id in the export; empty for a text that is part of the message.
    pub(super) id: String,
    /// The file's name in the export, or a generated name.
    pub name: String,
    /// Media type, detected from the content: `image/png`, `text/plain`.
    #[serde(rename = "type")]
    pub media_type: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    pub(super) sha256: String,
}

/// Key of a file in its list: the message, the id, and for a text also its name and its hash.
pub(super) type ListKey = [String; 4];

impl Attachment {
    /// Returns the SHA-256 of the content, which is also the name of the stored file.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    pub(super) fn key(&self) -> ListKey {
        // Several texts of a message may have one name.
        let own = if self.id.is_empty() { [&*self.name, &*self.sha256] } else { [""; 2] };
        [&*self.message, &*self.id, own[0], own[1]].map(str::to_owned)
    }

    /// Returns whether the file belongs to the message with this id in a conversation of the export.
    pub fn is_of(&self, conversation: &str, message: &str) -> bool {
        // Where two conversations have the same message id, the database puts the conversation's id
        // before it.
        let own = message.strip_prefix(conversation).and_then(|rest| rest.strip_prefix('/'));
        message == self.message || own == Some(&self.message)
    }

    /// Returns the file name extension of the media type.
    pub fn extension(&self) -> &'static str {
        match self.media_type.as_str() {
            "image/png" => "png",
            "image/jpeg" => "jpg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            "audio/wav" => "wav",
            "audio/mpeg" => "mp3",
            "audio/ogg" => "ogg",
            "audio/mp4" => "m4a",
            "video/mp4" => "mp4",
            "application/pdf" => "pdf",
            "application/zip" => "zip",
            "text/plain" => "txt",
            _ => "bin",
        }
    }

    /// Gives a file a name if it has none; `number` is its number in its message, from 1.
    pub(super) fn named(mut self, number: usize) -> Attachment {
        if self.name.is_empty() {
            let kind = self.media_type.split('/').next().filter(|kind| *kind != "application");
            self.name = format!("{}-{number}.{}", kind.unwrap_or("file"), self.extension());
        }
        self
    }
}
