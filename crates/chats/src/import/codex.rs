//! Transcripts of Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-SESSION.jsonl`.
//!
//! There are three versions of the format. The first has a header and bare items. The second puts every
//! record into an envelope with its kind and time. The third adds more kinds of records. From the second
//! version on, each turn is recorded twice: as the item that the model saw and as the event that the user
//! saw. Each turn is read once. One of the two records may be missing, and they may come in any order.
//!
//! The reader takes the messages of the user and the model; summaries of reasoning, below `[thinking]` before
//! the answer; tool calls, as messages of the model; tool outputs, as messages of the role `tool`; and the
//! summaries from which a long conversation continues, as messages of the role `system`. It leaves out
//! encrypted reasoning and the texts that Codex adds for the model (instructions, the environment, the user's
//! editor).

mod text;

use std::{borrow::Cow, collections::VecDeque};

use serde::{Deserialize, Serialize};

use self::text::{
    commands, environment, parsed, shown, typed, without_context, without_injections,
    without_preamble,
};
use super::fields::{derived_hash, hash_of_words, push_within};
use super::format::{FileLayout, Format, RecordReader, TranscriptFormat, restore};
use super::head::{Head, TranscriptEvent, ending_uuid, set_first, set_last};
use super::inline::{self, InlineFile};
use super::json::{Damage, ObjectFields, Raw, Value};
use super::tool::{self, lines};
use verbatim_base::model::Message;
use verbatim_text::screen;

pub(super) const SOURCE_FORMAT: Format = Format {
    name: "codex",
    label: "Codex",
    is_conversation: |fields| {
        fields.get("session").is_some_and(Raw::is_object)
            && fields.get("items").is_some_and(Raw::is_array)
    },
    layout: FileLayout::Transcript(TranscriptFormat {
        is_record,
        records: &["session", "items"],
        id: |head, stem| {
            let session = head.session.as_deref();
            session.or_else(|| ending_uuid(stem)).unwrap_or(stem).to_owned()
        },
        has_project_folders: false,
        reader: || Box::new(CodexReader::default()),
        restore: restore::<CodexReader>,
    }),
};

/// The number of recent messages that are searched for the other record of a turn.
const RECENT: usize = 32;

/// The maximum number of bytes of reasoning that wait for the answer.
const MOST_REASONING: usize = 64 << 10;

/// Suffixes of kinds of records that describe single steps. Another record has the result of the steps.
const STEPS: [&str; 8] =
    ["_begin", "_end", "_delta", "_started", "_request", "_response", "_update", "_updated"];

/// Kinds of records whose texts are not part of the conversation or are in another record too.
const NOTES: [&str; 20] = [
    "additional_tools",
    "background_event",
    "compaction",
    "compaction_summary",
    "context_compacted",
    "context_compaction",
    "deprecation_notice",
    "error",
    "ghost_snapshot",
    "guardian_assessment",
    "guardian_warning",
    "hook_completed",
    "model_reroute",
    "raw_response_item",
    "stream_error",
    "task_complete",
    "turn_complete",
    "undo_completed",
    "warning",
    "world_state",
];

const KNOWN_BLOCKS: [&str; 13] = [
    "input_text",
    "output_text",
    "text",
    "encrypted_content",
    "refusal",
    "summary_text",
    "input_image",
    "image",
    "output_image",
    "input_file",
    "file",
    "input_audio",
    "audio",
];

/// The state of reading one transcript.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct CodexReader {
    recent: VecDeque<RecentMessage>,
    /// Reasoning to put before the next answer, and the line of its record.
    reasoning: Vec<String>,
    reasoning_line: u32,
    /// Hashes of reasoning that was read already.
    known_reasoning: VecDeque<u64>,
    has_meta: bool,
    /// The number of this session's own first record. Earlier records belong to the forked session.
    own_from: Option<u64>,
}

/// A message that a later record of the other kind (item or event) may repeat.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RecentMessage {
    hash: u64,
    is_event: bool,
    #[serde(default)]
    id: String,
    /// Whether the message's files were read already, or are not wanted.
    #[serde(default)]
    has_files: bool,
}

