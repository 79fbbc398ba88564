//! Transcripts of Claude Code: `~/.claude/projects/PROJECT/SESSION.jsonl`, and the transcripts of
//! its agents, in separate files.
//!
//! The reader takes the messages of the user and the model; the model's thinking, below `[thinking]`; tool
//! calls, in the message that made them; tool results and the files that the user mentioned, as messages of the
//! role `tool`; and the summaries from which a long conversation continues, errors of the service, interruptions
//! and what hooks told the user, as messages of the role `system`. The reader takes every branch of an edited
//! conversation, in the order of the lines. It leaves out Claude Code's own notes and the texts that Claude
//! Code adds for the model (reminders, caveats, the user's open files).

mod attached;
mod text;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use self::attached::{AttachedText, attached};
use self::text::{
    CONTINUED, OF_TEAMMATE, assistant_block, error, has_output, interruption, is_injected, result,
    shown, typed,
};
use super::fields::{derived_hash, hash_of_words, push_within};
use super::format::{FileLayout, Format, RecordReader, TranscriptFormat, restore};
use super::head::{
    HELPERS_LEFT_OUT, Head, NOTES_LEFT_OUT, TranscriptEvent, ending_uuid, set_first, set_last,
};
use super::inline::{self, InlineFile};
use super::json::{Damage, ObjectFields, Raw, Value};
use super::tool::lines;
use verbatim_base::model::Message;

pub(super) const SOURCE_FORMAT: Format = Format {
    name: "claude_code",
    label: "Claude Code",
    is_conversation: |fields| fields.get("loglines").is_some_and(Raw::is_array),
    layout: FileLayout::Transcript(TranscriptFormat {
        is_record,
        records: &["loglines"],
        id,
        has_project_folders: true,
        reader: || Box::new(ClaudeCodeReader::default()),
        restore: restore::<ClaudeCodeReader>,
    }),
};

/// The maximum number of open messages: messages of the model and of its agents that may continue.
const OPEN: usize = 32;

/// The maximum length of two lists: waiting prompts, and hashes of prompts that may be repeated.
const PROMPTS: usize = 32;

/// The maximum number of results of tools, prompts and blocks of a message whose repeats are left out.
const REPEATABLE: usize = 64;

/// The maximum number of summaries whose sessions are not known yet.
const SUMMARIES: usize = 64;

/// The beginnings of the prompts with which Claude Code starts helpers. Its first versions gave their ids no
/// labels.
const PROMPTS_OF_HELPERS: [&str; 3] = [
    "[SUGGESTION MODE:",
    "Your task is to create a detailed summary of the conversation so far",
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
];

/// The minimum number of hexadecimal digits at the end of an agent's id.
const DIGITS: usize = 6;

/// The whole prompt with which Claude Code starts agents before the user needs them.
const WARM_UP: &str = "Warmup";

/// The beginning of the id of an agent that answers a question of the user beside the work. The question and the
/// answer belong to the session's conversation.
const SIDE_QUESTION: &str = "aside_question-";

/// The beginning of the tag with which Claude Code instructs an agent that the user forked from the session.
const FORKED_BY_USER: &str = "<fork";

/// Kinds of records that hold no words of anyone, or words that other records have. Records of any other kind are
/// read or counted.
const BOOKKEEPING: [&str; 50] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "artifact-autoreact-ledger",
    "artifact-comment-monitor",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "cost-state",
    "file-history-delta",
    "file-history-snapshot",
    "fork-context-ref",
    "frame-link",
    "isolation-latch",
    "last-prompt",
    "marble-origami-snapshot",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "relocated",
    "result",
    "speculation-accept",
    "started",
    "stream_event",
    "system/agents_killed",
    "system/bridge_status",
    "system/compact_boundary",
    "system/elicitation_complete",
    "system/file_snapshot",
    "system/files_persisted",
    "system/hook_progress",
    "system/hook_response",
    "system/hook_started",
    "system/init",
    "system/memory_saved",
    "system/microcompact_boundary",
    "system/session_state_changed",
    "system/status",
    "system/stop_hook_summary",
    "system/task_notification",
    "system/task_progress",
    "system/task_started",
    "system/task_updated",
    "system/thinking",
    "system/thinking_tokens",
    "system/turn_duration",
    "tag",
    "worktree-state",
];

/// Kinds of system records with what Claude Code told the user; early versions wrote no kind.
const TOLD: [&str; 8] = [
    "",
    "away_summary",
    "informational",
    "model_fallback",
    "model_refusal_fallback",
    "model_refusal_no_fallback",
    "permission_retry",
    "scheduled_task_fire",
];

