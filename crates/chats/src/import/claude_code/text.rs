//! Extracts the texts from blocks of Claude Code's messages, and separates the texts that the user typed.

use super::super::json::Value;
use super::super::plain::plain;
use super::super::tool::{self, lines};
use verbatim_text::screen::shown as shown_on_screen;

pub(super) fn assistant_block(block: &Value) -> String {
    match block.str("type") {
        "thinking" => match words_of(block, "thinking").trim() {
            "" => String::new(),
            thinking => format!("[thinking]\n{thinking}"),
        },
        "redacted_thinking" => String::new(),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            tool::call(block.str("name"), &[], block.at("input"))
        }
        _ => shown(block),
    }
}

/// Returns the text of a block, with a placeholder for an image or a file.
pub(super) fn shown(block: &Value) -> String {
    if let Some(text) = block.as_str() {
        return text.to_owned();
    }
    if let Value::Array(blocks) = block {
        return lines(blocks.iter().map(shown));
    }
    match block.str("type") {
        "image" => "[image]".to_owned(),
        "document" | "file" => {
            let source = block.at("source");
            let data = if source.str("type") == "text" { source.str("data") } else { "" };
            lines([&tool::placeholder("file", block), data, &nested_text(source)])
        }
        "resource" => {
            let resource = block.at("resource");
            lines(["uri", "text"].map(|name| resource.str(name)))
        }
        "resource_link" => {
            lines(["title", "name", "uri", "description"].map(|name| block.str(name)))
        }
        "tool_reference" => block.str("tool_name").to_owned(),
        "search_result" | "web_search_result" => {
            let [title, url, source] = ["title", "url", "source"].map(|name| block.str(name));
            lines([title, url, source, &nested_text(block)])
        }
        kind if kind.ends_with("tool_result") => result(block),
        _ => {
            let [title, out, errors] = ["title", "stdout", "stderr"].map(|name| block.str(name));
            let text = lines([title, &words_of(block, "text"), out, errors, &nested_text(block)]);
            match block.str("type") {
                _ if !text.is_empty() => text,
                "" => structured(block),
                kind if KNOWN.contains(&kind) => text,
                _ => plain(block, true),
            }
        }
    }
}

/// Returns the text of a field, which is a text or has texts in it.
fn words_of(block: &Value, name: &str) -> String {
    lines(block.at(name).items().iter().map(shown))
}

/// Fields of a tool's result with data that are no text for the user, or that the tool's call has.
const OTHER_FIELDS: [&str; 8] = [
    "base64",
    "data",
    "newString",
    "oldString",
    "oldTodos",
    "originalFile",
    "structuredPatch",
    "usage",
];

/// Returns an object of a tool as text, with a line for each field.
fn structured(value: &Value) -> String {
    let mut lines = Vec::new();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|it| !OTHER_FIELDS.contains(&it.0.as_str())) {
                tool::arguments(value, name, &mut lines);
            }
        }
        other => tool::arguments(other, "", &mut lines),
    }
    lines.join("\n")
}

/// Returns the text of Claude Code's own record of a tool's result.
pub(super) fn program_result(result: &Value) -> String {
    let outputs = lines(["stdout", "stderr"].map(|name| result.str(name)));
    let file = result.at("file");
    let texts = [outputs, nested_text(result), file.str("content").to_owned()];
    match texts.into_iter().find(|text| !text.trim().is_empty()) {
        Some(text) => text,
        None if file.get("base64").is_some() => String::new(),
        None => structured(result),
    }
}

/// Returns whether the text of a result has an output of a tool. If the text has its first line and is longer, it
/// may have the output in another form.
pub(super) fn has_output(text: &str, output: &str) -> bool {
    let output = shown_on_screen(output);
    let output = output.trim();
    let first = output.lines().next().unwrap_or_default();
    text.contains(output) || text.len() >= output.len() && text.contains(first.trim())
}

