//! `query_conversations`: searches, reads and lists conversations as sessions.

mod answer;
mod get;
mod list;
mod search;
mod turn;

use serde_json::{Map, Value, json};

use super::arguments::{Arguments, wrong};
use super::error::{Error, Result};
use super::search::day;
use super::tool::{Answer, Effect, Tool, ToolCall, object};
use verbatim_engine::{self as engine, Fields, Question, Scope, SourceKind};
use verbatim_text::{date::Edge, snippet};

/// A numeric argument of at least 1.
struct CountArgument {
    default: usize,
    most: usize,
    takes: &'static str,
}

impl CountArgument {
    fn schema(&self, description: &str) -> Value {
        let CountArgument { default, most, .. } = self;
        json!({"type": "integer", "maximum": most, "default": default, "description": description})
    }

    fn read(&self, given: &Arguments<'_>, name: &str) -> Result<usize> {
        let count = given.integer_in(name, self.takes, 1..=self.most)?;
        Ok(count.unwrap_or(self.default))
    }
}

const LIMIT: CountArgument =
    CountArgument { default: 20, most: answer::MOST_IN_ANSWER, takes: "an integer from 1 to 50" };

/// The number of turns of each conversation that a search finds.
const TURNS_OF_MATCH: CountArgument =
    CountArgument { default: 10, most: 50, takes: "an integer from 1 to 50" };

const TURNS: CountArgument =
    CountArgument { default: 50, most: 200, takes: "an integer from 1 to 200" };

/// The maximum number of characters of a query.
const LONGEST_QUERY: usize = 1000;

const ARGUMENTS: [&str; 14] = [
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
    "order",
    "after",
    "before",
    "project",
];

const SEARCH_MODES: [(&str, Fields); 3] =
    [("summary", Fields::Summaries), ("turns", Fields::Turns), ("both", Fields::Both)];

/// The tool that lists conversations, gets one, or searches their summaries.
pub const TOOL: Tool = Tool {
    name: "query_conversations",
    title: "Query conversations",
    description: "Past conversations as sessions: list them by date, get one, or search by what whole ones are \
                  about. To find what was said, use search.",
    use_for: "list sessions, get one by id, key or title, search their summaries",
    effect: Effect::Reads,
    searches: &SourceKind::ALL,
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
    object(json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["search", "get", "list"], "description": "What to do"},
            "query": {
                "type": "string",
                "description": "1-1000 characters",
            },
            "searchMode": {
                "type": "string", "enum": ["summary", "turns", "both"], "default": "summary",
                "description": "Where",
            },
            "includeTranscript": {"type": "boolean", "default": false, "description": "Include recent turns"},
            "maxTurnsPerConversation": TURNS_OF_MATCH.schema("Turns per match"),
            "sessionId": {"type": "string", "description": "Id, its start or unique title (get)"},
            "sessionKey": {"type": "string", "description": "Key (get)"},
            "maxTurns": TURNS.schema("Turns (get)"),
            "limit": LIMIT.schema("Max results"),
            "offset": {"type": "integer", "default": 0, "description": "To skip (list)"},
            "order": {"type": "string", "enum": ["newest", "oldest"], "default": "newest", "description": "Which first (list)"},
            "after": {"type": "string", "description": "First day, YYYY-MM-DD"},
            "before": {"type": "string", "description": "Last day"},
            "project": {"type": "string", "description": "One project"},
        },
        "required": ["mode"],
        "additionalProperties": false,
    }))
}

fn output_schema() -> Map<String, Value> {
    let number = json!({"type": "integer"});
    object(json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string"},
            "totalResults": number, "total": number, "returned": number, "offset": number,
            "conversations": {"type": "array", "items": {"required": ["sessionId"]}},
            "found": {"type": "boolean"},
            "session": {"type": "object"},
            "turns": {"type": "array"},
        },
        "required": ["mode"],
    }))
}

fn refuse(tool_call: &ToolCall<'_>, error: &Error) -> Answer {
    let text = answer::json(&json!({"error": error.to_string()}), tool_call.options);
    Answer { is_error: true, ..text.into() }
}

