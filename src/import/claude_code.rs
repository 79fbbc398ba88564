//! Transcripts of Claude Code: `~/.claude/projects/PROJECT/SESSION.jsonl`, and those of the agents
//! that a session starts, in files of their own.
//!
//! What is read: what the user and the model said, the model's thinking behind a mark, calls of
//! tools in the message that made them, their results as messages of the role `tool`, and the
//! summaries that a long conversation goes on from as messages of the role `system`. Every branch
//! of an edited conversation is read, as the lines come. What the program tells the model on its
//! own (reminders, caveats, the user's open files) and what it notes for itself is left out.

mod text;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use self::text::{assistant_block, is_told_by_program, result, shown, typed};
use super::{
    fields::{derived_hash, time},
    json::{Damage, Fields, Raw, Value},
    transcript::{Event, Head, first, last},
};
use crate::model::Message;

/// Messages that may still go on; the model works on one at a time, its agents on some more.
const OPEN: usize = 32;

/// Prompts waiting for the model, or told twice within so many others.
const PROMPTS: usize = 32;

/// Summaries whose sessions are not known yet.
const SUMMARIES: usize = 64;

/// What is kept from line to line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    open: VecDeque<Open>,
    /// Prompts that the user gave while the model was working.
    waiting: VecDeque<String>,
    /// Hashes of prompts that were told by a record of the queue.
    told: VecDeque<u64>,
    /// Summaries, and the hash of the line that each ends at.
    summaries: Vec<(u64, String)>,
    has_messages: bool,
}

/// A message that may go on in further lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    /// The model's id of it.
    model_id: String,
    /// Ours.
    id: String,
    /// Its lines, by the hash of their ids.
    lines: Vec<u64>,
    /// Length and hash of its last block of text, which may come again and longer.
    block: (usize, u64),
    /// Whether it was told before, elsewhere.
    is_repeated: bool,
}

impl State {
    /// Learns that a message was there before.
    pub(super) fn not_taken(&mut self, id: &str) {
        for open in self.open.iter_mut().filter(|open| open.id == id) {
            open.is_repeated = true;
        }
    }

    /// Notes that a prompt was told; returns whether it had been already, by another record.
    fn was_told(&mut self, text: &str) -> bool {
        let hash = derived_hash(&[text.trim()]);
        match self.told.iter().position(|told| *told == hash) {
            Some(at) => {
                self.told.remove(at);
                true
            }
            None => false,
        }
    }

    fn tell(&mut self, text: &str) {
        self.told.push_back(derived_hash(&[text.trim()]));
        if self.told.len() > PROMPTS {
            self.told.pop_front();
        }
    }
}

/// Reads one record.
pub(super) fn record(
    fields: &Fields<'_>,
    line: u32,
    head: &mut Head,
    state: &mut State,
) -> Result<Vec<Event>, Damage> {
    let kind = fields.text("type").unwrap_or_default();
    if let Some(time) = fields.get("timestamp").and_then(time) {
        head.time = Some(time);
    }
    if let Some(uuid) = fields.text("uuid") {
        let hash = derived_hash(&[&uuid]);
        if let Some(at) = state.summaries.iter().position(|(leaf, _)| *leaf == hash) {
            head.made_title = Some(state.summaries.swap_remove(at).1);
        }
    }
    let mut pieces = Vec::new();
    match &*kind {
        "user" | "assistant" => {
            note(fields, head, state.has_messages);
            let message = fields.get("message").unwrap_or(Raw::new(b""));
            let said = Said::read(fields, message, line)?;
            if kind == "assistant" {
                assistant(fields, message, &said, head, state, &mut pieces)?;
            } else {
                user(fields, &said, head, state, &mut pieces);
            }
            state.has_messages |= !pieces.is_empty();
        }
        "summary" => summary(fields, head, state),
        "custom-title" => {
            let title = fields.text("customTitle").or_else(|| fields.text("title"));
            last(&mut head.given_title, title);
        }
        "ai-title" => {
            let title = fields.text("aiTitle").or_else(|| fields.text("title"));
            last(&mut head.made_title, title);
        }
        "queue-operation" => queue(fields, line, head, state, &mut pieces),
        "attachment" => {
            note(fields, head, state.has_messages);
            let attachment = fields.object("attachment")?;
            if attachment.text("type").as_deref() == Some("queued_command")
                && let Some(prompt) = attachment.get("prompt")
            {
                let said = Said::read(fields, prompt, line)?;
                user(fields, &said, head, state, &mut pieces);
            }
        }
        "system" if fields.text("subtype").as_deref() == Some("local_command") => {
            note(fields, head, state.has_messages);
            let content = fields.get("content").unwrap_or(Raw::new(b""));
            let said = Said::read(fields, content, line)?;
            user(fields, &said, head, state, &mut pieces);
        }
        _ => {}
    }
    Ok(pieces)
}

