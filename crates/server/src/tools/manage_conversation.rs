//! `manage_conversation`: threads that continue across sessions.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::searchable;
use super::bound::{self, MOST_ANSWER_BYTES};
use super::error::{Error, Result};
use super::tool::{self, Answer, Effect, Tool, object, to_json};
use verbatim_engine::{Recalled, Recorded, Start, Thread};
use verbatim_text::{date, snippet, terminal::on_one_line, up_to};

const DEFAULT_LIMIT: usize = 10;

const MAX_LIMIT: usize = 1000;

/// The size of the JSON around a match in bytes.
const MATCH_FRAME: usize = 100;

/// The maximum number of characters of a topic, a user name or a platform name.
const LONGEST_NAME: usize = 500;

const LONGEST_TURN_BYTES: usize = 1 << 20;

const DEFAULT_USER: &str = "default";
const DEFAULT_TOPIC: &str = "general";

const ACTIONS: [&str; 6] = ["start", "continue", "resume", "history", "search", "analytics"];

fn used_by(action: &str) -> &'static [&'static str] {
    match action {
        "start" => &["topic", "query", "message", "role", "user_id", "platform"],
        "continue" => &["continuation_id", "query", "message", "role"],
        "resume" => &["thread_id"],
        "history" => &["thread_id", "limit"],
        "search" => &["query", "limit"],
        _ => &[],
    }
}

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

/// The tool that records threads turn by turn, and recalls passages for each turn.
pub const TOOL: Tool = Tool {
    name: "manage_conversation",
    title: "Manage conversation threads",
    description: "Start, continue, resume, or search conversation threads across sessions; history and analytics. \
                  continue records a turn and returns what memory holds on it, and the next continuation_id.",
    use_for: "record threads turn by turn, with recall",
    effect: Effect::Adds,
    searches: &[],
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
        #[serde(flatten)]
        first: Option<FirstTurn>,
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
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
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
struct FirstTurn {
    response: String,
    message_count: u64,
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
                "description": "Action to perform",
            },
            "thread_id": {"type": "string", "description": "Thread to resume or show (history)"},
            "continuation_id": {"type": "string", "description": "From the previous answer (continue)"},
            "topic": {"type": "string", "default": DEFAULT_TOPIC, "description": "For start"},
            "query": {"type": "string", "description": "Turn's text (continue, start), or what to find (search)"},
            "message": {"type": "string", "description": "Instead of query for a turn"},
            "role": {"type": "string", "enum": ["user", "assistant"], "default": "user", "description": "Who speaks"},
            "user_id": {"type": "string", "default": DEFAULT_USER, "description": "Owner (start)"},
            "platform": {"type": "string", "description": "For start"},
            "limit": {"type": "integer", "default": DEFAULT_LIMIT, "maximum": MAX_LIMIT, "description": "For history, search"},
        },
        "required": ["action"],
    }))
}

fn run(tool_call: &tool::ToolCall<'_>) -> Result<Answer> {
    let name = tool_call.arguments.string("action", "one of the actions as a string")?;
    let Some(name) = name else {
        return Err(Error::Refused(format!("action is required: one of {}", ACTIONS.join(", "))));
    };
    let action = ACTIONS.into_iter().find(|action| *action == name).ok_or_else(|| {
        let name = snippet::echo(name);
        let actions = ACTIONS.join(", ");
        Error::Refused(format!("Unknown action: '{name}'. Valid actions: {actions}"))
    })?;
    let mut remarks = Remarks::default();
    let thread_call = ThreadCall { tool_call, name: action };
    let data = match action {
        "start" => thread_call.start(&mut remarks),
        "continue" => thread_call.record(&mut remarks),
        "resume" => thread_call.resume(),
        "history" => thread_call.history(),
        "search" => thread_call.search(&mut remarks),
        _ => thread_call.analytics(),
    }?;
    remarks.notes.extend(thread_call.ignored());
    if let Err(error) = thread_call.tool_call.arguments.only(&ARGUMENTS) {
        remarks.notes.push(format!("ignored: {error}"));
    }
    let note = (!remarks.notes.is_empty()).then(|| remarks.notes.join("; "));
    let text = to_json(&Done { success: true, action, data, note });
    Ok(Answer { log: remarks.log, ..text.into() })
}

#[derive(Default)]
struct Remarks {
    notes: Vec<String>,
    log: Option<String>,
}

