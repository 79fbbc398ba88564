//! What the answers of all modes share: JSON in two forms, and how a conversation's fields are shown.

use serde::Serialize;

use crate::{
    engine::{About, SAVED, SourceKind},
    model::Instant,
    text::{date, snippet},
    tools::{
        bound,
        error::Error,
        tool::{Answer, Call, Options},
    },
};

/// Characters of a title or a summary at most.
const LONGEST_TEXT: usize = 300;

/// Characters of an id in compact texts.
const COMPACT_ID: usize = 8;

const IS_JSON: &str = "strings, numbers and lists of them are JSON";

/// Returns an answer with the text that the options ask for; its structure is always the verbose form.
pub(super) fn answer(
    options: &Options,
    compact: &impl Serialize,
    verbose: &impl Serialize,
) -> Answer {
    let text = if options.verbose { json(verbose, options) } else { json(compact, options) };
    let structured = serde_json::to_value(verbose).expect(IS_JSON);
    Answer { structured: Some(structured), ..text.into() }
}

/// Returns JSON: on one line in the compact form, else pretty.
pub(super) fn json(value: &impl Serialize, options: &Options) -> String {
    if options.verbose {
        serde_json::to_string_pretty(value).expect(IS_JSON)
    } else {
        serde_json::to_string(value).expect(IS_JSON)
    }
}

/// Returns a conversation's summary. A conversation that was saved has the summary it was saved with.
///
/// The index holds both kinds of summary. Without an index, a saved one is read from the conversation.
pub(super) fn summary(call: &Call<'_>, about: &About) -> Result<Option<String>, Error> {
    let Call { engine, options, stop, .. } = call;
    if about.source == SourceKind::Threads
        && about.summary.is_empty()
        && let Some(session) = engine.session(about.source, &about.id, options.raw_content, stop)?
        && session.role(0) == SAVED
    {
        return Ok(text_of(&session.message(0).content));
    }
    Ok(text_of(&about.summary))
}

/// Returns a title or a summary on one line, cut to [`LONGEST_TEXT`]; `None` if it is blank.
pub(super) fn text_of(text: &str) -> Option<String> {
    let text = snippet::trim(text);
    (!text.is_empty()).then(|| bound::line(text, LONGEST_TEXT))
}

/// Returns the beginning of an id, for compact texts.
pub(super) fn compact_id(id: &str) -> String {
    snippet::cut(id, COMPACT_ID).unwrap_or(id).to_owned()
}

pub(super) fn iso(instant: Option<Instant>) -> Option<String> {
    instant.and_then(date::to_iso)
}
