//! Exports of ChatGPT, and archives of files.
#![allow(dead_code, reason = "not every binary needs it")]

use std::io::{Cursor, Write};

use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

/// Returns a ChatGPT export of one conversation whose messages follow each other.
pub(crate) fn chat(id: &str, update_time: f64, texts: &[&str]) -> String {
    let mut mapping = serde_json::Map::new();
    for (at, text) in texts.iter().enumerate() {
        let parent = if at == 0 { json!(null) } else { json!(format!("{id}-{}", at - 1)) };
        mapping.insert(
            format!("{id}-{at}"),
            json!({"parent": parent, "children": [], "message": {"id": format!("{id}-{at}"),
                "author": {"role": if at % 2 == 0 { "user" } else { "assistant" }}, "create_time": 1000.0 + at as f64,
                "content": {"content_type": "text", "parts": [text]}}}),
        );
    }
    json!([{"id": id, "title": id, "create_time": 1.0, "update_time": update_time, "mapping": mapping,
        "current_node": format!("{id}-{}", texts.len().saturating_sub(1))}])
    .to_string()
}

pub(crate) fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Returns an export of ChatGPT: a conversation whose first message has these attachments, and whose
/// second one has a picture in its content.
pub(crate) fn chat_with_files(id: &str, attachments: &Value) -> Value {
    let node = |parent: Option<&str>, role: &str, content: Value, attachments: &Value| {
        json!({"parent": parent, "children": [], "message": {
            "author": {"role": role}, "content": content, "create_time": 1_700_000_000,
            "metadata": {"attachments": attachments}}})
    };
    let text = |text: &str| json!({"content_type": "text", "parts": [text]});
    let picture = json!({"content_type": "multimodal_text", "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_00ff#x"}, "Look"]});
    json!({"id": id, "title": format!("Chat {id}"), "create_time": 1_700_000_000,
    "update_time": 1_700_000_000, "current_node": format!("{id}-2"), "mapping": {
        format!("{id}-1"): node(None, "user", text("Read this"), attachments),
        format!("{id}-2"): node(Some(&format!("{id}-1")), "assistant", picture, &json!([])),
    }})
}
