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

mod runs;
mod text;

use std::{borrow::Cow, collections::VecDeque};

use serde::{Deserialize, Serialize};

use self::runs::ToolRun;
use self::text::{
    commands, environment, parsed, shown, typed, without_context, without_injections,
    without_preamble,
};
use super::fields::{derived_hash, hash_of_words, push_within};
use super::format::{FileLayout, Format, RecordReader, TranscriptFormat, restore};
use super::head::{HELPERS_LEFT_OUT, Head, TranscriptEvent, ending_uuid, set_first, set_last};
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

/// The number of recent calls whose other records are left out.
const RECENT_CALLS: usize = 128;

/// The maximum number of bytes of reasoning that wait for the answer.
const MOST_REASONING: usize = 64 << 10;

/// Kinds of records, items and events that hold no words of anyone, or words that other records have: what the
/// program keeps for itself, single steps, and pieces of a whole that follows. Records of any other kind are read
/// or counted.
const BOOKKEEPING: [&str; 77] = [
    "add_credits_nudge_email_response",
    "additional_tools",
    "agent_message_content_delta",
    "agent_message_delta",
    "agent_reasoning_delta",
    "agent_reasoning_raw_content_delta",
    "agent_reasoning_section_break",
    "apply_patch_approval_request",
    "collab_agent_interaction_begin",
    "collab_agent_spawn_begin",
    "collab_close_begin",
    "collab_close_end",
    "collab_resume_begin",
    "collab_resume_end",
    "collab_waiting_begin",
    "collab_waiting_end",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "context_compacted",
    "context_compaction",
    "contextcompaction",
    "conversation_path",
    "dynamic_tool_call_request",
    "elicitation_request",
    "exec_approval_request",
    "exec_command_begin",
    "exec_command_output_delta",
    "get_history_entry_response",
    "ghost_snapshot",
    "guardian_assessment",
    "hook_started",
    "hookprompt",
    "image_generation_begin",
    "inter_agent_communication_metadata",
    "item_started",
    "list_custom_prompts_response",
    "list_remote_skills_response",
    "list_skills_response",
    "mcp_list_tools_response",
    "mcp_startup_update",
    "mcp_tool_call_begin",
    "model_reroute",
    "model_verification",
    "patch_apply_begin",
    "patch_apply_updated",
    "plan_delta",
    "raw_response_item",
    "realtime_conversation_closed",
    "realtime_conversation_list_voices_response",
    "realtime_conversation_sdp",
    "realtime_conversation_started",
    "reasoning_content_delta",
    "reasoning_raw_content_delta",
    "remote_skill_downloaded",
    "request_permissions",
    "safety_buffering",
    "security_risk_score",
    "session_configured",
    "shutdown_complete",
    "skills_update_available",
    "sleep",
    "sub_agent_activity",
    "subagentactivity",
    "task_started",
    "terminal_interaction",
    "thread_goal_cleared",
    "thread_rolled_back",
    "thread_settings_applied",
    "token_count",
    "tool_search_output",
    "turn_diff",
    "turn_moderation_metadata",
    "turn_started",
    "undo_started",
    "web_search_begin",
    "world_state",
];

/// Kinds of events with what Codex told the user, and the words before their texts.
const TOLD: [(&str, &str); 7] = [
    ("background_event", ""),
    ("deprecation_notice", "[warning]\n"),
    ("error", "[error]\n"),
    ("guardian_warning", "[warning]\n"),
    ("stream_error", "[error]\n"),
    ("undo_completed", ""),
    ("warning", "[warning]\n"),
];