/// Returns whether a record belongs to any version of this format.
fn is_record(kind: &str, fields: &ObjectFields<'_>) -> bool {
    match kind {
        "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted" => {
            fields.get("payload").is_some_and(Raw::is_object)
        }
        // Other programs write some of the items of the same service, such as reasoning. These have more kinds.
        "message" => {
            fields.has("role")
                && fields.get("content").and_then(|content| content.items().ok()).is_some_and(are_blocks)
        }
        "function_call" | "function_call_output" | "local_shell_call" => fields.has("call_id"),
        "" => {
            fields.has("record_type")
                || fields.has("id") && fields.has("timestamp") && fields.has("instructions")
        }
        _ => false,
    }
}

/// Returns whether all blocks of a message are of the service that Codex uses.
fn are_blocks(blocks: Vec<Raw<'_>>) -> bool {
    blocks.into_iter().all(|block| {
        let kind = block.last_fields(["type"]).ok().and_then(|[kind]| kind?.text());
        kind.is_some_and(|kind| kind.starts_with("input_") || kind.starts_with("output_"))
    })
}

impl RecordReader for CodexReader {
    fn record(
        &mut self,
        fields: &ObjectFields<'_>,
        line: u32,
        head: &mut Head,
    ) -> Result<Vec<TranscriptEvent>, Damage> {
        let ordinal = fields.text("ordinal").and_then(|it| it.parse::<u64>().ok());
        if let (Some(own_from), Some(ordinal)) = (self.own_from, ordinal)
            && ordinal < own_from
        {
            return Ok(Vec::new());
        }
        // The record of kind `compacted` has the same summary.
        if fields.object("metadata")?.get("compaction_output").is_some_and(Raw::is_true) {
            return Ok(Vec::new());
        }
        let mut record = RolloutRecord { line, head, reader: self, events: Vec::new() };
        record.read(fields)?;
        Ok(record.events)
    }

    fn skip(&mut self, id: &str) {
        for recent in self.recent.iter_mut().filter(|recent| recent.id == id) {
            recent.has_files = true;
        }
    }

    fn at_end(&self, head: &Head, lines: u32) -> Vec<Message> {
        let line = self.reasoning_line.min(lines);
        if self.reasoning.is_empty() {
            return Vec::new();
        }
        let text = format!("[thinking]\n{}", self.reasoning.join("\n\n"));
        let message = head.message(format!("/{line}#end"), "assistant", text, lines);
        vec![Message { model: head.model.clone(), ..message }]
    }

    fn save(&self) -> String {
        serde_json::to_string(self).expect("it holds nothing but text, numbers and lists")
    }
}

impl CodexReader {
    /// Returns whether an event with this message is recent and its item has not come.
    fn has_event(&self, role: &str, text: &str) -> bool {
        let hash = hash_of_words(role, text);
        self.recent.iter().any(|it| it.is_event && it.hash == hash)
    }

    /// Returns the message of the other kind that a record repeats. Otherwise remembers the record's message.
    fn first_of(&mut self, role: &str, text: &str, is_event: bool) -> Option<RecentMessage> {
        let hash = hash_of_words(role, text);
        if let Some(at) =
            self.recent.iter().position(|it| it.hash == hash && it.is_event != is_event)
        {
            return self.recent.remove(at);
        }
        let message = RecentMessage { hash, is_event, id: String::new(), has_files: false };
        push_within(&mut self.recent, message, RECENT);
        None
    }
}

struct RolloutRecord<'a> {
    line: u32,
    head: &'a mut Head,
    reader: &'a mut CodexReader,
    events: Vec<TranscriptEvent>,
}

