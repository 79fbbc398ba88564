//! Extracts the texts of attachments: what the user mentioned, and what Claude Code told the user.

use super::super::inline::InlineFile;
use super::super::json::Value;
use super::super::tool::{joined, lines, named};
use super::text::shown;

pub(super) struct AttachedText {
    pub(super) role: &'static str,
    pub(super) text: String,
    pub(super) files: Vec<InlineFile>,
}

/// Returns the text of an attachment; `None` for a kind that has no text for the user.
pub(super) fn attached(attachment: &Value) -> Option<AttachedText> {
    let is_told = matches!(
        attachment.str("type"),
        "hook_blocking_error"
            | "hook_non_blocking_error"
            | "hook_error_during_execution"
            | "hook_stopped_continuation"
            | "hook_system_message"
            | "async_hook_response"
    );
    let mut files = Vec::new();
    let text = match attachment.str("type") {
        "file"
        | "already_read_file"
        | "pdf_reference"
        | "edited_text_file"
        | "edited_image_file"
        | "selected_lines_in_ide" => {
            let content = attachment.at("content");
            files.extend(file_in(content, attachment.str("filename")));
            let snippet = attachment.str("snippet").to_owned();
            lines([
                named("file", attachment, &["displayPath", "filename"]),
                snippet,
                text_in(content),
            ])
        }
        "directory" => lines([
            &named("folder", attachment, &["displayPath", "path"]),
            attachment.str("content"),
        ]),
        "mcp_resource" => {
            let contents = attachment.at("content").at("contents").items();
            let texts = lines(contents.iter().map(|it| it.str("text")));
            let name = named("resource", attachment, &["displayPath", "name", "uri"]);
            lines([&name, attachment.str("description"), &texts])
        }
        "diagnostics" => lines(attachment.at("files").items().iter().map(|file| {
            let mut texts = vec![file.str("uri").to_owned()];
            for it in file.at("diagnostics").items() {
                let message = [it.str("severity"), it.str("source"), it.str("message")];
                texts.push(joined(": ", &message));
            }
            lines(texts)
        })),
        "todo" => {
            let items = attachment.at("content").items().iter();
            lines(items.map(|it| joined(": ", [it.str("status"), it.str("content")])))
        }
        "task_status" => {
            lines(["description", "status", "deltaSummary"].map(|name| attachment.str(name)))
        }
        _ if is_told => {
            let error = attachment.at("blockingError");
            let error = error.as_str().unwrap_or_else(|| error.str("blockingError"));
            let response = attachment.at("response");
            let [message, out, errors] = match attachment.str("type") {
                "async_hook_response" => [response.str("systemMessage"), "", ""],
                _ => {
                    [attachment.str("message"), attachment.str("stdout"), attachment.str("stderr")]
                }
            };
            let content = lines(attachment.at("content").items().iter().map(shown));
            let said = lines([&content, error, message, out, errors]);
            let name = Some(attachment.str("hookName"))
                .filter(|name| !name.is_empty() && !said.is_empty());
            lines([&name.map_or_else(String::new, |it| format!("[hook: {it}]")), &said])
        }
        _ => return None,
    };
    Some(AttachedText { role: if is_told { "system" } else { "tool" }, text, files })
}

/// Returns the text of a file: plain text, or the cells of a notebook.
fn text_in(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let file = content.at("file");
    let cells = file.at("cells").items().iter();
    let cells = cells.flat_map(|cell| {
        let outputs = cell.at("outputs").items().iter();
        std::iter::once(cell.str("source")).chain(outputs.map(|output| output.str("text")))
    });
    let image = if content.str("type") == "image" { "[image]" } else { "" };
    let texts = [image, content.str("text"), file.str("content")];
    lines(texts.into_iter().chain(cells))
}

/// Returns the picture or the document in the content of a file.
fn file_in(content: &Value, path: &str) -> Option<InlineFile> {
    let base64 = content.get("file")?.str("base64");
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let file = InlineFile { name: name.to_owned(), base64: base64.to_owned() };
    Some(file).filter(|file| !file.base64.is_empty())
}
