//! Reads the text of a ChatGPT message, in the form that the service shows.

use crate::import::json::{Raw, Value};
use crate::import::plain::{part_text, plain};
use crate::import::sources;
use crate::import::tally::ImportTally;
use crate::import::tool::lines;

const PLAIN: [&str; 10] = [
    "execution_output",
    "reasoning_recap",
    "model_editable_context",
    "user_editable_context",
    "citable_code_output",
    "computer_output",
    "app_pairing_content",
    "super_widget",
    "search_result",
    "system_message",
];

/// The prefix of the names of the tools that write documents.
pub(super) const CANVAS: &str = "canmore.";

/// Returns the same text as [`text`] for a `content` that is only a list of texts; `None` for any other
/// content.
pub(super) fn only_text(content: Raw<'_>) -> Option<String> {
    let mut is_text = false;
    let mut parts = None;
    for (name, value) in content.fields().ok()? {
        match &*name {
            "content_type" if !is_text => is_text = value.string()? == "text",
            "parts" if parts.is_none() && value.is_array() => parts = Some(value.items().ok()?),
            "content_type" | "parts" => return None,
            _ if value.is_object() || value.is_array() => return None,
            _ => {}
        }
    }
    let mut texts = parts.filter(|_| is_text)?.into_iter();
    let mut joined = match texts.next() {
        Some(first) => first.string()?.into_owned(),
        None => String::new(),
    };
    for text in texts {
        joined.push('\n');
        joined.push_str(&text.string()?);
    }
    Some(joined)
}

/// Returns whether a message's `content` is a context that ChatGPT gives to the model: custom instructions,
/// memories.
pub(super) fn is_context(content: &Value) -> bool {
    content.str("content_type").ends_with("_editable_context")
}

/// Returns the text of a message's `content`; `recipient` is the tool that the message calls. Counts content of
/// an unknown type, or whose text has no known shape.
pub(super) fn text(content: &Value, recipient: &str, tally: &mut ImportTally) -> String {
    let before = tally.unknown.len();
    let text = known_text(content, recipient, tally);
    if !text.trim().is_empty() || tally.unknown.len() > before {
        return text;
    }
    let words = plain(content, true);
    if words.trim().is_empty() {
        return text;
    }
    let kind = content.str("content_type");
    tally.unknown(if kind.is_empty() { "(no type)" } else { kind }, 1);
    words
}

fn known_text(content: &Value, recipient: &str, tally: &mut ImportTally) -> String {
    let kind = match content {
        Value::Object(_) => content.str("content_type"),
        other => return join_parts(other, tally),
    };
    match kind {
        "text" | "code" if recipient.starts_with(CANVAS) => {
            let text = if kind == "code" {
                content.str("text").to_owned()
            } else {
                parts_or_text(content, tally)
            };
            canvas(&text).unwrap_or(text)
        }
        "text" | "multimodal_text" | "" => parts_or_text(content, tally),
        "code" => content.str("text").to_owned(),
        "tether_quote" | "sonic_webpage" => {
            lines(["title", "url", "snippet", "text"].map(|name| content.str(name)))
        }
        "tether_browsing_display" => {
            let assets = content.at("assets").items();
            let placeholders = assets
                .iter()
                .map(|asset| part_text(asset, false).unwrap_or_else(|| "[file]".to_owned()));
            let texts = [content.str("result"), content.str("summary")].map(str::to_owned);
            lines(texts.into_iter().chain(placeholders))
        }
        "system_error" => {
            let name = content.str("name");
            let text = content.str("text");
            if name.is_empty() || text.is_empty() {
                format!("{name}{text}")
            } else {
                format!("{name}: {text}")
            }
        }
        "thoughts" => lines(content.at("thoughts").items().iter().map(thought)),
        _ => {
            let is_known = PLAIN.contains(&kind);
            if !is_known {
                tally.unknown(kind, 1);
            }
            plain(content, !is_known)
        }
    }
}

/// The beginning of a message that contains the state of a widget, or says that the state is hidden.
const WIDGET: &str = "The latest state of the widget is";

/// Returns the text of a message together with the text of its widget, such as a report; `None` without a
/// widget. The widget's state is in the metadata or in the text of the message.
pub(super) fn with_widget(
    message: &str,
    state: Option<&str>,
    tally: &mut ImportTally,
) -> Option<String> {
    let in_text = message.strip_prefix(WIDGET).map(|rest| rest.trim_start_matches([':', ' ']));
    let report = [state, in_text].into_iter().flatten().find_map(|state| report(state, tally))?;
    Some(if in_text.is_some() { report } else { lines([message, &report]) })
}

/// Returns the plan and the report in the state of a widget.
fn report(state: &str, tally: &mut ImportTally) -> Option<String> {
    let raw = Raw::new(state.as_bytes());
    let state = raw.is_object().then(|| raw.value().ok()).flatten()?;
    let plan = state.get("plan").map(|plan| plain(plan, true)).unwrap_or_default();
    let message = state.get("report_message")?;
    let text = lines([plan, self::text(message.get("content")?, "", tally)]);
    let cited = message.get("metadata").and_then(|metadata| metadata.get("content_references"));
    Some(sources::append_sources(text, cited.map_or(&[], std::slice::from_ref)))
        .filter(|it| !it.is_empty())
}

fn parts_or_text(content: &Value, tally: &mut ImportTally) -> String {
    match content.get("parts") {
        Some(list) if *list != Value::Null => join_parts(list, tally),
        _ => plain(content, false),
    }
}

