//! The tool contracts: arguments, engine, answer.
//!
//! Invariant: knows no protocol; a face hands in a JSON object and shows the answer.

mod arguments;
mod bound;
pub mod conversation_search;
pub mod delete_conversation;
pub mod manage_conversation;
pub mod query_conversations;
pub mod read;
pub mod save_conversation_context;
pub mod search;
pub mod search_workspace;

use serde_json::{Map, Value};

use crate::{
    engine::{self, Engine},
    map_faults,
    model::{Instant, Stop},
    text::date,
};

/// One tool as a face offers it.
#[derive(Debug)]
pub struct Tool {
    /// The name by which it is called.
    pub name: &'static str,
    /// A name for people.
    pub title: &'static str,
    /// What the model reads.
    pub description: &'static str,
    /// What calling it does to the world.
    pub effect: Effect,
    /// Returns the JSON schema of its arguments.
    pub schema: fn() -> Map<String, Value>,
    /// Returns the JSON schema of [`Answer::structured`], of a tool whose answers have it.
    pub output_schema: Option<fn() -> Map<String, Value>>,
    /// Runs it.
    pub run: fn(&Engine, &Options, &Map<String, Value>, &Stop) -> Answer,
}

/// How often a tool that only reads is run, where files that it reads are cut or changed.
const ATTEMPTS: u32 = 3;

impl Tool {
    /// Runs it; one that only reads again, if files of the index were cut while it read them.
    pub fn call(
        &self,
        engine: &Engine,
        options: &Options,
        arguments: &Map<String, Value>,
        stop: &Stop,
    ) -> Answer {
        // What writes is never run twice.
        let attempts = if self.effect == Effect::Reads { ATTEMPTS } else { 1 };
        for _ in 1..attempts {
            let before = map_faults::count();
            match map_faults::caught(|| (self.run)(engine, options, arguments, stop)) {
                Ok(answer) if map_faults::count() == before => return answer,
                // What was mapped then is not used again.
                Ok(_) | Err(_) => engine.forget(),
            }
        }
        (self.run)(engine, options, arguments, stop)
    }
}

/// What calling a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It leaves everything as it is.
    Reads,
    /// It adds to what is stored; each call adds anew.
    Adds,
    /// It may take away or replace what is stored.
    Removes,
}

/// How the server was told to answer, whatever the arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// ASCII letters match only in their own case.
    pub case_sensitive: bool,
    /// The stored column alone is matched and shown.
    pub raw_content: bool,
    /// Texts that are JSON have whole words for keys: `COMPACT_RESPONSES=false`.
    pub verbose: bool,
    /// Tools over conversation sessions are switched off: `ENABLE_CONVERSATIONS=false`.
    pub no_conversations: bool,
}

/// What a tool says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for the model.
    pub text: String,
    /// The same for a program, of the tool's output schema; none with an error.
    pub structured: Option<Value>,
    /// Whether the protocol should mark it as an error.
    pub is_error: bool,
    /// What the server's log should say of it, where something unexpected went wrong.
    pub log: Option<String>,
}

/// Every tool, in the order in which they are listed.
pub const ALL: &[Tool] = &[
    conversation_search::TOOL,
    query_conversations::TOOL,
    search::TOOL,
    read::TOOL,
    search_workspace::TOOL,
    manage_conversation::TOOL,
    save_conversation_context::TOOL,
    delete_conversation::TOOL,
];

/// A tool was asked for that there is not.
#[derive(Debug, thiserror::Error)]
#[error("there is no tool {name:?}; the tools are {}", known())]
pub struct UnknownTool {
    /// The name asked for.
    pub name: String,
}

/// Returns the tools that a list of names selects; all of them for no list.
pub fn selected(names: Option<&str>) -> Result<Vec<&'static Tool>, UnknownTool> {
    let names: Vec<&str> = names
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if let Some(name) = names.iter().find(|name| !ALL.iter().any(|tool| tool.name == **name)) {
        return Err(UnknownTool { name: (*name).to_owned() });
    }
    Ok(ALL.iter().filter(|tool| names.is_empty() || names.contains(&tool.name)).collect())
}

fn known() -> String {
    ALL.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ")
}

/// Returns a whole conversation as the tool `read` shows it; `None` where there is none of that id.
pub fn transcript(
    engine: &Engine,
    options: &Options,
    id: &str,
    stop: &Stop,
) -> Result<Option<String>, engine::Error> {
    for source in engine.sources() {
        if let Some(session) = engine.session(source.kind, id, options.raw_content, stop)? {
            return Ok(Some(read::page(&session, 1, u32::MAX, usize::MAX / 8)));
        }
    }
    Ok(None)
}

/// Returns the object that a JSON literal is.
fn object(literal: Value) -> Map<String, Value> {
    let Value::Object(object) = literal else { unreachable!("the literal is an object") };
    object
}

/// Returns what the log should say of an error, where it is none of the caller's.
fn logged(tool: &str, error: &engine::Error) -> Option<String> {
    let is_expected = error.is_not_found()
        || error.is_stopped()
        || matches!(error, engine::Error::NulInQuery | engine::Error::QueryTooLong { .. });
    (!is_expected).then(|| format!("{tool}: {error} ({error:?})"))
}

/// Returns the day of an instant, UTC.
fn day(instant: Option<Instant>) -> Option<String> {
    let minute = date::to_minute(instant?)?;
    Some(minute.split(' ').next().unwrap_or_default().to_owned())
}
