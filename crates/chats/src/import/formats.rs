//! The list of all formats. A new format needs its own file and a line in [`ALL`].

use memchr::memmem;

use super::format::{FileLayout, Format, ObjectFormat, TranscriptFormat};
use super::json::ObjectFields;
use super::scan::FieldNames;
use super::tally::Reason;
use super::{chatgpt, claude, claude_code, codex, foreign};

/// Every format, in the order in which they are tried.
pub const ALL: [&Format; 4] = [
    &chatgpt::SOURCE_FORMAT,
    &claude::SOURCE_FORMAT,
    &claude_code::SOURCE_FORMAT,
    &codex::SOURCE_FORMAT,
];

pub(super) fn of_conversation(fields: &ObjectFields<'_>) -> Option<&'static Format> {
    ALL.into_iter().find(|format| (format.is_conversation)(fields))
}

/// Returns the format of a conversation that is too damaged to be parsed.
pub(super) fn detect_damaged(bytes: &[u8]) -> Option<&'static Format> {
    let found = objects().find(|(_, object)| {
        let has_marks = has_name(bytes, object.messages)
            || object.marks.iter().any(|names| names.iter().all(|name| has_name(bytes, name)));
        has_marks && !object.foreign.iter().any(|name| has_name(bytes, name))
    });
    found.map(|(format, _)| format)
}

/// Returns whether some bytes have the name of a field with the messages of a conversation.
pub(super) fn may_have_conversation(bytes: &[u8]) -> bool {
    objects().any(|(_, object)| has_name(bytes, object.messages))
}

fn has_name(bytes: &[u8], name: &str) -> bool {
    memmem::find(bytes, format!("\"{name}\"").as_bytes()).is_some()
}

pub(super) fn field_names() -> FieldNames {
    let lists = objects().map(|(_, object)| object.list).collect();
    FieldNames { messages: objects().map(|(_, object)| object.messages).collect(), lists }
}

pub(super) fn unknown_format() -> Reason {
    let names: Vec<String> =
        objects().map(|(_, object)| format!("`{}`", object.messages)).collect();
    Reason::Unknown(names.join(" nor "))
}

pub(super) fn searched_formats() -> String {
    let (transcripts, chats): (Vec<_>, Vec<_>) = ALL.into_iter().partition(|it| it.is_transcript());
    let [chats, transcripts] = [chats, transcripts]
        .map(|formats| formats.iter().map(|format| format.label).collect::<Vec<_>>().join(" and "));
    format!(
        "looked for conversations of {chats} in .json files, and for transcripts of {transcripts} in .jsonl files"
    )
}

pub(super) fn detect_record(
    fields: &ObjectFields<'_>,
) -> Option<(&'static Format, &'static TranscriptFormat)> {
    let kind = fields.text("type").unwrap_or_default();
    let mut transcripts = ALL.into_iter().filter_map(|format| Some((format, format.transcript()?)));
    transcripts.find(|(_, transcript)| (transcript.is_record)(&kind, fields))
}

/// Describes an object that is not a readable conversation, but a known part of an export.
pub(super) fn describe_known_part(fields: &ObjectFields<'_>) -> Option<String> {
    if fields.get("chats").and_then(|it| it.items().ok()).is_some_and(|it| !it.is_empty()) {
        Some("a list of chats, such as group chats of ChatGPT, which is not read yet".to_owned())
    } else if ["title", "content", "type", "created_at"].iter().all(|name| fields.has(name)) {
        Some("documents of ChatGPT's canvas, as they are now".to_owned())
    } else if fields.has("rating")
        && fields.has("message_id")
        && !fields.text("text").unwrap_or_default().is_empty()
    {
        Some("comments on ChatGPT's answers".to_owned())
    } else {
        listed_downloads(fields).or_else(|| foreign::describe_object(fields))
    }
}

/// Describes a file that lists the downloads of an export, and names the downloads with the chats.
fn listed_downloads(fields: &ObjectFields<'_>) -> Option<String> {
    let list = fields.get("data_files").or_else(|| fields.get("files"))?.value().ok()?;
    let mut names: Vec<&str> = Vec::new();
    for item in list.items() {
        let zips = [item.str("filename"), item.str("name")];
        let Some(name) = zips.into_iter().find(|name| name.ends_with(".zip")) else { continue };
        if item.str("category").contains("conversation") || name.contains("conversation") {
            names.push(name);
        }
    }
    names.dedup();
    let first = names.first()?;
    let more = match names.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "a file that only lists the downloads of an export; the chats are in {first}{more}"
    ))
}

pub(super) fn find_by_name(name: &str) -> Option<&'static Format> {
    ALL.into_iter().find(|format| format.name == name)
}

/// Returns the formats in which a conversation is one object.
fn objects() -> impl Iterator<Item = (&'static Format, &'static ObjectFormat)> {
    ALL.into_iter().filter_map(|format| match &format.layout {
        FileLayout::Object(object) => Some((format, object)),
        FileLayout::Transcript(_) => None,
    })
}
