//! The common parts of tools: a description, a call, an answer or an error.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::error::{Error, Result};
use verbatim_base::{call::Call, map_faults, model::Instant};
use verbatim_engine::{self as engine, About, Engine, SAVED, Session, SourceKind};
use verbatim_text::{date, snippet::names, terminal::without_hidden_text};

/// A tool, as a front end offers it.
#[derive(Debug)]
pub struct Tool {
    /// The name by which the tool is called.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The description that the model reads.
    pub description: &'static str,
    /// The purpose of the tool, for the server's instructions.
    pub use_for: &'static str,
    /// The effect of a call.
    pub effect: Effect,
    /// The sources that a call scans completely if they have no index.
    pub searches: &'static [SourceKind],
    /// Returns the JSON schema of the tool's arguments.
    pub schema: fn() -> Map<String, Value>,
    /// Returns the JSON schema of [`Answer::structured`], if the answers have structured data.
    pub output_schema: Option<fn() -> Map<String, Value>>,
    pub(super) run: fn(&ToolCall<'_>) -> Result<Answer>,
    pub(super) refuse: fn(&ToolCall<'_>, &Error) -> Answer,
}

/// The maximum time that a request waits for locks of other programs. It is shorter than the time that
/// clients wait for an answer.
pub(crate) const REQUEST_LOCK_WAIT: Duration = Duration::from_millis(1500);

impl Tool {
    /// Runs the tool; if it only reads, as `Sources::attempt` of the engine does. If it panics,
    /// the answer is an error with the panic's message for the log.
    pub fn call(
        &self,
        engine: &Engine,
        options: &Options,
        arguments: &Map<String, Value>,
        call: &Call,
    ) -> Answer {
        let arguments = Arguments { tool: self.name, values: arguments };
        let call = &self.limited(call);
        let tool_call = ToolCall { engine, options, arguments, call };
        let done = if self.effect == Effect::Reads {
            engine
                .all_sources()
                .attempt(call, Error::is_torn, |call| (self.run)(&ToolCall { call, ..tool_call }))
        } else {
            // A tool that writes runs only once.
            map_faults::caught(|| (self.run)(&tool_call)).inspect_err(|_| engine.close())
        };
        self.answer(&tool_call, done)
    }

    /// Runs the tool as [`Tool::call`] does, but returns `None` if the call would search a source
    /// without an index, which can take minutes.
    pub(crate) fn call_by_index(
        &self,
        engine: &Engine,
        options: &Options,
        arguments: &Map<String, Value>,
        call: &Call,
    ) -> Option<Answer> {
        let call = self.limited(call);
        let mut searched = engine.all_sources().present_of(self.searches).into_iter();
        // Reading a damaged index may panic here. Then the call itself handles the damage.
        let scans = map_faults::caught(|| searched.any(|source| !source.is_indexed(&call)));
        if scans.unwrap_or(true) {
            return None;
        }
        Some(self.call(engine, options, arguments, &call))
    }

    /// Returns the call with the limits of this tool. A tool that writes must see its own changes.
    fn limited(&self, call: &Call) -> Call {
        let call = call.waiting_for_locks(REQUEST_LOCK_WAIT);
        if self.effect == Effect::Reads { call.reading() } else { call }
    }

    fn answer(&self, tool_call: &ToolCall<'_>, done: Result<Result<Answer>, String>) -> Answer {
        let mut answer = self.raw_answer(tool_call, done);
        answer.text = without_hidden_text(answer.text);
        if let Some(value) = &mut answer.structured {
            show_hidden_text(value);
        }
        answer
    }

    fn raw_answer(&self, tool_call: &ToolCall<'_>, done: Result<Result<Answer>, String>) -> Answer {
        match done {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let answer = (self.refuse)(tool_call, &error);
                Answer {
                    log: error.unexpected().map(|log| format!("{}: {log}", self.name)),
                    ..answer
                }
            }
            Err(panic) => {
                let text = format!("{} failed; see the server's log", self.name);
                let log = Some(format!("{} panicked: {panic}", self.name));
                Answer { text, is_error: true, log, structured: None }
            }
        }
    }
}

/// Applies [`without_hidden_text`] to all texts of a value.
fn show_hidden_text(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_hidden_text(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(show_hidden_text),
        Value::Object(entries) => entries.values_mut().for_each(show_hidden_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The effect of calling a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call changes nothing.
    Reads,
    /// The call adds to the stored threads; each call adds again.
    Adds,
    /// The call may remove or replace stored threads.
    Removes,
}

/// The options of a server that apply to all calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether ASCII letters match only in their own case.
    pub case_sensitive: bool,
    /// Whether messages are matched and shown as stored, even if that is JSON.
    pub raw_content: bool,
    /// Whether JSON answers have long keys: `COMPACT_RESPONSES=false`.
    pub verbose: bool,
    /// Whether the tools for conversation sessions are switched off: `ENABLE_CONVERSATIONS=false`.
    pub no_conversations: bool,
    /// The address of the page for browsers, if there is one.
    pub page_url: Option<String>,
}

/// The answer of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for the model.
    pub text: String,
    /// The answer as data in the form of the tool's output schema; `None` for an error.
    pub structured: Option<Value>,
    /// Whether the protocol should mark the answer as an error.
    pub is_error: bool,
    /// A line for the server's log, if something unexpected went wrong.
    pub log: Option<String>,
}

impl From<String> for Answer {
    fn from(text: String) -> Answer {
        Answer { text, ..Answer::default() }
    }
}

#[derive(Clone, Copy)]
pub(super) struct ToolCall<'a> {
    pub(super) engine: &'a Engine,
    pub(super) options: &'a Options,
    pub(super) arguments: Arguments<'a>,
    pub(super) call: &'a Call,
}