fn run(tool_call: &ToolCall<'_>) -> Result<Answer> {
    if tool_call.options.no_conversations {
        let text = "Conversations not enabled: set ENABLE_CONVERSATIONS=true";
        return Err(Error::refused(text));
    }
    let given = &tool_call.arguments;
    given.only(&ARGUMENTS)?;
    let takes = "\"search\", \"get\" or \"list\"";
    let modes = [("search", CallMode::Search), ("get", CallMode::Get), ("list", CallMode::List)];
    let mode = given.choice("mode", takes, &modes)?;
    let mode = mode.ok_or_else(|| wrong("mode", takes, &Value::Null))?;
    // All arguments are checked in every mode, so that the caller is told about every mistake.
    let query = given.string("query", "a string")?.map(snippet::trim);
    let takes = "\"summary\", \"turns\" or \"both\"";
    let fields = given.choice("searchMode", takes, &SEARCH_MODES)?.unwrap_or(Fields::Summaries);
    let with_transcript = given.flag("includeTranscript")?;
    let turns_of_match = TURNS_OF_MATCH.read(given, "maxTurnsPerConversation")?;
    let turns = TURNS.read(given, "maxTurns")?;
    let limit = LIMIT.read(given, "limit")?;
    let offset =
        given.integer_in("offset", "an integer from 0 to 4294967295", 0..=u32::MAX as usize)?;
    let takes = "\"newest\" or \"oldest\"";
    let orders = [("newest", false), ("oldest", true)];
    let oldest_first = given.choice("order", takes, &orders)?.unwrap_or(false);
    let id = word(given, "sessionId")?;
    let key = word(given, "sessionKey")?;
    let scope = Scope {
        since: day(given, "after", Edge::Start)?.map(|(instant, _)| instant),
        until: day(given, "before", Edge::End)?.map(|(instant, _)| instant),
        project: word(given, "project")?.map(|word| snippet::trim(word).to_owned()),
        ..Scope::default()
    };
    let ignored = ignored(given, mode);
    match mode {
        CallMode::Search => {
            let question = Question { scope, ..question(query, fields, limit)? };
            search::search(tool_call, &question, with_transcript.then_some(turns_of_match), ignored)
        }
        CallMode::Get => get::get(tool_call, id, key, turns, ignored),
        CallMode::List => {
            let offset = offset.unwrap_or(0);
            let page = offset..offset.saturating_add(limit);
            list::list(tool_call, &scope, page, oldest_first, ignored)
        }
    }
}

/// Returns a word that is not blank. White space at its ends may be part of an id.
fn word<'a>(given: &Arguments<'a>, name: &str) -> Result<Option<&'a str>> {
    Ok(given.word(name, "a string")?.filter(|word| !snippet::trim(word).is_empty()))
}

fn ignored(given: &Arguments<'_>, mode: CallMode) -> Option<String> {
    const OF_SEARCH: [&str; 4] =
        ["query", "searchMode", "includeTranscript", "maxTurnsPerConversation"];
    const OF_GET: [&str; 3] = ["sessionId", "sessionKey", "maxTurns"];
    const OF_LIST: [&str; 2] = ["offset", "order"];
    const OF_SCOPE: [&str; 4] = ["limit", "after", "before", "project"];
    let (name, others): (_, [&[&str]; 3]) = match mode {
        CallMode::Search => ("search", [&OF_GET, &OF_LIST, &[]]),
        CallMode::Get => ("get", [&OF_SEARCH, &OF_LIST, &OF_SCOPE]),
        CallMode::List => ("list", [&OF_SEARCH, &OF_GET, &[]]),
    };
    let others = others.into_iter().flatten().copied();
    let given: Vec<&str> = others.filter(|name| given.value(name).is_some()).collect();
    (!given.is_empty()).then(|| format!("ignored, not for mode=\"{name}\": {}", given.join(", ")))
}

fn question(query: Option<&str>, fields: Fields, limit: usize) -> Result<Question> {
    let query = query.filter(|query| !query.is_empty());
    let missing = "Missing query: query is required for mode=\"search\"";
    let query = query.ok_or_else(|| Error::refused(missing))?;
    let length = query.chars().count();
    if length > LONGEST_QUERY {
        let text = format!("query takes 1 to {LONGEST_QUERY} characters; got {length}");
        return Err(Error::Refused(text));
    }
    let concepts = vec![query.to_owned()];
    let mode = engine::Mode::Both;
    Ok(Question { concepts, mode, fields, limit, ..Question::default() })
}
