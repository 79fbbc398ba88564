//! Projects and memories of Claude.ai. Each becomes a conversation, so that searches find its texts.

use std::borrow::Cow;

use crate::import::fields::{derive_id, own_id, time};
use crate::import::json::{ObjectFields, Raw, Value};
use crate::import::plain::plain;
use crate::import::tally::Reason;
use crate::import::tool::joined;
use verbatim_base::model::{AttachedContent, AttachedFile, Conversation, Message};

/// The fields by which a damaged project or memory is recognised.
pub(super) const MARKS: [&[&str]; 2] = [&["prompt_template", "docs"], &[MEMORY]];

/// The fields of a memory: what Claude knows about the user, and about each project.
const MEMORY: &str = "conversations_memory";
const PROJECT_MEMORIES: &str = "project_memories";

pub(super) fn is_project(fields: &ObjectFields<'_>) -> bool {
    fields.has("docs")
        && (fields.has("prompt_template")
            || ["uuid", "name", "description"].iter().all(|name| fields.has(name)))
}

pub(super) fn is_memory(fields: &ObjectFields<'_>) -> bool {
    [MEMORY, PROJECT_MEMORIES].iter().any(|name| fields.has(name))
}

/// Reads a project: its description, its instructions, and each of its documents as one message.
pub(super) fn project(fields: &ObjectFields<'_>) -> Result<Conversation, Reason> {
    let create_time = fields.get("created_at").and_then(time);
    let update_time = fields.get("updated_at").and_then(time);
    let mut messages = Vec::new();
    let mut files = Vec::new();
    for (name, role) in [("description", "user"), ("prompt_template", "system")] {
        let content = fields.text(name).unwrap_or_default().into_owned();
        let id = format!("/{name}");
        messages.push(Message {
            id,
            role: role.to_owned(),
            content,
            create_time,
            ..Message::default()
        });
    }
    messages.retain(|message| !message.content.trim().is_empty());
    for (at, document) in fields.get("docs").map_or(Ok(Vec::new()), Raw::items)?.iter().enumerate()
    {
        let document = document.fields()?;
        let name = document.text("filename").or_else(|| document.text("file_name"));
        let name = name.unwrap_or_default().into_owned();
        let content = document.text("content").or_else(|| document.text("extracted_content"));
        let content = content.unwrap_or_default();
        if content.trim().is_empty() {
            continue;
        }
        let id = document.text("uuid").filter(|id| !id.is_empty());
        let kept = AttachedContent::Text(content.clone().into_owned());
        files.push(AttachedFile { message: messages.len(), name: name.clone(), content: kept });
        messages.push(Message {
            id: id.map_or_else(|| format!("/document-{}", at + 1), Cow::into_owned),
            role: "user".to_owned(),
            content: joined("\n", &[&*name, &*content]),
            create_time: document.get("created_at").and_then(time).or(create_time),
            attachments: Some(name).filter(|name| !name.is_empty()).into_iter().collect(),
            ..Message::default()
        });
    }
    let own_id = own_id(fields, ["uuid", "id", "project_uuid"]);
    let name = fields.text("name").filter(|name| !name.trim().is_empty());
    let title = name.map_or("Project".to_owned(), |name| format!("Project: {name}"));
    let link = own_id.as_ref().map(|id| link(id));
    let id = own_id.unwrap_or_else(|| derive_id(create_time, Some(&title), &messages));
    let archived = fields.get("archived_at").is_some_and(|at| !at.is_null())
        || fields.get("is_archived").is_some_and(Raw::is_true);
    Ok(with_whole_ids(Conversation {
        id,
        link,
        title: Some(title),
        create_time,
        update_time,
        archived,
        starred: fields.get("is_starred").is_some_and(Raw::is_true),
        messages,
        files,
        ..Conversation::default()
    }))
}

/// Reads a memory: the text about the user, and the text about each project, as one message each.
pub(super) fn memory(fields: &ObjectFields<'_>) -> Result<Conversation, Reason> {
    let mut texts = Vec::new();
    if let Some(memory) = fields.get(MEMORY) {
        texts.push(("/account".to_owned(), plain(&memory.value()?, true)));
    }
    let of_projects = fields.get(PROJECT_MEMORIES).map(Raw::value).transpose()?;
    match &of_projects {
        Some(Value::Object(projects)) => {
            texts.extend(projects.iter().map(|(id, memory)| project_memory(id, memory)));
        }
        Some(list) => texts.extend(list.items().iter().map(|memory| {
            let id = ["project_uuid", "uuid"].map(|name| memory.str(name));
            project_memory(id.into_iter().find(|id| !id.is_empty()).unwrap_or_default(), memory)
        })),
        None => {}
    }
    texts.retain(|(_, text)| !text.trim().is_empty());
    let create_time = fields.get("created_at").and_then(time);
    let messages = texts.into_iter().map(|(id, content)| Message {
        id,
        role: "assistant".to_owned(),
        content,
        create_time,
        ..Message::default()
    });
    let account = fields.text("account_uuid").or_else(|| fields.text("uuid"));
    let account = account.filter(|id| !id.is_empty());
    Ok(with_whole_ids(Conversation {
        // Each account has one memory.
        id: account.map_or("memory".to_owned(), |id| format!("memory-{id}")),
        title: Some("Memory".to_owned()),
        create_time,
        update_time: fields.get("updated_at").and_then(time),
        messages: messages.collect(),
        ..Conversation::default()
    }))
}

/// Returns the id and the text of a message with the memory of a project. An export names the project only by
/// its id.
fn project_memory(id: &str, memory: &Value) -> (String, String) {
    let text = plain(memory, true);
    if id.is_empty() || text.trim().is_empty() {
        return (format!("/project-{id}"), text);
    }
    (format!("/project-{id}"), format!("{text}\n\nProject: {}", link(id)))
}

fn link(project: &str) -> String {
    format!("https://claude.ai/project/{project}")
}

/// Puts the conversation's id before the messages' ids that begin with a slash.
pub(super) fn with_whole_ids(mut conversation: Conversation) -> Conversation {
    for message in &mut conversation.messages {
        if message.id.starts_with('/') {
            message.id.insert_str(0, &conversation.id);
        }
    }
    conversation
}
