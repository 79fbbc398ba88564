//! Texts that programs wrote for a terminal.

use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};
use verbatim_chats::import::Branches;
use verbatim_engine::import;

use crate::transcripts::Home;

/// A result of a tool as rustc colours it.
const COLOURED: &str = "\x1b[1m\x1b[31merror\x1b[0m\x1b[1m: mismatched types \x1b[0m\n\
    10%\r20%\r100%\nsaw \\u001b[31m in a file";
const PLAIN: &str = "error: mismatched types \n100%\nsaw \\u001b[31m in a file";

/// A line of a session of Claude Code.
fn record(session: &str, id: &str, kind: &str, content: &Value) -> String {
    let record = json!({"type": kind, "uuid": format!("{session}-{id}"), "sessionId": session,
        "timestamp": "2026-10-01T10:00:00Z", "message": {"role": kind, "content": content}});
    format!("{record}\n")
}

fn result(session: &str, id: &str, text: &str) -> String {
    let block = json!([{"type": "tool_result", "tool_use_id": "t", "content": text}]);
    record(session, id, "user", &block)
}

/// The role and the text of every message, in order.
fn messages(home: &Home) -> Vec<String> {
    let connection = Connection::open(home.engine.config().archive_database()).unwrap();
    let sql = "SELECT role || ': ' || content FROM messages
               ORDER BY conversation_id, position, rowid";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn texts_of_claude_code_have_no_escape_sequences() {
    let home = Home::new();
    let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "ls \x1b[1mx"}}]);
    let shell = "<bash-stdout>\x1b[32m1%\r2%\x1b[K\x1b[m</bash-stdout><bash-stderr></bash-stderr>";
    let lines = [
        record("s", "1", "user", &json!("Why \x1b[31mred\x1b[0m?\rAnd this?")),
        record("s", "2", "assistant", &call),
        result("s", "3", COLOURED),
        record("s", "4", "user", &json!(shell)),
        record("s", "5", "assistant", &json!("\x1b]8;;https://a.example\x07here\x1b]8;;\x07")),
    ];
    home.write("s.jsonl", lines.concat());
    home.sync();
    let expected = [
        "user: Why red?\nAnd this?",
        "assistant: [tool: Bash]\ncommand: ls x",
        &format!("tool: {PLAIN}"),
        "tool: 2%",
        "assistant: here",
    ];
    assert_eq!(messages(&home), expected);
    assert_eq!(home.found("error: mismatched"), [PLAIN]);
}

#[test]
fn texts_of_codex_have_no_escape_sequences() {
    let home = Home::new();
    let output = json!({"output": COLOURED, "metadata": {"exit_code": 0}}).to_string();
    let items = [
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "\x1b[1mgo"}]}),
        json!({"type": "function_call_output", "call_id": "a", "output": output}),
        json!({"type": "function_call_output", "call_id": "b", "output": COLOURED}),
        json!({"type": "function_call_output", "call_id": "c",
            "output": json!({"stdout": "1%\r2%", "stderr": "\x1b[31mbad"}).to_string()}),
    ];
    let mut lines = json!({"type": "session_meta", "payload": {"id": "s"}}).to_string() + "\n";
    for item in items {
        lines += &(json!({"type": "response_item", "payload": item}).to_string() + "\n");
    }
    home.write("rollout-2026-10-01T10-00-00-s.jsonl", lines);
    home.sync();
    let tool = format!("tool: {PLAIN}");
    let expected = ["user: go", &tool, &tool, "tool: stderr: bad\nstdout: 2%"];
    assert_eq!(messages(&home), expected);
}

