//! `search_workspace`: lines of dated conversation folders that match a regular expression.

use serde_json::{Map, Value, json};

use super::{
    arguments::Arguments,
    bound::MOST_BYTES,
    error::Error,
    tool::{Answer, Call, Effect, Tool, object},
};
use crate::engine::{
    self,
    workspace::{Dates, Error as WorkspaceError, Line, Question},
};

/// Lines returned by default.
const DEFAULT_LIMIT: usize = 10;

/// Lines returned at most.
const MAX_LIMIT: usize = 1000;

/// The value of `type` that means every type.
const EVERY_TYPE: &str = "all";

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
    run: search,
    refuse: |_, error| Answer { is_error: true, ..format!("Error: {error}").into() },
};

fn schema() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Search query: a regular expression as ripgrep reads it, in either case",
            },
            "type": {
                "type": "string",
                "default": EVERY_TYPE,
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
                "maximum": MAX_LIMIT,
                "description": "Maximum number of matching lines to return",
            },
            "workspace_path": {
                "type": "string",
                "description": "Search only this folder inside a configured workspace",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    }))
}

fn search(call: &Call<'_>) -> Result<Answer, Error> {
    let question = question(&call.arguments)?;
    let folder = call.arguments.string("workspace_path", "a folder as a string")?;
    let found = engine::search_workspace(call.engine.config(), &question, folder, call.stop);
    let found = found.map_err(|error| match error {
        engine::Error::Workspace(
            error @ (WorkspaceError::Pattern(_)
            | WorkspaceError::Long { .. }
            | WorkspaceError::Large { .. }
            | WorkspaceError::Slow),
        ) => Error::Refused(format!("query is {error}")),
        engine::Error::Workspace(error @ WorkspaceError::Outside { .. }) => {
            Error::Refused(format!("workspace_path: {error}"))
        }
        error => Error::Engine(error),
    })?;
    let text = if found.lines.is_empty() {
        nothing(&question, call.arguments.string("date_range", "")?)
    } else {
        results(&found.lines)
    };
    let log = (!found.unread.is_empty())
        .then(|| format!("search_workspace could not read {}", found.unread.join("; ")));
    Ok(Answer { log, ..text.into() })
}

fn question(given: &Arguments<'_>) -> Result<Question, Error> {
    given.only(&ARGUMENTS)?;
    let pattern = given.string("query", "a regular expression as a string")?;
    let pattern = pattern.filter(|text| !text.is_empty());
    let pattern =
        pattern.ok_or_else(|| Error::refused("query is required: a regular expression"))?;
    let kind = given.string("type", "a conversation type as a string")?;
    let dates = given.string("date_range", "YYYY-MM or YYYY-MM-DD as a string")?;
    let limit = given.integer_in("limit", "an integer from 1 to 1000", 1..=MAX_LIMIT)?;
    let dates = dates.map(Dates::parse).transpose();
    let dates = dates.map_err(|error| Error::Refused(format!("date_range: {error}")))?;
    let kind = kind.filter(|kind| !kind.is_empty() && !kind.eq_ignore_ascii_case(EVERY_TYPE));
    Ok(Question {
        pattern: pattern.to_owned(),
        dates,
        kind: kind.map(str::to_owned),
        limit: limit.unwrap_or(DEFAULT_LIMIT),
    })
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
        let (conversation, number, text) = (&line.conversation, line.number, &line.text);
        let block = format!("**{conversation}** - {file}:{number}\n  {text}\n\n");
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
