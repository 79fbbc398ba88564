//! `manage_conversation`: threads that go on across sessions.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Answer, Effect, Options, Tool, arguments};
use crate::{
    db::threads::Start,
    engine::{self, Engine, Recalled},
    model::Stop,
    text::{date, snippet},
};

/// Messages or matches returned when the call does not say.
const DEFAULT_LIMIT: usize = 10;

/// Messages or matches returned at most.
const MOST: usize = 1000;

/// Bytes of an answer's texts: about 20,000 tokens in any script.
const MOST_BYTES: usize = 60_000;

/// Characters of a topic, of a user's and of a platform's name.
const NAME: usize = 500;

/// Bytes of a turn.
const TURN: usize = 1 << 20;

const DEFAULT_USER: &str = "default";
const DEFAULT_TOPIC: &str = "general";

const ACTIONS: [&str; 6] = ["start", "continue", "resume", "history", "search", "analytics"];

const ARGUMENTS: [&str; 10] = [
    "action",
    "thread_id",
    "continuation_id",
    "topic",
    "query",
    "message",
    "role",
    "user_id",
    "platform",
    "limit",
];

/// The tool.
pub const TOOL: Tool = Tool {
    name: "manage_conversation",
    title: "Manage conversation threads",
    description: "Start, continue, resume, or search conversation threads across sessions; history and analytics. \
                  continue records a turn and returns what memory holds on it, and the next continuation_id.",
    effect: Effect::Adds,
    schema,
    output_schema: None,
    run,
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Argument(#[from] arguments::Error),
    #[error("{name} is required for {action} action")]
    Missing { name: &'static str, action: &'static str },
    #[error("action is required: one of {}", ACTIONS.join(", "))]
    NoAction,
    #[error("Unknown action: '{name}'. Valid actions: {}", ACTIONS.join(", "))]
    UnknownAction { name: String },
    #[error("{name} is too long: it takes at most {most}")]
    TooLong { name: &'static str, most: &'static str },
    #[error("role takes \"user\" or \"assistant\"; got {0:?}")]
    Role(String),
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

#[derive(Serialize)]
struct Done<'a> {
    success: bool,
    action: &'a str,
    data: Data,
    /// What was said of an argument that is none of the tool's: the contract ignores those.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Failed<'a> {
    success: bool,
    action: &'a Value,
    error: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data {
    Start {
        thread_id: String,
        continuation_id: String,
        topic: String,
        created_at: Option<String>,
    },
    Continue {
        thread_id: String,
        continuation_id: String,
        response: String,
        message_count: u64,
    },
    Resume {
        thread_id: String,
        topic: String,
        last_message_at: Option<String>,
        message_count: u64,
        continuation_id: String,
    },
    History {
        thread_id: String,
        messages: Vec<Message>,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    Search {
        query: String,
        matches: Vec<Found>,
    },
    Analytics {
        total_threads: u64,
        threads_by_user: Map<String, Value>,
        avg_messages_per_thread: f64,
        recent_topics: Vec<String>,
    },
}

#[derive(Serialize)]
struct Message {
    role: String,
    content: String,
    timestamp: Option<String>,
}

#[derive(Serialize)]
struct Found {
    thread_id: String,
    topic: String,
    snippet: String,
    score: f64,
}

fn schema() -> Map<String, Value> {
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ACTIONS,
                "description": "start (new thread), continue (with continuation_id), resume or history (with \
                                thread_id), search (with query), analytics",
            },
            "thread_id": {"type": "string"},
            "continuation_id": {"type": "string", "description": "From the previous response; works once"},
            "topic": {"type": "string", "default": DEFAULT_TOPIC},
            "query": {"type": "string", "description": "The turn's text (continue), or what to find (search)"},
            "message": {"type": "string", "description": "Same as query, for continue"},
            "role": {"type": "string", "enum": ["user", "assistant"], "default": "user"},
            "user_id": {"type": "string", "default": DEFAULT_USER},
            "platform": {"type": "string"},
            "limit": {"type": "integer", "default": DEFAULT_LIMIT, "minimum": 1, "maximum": MOST},
        },
        "required": ["action"],
    });
    let Value::Object(schema) = schema else { unreachable!("the literal above is an object") };
    schema
}