pub(super) fn plain_error(_: &ToolCall<'_>, error: &Error) -> Answer {
    Answer { is_error: true, ..error.to_string().into() }
}

pub(super) fn json_error(_: &ToolCall<'_>, error: &Error) -> Answer {
    Answer { is_error: true, ..json!({"error": error.to_string()}).to_string().into() }
}

pub(super) const SWITCHED_OFF: &str =
    "Conversations not enabled (ENABLE_CONVERSATIONS is false; set ENABLE_CONVERSATIONS=true)";

/// Returns the number of the first turn: the summary of a saved conversation is a message but not a turn.
pub(super) fn first_turn(session: &Session) -> usize {
    let is_saved = session.about.source == SourceKind::Threads
        && session.turns() > 0
        && session.role(0) == SAVED;
    usize::from(is_saved)
}

pub(super) const SHORTEST_ID: usize = 4;

/// Returns the conversation that an argument names; `None` if there is no such conversation.
pub(super) fn conversation(
    tool_call: &ToolCall<'_>,
    name: &str,
    handle: &str,
) -> Result<Option<About>> {
    match tool_call.engine.find(tool_call.call).by_handle(handle, SHORTEST_ID) {
        Err(engine::Error::Ambiguous { word, candidates, total }) => {
            let ids: Vec<String> = candidates.iter().take(5).map(|one| one.id.clone()).collect();
            let more = match total.saturating_sub(ids.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Err(Error::Refused(format!(
                "{name} {word:?} may be any of: {}{more}; give one of these",
                names(&ids)
            )))
        }
        Err(engine::Error::SameId { id, keys }) => {
            let keys: Vec<String> = keys.into_iter().map(|(_, key)| key).collect();
            let keys = names(&keys);
            Err(Error::Refused(format!("{name} {id:?} may be any of: {keys}; give one of these")))
        }
        found => Ok(found?),
    }
}

/// Returns the error that `text` says. Sources that cannot be read may have the conversation, so it names them.
pub(super) fn not_found(tool_call: &ToolCall<'_>, mut text: String) -> Error {
    for note in tool_call.engine.all_sources().problems(tool_call.call) {
        text.push_str(&format!("; {note}"));
    }
    Error::Refused(text)
}

pub(super) fn object(literal: Value) -> Map<String, Value> {
    let Value::Object(object) = literal else { unreachable!("the literal is an object") };
    object
}

pub(super) fn to_json(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("strings, numbers and lists of them are JSON")
}

pub(super) fn day(instant: Option<Instant>) -> Option<String> {
    let minute = date::to_minute(instant?)?;
    Some(minute.split(' ').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use verbatim_engine::Config;

    fn tool(effect: Effect, run: fn(&ToolCall<'_>) -> Result<Answer>) -> Tool {
        Tool {
            name: "broken",
            title: "",
            description: "",
            use_for: "",
            effect,
            searches: &[],
            schema: Map::new,
            output_schema: None,
            run,
            refuse: plain_error,
        }
    }

    #[test]
    fn a_panic_is_reported_and_only_reading_is_tried_again() {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let engine = Engine::new(Config::default());
        for (runs, effect) in [(3, Effect::Reads), (4, Effect::Adds)] {
            let tool = tool(effect, |_| {
                RUNS.fetch_add(1, Ordering::Relaxed);
                panic!("a bug")
            });
            let answer = tool.call(&engine, &Options::default(), &Map::new(), &Call::default());
            assert_eq!(RUNS.load(Ordering::Relaxed), runs);
            assert!(answer.is_error && answer.text.starts_with("broken failed"), "{answer:?}");
            let log = answer.log.expect("a panic is logged");
            assert!(
                log.starts_with("broken panicked: a bug (crates/server/src/tools/tool.rs:"),
                "{log}"
            );
        }
    }
}
