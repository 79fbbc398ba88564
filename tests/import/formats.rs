//! Shapes of real exports and transcripts: nothing that a person said is dropped without a line.

use std::{fs, path::Path};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_chats::import::{Branches, Export};
use verbatim_engine::import::{self, Report};

use crate::exports::{chat, zip_of};
use crate::transcripts::{Home, line};

/// Imports a folder of files; returns the role and the text of every message, and the report.
#[track_caller]
pub(crate) fn imported(files: &[(&str, &[u8])]) -> (Vec<String>, Report) {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join("in").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let target = folder.path().join("out.db");
    let report =
        import::import(&[folder.path().join("in")], &target, Branches::Shown, &|_| {}).unwrap();
    (messages(&target), report)
}

/// Imports one file that cannot be imported; returns the error.
#[track_caller]
pub(crate) fn refused(name: &str, content: &[u8]) -> String {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let target = folder.path().join("out.db");
    import::import(&[path], &target, Branches::Shown, &|_| {}).unwrap_err().to_string()
}

pub(crate) fn messages(database: &Path) -> Vec<String> {
    let connection = Connection::open(database).unwrap();
    let sql = "SELECT role || ': ' || content FROM messages
               ORDER BY conversation_id, position, rowid";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// The line of a report that says how often something was left out, or the names of all such lines.
pub(crate) fn left_out(report: &Report) -> String {
    let lines = report.tally.left_out.iter();
    lines.map(|(what, count)| format!("{what} ({count})")).collect::<Vec<_>>().join("\n")
}

/// A ChatGPT export of one message after another; each is a `message` object.
pub(crate) fn chatgpt(messages: &[Value]) -> Vec<u8> {
    let mut mapping = serde_json::Map::new();
    for (at, message) in messages.iter().enumerate() {
        let parent = at.checked_sub(1).map(|before| format!("n{before}"));
        let node = json!({"id": format!("n{at}"), "parent": parent, "message": message});
        mapping.insert(format!("n{at}"), node);
    }
    let last = format!("n{}", messages.len() - 1);
    json!([{"id": "c", "title": "t", "create_time": 1.0, "current_node": last, "mapping": mapping}])
        .to_string()
        .into_bytes()
}

/// Returns the lines of a Claude Code session. Adds the fields that all records have to the given values.
pub(crate) fn session(records: &[Value]) -> String {
    let mut lines = String::new();
    for (at, record) in records.iter().enumerate() {
        let mut record = record.clone();
        record["sessionId"] = json!("session");
        record["timestamp"] = json!(format!("2026-10-01T10:00:{at:02}Z"));
        if record["type"] != "queue-operation" {
            record["uuid"] = json!(format!("u{at}"));
        }
        lines += &format!("{record}\n");
    }
    lines
}

/// A prompt in a session of Claude Code.
pub(crate) fn user(text: &str) -> Value {
    json!({"type": "user", "message": {"content": text}})
}

fn queue(operation: &str, text: &str) -> Value {
    json!({"type": "queue-operation", "operation": operation, "content": text})
}

pub(crate) fn attachment(attachment: Value) -> Value {
    json!({"type": "attachment", "attachment": attachment})
}

/// A message of ChatGPT.
fn said(role: &str, text: &str, metadata: Value) -> Value {
    json!({"author": {"role": role}, "metadata": metadata,
        "content": {"content_type": "text", "parts": [text]}})
}

/// Imports a ChatGPT export of some messages; returns the role and the text of each.
#[track_caller]
fn of_chatgpt(messages: &[Value]) -> Vec<String> {
    imported(&[("conversations.json", &chatgpt(messages))]).0
}

/// Imports a Claude.ai export; returns the role and the text of each message, and the report.
#[track_caller]
pub(crate) fn of_claude(export: &Value) -> (Vec<String>, Report) {
    imported(&[("conversations.json", export.to_string().as_bytes())])
}

/// Lines of a Codex session, from pairs of a kind and a payload.
pub(crate) fn rollout(records: &[(&str, Value)]) -> String {
    let meta = ("session_meta", json!({"id": "s", "cwd": "/x"}));
    let records = std::iter::once(&meta).chain(records).enumerate();
    records
        .map(|(at, (kind, payload))| {
            let time = format!("2026-10-02T08:00:{at:02}Z");
            json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n"
        })
        .collect()
}

fn user_event(text: &str) -> (&'static str, Value) {
    ("event_msg", json!({"type": "user_message", "message": text}))
}

fn user_item(text: &str) -> (&'static str, Value) {
    let content = [json!({"type": "input_text", "text": text})];
    ("response_item", json!({"type": "message", "role": "user", "content": content}))
}

/// The messages of a transcript, imported and synchronised: both give the same.
#[track_caller]
pub(crate) fn transcript(content: &str) -> Vec<String> {
    let home = Home::new();
    home.write("a.jsonl", content);
    home.sync();
    let stored = messages(&home.engine.config().archive_database());
    assert_eq!(imported(&[("a.jsonl", content.as_bytes())]).0, stored);
    stored
}

#[test]
fn a_transcript_may_begin_with_a_long_record() {
    let picture = json!([
        {"type": "text", "text": "what is in this picture?"},
        {"type": "image", "source": {"type": "base64", "data": "A".repeat(600 << 10)}},
    ]);
    let message = json!({"role": "user", "content": picture});
    // The picture comes first or last in its record.
    let first = session(&[json!({"type": "user", "message": message})]);
    let big = json!({"id": "s", "cwd": "/x", "base_instructions": {"text": "x".repeat(400 << 10)}});
    let time = "2026-10-02T08:00:00Z";
    let meta = json!({"payload": big, "timestamp": time, "type": "session_meta"}).to_string();
    let rollout = rollout(&[user_item("said in Codex")]);
    let rollout = format!("{meta}\n{}", rollout.split_once('\n').unwrap().1);
    let unknown = "{\"display\":\"hello\"}\n";
    let small = line(1, "user", "a short one").replace("\"session\"", "\"other\"");
    let (texts, report) = imported(&[
        ("long.jsonl", first.as_bytes()),
        ("rollout.jsonl", rollout.as_bytes()),
        ("short.jsonl", small.as_bytes()),
        ("history.jsonl", unknown.as_bytes()),
        ("more/prompts.jsonl", unknown.as_bytes()),
    ]);
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts.sort_unstable();
    let long = "user: what is in this picture?\n[image]";
    assert_eq!(texts, ["user: a short one", "user: said in Codex", long]);
    // Each file that is no transcript is named.
    let said = left_out(&report);
    assert!(said.contains("history.jsonl: ") && said.contains("more/prompts.jsonl: "), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn reports_of_deep_research_are_text() {
    let report = "# Report\n\nCafé \"a quoted phrase\" at the end\nand the next line";
    let state = json!({"status": "completed", "plan": {"title": "The plan"}, "report_message":
        {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": [report]}}});
    let hidden = "The latest state of the widget is hidden";
    let shown = format!("The latest state of the widget is: {state}");
    let in_metadata = json!({"chatgpt_sdk": {"widget_state": state.to_string()}});
    for message in [said("tool", hidden, in_metadata), said("tool", &shown, json!({}))] {
        let texts = of_chatgpt(&[message]);
        assert!(texts[0].contains(report), "{texts:?}");
        assert!(!texts[0].contains("\\n"), "{texts:?}");
    }
}

#[test]
fn queued_prompts_are_read_once() {
    let attachment =
        |prompt: Value| attachment(json!({"type": "queued_command", "prompt": prompt}));
    let picture = json!([{"type": "text", "text": "[Image #2] why"},
        {"type": "image", "source": {"type": "base64", "data": "AAAA"}}]);
    let mut queued = user("prompt");
    queued["promptSource"] = json!("queued");
    let (begun, put, taken) =
        (user("first"), queue("enqueue", "prompt"), queue("remove", "prompt"));
    let said = ["user: first", "user: prompt"];
    assert_eq!(transcript(&session(&[begun.clone(), put.clone(), taken.clone(), queued])), said);
    let plain = [attachment(json!("prompt")), user("prompt")];
    let records = [begun.clone(), put.clone(), taken.clone(), plain[0].clone(), plain[1].clone()];
    assert_eq!(transcript(&session(&records)), said);
    // The user says the same again, without a queue.
    let again = [begun.clone(), put, taken, plain[0].clone(), user("other"), user("prompt")];
    let twice = ["user: first", "user: prompt", "user: other", "user: prompt"];
    assert_eq!(transcript(&session(&again)), twice);
    // A prompt that leaves the queue by itself is no repeat of one that the model took before.
    let (put, taken) = (queue("enqueue", "prompt"), queue("remove", "prompt"));
    let mut left = user("prompt");
    left["promptSource"] = json!("queued");
    let records = [begun.clone(), put.clone(), taken, put, queue("dequeue", "prompt"), left];
    let twice = ["user: first", "user: prompt", "user: prompt"];
    assert_eq!(transcript(&session(&records)), twice);
    let asked = "[Image #2] why";
    let (put, taken) = (queue("enqueue", asked), queue("remove", asked));
    for (two, text) in [
        ([attachment(picture.clone()), taken.clone()], "user: [Image #2] why\n[image]"),
        ([taken, attachment(picture)], "user: [Image #2] why"),
    ] {
        let [one, other] = two;
        let texts = transcript(&session(&[begun.clone(), put.clone(), one, other]));
        assert_eq!(texts, ["user: first", text]);
    }
}

#[test]
fn queued_texts_of_others_are_not_the_users() {
    let queued = |prompt: &str, kind: &str| {
        let origin = json!({"kind": kind});
        attachment(json!({"type": "queued_command", "prompt": prompt, "origin": origin}))
    };
    let mut peer = user("over there");
    peer["origin"] = json!({"kind": "peer"});
    let texts = transcript(&session(&[
        user("first"),
        queued("ready", "peer"),
        queued("goal", "auto-continuation"),
        queued("mine", "human"),
        peer,
        queue("enqueue", "never read"),
    ]));
    let expected = [
        "user: first",
        "system: ready",
        "system: goal",
        "user: mine",
        "system: over there",
        "user: never read",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn what_waits_at_the_end_is_read_once() {
    let begun = [user("first"), queue("enqueue", "waits"), queue("enqueue", "waits too")];
    let said = ["user: first", "user: waits", "user: waits too"];
    assert_eq!(transcript(&session(&begun)), said);
    let taken = [begun.as_slice(), &[queue("dequeue", ""), user("waits")]].concat();
    let home = Home::new();
    let database = home.engine.config().archive_database();
    for records in [&begun[..], &taken, &taken] {
        home.write("a.jsonl", session(records));
        home.sync();
        assert_eq!(messages(&database), said);
    }
    assert_eq!(transcript(&session(&taken)), said);
    let withdrawn = [begun.as_slice(), &[queue("popAll", "")]].concat();
    assert_eq!(transcript(&session(&withdrawn)), said[..1]);
    // A later prompt pushes the oldest one out of the queue.
    let many: Vec<Value> = (0..40).map(|at| queue("enqueue", &format!("prompt {at}"))).collect();
    let texts = transcript(&session(&[&begun[..1], &many].concat()));
    let expected = (0..40).map(|at| format!("user: prompt {at}"));
    assert_eq!(
        texts,
        std::iter::once("user: first".to_owned()).chain(expected).collect::<Vec<_>>()
    );
}

#[test]
fn reasoning_without_an_answer_is_read_once() {
    let reasoning = ("event_msg", json!({"type": "agent_reasoning", "text": "Weighing"}));
    let answer = ("event_msg", json!({"type": "agent_message", "message": "Done"}));
    let begun = [user_event("go"), reasoning];
    assert_eq!(transcript(&rollout(&begun)), ["user: go", "assistant: [thinking]\nWeighing"]);
    let answered = [begun.as_slice(), &[answer]].concat();
    let home = Home::new();
    home.write("a.jsonl", rollout(&begun));
    home.sync();
    home.write("a.jsonl", rollout(&answered));
    home.sync();
    let texts = messages(&home.engine.config().archive_database());
    assert_eq!(texts, ["user: go", "assistant: [thinking]\nWeighing\n\nDone"]);
}

#[test]
fn attachments_of_unknown_types_are_counted() {
    let attached = |kind: &str| attachment(json!({"type": kind, "content": "words"}));
    let records = [user("first"), attached("hook_success"), attached("hologram")];
    let (texts, report) = imported(&[("a.jsonl", session(&records).as_bytes())]);
    assert_eq!(texts, ["user: first", "system: words"]);
    let kinds: Vec<_> = report.tally.unknown.iter().collect();
    assert_eq!(kinds, [(&"attachment/hologram".to_owned(), &1)]);
}

#[test]
fn results_of_tools_are_read_wherever_they_are() {
    let result =
        |content: Value| json!({"type": "tool_result", "tool_use_id": "t", "content": content});
    let user = |content: Value, more: Value| {
        let mut record = json!({"type": "user", "message": {"content": [content]}});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    let own = |own: Value| json!({"toolUseResult": own});
    let text = |text: &str| json!({"type": "text", "text": text});
    let document = json!({"type": "document", "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}});
    let texts = transcript(&session(&[
        user(text("go"), json!({})),
        user(result(json!("seven ladders")), json!({"isMeta": true})),
        user(document, json!({"isMeta": true})),
        user(text("a caveat"), json!({"isMeta": true})),
        user(result(json!({"stdout": "eight", "rungs": {"count": 9}})), json!({})),
        user(
            result(json!("")),
            own(json!({"stdout": "ten", "stderr": "eleven", "isImage": false})),
        ),
        user(result(Value::Null), own(json!("Error: twelve"))),
        user(result(json!([])), own(json!({"content": [text("thirteen")], "usage": {"n": 1}}))),
        user(result(json!("")), own(json!({"answers": {"Which?": "fourteen"}}))),
        user(
            result(json!("cut: fifteen")),
            own(json!({"stdout": "fifteen\nmore", "stderr": "sixteen"})),
        ),
    ]));
    let expected = [
        "user: go",
        "tool: seven ladders",
        "tool: [file: a.pdf]",
        "tool: count: 9\nstdout: eight",
        "tool: ten\neleven",
        "tool: Error: twelve",
        "tool: thirteen",
        "tool: Which?: fourteen",
        "tool: cut: fifteen\nsixteen",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn what_a_prompt_mentions_is_read() {
    let file = |kind: &str, more: Value| json!({"type": "file", "filename": format!("/x/{kind}"), "displayPath": kind, "content": more});
    let records = [
        json!({"type": "user", "message": {"content": "see @a.md"}}),
        attachment(file(
            "a.md",
            json!({"type": "text", "file": {"filePath": "/x/a.md", "content": "late frost"}}),
        )),
        attachment(file(
            "b.ipynb",
            json!({"type": "notebook", "file": {"cells": [
            {"cellType": "code", "source": "1 + 1", "outputs": [{"output_type": "stream", "text": "2"}]}]}}),
        )),
        attachment(file(
            "c.png",
            json!({"type": "image", "file": {"base64": "AAAA", "type": "image/png"}}),
        )),
        attachment(json!({"type": "directory", "path": "/x/d", "content": "pear.md"})),
        attachment(
            json!({"type": "mcp_resource", "server": "s", "uri": "note://1", "name": "Note",
            "content": {"contents": [{"uri": "note://1", "text": "of a server"}]}}),
        ),
        attachment(json!({"type": "edited_text_file", "filename": "/x/e.rs", "snippet": "3 new"})),
        attachment(
            json!({"type": "selected_lines_in_ide", "filename": "/x/f.rs", "content": "chosen"}),
        ),
        attachment(json!({"type": "diagnostics", "files": [{"uri": "file:///x/g.rs",
            "diagnostics": [{"severity": "Error", "source": "rustc", "message": "no such name"}]}]})),
        attachment(json!({"type": "todo", "content": [{"content": "prune", "status": "pending"}]})),
        attachment(json!({"type": "hook_blocking_error", "hookName": "PreToolUse:Bash",
            "blockingError": {"blockingError": "not on Sundays", "command": "check"}})),
        attachment(
            json!({"type": "hook_system_message", "hookName": "Stop", "content": "well done"}),
        ),
        attachment(json!({"type": "skill_listing", "content": "skills"})),
        attachment(json!({"type": "hook_success", "content": "context"})),
    ];
    let content = session(&records);
    let expected = [
        "user: see @a.md",
        "tool: [file: a.md]\nlate frost",
        "tool: [file: b.ipynb]\n1 + 1\n2",
        "tool: [file: c.png]\n[image]",
        "tool: [folder: /x/d]\npear.md",
        "tool: [resource: Note]\nof a server",
        "tool: [file: /x/e.rs]\n3 new",
        "tool: [file: /x/f.rs]\nchosen",
        "tool: file:///x/g.rs\nError: rustc: no such name",
        "tool: pending: prune",
        "system: [hook: PreToolUse:Bash]\nnot on Sundays",
        "system: [hook: Stop]\nwell done",
    ];
    assert_eq!(transcript(&content), expected);
    let (_, report) = imported(&[("a.jsonl", content.as_bytes())]);
    assert_eq!(left_out(&report), "notes of Claude Code to the model (2)");
}

#[test]
fn errors_and_interruptions_are_read() {
    let retry = |attempt: u32, message: &str| {
        json!({"type": "system", "subtype": "api_error", "level": "error", "retryAttempt": attempt,
            "error": {"status": 529, "headers": {"x": "y"}, "error": {"type": "error",
                "error": {"type": "overloaded_error", "message": message}}}})
    };
    let failed = json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "m",
        "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 529 overloaded_error"}]}});
    let filler = json!({"type": "assistant", "message": {"id": "n", "model": "<synthetic>",
        "content": [{"type": "text", "text": "No response requested."}]}});
    let user = |text: &str| json!({"type": "user", "message": {"content": [{"type": "text", "text": text}]}});
    let texts = transcript(&session(&[
        user("go"),
        json!({"type": "system", "subtype": "api_error", "error": {}, "retryAttempt": 1}),
        retry(1, "Busy"),
        retry(2, "Busy"),
        retry(3, "Still busy"),
        failed,
        retry(1, "Still busy"),
        filler,
        user("[Request interrupted by user]"),
    ]));
    let expected = [
        "user: go",
        "system: [error]\nBusy\noverloaded_error\nerror\n529",
        "system: [error]\nStill busy\noverloaded_error\nerror\n529",
        "system: API Error: 529 overloaded_error",
        "system: [error]\nStill busy\noverloaded_error\nerror\n529",
        "system: [Request interrupted by user]",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn zips_beside_conversations_are_read() {
    let inner = zip_of(&[("conversations.json", chat("b", 1.0, &["inside"]).as_bytes())]);
    let whole = zip_of(&[
        ("conversations.json", chat("a", 1.0, &["outside"]).as_bytes()),
        ("more/in.zip", &inner),
    ]);
    let manifest =
        zip_of(&[("manifest.json", b"{\"files\": []}"), ("conversations-000.zip", &inner)]);
    for (zip, expected) in
        [(whole, vec!["user: outside", "user: inside"]), (manifest, vec!["user: inside"])]
    {
        let folder = TempDir::new().unwrap();
        let (path, target) = (folder.path().join("all.zip"), folder.path().join("out.db"));
        fs::write(&path, zip).unwrap();
        import::import(&[path], &target, Branches::Shown, &|_| {}).unwrap();
        assert_eq!(messages(&target), expected);
    }
}

#[test]
fn the_parts_of_claudes_export_are_read_or_named() {
    let chats = json!([{"uuid": "c", "name": "n", "created_at": "2026-03-01T10:00:00Z",
        "chat_messages": [{"uuid": "m", "sender": "human", "text": "in the chat"}]}]);
    let block = json!({"type": "text", "text": "in a block"});
    let design = json!({"uuid": "d", "title": "Design", "project": {"name": "x"},
        "created_at": "2026-05-01T00:00:00Z", "messages": [
            {"uuid": "d1", "role": "user", "content": {"content": "in the design"}},
            {"uuid": "d2", "role": "assistant", "content": {"content": "", "contentBlocks": [block]}}]});
    let empty = json!({"uuid": "e", "name": "Empty", "prompt_template": "", "docs": []});
    let (texts, report) = imported(&[
        ("conversations.json", chats.to_string().as_bytes()),
        ("design_chats/d1.json", design.to_string().as_bytes()),
        ("frames/f1/index.html", b"<p>"),
        ("frames/f1/metadata.json", b"{\"title\": \"x\"}"),
        ("frames/f2/metadata.json", b"{\"title\": \"y\"}"),
        ("login_history.json", b"[]"),
        ("projects/e.json", empty.to_string().as_bytes()),
        ("users.json", b"[{\"uuid\": \"u\", \"full_name\": \"x\"}]"),
    ]);
    assert_eq!(texts, ["user: in the chat", "user: in the design", "assistant: in a block"]);
    let said = left_out(&report);
    assert!(said.contains("artifacts of Claude.ai as web pages (frames) (2)"), "{said}");
    assert!(said.contains("login history") && !said.contains("project"), "{said}");
    assert_eq!(report.tally.bare, 0, "an empty project is nothing");
    let manifest = json!({"data_files": [
        {"category": "conversations", "filename": "conversations-000.zip", "export_url": "https://e.org/x"},
        {"category": "projects", "filename": "projects-000.zip", "export_url": "https://e.org/y"}]});
    let error = refused("manifest-1-2026-09-10.json", manifest.to_string().as_bytes());
    assert!(error.contains("lists") && error.contains("conversations-000.zip"), "{error}");
}

#[test]
fn projects_and_memories_of_claude_are_conversations() {
    let project = json!({"uuid": "p", "name": "Orchard", "description": "The old trees",
        "prompt_template": "Answer in metres.", "created_at": "2026-07-01T00:00:00Z",
        "updated_at": "2026-07-02T00:00:00Z", "docs": [
            {"uuid": "f", "filename": "pears.md", "content": "Pears ripen late.",
                "created_at": "2026-07-03T00:00:00Z"},
            {"uuid": "g", "filename": "empty.md", "content": ""}]});
    let bees = json!({"conversations_memory": "Keeps bees.", "account_uuid": "u",
        "project_memories": {"p": "Plants pears.", "q": ""}});
    let old = [project.clone()];
    let (old, new) = (json!(old).to_string(), project.to_string());
    let (list, object) = (json!([bees]).to_string(), bees.to_string());
    let chats = b"[]";
    let said = |texts: &[String]| {
        let expected = [
            "assistant: Keeps bees.",
            "assistant: Plants pears.\n\nProject: https://claude.ai/project/p",
            "user: The old trees",
            "system: Answer in metres.",
            "user: pears.md\nPears ripen late.",
        ];
        assert_eq!(texts, expected);
    };
    let (texts, report) = imported(&[
        ("conversations.json", chats),
        ("memories.json", list.as_bytes()),
        ("projects.json", old.as_bytes()),
    ]);
    said(&texts);
    assert_eq!((report.tally.conversations, left_out(&report).as_str()), (2, ""));
    let (texts, _) =
        imported(&[("memories/a.json", object.as_bytes()), ("projects/p.json", new.as_bytes())]);
    said(&texts);

    // The next export replaces them. A document that is gone from it stays.
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("out.db");
    let import = |json: &str| {
        let source = folder.path().join("projects-000.zip");
        fs::write(&source, zip_of(&[("projects/p.json", json.as_bytes())])).unwrap();
        import::import(&[source], &target, Branches::Shown, &|_| {}).unwrap().changes
    };
    assert_eq!(import(&new).new_conversations, 1);
    let mut later = project;
    later["docs"] = json!([{"uuid": "h", "filename": "plums.md", "content": "Plums first."}]);
    let changes = import(&later.to_string());
    assert_eq!((changes.new_conversations, changes.updated_conversations), (0, 1));
    assert_eq!(messages(&target).len(), 4);
    // A long document is cut off where the beginning of the zip ends; the zip is found all the same.
    let long = format!(
        r#"{{"uuid": "p", "name": "x", "prompt_template": "", "docs": [{{"content": "{}"}}]}}"#,
        "pear ".repeat(500_000)
    );
    let zip = folder.path().join("projects-001.zip");
    fs::write(&zip, zip_of(&[("projects/p.json", long.as_bytes())])).unwrap();
    assert_eq!(Export::open(&zip).unwrap().format(8).map(|it| it.name()), Some("claude"));
}

#[test]
fn typed_words_of_codex_stay() {
    let typed = [
        "# AGENTS.md instructions are ignored, why?",
        "<INSTRUCTIONS>these</INSTRUCTIONS> do that",
        "<skill>what is this?</skill>",
        "Warning: apply_patch was requested via the shell, what now?",
        "Another language model started to solve this problem and produced a summary, but why?",
    ];
    let expected: Vec<String> = typed.iter().map(|text| format!("user: {text}")).collect();
    let events = typed.map(user_event);
    assert_eq!(transcript(&rollout(&events)), expected);
    // An item of the same words follows or comes before: still one message.
    let pairs: Vec<_> = typed.iter().flat_map(|text| [user_event(text), user_item(text)]).collect();
    assert_eq!(transcript(&rollout(&pairs)), expected);
    let pairs: Vec<_> = typed.iter().flat_map(|text| [user_item(text), user_event(text)]).collect();
    assert_eq!(transcript(&rollout(&pairs)), expected);
    // A text that the agent adds is an item without an event.
    let injected =
        user_item("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nA\n</INSTRUCTIONS>");
    assert_eq!(transcript(&rollout(&[injected, user_event("go")])), ["user: go"]);
}

#[test]
fn texts_that_codex_puts_before_a_prompt_are_no_words_of_the_user() {
    let added = "<recommended_plugins>\n- a\n</recommended_plugins>\n<environment_context>\n</environment_context>";
    let records = [user_item(added), user_item(&format!("{added}\nSow the peas"))];
    assert_eq!(transcript(&rollout(&records)), ["user: Sow the peas"]);
    // What the user typed is in an event.
    let tagged = "<recommended_soil>loam</recommended_soil> Is it good?";
    let records = [user_event(tagged), user_item(tagged)];
    assert_eq!(transcript(&rollout(&records)), [format!("user: {tagged}")]);
}

#[test]
fn reasoning_that_only_an_event_has_is_read_once() {
    let item = |content: Value| {
        let payload = json!({"type": "reasoning", "summary": [], "content": content,
            "encrypted_content": "x"});
        ("response_item", payload)
    };
    let raw =
        |text: &str| ("event_msg", json!({"type": "agent_reasoning_raw_content", "text": text}));
    let answer = ("event_msg", json!({"type": "agent_message", "message": "Box"}));
    let whole = json!([{"type": "reasoning_text", "text": "Evergreen"}]);
    let records = [
        user_event("A hedge?"),
        item(Value::Null),
        raw("It is dry here"),
        raw("Evergreen"),
        item(whole),
        answer,
    ];
    let read = transcript(&rollout(&records));
    assert_eq!(
        read,
        ["user: A hedge?", "assistant: [thinking]\nIt is dry here\n\nEvergreen\n\nBox"]
    );
}

#[test]
fn names_that_codex_keeps_are_titles() {
    let home = Home::new();
    let folder = "sessions/2026/08/20";
    fs::create_dir_all(home.folder.path().join("archive").join(folder)).unwrap();
    home.write(&format!("{folder}/rollout-s1.jsonl"), rollout(&[user_event("count")]));
    home.sync();
    let id: String = Connection::open(home.engine.config().archive_database())
        .unwrap()
        .query_row("SELECT id FROM conversations", [], |row| row.get(0))
        .unwrap();
    let name = |name: &str| format!("{}\n", json!({"id": id, "thread_name": name}));
    let database = home.engine.config().archive_database();
    let title = || -> String {
        let sql = "SELECT title FROM conversations";
        Connection::open(&database).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    home.sync();
    assert_eq!(title(), "count");
    home.write("session_index.jsonl", name("Ponds"));
    assert_eq!(home.sync().read, 0);
    assert_eq!(title(), "Ponds");
    home.write("session_index.jsonl", [name("Ponds"), name("Meres")].concat());
    home.sync();
    assert_eq!(title(), "Meres");
    home.write(
        &format!("{folder}/rollout-s1.jsonl"),
        rollout(&[user_event("count"), user_event("again")]),
    );
    let report = home.sync();
    assert_eq!((report.files, report.messages), (1, 1));
    assert_eq!(title(), "Meres");
}

#[test]
fn a_conversation_of_cowork_is_read_once() {
    let home = Home::new();
    let root = "local-agent-mode-sessions/account/org/local_1";
    let folder = format!("{root}/.claude/projects/-sessions-x");
    let archive = home.folder.path().join("archive");
    for folder in [&folder, &format!("{root}/outputs"), &"projects/-sessions-x".to_owned()] {
        fs::create_dir_all(archive.join(folder)).unwrap();
    }
    let said = line(1, "user", "sow");
    let id = "11111111-2222-4333-8444-555555555555";
    for file in [&format!("{folder}/{id}.jsonl"), &format!("projects/-sessions-x/{id}.jsonl")] {
        home.write(file, &said);
    }
    let logged = json!({"type": "user", "uuid": "other", "session_id": id,
        "message": {"role": "user", "content": "sow"}});
    home.write(&format!("{root}/audit.jsonl"), format!("{logged}\n"));
    home.write(&format!("{root}/outputs/log.jsonl"), line(2, "user", "a file of the user"));
    let session = json!({"sessionId": "local_1", "cliSessionId": id, "title": "Peas"});
    home.write(&format!("{root}.json"), session.to_string());
    let report = home.sync();
    assert_eq!((report.files, report.messages), (2, 1));
    let connection = Connection::open(home.engine.config().archive_database()).unwrap();
    let titles = "SELECT group_concat(title) FROM conversations";
    let titles: String = connection.query_row(titles, [], |row| row.get(0)).unwrap();
    assert_eq!(titles, "Peas");
}

#[test]
fn tags_in_a_pasted_log_stay() {
    let log = "a log:\nbefore <system-reminder>in the log</system-reminder> after\nits end";
    let stopped = "[Request interrupted by user for tool use]use the other file";
    let texts = transcript(&session(&[user(log), user(stopped)]));
    let note = "system: [Request interrupted by user for tool use]";
    let expected = [&format!("user: {log}"), note, "user: use the other file"];
    assert_eq!(texts, expected);
}

#[test]
fn findings_of_a_review_are_read_once() {
    let output = json!({"findings": [{"title": "A title", "body": "the body", "code_location":
        {"absolute_file_path": "/x/a.rs", "line_range": {"start": 1, "end": 2}}}],
        "overall_explanation": "in all"});
    let entered = json!({"type": "entered_review_mode",
        "target": {"type": "custom", "instructions": "look at the locks"}});
    let exited = json!({"type": "exited_review_mode", "review_output": output});
    let (entered, exited) = (("event_msg", entered), ("event_msg", exited));
    let review = "in all\n\nReview comment:\n\n- A title — /x/a.rs:1-2\n  the body";
    let answer = json!({"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": review}]});
    let expected = [
        "user: go".to_owned(),
        "user: /review look at the locks".to_owned(),
        format!("assistant: {review}"),
        "user: thanks".to_owned(),
    ];
    let (go, thanks) = (user_event("go"), user_event("thanks"));
    let records = [go.clone(), entered.clone(), exited.clone(), thanks.clone()];
    assert_eq!(transcript(&rollout(&records)), expected);
    let records = [go, entered, exited, ("response_item", answer), thanks];
    assert_eq!(transcript(&rollout(&records)), expected);
}

#[test]
fn agents_of_codex_talk_to_each_other() {
    let talk = json!({"author": "/root", "recipient": "/root/a", "content": "do this"});
    let texts = transcript(&rollout(&[user_event("go"), ("inter_agent_communication", talk)]));
    assert_eq!(texts, ["user: go", "assistant: do this"]);
}

#[test]
fn what_a_person_typed_stays_as_it_is() {
    let typed =
        "you wrote 【12†quarterly report】 and 【3:1†source】 \u{e200}cite\u{e202}x\u{e201}";
    let texts = of_chatgpt(&[said("user", typed, json!({}))]);
    assert_eq!(texts, [format!("user: {typed}")]);
}

#[test]
fn an_import_adds_what_an_earlier_one_left_out() {
    let marker = |widget: &str| format!("Euler:\n\n\u{e200}genui\u{e202}{widget}\u{e201}\n\nNice.");
    let formula = r#"{"math_block_widget_always_prefetch_v2":{"content":"e^{i\\pi} + 1 = 0"}}"#;
    let message = json!({"id": "m", "author": {"role": "assistant"},
        "content": {"content_type": "text", "parts": [marker(formula)]}});
    let folder = TempDir::new().unwrap();
    let (export, target) = (folder.path().join("conversations.json"), folder.path().join("out.db"));
    fs::write(&export, chatgpt(&[message])).unwrap();
    let import = || {
        import::import(std::slice::from_ref(&export), &target, Branches::Shown, &|_| {}).unwrap();
        messages(&target)
    };
    let expected = ["assistant: Euler:\n\n\\[e^{i\\pi} + 1 = 0\\]\n\nNice."];
    assert_eq!(import(), expected);
    let old = "UPDATE messages SET content = 'Euler:' || char(10, 10, 10, 10) || 'Nice.'";
    Connection::open(&target).unwrap().execute_batch(old).unwrap();
    assert_eq!(import(), expected);
}

#[test]
fn words_of_unknown_types_stay() {
    let message = |content: Value| json!({"author": {"role": "assistant"}, "content": content});
    let export = chatgpt(&[
        message(
            json!({"content_type": "hologram", "id": "h1", "payload": {"inner": {"words": "alpha"}},
            "lines": ["beta", "two words"], "text": "gamma"}),
        ),
        message(json!({"content_type": "multimodal_text", "parts":
            [{"content_type": "hyperlink", "label": "delta", "text": "epsilon"}]})),
        message(json!({"content_type": "app_pairing_content", "shared_prompt": "zeta"})),
        message(json!({"content_type": "model_editable_context", "model_set_context": "",
            "repo_summary": "eta"})),
    ]);
    let (texts, report) = imported(&[("conversations.json", &export)]);
    let texts = texts.join("\n");
    for word in ["alpha", "beta", "two words", "gamma", "delta", "epsilon", "zeta", "eta"] {
        assert!(texts.contains(word), "{word}: {texts}");
    }
    assert!(!texts.contains("h1"), "{texts}");
    assert_eq!(report.tally.unknown.get("hologram"), Some(&1));
}

#[test]
fn words_at_any_depth_stay() {
    for depth in [10, 47, 50, 1000] {
        for (open, close) in [("[", "]"), ("{\"text\": ", "}"), ("[{\"content\": ", "}]")] {
            let nested = open.repeat(depth) + "\"deep \\\"words\\\"\"" + &close.repeat(depth);
            let part =
                format!("[{{\"content_type\": \"new\", \"title\": \"Top\", \"x\": {nested}}}]");
            let chat = String::from_utf8(chatgpt(&[json!({"id": "m", "author": {"role": "user"},
                "content": {"content_type": "multimodal_text", "parts": "PARTS"}})]));
            let chat = chat.unwrap().replace("\"PARTS\"", &part);
            let (messages, _) = imported(&[("conversations.json", chat.as_bytes())]);
            let text = &messages[0];
            assert!(text.contains("deep \"words\""), "{depth} {open}: {messages:?}");
        }
    }
}

#[test]
fn sources_of_answers_are_searched() {
    let answer = json!({"author": {"role": "assistant"}, "content": {"content_type": "text", "parts":
        ["Said\u{e200}cite\u{e202}turn0search0\u{e201}. \u{e200}navlist\u{e202}In the news\u{e202}turn0news1\u{e201}"]},
        "metadata": {
            "content_references": [
                {"type": "hidden", "refs": ["hidden"]},
                {"type": "grouped_webpages", "items": [{"title": "One", "url": "https://one.example/?utm_source=chatgpt.com",
                    "supporting_websites": [{"title": "Two", "url": "https://two.example"}]}]},
                {"type": "file", "name": "cited.pdf"}],
            "citations": [{"metadata": {"type": "webpage", "title": "One", "url": "https://one.example/", "text": "long"}}],
            "search_result_groups": [{"entries": [{"url": "https://three.example", "title": "Three", "snippet": "s"}]}]}});
    let browser = json!({"author": {"role": "tool"}, "content": {"content_type": "text", "parts": [""]},
        "metadata": {"_cite_metadata": {"metadata_list": [{"title": "Four", "url": "https://four.example"}]}}});
    let texts = of_chatgpt(&[answer, browser]);
    let expected = [
        "assistant: Said. In the news\n\n[sources]\n- One https://one.example/\n\
             - Two https://two.example\n- cited.pdf\n- Three https://three.example",
        "tool: [sources]\n- Four https://four.example",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn pictures_charts_and_files_are_named() {
    let picture = |dalle: Value| {
        json!({"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer",
            "asset_pointer": "file-service://file-abcdefgh", "metadata": {"dalle": dalle}}]})
    };
    let tool = |content: Value, metadata: Value| json!({"author": {"role": "tool"}, "content": content, "metadata": metadata});
    let chart = json!({"messages": [{"message_type": "image", "image_url": "file-service://file-chart123"}]});
    let run = json!({"content_type": "execution_output", "text": ""});
    let files = json!({"attachments": [{"name": "roof.png"}, {"name": "a.pdf"}, {"id": "x"}]});
    let texts = of_chatgpt(&[
        tool(picture(json!({"prompt": "a cat"})), json!({})),
        tool(picture(Value::Null), json!({"image_gen_title": "A dog"})),
        tool(run, json!({"aggregate_result": chart})),
        said("user", "see roof.png", files),
    ]);
    let expected = [
        "tool: [image]\na cat",
        "tool: [image]\nA dog",
        "tool: [image]",
        "user: see roof.png\n\n[file: a.pdf]",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn what_the_page_shows_of_metadata_is_stored() {
    let failed = json!({"messages": [{"message_type": "stream", "text": "printed\n"}],
        "in_kernel_exception": {"name": "NameError", "traceback": ["\u{1b}[0;31mline 1\u{1b}[0m"]}});
    let run = json!({"author": {"role": "tool"}, "metadata": {"aggregate_result": failed},
        "content": {"content_type": "execution_output", "text": ""}});
    let texts = of_chatgpt(&[
        said("tool", "", json!({"async_task_title": "Steel", "async_task_prompt": "Plan it"})),
        said("tool", "", json!({"search_model_queries": {"queries": ["lug nut"]}})),
        said("tool", "", json!({"search_queries": [{"type": "search", "q": "roofs"}]})),
        said("assistant", "search(\"slate\")", json!({"search_queries": [{"q": "slate"}]})),
        said(
            "assistant",
            "Here.",
            json!({"canvas": {"title": "A poem"}, "reasoning_title": "Rhymes"}),
        ),
        run,
    ]);
    let expected = [
        "tool: Steel\nPlan it",
        "tool: query: lug nut",
        "tool: query: roofs",
        "assistant: search(\"slate\")",
        "assistant: Here.\nRhymes\nA poem",
        "tool: printed\nNameError\nline 1",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_last_line_that_is_cut_is_counted() {
    let whole = line(1, "user", "whole");
    let cut = line(2, "user", "cut off");
    let content = format!("{whole}{}", &cut[..cut.len() - 20]);
    let (texts, report) = imported(&[("a.jsonl", content.as_bytes())]);
    assert_eq!((texts, report.tally.malformed), (vec!["user: whole".to_owned()], 1));
    for end in ["", "\n", "\0\0"] {
        let content = format!("{}{end}", whole.trim_end());
        assert_eq!(imported(&[("a.jsonl", content.as_bytes())]).1.tally.malformed, 0, "{end:?}");
    }
}

#[test]
fn all_that_a_tool_of_codex_gave_is_read() {
    let output = |output: &str| {
        ("response_item", json!({"type": "function_call_output", "call_id": "c", "output": output}))
    };
    let texts = transcript(&rollout(&[
        user_event("go"),
        output(r#"{"stdout":"","stderr":"boom"}"#),
        output(r#"{"title":"T","content":"C"}"#),
        output(r#"{"output":"plain","metadata":{"exit_code":0}}"#),
        ("response_item", json!({"type": "mcp_tool_call_output", "output": "of a server"})),
    ]));
    let expected = [
        "user: go",
        "tool: stdout: \nstderr: boom",
        "tool: title: T\ncontent: C",
        "tool: plain",
        "tool: of a server",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn steps_of_claude_have_their_headings() {
    let thinking =
        json!({"type": "thinking", "thinking": "Hm.", "summaries": [{"summary": "Weighing"}]});
    let call = json!({"type": "tool_use", "name": "view", "message": "Reading the skill",
        "display_content": {"type": "text", "text": "Read it"}, "input": {"path": "a.md"}});
    let unsupported = "```\nThis block is not supported on your current device yet.\n```";
    let export = json!([{"uuid": "c", "chat_messages": [
        {"uuid": "m1", "sender": "assistant", "text": format!("{unsupported}\n"), "content": [thinking]},
        {"uuid": "m2", "sender": "assistant", "text": "Said beside", "content": [call]}]}]);
    let (texts, _) = of_claude(&export);
    let expected = [
        "assistant: [thinking]\nWeighing\nHm.",
        "assistant: [tool: view]\nReading the skill\nRead it\npath: a.md\n\n\
             [answer]\nSaid beside",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn custom_instructions_are_of_the_system() {
    let user = |content: Value, metadata: Value| json!({"author": {"role": "user"}, "content": content, "metadata": metadata});
    let context = json!({"about_user_message": "I bake", "about_model_message": "Be brief"});
    let old = json!({"author": {"role": "system"}, "content": {"content_type": "text", "parts": [""]},
        "metadata": {"is_user_system_message": true, "user_context_message_data": context}});
    let new = json!({"content_type": "user_editable_context", "user_profile": "I bake", "user_instructions": "Be brief"});
    let said = json!({"content_type": "text", "parts": ["Hello"]});
    let none = json!({"user_context_message_data": null});
    let texts = of_chatgpt(&[old, user(new, json!({})), user(said, none)]);
    assert_eq!(texts, ["system: I bake\nBe brief", "system: Be brief\nI bake", "user: Hello"]);
}

#[test]
fn nested_text_of_claude_stays() {
    let gallery = json!({"type": "image_gallery", "images": [{"title": "A roof", "page": {"caption": "from above"}}]});
    let link = json!({"type": "rich_link", "link": {"title": "A link", "subtitles": ["below"], "uuid": "u-1"}});
    let shown = json!({"type": "tool_result", "content": [], "display_content":
        {"type": "rich_content", "content": [{"title": "Shown", "url": "https://shown.example"}]}});
    let cited = json!({"type": "text", "text": "Said", "citations": [{"title": "Cited",
        "url": "https://cited.example", "details": {"type": "web", "url": "https://cited.example"}}]});
    let widget = json!({"type": "widget", "spec": {"rows": [{"label": "a row"}]}});
    let export = json!([{"uuid": "c", "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "Look", "files": [{"file_name": "roof.png"}]},
        {"uuid": "m2", "sender": "assistant", "content":
            [cited, {"type": "tool_result", "content": [gallery, link]}, shown, widget]}]}]);
    let (texts, report) = of_claude(&export);
    let expected = [
        "user: Look\n\n[file: roof.png]",
        "assistant: Said\n\n[result]\nfrom above\nA roof\nbelow\nA link\n\n\
             [result]\nShown\nhttps://shown.example\n\n[answer]\na row\n\n\
             [sources]\n- Cited https://cited.example",
    ];
    assert_eq!(texts, expected);
    assert_eq!(report.tally.unknown.len(), 3);
}

#[test]
fn queries_and_files_of_codex_are_searched() {
    let search =
        |action: Value| ("response_item", json!({"type": "web_search_call", "action": action}));
    let typed = |text: &str| {
        (
            "event_msg",
            json!({"type": "user_message", "message": text, "local_images": ["/tmp/roof.png"]}),
        )
    };
    let file = json!({"type": "input_file", "filename": "plan.pdf", "file_data": "data:application/pdf;base64,AA=="});
    let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and this"}, file]});
    let texts = transcript(&rollout(&[
        user_item("look"),
        typed("look"),
        typed("again"),
        user_item("again"),
        ("response_item", item),
        search(json!({"type": "search", "query": "roofs", "queries": ["roofs", "tiles"]})),
        search(json!({"type": "search", "queries": ["slate"]})),
    ]));
    let expected = [
        "user: look\n[file: /tmp/roof.png]",
        "user: again\n[file: /tmp/roof.png]",
        "user: and this\n[file: plan.pdf]",
        "assistant: [tool: web_search]\nquery: roofs\nquery: tiles",
        "assistant: [tool: web_search]\nquery: slate",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn broken_chains_lose_nothing() {
    let node = |at: usize, parent: Value| {
        json!({"id": format!("n{at}"), "parent": parent, "message": {"id": format!("n{at}"),
            "author": {"role": "user"}, "create_time": at as f64,
            "content": {"content_type": "text", "parts": [format!("said {at}")]}}})
    };
    let broken = json!([{"id": "c", "title": "t", "current_node": "n2", "mapping":
        {"n0": node(0, json!(null)), "n2": node(2, json!("n1"))}}]);
    let (texts, _) = of_claude(&broken);
    assert_eq!(texts, ["user: said 0", "user: said 2"]);
    let loose: serde_json::Map<_, _> =
        (0..50).map(|at| (format!("n{at}"), node(at, json!(null)))).collect();
    let loose = json!([{"id": "c", "title": "t", "mapping": loose}]);
    let (texts, _) = of_claude(&loose);
    assert_eq!(texts.len(), 50);
    let turn = |at: usize, parent: &str| {
        json!({"uuid": format!("m{at}"), "parent_message_uuid": parent, "sender": "human",
            "text": format!("said {at}")})
    };
    let claude = json!([{"uuid": "c", "name": "n", "current_leaf_message_uuid": "m4", "chat_messages":
        [turn(0, "root"), turn(1, "m0"), turn(3, "m2"), turn(4, "m3")]}]);
    let (texts, _) = of_claude(&claude);
    assert_eq!(texts, ["user: said 0", "user: said 1", "user: said 3", "user: said 4"]);
    // Another branch of a whole tree is left out, and a line says so.
    let branches = json!([{"id": "c", "title": "t", "current_node": "n2", "mapping":
        {"n0": node(0, json!(null)), "n1": node(1, json!("n0")), "n2": node(2, json!("n0"))}}]);
    let (texts, report) = of_claude(&branches);
    assert_eq!(texts, ["user: said 0", "user: said 2"]);
    assert!(left_out(&report).contains("other branches"), "{}", left_out(&report));
}

#[test]
fn a_folder_that_is_a_file_of_nobody_is_named() {
    // A folder without permissions is readable for root, so a deep one stands for what is not read.
    let deep = (0..14).map(|at| format!("f{at}/")).collect::<String>() + "a.jsonl";
    let (texts, report) = imported(&[
        (deep.as_str(), line(1, "user", "deep").as_bytes()),
        ("b.jsonl", line(2, "user", "here").as_bytes()),
    ]);
    assert_eq!(texts, ["user: here"]);
    assert!(report.tally.damaged.iter().any(|it| it.contains("f12")), "{:?}", report.tally.damaged);
}

#[test]
fn the_text_replied_to_is_part_of_the_message() {
    let reply = json!({"targeted_reply": "the passage", "targeted_reply_label": "x"});
    let selected = json!({"canvas": {"selection_metadata": {"selection_text": "the selection"}}});
    let texts = of_chatgpt(&[said("user", "why?", reply), said("user", "shorter", selected)]);
    assert_eq!(texts, ["user: > the passage\n\nwhy?", "user: > the selection\n\nshorter"]);
}

#[test]
fn agents_of_codex_get_the_session_that_started_them() {
    let home = Home::new();
    let spawn = json!({"subagent": {"thread_spawn": {"parent_thread_id": "root", "depth": 1}}});
    let meta = json!({"timestamp": "2025-01-01T00:00:00Z", "type": "session_meta",
        "payload": {"id": "agent", "cwd": "/shop", "source": spawn}});
    let asked = json!({"timestamp": "2025-01-01T00:00:01Z", "type": "response_item",
        "payload": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "Look"}]}});
    home.write("rollout-2025-01-01T00-00-00-agent.jsonl", format!("{meta}\n{asked}\n"));
    home.sync();
    let database = home.engine.config().archive_database();
    let sql = "SELECT session FROM verbatim_transcripts WHERE conversation_id = 'agent'";
    let session: String =
        Connection::open(&database).unwrap().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(session, "root");
}

/// Root may enter every folder, so this runs the program as another user.
#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_read_is_named() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};

    let folder = TempDir::new().unwrap();
    let set = |path: &str, mode| {
        fs::set_permissions(folder.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["in/locked", "out"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("in/a.json"), chat("a", 1.0, &["red"])).unwrap();
    for (path, mode) in [(".", 0o755), ("in", 0o755), ("in/locked", 0), ("out", 0o777)] {
        set(path, mode);
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().current_dir(folder.path()).args(["import", "in", "--home", "out/home"]);
    if fs::read_dir("/proc/1/fd").is_ok() {
        command.uid(65_534);
    }
    let output = command.output().unwrap();
    set("in/locked", 0o755);
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("locked: Permission denied"), "{said}");
    assert!(said.contains("Imported 1 conversation"), "{said}");
}

#[test]
fn blocks_of_every_kind_are_read() {
    let code = json!({"type": "bash_code_execution_tool_result", "tool_use_id": "t", "content":
        {"type": "bash_code_execution_result", "stdout": "printed", "stderr": "warned"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let document = json!({"type": "document", "title": "a.md",
        "source": {"type": "content", "content": [text("in the document")]}});
    let found = json!({"type": "search_result", "title": "T", "source": "https://e.org",
        "content": [text("in the result")]});
    let recap = json!({"type": "system", "subtype": "away_summary", "content": "meanwhile"});
    let mail = json!({"type": "attachment", "attachment": {"type": "teammate_mailbox",
        "messages": [{"from": "bob", "text": "from bob"}]}});
    let tool = json!({"type": "tool_result", "content": [
        {"type": "resource", "resource": {"uri": "note://1", "text": "noted"}},
        {"type": "resource_link", "name": "plan", "uri": "https://plan.example"}]});
    let texts = transcript(&session(&[
        json!({"type": "user", "message": {"content": [text("look"), document, found]}}),
        json!({"type": "assistant", "message": {"id": "m", "content": [code]}}),
        recap,
        mail,
        json!({"type": "user", "message": {"content": [tool]}}),
    ]));
    let expected = [
        "user: look\n[file: a.md]\nin the document\nT\nhttps://e.org\nin the result",
        "assistant: printed\nwarned",
        "system: meanwhile",
        "system: from bob",
        "tool: note://1\nnoted\nplan\nhttps://plan.example",
    ];
    assert_eq!(texts, expected);
}