fn run(engine: &Engine, _: &Options, arguments: &Map<String, Value>, stop: &Stop) -> Answer {
    let (result, log) = answer(engine, arguments, stop);
    match result {
        Ok((action, data)) => Answer {
            text: written(&Done { success: true, action, data, note: unknown(arguments) }),
            log,
            ..Answer::default()
        },
        Err(error) => {
            let action = match arguments.get("action") {
                Some(Value::String(name)) => Value::String(shortened(name, NAME)),
                _ => Value::Null,
            };
            let failed = Failed { success: false, action: &action, error: error.to_string() };
            Answer { text: written(&failed), is_error: true, log, ..Answer::default() }
        }
    }
}

/// Says which argument is none of the tool's, if any is.
fn unknown(arguments: &Map<String, Value>) -> Option<String> {
    let refused = arguments::only(TOOL.name, &ARGUMENTS, arguments).err();
    refused.map(|error| format!("ignored: {error}"))
}

/// Runs an action; also returns what the server's log should say.
fn answer(
    engine: &Engine,
    given: &Map<String, Value>,
    stop: &Stop,
) -> (Result<(&'static str, Data), Error>, Option<String>) {
    let mut log = None;
    let result = (|| {
        let name = arguments::string(given, "action", "one of the actions as a string")?;
        let name = name.ok_or(Error::NoAction)?;
        let unknown = || Error::UnknownAction { name: shortened(name, NAME) };
        let action = ACTIONS.into_iter().find(|one| *one == name).ok_or_else(unknown)?;
        let call = Call { engine, given, action, stop };
        let data = match action {
            "start" => call.start(),
            "continue" => call.go_on(&mut log),
            "resume" => call.resume(),
            "history" => call.history(),
            "search" => call.search(),
            _ => call.analytics(),
        };
        Ok((action, data?))
    })();
    (result, log)
}

/// One call of an action; reads only the arguments that the action has.
struct Call<'a> {
    engine: &'a Engine,
    given: &'a Map<String, Value>,
    action: &'static str,
    stop: &'a Stop,
}

impl<'a> Call<'a> {
    fn start(&self) -> Result<Data, Error> {
        let name = |name, default| Ok::<_, Error>(self.name(name)?.unwrap_or(default));
        let start = Start {
            topic: name("topic", DEFAULT_TOPIC)?,
            user: name("user_id", DEFAULT_USER)?,
            platform: self.name("platform")?,
        };
        let thread = self.engine.start_thread(&start)?;
        Ok(Data::Start {
            thread_id: thread.id,
            continuation_id: thread.continuation,
            topic: thread.topic,
            created_at: thread.begun.and_then(date::to_iso),
        })
    }

    fn go_on(&self, log: &mut Option<String>) -> Result<Data, Error> {
        let continuation = self.required("continuation_id")?;
        let query = self.text("query")?;
        let message = self.text("message")?;
        let role = self.text("role")?.unwrap_or("user");
        if !["user", "assistant"].contains(&role) {
            return Err(Error::Role(shortened(role, NAME)));
        }
        let (name, text) = match (query, message) {
            (Some(text), _) => ("query", Some(text)),
            (None, text) => ("message", text),
        };
        if text.is_some_and(|text| text.len() > TURN) {
            return Err(Error::TooLong { name, most: "1 MiB" });
        }
        let message = text.map(|text| (role, text));
        let recorded = self.engine.continue_thread(continuation, message, self.stop)?;
        *log = recorded.trouble.map(|why| format!("manage_conversation recalled nothing: {why}"));
        Ok(Data::Continue {
            thread_id: recorded.thread.id,
            continuation_id: recorded.thread.continuation,
            response: recorded.memory.iter().map(passage).collect::<Vec<_>>().join("\n\n"),
            message_count: recorded.thread.messages,
        })
    }

    fn resume(&self) -> Result<Data, Error> {
        let thread = self.engine.thread(self.required("thread_id")?)?;
        Ok(Data::Resume {
            thread_id: thread.id,
            topic: thread.topic,
            last_message_at: thread.last.and_then(date::to_iso),
            message_count: thread.messages,
            continuation_id: thread.continuation,
        })
    }

