//! Recognises the files of programs and services whose chats are not read, to name them.

use std::collections::HashSet;
use std::path::Path;

use memchr::memmem;

use super::json::{ObjectFields, Raw};

/// A program or service, and what only its files have.
struct ForeignProgram {
    name: &'static str,
    /// Returns whether an object is a record of its transcripts, or an object of its files.
    has: fn(&ObjectFields<'_>) -> bool,
    /// Words that are all in the tables of its databases; each list is for one kind of database.
    tables: &'static [&'static [&'static str]],
    /// The beginning of its files of plain text.
    start: Option<&'static str>,
    /// The beginnings of names of files, for files whose content does not tell.
    files: &'static [&'static str],
    /// What its files are and what helps, if they are no chats.
    note: Option<&'static str>,
}

const PROGRAM: ForeignProgram =
    ForeignProgram { name: "", has: |_| false, tables: &[], start: None, files: &[], note: None };

/// The first entry that a file fits counts. Some programs write nearly the records of Claude Code or of Codex.
const PROGRAMS: [ForeignProgram; 32] = [
    ForeignProgram {
        name: "Claude Code",
        has: |it| {
            has(it, &["display", "timestamp"]) && (it.has("project") || it.has("pastedContents"))
        },
        note: Some(
            "Claude Code's list of typed prompts, which is not read yet; prompts of sessions whose \
             transcripts were deleted are only there",
        ),
        ..PROGRAM
    },
    ForeignProgram {
        name: "Codex",
        has: |it| has(it, &["session_id", "ts", "text"]),
        note: Some(
            "Codex's list of typed prompts, which is not read yet; prompts of sessions whose transcripts \
             were deleted are only there",
        ),
        ..PROGRAM
    },
    ForeignProgram {
        name: "Codex",
        has: |it| has(it, &["id", "thread_name", "updated_at"]),
        tables: &[&["threads", "rollout_path"]],
        note: Some(
            "Codex's list of its conversations, which has no chats; import the folder `sessions` beside it",
        ),
        ..PROGRAM
    },
    ForeignProgram {
        name: "Codex",
        has: |it| is_one_of(it, "type", &["thread.started"]) && it.has("thread_id"),
        note: Some(
            "the output of `codex exec --json`, which is not read; Codex's folder `sessions` has the \
             transcript",
        ),
        ..PROGRAM
    },
    ForeignProgram {
        name: "Qwen Code",
        has: |it| {
            let notes = ["at_command", "chat_compression", "slash_command", "ui_telemetry"];
            is_one_of(it, "type", &["user", "assistant", "tool_result", "system"])
                && it.get("sessionId").is_some()
                && (has_inner(it, "message", "parts")
                    || it.get("systemPayload").is_some()
                    || is_one_of(it, "subtype", &notes))
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "iFlow",
        has: |it| {
            it.get("parentUuid").is_some()
                && it.text("sessionId").is_some_and(|id| id.starts_with("session-"))
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "Qoder",
        has: |it| {
            is_one_of(it, "type", &["runtime-config"])
                || has_inner(it, "usage", "credits")
                || it.object("message").is_ok_and(|message| has_inner(&message, "usage", "credits"))
                || has(it, &["sessionId", "credits", "billable"])
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "Gemini CLI",
        has: |it| {
            has(it, &["sessionId", "startTime", "lastUpdated"])
                || has(it, &["sessionId", "projectHash"])
                || has(it, &["sessionId", "messageId", "message"])
                || is_one_of(it, "role", &["user", "model"])
                    && it.get("parts").is_some_and(Raw::is_array)
                    && !it.has("type")
                || is_one_of(it, "type", &["gemini"]) && has(it, &["id", "content"])
                || it.get("$rewindTo").is_some()
                || has_inner(it, "$set", "messages")
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "GitHub Copilot",
        has: |it| {
            let kind = it.text("type").unwrap_or_default();
            let of_cli = ["session.", "user.", "assistant.", "tool.", "system.", "subagent."];
            let is_patch = it.text("kind").is_some_and(|kind| ["1", "2", "3"].contains(&&*kind));
            of_cli.iter().any(|start| kind.starts_with(start)) && has(it, &["data", "id"])
                || has(it, &["kind", "v"]) && has_inner(it, "v", "requests")
                || is_patch && it.get("k").is_some_and(Raw::is_array)
                || has(it, &["requests"]) && it.has("responderUsername")
                || it.get("requests").is_some_and(Raw::is_array)
                    && has(it, &["sessionId", "creationDate"])
                || it.get("resourceSpans").is_some_and(|spans| contains(spans, "copilot"))
        },
        files: &["session-store.db", "copilot-agent-sessions"],
        ..PROGRAM
    },
    ForeignProgram {
        name: "OpenCode",
        has: |it| {
            let of_export = it.object("info").ok();
            [Some(it), of_export.as_ref()].into_iter().flatten().any(|it| {
                let id = it.text("id").unwrap_or_default();
                let is_id = ["ses_", "msg_", "prt_"].iter().any(|start| id.starts_with(start));
                let names = ["sessionID", "messageID", "directory", "projectID"];
                is_id
                    && (names.iter().any(|name| it.has(name))
                        || has_inner(it, "metadata", "sessionID"))
            })
        },
        tables: &[
            &["session", "message", "part", "session_id", "data"],
            &["session_message", "seq"],
        ],
        files: &["opencode"],
        ..PROGRAM
    },
    ForeignProgram {
        name: "Antigravity",
        has: |it| {
            has(it, &["created_at"])
                && is_one_of(it, "source", &["USER_EXPLICIT", "MODEL", "SYSTEM"])
        },
        tables: &[&["steps", "step_payload"]],
        ..PROGRAM
    },
    ForeignProgram {
        name: "Grok Build",
        has: |it| {
            let kind = it.text("type").unwrap_or_default();
            let is_own = !it.has("message") && !it.has("uuid") && !it.has("payload");
            it.object("params").is_ok_and(|it| has_inner(&it, "update", "sessionUpdate"))
                || is_own
                    && kind == "user"
                    && (it.has("prompt_index") || it.has("synthetic_reason"))
                || is_own && kind == "assistant" && it.has("content") && it.has("model_id")
                || is_own && kind == "tool_result" && it.has("tool_call_id")
                || has_inner(it, "info", "cwd")
                    && (it.has("session_summary") || it.has("generated_title"))
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "Kimi Code",
        has: |it| {
            has(it, &["protocol_version"]) && is_one_of(it, "type", &["metadata"])
                || it.text("type").is_some_and(|it| it.starts_with("context.append_"))
                || has(it, &["workDir", "agents"])
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "Goose",
        has: |it| has(it, &["working_dir", "message_count"]),
        tables: &[&["sessions", "messages", "content_json"]],
        ..PROGRAM
    },
    ForeignProgram {
        name: "DeepSeek's agent",
        has: |it| is_one_of(it, "type", &["session"]) && has(it, &["createdAt", "cwd", "id"]),
        files: &["session.jsonl.zstd"],
        ..PROGRAM
    },
    ForeignProgram {
        name: "Pi",
        has: |it| {
            is_one_of(it, "type", &["session"]) && has(it, &["version", "id", "timestamp", "cwd"])
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "Droid",
        has: |it| is_one_of(it, "type", &["session_start"]) && it.has("id"),
        ..PROGRAM
    },
    ForeignProgram {
        name: "DeepSeek",
        has: |it| {
            let is_tree = it.has("mapping");
            is_tree && it.has("inserted_at")
                || it.get("mapping").is_some_and(|tree| contains(tree, "\"fragments\""))
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "Grok",
        has: |it| it.has("conversation") && it.has("responses"),
        files: &["prod-grok-backend.json"],
        ..PROGRAM
    },
    ForeignProgram {
        name: "Open WebUI",
        has: |it| {
            has_inner(it, "chat", "history")
                || has_inner(it, "chat", "messages")
                || has_inner(it, "history", "messages") && has_inner(it, "history", "currentId")
        },
        tables: &[&["chat", "auth", "share_id"], &["chat", "chat_message"]],
        files: &["webui.db"],
        ..PROGRAM
    },
    ForeignProgram {
        name: "LibreChat",
        has: |it| it.has("conversationId") && (it.has("messages") || it.has("endpoint")),
        ..PROGRAM
    },
    ForeignProgram {
        name: "Le Chat",
        has: |it| has(it, &["chatId", "role", "content"]),
        ..PROGRAM
    },
    ForeignProgram {
        name: "the Gemini app",
        has: |it| {
            has(it, &["products", "time", "header"]) && contains_field(it, "products", "Gemini")
        },
        ..PROGRAM
    },
    ForeignProgram {
        name: "Cline, Roo Code or Kilo Code",
        has: |it| {
            has(it, &["sessionId", "agent", "messages"])
                || has(it, &["session_id", "messages_path"])
                || has(it, &["ts", "task", "tokensIn"])
                || it.has("ts") && is_one_of(it, "type", &["ask", "say"])
                || is_one_of(it, "role", &["user"])
                    && !it.has("type")
                    && ["<task>", "<environment_details>"]
                        .iter()
                        .any(|tag| contains_field(it, "content", tag))
        },
        tables: &[&["sessions", "messages_path"]],
        files: &["api_conversation_history.json", "ui_messages.json"],
        ..PROGRAM
    },
    ForeignProgram {
        name: "Cursor",
        has: |it| {
            is_one_of(it, "role", &["user", "assistant"])
                && has_inner(it, "message", "content")
                && !["type", "uuid", "sessionId", "id"].iter().any(|name| it.get(name).is_some())
                || is_one_of(it, "type", &["turn_ended"]) && it.has("status")
        },
        tables: &[&["cursorDiskKV"], &["blobs", "meta", "data", "key"]],
        ..PROGRAM
    },
    ForeignProgram {
        name: "Visual Studio Code or a program like it",
        tables: &[&["ItemTable"]],
        files: &["state.vscdb"],
        ..PROGRAM
    },
    ForeignProgram { name: "Perplexity", files: &["perplexity"], ..PROGRAM },
    ForeignProgram {
        name: "Zed",
        has: |it| is_one_of(it, "zed", &["context"]),
        tables: &[&["threads", "data_type"]],
        ..PROGRAM
    },
    ForeignProgram { name: "llm", tables: &[&["responses", "prompt_json"]], ..PROGRAM },
    ForeignProgram {
        name: "Crush",
        tables: &[&["sessions", "messages", "parts", "prompt_tokens"]],
        ..PROGRAM
    },
    ForeignProgram {
        name: "Aider",
        start: Some("# aider chat started at "),
        files: &[".aider.chat.history"],
        ..PROGRAM
    },
    ForeignProgram {
        name: "LM Studio",
        has: |it| it.has("systemPrompt") && it.has("perChatPredictionConfig"),
        ..PROGRAM
    },
];

/// Returns what a transcript is, if this record of it is of a program that is not read.
pub(super) fn describe_record(fields: &ObjectFields<'_>) -> Option<String> {
    let program = PROGRAMS.iter().find(|program| (program.has)(fields))?;
    let what = format!("a transcript of {}, which is not read yet", program.name);
    Some(program.note.map_or(what, str::to_owned))
}

/// Returns what a file is, if this object in it is of a program or service that is not read.
pub(super) fn describe_object(fields: &ObjectFields<'_>) -> Option<String> {
    PROGRAMS.iter().find(|program| (program.has)(fields)).map(described)
}

/// Returns what a database or a plain text is, by its first bytes, if it is of a program that is not read.
pub(super) fn describe_start(start: &[u8]) -> Option<String> {
    if start.starts_with(b"SQLite format 3") {
        let words = words_of_tables(start);
        let mut programs = PROGRAMS.iter();
        let program = programs.find(|program| {
            let mut tables = program.tables.iter();
            tables.any(|names| names.iter().all(|name| words.contains(name.as_bytes())))
        });
        return program.map(described);
    }
    let text = start.trim_ascii_start();
    let mut programs = PROGRAMS.iter();
    let program = programs
        .find(|program| program.start.is_some_and(|start| text.starts_with(start.as_bytes())));
    program.map(described)
}

/// Returns what a file is by its name, for files whose content does not tell.
pub(super) fn describe_name(name: &str) -> Option<String> {
    let name = Path::new(name).file_name()?.to_string_lossy().to_lowercase();
    let program =
        PROGRAMS.iter().find(|program| program.files.iter().any(|start| name.starts_with(start)));
    program.map(described)
}

/// Returns whether a database that begins with these bytes has tables or columns with all these names.
pub(super) fn has_tables(start: &[u8], names: &[&str]) -> bool {
    let words = words_of_tables(start);
    names.iter().all(|name| words.contains(name.as_bytes()))
}

fn described(program: &ForeignProgram) -> String {
    let what = format!("chats of {}, whose files are not read yet", program.name);
    program.note.map_or(what, str::to_owned)
}

/// Returns the words in the statements that made the tables of a database, which are near its beginning.
fn words_of_tables(start: &[u8]) -> HashSet<&[u8]> {
    /// The maximum length of a statement that is looked at.
    const STATEMENT: usize = 1 << 10;
    let statements = memmem::find_iter(start, "CREATE TABLE")
        .map(|at| &start[at..start.len().min(at + STATEMENT)]);
    statements
        .flat_map(|it| it.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_'))
        .collect()
}

fn has(fields: &ObjectFields<'_>, names: &[&str]) -> bool {
    names.iter().all(|name| fields.has(name))
}

fn is_one_of(fields: &ObjectFields<'_>, name: &str, values: &[&str]) -> bool {
    fields.text(name).is_some_and(|value| values.contains(&&*value))
}

/// Returns whether the object in a field has a field with this name.
fn has_inner(fields: &ObjectFields<'_>, name: &str, inner: &str) -> bool {
    fields.get(name).is_some_and(Raw::is_object)
        && fields.object(name).is_ok_and(|object| object.has(inner))
}

fn contains(value: Raw<'_>, text: &str) -> bool {
    memmem::find(value.bytes(), text.as_bytes()).is_some()
}

fn contains_field(fields: &ObjectFields<'_>, name: &str, text: &str) -> bool {
    fields.get(name).is_some_and(|value| contains(value, text))
}
