//! `query_conversations`: conversations as sessions: searched, read by id or key, listed.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Answer, Effect, Options, Tool, arguments, bound};
use crate::{
    engine::{
        self, About, ConversationMatch, Engine, Fields, Question, SAVED, Scope, Session, SourceKind,
    },
    model::{Instant, Stop},
    text::{date, snippet},
};

/// Conversations returned when the call does not say, and at most.
const LIMIT: (usize, usize) = (20, 50);

/// Turns of each match when the call does not say, and at most.
const TURNS_OF_MATCH: (usize, usize) = (10, 50);

/// Turns of a session when the call does not say, and at most.
const TURNS: (usize, usize) = (50, 200);

/// Characters of a query at most.
const LONGEST_QUERY: usize = 1000;

/// Characters of an id in compact texts, and the fewest that name a session.
const SHORT_ID: usize = 8;
const SHORTEST_ID: usize = 4;

/// Characters of a summary in compact texts; matched turns in them, and characters of each.
const SUMMARY: usize = 200;
const MATCHED: (usize, usize) = (3, 100);

/// Tokens of one answer, of what it says of conversations themselves, and of one turn when searching
/// and when reading.
const BUDGET: usize = 16_000;
const ABOUT: usize = 10_000;
const TURN: (usize, usize) = (600, 4_000);

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
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Argument(#[from] arguments::Error),
    #[error("Conversations not enabled: set ENABLE_CONVERSATIONS=true")]
    Disabled,
    #[error("Missing query: query is required for mode=\"search\"")]
    NoQuery,
    #[error("query takes 1 to {LONGEST_QUERY} characters; got {0}")]
    LongQuery(usize),
    #[error("Missing session identifier: sessionId or sessionKey is required for mode=\"get\"")]
    NoSession,
    #[error(
        "sessionId takes a whole id, or at least its first {SHORTEST_ID} characters; got {0:?}"
    )]
    ShortId(String),
    #[error("sessionId {word:?} may be any of: {}; give more of it", .candidates.join(", "))]
    Ambiguous { word: String, candidates: Vec<String> },
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    Search,
    Get,
    List,
}

