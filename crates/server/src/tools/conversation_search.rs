//! `conversation_search`: messages that contain a text, newest first.

use std::fmt::{self, Write};
use std::{collections::BTreeSet, ops::ControlFlow};

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::error::{Error, Result};
use super::tool::{Answer, Effect, Options, Tool, ToolCall, object};
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_engine::{FallbackReason, Rendered, SearchPlan, SourceKind};
use verbatim_text::date::{self, Edge};
use verbatim_text::snippet;

/// The maximum number of characters shown of a message.
const SHOWN_CONTENT: usize = 2000;

const DEFAULT_LIMIT: usize = 50;

const MAX_LIMIT: usize = 200;

const ROLES: [&str; 3] = ["user", "assistant", "tool"];

const ARGUMENTS: [&str; 5] = ["query", "roles", "start_date", "end_date", "limit"];

/// The tool that finds the newest messages with one exact text, in the export only.
pub const TOOL: Tool = Tool {
    name: "conversation_search",
    title: "Search conversations",
    description: "Search prior conversation history (canonical ChatGPT export). Hybrid-style: text match on \
                  content and titles. Optional filters: roles (user/assistant/tool), start_date and end_date \
                  (ISO 8601 inclusive). Returns matching messages with timestamps and content.",
    use_for: "newest messages that hold one exact text (not questions)",
    effect: Effect::Reads,
    searches: &[SourceKind::Export],
    schema,
    output_schema: None,
    run: search,
    refuse,
};

fn schema() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Text to match, as SQL LIKE '%query%' (% and _ are wildcards, A-Z in either case)",
            },
            "roles": {
                "type": "array",
                "items": {"type": "string", "enum": ROLES},
                "description": "Only messages with these roles",
            },
            "start_date": {
                "type": "string",
                "description": "ISO 8601; UTC if no offset is given",
            },
            "end_date": {
                "type": "string",
                "description": "The same; a date alone means the end of that day",
            },
            "limit": {
                "type": "integer",
                "default": DEFAULT_LIMIT,
                "description": "1 to 200",
            },
        },
        "additionalProperties": false,
    }))
}

/// Returns an error as an ordinary answer, because the tool's contract requires this.
fn refuse(_: &ToolCall<'_>, error: &Error) -> Answer {
    match error {
        Error::Contract(text) => text.clone().into(),
        Error::Engine(inner) if inner.is_not_found() => error.to_string().into(),
        error => format!("Error: {error}").into(),
    }
}

fn search(tool_call: &ToolCall<'_>) -> Result<Answer> {
    let request = request(tool_call.options, &tool_call.arguments)?;
    let mut text = String::new();
    let mut sink = Rendered::new(
        |hit: Hit<'_>| {
            let mut message = String::new();
            add_message(&mut message, &hit);
            Some(message)
        },
        |message: String| {
            if !text.is_empty() {
                text.push_str("\n\n---\n\n");
            }
            text.push_str(&message);
            ControlFlow::Continue(())
        },
    );
    let plan =
        tool_call.engine.all_sources().export()?.search(&request, tool_call.call, &mut sink)?;
    if text.is_empty() {
        text.push_str("No matching messages.");
    }
    let log = match plan {
        SearchPlan::ByLike { why: FallbackReason::Unreadable(reason), .. } => {
            Some(format!("{}: answered without its index: {reason}", TOOL.name))
        }
        _ => None,
    };
    Ok(Answer { log, ..text.into() })
}

fn request(options: &Options, given: &Arguments<'_>) -> Result<Request> {
    given.only(&ARGUMENTS)?;
    let text = given.string("query", "a string")?.unwrap_or_default();
    let roles = given.strings("roles", "an array of \"user\", \"assistant\" and \"tool\"")?;
    let roles: BTreeSet<&str> = roles.into_iter().collect();
    let invalid: BTreeSet<&str> =
        roles.iter().filter(|role| !ROLES.contains(role)).copied().collect();
    if !invalid.is_empty() {
        let invalid = PythonList(&invalid).to_string();
        let invalid = snippet::echo(&invalid);
        let text = format!("Invalid role(s): {invalid}. Allowed: user, assistant, tool.");
        return Err(Error::Contract(text));
    }
    let since = instant(given, "start_date", Edge::Start)?;
    let until = instant(given, "end_date", Edge::End)?;
    let limit = given.integer("limit", "an integer from 1 to 200", 1..=MAX_LIMIT)?;
    Ok(Request {
        text: snippet::trim(text).to_owned(),
        roles: roles.into_iter().map(str::to_owned).collect(),
        since,
        until,
        limit: Some(limit.unwrap_or(DEFAULT_LIMIT)),
        case_sensitive: options.case_sensitive,
        raw_content: options.raw_content,
        ..Request::default()
    })
}

