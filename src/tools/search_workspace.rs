//! `search_workspace`: lines of dated conversation folders, as ripgrep finds them.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{Answer, Effect, Options, Tool, arguments};
use crate::{
    engine::{self, Engine},
    model::Stop,
    workspace::{self, Dates, Line, Question},
};

/// Lines returned when the call does not say.
const DEFAULT_LIMIT: usize = 10;

/// Lines returned at most.
const MOST: usize = 1000;

/// Bytes of an answer: about 20,000 tokens in any script.
const MOST_BYTES: usize = 60_000;

/// The type that means every type.
const ALL: &str = "all";

const ARGUMENTS: [&str; 5] = ["query", "type", "date_range", "limit", "workspace_path"];

/// The tool.
pub const TOOL: Tool = Tool {
    name: "search_workspace",
    title: "Search the workspace",
    description: "Search across conversations, notes, and research in the workspace. Returns matching lines, \
                  newest conversation first, each with its conversation, file and line number.",
    effect: Effect::Reads,
    schema,
    output_schema: None,
    run,
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Argument(#[from] arguments::Error),
    #[error("query is required: a regular expression")]
    NoQuery,
    #[error("query is {0}")]
    Query(workspace::Error),
    #[error("date_range: {0}")]
    Dates(workspace::Error),
    #[error("workspace_path: {0}")]
    Path(workspace::Error),
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

fn schema() -> Map<String, Value> {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Search query: a regular expression as ripgrep reads it, in either case",
            },
            "type": {
                "type": "string",
                "default": ALL,
                "description": "Filter by conversation type (brainstorm, debug, plan, learn, meeting, review, …, or 'all')",
            },
            "date_range": {
                "type": "string",
                "description": "Filter by date range. Supports YYYY-MM (month) or YYYY-MM-DD (day) format. Month \
                                format matches all days within that month. Examples: '2025-11' or '2025-11-10'",
            },
            "limit": {
                "type": "integer",
                "default": DEFAULT_LIMIT,
                "minimum": 1,
                "maximum": MOST,
                "description": "Maximum number of matching lines to return",
            },
            "workspace_path": {
                "type": "string",
                "description": "Search only this folder inside a configured workspace",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let Value::Object(schema) = schema else { unreachable!("the literal above is an object") };
    schema
}

fn run(engine: &Engine, _: &Options, arguments: &Map<String, Value>, stop: &Stop) -> Answer {
    match search(engine, arguments, stop) {
        Ok(answer) => answer,
        Err(error) => {
            Answer { text: format!("Error: {error}"), is_error: true, ..Answer::default() }
        }
    }
}

fn search(engine: &Engine, given: &Map<String, Value>, stop: &Stop) -> Result<Answer, Error> {
    let question = question(given)?;
    let folder = arguments::string(given, "workspace_path", "a folder as a string")?;
    let found = engine.search_workspace(&question, folder, stop).map_err(|error| match error {
        engine::Error::Workspace(error @ workspace::Error::Pattern(_)) => Error::Query(error),
        engine::Error::Workspace(error @ workspace::Error::Outside { .. }) => Error::Path(error),
        error => Error::Engine(error),
    })?;
    let text = if found.lines.is_empty() {
        nothing(&question, arguments::string(given, "date_range", "")?)
    } else {
        results(&found.lines)
    };
    let log = (!found.unread.is_empty())
        .then(|| format!("search_workspace could not read {}", found.unread.join("; ")));
    Ok(Answer { text, log, ..Answer::default() })
}

fn question(given: &Map<String, Value>) -> Result<Question, Error> {
    arguments::only(TOOL.name, &ARGUMENTS, given)?;
    let pattern = arguments::string(given, "query", "a regular expression as a string")?;
    let pattern = pattern.filter(|text| !text.is_empty()).ok_or(Error::NoQuery)?;
    let kind = arguments::string(given, "type", "a conversation type as a string")?;
    let dates = arguments::string(given, "date_range", "YYYY-MM or YYYY-MM-DD as a string")?;
    let takes = "an integer from 1 to 1000";
    let limit = arguments::integer_in(given, "limit", takes, 1..=MOST)?.unwrap_or(DEFAULT_LIMIT);
    let dates = dates.map(Dates::parse).transpose().map_err(Error::Dates)?;
    let kind = kind.filter(|kind| !kind.is_empty() && !kind.eq_ignore_ascii_case(ALL));
    Ok(Question { pattern: pattern.to_owned(), dates, kind: kind.map(str::to_owned), limit })
}

fn nothing(question: &Question, dates: Option<&str>) -> String {
    let mut text = format!("No results found for query: '{}'", question.pattern);
    if let Some(kind) = &question.kind {
        text.push_str(&format!(" (type: {kind})"));
    }
    if let Some(dates) = dates {
        text.push_str(&format!(" (date: {dates})"));
    }
    text
}

/// Returns the lines as the contract shows them, as many as an answer holds.
fn results(lines: &[Line]) -> String {
    let mut body = String::new();
    let mut shown = 0;
    for line in lines {
        let file = line.path.file_name().unwrap_or_default().to_string_lossy();
        let mut block = String::new();
        write!(block, "**{}** - {file}:{}\n  {}\n\n", line.conversation, line.number, line.text)
            .expect("a String takes all");
        if body.len() + block.len() > MOST_BYTES {
            break;
        }
        body.push_str(&block);
        shown += 1;
    }
    let mut text = format!("Found {shown} result(s):\n\n{body}");
    if shown < lines.len() {
        let left = lines.len() - shown;
        text.push_str(&format!(
            "({left} more lines do not fit here; narrow query, type or date_range to see them)\n"
        ));
    }
    text
}