#[test]
fn texts_of_exports_have_no_escape_sequences() {
    let node = |at: usize, role: &str, kind: &str, text: &str| {
        let name = if kind == "text" { "parts" } else { "text" };
        let text = if kind == "text" { json!([text]) } else { json!(text) };
        let content = json!({"content_type": kind, name: text});
        json!({"id": format!("n{at}"), "parent": at.checked_sub(1).map(|it| format!("n{it}")),
            "message": {"author": {"role": role}, "content": content}})
    };
    let export = json!([{"id": "c", "title": "\x1b[1mWhy", "current_node": "n1", "mapping": {
        "n0": node(0, "user", "text", "\x1b[31mred\x1b[m"),
        "n1": node(1, "tool", "execution_output", COLOURED)}}]);
    let home = Home::new();
    let path = home.folder.path().join("conversations.json");
    fs::write(&path, export.to_string()).unwrap();
    let target = home.engine.config().archive_database();
    import::import(&[path], &target, Branches::Shown, &|_| {}).unwrap();
    assert_eq!(messages(&home), ["user: red".to_owned(), format!("tool: {PLAIN}")]);
}

#[test]
fn the_text_of_a_record_of_an_unknown_kind_is_kept() {
    let home = Home::new();
    let said =
        |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let mut lines = record("s", "1", "user", &json!("Draw"));
    for (at, fields) in [
        json!({"type": "melody", "message": said("assistant", "a heron")}),
        json!({"type": "melody", "message": said("user", "a bittern")}),
        json!({"type": "melody", "role": "assistant", "content": "a crane"}),
        json!({"type": "melody", "text": "a stork"}),
        json!({"type": "system", "subtype": "song", "content": "a swan"}),
        json!({"type": "attachment", "attachment": {"type": "tune", "content": {"body": "a coot"}}}),
        json!({"type": "melody", "state": {"at": 1}, "content": "QUJD".repeat(500)}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut record = fields;
        record["uuid"] = json!(format!("x{at}"));
        record["sessionId"] = json!("s");
        lines += &format!("{record}\n");
    }
    home.write("s.jsonl", lines);
    let codex = [
        json!({"type": "session_meta", "payload": {"id": "t"}}),
        json!({"type": "event_msg", "payload": {"type": "melody", "message": "a rail"}}),
        json!({"type": "response_item", "payload": {"type": "melody", "role": "assistant",
            "content": [{"type": "output_text", "text": "a grebe"}]}}),
        json!({"type": "event_msg", "payload": {"type": "agent_message", "message": "a grebe"}}),
        json!({"type": "melody", "payload": {"content": "a diver"}}),
    ];
    let codex: String = codex.iter().map(|record| format!("{record}\n")).collect();
    home.write("rollout-2026-10-01T10-00-00-t.jsonl", codex);
    home.sync();
    let expected = [
        "user: Draw",
        "assistant: a heron",
        "user: a bittern",
        "assistant: a crane",
        "system: a stork",
        "system: a swan",
        "system: a coot",
        "system: a rail",
        "assistant: a grebe",
        "system: a diver",
    ];
    assert_eq!(messages(&home), expected);
}

#[cfg(unix)]
#[test]
fn a_rewrite_that_keeps_size_and_time_is_seen() {
    use std::{io::Write, os::unix::fs::MetadataExt};

    let home = Home::new();
    let path = home.write("s.jsonl", record("s", "1", "user", &json!("it is crimson now")));
    home.sync();
    assert_eq!(home.sync().read, 0);
    let before = fs::metadata(&path).unwrap();
    let content = fs::read_to_string(&path).unwrap().replace("crimson", "magenta");
    // The time of the last change has the precision of the system's clock.
    let changed = |metadata: &fs::Metadata| (metadata.ctime(), metadata.ctime_nsec());
    while changed(&fs::metadata(&path).unwrap()) == changed(&before) {
        let mut file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert_eq!((after.len(), after.ino()), (before.len(), before.ino()));
    home.sync();
    assert_eq!(home.found("magenta"), ["it is magenta now"]);
    assert_eq!(home.found("crimson"), ["it is crimson now"], "lost texts are kept");
    // A change of nothing but the permissions changes no text.
    let held = messages(&home);
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    home.sync();
    assert_eq!(messages(&home), held);
}
