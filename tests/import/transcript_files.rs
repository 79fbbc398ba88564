//! The pictures and files in transcripts: kept, shown, written out, and removed with their conversations.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::corpus::folder;
use crate::user::Said;

/// The first bytes of a picture are enough.
const RED: &[u8] = b"\x89PNG\r\n\x1a\n red";
const BLUE: &[u8] = b"\x89PNG\r\n\x1a\n blue";
const REPORT: &[u8] = b"%PDF-1.4 report";

const SHOP: &str = "11111111-0000-4000-8000-000000000001";
const OTHER: &str = "22222222-0000-4000-8000-000000000002";

fn run(home: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).current_dir(home).args(["--home", "v", "--archive"]);
    let settings = home.join("config.toml");
    if settings.exists() {
        command.env("VERBATIM_CONFIG", settings);
    }
    Said::of(command.arg(home.join("agents")).args(arguments))
}

fn base64(content: &[u8]) -> String {
    BASE64_STANDARD.encode(content)
}

fn picture(content: &[u8]) -> Value {
    let data = base64(content);
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

/// Returns a line of a transcript of Claude Code.
fn line(session: &str, number: u32, content: &Value) -> Value {
    json!({"type": "user", "uuid": format!("{session}-{number}"), "sessionId": session,
        "cwd": "/home/ann/shop", "timestamp": format!("2025-10-30T11:00:{number:02}Z"),
        "message": {"role": "user", "content": content}})
}

/// Appends lines to a file in the folder of the agents.
fn append(home: &Path, name: &str, lines: &[Value]) {
    let path = home.join("agents").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
}

/// A session with a pasted picture, a picture that a tool read, and a document.
fn session(home: &Path, session: &str) {
    let pasted = json!([{"type": "text", "text": "What is this?"}, picture(RED)]);
    let data = base64(REPORT);
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
    let read = json!([{"type": "tool_result", "tool_use_id": "t", "content": [picture(BLUE)]},
        {"type": "document", "title": "report.pdf", "source": source}]);
    let lines = [line(session, 1, &pasted), line(session, 2, &read)];
    append(home, &format!("shop/{session}.jsonl"), &lines);
}

/// Returns the contents that a store has, sorted.
fn contents(home: &Path, store: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(home.join("v").join(store).join("files")).into_iter().flatten();
    let mut contents: Vec<Vec<u8>> =
        entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    contents.sort();
    contents
}

/// Returns the names and types of the files of each message.
fn shown(home: &Path, id: &str) -> Vec<Vec<String>> {
    let Said { code, out, errors: err } = run(home, &["show", id, "--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let name = |it: &Value| {
        let text = |name: &str| it[name].as_str().unwrap().to_owned();
        format!("{} {}", text("name"), text("type"))
    };
    let message = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap();
        message["attachments"].as_array().unwrap().iter().map(name).collect()
    };
    out.lines().map(message).collect()
}

const STORE: &str = "transcript-files";

#[test]
fn files_in_sessions_of_claude_code() {
    let folder = folder();
    let home = folder.path();
    session(home, SHOP);
    run(home, &["reindex"]).ends(0);
    let expected = [
        vec!["image-1.png image/png"],
        vec!["image-1.png image/png"],
        vec!["report.pdf application/pdf"],
    ];
    assert_eq!(shown(home, SHOP), expected);
    assert_eq!(contents(home, STORE), [REPORT, BLUE, RED]);
    run(home, &["show", SHOP]).prints("[image-1.png, image/png, ");

    // A transcript that grows adds what is new, and no content twice.
    let again = json!([{"type": "text", "text": "And again?"}, picture(RED)]);
    append(home, &format!("shop/{SHOP}.jsonl"), &[line(SHOP, 3, &again)]);
    run(home, &["reindex"]);
    assert_eq!(shown(home, SHOP).len(), 4);
    assert_eq!(shown(home, SHOP)[3], ["image-1.png image/png"]);
    assert_eq!(contents(home, STORE), [REPORT, BLUE, RED]);
    assert!(!home.join("v").join(STORE).join("new-begun").exists());

    run(home, &["export", "notes"]).ends(0).prints("\n4 attachments with them");

    // What a file had before it was rewritten is kept, and the new text is another conversation.
    let path = home.join("agents").join(format!("shop/{SHOP}.jsonl"));
    fs::write(&path, "").unwrap();
    append(home, &format!("shop/{SHOP}.jsonl"), &[line(SHOP, 4, &json!([picture(BLUE)]))]);
    run(home, &["reindex"]);
    assert_eq!(shown(home, SHOP).len(), 4);
    let other = format!("{SHOP}/{SHOP}");
    assert_eq!(shown(home, &other), [["image-1.png image/png"]]);
    assert_eq!(contents(home, STORE), [REPORT, BLUE, RED]);

    // What the agent deletes stays, until it is forgotten.
    fs::remove_file(&path).unwrap();
    run(home, &["reindex"]);
    assert_eq!(contents(home, STORE), [REPORT, BLUE, RED]);
    run(home, &["forget", SHOP, "--yes"]).ends(0);
    assert_eq!(contents(home, STORE), [BLUE]);
    run(home, &["forget", &other, "--yes"]).ends(0);
    assert!(contents(home, STORE).is_empty());
}

#[test]
fn files_in_sessions_of_codex() {
    let folder = folder();
    let home = folder.path();
    let url = |content: &[u8]| format!("data:image/png;base64,{}", base64(content));
    let record = |kind: &str, payload: Value| json!({"timestamp": "2025-10-30T11:00:00Z", "type": kind, "payload": payload});
    let message = |text: &str, picture: &[u8]| {
        record(
            "response_item",
            json!({"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": text},
                {"type": "input_image", "image_url": url(picture)}]}),
        )
    };
    let event = |text: &str, pictures: &[String]| {
        record("event_msg", json!({"type": "user_message", "message": text, "images": pictures}))
    };
    let output = json!([{"type": "input_image", "image_url": url(BLUE)}]).to_string();
    let lines = [
        record("session_meta", json!({"id": SHOP, "cwd": "/home/ann/shop"})),
        // The two records of a turn come in any order.
        message("first", RED),
        event("first", &[url(RED)]),
        event("second", &[]),
        message("second", BLUE),
        record(
            "response_item",
            json!({"type": "function_call_output", "call_id": "c", "output": output}),
        ),
    ];
    append(home, &format!("rollout-2025-10-30T11-00-00-{SHOP}.jsonl"), &lines);
    run(home, &["reindex"]);
    assert_eq!(shown(home, SHOP), [["image-1.png image/png"]; 3]);
    assert_eq!(contents(home, STORE), [BLUE, RED]);
}