fn schema() -> Map<String, Value> {
    let count = |(default, most): (usize, usize), description: &str| json!({"type": "integer", "minimum": 1, "maximum": most, "default": default, "description": description});
    super::object(json!({
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
    super::object(json!({
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
            "total": integer, "returned": integer, "offset": integer,
        },
        "required": ["mode"],
    }))
}

fn run(engine: &Engine, options: &Options, arguments: &Map<String, Value>, stop: &Stop) -> Answer {
    match query(engine, options, arguments, stop) {
        Ok(answer) => answer,
        Err(error) => {
            let log = match &error {
                Error::Engine(error) => super::logged(TOOL.name, error),
                _ => None,
            };
            let text = written(&json!({"error": error.to_string()}), options);
            Answer { text, is_error: true, log, ..Answer::default() }
        }
    }
}

fn query(
    engine: &Engine,
    options: &Options,
    given: &Map<String, Value>,
    stop: &Stop,
) -> Result<Answer, Error> {
    if options.no_conversations {
        return Err(Error::Disabled);
    }
    arguments::only(TOOL.name, &ARGUMENTS, given)?;
    let takes = "\"search\", \"get\" or \"list\"";
    let modes = [("search", Mode::Search), ("get", Mode::Get), ("list", Mode::List)];
    let mode = arguments::choice(given, "mode", takes, &modes)?
        .ok_or_else(|| arguments::wrong("mode", takes, &Value::Null))?;
    // Every argument is checked, whichever the mode: a wrong one is a mistake that should be seen.
    let query = arguments::string(given, "query", "a string")?.map(snippet::trim);
    let takes = "\"summary\", \"turns\" or \"both\"";
    let fields = arguments::choice(given, "searchMode", takes, &SEARCH_MODES)?;
    let fields = fields.unwrap_or(Fields::Summaries);
    let transcript = arguments::flag(given, "includeTranscript")?;
    let counted = |name, takes, (default, most)| {
        arguments::integer_in(given, name, takes, 1..=most).map(|count| count.unwrap_or(default))
    };
    let per_match = counted("maxTurnsPerConversation", "an integer from 1 to 50", TURNS_OF_MATCH)?;
    let turns = counted("maxTurns", "an integer from 1 to 200", TURNS)?;
    let limit = counted("limit", "an integer from 1 to 50", LIMIT)?;
    let takes = "an integer from 0 on";
    let offset = arguments::integer_in(given, "offset", takes, 0..=u32::MAX as usize)?.unwrap_or(0);
    let id = arguments::string(given, "sessionId", "a string")?.map(snippet::trim);
    let key = arguments::string(given, "sessionKey", "a string")?.map(snippet::trim);
    match mode {
        Mode::Search => {
            let query = query.filter(|query| !query.is_empty()).ok_or(Error::NoQuery)?;
            let length = query.chars().count();
            if length > LONGEST_QUERY {
                return Err(Error::LongQuery(length));
            }
            let question = Question {
                concepts: vec![query.to_owned()],
                mode: engine::Mode::Both,
                fields,
                scope: Scope::default(),
                limit,
            };
            let transcript = transcript.then_some(per_match);
            search(engine, options, &question, transcript, stop)
        }
        Mode::Get => {
            let named =
                |word: Option<&str>| word.filter(|word| !word.is_empty()).map(str::to_owned);
            get(engine, options, named(id), named(key), turns, stop)
        }
        Mode::List => list(engine, options, offset, limit),
    }
}

/// One turn, of a transcript or of the turns that matched.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    role: String,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
}

#[derive(Serialize)]
struct ShortTurn {
    r: String,
    c: String,
}

impl ShortTurn {
    fn of(turn: &Turn, most: usize) -> ShortTurn {
        let content = snippet::cut(&turn.content, most).unwrap_or(&turn.content);
        ShortTurn { r: turn.role.chars().take(1).collect(), c: content.to_owned() }
    }
}

/// What is left of the tokens that turns may take.
struct Budget {
    left: usize,
    each: usize,
    is_cut: bool,
}

impl Budget {
    fn new(left: usize, each: usize) -> Budget {
        Budget { left, each, is_cut: false }
    }

    /// Returns as much of a text as there is room for; `None` where there is none.
    fn take(&mut self, text: &str) -> Option<String> {
        let text = snippet::trim(text);
        if self.left == 0 {
            self.is_cut = true;
            return None;
        }
        let most = self.each.min(self.left);
        let text = match bound::cut(text, most) {
            Some(start) => {
                self.is_cut = true;
                format!("{start}…")
            }
            None => text.to_owned(),
        };
        self.left = self.left.saturating_sub(bound::tokens(&text) + FRAME);
        Some(text)
    }
}

/// Tokens of what frames a turn.
const FRAME: usize = 30;

fn search(
    engine: &Engine,
    options: &Options,
    question: &Question,
    transcript: Option<usize>,
    stop: &Stop,
) -> Result<Answer, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Found {
        session_id: String,
        session_key: String,
        title: Option<String>,
        summary: Option<String>,
        score: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        turns: Option<Vec<Turn>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        matched_turns: Option<Vec<Turn>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Results {
        mode: &'static str,
        total_results: usize,
        conversations: Vec<Found>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    #[derive(Serialize)]
    struct Short {
        id: String,
        k: String,
        t: Option<String>,
        s: f64,
        sum: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        turns: Option<Vec<ShortTurn>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        matched: Option<Vec<ShortTurn>>,
    }
    #[derive(Serialize)]
    struct ShortResults {
        n: usize,
        c: Vec<Short>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    let ranking = engine.rank_conversations(question, stop)?;
    let mut notes = ranking.notes;
    let mut about = 0;
    let items = ranking.items.iter().take_while(|item| {
        about += cost_of(&item.about);
        about <= ABOUT
    });
    let items: Vec<&ConversationMatch> = items.collect();
    if items.len() < ranking.items.len() {
        let more = ranking.items.len() - items.len();
        notes.push(format!("{more} more were left out to keep this short: set limit."));
    }
    let mut budget = Budget::new(BUDGET - about.min(ABOUT), TURN.0);
    let mut conversations = Vec::new();
    for item in items {
        let about = &item.about;
        let matched = match question.fields {
            Fields::Summaries => None,
            Fields::Messages | Fields::Both => Some(matched(item, &mut budget)),
        };
        let turns = match transcript {
            Some(most) => Some(last_turns(engine, options, about, most, &mut budget, stop)?),
            None => None,
        };
        conversations.push(Found {
            session_id: about.id.clone(),
            session_key: engine.key_of(about)?,
            title: present(&about.title),
            summary: summary(engine, options, about, stop)?,
            score: (item.score * 100.0).round() / 100.0,
            turns,
            matched_turns: matched,
        });
    }
    if budget.is_cut {
        notes.push("Turns were cut to keep this short: mode=\"get\" has a whole one.".to_owned());
    }
    let message = (!notes.is_empty()).then(|| notes.join(" "));
    let short = |found: &Found| {
        let shortened = |turns: &Vec<Turn>, count, most| {
            turns.iter().take(count).map(|turn| ShortTurn::of(turn, most)).collect()
        };
        let summary = |text: &String| snippet::cut(text, SUMMARY).unwrap_or(text).to_owned();
        Short {
            id: short_id(&found.session_id),
            k: found.session_key.clone(),
            t: found.title.clone(),
            s: found.score,
            sum: found.summary.as_ref().map(summary),
            turns: found.turns.as_ref().map(|turns| shortened(turns, usize::MAX, usize::MAX)),
            matched: found.matched_turns.as_ref().map(|it| shortened(it, MATCHED.0, MATCHED.1)),
        }
    };
    let compact = ShortResults {
        n: conversations.len(),
        c: conversations.iter().map(short).collect(),
        message: message.clone(),
    };
    let results =
        Results { mode: "search", total_results: conversations.len(), conversations, message };
    Ok(answer(options, &compact, &results))
}

/// Returns what a conversation is about: in the words it was saved with, else in its own. The index
/// tells both apart; where there is none, the words it was saved with are read.
fn summary(
    engine: &Engine,
    options: &Options,
    about: &About,
    stop: &Stop,
) -> Result<Option<String>, Error> {
    if about.source == SourceKind::Threads
        && about.summary.is_empty()
        && let Some(session) = engine.session(about.source, &about.id, options.raw_content, stop)?
        && session.role(0) == SAVED
    {
        return Ok(present(&session.message(0).content));
    }
    Ok(present(&about.summary))
}

/// Returns about how many tokens it takes to say what is known of a conversation.
fn cost_of(about: &About) -> usize {
    let title = present(&about.title).unwrap_or_default();
    let summary = present(&about.summary).unwrap_or_default();
    // The key has the title in it once more, in part.
    2 * bound::tokens(&title) + bound::tokens(&summary) + bound::tokens(&about.id) + FRAME
}

/// Returns the turns that made a conversation match, the best first.
fn matched(item: &ConversationMatch, budget: &mut Budget) -> Vec<Turn> {
    let turn = |one: &engine::Match| {
        Some(Turn {
            role: one.hit.role.clone(),
            content: budget.take(&one.passage)?,
            turn_index: None,
            created_at: None,
            score: Some((one.score * 100.0).round() / 100.0),
        })
    };
    item.matches.iter().filter(|one| !one.passage.is_empty()).map_while(turn).collect()
}

/// Returns the last turns of a conversation, in order.
fn last_turns(
    engine: &Engine,
    options: &Options,
    about: &About,
    most: usize,
    budget: &mut Budget,
    stop: &Stop,
) -> Result<Vec<Turn>, Error> {
    let session = engine.session(about.source, &about.id, options.raw_content, stop)?;
    Ok(session.map_or_else(Vec::new, |session| {
        let first = session.turns().saturating_sub(most);
        // The last ones matter most where not all have room.
        let turns = (first..session.turns()).rev();
        let mut turns: Vec<Turn> =
            turns.map_while(|at| turn_of(&session, at, false, budget)).collect();
        turns.reverse();
        turns
    }))
}

fn turn_of(session: &Session, at: usize, dated: bool, budget: &mut Budget) -> Option<Turn> {
    let message = session.message(at);
    Some(Turn {
        content: budget.take(&message.content)?,
        role: if message.role.is_empty() { "unknown".to_owned() } else { message.role },
        turn_index: Some(at),
        created_at: message.time.filter(|_| dated).and_then(date::to_iso),
        score: None,
    })
}

fn get(
    engine: &Engine,
    options: &Options,
    id: Option<String>,
    key: Option<String>,
    most: usize,
    stop: &Stop,
) -> Result<Answer, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Whole {
        id: String,
        session_key: String,
        title: Option<String>,
        summary: Option<String>,
        turn_count: usize,
        last_activity: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<String>,
    }
    #[derive(Serialize)]
    struct Result {
        mode: &'static str,
        found: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<Whole>,
        #[serde(skip_serializing_if = "Option::is_none")]
        turns: Option<Vec<Turn>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    #[derive(Serialize)]
    struct Short<'a> {
        id: String,
        k: &'a str,
        t: &'a Option<String>,
        sum: &'a Option<String>,
        n: usize,
        turns: Vec<ShortTurn>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: &'a Option<String>,
    }
    let (named, word) = match (&id, &key) {
        (Some(id), _) => (by_id(engine, id)?, format!("ID: {id}")),
        (None, Some(key)) => (engine.keyed(key)?, format!("key: {key}")),
        (None, None) => return Err(Error::NoSession),
    };
    let session = match &named {
        Some(about) => engine.session(about.source, &about.id, options.raw_content, stop)?,
        None => None,
    };
    let Some(session) = session else {
        let message =
            format!("Session not found: No conversation found with {word}. Check with mode=list.");
        let compact = json!({"found": false, "message": message});
        let message = Some(message);
        let result = Result { mode: "get", found: false, session: None, turns: None, message };
        return Ok(answer(options, &compact, &result));
    };
    let about = &session.about;
    let mut budget = Budget::new(BUDGET, TURN.1);
    let wanted = session.turns().min(most);
    let turns: Vec<Turn> =
        (0..wanted).map_while(|at| turn_of(&session, at, true, &mut budget)).collect();
    let shown = turns.len();
    let message = (budget.is_cut || shown < session.turns()).then(|| {
        let path = engine.path_of(about);
        let next = session.line(shown.min(session.turns() - 1));
        let cut = if budget.is_cut { " Long ones are cut to keep this short." } else { "" };
        let from =
            if shown < session.turns() { format!(" startLine={next}") } else { String::new() };
        let total = session.turns();
        format!("{shown} of {total} turns.{cut} For more, tool read: path={path}{from}")
    });
    let whole = Whole {
        id: about.id.clone(),
        session_key: engine.key_of(about)?,
        title: present(&about.title),
        summary: summary(engine, options, about, stop)?,
        turn_count: session.turns(),
        last_activity: iso(about.last),
        created_at: iso(about.begun),
    };
    let compact = Short {
        id: short_id(&whole.id),
        k: &whole.session_key,
        t: &whole.title,
        sum: &whole.summary,
        n: whole.turn_count,
        turns: turns.iter().map(|turn| ShortTurn::of(turn, usize::MAX)).collect(),
        message: &message,
    };
    let compact = written(&compact, &Options { verbose: false, ..Options::default() });
    let result =
        Result { mode: "get", found: true, session: Some(whole), turns: Some(turns), message };
    let mut answer = answer(options, &Value::Null, &result);
    if !options.verbose {
        answer.text = compact;
    }
    Ok(answer)
}

/// Returns the conversation that an id or the beginning of one means.
fn by_id(engine: &Engine, word: &str) -> Result<Option<About>, Error> {
    let mut found = engine.named(word)?;
    let is_short = word.chars().count() < SHORTEST_ID;
    if is_short && found.iter().all(|about| about.id != word) {
        return Err(Error::ShortId(word.to_owned()));
    }
    if found.len() > 1 {
        let candidates = found.iter().take(5).map(|about| about.id.clone()).collect();
        return Err(Error::Ambiguous { word: word.to_owned(), candidates });
    }
    Ok(found.pop())
}

fn list(engine: &Engine, options: &Options, offset: usize, limit: usize) -> Result<Answer, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Listed {
        session_id: String,
        session_key: String,
        title: Option<String>,
        turn_count: u32,
        last_activity: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<String>,
    }
    #[derive(Serialize)]
    struct Page {
        mode: &'static str,
        total: usize,
        returned: usize,
        offset: usize,
        conversations: Vec<Listed>,
    }
    #[derive(Serialize)]
    struct Short {
        id: String,
        k: String,
        t: Option<String>,
        turns: u32,
        last: Option<String>,
    }
    #[derive(Serialize)]
    struct ShortPage {
        n: usize,
        c: Vec<Short>,
    }
    let (abouts, total) = engine.list(&Scope::default(), offset, limit)?;
    let mut conversations = Vec::new();
    for about in &abouts {
        conversations.push(Listed {
            session_id: about.id.clone(),
            session_key: engine.key_of(about)?,
            title: present(&about.title),
            turn_count: about.turns,
            last_activity: iso(about.last),
            created_at: iso(about.begun),
        });
    }
    let short = |listed: &Listed| Short {
        id: short_id(&listed.session_id),
        k: listed.session_key.clone(),
        t: listed.title.clone(),
        turns: listed.turn_count,
        last: listed.last_activity.clone(),
    };
    let compact = ShortPage { n: total, c: conversations.iter().map(short).collect() };
    let page = Page { mode: "list", total, returned: conversations.len(), offset, conversations };
    Ok(answer(options, &compact, &page))
}

/// Returns an answer whose text is one or the other, and whose structure is the second.
fn answer(options: &Options, compact: &impl Serialize, verbose: &impl Serialize) -> Answer {
    let text = if options.verbose { written(verbose, options) } else { written(compact, options) };
    let structured = serde_json::to_value(verbose).expect(IS_JSON);
    Answer { text, structured: Some(structured), ..Answer::default() }
}

/// Returns JSON, on one line unless it should be easy to read.
fn written(value: &impl Serialize, options: &Options) -> String {
    if options.verbose {
        serde_json::to_string_pretty(value).expect(IS_JSON)
    } else {
        serde_json::to_string(value).expect(IS_JSON)
    }
}

const IS_JSON: &str = "strings, numbers and lists of them are JSON";

fn present(text: &str) -> Option<String> {
    let text = snippet::trim(text);
    (!text.is_empty()).then(|| bound::line(text, LONGEST_TEXT))
}

/// Characters of a title or a summary at most.
const LONGEST_TEXT: usize = 300;

fn short_id(id: &str) -> String {
    snippet::cut(id, SHORT_ID).unwrap_or(id).to_owned()
}

fn iso(instant: Option<Instant>) -> Option<String> {
    instant.and_then(date::to_iso)
}
