//! The files that a ChatGPT message names by their ids: attachments, pictures and sounds.

use std::collections::HashSet;

use super::metadata::Metadata;
use crate::import::json::Value;
use verbatim_base::model::{AttachedContent, AttachedFile};

/// The fields of parts that name a file of the export.
const POINTERS: [&str; 3] =
    ["asset_pointer", "audio_asset_pointer", "video_container_asset_pointer"];

/// The content types that hold only text, and no files.
const TEXTS: [&str; 4] = ["text", "code", "thoughts", "execution_output"];

/// Returns the files of a message without repeats: first the attachments, then the files that the content
/// names, then charts. Their field `message` is 0.
pub(super) fn message_files(metadata: &Metadata<'_>, content: Option<&Value>) -> Vec<AttachedFile> {
    let mut files = FilesOfMessage::default();
    for file in metadata.attachments.as_ref().map(Value::items).unwrap_or_default() {
        let name = ["name", "file_name"].map(|field| file.str(field));
        files.add(file.str("id"), name.into_iter().find(|name| !name.is_empty()));
    }
    if let Some(content) = content.filter(|content| !TEXTS.contains(&content.str("content_type"))) {
        files.add_pointers(content);
    }
    metadata
        .charts
        .iter()
        .filter(|chart| !chart.starts_with("http") && !chart.starts_with("data:"))
        .for_each(|chart| files.add(chart, None));
    files.list
}

#[derive(Default)]
struct FilesOfMessage {
    list: Vec<AttachedFile>,
    ids: HashSet<String>,
}

impl FilesOfMessage {
    fn add_pointers(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(pointer) if POINTERS.contains(&name.as_str()) => {
                            self.add(pointer, None);
                        }
                        value => self.add_pointers(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_pointers(item)),
            _ => {}
        }
    }

    /// Adds the file of an id or a pointer such as `file-service://file-abc`.
    fn add(&mut self, pointer: &str, name: Option<&str>) {
        let id = pointer.rsplit("://").next().unwrap_or_default();
        let end = id.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        let id = &id[..end.unwrap_or(id.len())];
        if !id.is_empty() && self.ids.insert(id.to_owned()) {
            let name = name.unwrap_or_default();
            let content = AttachedContent::Id(id.to_owned());
            self.list.push(AttachedFile { message: 0, name: name.to_owned(), content });
        }
    }
}