/// Blocks that are known. They may have no text.
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
    /// Whether Codex started the session for itself.
    #[serde(default)]
    is_helping: bool,
    /// Hashes of the ids of recent calls of tools, and whether the call was read from an event.
    #[serde(default)]
    calls: VecDeque<(u64, bool)>,
    /// Hashes of what Codex told the user last, and of the last goal that the user gave.
    #[serde(default)]
    told: u64,
    #[serde(default)]
    goal: u64,
    /// Hashes of what the user and the model said. A compaction may repeat it.
    #[serde(default)]
    said: VecDeque<u64>,
    /// The hashes of the first line of the last answer, and of the last plan that the model wrote.
    #[serde(default)]
    answered: u64,
    #[serde(default)]
    plan: u64,
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
                && fields
                    .get("content")
                    .and_then(|content| content.items().ok())
                    .is_some_and(are_blocks)
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
        let events = record.events;
        Ok(if self.is_helping { Vec::new() } else { events })
    }

    fn skip(&mut self, id: &str) {
        for recent in self.recent.iter_mut().filter(|recent| recent.id == id) {
            recent.has_files = true;
        }
    }

    fn at_end(&self, head: &Head, lines: u32) -> Vec<Message> {
        let line = self.reasoning_line.min(lines);
        if self.reasoning.is_empty() || self.is_helping {
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

    /// Returns whether another record of a call was read: any for an event, an event for an item. If not,
    /// remembers the call.
    fn has_call(&mut self, id: &str, is_event: bool) -> bool {
        let hash = derived_hash(&[id]);
        let known = self.calls.iter().find(|(known, _)| *known == hash && !id.is_empty());
        match known {
            Some((_, was_event)) => is_event || *was_event,
            None => {
                push_within(&mut self.calls, (hash, is_event), RECENT_CALLS);
                false
            }
        }
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
        if let Some(payload) = fields.get("payload").filter(|payload| !payload.is_object()) {
            self.head.unknown(&kind);
            let text = Head::words(&payload.value()?);
            self.spoken("system", text.trim(), false, Vec::new());
            return Ok(());
        }
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
                self.answer(&text_of(&payload, "content")?, false, Vec::new());
            }
            "event_msg" => self.event(&fields.object("payload")?)?,
            "compacted" => {
                let payload = fields.object("payload")?;
                let mut message = text_of(&payload, "message")?;
                if message.trim().is_empty() {
                    // The messages before the summary are repeats.
                    let history = value_of(&payload, "replacement_history")?;
                    let last = history.items().last().unwrap_or(&Value::Null);
                    let content = all(last.at("content").items(), shown);
                    let is_known = ["user", "assistant"].into_iter().any(|role| {
                        let hash = hash_of_words(role, &content);
                        self.reader.said.contains(&hash)
                    });
                    if !is_known {
                        message = content;
                    }
                }
                let summary = without_preamble(&message).trim();
                if !summary.is_empty() {
                    let text = format!("[summary of the conversation so far]\n{summary}");
                    self.message("system", text, Vec::new());
                }
            }
            "" if fields.has("record_type") => {}
            "" if !self.reader.has_meta || fields.has("id") => self.meta(fields)?,
            "" => self.unknown(&kind, fields, false)?,
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
        set_first(&mut head.spawner, fields.text("parent_thread_id"));
        // A fork by reference repeats nothing. A session that went back may refer to its own earlier file.
        let base = fields.object("history_base")?;
        let base = base.text("thread_id").filter(|id| Some(&**id) != head.session.as_deref());
        set_first(&mut head.parent, base);
        let own_from = fields.text("subagent_history_start_ordinal");
        reader.own_from = own_from.and_then(|it| it.parse().ok());
        let source = value_of(fields, "source")?;
        let spawner = source.at("subagent").at("thread_spawn").str("parent_thread_id");
        set_last(&mut head.spawner, Some(spawner));
        set_first(&mut head.parent, Some(spawner));
        if text::is_of_helper(&source) {
            reader.is_helping = true;
            head.left_out(HELPERS_LEFT_OUT);
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
                        self.reasoning(&shown(part));
                    }
                }
            }
            kind if kind.ends_with("_call_output") => {
                let id = fields.text("call_id").unwrap_or_default();
                if self.reader.calls.contains(&(derived_hash(&[&id]), true)) {
                    return Ok(());
                }
                let mut output = parsed(value_of(fields, "output")?)?;
                output.map_strings(screen::shown);
                let text = text::output(&output);
                if !text.trim().is_empty() {
                    self.message("tool", text, inline::files(&output));
                }
            }
            _ => {
                if let Some(text) = call(&kind, fields)? {
                    if fields.text("name").as_deref() == Some("update_plan") {
                        let plan = parsed(value_of(fields, "arguments")?)?;
                        self.reader.plan = derived_hash(&[&plan_text(plan)]);
                    }
                    let id = fields.text("call_id").or_else(|| fields.text("id"));
                    // Some versions write no id of a search.
                    let is_said = kind == "web_search_call"
                        && self.reader.first_of("assistant", &text, false).is_some();
                    if is_said || self.reader.has_call(&id.unwrap_or_default(), false) {
                        return Ok(());
                    }
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
            let is_known = kind.is_empty() || KNOWN_BLOCKS.contains(&kind);
            if !is_known || !matches!(block.at("text"), Value::Null | Value::String(_)) {
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
            // These are instructions.
            "developer" | "system" => {}
            role => self.unknown(&format!("message/{role}"), fields, false)?,
        }
        Ok(())
    }

    fn event(&mut self, fields: &ObjectFields<'_>) -> Result<(), Damage> {
        match &*fields.text("type").unwrap_or_default() {
            "user_message" => {
                let text = text_of(fields, "message")?;
                let images = value_of(fields, "images")?;
                let images = images.items().iter().filter_map(Value::as_str);
                let files = images.filter_map(InlineFile::from_data_url).collect();
                let names = value_of(fields, "local_images")?;
                // The first versions with events also wrote events for texts of Codex itself.
                let is_typed = fields.text("kind").is_none_or(|kind| kind == "plain");
                let text =
                    if is_typed { without_context(&text) } else { without_injections(&text) };
                let names = names.items().iter().filter_map(Value::as_str);
                self.prompt_with_files(&text, files, names);
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
                self.answer(&text_of(fields, "message")?, true, Vec::new());
            }
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                self.reasoning(&text_of(fields, "text")?);
            }
            "item_completed" => self.turn_item(&value_of(fields, "item")?),
            "hook_completed" => {
                let run = value_of(fields, "run")?;
                let entries = run.at("entries").items().iter().map(|entry| entry.str("text"));
                let said = lines([run.str("status_message")].into_iter().chain(entries));
                if !said.trim().is_empty() {
                    self.message("system", said, Vec::new());
                }
            }
            "mcp_startup_complete" => {
                let failed = value_of(fields, "failed")?;
                let failed = failed
                    .items()
                    .iter()
                    .map(|it| tool::joined(": ", &[it.str("server"), it.str("error")]));
                let failed = lines(failed);
                if !failed.is_empty() {
                    self.message("system", format!("[error]\n{failed}"), Vec::new());
                }
            }
            "plan_update" => {
                let plan = ["explanation", "plan"]
                    .map(|name| Ok((name.to_owned(), value_of(fields, name)?)));
                let plan = plan.into_iter().collect::<Result<_, Damage>>()?;
                let text = plan_text(Value::Object(plan));
                let hash = derived_hash(&[&text]);
                if std::mem::replace(&mut self.reader.plan, hash) != hash {
                    self.message("assistant", text, Vec::new());
                }
            }
            // Normally another record has the last answer, and perhaps marks that this one lacks.
            "task_complete" | "turn_complete" => {
                let answer = text_of(fields, "last_agent_message")?;
                if first_line(&answer) != self.reader.answered {
                    self.answer(&answer, true, Vec::new());
                }
            }
            "turn_aborted" => {
                if fields.text("reason").is_none_or(|reason| reason == "interrupted") {
                    self.message("system", "[interrupted]".to_owned(), Vec::new());
                }
            }
            "thread_goal_updated" => {
                let goal = value_of(fields, "goal")?;
                let goal = shown(goal.get("objective").unwrap_or(&goal));
                let hash = derived_hash(&[&goal]);
                if std::mem::replace(&mut self.reader.goal, hash) != hash {
                    self.prompt(&format!("/goal {}", goal.trim()), true, Vec::new());
                }
            }
            "thread_name_updated" | "session_name_updated" => {
                let names = ["thread_name", "name", "title"];
                let name = names.into_iter().find_map(|it| fields.text(it));
                set_last(&mut self.head.given_title, name);
            }
            kind if BOOKKEEPING.contains(&kind) => {}
            kind => {
                let mut event = Vec::new();
                for (name, value) in fields.iter() {
                    event.push((name.to_owned(), value.value()?));
                }
                let event = Value::Object(event);
                if let Some((_, before)) = TOLD.iter().find(|(told, _)| *told == kind) {
                    let names = ["message", "summary", "additional_details", "details"];
                    let said = lines(names.map(|name| all(event.at(name).items(), shown)));
                    let text = format!("{before}{}", said.trim());
                    let hash = derived_hash(&[&text]);
                    // A retry that fails in the same way adds nothing.
                    if !said.trim().is_empty()
                        && std::mem::replace(&mut self.reader.told, hash) != hash
                    {
                        self.message("system", text, Vec::new());
                    }
                } else if let Some(run) = runs::of(&kind.replace('_', ""), &event) {
                    self.run(run);
                } else {
                    let hash = derived_hash(&[event.str("call_id")]);
                    let is_step = self.reader.calls.iter().any(|(known, _)| *known == hash);
                    if event.str("call_id").is_empty() || !is_step {
                        self.unknown(kind, fields, true)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads an item of a turn, as the user saw it. Other records may have the same words.
    fn turn_item(&mut self, item: &Value) {
        let content = item.get("content").unwrap_or(item.at("text"));
        let kind = item.str("type").to_lowercase().replace('_', "");
        match &*kind {
            "usermessage" => {
                let (texts, names): (Vec<&Value>, Vec<&Value>) =
                    content.items().iter().partition(|block| block.str("path").is_empty());
                let files = names.iter().filter(|block| block.str("type").contains("mage"));
                let text =
                    texts.into_iter().map(shown).chain(files.clone().map(|_| "[image]".to_owned()));
                let text = without_context(&lines(text));
                let names = files.map(|block| block.str("path"));
                self.prompt_with_files(&text, inline::files(content), names);
            }
            "agentmessage" | "plan" => self.answer(&all(content.items(), shown), true, Vec::new()),
            "reasoning" => {
                for name in ["summary_text", "raw_content", "summary", "content"] {
                    item.at(name).items().iter().for_each(|part| self.reasoning(&shown(part)));
                }
            }
            kind if BOOKKEEPING.contains(&kind) => {}
            kind => match runs::of(kind, item) {
                Some(run) => self.run(run),
                None => {
                    self.head.unknown(&format!("item_completed/{}", item.str("type")));
                    let text = Head::words(item);
                    self.spoken("system", text.trim(), true, Vec::new());
                }
            },
        }
    }

    /// Adds a run of a tool, unless the items of the model have it.
    fn run(&mut self, run: ToolRun) {
        if run.call.starts_with("! ") {
            self.prompt(&lines([run.call, run.output]), true, Vec::new());
            return;
        }
        let is_said = run.call.is_empty()
            || self.reader.first_of("assistant", &run.call, true).is_some()
            || self.reader.has_call(&run.id, true);
        if !is_said {
            self.message("assistant", run.call, run.file.into_iter().collect());
            if !run.output.trim().is_empty() {
                self.message("tool", screen::shown(&run.output).into_owned(), Vec::new());
            }
        }
    }

    /// Adds a prompt and the names of its files, which the item that the model saw does not have.
    fn prompt_with_files<'n>(
        &mut self,
        text: &str,
        files: Vec<InlineFile>,
        names: impl Iterator<Item = &'n str>,
    ) {
        if let Some(id) = self.prompt(text, true, files) {
            self.events.extend(names.map(|name| TranscriptEvent::More {
                id: id.clone(),
                text: format!("\n[file: {name}]"),
            }));
        }
    }

    /// Reads a record of an unknown kind, as a message of the user or the model if it says so. The other
    /// record of the turn may be of a known kind.
    fn unknown(
        &mut self,
        kind: &str,
        fields: &ObjectFields<'_>,
        is_event: bool,
    ) -> Result<(), Damage> {
        if BOOKKEEPING.contains(&kind) {
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
        push_within(&mut self.reader.said, hash_of_words(role, text), RECENT_CALLS);
        if role == "assistant" {
            self.reader.answered = first_line(text);
        }
        // The records of a command that the user ran have its output in different words.
        let is_command = role == "user" && text.starts_with("! ");
        let said = text.lines().next().filter(|_| is_command).unwrap_or(text);
        if let Some(first) = self.reader.first_of(role, said, is_event) {
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
        if role != "system" {
            reader.told = 0;
        }
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

/// Returns the call of the tool that sets the plan, with its arguments always in the same order.
fn plan_text(plan: Value) -> String {
    let named = ["explanation", "plan"].map(|name| (name.to_owned(), plan.at(name).clone()));
    tool::call("update_plan", &[], &Value::Object(named.into()))
}

/// Returns the hash of the first line of an answer.
fn first_line(answer: &str) -> u64 {
    hash_of_words("assistant", answer.trim().lines().next().unwrap_or_default())
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
            let text = runs::web_search(Some(&value_of(fields, "action")?), &Value::Null);
            Some(text).filter(|text| !text.is_empty())
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

/// Returns the text of a field of any shape.
fn text_of(fields: &ObjectFields<'_>, name: &str) -> Result<String, Damage> {
    Ok(all(value_of(fields, name)?.items(), shown))
}

fn all(blocks: &[Value], text: fn(&Value) -> String) -> String {
    lines(blocks.iter().map(text))
}
