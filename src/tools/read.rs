//! `read`: a conversation that `search` found, as Markdown, line by line.

use serde_json::{Map, Value, json};

use super::{
    bound,
    error::Error,
    tool::{self, Answer, Call, Effect, Options, Tool, object, plain_error},
};
use crate::{
    engine::{self, Engine, Scope, Session, file_stem},
    model::Stop,
    text::snippet,
};

/// Tokens of a page if the call has no endLine.
const PAGE: usize = 10_000;

const ARGUMENTS: [&str; 3] = ["path", "startLine", "endLine"];

const TAKES_LINE: &str = "a line number from 1 on";

/// The tool.
pub const TOOL: Tool = Tool {
    name: "read",
    title: "Read a conversation",
    description: "Read a past conversation as Markdown, by the path that search gives. For long ones give \
                  startLine and endLine around the line that matched; an answer that is cut names the lines \
                  to ask for next.",
    effect: Effect::Reads,
    schema,
    output_schema: None,
    run: read,
    refuse: plain_error,
};

fn schema() -> Map<String, Value> {
    let line =
        |description: &str| json!({"type": "integer", "minimum": 1, "description": description});
    object(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path from search results"},
            "startLine": line("Starting line (1-indexed, default 1)"),
            "endLine": line("Ending line (omit for all)"),
        },
        "required": ["path"],
        "additionalProperties": false,
    }))
}

fn read(call: &Call<'_>) -> Result<Answer, Error> {
    let Call { engine, options, arguments, stop } = call;
    arguments.only(&ARGUMENTS)?;
    let path = arguments.string("path", "a path as search prints it")?;
    let path = path.filter(|path| !path.is_empty());
    let required = || Error::refused("path is required: give the path as search prints it");
    let path = path.ok_or_else(required)?;
    let out_of_range = |problem: String| Error::Refused(format!("Invalid line range: {problem}"));
    let line = |name| {
        let line = arguments.integer_in(name, TAKES_LINE, 1..=u32::MAX as usize);
        line.map(|line| line.and_then(|line| u32::try_from(line).ok()))
            .map_err(|error| out_of_range(error.to_string()))
    };
    let start = line("startLine")?;
    let end = line("endLine")?;
    if let (Some(start), Some(end)) = (start, end)
        && end < start
    {
        return Err(out_of_range(format!("endLine {end} is before startLine {start}")));
    }
    let session = match engine.find(stop).by_path(path)? {
        Some(about) => engine.session(about.source, &about.id, options.raw_content, stop)?,
        None => None,
    };
    let session = session.ok_or_else(|| {
        let mut text = format!("File not found: {path} (give the path as search prints it)");
        for note in engine.unreadable(&Scope::default(), stop) {
            text.push_str(&format!("; {note}"));
        }
        Error::Refused(text)
    })?;
    let last = session.turns().checked_sub(1).map_or(0, |turn| session.line(turn));
    if let Some(start) = start.filter(|start| *start > last) {
        return Err(out_of_range(format!("startLine {start} is past the last line, {last}")));
    }
    let most = if end.is_some() { bound::MOST_TOKENS - bound::FRAME } else { PAGE };
    Ok(page(&session, start.unwrap_or(1), end.unwrap_or(last).min(last), most).into())
}

/// Returns a whole conversation in the form in which `read` shows it; `None` if no source has it.
pub fn transcript(
    engine: &Engine,
    options: &Options,
    id: &str,
    stop: &Stop,
) -> Result<Option<String>, engine::Error> {
    for source in engine.sources() {
        if let Some(session) = engine.session(source.kind, id, options.raw_content, stop)? {
            return Ok(Some(page(&session, 1, u32::MAX, usize::MAX / 8)));
        }
    }
    Ok(None)
}

