//! Reads the text of content whose type is not known, and of the parts of ChatGPT's messages.

use super::{json::Value, tool::lines};

/// The fields with text for the reader, in all content types.
const TEXT_FIELDS: [&str; 24] = [
    "name",
    "title",
    "url",
    "summary",
    "result",
    "text",
    "snippet",
    "content",
    "output",
    "output_str",
    "user_profile",
    "user_instructions",
    "model_set_context",
    "description",
    "body",
    "message",
    "caption",
    "prompt",
    "transcript",
    "parts",
    "context_parts",
    "screenshot",
    "shared_prompt",
    "repo_summary",
];

/// The last words of names of fields that hold no text for the reader.
const TECHNICAL: [&str; 21] = [
    "id",
    "ids",
    "uuid",
    "type",
    "types",
    "kind",
    "lang",
    "language",
    "pointer",
    "status",
    "state",
    "role",
    "format",
    "version",
    "direction",
    "hash",
    "encoding",
    "layout",
    "ratio",
    "mimetype",
    "blob",
];

/// The maximum length of words in fields that are not known, in bytes.
const LONGEST_WORD: usize = 1000;

/// Returns the text of any content type: the known text fields, and all strings with white space. For an
/// unknown type, returns all strings except those in fields with technical names.
pub(super) fn plain(content: &Value, is_unknown: bool) -> String {
    let Value::Object(fields) = content else {
        return part_text(content, is_unknown).unwrap_or_default();
    };
    let known = fields.iter().map(|(name, value)| {
        let last = name.rsplit(['_', '-']).next().unwrap_or_default();
        let is_named = TEXT_FIELDS.contains(&name.as_str());
        let may_be_text = is_unknown && !TECHNICAL.contains(&last.to_lowercase().as_str());
        let is_shown = |text: &str| {
            is_named || may_be_text && !is_encoded(text) || text.contains(char::is_whitespace)
        };
        match value {
            Value::String(text) if is_shown(text) => text.clone(),
            Value::Scalar(text) if ["text", "content"].contains(&name.as_str()) => text.clone(),
            Value::Array(items) if name != "assets" => lines(items.iter().map(|item| match item {
                Value::String(text) if !is_shown(text) => String::new(),
                item => part_text(item, is_unknown).unwrap_or_default(),
            })),
            Value::Object(_) if name != "metadata" => {
                part_text(value, is_unknown).unwrap_or_default()
            }
            _ => String::new(),
        }
    });
    lines(known)
}

/// Returns whether a text without white space is too long for words, such as a picture in base64.
pub(super) fn is_encoded(text: &str) -> bool {
    text.len() > LONGEST_WORD && text.is_ascii()
}

/// Returns the text of one part, or a placeholder for an image, sound or file; `None` for an empty part.
/// `is_in_unknown` tells whether the part is in content of an unknown type.
pub(super) fn part_text(part: &Value, is_in_unknown: bool) -> Option<String> {
    match part {
        Value::String(text) | Value::Scalar(text) => return Some(text.clone()),
        Value::Array(items) => {
            return Some(lines(
                items.iter().filter_map(|item| self::part_text(item, is_in_unknown)),
            ));
        }
        Value::Null => return None,
        Value::Object(_) => {}
    }
    let kind = part.str("content_type");
    let placeholder = if kind.contains("video") {
        // Calls use one content type for sound and video. The video may be missing.
        let sound_only =
            kind.starts_with("real_time") && !is_some(part, "video_container_asset_pointer");
        if sound_only { "[audio]" } else { "[video]" }
    } else if kind.contains("image") {
        "[image]"
    } else if kind.contains("audio") && kind != "audio_transcription" {
        "[audio]"
    } else if part.get("asset_pointer").is_some() {
        "[file]"
    } else {
        let is_unknown = is_in_unknown || !matches!(kind, "" | "audio_transcription");
        return Some(plain(part, is_unknown)).filter(|text| !text.is_empty());
    };
    // The text from which the picture was made.
    let made = part.get("metadata").and_then(|metadata| metadata.get("dalle"));
    let prompt = made.map_or("", |made| made.str("prompt"));
    Some(lines([placeholder, prompt]))
}

fn is_some(part: &Value, name: &str) -> bool {
    part.get(name).is_some_and(|value| *value != Value::Null)
}
