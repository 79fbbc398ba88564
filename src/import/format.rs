//! The description of a format, which the other files of this module use. The formats are listed in
//! [`super::formats`].

use std::fmt;

use serde::de::DeserializeOwned;

use super::{
    head::{Head, TranscriptEvent},
    json::{Damage, ObjectFields},
    tally::{Branches, ImportTally, Reason},
};
use crate::model::Conversation;

/// A format of conversations.
#[derive(Debug)]
pub struct Format {
    /// The name of the format in databases.
    pub(super) name: &'static str,
    /// The name of the service or the program, for people.
    pub(super) label: &'static str,
    /// Returns whether a JSON object with these fields is a conversation in this format.
    pub(super) is_conversation: fn(&ObjectFields<'_>) -> bool,
    pub(super) layout: FileLayout,
}

#[derive(Debug)]
pub(super) enum FileLayout {
    /// A conversation is one object.
    Object(ObjectFormat),
    /// A conversation is a list of records: the lines of a file, or the items of one object.
    Transcript(TranscriptFormat),
}

#[derive(Debug)]
pub(super) struct ObjectFormat {
    /// The name of the field with the messages. The scanner recognises a conversation by this name if
    /// the object is too damaged to be parsed.
    pub(super) messages: &'static str,
    /// The name of the field with the list of conversations, where an object is around them.
    pub(super) list: &'static str,
    /// Reads a conversation from the fields of its object.
    pub(super) read:
        fn(&ObjectFields<'_>, Branches, &mut ImportTally) -> Result<Conversation, Reason>,
}

/// A format with a list of records for each conversation.
#[derive(Debug)]
pub(super) struct TranscriptFormat {
    /// Returns whether a record is of this format; the text is the record's `type`.
    pub(super) is_record: fn(&str, &ObjectFields<'_>) -> bool,
    /// The names of the fields that hold records, if the transcript is one object.
    pub(super) records: &'static [&'static str],
    /// Returns the id of the conversation; the text is the name of the file without its suffix.
    pub(super) id: fn(&Head, &str) -> String,
    /// Whether the folder of a file is named after the project.
    pub(super) has_project_folders: bool,
    /// Returns a reader for a new transcript.
    pub(super) reader: fn() -> Box<dyn RecordReader>,
    /// Returns the reader that [`RecordReader::save`] saved; `None` if another version saved it.
    pub(super) restore: fn(&str) -> Option<Box<dyn RecordReader>>,
}

/// Reads the records of one transcript, one after another.
pub(super) trait RecordReader: fmt::Debug {
    /// Reads the record at a line, from 1; returns its events.
    fn record(
        &mut self,
        fields: &ObjectFields<'_>,
        line: u32,
        head: &mut Head,
    ) -> Result<Vec<TranscriptEvent>, Damage>;

    /// Marks the message of this id as a repeat, so that later records add nothing to it.
    fn skip(&mut self, _id: &str) {}

    /// Returns the state as text.
    fn save(&self) -> String;
}

pub(super) fn restore<R: RecordReader + DeserializeOwned + 'static>(
    saved: &str,
) -> Option<Box<dyn RecordReader>> {
    Some(Box::new(serde_json::from_str::<R>(saved).ok()?))
}

impl Format {
    /// Returns the name of the format in databases.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of the service or the agent, as answers and filters have it.
    pub(crate) fn service(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the name of the service or program that writes the format.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// Returns whether the format is that of a coding agent's transcripts.
    pub(crate) fn is_transcript(&self) -> bool {
        self.transcript().is_some()
    }

    /// Returns the description of the transcript, if the format is one of transcripts.
    pub(super) fn transcript(&self) -> Option<&TranscriptFormat> {
        match &self.layout {
            FileLayout::Transcript(transcript) => Some(transcript),
            FileLayout::Object(_) => None,
        }
    }
}