/// Returns the messages at lines `start` to `end`, as many as fit into `most` tokens.
fn page(session: &Session, start: u32, end: u32, most: usize) -> String {
    let turns = session.turns();
    let first = partition(turns, |turn| session.line(turn) < start);
    let after = partition(turns, |turn| session.line(turn) <= end);
    let mut text = head(session);
    let mut left = most.saturating_sub(bound::tokens(&text));
    let exchanges = Exchanges::of(session);
    let mut exchange = (0..first).filter(|turn| exchanges.begins(*turn)).count();
    let mut is_open = false;
    let mut shown = first;
    let mut notes = Vec::new();
    while shown < after {
        let message = session.message(shown);
        let content = snippet::trim(&message.content);
        let cost = bound::tokens(content) + HEADING_TOKENS;
        if cost > left && is_open {
            break;
        }
        let begins = exchanges.begins(shown);
        if begins || !is_open {
            exchange += usize::from(begins);
            let rule = if is_open { "\n---\n" } else { "" };
            text.push_str(&format!("{rule}\n## Exchange {}\n", exchange.max(1)));
        }
        is_open = true;
        let (content, rest) = match bound::cut(content, left.saturating_sub(HEADING_TOKENS)) {
            Some(start) => (start, content[start.len()..].chars().count()),
            None => (content, 0),
        };
        text.push_str(&format!("\n**{}:**\n{content}\n", role(&message.role)));
        left = left.saturating_sub(cost);
        if rest > 0 {
            let line = session.line(shown);
            let id = &session.about.id;
            notes.push(format!(
                "Line {line} is cut: {rest} more characters. The resource verbatim://conversation/{id} \
                 and `verbatim show {id}` have it whole."
            ));
        }
        shown += 1;
    }
    notes.extend(whereabouts(session, first, shown, after));
    if !notes.is_empty() {
        text.push_str(&format!("\n---\n\n*{}*\n", notes.join(" ")));
    }
    text
}

/// Tokens of a message's heading.
const HEADING_TOKENS: usize = 12;

/// Says which lines a page shows and which come next; `None` if it shows the whole conversation.
fn whereabouts(session: &Session, first: usize, shown: usize, after: usize) -> Option<String> {
    let turns = session.turns();
    if first == 0 && shown == turns {
        return None;
    }
    let last = session.line(turns - 1);
    if first == shown {
        let before = first.checked_sub(1).map(|turn| session.line(turn));
        let next = (first < turns).then(|| session.line(first));
        let near: Vec<String> =
            before.into_iter().chain(next).map(|line| format!("line {line}")).collect();
        return Some(format!("No message begins there; the nearest: {}.", near.join(", ")));
    }
    let lines = format!("Lines {}-{} of {last}", session.line(first), session.line(shown - 1));
    Some(if shown < turns {
        let (next, why) =
            (session.line(shown), if shown < after { ", cut to keep it short" } else { "" });
        format!("{lines}{why}. Next: startLine {next}.")
    } else {
        format!("{lines}.")
    })
}

/// Returns the lines above the first exchange.
fn head(session: &Session) -> String {
    let about = &session.about;
    let name = match (&about.file, snippet::trim(&about.title)) {
        (Some(file), _) => file_stem(file),
        (None, "") => about.id.clone(),
        (None, title) => title.to_owned(),
    };
    let project = about.project.as_deref().unwrap_or(about.source.name());
    let day = tool::day(about.begun.or(about.last)).unwrap_or_else(|| "unknown".to_owned());
    let (name, project) = (bound::line(&name, 200), bound::line(project, 200));
    format!("# Conversation: {name}\n# Project: {project}\n# Date: {day}\n")
}

/// The exchanges of a conversation: a user's message and the replies to it.
struct Exchanges<'a> {
    session: &'a Session,
    /// The first message of the user, if there is one.
    first: Option<usize>,
}

impl Exchanges<'_> {
    fn of(session: &Session) -> Exchanges<'_> {
        let first = (0..session.turns()).find(|turn| session.role(*turn) == USER);
        Exchanges { session, first }
    }

    /// Returns whether an exchange begins with a message. The first exchange begins with the first
    /// message and includes all that comes before the user speaks; every later one begins with a
    /// user's message that follows another role's.
    fn begins(&self, turn: usize) -> bool {
        let is_later = self.first.is_some_and(|first| turn > first);
        let role = |turn| self.session.role(turn);
        turn == 0 || is_later && role(turn) == USER && role(turn - 1) != USER
    }
}

const USER: &str = "user";

/// Returns a role as a heading shows it.
fn role(role: &str) -> String {
    let mut characters = role.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => "Unknown".to_owned(),
    }
}

/// Returns the first number below `count` for which `is_before` is false, else `count`; `is_before` is
/// true for every smaller number.
fn partition(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