fn instant(given: &Arguments<'_>, name: &str, edge: Edge) -> Result<Option<Instant>> {
    let takes = "an ISO 8601 date or date-time as a string";
    let Some(text) = given.string(name, takes)? else { return Ok(None) };
    match date::parse_iso(text, edge) {
        Some(instant) => Ok(Some(instant)),
        None => {
            let text = snippet::echo(text);
            let text = format!("{name} is not an ISO 8601 date or date-time: \"{text}\"");
            Err(Error::Refused(text))
        }
    }
}

/// Adds `[time] role (conv: title)` and the content below.
fn add_message(out: &mut String, hit: &Hit) {
    let time = hit.time.map_or_else(|| "(no time)".to_owned(), clock);
    let role = if hit.role.is_empty() { "unknown" } else { &hit.role };
    let title = match snippet::trim(&hit.title) {
        "" => snippet::cut(&hit.conversation_id, 8).unwrap_or(&hit.conversation_id),
        title => title,
    };
    let content = snippet::trim(&hit.content);
    let (content, dots) = match snippet::cut(content, SHOWN_CONTENT) {
        Some(start) => (start, "..."),
        None => (content, ""),
    };
    write!(out, "[{time}] {role} (conv: {title})\n{content}{dots}").expect("a String takes all");
}

/// Returns the minute in UTC, or the number of seconds if the year has more than four digits. A number
/// that is too large for an [`Instant`] is not known any more.
fn clock(instant: Instant) -> String {
    if matches!(instant.seconds, i64::MIN | i64::MAX) {
        return "(no time)".to_owned();
    }
    date::to_minute(instant)
        .filter(|minute| minute.len() == "YYYY-MM-DD HH:MM".len())
        .unwrap_or_else(|| instant.to_decimal())
}

/// Strings that are shown as a Python list, because the contract's error text has that format.
struct PythonList<'a>(&'a BTreeSet<&'a str>);

impl fmt::Display for PythonList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (at, text) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            python_string(f, text)?;
        }
        f.write_char(']')
    }
}

fn python_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    f.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c == quote => write!(f, "\\{c}")?,
            c if is_printable(c) => f.write_char(c)?,
            c => match u32::from(c) {
                code @ ..=0xFF => write!(f, "\\x{code:02x}")?,
                code @ 0x100..=0xFFFF => write!(f, "\\u{code:04x}")?,
                code => write!(f, "\\U{code:08x}")?,
            },
        }
    }
    f.write_char(quote)
}

