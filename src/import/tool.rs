//! The text of calls and results of tools.

use super::json::Value;

/// Returns a call as text: the tool's name in brackets, and a line for each argument.
pub(super) fn call(name: &str, input: &Value) -> String {
    let name = if name.is_empty() { "unnamed" } else { name };
    let mut lines = vec![format!("[tool: {name}]")];
    arguments(input, "", &mut lines);
    lines.join("\n")
}

/// Adds a tool's arguments to `lines`, with their names.
///
/// The depth of a [`Value`] is bounded, so this may recurse.
pub(super) fn arguments(input: &Value, name: &str, lines: &mut Vec<String>) {
    match input {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                if name != "version_uuid" {
                    arguments(value, name, lines);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                arguments(item, name, lines);
            }
        }
        Value::Scalar(text) | Value::String(text) => {
            let gap = if text.contains('\n') { ":\n" } else { ": " };
            lines.push(if name.is_empty() { text.clone() } else { format!("{name}{gap}{text}") });
        }
    }
}

pub(super) fn joined(separator: &str, texts: &[impl AsRef<str>]) -> String {
    let texts: Vec<&str> =
        texts.iter().map(AsRef::as_ref).filter(|text| !text.is_empty()).collect();
    texts.join(separator)
}

/// Returns a text without the escape sequences that colour a terminal.
pub(super) fn uncoloured(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(sequence) = rest.strip_prefix('[') {
            let end = sequence.find(|c: char| ('@'..='~').contains(&c));
            rest = end.map_or("", |end| &sequence[end + 1..]);
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::json::Raw;

    #[test]
    fn calls_line_by_line() {
        let input = Raw::new(br#"{"command":"ls\n-l","n":[1,2],"o":{"k":"v"},"none":null}"#);
        let input = input.value().unwrap();
        assert_eq!(call("Bash", &input), "[tool: Bash]\ncommand:\nls\n-l\nn: 1\nn: 2\nk: v");
        assert_eq!(call("", &Value::Null), "[tool: unnamed]");
    }

    #[test]
    fn colours_go() {
        assert_eq!(uncoloured("\u{1b}[38;2;1;2;3mred\u{1b}[0m, \u{1b}[1"), "red, ");
        assert_eq!(uncoloured("plain \u{1b}x"), "plain x");
    }
}
