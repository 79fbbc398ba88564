//! The files that a ChatGPT message names by their ids: attachments, pictures and sounds.

use crate::{
    import::json::Value,
    model::{AttachedContent, AttachedFile},
};

/// The fields of parts that point to a file of the export.
const POINTERS: [&str; 3] =
    ["asset_pointer", "audio_asset_pointer", "video_container_asset_pointer"];

/// The content types that are texts only, and long.
const TEXTS: [&str; 4] = ["text", "code", "thoughts", "execution_output"];

/// Returns the files of a message, each once: those of its list of attachments, then those that its
/// content points to. Their place in the conversation is 0.
pub(super) fn of_message(list: Option<Value>, content: Option<&Value>) -> Vec<AttachedFile> {
    let mut files = Vec::new();
    for file in list.as_ref().map(Value::items).unwrap_or_default() {
        let name = ["name", "file_name"].map(|field| file.str(field));
        add(file.str("id"), name.into_iter().find(|name| !name.is_empty()), &mut files);
    }
    if let Some(content) = content.filter(|content| !TEXTS.contains(&content.str("content_type"))) {
        add_pointers(content, &mut files);
    }
    files
}

fn add_pointers(value: &Value, files: &mut Vec<AttachedFile>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(pointer) if POINTERS.contains(&name.as_str()) => {
                        add(pointer, None, files);
                    }
                    value => add_pointers(value, files),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_pointers(item, files)),
        _ => {}
    }
}

/// Adds the file of an id or a pointer such as `file-service://file-abc`.
fn add(pointer: &str, name: Option<&str>, files: &mut Vec<AttachedFile>) {
    let id = pointer.rsplit("://").next().unwrap_or_default();
    let end = id.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    let id = &id[..end.unwrap_or(id.len())];
    let content = AttachedContent::Id(id.to_owned());
    if !id.is_empty() && !files.iter().any(|file| file.content == content) {
        files.push(AttachedFile { message: 0, name: name.unwrap_or_default().to_owned(), content });
    }
}