impl RolloutRecord<'_> {
    fn read(&mut self, fields: &ObjectFields<'_>) -> Result<(), Damage> {
        let kind = fields.text("type").unwrap_or_default();
        match &*kind {
            "session_meta" => self.meta(&fields.object("payload")?)?,
            "turn_context" => {
                let payload = fields.object("payload")?;
                self.head.folder(&payload.text("cwd").unwrap_or_default());
                set_last(&mut self.head.model, payload.text("model"));
            }
            "response_item" => self.item(&fields.object("payload")?)?,
            "inter_agent_communication" => {
                let payload = fields.object("payload")?;
                self.answer(&payload.text("content").unwrap_or_default(), false, Vec::new());
            }
            "event_msg" => self.event(&fields.object("payload")?)?,
            "compacted" => {
                let payload = fields.object("payload")?;
                let message = payload.text("message").unwrap_or_default();
                let summary = without_preamble(&message).trim();
                if !summary.is_empty() {
                    let text = format!("[summary of the conversation so far]\n{summary}");
                    self.message("system", text, Vec::new());
                }
            }
            "" if fields.has("record_type") => {}
            "" => self.meta(fields)?,
            _ if fields.get("payload").is_none() => self.item(fields)?,
            _ => self.unknown(&kind, &fields.object("payload")?, false)?,
        }
        Ok(())
    }

    /// Reads the header of a session. In a fork, the parent's header and records come after it.
    fn meta(&mut self, fields: &ObjectFields<'_>) -> Result<(), Damage> {
        let head = &mut *self.head;
        let reader = &mut *self.reader;
        let id = fields.text("id").or_else(|| fields.text("session_id"));
        if std::mem::replace(&mut reader.has_meta, true) {
            if id.as_deref() != head.session.as_deref() {
                set_first(&mut head.parent, id);
            }
            return Ok(());
        }
        set_first(&mut head.session, id);
        set_first(&mut head.parent, fields.text("forked_from_id"));
        // A fork by reference repeats nothing. A session that went back may refer to its own earlier file.
        let base = fields.object("history_base")?;
        let base = base.text("thread_id").filter(|id| Some(&**id) != head.session.as_deref());
        set_first(&mut head.parent, base);
        let own_from = fields.text("subagent_history_start_ordinal");
        reader.own_from = own_from.and_then(|it| it.parse().ok());
        if let Some(source) = fields.get("source").filter(|source| source.is_object()) {
            let spawn = source.fields()?.object("subagent")?.object("thread_spawn")?;
            set_first(&mut head.spawner, spawn.text("parent_thread_id"));
            set_first(&mut head.parent, spawn.text("parent_thread_id"));
        }
        head.folder(&fields.text("cwd").unwrap_or_default());
        let git = fields.object("git")?;
        set_last(&mut head.branch, git.text("branch"));
        Ok(())
    }

    /// Reads an item that the model saw.
    fn item(&mut self, fields: &ObjectFields<'_>) -> Result<(), Damage> {
        let kind = fields.text("type").unwrap_or_default();
        match &*kind {
            // Some programs write messages without a kind.
            "message" | "" => self.message_item(fields)?,
            // A message of one agent to another.
            "agent_message" => {
                let content = value_of(fields, "content")?;
                self.answer(&all(content.items(), shown), false, inline::files(&content));
            }
            "reasoning" => {
                for name in ["summary", "content"] {
                    for part in value_of(fields, name)?.items() {
                        self.reasoning(part.as_str().unwrap_or_else(|| part.str("text")));
                    }
                }
            }
            kind if kind.ends_with("_call_output") => {
                let mut output = parsed(value_of(fields, "output")?)?;
                output.map_strings(screen::shown);
                let text = text::output(&output);
                if !text.trim().is_empty() {
                    self.message("tool", text, inline::files(&output));
                }
            }
            _ => {
                if let Some(text) = call(&kind, fields)? {
                    let picture = fields.text("result").filter(|_| kind == "image_generation_call");
                    let picture = picture
                        .map(|it| InlineFile { name: String::new(), base64: it.into_owned() });
                    self.message("assistant", text, picture.into_iter().collect());
                } else {
                    self.unknown(&kind, fields, false)?;
                }
            }
        }
        Ok(())
    }

    fn message_item(&mut self, fields: &ObjectFields<'_>) -> Result<(), Damage> {
        let content = value_of(fields, "content")?;
        let blocks = content.items();
        for block in blocks {
            let kind = block.str("type");
            let has_text = !block.str("text").trim().is_empty();
            if !kind.is_empty() && !KNOWN_BLOCKS.contains(&kind) && !has_text {
                self.head.unknown(kind);
            }
        }
        match &*fields.text("role").unwrap_or_default() {
            "user" => {
                for block in blocks {
                    environment(block.str("text"), self.head);
                }
                // An event with the whole text shows that the user typed the tags at its beginning.
                let whole = all(blocks, shown);
                let is_typed = self.reader.has_event("user", whole.trim());
                let text = if is_typed { whole } else { all(blocks, typed) };
                self.prompt(&text, false, inline::files(&content));
            }
            "assistant" => self.answer(&all(blocks, shown), false, inline::files(&content)),
            // Messages of the roles `developer` and `system` are instructions, which are left out.
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, fields: &ObjectFields<'_>) -> Result<(), Damage> {
        match &*fields.text("type").unwrap_or_default() {
            "user_message" => {
                let text = fields.text("message").unwrap_or_default();
                let images = value_of(fields, "images")?;
                let images = images.items().iter().filter_map(Value::as_str);
                let files = images.filter_map(InlineFile::from_data_url).collect();
                let names = value_of(fields, "local_images")?;
                // The first versions with events also wrote events for texts of Codex itself.
                let is_typed = fields.text("kind").is_none_or(|kind| kind == "plain");
                let text =
                    if is_typed { without_context(&text) } else { without_injections(&text) };
                if let Some(id) = self.prompt(&text, true, files) {
                    // The item that the model saw does not name the files.
                    let names = names.items().iter().filter_map(Value::as_str);
                    self.events.extend(names.map(|name| TranscriptEvent::More {
                        id: id.clone(),
                        text: format!("\n[file: {name}]"),
                    }));
                }
            }
            "entered_review_mode" => {
                let target = fields.object("target")?;
                let asked = target.text("instructions").or_else(|| fields.text("prompt"));
                let command = asked.map_or(String::new(), |it| format!("/review {it}"));
                self.prompt(&command, true, Vec::new());
            }
            "exited_review_mode" => {
                let findings = text::review(&value_of(fields, "review_output")?);
                self.answer(&findings, true, Vec::new());
            }
            "agent_message" => {
                let text = fields.text("message").unwrap_or_default();
                self.answer(&text, true, Vec::new());
            }
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                self.reasoning(&fields.text("text").unwrap_or_default());
            }
            "item_completed" => {
                let item = fields.object("item")?;
                if item.text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("plan")) {
                    self.answer(&item.text("text").unwrap_or_default(), true, Vec::new());
                }
            }
            "thread_name_updated" | "session_name_updated" => {
                let names = ["thread_name", "name", "title"];
                let name = names.into_iter().find_map(|it| fields.text(it));
                set_last(&mut self.head.given_title, name);
            }
            kind => self.unknown(kind, fields, true)?,
        }
        Ok(())
    }

    /// Reads a record of an unknown kind, as a message of the user or the model if it says so. The other
    /// record of the turn may be of a known kind.
    fn unknown(
        &mut self,
        kind: &str,
        fields: &ObjectFields<'_>,
        is_event: bool,
    ) -> Result<(), Damage> {
        let is_step = STEPS.iter().any(|end| kind.ends_with(end)) || kind.starts_with("collab_");
        if is_step || NOTES.contains(&kind) {
            return Ok(());
        }
        let text = self.head.unknown_record(kind, fields)?;
        let role = fields.text("role").or(fields.object("message")?.text("role"));
        match role.as_deref() {
            Some("user") => self.prompt(&without_injections(&text), is_event, Vec::new()),
            Some("developer") => None,
            role => {
                let text = text.trim();
                let is_said = ["user", "assistant"].into_iter().any(|role| {
                    let hash = hash_of_words(role, text);
                    self.reader.recent.iter().any(|recent| recent.hash == hash)
                });
                let role = role.filter(|role| *role == "assistant").unwrap_or("system");
                if is_said { None } else { self.spoken(role, text, is_event, Vec::new()) }
            }
        };
        Ok(())
    }

    /// Adds a prompt that may be in two records. Returns the message's id.
    fn prompt(&mut self, text: &str, is_event: bool, files: Vec<InlineFile>) -> Option<String> {
        self.spoken("user", text.trim(), is_event, files)
    }

    fn answer(&mut self, text: &str, is_event: bool, files: Vec<InlineFile>) {
        self.spoken("assistant", text.trim(), is_event, files);
    }

    /// Adds a message that may be in two records. Either record may have its files. Returns the message's id.
    fn spoken(
        &mut self,
        role: &str,
        text: &str,
        is_event: bool,
        files: Vec<InlineFile>,
    ) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        if let Some(first) = self.reader.first_of(role, text, is_event) {
            if !first.has_files {
                self.events.extend(TranscriptEvent::files(&first.id, files));
            }
            return Some(first.id);
        }
        if role == "user" {
            self.head.prompt(text);
        }
        let has_files = !files.is_empty();
        let id = self.message(role, text.to_owned(), files);
        if let Some(recent) = self.reader.recent.back_mut() {
            (recent.id, recent.has_files) = (id.clone(), has_files);
        }
        Some(id)
    }

    /// Keeps reasoning for the next answer.
    fn reasoning(&mut self, text: &str) {
        let text = text.trim();
        let reader = &mut *self.reader;
        let hash = derived_hash(&[text]);
        let waiting: usize = reader.reasoning.iter().map(String::len).sum();
        if text.is_empty() || reader.known_reasoning.contains(&hash) || waiting > MOST_REASONING {
            return;
        }
        push_within(&mut reader.known_reasoning, hash, RECENT);
        if reader.reasoning.is_empty() {
            reader.reasoning_line = self.line;
        }
        reader.reasoning.push(text.to_owned());
    }

    /// Adds a message, and puts waiting reasoning before its text. Returns the message's id.
    fn message(&mut self, role: &str, mut text: String, files: Vec<InlineFile>) -> String {
        let mut line = self.line;
        let reader = &mut *self.reader;
        if role == "assistant" && !reader.reasoning.is_empty() {
            let reasoning = std::mem::take(&mut reader.reasoning).join("\n\n");
            text = format!("[thinking]\n{reasoning}\n\n{text}");
            line = reader.reasoning_line.min(line);
        } else if role == "user" && !reader.reasoning.is_empty() {
            // No answer came after the reasoning.
            let reasoning = std::mem::take(&mut reader.reasoning).join("\n\n");
            self.line = reader.reasoning_line.min(line);
            self.message("assistant", format!("[thinking]\n{reasoning}"), Vec::new());
            self.line = line;
        } else {
            // Reasoning before this message must not set the line of a later message.
            reader.reasoning_line = u32::MAX;
        }
        let messages = self.events.iter().filter(|it| matches!(it, TranscriptEvent::Message(_)));
        let suffix = match messages.count() {
            0 => String::new(),
            before => format!("#{}", before + 1),
        };
        let id = format!("/{}{suffix}", self.line);
        let model = self.head.model.clone().filter(|_| role == "assistant");
        let message = self.head.message(id.clone(), role, text, line);
        self.events.push(TranscriptEvent::Message(Message { model, ..message }));
        self.events.extend(TranscriptEvent::files(&id, files));
        id
    }
}