/// Adds the texts of an error of the service to `texts`, each once. Recursion is safe, because the depth of a
/// [`Value`] is bounded.
pub(super) fn error(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let "cause" | "code" | "content" | "error" | "formatted" | "message" | "status"
                | "type" = name.as_str()
                {
                    error(value, texts);
                }
            }
        }
        Value::String(text) | Value::Scalar(text)
            if !text.trim().is_empty() && !texts.contains(text) =>
        {
            texts.push(text.clone());
        }
        _ => {}
    }
}

/// Known kinds of blocks, besides the results of tools. They may have no readable text.
const KNOWN: [&str; 18] = [
    "",
    "audio",
    "container_upload",
    "document",
    "fallback",
    "file",
    "image",
    "mcp_tool_use",
    "message",
    "redacted_thinking",
    "resource",
    "resource_link",
    "server_tool_use",
    "text",
    "thinking",
    "tool_reference",
    "tool_use",
    "voice_note",
];

/// Calls `found` with the kinds of blocks that are not known, or whose text has no known shape.
pub(super) fn unknown(blocks: &[Value], found: &mut dyn FnMut(&str)) {
    for block in blocks {
        let kind = block.str("type");
        let is_known =
            KNOWN.contains(&kind) || kind.ends_with("_result") || kind.ends_with("_error");
        let has_shape = !matches!(kind, "text" | "thinking")
            || matches!(block.at(kind), Value::Null | Value::String(_));
        if !is_known || !has_shape {
            found(kind);
        }
        unknown(block.at("content").items(), found);
    }
}

/// Returns the text of a block's content, which is a text or a list of blocks. Recursion is safe, because the
/// depth of a [`Value`] is bounded.
fn nested_text(block: &Value) -> String {
    words_of(block, "content")
}

/// Returns the text of a tool's result, without the reminders that Claude Code appends.
pub(super) fn result(block: &Value) -> String {
    let text = lines(block.at("content").items().iter().map(|item| match item {
        Value::Object(_) if item.str("type").is_empty() => structured(item),
        item => shown(item),
    }));
    let text = shown_on_screen(&text);
    let mut plain = text.trim_end();
    while let Some(before) = plain.strip_suffix("</system-reminder>")
        && let Some(start) = before.rfind("<system-reminder>")
        && !plain[..start].trim().is_empty()
    {
        plain = plain[..start].trim_end();
    }
    if plain.len() == text.trim_end().len() { text.into_owned() } else { plain.to_owned() }
}

/// Returns the role and the text of a prompt. The role is `tool` for the output of a command, and `system` for
/// what the program or another agent said in the user's place.
pub(super) fn typed(text: &str) -> (&'static str, String) {
    let start = text.trim_start();
    if start.starts_with("<command-name>") || start.starts_with("<command-message>") {
        let name = inner_element(text, "command-name").unwrap_or_default().trim();
        let slash = if name.starts_with('/') || name.is_empty() { "" } else { "/" };
        let arguments = inner_element(text, "command-args").unwrap_or_default().trim();
        return ("user", format!("{slash}{name} {arguments}").trim().to_owned());
    }
    if start.starts_with("<bash-input>")
        && let Some((command, after)) = outer_element(start, "bash-input")
    {
        let command = format!("! {}", command.trim());
        return ("user", lines([command, outputs(after, "bash")]));
    }
    for kind in ["bash", "local-command"] {
        if ["stdout", "stderr"].iter().any(|name| start.starts_with(&format!("<{kind}-{name}>"))) {
            return ("tool", outputs(start, kind));
        }
    }
    if start.starts_with("<task-notification>") {
        return ("tool", text.to_owned());
    }
    if let Some(said) = of_teammates(start) {
        return ("system", said);
    }
    if start.starts_with(CONTINUED) || is_of_program(start) {
        return ("system", start.to_owned());
    }
    if is_injected(start) {
        return ("user", String::new());
    }
    ("user", without_elements(after_interruption(text)).to_owned())
}