/// Kinds of attachments that Claude Code adds for the model, or for its own use.
const ATTACHED_NOTES: [&str; 44] = [
    "agent_listing_delta",
    "agent_mention",
    "auto_mode",
    "auto_mode_exit",
    "bagel_console",
    "budget_usd",
    "command_permissions",
    "compact_file_reference",
    "compaction_reminder",
    "companion_intro",
    "context_efficiency",
    "critical_system_reminder",
    "current_session_memory",
    "date_change",
    "deferred_tools_delta",
    "delegate_mode",
    "dynamic_skill",
    "hook_additional_context",
    "hook_cancelled",
    "hook_permission_decision",
    "hook_success",
    "invoked_skills",
    "max_turns_reached",
    "mcp_instructions_delta",
    "nested_memory",
    "opened_file_in_ide",
    "output_style",
    "output_token_usage",
    "plan_file_reference",
    "plan_mode",
    "plan_mode_exit",
    "plan_mode_reentry",
    "read_truncation_notice",
    "relevant_memories",
    "skill_discovery",
    "skill_listing",
    "structured_output",
    "task_reminder",
    "team_context",
    "teammate_shutdown_batch",
    "todo_reminder",
    "token_usage",
    "ultrathink_effort",
    "verify_plan_reminder",
];

/// Words in the kinds of such attachments. Attachments of other kinds with one of these words are only counted.
const WORDS_OF_NOTES: [&str; 27] = [
    "briefing",
    "context",
    "date",
    "delta",
    "effort",
    "environment",
    "hook",
    "ide",
    "instructions",
    "intro",
    "memory",
    "memories",
    "mode",
    "model",
    "note",
    "notice",
    "permissions",
    "plan",
    "reference",
    "reminder",
    "skill",
    "skills",
    "snapshot",
    "status",
    "style",
    "thinking",
    "usage",
];

/// Texts that Claude Code puts in the place of an answer of the model, and does not show.
const FILLERS: [&str; 2] = ["No response requested.", "(no content)"];

/// The state of reading one transcript.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ClaudeCodeReader {
    open: VecDeque<OpenMessage>,
    /// Prompts that the user gave while the model was working, with the numbers of their lines.
    waiting: VecDeque<(u32, String)>,
    /// Hashes of prompts that were read already. Another record may repeat such a prompt.
    queued: VecDeque<u64>,
    /// The hash of the last message, if it is a prompt from the queue.
    #[serde(default)]
    last_queued: Option<u64>,
    /// The hash of the last prompt that left the queue. The user's own record of it follows and is read.
    #[serde(default)]
    dequeued: Option<u64>,
    /// The hash of the last error of the service, until another message follows.
    #[serde(default)]
    last_error: Option<u64>,
    /// Hashes of results of tools and of prompts. A stream may repeat them in other records.
    #[serde(default)]
    said: VecDeque<u64>,
    /// The hash of the last block of an answer. The record of the run's result repeats it.
    #[serde(default)]
    last_said: Option<u64>,
    /// Summaries, each with the hash of the id of the last record that it covers.
    summaries: Vec<(u64, String)>,
    has_messages: bool,
    /// Whether the last prompt was that of a helper; see [`SessionRecord::is_of_helper`].
    #[serde(default)]
    is_helping: bool,
}

/// A message that may continue in later records.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenMessage {
    model_id: String,
    id: String,
    records: Vec<u64>,
    /// Length and hash of the message's last block of text. A later record may hold a longer
    /// version.
    block: (usize, u64),
    /// Hashes of the message's blocks. A stream may repeat them in later records.
    #[serde(default)]
    blocks: VecDeque<u64>,
    is_repeat: bool,
}

fn is_record(kind: &str, fields: &ObjectFields<'_>) -> bool {
    match kind {
        "user" | "assistant" => {
            // If a message contains a picture, perhaps only the fields before the picture were read.
            let is_message =
                fields.has("timestamp") || fields.has("uuid") || fields.has("sessionId");
            fields.has("message") && is_message
                || fields.has("sessionId") && fields.has("parentUuid")
        }
        "summary" => fields.has("summary"),
        "file-history-snapshot" => fields.has("snapshot"),
        // The journal of a workflow, whose agents have their own transcripts.
        "started" | "result" => fields.has("agentId") && fields.has("key"),
        "system" | "progress" | "attachment" => fields.has("uuid") || fields.has("sessionId"),
        "queue-operation" | "custom-title" | "ai-title" | "last-prompt" | "permission-mode"
        | "agent-name" | "mode" => fields.has("sessionId"),
        _ => false,
    }
}