/// Returns the text of a call of a tool; `None` for any other item.
fn call(kind: &str, fields: &ObjectFields<'_>) -> Result<Option<String>, Damage> {
    Ok(match kind {
        "function_call" | "custom_tool_call" | "tool_search_call" | "mcp_call" => {
            let name = fields.text("name").unwrap_or(Cow::Borrowed("tool_search"));
            let mut input = Value::Null;
            for argument in ["arguments", "input", "summary"] {
                if let Some(raw) = fields.get(argument).filter(|_| input == Value::Null) {
                    input = parsed(raw.value()?)?;
                }
            }
            Some(tool::call(&name, &[], &commands(input)))
        }
        "local_shell_call" => {
            let action = value_of(fields, "action")?;
            let command = action.get("command").cloned().unwrap_or(Value::Null);
            let input = commands(Value::Object(vec![("command".to_owned(), command)]));
            Some(tool::call("local_shell", &[], &input))
        }
        "web_search_call" => {
            let action = value_of(fields, "action")?;
            let named = ["query", "url", "pattern"];
            let mut parts: Vec<(String, Value)> = named
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), action.get(name)?.clone())))
                .collect();
            let more = action.at("queries").items();
            let more = more.iter().filter(|query| query.as_str() != Some(action.str("query")));
            parts.extend(more.map(|query| ("query".to_owned(), query.clone())));
            (!parts.is_empty()).then(|| tool::call("web_search", &[], &Value::Object(parts)))
        }
        "image_generation_call" => {
            let prompt = fields.text("revised_prompt").unwrap_or_default();
            Some(lines(["[image]", prompt.as_ref()]))
        }
        _ => None,
    })
}

/// Returns the value of a field; `Null` if there is none.
fn value_of(fields: &ObjectFields<'_>, name: &str) -> Result<Value, Damage> {
    Ok(fields.get(name).map(Raw::value).transpose()?.unwrap_or(Value::Null))
}

fn all(blocks: &[Value], text: fn(&Value) -> String) -> String {
    lines(blocks.iter().map(text))
}