/// The beginning of the summary from which a session continues.
pub(super) const CONTINUED: &str = "This session is being continued from a previous conversation";

/// The beginnings of what Claude Code, a hook, a schedule or another session told the model in the user's place.
const OF_PROGRAM: [&str; 10] = [
    "Another Claude session sent a message:",
    "Stop hook feedback:",
    "[SYSTEM NOTIFICATION - NOT USER INPUT]",
    "[workflow harness - computed task]",
    "<cross-session-message",
    "<mcp-resource-update",
    "<remote-review",
    "<task-notification>",
    "<tick>",
    "<tick ",
];

fn is_of_program(text: &str) -> bool {
    OF_PROGRAM.iter().any(|start| text.starts_with(start))
}

/// The beginning of the heading of a message from another agent of a team.
pub(super) const OF_TEAMMATE: &str = "[teammate: ";

/// Returns the messages of other agents of a team if a text begins with one, each below the name of its writer.
fn of_teammates(text: &str) -> Option<String> {
    let mut said = Vec::new();
    let mut rest = text;
    while let Some(inside) = rest.trim_start().strip_prefix("<teammate-message")
        && let Some((attributes, after)) = inside.split_once('>')
        && let Some((message, after)) = after.split_once("</teammate-message>")
    {
        let named = attributes.split_once("teammate_id=\"").and_then(|(_, id)| id.split_once('"'));
        let name = named.map_or("", |(name, _)| name);
        said.push(lines([&*format!("{OF_TEAMMATE}{name}]"), message.trim()]));
        rest = after;
    }
    if said.is_empty() {
        return None;
    }
    said.push(rest.trim().to_owned());
    Some(lines(said))
}

/// Returns the user's words without the elements that Claude Code added before or after them. An element in
/// the middle of the words was typed by the user, for example in a log.
fn without_elements(text: &str) -> &str {
    let mut plain = text;
    'before: loop {
        for name in INJECTED {
            if let Some(rest) = element(plain.trim_start(), name) {
                plain = rest;
                continue 'before;
            }
        }
        break;
    }
    'below: loop {
        for name in INJECTED {
            if let Some(before) = plain.trim_end().strip_suffix(&format!("</{name}>"))
                && let Some(at) = before.rfind(&format!("<{name}>"))
                && (at == 0 || before[..at].ends_with('\n'))
            {
                plain = &plain[..at];
                continue 'below;
            }
        }
        break;
    }
    if plain.len() == text.len() { text.trim_start_matches('\n') } else { plain.trim() }
}

/// Returns the text after the element with which a text begins.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let inside = text.strip_prefix('<')?.strip_prefix(name)?.strip_prefix('>')?;
    Some(inside.split_once(&format!("</{name}>"))?.1)
}

/// The beginning of the note that Claude Code writes when the user interrupts a request. More words
/// may follow before the closing bracket.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Returns the note of an interruption with which a text begins, or an empty text.
pub(super) fn interruption(text: &str) -> &str {
    let text = text.trim_start();
    match text.find(']') {
        Some(end) if text.starts_with(INTERRUPTED) => &text[..=end],
        _ => "",
    }
}

/// Returns the words after the note of an interruption, if a text begins with one.
fn after_interruption(text: &str) -> &str {
    let note = text.trim_start().strip_prefix(INTERRUPTED);
    note.and_then(|note| note.split_once(']')).map_or(text, |(_, words)| words)
}

/// The elements that Claude Code adds to the user's words.
const INJECTED: [&str; 7] = [
    "system-reminder",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "local-command-caveat",
    "user-prompt-submit-hook",
    "new-diagnostics",
];

/// Returns whether Claude Code wrote the whole text.
pub(super) fn is_injected(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(INTERRUPTED) && after_interruption(text).trim().is_empty()
        || text.starts_with("Caveat: The messages below were generated by the user while running")
        || is_of_program(text)
}

