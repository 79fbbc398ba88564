//! Transcripts of Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-SESSION.jsonl`.
//!
//! Three generations: first a header and bare items; then every record wrapped with its kind and
//! time; then the same with more kinds of records. From the second on each turn is there twice, as
//! the item that the model saw and as the event that the user saw. It is told once, wherever the
//! other record follows or is missing.
//!
//! What is read: what the user and the model said, summaries of reasoning behind a mark in front of
//! what came of it, calls of tools as messages of the model's, their outputs as messages of the
//! role `tool`, and the summaries that a long conversation goes on from as messages of the role
//! `system`. What the program tells the model on its own (instructions, the environment, the
//! user's editor) is left out, and so is encrypted reasoning.

mod text;

use std::{borrow::Cow, collections::VecDeque};

use serde::{Deserialize, Serialize};

use self::text::{asked, commands, environment, injected_away, shown, unpacked, without_preamble};
use super::{
    fields::{derived_hash, time},
    json::{Damage, Fields, Raw, Value},
    tool::{self, joined},
    transcript::{Event, Head, first, last},
};
use crate::model::Message;

/// Messages within which the second record of a turn is looked for.
const RECENT: usize = 32;

/// Bytes of reasoning that wait for what comes of it.
const THINKING: usize = 64 << 10;

/// What is kept from line to line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// Messages whose other record has not been met.
    recent: VecDeque<Recent>,
    /// Reasoning that the next message begins with, and the line it is from.
    thinking: Vec<String>,
    thinking_line: u32,
    /// Hashes of reasoning that has been told.
    thought: VecDeque<u64>,
    has_meta: bool,
    /// The number from which on records are of this session and not of the one it was forked from.
    own_from: Option<u64>,
}

/// A message that may come again as the other kind of record.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Recent {
    hash: u64,
    is_event: bool,
}

impl State {
    /// Returns whether a message is the other record of one that was told.
    fn is_second(&mut self, role: &str, text: &str, is_event: bool) -> bool {
        // The two differ in blanks, and in marks that only one of them has.
        let words = text.replace("[image]", "");
        let words: String = words.split_whitespace().collect();
        let hash = derived_hash(&[role, &words]);
        let other = |recent: &Recent| recent.hash == hash && recent.is_event != is_event;
        if let Some(at) = self.recent.iter().position(other) {
            self.recent.remove(at);
            return true;
        }
        self.recent.push_back(Recent { hash, is_event });
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        false
    }

    fn think(&mut self, text: &str, line: u32) {
        let hash = derived_hash(&[text.trim()]);
        let waiting: usize = self.thinking.iter().map(String::len).sum();
        if text.trim().is_empty() || self.thought.contains(&hash) || waiting > THINKING {
            return;
        }
        self.thought.push_back(hash);
        if self.thought.len() > RECENT {
            self.thought.pop_front();
        }
        if self.thinking.is_empty() {
            self.thinking_line = line;
        }
        self.thinking.push(text.trim().to_owned());
    }
}

/// Returns whether a line is one of these transcripts', of any generation.
pub(super) fn is_record(kind: &str, fields: &Fields<'_>) -> bool {
    let has = |name| fields.get(name).is_some();
    match kind {
        "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted" => {
            fields.get("payload").is_some_and(Raw::is_object)
        }
        "message" => has("role") && fields.get("content").is_some_and(Raw::is_array),
        "function_call" | "function_call_output" | "local_shell_call" => has("call_id"),
        "reasoning" => has("summary") || has("encrypted_content"),
        "" => has("record_type") || has("id") && has("timestamp") && has("instructions"),
        _ => false,
    }
}