/// Returns whether Python prints a character unescaped; Rust's escaping gives the same result.
fn is_printable(character: char) -> bool {
    // The letter `a` comes first, because Rust escapes a combining mark at the beginning of a text.
    let text = ['a', character].iter().collect::<String>();
    matches!(character, '"' | '\'') || text.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_base::call::Call;
    use verbatim_engine::{Config, Engine};

    fn parsed(json: Value) -> Result<Request> {
        let given = Arguments { tool: TOOL.name, values: &object(json) };
        request(&Options::default(), &given)
    }

    fn refused(json: Value) -> String {
        let engine = Engine::new(Config::default());
        let answer = TOOL.call(&engine, &Options::default(), &object(json), &Call::default());
        answer.text
    }

    fn taken(json: Value) -> Request {
        parsed(json).expect("taken")
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (json, text) in [
            (json!({"limit": "many"}), r#"Error: limit takes an integer from 1 to 200; got "many""#),
            (json!({"limit": 20.5}), "Error: limit takes an integer from 1 to 200; got 20.5"),
            (json!({"limit": true}), "Error: limit takes an integer from 1 to 200; got true"),
            (json!({"limit": "inf"}), r#"Error: limit takes an integer from 1 to 200; got "inf""#),
            (json!({"query": 5}), "Error: query takes a string; got 5"),
            (
                json!({"roles": "user"}),
                r#"Error: roles takes an array of "user", "assistant" and "tool"; got "user""#,
            ),
            (
                json!({"roles": ["user", 1]}),
                r#"Error: roles takes an array of "user", "assistant" and "tool"; got ["user",1]"#,
            ),
            (
                json!({"start_date": 2024}),
                "Error: start_date takes an ISO 8601 date or date-time as a string; got 2024",
            ),
            (
                json!({"start_date": "yesterday"}),
                "Error: start_date is not an ISO 8601 date or date-time: \"yesterday\"",
            ),
            (
                json!({"end_date": " "}),
                "Error: end_date is not an ISO 8601 date or date-time: \" \"",
            ),
            (
                json!({"max": 1}),
                "Error: conversation_search has no argument \"max\"; it takes query, roles, start_date, \
                 end_date, limit",
            ),
            (
                json!({"roles": ["system", "user", "it's", "a\"'b", "x", "x", "\u{200b}\t\u{e9}"]}),
                "Invalid role(s): ['a\"\\'b', \"it's\", 'system', 'x', '\\u200b\\té']. \
                 Allowed: user, assistant, tool.",
            ),
        ]
        .map(|(json, text)| (refused(json), text))
        {
            assert_eq!(json, text);
        }
        assert!(refused(json!({"query": vec!["x"; 99]})).ends_with("…"));
    }

    #[test]
    fn what_is_taken() {
        assert_eq!(taken(json!({})), Request { limit: Some(50), ..Request::default() });
        let nothing = json!({"query": null, "roles": null, "start_date": null, "end_date": null, "limit": null});
        assert_eq!(taken(nothing), taken(json!({})));
        let empty =
            json!({"query": "", "roles": "", "start_date": "", "end_date": "", "limit": ""});
        assert_eq!(taken(empty), taken(json!({})));
        for (limit, expected) in [
            (json!(20), 20),
            (json!(20.0), 20),
            (json!("20"), 20),
            (json!(" 2e1 "), 20),
            (json!(0), 1),
            (json!(-5), 1),
            (json!(201), 200),
            (json!(u64::MAX), 200),
            (json!(1e300), 200),
        ] {
            assert_eq!(taken(json!({"limit": limit})).limit, Some(expected), "{limit}");
        }
        assert!(taken(json!({"roles": []})).roles.is_empty());
        assert_eq!(taken(json!({"roles": ["user", "tool", "user"]})).roles, ["tool", "user"]);
        let range = taken(json!({"start_date": "2024-01-15", "end_date": "2024-01-15"}));
        let since = range.since.expect("a start");
        let until = range.until.expect("an end");
        assert_eq!((since.seconds, since.nanos), (1_705_276_800, 0));
        assert_eq!((until.seconds, until.nanos), (1_705_363_199, 999_000_000));
    }

    #[test]
    fn blocks() {
        let mut hit = Hit {
            message_id: "".into(),
            conversation_id: "0123456789".into(),
            title: " \u{1f} ".into(),
            role: "".into(),
            time: None,
            content: format!(" {}\n", "é".repeat(2000)).into(),
            position: None,
        };
        let shown = |hit: &Hit| {
            let mut text = String::new();
            add_message(&mut text, hit);
            text
        };
        assert_eq!(
            shown(&hit),
            format!("[(no time)] unknown (conv: 01234567)\n{}", "é".repeat(2000))
        );
        hit.content += "x";
        hit.title = " A title ".into();
        hit.role = "user".into();
        for (seconds, time) in [
            (1_700_000_000, "2023-11-14 22:13"),
            (-1, "1969-12-31 23:59"),
            (1_700_000_000_000, "1700000000000"),
            (i64::MAX, "(no time)"),
        ] {
            hit.time = Some(Instant { seconds, nanos: 0 });
            let start = format!("[{time}] user (conv: A title)\nééé");
            assert!(shown(&hit).starts_with(&start), "{}", shown(&hit));
        }
        // The shown content is cut by characters, and a line break counts as one character.
        assert!(shown(&hit).ends_with("é..."), "{}", shown(&hit).len());
    }
}