/// Returns the id of the conversation: the file's name if that is a UUID, else the session's id.
fn id(head: &Head, stem: &str) -> String {
    match (&head.session, &head.agent) {
        (Some(session), Some(agent)) => format!("{session}/agent-{agent}"),
        (Some(session), None) if ending_uuid(stem) != Some(stem) => session.clone(),
        _ => stem.to_owned(),
    }
}

impl RecordReader for ClaudeCodeReader {
    fn record(
        &mut self,
        fields: &ObjectFields<'_>,
        line: u32,
        head: &mut Head,
    ) -> Result<Vec<TranscriptEvent>, Damage> {
        if let Some(uuid) = fields.text("uuid") {
            let hash = derived_hash(&[&uuid]);
            if let Some(at) = self.summaries.iter().position(|(leaf, _)| *leaf == hash) {
                head.made_title = Some(self.summaries.swap_remove(at).1);
            }
        }
        let mut record = SessionRecord { fields, line, head, reader: self, events: Vec::new() };
        record.read()?;
        let events = record.events;
        if let Some(TranscriptEvent::Message(message)) = events.last() {
            let hash = hash_of_words("user", &message.content);
            self.last_queued = Some(hash).filter(|hash| self.queued.contains(hash));
        } else if !events.is_empty() {
            self.last_queued = None;
        }
        Ok(events)
    }

    fn skip(&mut self, id: &str) {
        for open in self.open.iter_mut().filter(|open| open.id == id) {
            open.is_repeat = true;
        }
    }

    fn at_end(&self, head: &Head, lines: u32) -> Vec<Message> {
        let waiting = self.waiting.iter().filter(|(_, text)| {
            is_typed(text) && !self.queued.contains(&hash_of_words("user", text))
        });
        waiting
            .map(|(line, text)| head.message(format!("/{line}#end"), "user", text.clone(), lines))
            .collect()
    }

    fn save(&self) -> String {
        serde_json::to_string(self).expect("it holds nothing but text, numbers and lists")
    }
}

impl ClaudeCodeReader {
    /// Returns whether this prompt has been read already, and removes it from the list of such prompts.
    fn was_queued(&mut self, text: &str) -> bool {
        let hash = hash_of_words("user", text);
        let at = self.queued.iter().position(|queued| *queued == hash);
        at.and_then(|at| self.queued.remove(at)).is_some()
    }

    /// Returns whether the hash of a result or a prompt is not known yet, and remembers it.
    fn is_new(&mut self, hash: u64) -> bool {
        let is_new = !self.said.contains(&hash);
        if is_new {
            push_within(&mut self.said, hash, REPEATABLE);
        }
        is_new
    }

    /// Remembers a prompt that another record may repeat.
    fn note_queued(&mut self, text: &str) {
        push_within(&mut self.queued, hash_of_words("user", text), PROMPTS);
    }

    /// Returns whether the user's own record of a prompt repeats a queued prompt. A record that does not name
    /// its source counts as a repeat only right after that prompt, because the user may say the same again.
    fn repeats_queued(&mut self, text: &str, source: Option<&str>) -> bool {
        let hash = hash_of_words("user", text);
        let is_last = self.last_queued == Some(hash);
        match source {
            _ if self.dequeued.take_if(|dequeued| *dequeued == hash).is_some() => false,
            Some("queued") => self.was_queued(text) || is_last,
            Some(_) => false,
            None => is_last,
        }
    }
}

/// Returns whether a prompt in the queue has words of the user.
fn is_typed(prompt: &str) -> bool {
    !prompt.trim().is_empty() && !is_injected(prompt)
}

struct SessionRecord<'a, 'f> {
    fields: &'a ObjectFields<'f>,
    line: u32,
    head: &'a mut Head,
    reader: &'a mut ClaudeCodeReader,
    events: Vec<TranscriptEvent>,
}