/// Reads one record.
pub(super) fn record(
    fields: &Fields<'_>,
    line: u32,
    head: &mut Head,
    state: &mut State,
) -> Result<Vec<Event>, Damage> {
    if let Some(time) = fields.get("timestamp").and_then(time) {
        head.time = Some(time);
    }
    let mut told = Told { line, pieces: Vec::new() };
    let ordinal = fields.text("ordinal").and_then(|it| it.parse::<u64>().ok());
    if let (Some(own_from), Some(ordinal)) = (state.own_from, ordinal)
        && ordinal < own_from
    {
        return Ok(Vec::new());
    }
    // What a model wrote to go on from is told by the record of the compaction.
    if fields.object("metadata")?.get("compaction_output").is_some_and(Raw::is_true) {
        return Ok(Vec::new());
    }
    let kind = fields.text("type").unwrap_or_default();
    match &*kind {
        "session_meta" => meta(&fields.object("payload")?, head, state)?,
        "turn_context" => {
            let payload = fields.object("payload")?;
            first(&mut head.folder, payload.text("cwd"));
            last(&mut head.model, payload.text("model"));
        }
        "response_item" => item(&fields.object("payload")?, head, state, &mut told)?,
        "event_msg" => event(&fields.object("payload")?, head, state, &mut told)?,
        "compacted" => {
            let payload = fields.object("payload")?;
            let message = payload.text("message").unwrap_or_default();
            let summary = without_preamble(&message).trim();
            if !summary.is_empty() {
                let text = format!("[summary of the conversation so far]\n{summary}");
                told.message("system", text, head, state);
            }
        }
        "" if fields.get("record_type").is_some() => {}
        "" => meta(fields, head, state)?,
        _ if fields.get("payload").is_none() => item(fields, head, state, &mut told)?,
        _ => {}
    }
    Ok(told.pieces)
}

/// Reads what a session says of itself. A fork repeats what its parent said, after its own.
fn meta(fields: &Fields<'_>, head: &mut Head, state: &mut State) -> Result<(), Damage> {
    let id = fields.text("id").or_else(|| fields.text("session_id"));
    if std::mem::replace(&mut state.has_meta, true) {
        if id.as_deref() != head.session.as_deref() {
            first(&mut head.parent, id);
        }
        return Ok(());
    }
    first(&mut head.session, id);
    first(&mut head.parent, fields.text("forked_from_id"));
    let own_from = fields.text("subagent_history_start_ordinal");
    state.own_from = own_from.and_then(|it| it.parse().ok());
    if let Some(source) = fields.get("source").filter(|source| source.is_object()) {
        let spawn = source.fields()?.object("subagent")?.object("thread_spawn")?;
        first(&mut head.parent, spawn.text("parent_thread_id"));
    }
    first(&mut head.folder, fields.text("cwd"));
    let git = fields.object("git")?;
    last(&mut head.branch, git.text("branch"));
    Ok(())
}

/// The messages of a line.
struct Told {
    line: u32,
    pieces: Vec<Event>,
}

impl Told {
    fn message(&mut self, role: &str, mut text: String, head: &Head, state: &mut State) {
        let mut line = self.line;
        if role == "assistant" && !state.thinking.is_empty() {
            let thinking = std::mem::take(&mut state.thinking).join("\n\n");
            text = format!("[thinking]\n{thinking}\n\n{text}");
            line = state.thinking_line.min(line);
        } else if role == "user" && !state.thinking.is_empty() {
            // Nothing came of it.
            let thinking = std::mem::take(&mut state.thinking).join("\n\n");
            self.line = state.thinking_line.min(line);
            self.message("assistant", format!("[thinking]\n{thinking}"), head, state);
            self.line = line;
        } else {
            // A message does not begin before one that was told earlier.
            state.thinking_line = u32::MAX;
        }
        let number = self.pieces.len() + 1;
        let suffix = if number == 1 { String::new() } else { format!("#{number}") };
        self.pieces.push(Event::Message(Message {
            id: format!("/{}{suffix}", self.line),
            content: text,
            create_time: head.time,
            model: head.model.clone().filter(|_| role == "assistant"),
            role: role.to_owned(),
            line: Some(line),
            ..Message::default()
        }));
    }
}

