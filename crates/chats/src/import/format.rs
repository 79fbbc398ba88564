//! The types that describe a format. [`super::formats`] lists all formats.

use std::fmt;

use serde::de::DeserializeOwned;

use super::head::{Head, TranscriptEvent};
use super::json::{Damage, ObjectFields};
use super::tally::{Branches, ImportTally, Reason};
use verbatim_base::model::{Conversation, Message};

/// A format of conversations.
#[derive(Debug)]
pub struct Format {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// Returns whether a JSON object with these fields is a conversation in this format.
    pub(super) is_conversation: fn(&ObjectFields<'_>) -> bool,
    pub(super) layout: FileLayout,
}

#[derive(Debug)]
pub(super) enum FileLayout {
    Object(ObjectFormat),
    /// A conversation is a list of records: the lines of a file, or the items of one object.
    Transcript(TranscriptFormat),
}

#[derive(Debug)]
pub(super) struct ObjectFormat {
    /// The name of the field with the messages. By this name, the scanner recognises a conversation that is
    /// too damaged to be parsed.
    pub(super) messages: &'static str,
    /// Groups of names of fields. A value that is too damaged to be parsed is recognised if it has all names of
    /// a group.
    pub(super) marks: &'static [&'static [&'static str]],
    /// Names of fields that only conversations of another service have. A value that is too damaged to be parsed
    /// is not recognised if it has one of them.
    pub(super) foreign: &'static [&'static str],
    /// The name of the field with the list of conversations, if an object contains the list.
    pub(super) list: &'static str,
    /// Reads a conversation from the fields of its object; `None` if the object is a part of the export in
    /// which nothing is said.
    pub(super) read:
        fn(&ObjectFields<'_>, Branches, &mut ImportTally) -> Result<Option<Conversation>, Reason>,
}

#[derive(Debug)]
pub(super) struct TranscriptFormat {
    /// Returns whether a record has this format. The text argument is the record's `type`.
    pub(super) is_record: fn(&str, &ObjectFields<'_>) -> bool,
    /// The names of the fields that hold records, if the transcript is one object.
    pub(super) records: &'static [&'static str],
    /// Returns the id of the conversation. The text argument is the file's name without its suffix.
    pub(super) id: fn(&Head, &str) -> String,
    /// Whether the folder of a file is named after the project.
    pub(super) has_project_folders: bool,
    pub(super) reader: fn() -> Box<dyn RecordReader>,
    /// Restores a reader from the text of [`RecordReader::save`]; `None` if another version wrote the text.
    pub(super) restore: fn(&str) -> Option<Box<dyn RecordReader>>,
}

/// A reader of one transcript, record by record.
pub(super) trait RecordReader: fmt::Debug {
    /// Reads a record and returns its events. Lines are numbered from 1.
    fn record(
        &mut self,
        fields: &ObjectFields<'_>,
        line: u32,
        head: &mut Head,
    ) -> Result<Vec<TranscriptEvent>, Damage>;

    /// Marks the message with this id as a repeat, so that later records add nothing to the message.
    fn skip(&mut self, _id: &str) {}

    /// Returns the messages that come at the end if the transcript has no more records, such as a prompt that
    /// waits. Their ids end with `#end`. `lines` is the number of lines so far.
    fn at_end(&self, head: &Head, lines: u32) -> Vec<Message>;

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

    /// Returns the name of the service or the agent, as used in answers and filters.
    pub fn service(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the name of the service or program that writes the format.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// Returns whether this is a format of a coding agent's transcripts.
    pub fn is_transcript(&self) -> bool {
        self.transcript().is_some()
    }

    /// Returns the description of the transcripts; `None` for a format without transcripts.
    pub(super) fn transcript(&self) -> Option<&TranscriptFormat> {
        match &self.layout {
            FileLayout::Transcript(transcript) => Some(transcript),
            FileLayout::Object(_) => None,
        }
    }
}
