//! Recognises chats of programs and services whose formats are not read, to name them.

use std::path::Path;

use super::json::{ObjectFields, Raw};

/// A program or service, and the test for its objects.
type Recognised = (&'static str, fn(&ObjectFields<'_>) -> bool);

/// The files of prompts that were typed. The transcripts have these prompts too, as long as they exist.
const CLAUDE_HISTORY: &str = "Claude Code's list of typed prompts";
const CODEX_HISTORY: &str = "Codex's list of typed prompts";

/// Programs by the records of their transcripts. Some write nearly the records of Claude Code.
const BY_RECORD: [Recognised; 16] = [
    (CLAUDE_HISTORY, |it| has(it, &["display", "timestamp", "project"])),
    (CODEX_HISTORY, |it| has(it, &["session_id", "ts", "text"])),
    ("Qwen Code", |it| {
        is_one_of(it, "type", &["user", "assistant", "tool_result", "system"])
            && it.get("sessionId").is_some()
            && (has_inner_field(it, "message", "parts") || it.get("systemPayload").is_some())
    }),
    ("iFlow", |it| {
        it.get("parentUuid").is_some()
            && it.text("sessionId").is_some_and(|id| id.starts_with("session-"))
    }),
    ("Qoder", |it| {
        is_one_of(it, "type", &["runtime-config"])
            || has_inner_field(it, "usage", "credits")
            || it
                .object("message")
                .is_ok_and(|message| has_inner_field(&message, "usage", "credits"))
            || has(it, &["sessionId", "credits", "billable"])
    }),
    ("Gemini CLI", |it| {
        has(it, &["sessionId", "startTime", "lastUpdated"])
            || is_one_of(it, "type", &["gemini"]) && has(it, &["id", "content"])
    }),
    ("Cursor", |it| {
        is_one_of(it, "role", &["user", "assistant"])
            && has_inner_field(it, "message", "content")
            && !["type", "uuid", "sessionId", "id"].iter().any(|name| it.get(name).is_some())
    }),
    ("GitHub Copilot", |it| {
        let kind = it.text("type").unwrap_or_default();
        let of_cli = ["session.", "user.", "assistant.", "tool.", "system."];
        of_cli.iter().any(|start| kind.starts_with(start)) && has(it, &["data", "id"])
            || has(it, &["kind", "v"]) && has_inner_field(it, "v", "requests")
    }),
    ("OpenCode", |it| {
        let id = it.text("id").unwrap_or_default();
        let is_id = ["ses_", "msg_", "prt_"].iter().any(|start| id.starts_with(start));
        is_id && (has(it, &["sessionID"]) || has(it, &["directory"]) || has(it, &["projectID"]))
    }),
    ("Antigravity", |it| {
        has(it, &["created_at"]) && is_one_of(it, "source", &["USER_EXPLICIT", "MODEL"])
    }),
    ("Grok Build", |it| {
        it.object("params").is_ok_and(|params| has_inner_field(&params, "update", "sessionUpdate"))
    }),
    ("Kimi Code", |it| {
        has(it, &["protocol_version"]) && is_one_of(it, "type", &["metadata"])
            || is_one_of(it, "type", &["context.append_message"])
    }),
    ("Goose", |it| has(it, &["working_dir", "message_count"])),
    ("DeepSeek's agent", |it| {
        is_one_of(it, "type", &["session"]) && has(it, &["createdAt", "delegationDepth"])
    }),
    ("Pi", |it| {
        is_one_of(it, "type", &["session"]) && has(it, &["version", "id", "timestamp", "cwd"])
    }),
    ("Droid", |it| is_one_of(it, "type", &["session_start"]) && has(it, &["id"])),
];

