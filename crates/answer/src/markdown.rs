//! Messages as Markdown, for files that people keep.

use super::clock::Clock;
use verbatim_base::model::Hit;
use verbatim_text::{screen, snippet};

/// Appends a message: a heading with its number, its role and its time, then its text without control sequences.
/// `remark` ends the heading.
pub fn add_message(text: &mut String, number: u32, message: &Hit<'_>, remark: &str, clock: Clock) {
    let role = if message.role.is_empty() { "unknown" } else { &message.role };
    let time = message.time.and_then(|time| clock.minute(time));
    let time = time.map_or_else(String::new, |time| format!(" · {time}"));
    let content = screen::written(snippet::trim(&message.content));
    text.push_str(&format!("\n## {number} · {role}{time}{remark}\n\n{content}\n"));
}
