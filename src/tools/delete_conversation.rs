//! `delete_conversation`: removes a recorded conversation for good.

use serde_json::{Map, Value, json};

use super::{
    arguments::shown,
    error::Error,
    tool::{Answer, Call, Effect, SWITCHED_OFF, Tool, json_error, object},
};
use crate::engine::Engine;

/// The shortest prefix of an id that names a conversation, in bytes.
const SHORTEST_PREFIX: usize = 8;

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
    run: delete,
    refuse: json_error,
};

fn schema() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "sessionId": {"type": "string", "description": "Session ID to delete"},
            "sessionKey": {"type": "string", "description": "Session key to delete"},
            "confirm": {"type": "boolean", "description": "Must be true to confirm deletion"},
        },
        "required": ["confirm"],
        "additionalProperties": false,
    }))
}

fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    let Call { engine, options, arguments, .. } = call;
    if options.no_conversations {
        return Err(Error::refused(SWITCHED_OFF));
    }
    arguments.only(&ARGUMENTS)?;
    match arguments.value("confirm") {
        Some(Value::Bool(true)) => {}
        None | Some(Value::Bool(false)) => {
            return Err(Error::refused("Set confirm=true to delete"));
        }
        Some(other) => {
            let text = format!("confirm takes true or false; got {}", shown(other));
            return Err(Error::Refused(text));
        }
    }
    let text = |name| {
        let text = arguments.string(name, "a string")?;
        Ok::<_, Error>(text.filter(|text| !text.is_empty()))
    };
    let (id, key) = (text("sessionId")?, text("sessionKey")?);
    let by_id = id.map(|id| thread_id(engine, id)).transpose()?;
    let by_key = match key {
        Some(key) => Some(engine.memory().thread_keyed(key)?.ok_or_else(not_found)?.id),
        None => None,
    };
    let id = match (by_id, by_key) {
        (Some(id), Some(key)) if id != key => {
            let text = "sessionId and sessionKey name two conversations; give one of them";
            return Err(Error::refused(text));
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => {
            return Err(Error::refused("Either sessionId or sessionKey is required"));
        }
    };
    if !engine.memory().delete_thread(&id)? {
        return Err(not_found());
    }
    let answer = if options.verbose {
        json!({"success": true, "message": "Conversation deleted", "deletedSessionId": id})
    } else {
        json!({"ok": true})
    };
    Ok(answer.to_string().into())
}

fn not_found() -> Error {
    Error::refused("Conversation not found")
}

/// Returns the id of the one conversation that an id or its beginning names.
fn thread_id(engine: &Engine, word: &str) -> Result<String, Error> {
    let mut threads = engine.memory().threads_named(word)?;
    threads.retain(|thread| thread.id == word || word.len() >= SHORTEST_PREFIX);
    match (threads.pop(), threads.is_empty()) {
        (Some(thread), true) => Ok(thread.id),
        (None, _) => Err(not_found()),
        (Some(_), false) => {
            let word: String = word.chars().take(100).collect();
            Err(Error::Refused(format!(
                "sessionId {word:?} may be any of several conversations; give more of it"
            )))
        }
    }
}