/// Notes what a line says of its session.
fn note(fields: &Fields<'_>, head: &mut Head, has_messages: bool) {
    if head.session.is_none()
        && !has_messages
        && fields.get("isSidechain").is_some_and(Raw::is_true)
    {
        first(&mut head.agent, fields.text("agentId"));
    }
    first(&mut head.session, fields.text("sessionId"));
    first(&mut head.folder, fields.text("cwd"));
    last(&mut head.branch, fields.text("gitBranch"));
}

/// Takes a summary for the title where it is of this conversation.
///
/// A session's file begins with the summaries of those before it; each names the line it ends at.
fn summary(fields: &Fields<'_>, head: &mut Head, state: &mut State) {
    let Some(text) = fields.text("summary").filter(|text| !text.trim().is_empty()) else { return };
    match fields.text("leafUuid").filter(|leaf| !leaf.is_empty()) {
        Some(leaf) if !state.has_messages => {
            first(&mut head.last_resort, Some(text.as_ref()));
            if state.summaries.len() < SUMMARIES {
                state.summaries.push((derived_hash(&[&leaf]), text.into_owned()));
            }
        }
        _ => head.made_title = Some(text.into_owned()),
    }
}

/// Follows the prompts that wait while the model works. One that it takes in between is told by no
/// other record in some versions.
fn queue(
    fields: &Fields<'_>,
    line: u32,
    head: &mut Head,
    state: &mut State,
    pieces: &mut Vec<Event>,
) {
    match fields.text("operation").unwrap_or_default().as_ref() {
        "enqueue" => {
            let text = fields.text("content").unwrap_or_default().into_owned();
            state.waiting.push_back(text);
            if state.waiting.len() > PROMPTS {
                state.waiting.pop_front();
            }
        }
        "dequeue" => {
            state.waiting.pop_front();
        }
        "remove" => {
            let named = fields.text("content");
            let at = named.and_then(|text| state.waiting.iter().position(|it| *it == text));
            let text = state.waiting.remove(at.unwrap_or(0)).unwrap_or_default();
            if !text.trim().is_empty() && !is_told_by_program(&text) && !state.was_told(&text) {
                state.tell(&text);
                head.prompt(&text);
                pieces.push(Event::Message(Message {
                    id: format!("/{line}"),
                    role: "user".to_owned(),
                    content: text,
                    create_time: head.time,
                    line: Some(line),
                    ..Message::default()
                }));
            }
        }
        "popAll" => state.waiting.clear(),
        _ => {}
    }
}

/// The content of a line.
struct Said {
    line: u32,
    id: String,
    blocks: Vec<Value>,
}

impl Said {
    /// Reads the content of a message, which is an object that holds it or the content itself.
    fn read(fields: &Fields<'_>, message: Raw<'_>, line: u32) -> Result<Said, Damage> {
        let content =
            if message.is_object() { message.fields()?.get("content") } else { Some(message) };
        let blocks = match content.map(Raw::value).transpose()? {
            Some(Value::Array(blocks)) => blocks,
            Some(Value::Null) | None => Vec::new(),
            Some(block) => vec![block],
        };
        let id = fields.text("uuid").filter(|uuid| !uuid.is_empty());
        let id = id.map_or_else(|| format!("/{line}"), |id| id.into_owned());
        Ok(Said { line, id, blocks })
    }

    fn message(&self, role: &str, content: String, head: &Head) -> Message {
        Message {
            id: self.id.clone(),
            role: role.to_owned(),
            content,
            create_time: head.time,
            line: Some(self.line),
            ..Message::default()
        }
    }
}

