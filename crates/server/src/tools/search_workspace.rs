//! `search_workspace`: lines of dated conversation folders that match a regular expression.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::bound::{self, MOST_ANSWER_BYTES};
use super::error::{Error, Result};
use super::tool::{Answer, Effect, Tool, ToolCall, object};
use verbatim_engine as engine;
use verbatim_engine::workspace::{Dates, Error as WorkspaceError, Line, WorkspaceQuestion};
use verbatim_text::{snippet, terminal::on_one_line};

const DEFAULT_LIMIT: usize = 10;

const MAX_LIMIT: usize = 1000;

const LONGEST_PATH: usize = 1000;

const MOST_LEFT_OUT: usize = 3;

const EVERY_TYPE: &str = "all";

const ARGUMENTS: [&str; 5] = ["query", "type", "date_range", "limit", "workspace_path"];

/// The tool that searches the dated notes of a workspace with a regular expression.
pub const TOOL: Tool = Tool {
    name: "search_workspace",
    title: "Search the workspace",
    description: "Search across conversations, notes, and research in the workspace. Returns matching lines, \
                  newest first.",
    use_for: "lines of the user's dated notes, by regular expression",
    effect: Effect::Reads,
    searches: &[],
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
                "description": "Regular expression, in either case",
            },
            "type": {
                "type": "string",
                "default": EVERY_TYPE,
                "description": "Conversation type (brainstorm, debug, plan, …)",
            },
            "date_range": {
                "type": "string",
                "description": "Filter by date range. Supports YYYY-MM (month) or YYYY-MM-DD (day) format. Month \
                                format matches all days within that month. Examples: '2025-11' or '2025-11-10'",
            },
            "limit": {
                "type": "integer",
                "default": DEFAULT_LIMIT,
                "maximum": MAX_LIMIT,
                "description": "Max lines",
            },
            "workspace_path": {
                "type": "string",
                "description": "Folder inside the workspace",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    }))
}

fn search(tool_call: &ToolCall<'_>) -> Result<Answer> {
    let (question, limit) = question(&tool_call.arguments)?;
    let folder = tool_call.arguments.word("workspace_path", "a folder as a string")?;
    let config = tool_call.engine.config();
    let found = engine::search_workspace(config, &question, folder, &tool_call.call.stop);
    let mut found = found.map_err(|error| match error {
        engine::Error::Workspace(
            error @ (WorkspaceError::Pattern(_)
            | WorkspaceError::Long { .. }
            | WorkspaceError::Large { .. }
            | WorkspaceError::Slow),
        ) => Error::Refused(format!("query is {error}")),
        engine::Error::Workspace(error @ WorkspaceError::Classes { .. }) => {
            Error::Refused(format!("query {error}"))
        }
        engine::Error::Workspace(WorkspaceError::Outside { named, workspaces }) => {
            let named = snippet::echo(&named).into_owned();
            Error::Refused(format!(
                "workspace_path: {}",
                WorkspaceError::Outside { named, workspaces }
            ))
        }
        error => Error::Engine(error),
    })?;
    let is_limited = found.lines.len() > limit;
    found.lines.truncate(limit);
    let mut text = if found.lines.is_empty() {
        nothing(&question, tool_call.arguments.string("date_range", "")?)
    } else {
        results(&found.lines, &config.workspaces)
    };
    if !found.has_conversations {
        let all = config.workspaces.iter().map(|path| path.display().to_string());
        let all = all.collect::<Vec<_>>().join(", ");
        text.push_str(&format!(
            "\n\nNo conversation folders found in {}; looked for conversations/DATE/NNN-slug, TYPE/DATE/NNN-slug \
             and conversations/TYPE/DATE/NNN-slug, with DATE YYYY-MM or YYYY-MM-DD.",
            folder.map_or(all, |folder| format!("{folder:?}"))
        ));
    }
    if is_limited {
        let raise = if limit < MAX_LIMIT { "raise limit or " } else { "" };
        text.push_str(&format!(
            "(Limit {limit} reached; there are more: {raise}narrow query, type or date_range.)\n"
        ));
    }
    if found.unread.is_empty() {
        return Ok(text.into());
    }
    text.push_str(&left_out_line(&found.unread));
    let log = format!("search_workspace could not read {}", found.unread.join("; "));
    Ok(Answer { log: Some(log), ..text.into() })
}

fn left_out_line(unread: &[String]) -> String {
    let named: Vec<_> = unread
        .iter()
        .take(MOST_LEFT_OUT)
        .map(|message| bound::line(message, LONGEST_PATH))
        .collect();
    let more = unread.len() - named.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("\n(Left out: {}{more})\n", named.join("; "))
}

/// Returns the question and the limit. The question asks for one line more than the limit, so that
/// the answer can say whether more lines match.
fn question(given: &Arguments<'_>) -> Result<(WorkspaceQuestion, usize)> {
    given.only(&ARGUMENTS)?;
    let pattern = given.string("query", "a regular expression as a string")?;
    let pattern = pattern.filter(|text| !snippet::trim(text).is_empty());
    let pattern =
        pattern.ok_or_else(|| Error::refused("query is required: a regular expression"))?;
    let kind = given.word("type", "a conversation type as a string")?;
    let dates = given.word("date_range", "YYYY-MM or YYYY-MM-DD as a string")?;
    let limit = given.integer_in("limit", "an integer from 1 to 1000", 1..=MAX_LIMIT)?;
    let dates = dates.map(|dates| Dates::parse(&snippet::echo(dates))).transpose();
    let dates = dates.map_err(|error| Error::Refused(format!("date_range: {error}")))?;
    let kind = kind.filter(|kind| !kind.is_empty() && !kind.eq_ignore_ascii_case(EVERY_TYPE));
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let pattern = pattern.to_owned();
    let kind = kind.map(str::to_owned);
    Ok((WorkspaceQuestion { pattern, dates, kind, limit: limit + 1 }, limit))
}

fn nothing(question: &WorkspaceQuestion, dates: Option<&str>) -> String {
    let mut text = format!("No results found for query: '{}'", snippet::echo(&question.pattern));
    if let Some(kind) = &question.kind {
        text.push_str(&format!(" (type: {})", snippet::echo(kind)));
    }
    if let Some(dates) = dates {
        text.push_str(&format!(" (date: {dates})"));
    }
    text
}

/// Returns the lines in the contract's format, as many as an answer can hold. The path of a file is
/// relative to its workspace, because conversations of different dates may have the same name.
fn results(lines: &[Line], workspaces: &[PathBuf]) -> String {
    // Links are resolved here, because they are resolved in the paths of the found lines too.
    let roots: Vec<PathBuf> =
        workspaces.iter().filter_map(|it| dunce::canonicalize(it).ok()).collect();
    let mut body = String::new();
    let mut shown = 0;
    for line in lines {
        let path = match &roots[..] {
            [root] => line.path.strip_prefix(root).unwrap_or(&line.path),
            _ => &line.path,
        };
        let file = bound::line(&path.to_string_lossy(), LONGEST_PATH);
        let conversation = bound::line(&line.conversation, LONGEST_PATH);
        let number = line.number;
        let text = on_one_line(&line.text);
        let block = format!("**{conversation}** - {file}:{number}\n  {text}\n\n");
        if body.len() + block.len() > MOST_ANSWER_BYTES {
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
