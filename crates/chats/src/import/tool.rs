//! The texts of tool calls, tool results and files.

use super::json::Value;
use verbatim_text::parts::{CALL, called_by};

/// The beginnings of lines that name a file in a call: lines of arguments and of patches.
const FILES: [&str; 7] = [
    "file_path: ",
    "notebook_path: ",
    "path: ",
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Returns the names of the tools that a message calls, in order and with repeats.
pub fn called(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(called_by)
}

/// The first line of a patch, and the name of the program that applies patches.
const PATCH: &str = "*** Begin Patch";
const PATCH_PROGRAM: &str = "apply_patch";

/// Returns the paths that the tool calls of a message name. After an argument of several lines, only lines of
/// patches count, because such an argument may be the content of a file.
pub fn named_files(text: &str) -> impl Iterator<Item = &str> {
    // Whether the line is in an argument of one line, whether it may be the first line of a patch, and
    // whether it is in a patch.
    let mut is_argument = false;
    let mut may_be_patch = false;
    let mut is_patch = false;
    let lines = text.lines().skip_while(|line| called_by(line).is_none());
    lines.filter_map(move |line| {
        if called_by(line).is_some() {
            (is_argument, may_be_patch, is_patch) = (true, true, false);
            return None;
        }
        is_patch |= may_be_patch && line == PATCH;
        let has_more_lines = line.strip_suffix(':').is_some_and(|name| !name.contains([' ', ':']));
        may_be_patch = is_argument && has_more_lines || line.contains(PATCH_PROGRAM);
        is_argument &= !has_more_lines && !line.is_empty();
        FILES.iter().find_map(|start| {
            let is_wanted =
                if start.starts_with("*** ") { is_patch } else { is_argument && !is_patch };
            if is_wanted { line.strip_prefix(start) } else { None }
        })
    })
}

/// Returns a call as text: the tool's name in brackets, what is said about the call, and a line for each
/// argument.
pub(super) fn call(name: &str, said: &[&str], input: &Value) -> String {
    let name = if name.is_empty() { "unnamed" } else { name };
    let mut lines = vec![format!("{CALL}{name}]")];
    lines.extend(said.iter().filter(|text| !text.is_empty()).map(|text| (*text).to_owned()));
    arguments(input, "", &mut lines);
    lines.join("\n")
}

/// Adds a tool's arguments to `lines`, with their names.
///
/// Recursion is safe, because the depth of a [`Value`] is bounded.
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

/// Joins the texts that are not empty with line breaks.
pub(super) fn lines(texts: impl IntoIterator<Item: AsRef<str>>) -> String {
    joined("\n", texts)
}

/// Joins the texts that are not empty.
pub(super) fn joined(separator: &str, texts: impl IntoIterator<Item: AsRef<str>>) -> String {
    let mut joined = String::new();
    for text in texts.into_iter().filter(|text| !text.as_ref().is_empty()) {
        joined.extend([if joined.is_empty() { "" } else { separator }, text.as_ref()]);
    }
    joined
}

/// Returns `[kind: name]` for a block that is a file, or `[kind]` if the block has no name.
pub(super) fn placeholder(kind: &str, block: &Value) -> String {
    named(kind, block, &["title", "file_name", "filename", "name"])
}

/// Returns `[kind: name]` with the first of these fields that is not empty as the name; else `[kind]`.
pub(super) fn named(kind: &str, block: &Value, fields: &[&str]) -> String {
    let name = fields.iter().map(|field| block.str(field)).find(|name| !name.is_empty());
    name.map_or_else(|| format!("[{kind}]"), |name| format!("[{kind}: {name}]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::json::Raw;

    #[test]
    fn calls_line_by_line() {
        let input = Raw::new(br#"{"command":"ls\n-l","n":[1,2],"o":{"k":"v"},"none":null}"#);
        let input = input.value().unwrap();
        assert_eq!(call("Bash", &[], &input), "[tool: Bash]\ncommand:\nls\n-l\nn: 1\nn: 2\nk: v");
        assert_eq!(call("", &[], &Value::Null), "[tool: unnamed]");
    }

    #[test]
    fn tools_and_files_are_found_in_calls() {
        let input = Raw::new(br#"{"file_path":"/src/a b.rs","content":"x\npath: c"}"#);
        let text = format!(
            "Let me see path: d\npath: e\n\n{}",
            call("Write", &[], &input.value().unwrap())
        );
        let patch =
            "[tool: apply_patch]\n*** Begin Patch\n*** Update File: src/cart.ts\n*** End Patch";
        let text = format!("{text}\n\n{patch}\nsaid [tool: Bash] in a sentence");
        assert_eq!(called(&text).collect::<Vec<_>>(), ["Write", "apply_patch"]);
        let files: Vec<&str> = named_files(&text).collect();
        assert_eq!(files, ["/src/a b.rs", "src/cart.ts"]);
        for (input, expected) in [
            (r#"{"file_path":"a","old_string":"x\npath: b\n*** Add File: c","n":1}"#, vec!["a"]),
            (
                r#"{"command":["sh","apply_patch <<E\n*** Begin Patch\n*** Add File: d\n+path: e"]}"#,
                vec!["d"],
            ),
            (r#"{"input":"*** Begin Patch\n*** Delete File: f\n*** End Patch"}"#, vec!["f"]),
            (r#"{"path":"g","paths":["h"]}"#, vec!["g"]),
        ] {
            let call = call("Tool", &[], &Raw::new(input.as_bytes()).value().unwrap());
            assert_eq!(named_files(&call).collect::<Vec<_>>(), expected, "{call}");
        }
        assert_eq!(named_files("path: a").count() + called("").count(), 0);
    }
}
