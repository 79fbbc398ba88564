//! The formats that are read. A new format is a file of its own and a line in [`ALL`].

use memchr::memmem;

use super::{
    chatgpt, claude, claude_code, codex,
    format::{FileLayout, Format, TranscriptFormat},
    json::ObjectFields,
};

/// Every format, in the order in which they are tried.
const ALL: [&Format; 4] = [&chatgpt::FORMAT, &claude::FORMAT, &claude_code::FORMAT, &codex::FORMAT];

pub(super) fn of_conversation(fields: &ObjectFields<'_>) -> Option<&'static Format> {
    ALL.into_iter().find(|format| (format.is_conversation)(fields))
}

/// Returns the format of a conversation that is too damaged to have fields.
pub(super) fn of_damaged(bytes: &[u8]) -> Option<&'static Format> {
    ALL.into_iter().find(|format| {
        messages_of(format)
            .is_some_and(|name| memmem::find(bytes, format!("\"{name}\"").as_bytes()).is_some())
    })
}

/// Returns the names of the fields that hold the messages of conversations.
pub(super) fn message_fields() -> Vec<&'static str> {
    ALL.into_iter().filter_map(messages_of).collect()
}

pub(super) fn of_record(
    fields: &ObjectFields<'_>,
) -> Option<(&'static Format, &'static TranscriptFormat)> {
    let kind = fields.text("type").unwrap_or_default();
    let mut transcripts = ALL.into_iter().filter_map(|format| Some((format, format.transcript()?)));
    transcripts.find(|(_, transcript)| (transcript.is_record)(&kind, fields))
}

pub(super) fn named(name: &str) -> Option<&'static Format> {
    ALL.into_iter().find(|format| format.name == name)
}

fn messages_of(format: &Format) -> Option<&'static str> {
    match &format.layout {
        FileLayout::Object(object) => Some(object.messages),
        FileLayout::Transcript(_) => None,
    }
}
