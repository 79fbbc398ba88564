//! Extracts the texts from Codex's records: of the user, of tools, and of Codex itself.

use super::super::head::{Head, set_first};
use super::super::json::{Damage, Raw, Value};
use super::super::plain::plain;
use super::super::tool::{self, joined, lines};
use verbatim_text::screen;

/// Returns the text of one block, or a placeholder for an image, sound or file.
pub(super) fn shown(block: &Value) -> String {
    if let Some(text) = block.as_str() {
        return text.to_owned();
    }
    match block.str("type") {
        "input_image" | "image" | "output_image" => "[image]".to_owned(),
        "input_file" | "file" => tool::placeholder("file", block),
        "input_audio" | "audio" => "[audio]".to_owned(),
        "encrypted_content" => String::new(),
        "refusal" => block.str("refusal").to_owned(),
        _ if block.str("text").is_empty() => plain(block, true),
        _ => block.str("text").to_owned(),
    }
}

pub(super) fn typed(block: &Value) -> String {
    let text = shown(block);
    // The tags around an image are not words of the user.
    let tag = text.trim();
    if tag == "</image>"
        || tag == "<image>"
        || tag.starts_with("<image name=") && tag.ends_with('>')
    {
        return String::new();
    }
    without_injections(&text)
}

/// The beginnings and ends of texts that Codex adds in the user's name.
const INJECTED: [(&str, &str); 20] = [
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("<user_instructions>", "</user_instructions>"),
    ("<environment_context>", "</environment_context>"),
    ("<permissions instructions>", "</permissions instructions>"),
    ("<skills_instructions>", "</skills_instructions>"),
    ("<apps_instructions>", "</apps_instructions>"),
    ("<plugins_instructions>", "</plugins_instructions>"),
    ("<skills>", "</skills>"),
    ("<plugins>", "</plugins>"),
    ("<collaboration_mode>", "</collaboration_mode>"),
    ("<model_switch>", "</model_switch>"),
    ("<personality_spec>", "</personality_spec>"),
    ("<INSTRUCTIONS>", "</INSTRUCTIONS>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<skill>", "</skill>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<agent_message_board_notification>", "</agent_message_board_notification>"),
    ("<goal_context>", "</goal_context>"),
    ("<hook_prompt ", "</hook_prompt>"),
    ("<user_action>", "</user_action>"),
];

/// The number of entries at the beginning of `INJECTED` that may stand before a prompt. If words
/// follow another entry, the user typed the entry too.
const BEFORE_PROMPTS: usize = 12;

/// The beginnings of the names of tags that only Codex writes, before a prompt or alone.
const TAGS_OF_CODEX: [&str; 3] = ["codex_", "recommended_", "available_"];

/// Whole messages that Codex adds in the user's name: their beginnings, and words in them.
const INJECTED_WHOLE: [(&str, &str); 4] = [
    (HANDOVER, SUMMARY),
    ("Warning: The maximum number of unified exec processes you can keep open is", ""),
    ("Warning: apply_patch was requested via ", "Use the apply_patch tool"),
    ("Warning: Your account was flagged for potentially high-risk cyber activity", ""),
];

/// The beginning of a message that gives a summary to a model.
const HANDOVER: &str =
    "Another language model started to solve this problem and produced a summary";

/// The end of the introduction before the summary.
const SUMMARY: &str = "to assist with your own analysis:";

/// The heading of the user's own words, below the context that the editor or the desktop app adds.
const REQUEST: &str = "\n## My request for Codex:";

/// Returns whether Codex started a session for itself, by the session's source: to summarise, to keep memories, to
/// review an approval. The user or the model asks for the others: reviews, agents and jobs.
pub(super) fn is_of_helper(source: &Value) -> bool {
    let agent = source.at("subagent");
    let other = agent.str("other");
    source.get("internal").is_some()
        || agent.as_str().is_some_and(|kind| kind != "review")
        || !other.is_empty() && !other.starts_with("agent_job")
}

