//! `save_conversation_context`: stores a conversation's summary and latest turns for later recall.

use serde_json::{Map, Value, json};

use super::arguments::{Arguments, wrong};
use super::error::{Error, Result};
use super::tool::{Answer, Effect, SWITCHED_OFF, Tool, ToolCall, json_error, object};
use verbatim_engine::Save;
use verbatim_text::snippet;

const LONGEST_SUMMARY: usize = 10_000;

const LONGEST_KEY: usize = 200;

const LONGEST_TITLE: usize = 500;

const MOST_TURNS: usize = 50;

const LONGEST_TURN: usize = 50_000;

const TURN_ROLES: [&str; 3] = ["user", "assistant", "system"];

const ARGUMENTS: [&str; 5] = ["summary", "sessionKey", "title", "recentTurns", "embedTurns"];

/// The tool that saves a summary and the latest turns of a conversation.
pub const TOOL: Tool = Tool {
    name: "save_conversation_context",
    title: "Save conversation",
    description: "Save a conversation summary and recent turns for later recall. The same sessionKey updates the \
                  conversation and adds only new turns.",
    use_for: "keep a summary for later",
    effect: Effect::Adds,
    searches: &[],
    schema,
    output_schema: None,
    run: save,
    refuse: json_error,
};

fn schema() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "summary": {"type": "string", "description": "What it was about"},
            "sessionKey": {
                "type": "string",
                "description": "Key to identify this conversation",
            },
            "title": {"type": "string", "description": "Its title"},
            "recentTurns": {
                "type": "array",
                "maxItems": MOST_TURNS,
                "description": "Latest turns, oldest first",
                "items": {
                    "type": "object",
                    "properties": {
                        "role": {"type": "string", "enum": TURN_ROLES},
                        "content": {"type": "string"},
                    },
                },
            },
            "embedTurns": {"type": "boolean", "default": false, "description": "Ignored: every turn is searchable"},
        },
        "required": ["summary"],
        "additionalProperties": false,
    }))
}

fn save(tool_call: &ToolCall<'_>) -> Result<Answer> {
    let ToolCall { engine, options, arguments, call } = tool_call;
    if options.no_conversations {
        return Err(Error::refused(SWITCHED_OFF));
    }
    arguments.only(&ARGUMENTS)?;
    let summary = text(arguments, "summary", "a string of 1 to 10000 characters", LONGEST_SUMMARY)?;
    let summary = summary.ok_or_else(|| Error::refused("summary is required"))?;
    let key = text(arguments, "sessionKey", "a string of 1 to 200 characters", LONGEST_KEY)?;
    let title = text(arguments, "title", "a string of at most 500 characters", LONGEST_TITLE)?;
    if let Some(other) = arguments.value("embedTurns").filter(|value| !value.is_boolean()) {
        return Err(wrong("embedTurns", "true or false", other));
    }
    let turns = turns(arguments.value("recentTurns"))?;
    let saved = engine.memory().save_conversation(&Save { key, title, summary, turns: &turns })?;
    let thread = saved.thread;
    let answer = if options.verbose {
        json!({
            "success": true,
            "message": "Conversation context saved",
            "sessionId": thread.id,
            "sessionKey": thread.key,
            "title": (!thread.topic.is_empty()).then_some(&thread.topic),
            "turnsSaved": saved.turns,
        })
    } else {
        // An error of the id lookup is ignored, because the turns are already stored.
        let id = engine.find(call).short_id(&thread.id).unwrap_or_else(|_| thread.id.clone());
        json!({"ok": true, "id": id, "key": thread.key, "turns": saved.turns})
    };
    Ok(answer.to_string().into())
}

fn text<'a>(
    arguments: &Arguments<'a>,
    name: &str,
    takes: &str,
    most: usize,
) -> Result<Option<&'a str>> {
    match arguments.string(name, takes)? {
        Some(text) if snippet::trim(text).is_empty() || snippet::cut(text, most).is_some() => {
            Err(wrong(name, takes, &arguments.values[name]))
        }
        text => Ok(text),
    }
}

fn turns(given: Option<&Value>) -> Result<Vec<(String, String)>> {
    let takes = "an array of at most 50 turns {role, content}";
    let items = match given {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= MOST_TURNS => items,
        Some(other) => return Err(wrong("recentTurns", takes, other)),
    };
    let mut turns = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let Some(keys) = item.as_object() else {
            return Err(wrong(&format!("recentTurns[{at}]"), "an object {role, content}", item));
        };
        if let Some(key) = keys.keys().find(|key| !["role", "content"].contains(&key.as_str())) {
            let key = snippet::echo(key);
            let text = format!("recentTurns[{at}] has no key {key:?}; it takes role, content");
            return Err(Error::Refused(text));
        }
        let role = &item["role"];
        let Some(name) = role.as_str().filter(|name| TURN_ROLES.contains(name)) else {
            let takes = "user, assistant or system";
            return Err(wrong(&format!("recentTurns[{at}].role"), takes, role));
        };
        let content = &item["content"];
        let text = content.as_str().filter(|text| snippet::cut(text, LONGEST_TURN).is_none());
        let Some(text) = text else {
            let takes = "a string of at most 50000 characters";
            return Err(wrong(&format!("recentTurns[{at}].content"), takes, content));
        };
        turns.push((name.to_owned(), text.to_owned()));
    }
    Ok(turns)
}
