//! The common parts of the answers of all modes: compact and verbose JSON, and the fields of a conversation.

use serde::Serialize;

use crate::tools::tool::{Answer, Options, ToolCall, to_json};
use crate::tools::{bound, error::Result};
use verbatim_engine::{About, Engine, SourceKind};
use verbatim_text::snippet;

pub(super) const MOST_IN_ANSWER: usize = 50;

const LONGEST_TITLE: usize = 500;

const LONGEST_SUMMARY: usize = 300;

/// Returns an answer. The options choose compact or verbose text; the structured data is always verbose.
pub(super) fn answer(
    options: &Options,
    compact: &impl Serialize,
    verbose: &impl Serialize,
) -> Answer {
    let text = if options.verbose { json(verbose, options) } else { json(compact, options) };
    let structured = serde_json::to_value(verbose).expect("strings and numbers are JSON");
    Answer { structured: Some(structured), ..text.into() }
}

pub(super) fn json(value: &impl Serialize, options: &Options) -> String {
    if options.verbose {
        serde_json::to_string_pretty(value).expect("strings, numbers and lists of them are JSON")
    } else {
        to_json(value)
    }
}

/// Returns a conversation's summary: the saved summary in full, else a sentence of the conversation
/// on one line.
pub(super) fn summary(tool_call: &ToolCall<'_>, about: &About) -> Result<Option<String>> {
    let saved = match about.source {
        SourceKind::Threads => tool_call.engine.memory().saved_summary(&about.id)?,
        SourceKind::Export | SourceKind::Archive => None,
    };
    Ok(saved.or_else(|| on_one_line(&about.summary, LONGEST_SUMMARY)))
}

/// Returns a title on one line, cut to [`LONGEST_TITLE`]; `None` if it is blank.
pub(super) fn title(title: &str) -> Option<String> {
    on_one_line(title, LONGEST_TITLE)
}

pub(super) fn on_one_line(text: &str, most: usize) -> Option<String> {
    let text = snippet::trim(text);
    (!text.is_empty()).then(|| bound::line(text, most))
}

/// Returns the number of a conversation's turns; the summary of a saved conversation is not a turn.
pub(super) fn turn_count(engine: &Engine, about: &About) -> Result<u32> {
    let is_saved =
        about.source == SourceKind::Threads && engine.memory().saved_summary(&about.id)?.is_some();
    Ok(about.turns.saturating_sub(u32::from(is_saved)))
}