/// Returns what a command wrote to standard output and to standard error.
fn outputs(text: &str, kind: &str) -> String {
    let (out, after) = outer_element(text, &format!("{kind}-stdout")).unwrap_or(("", text));
    let (errors, _) = outer_element(after, &format!("{kind}-stderr")).unwrap_or_default();
    lines([shown_on_screen(out.trim()), shown_on_screen(errors.trim())])
}

/// Returns the text from the first to the last tag of an element, which may have such tags in it, and the text
/// after the element.
fn outer_element<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.rsplit_once(&format!("</{name}>"))
}

/// Returns the text between the tags of an element.
fn inner_element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let end = rest.find(&format!("</{name}>"))?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the time grows linearly with the number of elements. Quadratic time takes minutes.
    #[test]
    fn many_elements_in_one_prompt() {
        let many = "<system-reminder>x</system-reminder>word ".repeat(200_000);
        assert_eq!(
            typed(&many).1.len(),
            many.trim().len() - "<system-reminder>x</system-reminder>".len()
        );
        assert_eq!(typed(&"<ide_selection></ide_selection>".repeat(200_000)).1, "");
        let open = "<ide_selection>\n".repeat(200_000);
        assert_eq!(typed(&open).1, open);
        let closed = "\n</ide_selection>".repeat(200_000);
        assert_eq!(typed(&closed).1, closed.trim_start());
    }

    #[test]
    fn what_the_user_typed() {
        for (text, expected) in [
            ("plain <b>words</b>", ("user", "plain <b>words</b>")),
            ("  indented\n", ("user", "  indented\n")),
            (
                "<command-name>/review</command-name>\n <command-message>review</command-message>\n <command-args>the diff</command-args>",
                ("user", "/review the diff"),
            ),
            (
                "<command-message>x is running…</command-message>\n<command-name>x</command-name>",
                ("user", "/x"),
            ),
            ("<bash-input>ls -l</bash-input>", ("user", "! ls -l")),
            ("<bash-input>ls</bash-input><bash-stdout>a</bash-stdout>", ("user", "! ls\na")),
            (
                "<bash-stdout>a </bash-stdout> b</bash-stdout><bash-stderr>c</bash-stderr>",
                ("tool", "a </bash-stdout> b\nc"),
            ),
            ("<bash-stderr>c</bash-stderr>", ("tool", "c")),
            ("<bash-stdout>a\nb</bash-stdout><bash-stderr></bash-stderr>", ("tool", "a\nb")),
            (
                "<local-command-stdout>\u{1b}[1mset\u{1b}[22m</local-command-stdout>",
                ("tool", "set"),
            ),
            ("<local-command-stdout></local-command-stdout>", ("tool", "")),
            ("[Request interrupted by user for tool use]", ("user", "")),
            ("<system-reminder>\nhidden\n</system-reminder>", ("user", "")),
            ("<ide_opened_file>a.rs</ide_opened_file>\nWhy?", ("user", "Why?")),
            ("Why?\n<system-reminder>x</system-reminder>", ("user", "Why?")),
            ("What does <system-reminder> mean?", ("user", "What does <system-reminder> mean?")),
            (
                "a\n<system-reminder>b</system-reminder> c",
                ("user", "a\n<system-reminder>b</system-reminder> c"),
            ),
            ("[Request interrupted by user]go on", ("user", "go on")),
            (
                "<teammate-message teammate_id=\"mole\" color=\"red\">\ndig\n</teammate-message>\n\n<teammate-message teammate_id=\"owl\">look</teammate-message>",
                ("system", "[teammate: mole]\ndig\n[teammate: owl]\nlook"),
            ),
            ("<teammate-message> is a tag", ("user", "<teammate-message> is a tag")),
            ("Stop hook feedback:\n- no tests", ("system", "Stop hook feedback:\n- no tests")),
        ] {
            let (role, found) = typed(text);
            assert_eq!((role, found.as_str()), expected, "{text:?}");
        }
    }
}
