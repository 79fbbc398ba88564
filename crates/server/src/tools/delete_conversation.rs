//! `delete_conversation`: removes a recorded conversation permanently.

use serde_json::{Map, Value, json};

use super::arguments::shown;
use super::error::{Error, Result};
use super::tool::{
    Answer, Effect, SHORTEST_ID, SWITCHED_OFF, Tool, ToolCall, conversation, json_error, object,
};
use verbatim_engine::SourceKind;
use verbatim_text::snippet;

const ARGUMENTS: [&str; 3] = ["sessionId", "sessionKey", "confirm"];

/// The tool that removes a recorded or saved conversation.
pub const TOOL: Tool = Tool {
    name: "delete_conversation",
    title: "Delete conversation",
    description: "Permanently delete a conversation session and all its turns, of those recorded or saved here; \
                  exports and transcripts are never touched.",
    use_for: "remove what was recorded or saved",
    effect: Effect::Removes,
    searches: &[],
    schema,
    output_schema: None,
    run: delete,
    refuse: json_error,
};

fn schema() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "sessionId": {"type": "string", "description": "Session ID to delete, or its beginning"},
            "sessionKey": {"type": "string", "description": "Session key to delete"},
            "confirm": {"type": "boolean", "description": "Must be true to confirm deletion"},
        },
        "required": ["confirm"],
        "additionalProperties": false,
    }))
}

fn delete(tool_call: &ToolCall<'_>) -> Result<Answer> {
    let ToolCall { engine, options, arguments, .. } = tool_call;
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
    let id = arguments.word("sessionId", "a string")?.filter(|id| !id.is_empty());
    let key = arguments.word("sessionKey", "a string")?.filter(|key| !key.is_empty());
    let by_id = id.map(|id| thread_id(tool_call, "sessionId", id)).transpose()?;
    let by_key = key.map(|key| thread_id(tool_call, "sessionKey", key)).transpose()?;
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
        return Err(Error::refused("Conversation not found: it was deleted meanwhile"));
    }
    let answer = if options.verbose {
        json!({"success": true, "message": "Conversation deleted", "deletedSessionId": id})
    } else {
        json!({"ok": true})
    };
    Ok(answer.to_string().into())
}

/// Returns the id of the recorded or saved conversation that an argument names. A title is not
/// enough for a deletion.
fn thread_id(tool_call: &ToolCall<'_>, name: &str, word: &str) -> Result<String> {
    let word = snippet::trim(word);
    let memory = tool_call.engine.memory();
    let keyed = memory.thread_keyed(word)?;
    let mut threads = memory.threads_named(word)?;
    let whole = threads.iter().find(|thread| thread.id == word).map(|thread| thread.id.clone());
    let keyed = keyed.map(|thread| thread.id);
    let is_id = name == "sessionId";
    let first = if is_id { whole.or(keyed) } else { keyed.or(whole) };
    if let Some(id) = first {
        return Ok(id);
    }
    // A key never counts as the beginning of an id. Otherwise the key of a deleted conversation
    // could delete another conversation.
    threads.retain(|_| is_id && word.chars().count() >= SHORTEST_ID);
    match (threads.pop(), threads.is_empty()) {
        (Some(thread), true) => return Ok(thread.id),
        (Some(_), false) => {
            let text = format!(
                "{name} {:?} may be any of several conversations; give more characters of it",
                snippet::echo(word)
            );
            return Err(Error::Refused(text));
        }
        (None, _) => {}
    }
    let shown = snippet::echo(word);
    let takes = format!(
        "Conversation not found: {shown:?} is not the id (or at least {SHORTEST_ID} characters of its beginning) \
         or the key of a recorded or saved conversation; query_conversations mode=list shows both"
    );
    // A word that is too short or ambiguous counts as not found.
    let Ok(Some(about)) = conversation(tool_call, name, word) else {
        return Err(Error::Refused(takes));
    };
    let find = tool_call.engine.find(tool_call.call);
    let is_title = snippet::trim(&about.title).to_lowercase() == snippet::trim(word).to_lowercase();
    match about.source {
        SourceKind::Threads
            if !is_title && (is_id || find.key_of(&about).is_ok_and(|key| key == word)) =>
        {
            Ok(about.id)
        }
        SourceKind::Threads if !is_title => Err(Error::Refused(takes)),
        SourceKind::Threads => Err(Error::Refused(format!(
            "Conversation not found by its title: give the id of {shown:?}, {}, or its key",
            about.id
        ))),
        SourceKind::Export | SourceKind::Archive => Err(Error::Refused(format!(
            "Conversation not found among those recorded or saved here: {shown:?} is of the {}, which is never \
             changed",
            about.source.name()
        ))),
    }
}