fn join_parts(list: &Value, tally: &mut ImportTally) -> String {
    let mut parts = Vec::new();
    for item in list.items() {
        let text = part_text(item, false);
        let kind = item.str("content_type");
        if is_unknown_part(kind, text.as_deref()) {
            tally.unknown(kind, 1);
        }
        parts.extend(text);
    }
    parts.join("\n")
}

/// Returns whether a part of a message has a type of its own that is not known.
fn is_unknown_part(kind: &str, text: Option<&str>) -> bool {
    let is_placeholder = text.is_some_and(|text| text.starts_with('[') && !kind.is_empty());
    !matches!(kind, "" | "text" | "audio_transcription") && !is_placeholder
}

/// Returns one step of reasoning: its summary and its text.
fn thought(thought: &Value) -> String {
    if let Some(text) = thought.as_str() {
        return text.to_owned();
    }
    let chunks = thought.at("chunks").items();
    let content = match thought.str("content") {
        "" => chunks.iter().filter_map(Value::as_str).collect::<Vec<_>>().concat(),
        content => content.to_owned(),
    };
    lines([thought.str("summary"), &content])
}

/// Returns the document, the replacements or the comments of a call to the canvas.
fn canvas(call: &str) -> Option<String> {
    let raw = Raw::new(call.as_bytes());
    let call = raw.is_object().then(|| raw.value().ok()).flatten()?;
    let mut texts = vec![call.str("name"), call.str("content")];
    texts.extend(call.at("updates").items().iter().map(|update| update.str("replacement")));
    texts.extend(call.at("comments").items().iter().map(|comment| comment.str("comment")));
    Some(lines(texts)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, recipient: &str) -> (String, u64) {
        let mut tally = ImportTally::default();
        let raw = Raw::new(json.as_bytes());
        let content = raw.value().unwrap();
        let text = text(&content, recipient, &mut tally);
        if let Some(only) = only_text(raw).filter(|_| !recipient.starts_with(CANVAS)) {
            assert_eq!(only, text);
        }
        (text, tally.unknown.values().sum())
    }

    #[test]
    fn every_content_type() {
        for (json, expected) in [
            (r#"{"content_type":"text","parts":["a","","b"]}"#, "a\n\nb"),
            (r#"{"content_type":"text","parts":"alone"}"#, "alone"),
            (r#"{"content_type":"text","parts":null,"text":"t"}"#, "t"),
            (
                r#"{"content_type":"text","parts":[{"text":"in an object"},null,7]}"#,
                "in an object\n7",
            ),
            (r#""bare""#, "bare"),
            (r#"["a","b"]"#, "a\nb"),
            ("null", ""),
            (
                r#"{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"file-service://x","size_bytes":1},
                "what is it?",{"content_type":"audio_transcription","text":"hello","direction":"in"},
                {"content_type":"audio_asset_pointer","asset_pointer":"s"},
                {"content_type":"real_time_user_audio_video_asset_pointer","video_container_asset_pointer":null},
                {"content_type":"video_container_asset_pointer","asset_pointer":"v"},
                {"content_type":"new_asset_pointer","asset_pointer":"v"}]}"#,
                "[image]\nwhat is it?\nhello\n[audio]\n[audio]\n[video]\n[file]",
            ),
            (r#"{"content_type":"code","language":"python","text":"x = 1\n"}"#, "x = 1\n"),
            (r#"{"content_type":"execution_output","text":"42"}"#, "42"),
            (
                r#"{"content_type":"tether_quote","url":"https://e.org","domain":"e.org","text":"words","title":"E"}"#,
                "E\nhttps://e.org\nwords",
            ),
            (
                r#"{"content_type":"tether_browsing_display","result":"r","summary":"s","assets":[{"content_type":"image_asset_pointer"}],"tether_id":1}"#,
                "r\ns\n[image]",
            ),
            (
                r#"{"content_type":"system_error","name":"Timeout","text":"too slow"}"#,
                "Timeout: too slow",
            ),
            (
                r#"{"content_type":"thoughts","thoughts":[{"summary":"S","content":"C","chunks":["C"]},{"summary":"","content":"","chunks":["a","b"]}]}"#,
                "S\nC\nab",
            ),
            (r#"{"content_type":"reasoning_recap","content":"Thought for 3s"}"#, "Thought for 3s"),
            (
                r#"{"content_type":"user_editable_context","user_profile":"p","user_instructions":"i"}"#,
                "p\ni",
            ),
        ] {
            assert_eq!(read(json, "all"), (expected.to_owned(), 0), "{json}");
        }
    }

    #[test]
    fn canvas_shows_its_document() {
        let document = r##"{"name":"plan","type":"document","content":"# Plan\n\"first\""}"##;
        let json = format!(r#"{{"content_type":"code","text":{}}}"#, serde_json::json!(document));
        assert_eq!(read(&json, "canmore.create_textdoc").0, "plan\n# Plan\n\"first\"");
        assert_eq!(read(&json, "python").0, document);
        let update = r#"{"content_type":"text","parts":["{\"updates\":[{\"pattern\":\".*\",\"replacement\":\"new\"}]}"]}"#;
        assert_eq!(read(update, "canmore.update_textdoc").0, "new");
    }

    #[test]
    fn unknown_types_give_their_text() {
        let json = r#"{"content_type":"hologram","id":"h1","caption":"C","frames":[{"text":"one"},{"content_type":"image_asset_pointer"}],"note":"some words","lang":"en"}"#;
        assert_eq!(read(json, "all"), ("C\none\n[image]\nsome words".to_owned(), 1));
        let picture = "A".repeat(2000);
        let json = format!(r#"{{"content_type":"hologram","data":"{picture}","label":"L"}}"#);
        assert_eq!(read(&json, "all"), ("L".to_owned(), 1));
    }
}