fn refuse(tool_call: &tool::ToolCall<'_>, error: &Error) -> Answer {
    let action = match tool_call.arguments.values.get("action") {
        Some(Value::String(name)) => Value::String(snippet::echo(name).into_owned()),
        _ => Value::Null,
    };
    let failed = Failed { success: false, action: &action, error: error.to_string() };
    Answer { is_error: true, ..to_json(&failed).into() }
}

/// A call of one action; it reads only the arguments of that action.
struct ThreadCall<'a> {
    tool_call: &'a tool::ToolCall<'a>,
    name: &'static str,
}

impl<'a> ThreadCall<'a> {
    fn ignored(&self) -> Option<String> {
        let used = used_by(self.name);
        let mut given = ARGUMENTS.to_vec();
        given.retain(|name| {
            *name != "action"
                && !used.contains(name)
                && self.tool_call.arguments.value(name).is_some()
        });
        let action = self.name;
        (!given.is_empty()).then(|| format!("ignored, not for {action}: {}", given.join(", ")))
    }

    fn start(&self, remarks: &mut Remarks) -> Result<Data> {
        let turn = self.turn(remarks)?;
        let start = Start {
            topic: self.short_text("topic")?.unwrap_or(DEFAULT_TOPIC),
            user: self.short_text("user_id")?.unwrap_or(DEFAULT_USER),
            platform: self.short_text("platform")?,
            turn,
        };
        let recorded = self.tool_call.engine.memory().start_thread(&start, self.tool_call.call)?;
        let response = response(&recorded, remarks);
        let Thread { id, continuation, topic, begun, messages, .. } = recorded.thread;
        Ok(Data::Start {
            thread_id: id,
            continuation_id: continuation,
            topic,
            created_at: begun.and_then(date::to_iso),
            first: turn.map(|_| FirstTurn { response, message_count: messages }),
        })
    }

    fn turn(&self, remarks: &mut Remarks) -> Result<Option<(&'a str, &'a str)>> {
        let role = self.text("role")?.unwrap_or("user");
        if !["user", "assistant"].contains(&role) {
            let role = snippet::echo(role);
            return Err(Error::Refused(format!(
                "role takes \"user\" or \"assistant\"; got {role:?}"
            )));
        }
        let query = self.text("query")?;
        let message = self.text("message")?;
        let (name, text) = match (query, message) {
            (Some(text), _) => ("query", text),
            (None, Some(text)) => ("message", text),
            (None, None) => return Ok(None),
        };
        if text.len() > LONGEST_TURN_BYTES {
            return Err(too_long(name, "1 MiB"));
        }
        if message.is_some_and(|message| message != text) {
            remarks
                .notes
                .push("query was recorded; message was not: a turn has one text".to_owned());
        }
        Ok(Some((role, text)))
    }

    fn record(&self, remarks: &mut Remarks) -> Result<Data> {
        let continuation = self.required("continuation_id")?;
        let Some((role, text)) = self.turn(remarks)? else {
            return Err(self.missing_argument("query"));
        };
        let memory = self.tool_call.engine.memory();
        let recorded = memory.continue_thread(continuation, role, text, self.tool_call.call)?;
        Ok(Data::Continue {
            response: response(&recorded, remarks),
            thread_id: recorded.thread.id,
            continuation_id: recorded.thread.continuation,
            message_count: recorded.thread.messages,
        })
    }

    fn resume(&self) -> Result<Data> {
        let thread = self.tool_call.engine.memory().thread(self.required("thread_id")?)?;
        Ok(Data::Resume {
            thread_id: thread.id,
            topic: thread.topic,
            last_message_at: thread.last.and_then(date::to_iso),
            message_count: thread.messages,
            continuation_id: thread.continuation,
        })
    }

