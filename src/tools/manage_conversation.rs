//! `manage_conversation`: threads that continue across sessions.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    bound::{self, MOST_BYTES},
    error::Error,
    tool::{self, Answer, Effect, Tool, object},
};
use crate::{
    engine::{Recalled, Start},
    text::{date, snippet},
};

/// Messages or matches returned by default.
const DEFAULT_LIMIT: usize = 10;

/// Messages or matches returned at most.
const MAX_LIMIT: usize = 1000;

/// Bytes of what frames a match.
const MATCH_FRAME: usize = 100;

/// Characters of a topic, of a user's name and of a platform's at most.
const LONGEST_NAME: usize = 500;

/// Bytes of a turn at most.
const LONGEST_TURN_BYTES: usize = 1 << 20;

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
    refuse,
};

#[derive(Serialize)]
struct Done<'a> {
    success: bool,
    action: &'a str,
    data: Data,
    /// Names an argument that the tool does not have; the contract ignores those.
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
        messages: Vec<HistoryMessage>,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    Search {
        query: String,
        matches: Vec<ThreadMatch>,
    },
    Analytics {
        total_threads: u64,
        threads_by_user: Map<String, Value>,
        avg_messages_per_thread: f64,
        recent_topics: Vec<String>,
    },
}

#[derive(Serialize)]
struct HistoryMessage {
    role: String,
    content: String,
    timestamp: Option<String>,
}

#[derive(Serialize)]
struct ThreadMatch {
    thread_id: String,
    topic: String,
    snippet: String,
    score: f64,
}

fn schema() -> Map<String, Value> {
    object(json!({
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
            "limit": {"type": "integer", "default": DEFAULT_LIMIT, "minimum": 1, "maximum": MAX_LIMIT},
        },
        "required": ["action"],
    }))
}

fn run(call: &tool::Call<'_>) -> Result<Answer, Error> {
    let name = call.arguments.string("action", "one of the actions as a string")?;
    let required = || Error::Refused(format!("action is required: one of {}", ACTIONS.join(", ")));
    let name = name.ok_or_else(required)?;
    let action = ACTIONS.into_iter().find(|action| *action == name).ok_or_else(|| {
        let (name, actions) = (bound::shortened(name, LONGEST_NAME), ACTIONS.join(", "));
        Error::Refused(format!("Unknown action: '{name}'. Valid actions: {actions}"))
    })?;
    let mut log = None;
    let call = Action { call, name: action };
    let data = match action {
        "start" => call.start(),
        "continue" => call.record(&mut log),
        "resume" => call.resume(),
        "history" => call.history(),
        "search" => call.search(),
        _ => call.analytics(),
    }?;
    let unknown = call.call.arguments.only(&ARGUMENTS).err();
    let note = unknown.map(|error| format!("ignored: {error}"));
    let text = written(&Done { success: true, action, data, note });
    Ok(Answer { log, ..text.into() })
}

fn refuse(call: &tool::Call<'_>, error: &Error) -> Answer {
    let action = match call.arguments.values.get("action") {
        Some(Value::String(name)) => Value::String(bound::shortened(name, LONGEST_NAME)),
        _ => Value::Null,
    };
    let failed = Failed { success: false, action: &action, error: error.to_string() };
    Answer { is_error: true, ..written(&failed).into() }
}

/// A call of one action; it reads only the arguments of that action.
struct Action<'a> {
    call: &'a tool::Call<'a>,
    name: &'static str,
}

impl<'a> Action<'a> {
    fn start(&self) -> Result<Data, Error> {
        let name = |name, default| Ok::<_, Error>(self.short_text(name)?.unwrap_or(default));
        let start = Start {
            topic: name("topic", DEFAULT_TOPIC)?,
            user: name("user_id", DEFAULT_USER)?,
            platform: self.short_text("platform")?,
        };
        let thread = self.call.engine.memory().start_thread(&start)?;
        Ok(Data::Start {
            thread_id: thread.id,
            continuation_id: thread.continuation,
            topic: thread.topic,
            created_at: thread.begun.and_then(date::to_iso),
        })
    }

