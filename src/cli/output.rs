//! The output and the exit codes of commands.

use std::io::{self, Write};

use serde::Serialize;

use crate::{
    model::Hit,
    text::{date, snippet},
};

/// The exit code if something was found or done.
pub(super) const FOUND: u8 = 0;

/// The exit code if nothing was found.
pub(super) const NOTHING: u8 = 1;

/// Returns a text without characters that control a terminal.
pub(super) fn harmless(text: &str) -> String {
    let plain = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{FFFD}' } else { c };
    text.chars().map(plain).collect()
}

/// Returns `""` for one and `"s"` for any other number.
pub(super) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Asks for a yes on standard error; an empty line is a yes.
pub(super) fn confirmed(question: &str) -> io::Result<bool> {
    let mut log = io::stderr();
    write!(log, "{question} [Y/n] ")?;
    log.flush()?;
    let mut line = String::new();
    // The end of the input is no yes.
    let is_answer = io::stdin().read_line(&mut line)? > 0;
    Ok(is_answer && ["", "y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}

/// Returns the minute at which a message was written, for a person.
pub(super) fn clock(hit: &Hit) -> String {
    hit.time.and_then(date::to_minute).unwrap_or_else(|| "(no time)".to_owned())
}

/// Returns the role of a message, for a person.
pub(super) fn role(hit: &Hit) -> String {
    if hit.role.is_empty() { "unknown".to_owned() } else { harmless(&hit.role) }
}

/// Returns the title of a message's conversation on one line; its id if it has no title.
pub(super) fn title(hit: &Hit) -> String {
    let title = match snippet::trim(&hit.title) {
        "" => &hit.conversation_id,
        title => title,
    };
    title.replace('\n', " ")
}

/// A message as `--json` prints it.
#[derive(Serialize)]
pub(super) struct JsonHit<'a> {
    message_id: &'a str,
    conversation_id: &'a str,
    title: &'a str,
    role: &'a str,
    time: Option<String>,
    content: &'a str,
    position: Option<i64>,
}

impl JsonHit<'_> {
    pub(super) fn of<'a>(hit: &'a Hit<'_>) -> JsonHit<'a> {
        JsonHit {
            message_id: &hit.message_id,
            conversation_id: &hit.conversation_id,
            title: &hit.title,
            role: &hit.role,
            time: hit.time.and_then(date::to_iso),
            content: &hit.content,
            position: hit.position,
        }
    }
}

pub(super) fn json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}
