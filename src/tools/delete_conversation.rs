//! `delete_conversation`: takes a recorded conversation away for good.

use serde_json::{Map, Value, json};

use super::{
    Answer, Effect, Options, Tool, arguments,
    save_conversation_context::{SWITCHED_OFF, failed},
};
use crate::{
    engine::{self, Engine},
    model::Stop,
};

/// Characters at least of the beginning of an id that names a conversation.
const PREFIX: usize = 8;

const ARGUMENTS: [&str; 3] = ["sessionId", "sessionKey", "confirm"];

/// The tool.
pub const TOOL: Tool = Tool {
    name: "delete_conversation",
    title: "Delete conversation",
    description: "Permanently delete a conversation session and all its turns, of those recorded or saved here; \
                  exports and transcripts are never touched. Requires confirm=true and sessionId or sessionKey.",
    effect: Effect::Removes,
    schema,
    output_schema: None,
    run,
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Argument(#[from] arguments::Error),
    #[error("Set confirm=true to delete")]
    NotConfirmed,
    #[error("confirm takes true or false; got {0}")]
    Confirm(String),
    #[error("Either sessionId or sessionKey is required")]
    Unnamed,
    #[error("Conversation not found")]
    NotFound,
    #[error("sessionId {0:?} may be any of several conversations; give more of it")]
    Several(String),
    #[error("{SWITCHED_OFF}")]
    SwitchedOff,
    #[error("sessionId and sessionKey name two conversations; give one of them")]
    Two,
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

fn schema() -> Map<String, Value> {
    let schema = json!({
        "type": "object",
        "properties": {
            "sessionId": {"type": "string", "description": "Session ID to delete"},
            "sessionKey": {"type": "string", "description": "Session key to delete"},
            "confirm": {"type": "boolean", "description": "Must be true to confirm deletion"},
        },
        "required": ["confirm"],
        "additionalProperties": false,
    });
    let Value::Object(schema) = schema else { unreachable!("the literal above is an object") };
    schema
}

fn run(engine: &Engine, options: &Options, arguments: &Map<String, Value>, _: &Stop) -> Answer {
    match delete(engine, options, arguments) {
        Ok(text) => Answer { text, ..Answer::default() },
        Err(error) => failed(&error.to_string()),
    }
}

fn delete(engine: &Engine, options: &Options, given: &Map<String, Value>) -> Result<String, Error> {
    if options.no_conversations {
        return Err(Error::SwitchedOff);
    }
    arguments::only(TOOL.name, &ARGUMENTS, given)?;
    match given.get("confirm") {
        Some(Value::Bool(true)) => {}
        None | Some(Value::Null | Value::Bool(false)) => return Err(Error::NotConfirmed),
        Some(other) => return Err(Error::Confirm(arguments::shown(other))),
    }
    let text = |name| {
        let text = arguments::string(given, name, "a string")?;
        Ok::<_, Error>(text.filter(|text| !text.is_empty()))
    };
    let (id, key) = (text("sessionId")?, text("sessionKey")?);
    let by_id = id.map(|id| found(engine, id)).transpose()?;
    let by_key = match key {
        Some(key) => Some(engine.thread_keyed(key)?.ok_or(Error::NotFound)?.id),
        None => None,
    };
    let id = match (by_id, by_key) {
        (Some(id), Some(key)) if id != key => return Err(Error::Two),
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => return Err(Error::Unnamed),
    };
    if !engine.delete_thread(&id)? {
        return Err(Error::NotFound);
    }
    let answer = if options.verbose {
        json!({"success": true, "message": "Conversation deleted", "deletedSessionId": id})
    } else {
        json!({"ok": true})
    };
    Ok(answer.to_string())
}

/// Returns the id of the one conversation that an id or its beginning means.
fn found(engine: &Engine, word: &str) -> Result<String, Error> {
    let mut found = engine.threads_named(word)?;
    found.retain(|thread| thread.id == word || word.len() >= PREFIX);
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one.id),
        (None, _) => Err(Error::NotFound),
        (Some(_), false) => Err(Error::Several(word.chars().take(100).collect())),
    }
}
