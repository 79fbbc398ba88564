//! `read`: a conversation that `search` found, as Markdown, line by line.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{Answer, Effect, Options, Tool, arguments, bound};
use crate::{
    engine::{self, Engine, Session},
    import::compressed::stem,
    model::Stop,
    text::snippet,
};

/// Tokens of a page when the call does not say where to end.
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
    run,
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Argument(#[from] arguments::Error),
    #[error("path is required: give the path as search prints it")]
    NoPath,
    #[error("File not found: {0} (give the path as search prints it)")]
    NotFound(String),
    #[error("Invalid line range: {0}")]
    Range(String),
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

fn schema() -> Map<String, Value> {
    let line =
        |description: &str| json!({"type": "integer", "minimum": 1, "description": description});
    super::object(json!({
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

fn run(engine: &Engine, options: &Options, arguments: &Map<String, Value>, stop: &Stop) -> Answer {
    match read(engine, options, arguments, stop) {
        Ok(text) => Answer { text, ..Answer::default() },
        Err(error) => {
            let log = match &error {
                Error::Engine(error) => super::logged(TOOL.name, error),
                _ => None,
            };
            Answer { text: error.to_string(), is_error: true, log, ..Answer::default() }
        }
    }
}

fn read(
    engine: &Engine,
    options: &Options,
    given: &Map<String, Value>,
    stop: &Stop,
) -> Result<String, Error> {
    arguments::only(TOOL.name, &ARGUMENTS, given)?;
    let path = arguments::string(given, "path", "a path as search prints it")?;
    let path = path.filter(|path| !path.is_empty()).ok_or(Error::NoPath)?;
    let line = |name| {
        let most = u32::MAX as usize;
        arguments::integer_in(given, name, TAKES_LINE, 1..=most)
            .map(|line| line.and_then(|line| u32::try_from(line).ok()))
            .map_err(|error| Error::Range(error.to_string()))
    };
    let start = line("startLine")?;
    let end = line("endLine")?;
    if let (Some(start), Some(end)) = (start, end)
        && end < start
    {
        return Err(Error::Range(format!("endLine {end} is before startLine {start}")));
    }
    let about = engine.at_path(path)?;
    let session = match &about {
        Some(about) => engine.session(about.source, &about.id, options.raw_content, stop)?,
        None => None,
    };
    let session = session.ok_or_else(|| Error::NotFound(path.to_owned()))?;
    let last = session.turns().checked_sub(1).map_or(0, |turn| session.line(turn));
    if let Some(start) = start.filter(|start| *start > last) {
        let problem = format!("startLine {start} is past the last line, {last}");
        return Err(Error::Range(problem));
    }
    let most = if end.is_some() { bound::MOST - bound::FRAME } else { PAGE };
    Ok(page(&session, start.unwrap_or(1), end.unwrap_or(last).min(last), most))
}

/// Returns the messages that begin at lines `start` to `end`, as many of them as `most` tokens hold.
pub(crate) fn page(session: &Session, start: u32, end: u32, most: usize) -> String {
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
        let cost = bound::tokens(content) + FRAME;
        if cost > left && is_open {
            break;
        }
        let begins = exchanges.begins(shown);
        if begins || !is_open {
            exchange += usize::from(begins);
            let rule = if is_open { "\n---\n" } else { "" };
            write!(text, "{rule}\n## Exchange {}\n", exchange.max(1)).expect(WRITES);
        }
        is_open = true;
        let (content, rest) = match bound::cut(content, left.saturating_sub(FRAME)) {
            Some(start) => (start, content[start.len()..].chars().count()),
            None => (content, 0),
        };
        write!(text, "\n**{}:**\n{content}\n", role(&message.role)).expect(WRITES);
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
        write!(text, "\n---\n\n*{}*\n", notes.join(" ")).expect(WRITES);
    }
    text
}

const WRITES: &str = "a String takes all";

/// Tokens of a message's heading.
const FRAME: usize = 12;

/// Says which lines a page shows, where that is not the whole conversation, and which come next.
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
        (Some(file), _) => stem(file),
        (None, "") => about.id.clone(),
        (None, title) => title.to_owned(),
    };
    let project = about.project.as_deref().unwrap_or(about.source.name());
    let day = super::day(about.begun.or(about.last)).unwrap_or_else(|| "unknown".to_owned());
    let (name, project) = (bound::line(&name, 200), bound::line(project, 200));
    format!("# Conversation: {name}\n# Project: {project}\n# Date: {day}\n")
}

/// Where the exchanges of a conversation begin.
struct Exchanges<'a> {
    session: &'a Session,
    /// The first message of the user's, if any.
    first: Option<usize>,
}

impl Exchanges<'_> {
    fn of(session: &Session) -> Exchanges<'_> {
        let first = (0..session.turns()).find(|turn| session.role(*turn) == USER);
        Exchanges { session, first }
    }

    /// Returns whether one begins with a message: with the first of all, which has what comes before
    /// the user speaks, and with the user's after another's.
    fn begins(&self, turn: usize) -> bool {
        let is_later = self.first.is_some_and(|first| turn > first);
        let role = |turn| self.session.role(turn);
        turn == 0 || is_later && role(turn) == USER && role(turn - 1) != USER
    }
}

const USER: &str = "user";

/// Returns a role as it stands above a message.
fn role(role: &str) -> String {
    let mut characters = role.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => "Unknown".to_owned(),
    }
}

/// Returns the first of `count` numbers for which `is_before` does not hold; it holds for all below.
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
