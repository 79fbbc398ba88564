//! `search`: conversations by meaning, by words or by an exact text, best first.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Answer, Effect, Options, Tool, arguments, bound};
use crate::{
    engine::{self, ConversationMatch, Engine, Fields, Mode, Question, Scope},
    model::{Instant, Stop},
    text::{
        date::{self, Edge},
        snippet,
    },
};

/// Conversations returned when the call does not say.
const DEFAULT_LIMIT: usize = 10;

/// Conversations returned at most.
const MOST: usize = 50;

/// Characters that a concept has at least.
const SHORTEST: usize = 2;

/// Characters shown of a title, a summary and a passage.
const SHOWN: (usize, usize, usize) = (100, 300, 320);

/// Lines around a match that are worth reading.
const AROUND: u32 = 10;

const ARGUMENTS: [&str; 8] =
    ["query", "mode", "limit", "after", "before", "response_format", "project", "session_id"];

const MODES: [(&str, Mode); 3] =
    [("vector", Mode::Vector), ("text", Mode::Exact), ("both", Mode::Both)];

/// The tool.
pub const TOOL: Tool = Tool {
    name: "search",
    title: "Search past conversations",
    description: "Search past conversations (exports and coding agents' transcripts): one concept, or an array \
                  of 2-5 that must all occur. Returns conversations, best first, with project, date, score, \
                  summary, the passage and line that matched, and the path that read takes.",
    effect: Effect::Reads,
    schema,
    output_schema: None,
    run,
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Argument(#[from] arguments::Error),
    #[error("Query must be string or array; got {0}")]
    NotAQuery(String),
    #[error("Query array must have 2-5 items; got {0}")]
    Items(usize),
    #[error("Query too short: {0:?} has fewer than {SHORTEST} characters")]
    TooShort(String),
    #[error("Invalid date format: {name} takes a day as YYYY-MM-DD; got {got}")]
    NotADay { name: &'static str, got: String },
    #[error("after ({after}) is later than before ({before}): no day lies between")]
    NoDays { after: String, before: String },
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

/// What is asked for.
#[derive(Debug)]
struct Ask {
    question: Question,
    limit: usize,
    is_json: bool,
}

fn schema() -> Map<String, Value> {
    let day = json!({"type": "string", "description": "YYYY-MM-DD, inclusive, UTC"});
    super::object(json!({
        "type": "object",
        "properties": {
            "query": {
                "anyOf": [
                    {"type": "string", "minLength": SHORTEST},
                    {"type": "array", "items": {"type": "string", "minLength": SHORTEST}, "minItems": 2, "maxItems": 5},
                ],
                "description": "Single concept or array of 2-5 concepts for AND search",
            },
            "mode": {
                "type": "string", "enum": ["vector", "text", "both"], "default": "both",
                "description": "vector: by meaning; text: this exact text (IDs, error codes); both: meaning and words",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT_LIMIT},
            "after": day,
            "before": day,
            "response_format": {"type": "string", "enum": ["markdown", "json"], "default": "markdown"},
            "project": {"type": "string", "description": "Only this project"},
            "session_id": {"type": "string", "description": "Only this session"},
        },
        "required": ["query"],
        "additionalProperties": false,
    }))
}

fn run(engine: &Engine, _: &Options, arguments: &Map<String, Value>, stop: &Stop) -> Answer {
    match search(engine, arguments, stop) {
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

fn search(engine: &Engine, arguments: &Map<String, Value>, stop: &Stop) -> Result<String, Error> {
    let ask = asked(arguments)?;
    let ranking = engine.rank_conversations(&ask.question, stop)?;
    let mut notes = ranking.notes;
    let mut items = ranking.items;
    if items.len() > ask.limit {
        items.truncate(ask.limit);
        let how = if ask.limit < MOST { "raise limit (at most 50), or " } else { "" };
        notes.push(format!("There are more: {how}narrow it with after, before or more concepts."));
    }
    let mut results: Vec<Found> = items.iter().map(|item| Found::of(engine, item)).collect();
    let count = results.len();
    let mut left = bound::MOST - bound::FRAME;
    let fits = results.iter().take_while(|found| {
        let cost = found.cost();
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    });
    let fits = fits.count();
    if fits < count {
        results.truncate(fits);
        notes.push(format!("{} more were left out to keep this short: set limit.", count - fits));
    }
    Ok(if ask.is_json { as_json(results, notes) } else { as_markdown(&results, &notes) })
}

fn asked(given: &Map<String, Value>) -> Result<Ask, Error> {
    arguments::only(TOOL.name, &ARGUMENTS, given)?;
    let concepts = concepts(given.get("query"))?;
    let takes = "\"vector\", \"text\" or \"both\"";
    let mode = arguments::choice(given, "mode", takes, &MODES)?.unwrap_or_default();
    let takes = "an integer from 1 to 50";
    let limit = arguments::integer_in(given, "limit", takes, 1..=MOST)?.unwrap_or(DEFAULT_LIMIT);
    let since = day(given, "after", Edge::Start)?;
    let until = day(given, "before", Edge::End)?;
    if let (Some((since, after)), Some((until, before))) = (&since, &until)
        && since > until
    {
        return Err(Error::NoDays { after: (*after).to_owned(), before: (*before).to_owned() });
    }
    let formats = [("markdown", false), ("json", true)];
    let takes = "\"markdown\" or \"json\"";
    let is_json = arguments::choice(given, "response_format", takes, &formats)?.unwrap_or(false);
    let project = arguments::string(given, "project", "the name of a project")?;
    let session = arguments::string(given, "session_id", "the id of a session")?;
    let scope = Scope {
        since: since.map(|(since, _)| since),
        until: until.map(|(until, _)| until),
        project: project.map(str::to_owned),
        session: session.map(str::to_owned),
        ..Scope::default()
    };
    // One more, to see whether there are more.
    let question = Question { concepts, mode, fields: Fields::Messages, scope, limit: limit + 1 };
    Ok(Ask { question, limit, is_json })
}

fn concepts(query: Option<&Value>) -> Result<Vec<String>, Error> {
    let not_a_query = |value: &Value| Error::NotAQuery(arguments::shown(value));
    let concept = |text: &str| {
        let trimmed = snippet::trim(text);
        if trimmed.chars().count() < SHORTEST {
            return Err(Error::TooShort(trimmed.to_owned()));
        }
        Ok(trimmed.to_owned())
    };
    match query {
        Some(Value::String(text)) => Ok(vec![concept(text)?]),
        Some(Value::Array(items)) if (2..=5).contains(&items.len()) => items
            .iter()
            .map(|item| concept(item.as_str().ok_or_else(|| not_a_query(item))?))
            .collect(),
        Some(Value::Array(items)) => Err(Error::Items(items.len())),
        Some(other) => Err(not_a_query(other)),
        None => Err(Error::NotAQuery("nothing".to_owned())),
    }
}

/// Returns the first or last instant of a day, with the text it is from.
fn day<'a>(
    given: &'a Map<String, Value>,
    name: &'static str,
    edge: Edge,
) -> Result<Option<(Instant, &'a str)>, Error> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() == "YYYY-MM-DD".len() => {
            let instant = date::parse_iso(text, edge).filter(|_| text.as_bytes()[4] == b'-');
            let day = instant.map(|instant| (instant, text.as_str()));
            day.map(Some).ok_or_else(|| Error::NotADay { name, got: format!("{text:?}") })
        }
        Some(other) => Err(Error::NotADay { name, got: arguments::shown(other) }),
    }
}

/// A conversation as it is shown.
#[derive(Debug, Serialize)]
struct Found {
    path: String,
    project: String,
    date: Option<String>,
    score: f64,
    summary: String,
    snippet: String,
    title: String,
    line: Option<u32>,
}

impl Found {
    fn of(engine: &Engine, item: &ConversationMatch) -> Found {
        let about = &item.about;
        let best = item.matches.first();
        let time = best.and_then(|best| best.hit.time).or(about.begun).or(about.last);
        let title = bound::line(&about.title, SHOWN.0);
        let summary = match snippet::trim(&about.summary) {
            "" => title.clone(),
            summary => bound::line(summary, SHOWN.1),
        };
        Found {
            path: engine.path_of(about),
            project: about.project.clone().unwrap_or_else(|| about.source.name().to_owned()),
            date: super::day(time),
            score: (item.score * 1e4).round() / 1e4,
            summary,
            snippet: best.map(|best| bound::line(&best.passage, SHOWN.2)).unwrap_or_default(),
            title,
            line: best.map(|best| best.line),
        }
    }

    /// About how many tokens it takes, what frames it included.
    fn cost(&self) -> usize {
        let texts = [&self.path, &self.project, &self.title, &self.summary, &self.snippet];
        texts.into_iter().map(|text| bound::tokens(text)).sum::<usize>() + 60
    }
}

fn as_json(results: Vec<Found>, notes: Vec<String>) -> String {
    #[derive(Serialize)]
    struct Results {
        results: Vec<Found>,
        total: usize,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    }
    let results = Results { total: results.len(), results, notes };
    serde_json::to_string(&results).expect("strings and numbers are JSON")
}

fn as_markdown(results: &[Found], notes: &[String]) -> String {
    let mut text = String::new();
    if results.is_empty() {
        text.push_str("No conversations found\n\nTry a broader query or remove date filters.\n");
    } else {
        let plural = if results.len() == 1 { "" } else { "s" };
        writeln!(text, "## Search Results ({} conversation{plural})", results.len()).expect(WRITES);
    }
    for (number, found) in (1..).zip(results) {
        let rule = if number > 1 { "\n---\n" } else { "" };
        let date = found.date.as_deref().unwrap_or("no date");
        write!(
            text,
            "{rule}\n### {number}. [{}] - {date}\n**Path:** `{}`\n**Score:** {:.2}\n",
            found.project, found.path, found.score
        )
        .expect(WRITES);
        if let Some(line) = found.line {
            let (start, end) = (line.saturating_sub(AROUND).max(1), line.saturating_add(AROUND));
            let range = format!("read startLine {start}, endLine {end}");
            writeln!(text, "**Line:** {line} ({range})").expect(WRITES);
        }
        if !found.title.is_empty() {
            writeln!(text, "**Title:** {}", found.title).expect(WRITES);
        }
        if !found.summary.is_empty() {
            write!(text, "\nSummary: {}\n", found.summary).expect(WRITES);
        }
        if !found.snippet.is_empty() {
            write!(text, "\nSnippet: {}\n", found.snippet).expect(WRITES);
        }
    }
    for note in notes {
        write!(text, "\n*{note}*\n").expect(WRITES);
    }
    text
}

const WRITES: &str = "a String takes all";
