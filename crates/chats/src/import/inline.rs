//! The files that the blocks of a transcript hold as base64: pictures, documents and sounds.

use super::json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InlineFile {
    pub(super) name: String,
    pub(super) base64: String,
}

impl InlineFile {
    /// Returns the file in a `data:` URL; `None` for any other URL.
    pub(super) fn from_data_url(url: &str) -> Option<InlineFile> {
        let data = url.strip_prefix("data:")?;
        let base64 = data.split_once(";base64,").map_or(data, |(_, base64)| base64);
        Some(InlineFile { name: String::new(), base64: base64.to_owned() })
    }
}

/// Returns the files in a block or in an array of blocks.
///
/// Recursion is safe, because the depth of a [`Value`] is bounded.
pub(super) fn files(block: &Value) -> Vec<InlineFile> {
    if let Value::Array(blocks) = block {
        return blocks.iter().flat_map(files).collect();
    }
    let base64 = match block.str("type") {
        // Claude Code puts the data into `source`; an MCP tool puts the data into the block itself.
        "image" | "document" | "file" | "audio" => {
            let source = block.get("source").filter(|source| source.str("type") == "base64");
            // A file without its content is named, so that it is told that it cannot be read.
            if source.is_some_and(|source| source.str("data").is_empty()) {
                let name = block.str("title").to_owned();
                return vec![InlineFile { name, base64: String::new() }];
            }
            source.unwrap_or(block).str("data")
        }
        "input_audio" => block.get("input_audio").map_or("", |audio| audio.str("data")),
        "input_file" => block.str("file_data"),
        _ => "",
    };
    let url = block.get("image_url").map(|url| url.as_str().unwrap_or_else(|| url.str("url")));
    let file = [url, Some(base64)].into_iter().flatten().find_map(|text| {
        InlineFile::from_data_url(text).or_else(|| {
            (!base64.is_empty())
                .then(|| InlineFile { name: String::new(), base64: base64.to_owned() })
        })
    });
    match file {
        Some(file) => {
            let names = ["title", "file_name", "filename", "name"].map(|name| block.str(name));
            let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            vec![InlineFile { name: name.to_owned(), ..file }]
        }
        // The result of a tool contains further blocks.
        None => ["content", "output"]
            .iter()
            .filter_map(|name| block.get(name))
            .flat_map(files)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::json::Raw;

    #[test]
    fn files_of_every_shape() {
        for (json, expected) in [
            (
                r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#,
                &[("", "AA==")][..],
            ),
            (
                r#"{"type":"document","title":"a.pdf","source":{"type":"base64","data":"BB=="}}"#,
                &[("a.pdf", "BB==")],
            ),
            (r#"{"type":"document","title":"a.txt","source":{"type":"text","data":"plain"}}"#, &[]),
            (r#"{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}"#, &[]),
            (
                r#"{"type":"tool_result","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","data":"CC=="}}]}"#,
                &[("", "CC==")],
            ),
            (r#"{"type":"input_image","image_url":"data:image/png;base64,DD=="}"#, &[("", "DD==")]),
            (r#"{"type":"input_image","image_url":"https://example.org/a.png"}"#, &[]),
            (
                r#"{"type":"image_url","image_url":{"url":"data:image/gif;base64,EE=="}}"#,
                &[("", "EE==")],
            ),
            (
                r#"{"type":"input_file","filename":"b.pdf","file_data":"data:application/pdf;base64,FF=="}"#,
                &[("b.pdf", "FF==")],
            ),
            (
                r#"{"content":[{"type":"image","data":"GG==","mimeType":"image/png"}]}"#,
                &[("", "GG==")],
            ),
            (
                r#"[{"type":"input_audio","input_audio":{"data":"HH==","format":"wav"}},"text"]"#,
                &[("", "HH==")],
            ),
            (r#"{"type":"text","text":"data:image/png;base64,II=="}"#, &[]),
        ] {
            let found = files(&Raw::new(json.as_bytes()).value().unwrap());
            let found: Vec<(&str, &str)> =
                found.iter().map(|file| (file.name.as_str(), file.base64.as_str())).collect();
            assert_eq!(found, expected, "{json}");
        }
    }
}