/// Returns whether the id of an agent has a label, as in `acompact-0a1b2c`. Claude Code gives such ids to its
/// helpers, and ids without a label, as in `a0a1b2c`, to agents that the model or the user started.
fn has_label(id: &str) -> bool {
    let parts = id.strip_prefix('a').and_then(|id| id.rsplit_once('-'));
    id.starts_with("hook-agent-")
        || parts.is_some_and(|(label, digits)| {
            label.starts_with(|letter: char| letter.is_ascii_lowercase())
                && label.bytes().all(|byte| b"_-".contains(&byte) || byte.is_ascii_lowercase())
                && digits.len() >= DIGITS
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

struct Content {
    id: String,
    blocks: Vec<Value>,
    is_of_program: bool,
}

/// Returns whether another agent or the program wrote a prompt, and not the user, who may also write through a
/// channel.
fn is_of_program(fields: &ObjectFields<'_>) -> Result<bool, Damage> {
    let source = fields.text("promptSource").unwrap_or_default();
    if ["cron", "schedule", "loop"].iter().any(|word| source.contains(word)) {
        return Ok(true);
    }
    let kind = match fields.text("origin") {
        Some(kind) => Some(kind),
        None => fields.object("origin")?.text("kind"),
    };
    Ok(kind.is_some_and(|kind| !matches!(&*kind, "" | "human" | "user" | "channel")))
}

impl SessionRecord<'_, '_> {
    fn read(&mut self) -> Result<(), Damage> {
        let fields = self.fields;
        let kind = fields.text("type").unwrap_or_default();
        match &*kind {
            "user" | "assistant" => {
                self.session();
                let message =
                    ["message", "content", "text"].into_iter().find_map(|name| fields.get(name));
                let message = message.unwrap_or(Raw::new(b""));
                let mut content = self.content(message)?;
                let prompts = content.blocks.iter().filter(|it| kind == "user" && !is_of_tool(it));
                if self.is_of_helper(&lines(prompts.map(shown))) {
                    return Ok(());
                }
                if kind == "assistant" {
                    self.assistant(message, &content)?;
                } else {
                    self.user(&mut content);
                }
                self.reader.has_messages |= !self.events.is_empty();
                if !self.events.is_empty() {
                    self.reader.last_error = None;
                }
            }
            _ if self.is_of_helper("") => {}
            "summary" => self.summary(),
            "custom-title" => {
                let title = fields.text("customTitle").or_else(|| fields.text("title"));
                set_last(&mut self.head.given_title, title);
            }
            "ai-title" => {
                let title = fields.text("aiTitle").or_else(|| fields.text("title"));
                set_last(&mut self.head.made_title, title);
            }
            "queue-operation" => self.queue(),
            "attachment" => {
                self.session();
                self.attachment()?;
            }
            "system" if fields.text("subtype").as_deref() == Some("local_command") => {
                self.session();
                let content = fields.get("content").unwrap_or(Raw::new(b""));
                let mut content = self.content(content)?;
                self.user(&mut content);
            }
            "system" if fields.text("subtype").as_deref() == Some("api_error") => {
                self.session();
                self.api_error()?;
            }
            "system" => {
                let subtype = fields.text("subtype").unwrap_or_default();
                let kind = format!("system/{subtype}");
                if TOLD.contains(&&*subtype) && fields.has("content") {
                    self.session();
                    let content = self.content(fields.get("content").unwrap_or(Raw::new(b"")))?;
                    self.others(&content);
                } else if !BOOKKEEPING.contains(&&*kind) {
                    self.unknown(&kind, fields)?;
                }
            }
            "result" if !fields.has("key") => self.outcome()?,
            _ if BOOKKEEPING.contains(&&*kind) => {}
            _ => self.unknown(&kind, fields)?,
        }
        Ok(())
    }

    /// Reads the last record of a run: its errors, or its result if that is not the last answer.
    fn outcome(&mut self) -> Result<(), Damage> {
        self.session();
        let mut errors = Vec::new();
        for error in self.fields.get("errors").map(Raw::value).transpose()?.iter() {
            errors.extend(error.items().iter().map(shown));
        }
        let mut text = lines(&errors);
        if text.is_empty() {
            text = self.fields.text("result").unwrap_or_default().trim().to_owned();
        }
        let is_error = self.fields.get("is_error").is_some_and(Raw::is_true);
        if text.is_empty() || self.reader.last_said == Some(derived_hash(&[&text])) {
            return Ok(());
        }
        let id = self.id();
        if is_error {
            self.add(id, "system", format!("[error]\n{text}"), None);
        } else {
            self.add(id, "assistant", text, None);
        }
        self.reader.has_messages = true;
        Ok(())
    }

    /// Reads a record of an unknown kind, as a message of the user or the model if it says so.
    fn unknown(&mut self, kind: &str, fields: &ObjectFields<'_>) -> Result<(), Damage> {
        let text = self.head.unknown_record(kind, fields)?;
        if text.is_empty() {
            return Ok(());
        }
        self.session();
        let message = fields.get("message").filter(|message| message.is_object());
        let role = fields.object("message")?.text("role").or_else(|| fields.text("role"));
        let message = message.or_else(|| fields.get("content")).unwrap_or(Raw::new(b""));
        let mut content = self.content(message)?;
        match role.as_deref() {
            Some("user") if !content.blocks.is_empty() => self.user(&mut content),
            Some("assistant") if !content.blocks.is_empty() && message.is_object() => {
                self.assistant(message, &content)?;
            }
            role => {
                let role = role.filter(|role| *role == "assistant").unwrap_or("system");
                self.add(content.id, role, text, None);
            }
        }
        self.reader.has_messages |= !self.events.is_empty();
        Ok(())
    }

    fn attachment(&mut self) -> Result<(), Damage> {
        let attachment = self.fields.object("attachment")?;
        let kind = attachment.text("type").unwrap_or_default();
        match (&*kind, attachment.get("messages"), attachment.get("prompt")) {
            ("teammate_mailbox", Some(messages), _) => {
                let content = self.content(messages)?;
                self.others(&content);
                return Ok(());
            }
            ("queued_command", _, Some(prompt)) => {
                let mut content = self.content(prompt)?;
                content.is_of_program |= is_of_program(&attachment)?;
                self.user(&mut content);
                return Ok(());
            }
            _ => {}
        }
        let value = self.fields.get("attachment").unwrap_or(Raw::new(b"null")).value()?;
        if let Some(AttachedText { role, text, files }) = attached(&value) {
            if !text.trim().is_empty() {
                let id = self.id();
                let files: Vec<_> = TranscriptEvent::files(&id, files).collect();
                self.add(id, role, text, None);
                self.events.extend(files);
            }
        } else if ATTACHED_NOTES.contains(&&*kind) {
            self.head.left_out(NOTES_LEFT_OUT);
        } else if kind.split('_').any(|word| WORDS_OF_NOTES.contains(&word)) {
            self.head.unknown(&format!("attachment/{kind}"));
        } else {
            self.unknown(&format!("attachment/{kind}"), &attachment)?;
        }
        Ok(())
    }

    /// Reads an error of the service, which Claude Code shows to the user. A retry that fails in the same way
    /// adds nothing.
    fn api_error(&mut self) -> Result<(), Damage> {
        let mut texts = Vec::new();
        for name in ["content", "error", "cause"] {
            if let Some(value) = self.fields.get(name) {
                error(&value.value()?, &mut texts);
            }
        }
        let text = texts.join("\n");
        let hash = Some(derived_hash(&[&text])).filter(|_| !text.is_empty());
        if std::mem::replace(&mut self.reader.last_error, hash) != hash && hash.is_some() {
            let id = self.id();
            self.add(id, "system", format!("[error]\n{text}"), None);
        }
        Ok(())
    }

    fn session(&mut self) {
        let fields = self.fields;
        let head = &mut *self.head;
        let is_agent = fields.get("isSidechain").is_some_and(Raw::is_true);
        if head.session.is_none() && !self.reader.has_messages && is_agent {
            let agent = fields.text("agentId").filter(|id| !id.starts_with(SIDE_QUESTION));
            set_first(&mut head.agent, agent);
        }
        let session = fields.text("sessionId");
        head.has_later_session |= session
            .as_deref()
            .is_some_and(|session| head.session.as_deref().is_some_and(|first| first != session));
        set_first(&mut head.session, session);
        if let Some(fork) = fields.get("forkedFrom").and_then(|it| it.fields().ok()) {
            set_first(&mut head.parent, fork.text("sessionId"));
        }
        head.folder(&fields.text("cwd").unwrap_or_default());
        set_last(&mut head.branch, fields.text("gitBranch"));
    }

    /// Returns whether a record belongs to a helper: an agent that Claude Code started for itself, for example to
    /// suggest a prompt or to summarise the conversation. No person saw it. `prompt` is the record's prompt, or
    /// empty.
    fn is_of_helper(&mut self, prompt: &str) -> bool {
        let fields = self.fields;
        let reader = &mut *self.reader;
        let is_agent = fields.get("isSidechain").is_some_and(Raw::is_true);
        // The records of an agent that the user or the model named have its name.
        let is_labelled = is_agent
            && fields
                .text("agentId")
                .is_some_and(|id| has_label(&id) && !id.starts_with(SIDE_QUESTION))
            && !["agentName", "teamName"].into_iter().any(|name| fields.has(name));
        let prompt = prompt.trim();
        let begins_help = prompt == WARM_UP
            || PROMPTS_OF_HELPERS.iter().any(|start| prompt.starts_with(start))
            || is_labelled && !reader.has_messages && !prompt.contains(FORKED_BY_USER);
        if is_agent && begins_help {
            if !std::mem::replace(&mut reader.is_helping, true) {
                self.head.left_out(HELPERS_LEFT_OUT);
            }
        } else if !prompt.is_empty() && interruption(prompt).is_empty() {
            reader.is_helping = false;
        }
        reader.is_helping && is_agent
    }

    /// Uses a summary as the title if it belongs to this conversation.
    ///
    /// A session's file begins with the summaries of earlier sessions. Each summary names the last record
    /// that it covers.
    fn summary(&mut self) {
        let fields = self.fields;
        let text = fields.text("summary").filter(|text| !text.trim().is_empty());
        let Some(text) = text else { return };
        match fields.text("leafUuid").filter(|leaf| !leaf.is_empty()) {
            Some(leaf) if !self.reader.has_messages => {
                set_first(&mut self.head.last_resort, Some(text.as_ref()));
                if self.reader.summaries.len() < SUMMARIES {
                    let hash = derived_hash(&[&leaf]);
                    self.reader.summaries.push((hash, text.into_owned()));
                }
            }
            _ => self.head.made_title = Some(text.into_owned()),
        }
    }

    /// Tracks the queue of prompts that wait while the model works.
    fn queue(&mut self) {
        let fields = self.fields;
        let reader = &mut *self.reader;
        match fields.text("operation").unwrap_or_default().as_ref() {
            "enqueue" => {
                let text = fields.text("content").unwrap_or_default().into_owned();
                reader.waiting.push_back((self.line, text));
                if reader.waiting.len() > PROMPTS {
                    self.taken(0);
                }
            }
            "dequeue" => {
                let prompt = reader.waiting.pop_front();
                reader.dequeued = prompt.map(|(_, prompt)| hash_of_words("user", &prompt));
            }
            "remove" => {
                let named = fields.text("content");
                let at =
                    named.and_then(|text| reader.waiting.iter().position(|(_, it)| *it == text));
                self.taken(at.unwrap_or(0));
            }
            "popAll" => reader.waiting.clear(),
            _ => {}
        }
    }

    /// Adds a waiting prompt as a message. If the model takes a prompt during its work, some versions write no
    /// other record of the prompt.
    fn taken(&mut self, at: usize) {
        let reader = &mut *self.reader;
        let (_, text) = reader.waiting.remove(at).unwrap_or_default();
        if is_typed(&text) && !reader.was_queued(&text) {
            reader.note_queued(&text);
            self.head.prompt(&text);
            let id = format!("/{}", self.line);
            self.add(id, "user", text, None);
        }
    }

    /// Returns the content of a message. `message` is an object with the content, or the content itself.
    fn content(&mut self, message: Raw<'_>) -> Result<Content, Damage> {
        let content =
            if message.is_object() { message.fields()?.get("content") } else { Some(message) };
        let blocks = match content.map(Raw::value).transpose()? {
            Some(Value::Array(blocks)) => blocks,
            Some(Value::Null) => Vec::new(),
            Some(block) => vec![block],
            None => {
                let kind = self.fields.text("type").unwrap_or_default();
                self.head.unknown(&format!("{kind} without content"));
                vec![Value::String(Head::words(&message.value()?))]
            }
        };
        text::unknown(&blocks, &mut |kind| self.head.unknown(kind));
        Ok(Content { id: self.id(), blocks, is_of_program: is_of_program(self.fields)? })
    }

    fn id(&self) -> String {
        let id = self.fields.text("uuid").filter(|uuid| !uuid.is_empty());
        id.map_or_else(|| format!("/{}", self.line), |id| id.into_owned())
    }

    fn add(&mut self, id: String, role: &str, content: String, model: Option<String>) {
        let message = self.head.message(id, role, content, self.line);
        self.events.push(TranscriptEvent::Message(Message { model, ..message }));
    }

    /// Reads a record of the model: a message, or a further block of an open message.
    fn assistant(&mut self, message: Raw<'_>, content: &Content) -> Result<(), Damage> {
        let message = message.fields()?;
        let model = message.text("model");
        // Claude Code wrote this message instead of the model, for example about a network error.
        if model.as_deref() == Some("<synthetic>")
            || self.fields.get("isApiErrorMessage").is_some_and(Raw::is_true)
        {
            if !content.blocks.iter().all(|block| FILLERS.contains(&shown(block).trim())) {
                self.others(content);
            }
            return Ok(());
        }
        set_last(&mut self.head.model, model.clone());
        let model_id = message.text("id").unwrap_or_default();
        let hash = derived_hash(&[&content.id]);
        let open = &mut self.reader.open;
        let mut at = open.iter().position(|it| !model_id.is_empty() && it.model_id == model_id);
        if let Some(open) = at.map(|at| &mut open[at]) {
            if open.is_repeat || open.records.contains(&hash) {
                return Ok(());
            }
            open.records.push(hash);
        }
        let mut hashes = Vec::new();
        for block in &content.blocks {
            let text = assistant_block(block);
            if text.trim().is_empty() {
                continue;
            }
            self.reader.last_said = Some(derived_hash(&[text.trim()]));
            let block_hash = derived_hash(&[block.str("id"), &text]);
            if at.is_some_and(|at| self.reader.open[at].blocks.contains(&block_hash)) {
                continue;
            }
            hashes.push(block_hash);
            let files = inline::files(block);
            if let Some(at) = at {
                self.go_on(at, text);
                let id = &self.reader.open[at].id;
                self.events.extend(TranscriptEvent::files(id, files));
                continue;
            }
            let message = OpenMessage {
                model_id: model_id.clone().into_owned(),
                id: content.id.clone(),
                records: vec![hash],
                block: (text.len(), derived_hash(&[&text])),
                blocks: VecDeque::new(),
                is_repeat: false,
            };
            push_within(&mut self.reader.open, message, OPEN);
            at = Some(self.reader.open.len() - 1);
            self.add(content.id.clone(), "assistant", text, model.as_deref().map(str::to_owned));
            self.events.extend(TranscriptEvent::files(&content.id, files));
        }
        // Blocks of one record may be the same.
        if let Some(open) = at.map(|at| &mut self.reader.open[at]) {
            hashes.into_iter().for_each(|hash| push_within(&mut open.blocks, hash, REPEATABLE));
        }
        // If the record does not name the model's message, no later record continues this message.
        if model_id.is_empty() {
            self.reader.open.retain(|open| !open.model_id.is_empty());
        }
        Ok(())
    }

    /// Adds a block to an open message: a new block, or a longer version of the last block.
    fn go_on(&mut self, at: usize, text: String) {
        let open = &mut self.reader.open[at];
        let (before, before_hash) = open.block;
        open.block = (text.len(), derived_hash(&[&text]));
        let is_longer =
            text.get(..before).is_some_and(|start| derived_hash(&[start]) == before_hash);
        let text = if is_longer { text[before..].to_owned() } else { format!("\n\n{text}") };
        if !text.is_empty() {
            self.events.push(TranscriptEvent::More { id: open.id.clone(), text });
        }
    }

    /// Reads a text of Claude Code or of another agent.
    fn others(&mut self, content: &Content) {
        let text = lines(content.blocks.iter().map(shown));
        if !text.trim().is_empty() {
            self.reader.last_said = Some(derived_hash(&[text.trim()]));
            self.add(content.id.clone(), "system", text, None);
        }
    }

    /// Reads a record of the user. The record may have tool results instead of a prompt.
    fn user(&mut self, content: &mut Content) {
        let fields = self.fields;
        let has_blocks = !content.blocks.is_empty();
        let own = fields.get("toolUseResult").map(Raw::bytes).unwrap_or_default();
        content.blocks.retain(|block| {
            let id = block.str("tool_use_id");
            let text = result(block);
            let own = if text.trim().is_empty() { String::from_utf8_lossy(own) } else { "".into() };
            id.is_empty() || self.reader.is_new(derived_hash(&[id, &text, &own]))
        });
        if has_blocks && content.blocks.is_empty() {
            return;
        }
        let is_replay = fields.get("isReplay").is_some_and(Raw::is_true);
        let is_meta = fields.get("isMeta").is_some_and(Raw::is_true);
        let is_summary = fields.get("isCompactSummary").is_some_and(Raw::is_true);
        let is_queued = fields.text("type").as_deref() == Some("attachment");
        let source = fields.text("promptSource");
        let mut texts = texts_of(&content.blocks, is_summary, is_meta);
        if is_meta && content.blocks.iter().any(|block| !is_of_tool(block)) {
            self.head.left_out(NOTES_LEFT_OUT);
        }
        if let Some(more) = fields.get("toolUseResult") {
            add_result(&mut texts, &content.blocks, more);
        }
        for (number, (role, mut text, files)) in texts.into_iter().enumerate() {
            if role == "system" && (is_summary || text.starts_with(CONTINUED)) {
                text.insert_str(0, "[summary of the conversation so far]\n");
            }
            let role = if role == "user" && content.is_of_program { "system" } else { role };
            if role == "system" && text.starts_with(OF_TEAMMATE) {
                set_first(&mut self.head.last_resort, text.lines().nth(1));
            }
            if role == "user" {
                if !self.reader.is_new(hash_of_words("user", &text)) && is_replay {
                    continue;
                }
                if is_queued {
                    if self.reader.was_queued(&text) {
                        self.reader.last_queued = Some(hash_of_words("user", &text));
                        continue;
                    }
                    self.reader.note_queued(&text);
                } else if self.reader.repeats_queued(&text, source.as_deref()) {
                    continue;
                }
                // In a session's own file, the prompts of its agents do not come from the user.
                if self.head.agent.is_some() || !fields.get("isSidechain").is_some_and(Raw::is_true)
                {
                    self.head.prompt(&text);
                } else {
                    set_first(&mut self.head.last_resort, text.lines().next());
                }
            }
            let id = match number {
                0 => content.id.clone(),
                _ => format!("{}#{}", content.id, number + 1),
            };
            let files: Vec<_> = TranscriptEvent::files(&id, files).collect();
            self.add(id, role, text, None);
            self.events.extend(files);
        }
    }
}

type TextOfBlocks = (&'static str, String, Vec<InlineFile>);

/// Returns whether a block is the result of a tool, or a file that a tool read. Claude Code puts such blocks
/// also into records that are otherwise its own notes.
fn is_of_tool(block: &Value) -> bool {
    matches!(block.str("type"), "tool_result" | "image" | "document")
}

/// Returns the texts of blocks with their roles. Joins consecutive blocks of the same role. Of Claude Code's
/// own notes, only the blocks of tools count.
fn texts_of(blocks: &[Value], is_summary: bool, is_note: bool) -> Vec<TextOfBlocks> {
    let mut texts: Vec<TextOfBlocks> = Vec::new();
    for block in blocks {
        let files = inline::files(block);
        if block.str("type") == "tool_result" {
            push_text(&mut texts, "tool", result(block), files);
        } else if is_note {
            if is_of_tool(block) {
                push_text(&mut texts, "tool", shown(block), files);
            }
        } else if is_summary {
            push_text(&mut texts, "system", typed(&shown(block)).1, files);
        } else {
            let text = shown(block);
            push_text(&mut texts, "system", interruption(&text).to_owned(), Vec::new());
            let (role, text) = typed(&text);
            push_text(&mut texts, role, text, files);
        }
    }
    texts
}

fn push_text(
    texts: &mut Vec<TextOfBlocks>,
    role: &'static str,
    text: String,
    files: Vec<InlineFile>,
) {
    match texts.last_mut() {
        _ if text.trim().is_empty() => {}
        Some((last, before, files_before)) if *last == role => {
            before.push_str(if role == "tool" { "\n\n" } else { "\n" });
            before.push_str(&text);
            files_before.extend(files);
        }
        _ => texts.push((role, text, files)),
    }
}

/// Adds what Claude Code knows of a tool's result, if the results in `blocks` lack it. `more` is Claude Code's own
/// record of a result.
fn add_result(texts: &mut Vec<TextOfBlocks>, blocks: &[Value], more: Raw<'_>) {
    if !blocks.is_empty() && !blocks.iter().any(|block| block.str("type") == "tool_result") {
        return;
    }
    let Ok(more) = more.value() else { return };
    let said = lines(texts.iter().filter(|(role, ..)| *role == "tool").map(|(_, text, _)| text));
    let outputs = match &more {
        _ if said.is_empty() => vec![text::program_result(&more)],
        Value::Object(_) => ["stdout", "stderr"].map(|name| more.str(name).to_owned()).to_vec(),
        Value::String(error) => vec![error.trim_start_matches("Error: ").to_owned()],
        results => vec![lines(results.items().iter().map(shown))],
    };
    for output in outputs.into_iter().filter(|output| !has_output(&said, output)) {
        match texts.iter_mut().rfind(|(role, ..)| *role == "tool") {
            Some((_, text, _)) => *text = lines([text.as_str(), output.trim_end()]),
            None => texts.push(("tool", output, Vec::new())),
        }
    }
}
