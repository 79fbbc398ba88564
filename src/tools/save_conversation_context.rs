//! `save_conversation_context`: a conversation's summary and latest turns, kept for later recall.

use serde_json::{Map, Value, json};

use super::{Answer, Effect, Options, Tool, arguments};
use crate::{
    db::threads::Save,
    engine::{self, Engine},
    model::Stop,
    text::snippet,
};

/// Characters of a summary.
const SUMMARY: usize = 10_000;

/// Characters of a key, and of a title.
const KEY: usize = 200;
const TITLE: usize = 500;

/// Turns of a call, and characters of each.
const TURNS: usize = 50;
const CONTENT: usize = 50_000;

const ROLES: [&str; 3] = ["user", "assistant", "system"];

const ARGUMENTS: [&str; 5] = ["summary", "sessionKey", "title", "recentTurns", "embedTurns"];

/// What is said where sessions are switched off.
pub(super) const SWITCHED_OFF: &str =
    "Conversations not enabled (ENABLE_CONVERSATIONS is false; set ENABLE_CONVERSATIONS=true)";

/// The tool.
pub const TOOL: Tool = Tool {
    name: "save_conversation_context",
    title: "Save conversation",
    description: "Save a conversation summary and recent turns for later recall. The same sessionKey updates the \
                  conversation; turns it ends with already are not added twice.",
    effect: Effect::Adds,
    schema,
    output_schema: None,
    run,
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Argument(#[from] arguments::Error),
    #[error("summary is required")]
    NoSummary,
    #[error("{name} takes {takes}; got {got}")]
    Takes { name: String, takes: &'static str, got: String },
    #[error("{SWITCHED_OFF}")]
    SwitchedOff,
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

fn schema() -> Map<String, Value> {
    let schema = json!({
        "type": "object",
        "properties": {
            "summary": {"type": "string", "minLength": 1, "maxLength": SUMMARY, "description": "What it was about"},
            "sessionKey": {
                "type": "string",
                "minLength": 1,
                "maxLength": KEY,
                "description": "Key to identify this conversation",
            },
            "title": {"type": "string", "maxLength": TITLE},
            "recentTurns": {
                "type": "array",
                "maxItems": TURNS,
                "items": {
                    "type": "object",
                    "properties": {
                        "role": {"type": "string", "enum": ROLES},
                        "content": {"type": "string", "maxLength": CONTENT},
                    },
                    "required": ["role", "content"],
                    "additionalProperties": false,
                },
            },
            "embedTurns": {"type": "boolean", "default": false, "description": "Not needed: every turn is searchable"},
        },
        "required": ["summary"],
        "additionalProperties": false,
    });
    let Value::Object(schema) = schema else { unreachable!("the literal above is an object") };
    schema
}

fn run(engine: &Engine, options: &Options, arguments: &Map<String, Value>, _: &Stop) -> Answer {
    match save(engine, options, arguments) {
        Ok(text) => Answer { text, ..Answer::default() },
        Err(error) => failed(&error.to_string()),
    }
}

/// Returns an error as the tools over sessions have it.
pub(super) fn failed(error: &str) -> Answer {
    Answer { text: json!({"error": error}).to_string(), is_error: true, ..Answer::default() }
}

fn save(engine: &Engine, options: &Options, given: &Map<String, Value>) -> Result<String, Error> {
    if options.no_conversations {
        return Err(Error::SwitchedOff);
    }
    arguments::only(TOOL.name, &ARGUMENTS, given)?;
    let summary = text(given, "summary", "a string of 1 to 10000 characters", SUMMARY)?;
    let summary = summary.ok_or(Error::NoSummary)?;
    let key = text(given, "sessionKey", "a string of 1 to 200 characters", KEY)?;
    let title = text(given, "title", "a string of at most 500 characters", TITLE)?;
    if let Some(other) = given.get("embedTurns").filter(|it| !it.is_boolean() && !it.is_null()) {
        return Err(takes("embedTurns", "true or false", other));
    }
    let turns = turns(given.get("recentTurns"))?;
    let saved = engine.save_conversation(&Save { key, title, summary, turns: &turns })?;
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
        let id = thread.id.get(..8).unwrap_or(&thread.id);
        json!({"ok": true, "id": id, "key": thread.key, "turns": saved.turns})
    };
    Ok(answer.to_string())
}

/// Returns a text of at most some characters; `None` where it is absent, an error where it is empty.
fn text<'a>(
    given: &'a Map<String, Value>,
    name: &'static str,
    what: &'static str,
    most: usize,
) -> Result<Option<&'a str>, Error> {
    let text = arguments::string(given, name, what)?;
    let is_optional = name == "title";
    match text {
        Some("") if is_optional => Ok(None),
        Some(text) if snippet::trim(text).is_empty() || snippet::cut(text, most).is_some() => {
            Err(takes(name, what, &given[name]))
        }
        text => Ok(text),
    }
}

fn turns(given: Option<&Value>) -> Result<Vec<(String, String)>, Error> {
    let what = "an array of at most 50 turns {role, content}";
    let items = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= TURNS => items,
        Some(other) => return Err(takes("recentTurns", what, other)),
    };
    let mut turns = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let field = |name: &str, what, is_right: &dyn Fn(&str) -> bool| {
            let value = item.get(name).unwrap_or(&Value::Null);
            let text = value.as_str().filter(|text| is_right(text));
            let path = format!("recentTurns[{at}].{name}");
            text.map(str::to_owned).ok_or_else(|| takes(path, what, value))
        };
        let role = field("role", "user, assistant or system", &|role| ROLES.contains(&role))?;
        let content = field("content", "a string of at most 50000 characters", &|text| {
            snippet::cut(text, CONTENT).is_none()
        })?;
        turns.push((role, content));
    }
    Ok(turns)
}

fn takes(name: impl Into<String>, takes: &'static str, got: &Value) -> Error {
    Error::Takes { name: name.into(), takes, got: arguments::shown(got) }
}