/// Programs and services by the objects of their files and exports.
const BY_OBJECT: [Recognised; 9] = [
    ("DeepSeek", |it| has(it, &["mapping", "inserted_at"])),
    ("Grok", |it| has(it, &["conversation", "responses"])),
    ("Open WebUI", |it| {
        has_inner_field(it, "chat", "history") || has_inner_field(it, "chat", "messages")
    }),
    ("LibreChat", |it| {
        has(it, &["conversationId", "messages"]) || has(it, &["conversationId", "endpoint"])
    }),
    ("Le Chat", |it| has(it, &["chatId", "role", "content"])),
    ("the Gemini app", |it| {
        has(it, &["products", "time"])
            && it.text("header").is_some_and(|header| header.starts_with("Gemini"))
    }),
    ("GitHub Copilot", |it| has(it, &["requests", "responderUsername"])),
    ("Gemini CLI", |it| has(it, &["sessionId", "projectHash", "messages"])),
    ("Cline", |it| has(it, &["sessionId", "agent", "messages"])),
];

/// Programs by the names of their files.
const BY_NAME: [(&str, &str); 4] = [
    ("api_conversation_history.json", "Cline, Roo Code or Kilo Code"),
    ("ui_messages.json", "Cline, Roo Code or Kilo Code"),
    ("prod-grok-backend.json", "Grok"),
    ("perplexity", "Perplexity"),
];

/// Databases of chats by the beginnings of their names.
const DATABASES: [(&str, &str); 6] = [
    ("webui.db", "it is the database of Open WebUI, which is not read yet"),
    ("opencode", "it is the database of OpenCode, which is not read yet"),
    ("state.vscdb", "it is a database of Cursor or VS Code, which is not read yet"),
    ("store.db", "it is a database of another program; if it is Cursor's, it is not read yet"),
    ("sessions.db", "it is a database of another program; if it is Goose's, it is not read yet"),
    ("threads.db", "it is a database of another program; if it is Zed's, it is not read yet"),
];

/// Returns the program that wrote a record of a transcript that is not read.
pub(super) fn detect_record(fields: &ObjectFields<'_>) -> Option<&'static str> {
    BY_RECORD.iter().find(|(_, is_of)| is_of(fields)).map(|(name, _)| *name)
}

/// Returns a description of an object in a file of another program, or in the export of another service.
pub(super) fn describe_object(fields: &ObjectFields<'_>) -> Option<String> {
    let object = BY_OBJECT.iter().find(|(_, is_of)| is_of(fields));
    let object =
        object.map(|(name, _)| format!("conversations of {name}, whose export is not read yet"));
    object.or_else(|| Some(transcript_phrase(detect_record(fields)?)))
}

/// Returns the phrase for a transcript that is not read.
pub(super) fn transcript_phrase(program: &str) -> String {
    if [CLAUDE_HISTORY, CODEX_HISTORY].contains(&program) {
        return format!(
            "{program}, which is not read yet; transcripts have their prompts themselves"
        );
    }
    format!("a transcript of {program}, which is not read yet")
}

pub(super) fn describe_by_name(name: &str) -> Option<String> {
    let name = Path::new(name).file_name()?.to_string_lossy().to_lowercase();
    let (_, program) = BY_NAME.iter().find(|(start, _)| name.starts_with(start))?;
    Some(format!("conversations of {program}, whose files are not read yet"))
}

pub(super) fn database(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    DATABASES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, what)| *what)
}

fn has(fields: &ObjectFields<'_>, names: &[&str]) -> bool {
    names.iter().all(|name| fields.get(name).is_some())
}

fn is_one_of(fields: &ObjectFields<'_>, name: &str, values: &[&str]) -> bool {
    fields.text(name).is_some_and(|value| values.contains(&&*value))
}

/// Returns whether the object in a field has a field with this name.
fn has_inner_field(fields: &ObjectFields<'_>, name: &str, inner: &str) -> bool {
    fields.get(name).is_some_and(Raw::is_object)
        && fields.object(name).is_ok_and(|object| object.get(inner).is_some())
}