/// Reads a line of the model's: a message, or one more block of it.
fn assistant(
    fields: &Fields<'_>,
    message: Raw<'_>,
    said: &Said,
    head: &mut Head,
    state: &mut State,
    pieces: &mut Vec<Event>,
) -> Result<(), Damage> {
    let message = message.fields()?;
    let model = message.text("model");
    // What the program says in the model's place, such as an error of the network.
    if model.as_deref() == Some("<synthetic>")
        || fields.get("isApiErrorMessage").is_some_and(Raw::is_true)
    {
        return Ok(());
    }
    last(&mut head.model, model.clone());
    let model_id = message.text("id").unwrap_or_default();
    let hash = derived_hash(&[&said.id]);
    let mut at =
        state.open.iter().position(|open| !model_id.is_empty() && open.model_id == model_id);
    if let Some(at) = at {
        if state.open[at].is_repeated || state.open[at].lines.contains(&hash) {
            return Ok(());
        }
        state.open[at].lines.push(hash);
    }
    for block in &said.blocks {
        let text = assistant_block(block);
        if text.trim().is_empty() {
            continue;
        }
        let length = text.len();
        let block = (length, derived_hash(&[&text]));
        match at {
            None => {
                let mut message = said.message("assistant", text, head);
                message.model = model.as_deref().map(str::to_owned);
                pieces.push(Event::Message(message));
                if state.open.len() >= OPEN {
                    state.open.pop_front();
                }
                state.open.push_back(Open {
                    model_id: model_id.clone().into_owned(),
                    id: said.id.clone(),
                    lines: vec![hash],
                    block,
                    is_repeated: false,
                });
                at = Some(state.open.len() - 1);
            }
            Some(at) => {
                let open = &mut state.open[at];
                let (before, before_hash) = open.block;
                let is_longer =
                    text.get(..before).is_some_and(|start| derived_hash(&[start]) == before_hash);
                let text = match is_longer {
                    true => text[before..].to_owned(),
                    false => format!("\n\n{text}"),
                };
                open.block = block;
                if !text.is_empty() {
                    pieces.push(Event::More { id: open.id.clone(), text });
                }
            }
        }
    }
    // Without an id of the model's, nothing else belongs to this message.
    if model_id.is_empty() {
        state.open.retain(|open| !open.model_id.is_empty());
    }
    Ok(())
}

/// Reads a line of the user's, which may hold results of tools instead.
fn user(
    fields: &Fields<'_>,
    said: &Said,
    head: &mut Head,
    state: &mut State,
    pieces: &mut Vec<Event>,
) {
    if fields.get("isMeta").is_some_and(Raw::is_true) {
        return;
    }
    let is_summary = fields.get("isCompactSummary").is_some_and(Raw::is_true);
    let mut texts: Vec<(&str, String)> = Vec::new();
    let mut add = |role, text: String| match texts.last_mut() {
        Some((last, before)) if *last == role => {
            before.push_str(if role == "tool" { "\n\n" } else { "\n" });
            before.push_str(&text);
        }
        _ => texts.push((role, text)),
    };
    for block in &said.blocks {
        if block.str("type") == "tool_result" {
            let text = result(block);
            if !text.trim().is_empty() {
                add("tool", text);
            }
            continue;
        }
        let (role, text) = typed(&shown(block));
        if !text.trim().is_empty() {
            add(if is_summary { "system" } else { role }, text);
        }
    }
    let is_queued = fields.text("type").as_deref() == Some("attachment");
    for (number, (role, mut text)) in texts.into_iter().enumerate() {
        if role == "system" {
            text.insert_str(0, "[summary of the conversation so far]\n");
        }
        if role == "user" {
            if is_queued {
                if state.was_told(&text) {
                    continue;
                }
                state.tell(&text);
            }
            // In a session's own file, what an agent of it was asked was not asked by the user.
            if head.agent.is_some() || !fields.get("isSidechain").is_some_and(Raw::is_true) {
                head.prompt(&text);
            } else {
                first(&mut head.last_resort, text.lines().next());
            }
        }
        let mut message = said.message(role, text, head);
        if number > 0 {
            message.id = format!("{}#{}", said.id, number + 1);
        }
        pieces.push(Event::Message(message));
    }
}
