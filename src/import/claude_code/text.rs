//! The texts in the blocks of Claude Code's messages, and which of them the user typed.

use super::super::{
    json::Value,
    tool::{self, joined},
};

/// Returns the text of a block that the model wrote.
pub(super) fn assistant_block(block: &Value) -> String {
    match block.str("type") {
        "thinking" => match block.str("thinking").trim() {
            "" => String::new(),
            thinking => format!("[thinking]\n{thinking}"),
        },
        "redacted_thinking" => String::new(),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            tool::call(block.str("name"), block.get("input").unwrap_or(&Value::Null))
        }
        _ => shown(block),
    }
}

/// Returns the text of a block, with a placeholder for an image or a file.
pub(super) fn shown(block: &Value) -> String {
    if let Some(text) = block.as_str() {
        return text.to_owned();
    }
    match block.str("type") {
        "image" => "[image]".to_owned(),
        "document" | "file" => {
            let name = ["title", "file_name", "name"].map(|name| block.str(name));
            let name = name.into_iter().find(|name| !name.is_empty());
            let placeholder = name.map_or("[file]".to_owned(), |name| format!("[file: {name}]"));
            let source = block.get("source").filter(|source| source.str("type") == "text");
            joined("\n", &[placeholder.as_str(), source.map_or("", |source| source.str("data"))])
        }
        "tool_reference" => block.str("tool_name").to_owned(),
        "search_result" | "web_search_result" => {
            joined("\n", &[block.str("title"), block.str("url"), block.str("source")])
        }
        kind if kind.ends_with("tool_result") => result(block),
        _ => joined("\n", &["title", "text", "content"].map(|name| block.str(name))),
    }
}

/// Returns the text of a tool's result, without the reminders that the program adds below it.
pub(super) fn result(block: &Value) -> String {
    let content = block.get("content").map(Value::items).unwrap_or_default();
    let texts: Vec<String> = content.iter().map(shown).collect();
    let text = joined("\n", &texts);
    let mut plain = text.trim_end();
    while let Some(before) = plain.strip_suffix("</system-reminder>")
        && let Some(start) = before.rfind("<system-reminder>")
        && !plain[..start].trim().is_empty()
    {
        plain = plain[..start].trim_end();
    }
    if plain.len() == text.trim_end().len() { text } else { plain.to_owned() }
}

/// Returns the role and the text of a prompt that the user typed; the output of a command has the role
/// `tool`.
pub(super) fn typed(text: &str) -> (&'static str, String) {
    let start = text.trim_start();
    if start.starts_with("<command-name>") || start.starts_with("<command-message>") {
        let name = inner(text, "command-name").unwrap_or_default().trim();
        let slash = if name.starts_with('/') || name.is_empty() { "" } else { "/" };
        let arguments = inner(text, "command-args").unwrap_or_default().trim();
        return ("user", format!("{slash}{name} {arguments}").trim().to_owned());
    }
    if let Some(command) = inner(start, "bash-input").filter(|_| start.starts_with("<bash-input>"))
    {
        return ("user", format!("! {}", command.trim()));
    }
    for names in [["bash-stdout", "bash-stderr"], ["local-command-stdout", "local-command-stderr"]]
    {
        if names.iter().any(|name| start.starts_with(&format!("<{name}>"))) {
            let outputs = names.map(|name| inner(text, name).unwrap_or_default().trim());
            return ("tool", tool::uncoloured(&joined("\n", &outputs)));
        }
    }
    if start.starts_with("<task-notification>") {
        return ("tool", text.to_owned());
    }
    if is_injected(start) {
        return ("user", String::new());
    }
    let mut text = text;
    let mut plain = String::new();
    // Cut out the elements that the program added to the user's words.
    while let Some((from, to)) = INJECTED
        .iter()
        .filter_map(|name| {
            let from = text.find(&format!("<{name}>"))?;
            let close = format!("</{name}>");
            Some((from, from + text[from..].find(&close)? + close.len()))
        })
        .min()
    {
        plain.push_str(text[..from].trim_end_matches('\n'));
        text = &text[to..];
    }
    if plain.is_empty() {
        return ("user", text.trim_start_matches('\n').to_owned());
    }
    plain.push_str(text);
    ("user", plain.trim().to_owned())
}

/// Elements that the program adds to the user's words.
const INJECTED: [&str; 7] = [
    "system-reminder",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "local-command-caveat",
    "user-prompt-submit-hook",
    "new-diagnostics",
];

/// Returns whether the program wrote the whole text.
pub(super) fn is_injected(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("[Request interrupted by user")
        || text.starts_with("Caveat: The messages below were generated by the user while running")
        || text.starts_with("<task-notification>")
}

/// Returns the text between the tags of an element.
fn inner<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let end = rest.find(&format!("</{name}>"))?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            let (role, found) = typed(text);
            assert_eq!((role, found.as_str()), expected, "{text:?}");
        }
    }
}