    fn history(&self) -> Result<Data, Error> {
        let id = self.required("thread_id")?;
        let (turns, total) = self.engine.thread_history(id, self.limit()?)?;
        let asked = turns.len();
        let (mut bytes, mut messages, mut is_cut) = (0, Vec::new(), false);
        for turn in turns.into_iter().rev() {
            let content = within(&turn.content, MOST_BYTES);
            if bytes + content.len() > MOST_BYTES {
                break;
            }
            bytes += content.len();
            is_cut |= content.len() < turn.content.len();
            let timestamp = turn.time.and_then(date::to_iso);
            messages.push(Message { role: turn.role, content: content.to_owned(), timestamp });
        }
        messages.reverse();
        let note = (messages.len() < asked || is_cut).then(|| {
            let shown = messages.len();
            format!(
                "only the latest {shown} of {total} messages fit here{}; the read tool shows the others",
                if is_cut { ", cut" } else { "" }
            )
        });
        Ok(Data::History { thread_id: id.to_owned(), messages, note })
    }

    fn search(&self) -> Result<Data, Error> {
        let query = self.required("query")?;
        let found = self.engine.search_threads(query, self.limit()?, self.stop)?;
        let mut bytes = 0;
        let fits = |one: &Recalled| {
            bytes += one.passage.len() + one.title.len() + 100;
            bytes <= MOST_BYTES
        };
        let matches = found.into_iter().take_while(fits).map(|one| Found {
            thread_id: one.conversation,
            topic: one.title,
            snippet: one.passage,
            score: (one.score * 1000.0).round() / 1000.0,
        });
        let matches = matches.collect();
        Ok(Data::Search { query: shortened(query, NAME), matches })
    }

    fn analytics(&self) -> Result<Data, Error> {
        let usage = self.engine.thread_analytics()?;
        let average = usage.messages as f64 / usage.threads.max(1) as f64;
        Ok(Data::Analytics {
            total_threads: usage.threads,
            threads_by_user: usage.users.into_iter().map(|(user, n)| (user, n.into())).collect(),
            avg_messages_per_thread: (average * 100.0).round() / 100.0,
            recent_topics: usage.topics,
        })
    }

    /// Returns a text; `None` where it is absent or empty.
    fn text(&self, name: &'static str) -> Result<Option<&'a str>, Error> {
        let text = arguments::string(self.given, name, "a string")?;
        Ok(text.filter(|text| !snippet::trim(text).is_empty()))
    }

    fn required(&self, name: &'static str) -> Result<&'a str, Error> {
        self.text(name)?.ok_or(Error::Missing { name, action: self.action })
    }

    /// Returns a text that names something.
    fn name(&self, name: &'static str) -> Result<Option<&'a str>, Error> {
        let text = self.text(name)?;
        match text.and_then(|text| snippet::cut(text, NAME)) {
            Some(_) => Err(Error::TooLong { name, most: "500 characters" }),
            None => Ok(text),
        }
    }

    fn limit(&self) -> Result<usize, Error> {
        let takes = "an integer from 1 to 1000";
        let limit = arguments::integer_in(self.given, "limit", takes, 1..=MOST)?;
        Ok(limit.unwrap_or(DEFAULT_LIMIT))
    }
}

/// Returns a passage with where it is from.
fn passage(one: &Recalled) -> String {
    let time = one.time.and_then(date::to_minute).unwrap_or_else(|| "no time".to_owned());
    let role = if one.role.is_empty() { "unknown" } else { &one.role };
    let title = shortened(snippet::trim(&one.title), 100);
    format!(
        "[{time}] {role} in \"{title}\" ({}, {}):\n{}",
        one.source.name(),
        one.conversation,
        one.passage
    )
}

/// Returns the beginning of a text that is no longer than some bytes.
fn within(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn shortened(text: &str, most: usize) -> String {
    match snippet::cut(text, most) {
        Some(start) => format!("{start}…"),
        None => text.to_owned(),
    }
}

fn written(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("strings and numbers are JSON")
}
