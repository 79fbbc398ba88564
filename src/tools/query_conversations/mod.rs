//! `query_conversations`: conversations as sessions: searched, read by id or key, listed.

mod answer;
mod get;
mod list;
mod search;
mod turn;

use serde_json::{Map, Value, json};

use super::{
    arguments::wrong,
    error::Error,
    tool::{Answer, Call, Effect, Tool, object},
};
use crate::{
    engine::{self, Fields, Question, Scope},
    text::snippet,
};

/// An argument that is a number from 1 on.
struct Count {
    default: usize,
    most: usize,
    takes: &'static str,
}

/// Conversations of an answer.
const LIMIT: Count = Count { default: 20, most: 50, takes: "an integer from 1 to 50" };

/// Turns of each conversation that a search finds.
const TURNS_OF_MATCH: Count = Count { default: 10, most: 50, takes: "an integer from 1 to 50" };

/// Turns of the conversation that `mode="get"` reads.
const TURNS: Count = Count { default: 50, most: 200, takes: "an integer from 1 to 200" };

/// Characters of a query at most.
const LONGEST_QUERY: usize = 1000;

const ARGUMENTS: [&str; 10] = [
    "mode",
    "query",
    "searchMode",
    "includeTranscript",
    "maxTurnsPerConversation",
    "sessionId",
    "sessionKey",
    "maxTurns",
    "limit",
    "offset",
];

const SEARCH_MODES: [(&str, Fields); 3] =
    [("summary", Fields::Summaries), ("turns", Fields::Messages), ("both", Fields::Both)];

/// The tool.
pub const TOOL: Tool = Tool {
    name: "query_conversations",
    title: "Query conversations",
    description: "Query past conversations. mode=\"search\": semantic search across summaries/turns. \
                  mode=\"get\": one conversation by ID or key. mode=\"list\": recent conversations, paged.",
    effect: Effect::Reads,
    schema,
    output_schema: Some(output_schema),
    run,
    refuse,
};

#[derive(Clone, Copy, Debug)]
enum CallMode {
    Search,
    Get,
    List,
}

fn schema() -> Map<String, Value> {
    let count = |Count { default, most, .. }, description: &str| json!({"type": "integer", "minimum": 1, "maximum": most, "default": default, "description": description});
    object(json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["search", "get", "list"]},
            "query": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY, "description": "For search (required)"},
            "searchMode": {"type": "string", "enum": ["summary", "turns", "both"], "default": "summary"},
            "includeTranscript": {"type": "boolean", "default": false, "description": "Include recent turns of matches"},
            "maxTurnsPerConversation": count(TURNS_OF_MATCH, "With includeTranscript"),
            "sessionId": {"type": "string", "description": "For get: the id, or 4 characters or more of its beginning"},
            "sessionKey": {"type": "string", "description": "For get"},
            "maxTurns": count(TURNS, "For get"),
            "limit": count(LIMIT, "Max results"),
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "For list"},
        },
        "required": ["mode"],
        "additionalProperties": false,
    }))
}

fn output_schema() -> Map<String, Value> {
    let string = json!({"type": "string"});
    let integer = json!({"type": "integer"});
    let maybe = json!({"type": ["string", "null"]});
    let turns = json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "role": string, "content": string, "turnIndex": integer, "createdAt": string,
            "score": {"type": "number"},
        },
        "required": ["role", "content"],
    }});
    object(json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["search", "get", "list"]},
            "totalResults": integer,
            "conversations": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "sessionId": string, "sessionKey": maybe, "title": maybe, "summary": maybe,
                    "score": {"type": "number"}, "turns": turns, "matchedTurns": turns,
                    "turnCount": integer, "lastActivity": maybe, "createdAt": string,
                },
                "required": ["sessionId"],
            }},
            "found": {"type": "boolean"},
            "session": {
                "type": "object",
                "properties": {
                    "id": string, "sessionKey": maybe, "title": maybe, "summary": maybe,
                    "turnCount": integer, "lastActivity": maybe, "createdAt": string,
                },
                "required": ["id", "turnCount"],
            },
            "turns": turns,
            "message": string,
            "complete": {"type": "boolean", "description": "false: not everything was searched"},
            "notes": {"type": "array", "items": string},
            "total": integer, "returned": integer, "offset": integer,
        },
        "required": ["mode"],
    }))
}

fn refuse(call: &Call<'_>, error: &Error) -> Answer {
    let text = answer::json(&json!({"error": error.to_string()}), call.options);
    Answer { is_error: true, ..text.into() }
}

fn run(call: &Call<'_>) -> Result<Answer, Error> {
    if call.options.no_conversations {
        let text = "Conversations not enabled: set ENABLE_CONVERSATIONS=true";
        return Err(Error::refused(text));
    }
    let given = &call.arguments;
    given.only(&ARGUMENTS)?;
    let takes = "\"search\", \"get\" or \"list\"";
    let modes = [("search", CallMode::Search), ("get", CallMode::Get), ("list", CallMode::List)];
    let mode = given.choice("mode", takes, &modes)?;
    let mode = mode.ok_or_else(|| wrong("mode", takes, &Value::Null))?;
    // Every argument is checked in every mode: the caller should see a mistake.
    let query = given.string("query", "a string")?.map(snippet::trim);
    let takes = "\"summary\", \"turns\" or \"both\"";
    let fields = given.choice("searchMode", takes, &SEARCH_MODES)?.unwrap_or(Fields::Summaries);
    let with_transcript = given.flag("includeTranscript")?;
    let count = |name, Count { default, most, takes }| {
        given.integer_in(name, takes, 1..=most).map(|count| count.unwrap_or(default))
    };
    let turns_of_match = count("maxTurnsPerConversation", TURNS_OF_MATCH)?;
    let turns = count("maxTurns", TURNS)?;
    let limit = count("limit", LIMIT)?;
    let offset = given.integer_in("offset", "an integer from 0 on", 0..=u32::MAX as usize)?;
    let word = |name| {
        let word = given.string(name, "a string")?.map(snippet::trim);
        Ok::<_, Error>(word.filter(|word| !word.is_empty()))
    };
    let (id, key) = (word("sessionId")?, word("sessionKey")?);
    match mode {
        CallMode::Search => {
            let question = question(query, fields, limit)?;
            search::search(call, &question, with_transcript.then_some(turns_of_match))
        }
        CallMode::Get => get::get(call, id, key, turns),
        CallMode::List => list::list(call, offset.unwrap_or(0), limit),
    }
}

fn question(query: Option<&str>, fields: Fields, limit: usize) -> Result<Question, Error> {
    let query = query.filter(|query| !query.is_empty());
    let missing = "Missing query: query is required for mode=\"search\"";
    let query = query.ok_or_else(|| Error::refused(missing))?;
    let length = query.chars().count();
    if length > LONGEST_QUERY {
        let text = format!("query takes 1 to {LONGEST_QUERY} characters; got {length}");
        return Err(Error::Refused(text));
    }
    let (concepts, mode) = (vec![query.to_owned()], engine::Mode::Both);
    Ok(Question { concepts, mode, fields, scope: Scope::default(), limit })
}
