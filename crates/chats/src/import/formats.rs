//! The list of all formats. A new format needs its own file and a line in [`ALL`].

use memchr::memmem;

use super::{
    chatgpt, claude, claude_code, codex, foreign,
    format::{FileLayout, Format, ObjectFormat, TranscriptFormat},
    json::{ObjectFields, Value},
    scan::FieldNames,
    tally::Reason,
};

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
    let has = |name: &str| memmem::find(bytes, format!("\"{name}\"").as_bytes()).is_some();
    let is_marked =
        |object: &ObjectFormat| object.marks.iter().any(|names| names.iter().all(|name| has(name)));
    let is_one = |object: &ObjectFormat| has(object.messages) || is_marked(object);
    objects().find(|(_, object)| is_one(object)).map(|(format, _)| format)
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
    let labels = |are_transcripts| {
        let formats = ALL.into_iter().filter(|format| format.is_transcript() == are_transcripts);
        formats.map(|format| format.label).collect::<Vec<_>>().join(" and ")
    };
    format!(
        "looked for conversations of {} in .json files, and for transcripts of {} in .jsonl files",
        labels(false),
        labels(true)
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
    let has = |names: &[&str]| names.iter().all(|name| fields.get(name).is_some());
    if fields.get("chats").and_then(|it| it.items().ok()).is_some_and(|it| !it.is_empty()) {
        Some("group chats of ChatGPT, which are not read yet".to_owned())
    } else if has(&["title", "content", "type", "created_at"]) {
        Some("documents of ChatGPT's canvas, as they are now".to_owned())
    } else if has(&["rating", "message_id"]) && !fields.text("text").unwrap_or_default().is_empty()
    {
        Some("comments on ChatGPT's answers".to_owned())
    } else {
        listed_downloads(fields).or_else(|| foreign::describe_object(fields))
    }
}

/// Describes a file that lists the downloads of an export, and names the downloads with the chats.
fn listed_downloads(fields: &ObjectFields<'_>) -> Option<String> {
    let list = fields.get("data_files").or_else(|| fields.get("files"))?.value().ok()?;
    let name = |item: &Value| {
        let names = ["filename", "name"].map(|field| item.str(field));
        names.into_iter().find(|name| name.ends_with(".zip")).map(str::to_owned)
    };
    let is_chat = |item: &&Value| item.str("category").contains("conversation");
    let mut names: Vec<String> = list.items().iter().filter(is_chat).filter_map(name).collect();
    names.extend(list.items().iter().filter_map(name).filter(|it| it.contains("conversation")));
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