#[test]
fn files_of_excluded_and_repeated_messages_are_not_kept() {
    let folder = folder();
    let home = folder.path();
    session(home, SHOP);
    // A session that was resumed repeats the messages.
    let path = |session: &str| home.join("agents/shop").join(format!("{session}.jsonl"));
    let lines = fs::read_to_string(path(SHOP)).unwrap();
    fs::write(path(OTHER), lines.replace("\"sessionId\":\"1", "\"sessionId\":\"2")).unwrap();
    let more = line(OTHER, 9, &json!("More"));
    append(home, &format!("shop/{OTHER}.jsonl"), &[more]);
    run(home, &["reindex"]);
    assert_eq!(shown(home, OTHER), [[""; 0]]);
    assert_eq!(fs::read_dir(home.join("v").join(STORE).join("chats")).unwrap().count(), 1);

    fs::write(home.join("config.toml"), "exclude = ['shop']\n").unwrap();
    run(home, &["reindex"]);
    assert!(contents(home, STORE).is_empty());
    fs::write(home.join("config.toml"), "").unwrap();
    run(home, &["reindex"]);
    assert_eq!(contents(home, STORE), [REPORT, BLUE, RED]);
}

#[test]
fn an_imported_transcript_has_its_files() {
    let folder = folder();
    let home = folder.path();
    session(home, SHOP);
    fs::rename(home.join("agents"), home.join("elsewhere")).unwrap();
    run(home, &["import", "elsewhere"]).ends(0).prints(", 3 files (");
    assert_eq!(shown(home, SHOP)[2], ["report.pdf application/pdf"]);
    assert_eq!(contents(home, "attachments"), [REPORT, BLUE, RED]);
    run(home, &["import", "elsewhere"]).prints(", 3 files (");
    run(home, &["forget", SHOP, "--yes"]).ends(0);
    assert!(contents(home, "attachments").is_empty());
}

#[test]
fn an_id_of_two_sources_is_told_apart_by_a_key() {
    let folder = folder();
    let home = folder.path();
    session(home, SHOP);
    let chat = json!([{"uuid": SHOP, "name": "Shop talk", "created_at": "2025-01-03T10:00:00Z",
        "chat_messages": [{"uuid": "c1", "sender": "human", "text": "From the export"}]}]);
    fs::write(home.join("conversations.json"), chat.to_string()).unwrap();
    run(home, &["import", "conversations.json"]);
    let Said { code, errors: err, .. } = run(home, &["show", SHOP]);
    assert_eq!(code, Some(2), "{err}");
    let commands: Vec<&str> = err.split('`').filter(|part| part.starts_with("verbatim ")).collect();
    assert_eq!(commands.len(), 2, "{err}");
    for (command, text) in commands.iter().zip(["From the export", "What is this?"]) {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        run(home, &words).ends(0).prints(text);
    }
    // What is forgotten is forgotten in every source.
    run(home, &["forget", SHOP, "--yes"]).ends(0);
    run(home, &["show", SHOP]).ends(2);
    assert!(contents(home, STORE).is_empty());
}

#[test]
fn an_import_knows_a_transcript_that_begins_with_a_large_picture() {
    let folder = folder();
    let home = folder.path();
    let large = [RED, &[7; 400_000]].concat();
    // The fields as Claude Code writes them.
    let text = line(SHOP, 1, &json!([picture(&large)])).to_string();
    let message = text.find("\"message\":").unwrap();
    let (id, rest) = (format!("\"sessionId\":\"{SHOP}\","), &text[message..]);
    let text = format!("{{\"parentUuid\":null,{id}\"type\":\"user\",{rest}\n");
    fs::create_dir(home.join("elsewhere")).unwrap();
    fs::write(home.join("elsewhere").join(format!("{SHOP}.jsonl")), text).unwrap();
    run(home, &["import", "elsewhere"]).ends(0).prints(", 1 file (");
    assert_eq!(contents(home, "attachments"), [large]);
}