/// Returns the user's words from a text that the model saw, without the texts that Codex added.
pub(super) fn without_injections(text: &str) -> String {
    let mut rest = text.trim();
    let mut typed_from = None;
    while let Some((place, end)) = injected(rest) {
        typed_from = typed_from.or(Some(rest).filter(|_| place >= BEFORE_PROMPTS));
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() {
        rest = typed_from.unwrap_or(rest);
    }
    if INJECTED_WHOLE.iter().any(|(start, words)| rest.starts_with(start) && rest.contains(words)) {
        return String::new();
    }
    without_context(rest)
}

/// Finds a text at the beginning that Codex adds; returns its place in `INJECTED` and its end.
fn injected(text: &str) -> Option<(usize, usize)> {
    let listed = INJECTED.iter().enumerate().find_map(|(place, (start, end))| {
        let at = Some(text).filter(|it| starts_with(it, start))?.find(end)?;
        Some((place, at + end.len()))
    });
    listed.or_else(|| {
        let (name, _) = text.strip_prefix('<')?.split_once(['>', ' '])?;
        let is_of_codex = TAGS_OF_CODEX.iter().any(|start| name.starts_with(start))
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        let end = format!("</{name}>");
        Some((0, text.find(&end).filter(|_| is_of_codex)? + end.len()))
    })
}

/// Returns the user's words from a prompt, without the context that the editor added.
pub(super) fn without_context(prompt: &str) -> String {
    let mut rest = prompt.trim();
    if rest.starts_with("# ")
        && let Some((_, request)) = rest.split_once(REQUEST)
    {
        rest = request.trim_start();
    } else if rest.starts_with("# Context from my IDE setup:") {
        return String::new();
    }
    if let Some(command) = rest.strip_prefix("<user_shell_command>")
        && let Some((_, command)) = command.split_once("<command>")
        && let Some((command, after)) = command.split_once("</command>")
    {
        let result = after.split_once("<result>").map_or("", |(_, result)| result);
        let result = result.split_once("</result>").map_or(result, |(result, _)| result);
        let command = format!("! {}", command.trim());
        return lines([&*command, &*screen::shown(result.trim())]);
    }
    rest.to_owned()
}

fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

/// Takes the folder from the environment that Codex describes. The first version of the format names the
/// folder only there.
pub(super) fn environment(text: &str, head: &mut Head) {
    if head.folder.is_none() && text.trim_start().starts_with("<environment_context>") {
        let folder = if let Some((_, rest)) = text.split_once("<cwd>")
            && let Some((folder, _)) = rest.split_once("</cwd>")
        {
            Some(folder)
        } else {
            let named = text.split_once("Current working directory: ");
            named.and_then(|(_, rest)| rest.lines().next())
        };
        set_first(&mut head.folder, folder.map(str::trim));
    }
}

/// Returns a summary without the instruction to continue the work.
pub(super) fn without_preamble(message: &str) -> &str {
    match message.split_once(SUMMARY) {
        Some((before, summary)) if before.starts_with(HANDOVER) => summary,
        _ => message,
    }
}

/// Parses a string that holds JSON; returns any other value as it is.
pub(super) fn parsed(value: Value) -> Result<Value, Damage> {
    if let Value::String(text) = &value
        && text.trim_start().starts_with(['{', '['])
        && let Some((raw, rest)) = Raw::split(text.trim().as_bytes())
        && rest.is_empty()
        && let Ok(inner) = raw.value()
    {
        return Ok(inner);
    }
    Ok(value)
}

/// Joins commands that are lists of words to command lines.
pub(super) fn commands(input: Value) -> Value {
    let Value::Object(fields) = input else { return input };
    let fields = fields.into_iter().map(|(name, value)| {
        let Value::Array(words) = &value else { return (name, value) };
        if name != "command" && name != "cmd" {
            return (name, value);
        }
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let command = match words[..] {
            [_, "-lc" | "-c" | "-Command" | "/c", script] => script.to_owned(),
            _ => words.join(" "),
        };
        (name, Value::String(command))
    });
    Value::Object(fields.collect())
}

/// Returns the text of a review, in the form in which Codex writes it into the following answer.
pub(super) fn review(output: &Value) -> String {
    let findings = output.at("findings").items();
    let heading = if findings.len() > 1 { "Full review comments:" } else { "Review comment:" };
    let findings: Vec<String> = findings
        .iter()
        .map(|finding| {
            let place = finding.at("code_location");
            let lines = place.at("line_range");
            let path = place.str("absolute_file_path");
            let start = lines.str("start");
            let end = lines.str("end");
            let body = finding.str("body").replace('\n', "\n  ");
            format!("- {} — {path}:{start}-{end}\n  {body}", finding.str("title"))
        })
        .collect();
    let heading = if findings.is_empty() { "" } else { heading };
    joined("\n\n", &[output.str("overall_explanation"), heading, &findings.join("\n\n")])
}

/// The objects in which Codex and MCP wrap an output: the name of the output, and the other names.
const WRAPPED: [(&str, &[&str]); 3] = [
    ("output", &["metadata"]),
    ("content", &["success", "isError", "_meta", "structuredContent"]),
    ("content_items", &["success"]),
];

pub(super) fn output(output: &Value) -> String {
    let inner = match output {
        Value::Object(fields) => WRAPPED.iter().find_map(|(name, others)| {
            let is_wrapped =
                fields.iter().all(|(field, _)| field == name || others.contains(&field.as_str()));
            output.get(name).filter(|it| is_wrapped && !matches!(it, Value::Object(_)))
        }),
        Value::Array(items) if items.iter().any(|item| !item.str("type").is_empty()) => {
            return lines(items.iter().map(shown));
        }
        _ => None,
    };
    // Structured content repeats the other content, if there is any.
    let named = match (inner.map(self::output), output.get("structuredContent")) {
        (Some(text), Some(structured)) if text.trim().is_empty() => structured,
        (Some(text), _) => return text,
        (None, _) => output,
    };
    let mut lines = Vec::new();
    tool::arguments(named, "", &mut lines);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_said() {
        for (text, expected) in [
            ("Fix it", "Fix it"),
            ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", ""),
            ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe nice\n</INSTRUCTIONS>", ""),
            (
                "# AGENTS.md instructions for /x\n<INSTRUCTIONS>a</INSTRUCTIONS>\n<environment_context>b</environment_context>",
                "",
            ),
            ("<user_instructions>\n\nx\n\n</user_instructions>\nFix it", "Fix it"),
            (
                "# Context from my IDE setup:\n\n## Active file: a.rs\n\n## My request for Codex:\nFix it\n",
                "Fix it",
            ),
            (
                "<user_shell_command>\n<command>\nls\n</command>\n<result>\na.rs\n</result>\n</user_shell_command>",
                "! ls\na.rs",
            ),
            (
                "<recommended_plugins>\n- a\n</recommended_plugins>\n<environment_context>\n<cwd>/x</cwd>\n</environment_context>\nFix it",
                "Fix it",
            ),
            (
                "<skills>\n- a\n</skills>\n# AGENTS.md instructions\n<INSTRUCTIONS>b</INSTRUCTIONS>Fix it",
                "Fix it",
            ),
            ("<codex_internal_context source=\"goal\">\nGo on\n</codex_internal_context>", ""),
            ("<recommended_apps>a</recommended_apps> Fix it", "Fix it"),
            ("<data_set>a</data_set>\nSum it", "<data_set>a</data_set>\nSum it"),
            ("<recommended_apps> is open", "<recommended_apps> is open"),
            ("What does <environment_context> mean?", "What does <environment_context> mean?"),
        ] {
            assert_eq!(without_injections(text), expected, "{text:?}");
        }
    }

    #[test]
    fn outputs_of_every_shape() {
        for (json, expected) in [
            (r#""plain""#, "plain"),
            (r#""{\"output\":\"a\\nb\",\"metadata\":{\"exit_code\":0}}""#, "a\nb"),
            (r#"{"content":"c","success":false}"#, "c"),
            (
                r#"[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"d"}]"#,
                "t\n[image]",
            ),
            (r#""[{\"type\":\"text\",\"text\":\"t\"}]""#, "t"),
            (r#"{"stdout":"out","stderr":"boom"}"#, "stdout: out\nstderr: boom"),
            (r#"{"output":{"a":"b"}}"#, "a: b"),
            (r#"{"output":"","metadata":{"exit_code":0}}"#, ""),
            (r#"{"output":null,"error":"e"}"#, "error: e"),
            (r#"{"title":"T","content":"C","url":"U"}"#, "title: T\ncontent: C\nurl: U"),
            (r#"{"content":[],"structuredContent":{"k":"v"}}"#, "k: v"),
            (r#"{"error":"e","structuredContent":{"k":"v"}}"#, "error: e\nk: v"),
            (
                r#"{"content":[{"type":"text","text":"t"}],"structuredContent":{"k":"v"},"isError":false}"#,
                "t",
            ),
            (
                r#"[{"type":"text","text":"t"},{"type":"resource","resource":{"text":"r","mimeType":"text/plain"}},{"name":"n"}]"#,
                "t\nr\nn",
            ),
            (r#""{\"answers\":{\"q\":\"yes\"}}""#, "q: yes"),
            (r#""[1] 4711""#, "[1] 4711"),
            ("null", ""),
        ] {
            let value = Raw::new(json.as_bytes()).value().unwrap();
            assert_eq!(output(&parsed(value).unwrap()), expected, "{json}");
        }
    }
}