    fn record(&self, log: &mut Option<String>) -> Result<Data, Error> {
        let continuation = self.required("continuation_id")?;
        let query = self.text("query")?;
        let message = self.text("message")?;
        let role = self.text("role")?.unwrap_or("user");
        if !["user", "assistant"].contains(&role) {
            let role = bound::shortened(role, LONGEST_NAME);
            return Err(Error::Refused(format!(
                "role takes \"user\" or \"assistant\"; got {role:?}"
            )));
        }
        let (name, text) = match (query, message) {
            (Some(text), _) => ("query", Some(text)),
            (None, text) => ("message", text),
        };
        if text.is_some_and(|text| text.len() > LONGEST_TURN_BYTES) {
            return Err(too_long(name, "1 MiB"));
        }
        let message = text.map(|text| (role, text));
        let recorded =
            self.call.engine.memory().continue_thread(continuation, message, self.call.stop)?;
        *log = recorded.trouble.map(|why| format!("manage_conversation recalled nothing: {why}"));
        Ok(Data::Continue {
            thread_id: recorded.thread.id,
            continuation_id: recorded.thread.continuation,
            response: recorded.memory.iter().map(passage).collect::<Vec<_>>().join("\n\n"),
            message_count: recorded.thread.messages,
        })
    }

    fn resume(&self) -> Result<Data, Error> {
        let thread = self.call.engine.memory().thread(self.required("thread_id")?)?;
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
        let (turns, total) = self.call.engine.memory().thread_history(id, self.limit()?)?;
        let returned = turns.len();
        let (mut bytes, mut messages, mut is_cut) = (0, Vec::new(), false);
        for turn in turns.into_iter().rev() {
            let content = bound::start(&turn.content, MOST_BYTES);
            if bytes + content.len() > MOST_BYTES {
                break;
            }
            bytes += content.len();
            is_cut |= content.len() < turn.content.len();
            let timestamp = turn.time.and_then(date::to_iso);
            messages.push(HistoryMessage {
                role: turn.role,
                content: content.to_owned(),
                timestamp,
            });
        }
        messages.reverse();
        let note = (messages.len() < returned || is_cut).then(|| {
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
        let found =
            self.call.engine.memory().search_threads(query, self.limit()?, self.call.stop)?;
        let mut bytes = 0;
        let fits = |one: &Recalled| {
            bytes += one.passage.len() + one.title.len() + MATCH_FRAME;
            bytes <= MOST_BYTES
        };
        let matches = found.into_iter().take_while(fits).map(|one| ThreadMatch {
            thread_id: one.conversation,
            topic: one.title,
            snippet: one.passage,
            score: (one.score * 1000.0).round() / 1000.0,
        });
        let matches = matches.collect();
        Ok(Data::Search { query: bound::shortened(query, LONGEST_NAME), matches })
    }

    fn analytics(&self) -> Result<Data, Error> {
        let usage = self.call.engine.memory().thread_analytics()?;
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
        let text = self.call.arguments.string(name, "a string")?;
        Ok(text.filter(|text| !snippet::trim(text).is_empty()))
    }

    fn required(&self, name: &'static str) -> Result<&'a str, Error> {
        let missing = || Error::Refused(format!("{name} is required for {} action", self.name));
        self.text(name)?.ok_or_else(missing)
    }

    /// Returns a text of at most [`LONGEST_NAME`] characters.
    fn short_text(&self, name: &'static str) -> Result<Option<&'a str>, Error> {
        let text = self.text(name)?;
        match text.and_then(|text| snippet::cut(text, LONGEST_NAME)) {
            Some(_) => Err(too_long(name, "500 characters")),
            None => Ok(text),
        }
    }

    fn limit(&self) -> Result<usize, Error> {
        let takes = "an integer from 1 to 1000";
        let limit = self.call.arguments.integer_in("limit", takes, 1..=MAX_LIMIT)?;
        Ok(limit.unwrap_or(DEFAULT_LIMIT))
    }
}

fn passage(one: &Recalled) -> String {
    let time = one.time.and_then(date::to_minute).unwrap_or_else(|| "no time".to_owned());
    let role = if one.role.is_empty() { "unknown" } else { &one.role };
    let title = bound::shortened(snippet::trim(&one.title), 100);
    format!(
        "[{time}] {role} in \"{title}\" ({}, {}):\n{}",
        one.source.name(),
        one.conversation,
        one.passage
    )
}

fn too_long(name: &str, most: &str) -> Error {
    Error::Refused(format!("{name} is too long: it takes at most {most}"))
}

fn written(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("strings and numbers are JSON")
}