    fn history(&self) -> Result<Data> {
        let id = self.required("thread_id")?;
        let memory = self.tool_call.engine.memory();
        let (turns, total) = memory.thread_history(id, self.limit()?)?;
        let summary = memory.saved_summary(id)?;
        let returned = turns.len();
        let room =
            MOST_ANSWER_BYTES - summary.as_ref().map_or(0, String::len).min(MOST_ANSWER_BYTES);
        let mut bytes = 0;
        let mut messages = Vec::new();
        let mut is_cut = false;
        for turn in turns.into_iter().rev() {
            let content = up_to(&turn.content, room);
            if bytes + content.len() > room {
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
        let shown = messages.len();
        let is_part = (shown as u64) < total || is_cut;
        let note = is_part.then(|| {
            let cut = if is_cut { ", cut" } else { "" };
            let more = if shown < returned {
                "more do not fit here"
            } else if (shown as u64) < total {
                "raise limit (at most 1000) for more"
            } else {
                "a long one does not fit here"
            };
            let all = format!("the tool read shows all of them in full: path {id}");
            format!("the latest {shown} of {total} messages{cut}; {more}; {all}")
        });
        Ok(Data::History { thread_id: id.to_owned(), summary, messages, note })
    }

    fn search(&self, remarks: &mut Remarks) -> Result<Data> {
        let query = searchable(self.required("query")?)?;
        let limit = self.limit()?;
        let memory = self.tool_call.engine.memory();
        let mut found = memory.search_threads(query, limit + 1, self.tool_call.call)?;
        if found.len() > limit {
            found.truncate(limit);
            remarks.notes.push(format!("limit {limit} reached; raise it (at most 1000) for more"));
        }
        let count = found.len();
        let mut bytes = 0;
        let mut matches = Vec::new();
        for one in found {
            bytes += one.passage.len() + one.title.len() + MATCH_FRAME;
            if bytes > MOST_ANSWER_BYTES {
                break;
            }
            matches.push(ThreadMatch {
                thread_id: one.conversation,
                topic: one.title,
                snippet: one.passage,
                score: (one.score * 1000.0).round() / 1000.0,
            });
        }
        if matches.len() < count {
            let left = count - matches.len();
            remarks.notes.push(format!("{left} more do not fit here: lower limit or narrow query"));
        }
        Ok(Data::Search { query: snippet::echo(query).into_owned(), matches })
    }

    fn analytics(&self) -> Result<Data> {
        let usage = self.tool_call.engine.memory().thread_analytics()?;
        let average = usage.messages as f64 / usage.threads.max(1) as f64;
        Ok(Data::Analytics {
            total_threads: usage.threads,
            threads_by_user: usage.users.into_iter().map(|(user, n)| (user, n.into())).collect(),
            avg_messages_per_thread: (average * 100.0).round() / 100.0,
            recent_topics: usage.topics,
        })
    }

    /// Returns a text; `None` if the argument is absent or empty.
    fn text(&self, name: &'static str) -> Result<Option<&'a str>> {
        let given = &self.tool_call.arguments;
        let is_turn = ["query", "message"].contains(&name);
        let text =
            if is_turn { given.string(name, "a string") } else { given.word(name, "a string") }?;
        Ok(text.filter(|text| !snippet::trim(text).is_empty()))
    }

    fn required(&self, name: &'static str) -> Result<&'a str> {
        self.text(name)?.ok_or_else(|| self.missing_argument(name))
    }

    fn missing_argument(&self, name: &str) -> Error {
        Error::Refused(format!("{name} is required for {} action", self.name))
    }

    fn short_text(&self, name: &'static str) -> Result<Option<&'a str>> {
        let text = self.text(name)?;
        match text.and_then(|text| snippet::cut(text, LONGEST_NAME)) {
            Some(_) => Err(too_long(name, "500 characters")),
            None => Ok(text),
        }
    }

    fn limit(&self) -> Result<usize> {
        let takes = "an integer from 1 to 1000";
        let limit = self.tool_call.arguments.integer_in("limit", takes, 1..=MAX_LIMIT)?;
        Ok(limit.unwrap_or(DEFAULT_LIMIT))
    }
}

fn response(recorded: &Recorded, remarks: &mut Remarks) -> String {
    if let Some(why) = &recorded.trouble {
        let is_late = why.is_stopped();
        let why = if is_late { "there was not enough time".to_owned() } else { why.to_string() };
        remarks.notes.push(format!("the turn is recorded; nothing could be recalled: {why}"));
        remarks.log = (!is_late).then(|| format!("manage_conversation recalled nothing: {why}"));
    }
    recorded.memory.iter().map(passage).collect::<Vec<_>>().join("\n\n")
}

fn passage(one: &Recalled) -> String {
    let time = one.time.and_then(date::to_minute).unwrap_or_else(|| "no time".to_owned());
    let role = if one.role.is_empty() { "unknown" } else { &one.role };
    let title = bound::line(&one.title, 100);
    let source = one.source.name();
    let id = on_one_line(&one.conversation);
    format!("[{time}] {role} in \"{title}\" ({source}, {id}):\n{}", bound::quoted(&one.passage))
}

fn too_long(name: &str, most: &str) -> Error {
    Error::Refused(format!("{name} is too long: it takes at most {most}"))
}