/// Reads an item of what the model saw.
fn item(
    fields: &Fields<'_>,
    head: &mut Head,
    state: &mut State,
    told: &mut Told,
) -> Result<(), Damage> {
    let kind = fields.text("type").unwrap_or_default();
    match &*kind {
        // Some writers leave the kind of a message out.
        "message" | "" => {
            let role = fields.text("role").unwrap_or_default();
            let content = fields.get("content").map(Raw::value).transpose()?;
            let blocks = content.as_ref().map(Value::items).unwrap_or_default();
            match &*role {
                "user" => {
                    for block in blocks {
                        environment(block.str("text"), head);
                    }
                    let texts: Vec<String> = blocks.iter().map(asked).collect();
                    prompt(&joined("\n", &texts), false, head, state, told);
                }
                "assistant" => {
                    let texts: Vec<String> = blocks.iter().map(shown).collect();
                    answer(&joined("\n", &texts), false, head, state, told);
                }
                // `developer` and `system`: instructions.
                _ => {}
            }
        }
        // What one agent says to another.
        "agent_message" => {
            let content = fields.get("content").map(Raw::value).transpose()?;
            let blocks = content.as_ref().map(Value::items).unwrap_or_default();
            let texts: Vec<String> = blocks.iter().map(shown).collect();
            answer(&joined("\n", &texts), false, head, state, told);
        }
        "reasoning" => {
            for name in ["summary", "content"] {
                let parts = fields.get(name).map(Raw::value).transpose()?;
                for part in parts.as_ref().map(Value::items).unwrap_or_default() {
                    state.think(part.as_str().unwrap_or_else(|| part.str("text")), told.line);
                }
            }
        }
        "function_call" | "custom_tool_call" | "tool_search_call" | "mcp_call" => {
            let name = fields.text("name").unwrap_or(Cow::Borrowed("tool_search"));
            let mut input = Value::Null;
            for argument in ["arguments", "input", "summary"] {
                if let Some(raw) = fields.get(argument).filter(|_| input == Value::Null) {
                    input = unpacked(raw.value()?)?;
                }
            }
            told.message("assistant", tool::call(&name, &commands(input)), head, state);
        }
        "local_shell_call" => {
            let action = fields.get("action").map(Raw::value).transpose()?;
            let command = action.as_ref().and_then(|action| action.get("command").cloned());
            let command = command.unwrap_or(Value::Null);
            let input = commands(Value::Object(vec![("command".to_owned(), command)]));
            told.message("assistant", tool::call("local_shell", &input), head, state);
        }
        "web_search_call" => {
            let action = fields.get("action").map(Raw::value).transpose()?.unwrap_or(Value::Null);
            let named = ["query", "url", "pattern"];
            let mut parts: Vec<(String, Value)> = named
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), action.get(name)?.clone())))
                .collect();
            if parts.is_empty() {
                parts.extend(action.get("queries").map(|it| ("query".to_owned(), it.clone())));
            }
            if !parts.is_empty() {
                told.message(
                    "assistant",
                    tool::call("web_search", &Value::Object(parts)),
                    head,
                    state,
                );
            }
        }
        "image_generation_call" => {
            let prompt = fields.text("revised_prompt").unwrap_or_default();
            told.message("assistant", joined("\n", &["[image]", prompt.as_ref()]), head, state);
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let output = fields.get("output").map(Raw::value).transpose()?.unwrap_or(Value::Null);
            let text = text::output(&unpacked(output)?);
            if !text.trim().is_empty() {
                told.message("tool", text, head, state);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads an event that the user saw.
fn event(
    fields: &Fields<'_>,
    head: &mut Head,
    state: &mut State,
    told: &mut Told,
) -> Result<(), Damage> {
    match &*fields.text("type").unwrap_or_default() {
        "user_message" => {
            let text = fields.text("message").unwrap_or_default();
            prompt(&injected_away(&text), true, head, state, told);
        }
        "agent_message" => {
            let text = fields.text("message").unwrap_or_default();
            answer(&text, true, head, state, told);
        }
        "agent_reasoning" => {
            state.think(&fields.text("text").unwrap_or_default(), told.line);
        }
        "item_completed" => {
            let item = fields.object("item")?;
            if item.text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("plan")) {
                answer(&item.text("text").unwrap_or_default(), true, head, state, told);
            }
        }
        "thread_name_updated" | "session_name_updated" => {
            let name = ["thread_name", "name", "title"].into_iter().find_map(|it| fields.text(it));
            last(&mut head.given_title, name);
        }
        _ => {}
    }
    Ok(())
}

fn prompt(text: &str, is_event: bool, head: &mut Head, state: &mut State, told: &mut Told) {
    let text = text.trim();
    if !text.is_empty() && !state.is_second("user", text, is_event) {
        head.prompt(text);
        told.message("user", text.to_owned(), head, state);
    }
}

fn answer(text: &str, is_event: bool, head: &Head, state: &mut State, told: &mut Told) {
    let text = text.trim();
    if !text.is_empty() && !state.is_second("assistant", text, is_event) {
        told.message("assistant", text.to_owned(), head, state);
    }
}
