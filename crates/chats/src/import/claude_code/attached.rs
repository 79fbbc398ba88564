//! Extracts the texts of attachments: what the user mentioned, and what Claude Code told the user.

use super::super::{
    inline::InlineFile,
    json::Value,
    tool::{joined, placeholder},
};
use super::text::shown;

pub(super) struct AttachedText {
    pub(super) role: &'static str,
    pub(super) text: String,
    pub(super) files: Vec<InlineFile>,
}

/// Returns the text of an attachment; `None` for a kind that has no text for the user.
pub(super) fn attached(attachment: &Value) -> Option<AttachedText> {
    let str = |name| attachment.str(name);
    let is_told = matches!(
        str("type"),
        "hook_blocking_error"
            | "hook_non_blocking_error"
            | "hook_error_during_execution"
            | "hook_stopped_continuation"
            | "hook_system_message"
            | "async_hook_response"
    );
    let mut files = Vec::new();
    let text = match str("type") {
        "file"
        | "already_read_file"
        | "pdf_reference"
        | "edited_text_file"
        | "edited_image_file"
        | "selected_lines_in_ide" => {
            let content = attachment.get("content").unwrap_or(&Value::Null);
            files.extend(file_in(content, str("filename")));
            let snippet = str("snippet").to_owned();
            joined(
                "\n",
                &[named_placeholder("file", attachment, &["filename"]), snippet, text_in(content)],
            )
        }
        "directory" => {
            joined("\n", &[&named_placeholder("folder", attachment, &["path"]), str("content")])
        }
        "mcp_resource" => {
            let contents = attachment.get("content").and_then(|content| content.get("contents"));
            let texts = contents.map(Value::items).unwrap_or_default().iter();
            let texts = joined("\n", &texts.map(|it| it.str("text")).collect::<Vec<_>>());
            let name = named_placeholder("resource", attachment, &["name", "uri"]);
            joined("\n", &[&name, str("description"), &texts])
        }
        "diagnostics" => {
            let of_file = |file: &Value| {
                let list = file.get("diagnostics").map(Value::items).unwrap_or_default();
                let messages = list.iter().map(|it| {
                    joined(": ", &[it.str("severity"), it.str("source"), it.str("message")])
                });
                let uri = file.str("uri").to_owned();
                joined("\n", &std::iter::once(uri).chain(messages).collect::<Vec<_>>())
            };
            let list = attachment.get("files").map(Value::items).unwrap_or_default();
            joined("\n", &list.iter().map(of_file).collect::<Vec<_>>())
        }
        "todo" => {
            let list = attachment.get("content").map(Value::items).unwrap_or_default();
            let line = |it: &Value| joined(": ", &[it.str("status"), it.str("content")]);
            joined("\n", &list.iter().map(line).collect::<Vec<_>>())
        }
        "task_status" => joined("\n", &["description", "status", "deltaSummary"].map(str)),
        _ if is_told => {
            let error = attachment.get("blockingError").unwrap_or(&Value::Null);
            let error = error.as_str().unwrap_or_else(|| error.str("blockingError"));
            let response = attachment.get("response").unwrap_or(&Value::Null);
            let [message, out, errors] = match str("type") {
                "async_hook_response" => [response.str("systemMessage"), "", ""],
                _ => [str("message"), str("stdout"), str("stderr")],
            };
            let content = attachment.get("content").map(Value::items).unwrap_or_default();
            let content = joined("\n", &content.iter().map(shown).collect::<Vec<_>>());
            let said = joined("\n", &[&content, error, message, out, errors]);
            let name = Some(str("hookName")).filter(|name| !name.is_empty() && !said.is_empty());
            joined("\n", &[&name.map_or_else(String::new, |it| format!("[hook: {it}]")), &said])
        }
        _ => return None,
    };
    Some(AttachedText { role: if is_told { "system" } else { "tool" }, text, files })
}

/// Returns a placeholder with the path that the user saw, or else with the first of these fields.
fn named_placeholder(kind: &str, attachment: &Value, fields: &[&str]) -> String {
    let names = ["displayPath"].iter().chain(fields).map(|name| attachment.str(name));
    match names.into_iter().find(|name| !name.is_empty()) {
        Some(name) => format!("[{kind}: {name}]"),
        None => placeholder(kind, &Value::Null),
    }
}

/// Returns the text of a file: plain text, or the cells of a notebook.
fn text_in(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let file = content.get("file").unwrap_or(&Value::Null);
    let cells = file.get("cells").map(Value::items).unwrap_or_default().iter();
    let cells = cells.flat_map(|cell| {
        let outputs = cell.get("outputs").map(Value::items).unwrap_or_default().iter();
        std::iter::once(cell.str("source")).chain(outputs.map(|output| output.str("text")))
    });
    let image = if content.str("type") == "image" { "[image]" } else { "" };
    let texts = [image, content.str("text"), file.str("content")];
    joined("\n", &texts.into_iter().chain(cells).collect::<Vec<_>>())
}

/// Returns the picture or the document in the content of a file.
fn file_in(content: &Value, path: &str) -> Option<InlineFile> {
    let base64 = content.get("file")?.str("base64");
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let file = InlineFile { name: name.to_owned(), base64: base64.to_owned() };
    Some(file).filter(|file| !file.base64.is_empty())
}
