//! Files of programs and services that are not read: each is named as what it is, and none is taken for another's.

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_chats::import::Branches;
use verbatim_engine::import;

use crate::exports::zip_of;
use crate::formats::{chatgpt, imported, left_out, refused};
use crate::transcripts::Home;

/// Checks what is said of a file alone, in a folder and in a zip.
#[track_caller]
fn is_named(name: &str, content: &[u8], expected: &str) {
    let alone = refused(name, content);
    let zipped = refused("all.zip", &zip_of(&[(name, content)]));
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    let target = folder.path().join("out.db");
    let paths = [folder.path().to_owned()];
    let in_folder =
        import::import(&paths, &target, Branches::Shown, &|_| {}).unwrap_err().to_string();
    for error in [alone, zipped, in_folder] {
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn conversations_of_deepseek_are_never_chatgpts() {
    let message = |more: Value| {
        let mut message = json!({"fragments": [{"type": "REQUEST", "content": "said"}]});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"root": {"id": "root", "message": null, "parent": null, "children": ["1"]},
            "1": {"id": "1", "parent": "root", "message": message}})
    };
    for (heading, more) in [
        (json!({"inserted_at": "2026-01-01T00:00:00Z"}), json!({})),
        (json!({"create_time": "2026-01-01T00:00:00Z", "current_node": "1"}), json!({})),
        (json!({"create_time": 1}), json!({"author": {"role": "user"}, "content": null})),
    ] {
        let mut export = json!({"id": "d", "title": "T", "mapping": message(more)});
        export.as_object_mut().unwrap().extend(heading.as_object().unwrap().clone());
        let whole = json!([export]).to_string();
        is_named("conversations.json", whole.as_bytes(), "chats of DeepSeek");
        let cut = &whole[..whole.len() - 4];
        let error = refused("a.json", cut.as_bytes());
        assert!(!error.contains("middle"), "{cut}: {error}");
    }
}

#[test]
fn conversations_of_unknown_programs_are_refused() {
    for object in [
        json!([{"title": "x", "id": "1", "mapping": {"a": {"from": "b", "to": "c"}}}]),
        json!([{"title": "x", "id": "1", "mapping": {"a": {"message": {"who": "me", "said": "hi"}}}}]),
        json!([{"title": "x", "id": "1", "mapping": {"a": {"message": "hi"}}}]),
        json!([{"name": "x", "chat_messages": [{"from": "a", "body": "hi"}]}]),
        json!([{"uuid": "u", "project": "p", "created_at": "t", "messages": [{"body": "hi"}]}]),
        json!([{"role": "user", "content": "hi"}]),
    ] {
        let error = refused("conversations.json", object.to_string().as_bytes());
        assert!(error.contains("holds no conversation"), "{object}: {error}");
    }
    for record in [
        json!({"type": "message", "role": "user", "content": [{"type": "text", "text": "hi"}]}),
        json!({"type": "reasoning", "summary": [], "encrypted_content": "x"}),
    ] {
        let error = refused("a.jsonl", format!("{record}\n").as_bytes());
        assert!(error.contains("not a transcript that we know"), "{record}: {error}");
    }
    // Nothing is said in it, and that is said.
    let empty = json!([{"id": "c", "title": "x", "create_time": 1, "mapping": {}}]).to_string();
    let (texts, report) = imported(&[("conversations.json", empty.as_bytes())]);
    assert_eq!(texts, [""; 0]);
    assert!(report.missing()[0].contains("nothing is said in 1 conversation"), "{report:?}");
}

#[test]
fn single_parts_of_other_programs_are_named() {
    for (name, content, expected) in [
        (
            "logs.json",
            json!([{"sessionId": "s", "messageId": 0, "type": "user", "message": "hi"}]),
            "Gemini CLI",
        ),
        ("checkpoint.json", json!([{"role": "user", "parts": [{"text": "hi"}]}]), "Gemini CLI"),
        (
            "chat.json",
            json!({"title": "t", "history": {"currentId": "a", "messages": {"a": {"content": "hi"}}}}),
            "Open WebUI",
        ),
        ("a.json", json!({"zed": "context", "version": "0.4.0", "text": "hi"}), "Zed"),
        ("b.json", json!({"chats": [{"messages": [{"text": "hi"}]}]}), "a list of chats"),
        ("c.jsonl", json!({"type": "thread.started", "thread_id": "0"}), "codex exec --json"),
        (
            "d.jsonl",
            json!({"type": "system", "subtype": "ui_telemetry", "uuid": "u", "sessionId": "s"}),
            "Qwen Code",
        ),
    ] {
        is_named(name, format!("{content}\n").as_bytes(), expected);
    }
}

#[test]
fn files_without_json_are_named() {
    let database = |statements: &str| {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(statements).unwrap();
        drop(connection);
        std::fs::read(path).unwrap()
    };
    for (program, tables) in [
        (
            "OpenCode",
            "create table session (id); create table message (id, session_id, data); create table part (id)",
        ),
        ("OpenCode", "CREATE TABLE `session_message` (`id` text, `seq` integer)"),
        (
            "Cursor",
            "CREATE TABLE cursorDiskKV (key TEXT, value BLOB); CREATE TABLE ItemTable (key)",
        ),
        ("Cursor", "CREATE TABLE blobs (id, data); CREATE TABLE meta (key, value)"),
        ("Visual Studio Code", "CREATE TABLE ItemTable (key TEXT, value BLOB)"),
        ("Open WebUI", "CREATE TABLE \"chat\" (id, share_id); CREATE TABLE auth (id)"),
        ("Goose", "CREATE TABLE sessions (id); CREATE TABLE messages (id, content_json)"),
        ("Zed", "CREATE TABLE threads (id, summary, data_type, data)"),
        ("llm", "CREATE TABLE responses (id, prompt, prompt_json)"),
        ("Antigravity", "CREATE TABLE steps (idx, step_payload)"),
    ] {
        is_named("renamed.db", &database(tables), &format!("chats of {program}"));
    }
    let own = database("CREATE TABLE conversations (id); CREATE TABLE messages (id, content)");
    let other = database("CREATE TABLE notes (id, text)");
    for (content, expected) in [(own, "search it with --db"), (other, "of another program")] {
        let error = refused("mine.db", &content);
        assert!(error.contains(expected), "{error}");
    }
    is_named("history.md", b"\n# aider chat started at 2026-07-17 09:00:00\n", "chats of Aider");
    let chat = chatgpt(&[json!({"author": {"role": "user"}, "content": {"parts": ["said"]}})]);
    let (texts, report) = imported(&[
        ("conversations.json", &chat),
        (".aider.chat.history.md", b"# aider chat started at 2026-07-17"),
        ("README.md", b"# Read me"),
    ]);
    assert_eq!(texts, ["user: said"]);
    assert_eq!(left_out(&report), "chats of Aider, whose files are not read yet (1)");
}

#[test]
fn web_pages_are_read_or_named() {
    let chat = chatgpt(&[
        json!({"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["When?"]}}),
        json!({"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["In </p> March."]}}),
    ]);
    let chat = String::from_utf8(chat).unwrap();
    let one = &chat[1..chat.len() - 1];
    let claude =
        json!({"uuid": "s", "chat_messages": [{"uuid": "1", "sender": "human", "text": "Docks?"}]});
    for (page, expected) in [
        (
            format!("<html><script>var jsonData = {chat};\nvar assetsJson = {{}};</script></html>"),
            vec!["user: When?", "assistant: In </p> March."],
        ),
        (
            format!(
                "<!doctype html><html><p>{}</p><script id=\"__NEXT_DATA__\">{{\"props\":{{\"data\":{one}}}}}</script>",
                "x".repeat(300 << 10)
            ),
            vec!["user: When?", "assistant: In </p> March."],
        ),
        (
            format!(
                "<html><script>let a = 1;</script><script>window.data = [{{\"s\": {claude}}}];</script></html>"
            ),
            vec!["user: Docks?"],
        ),
    ] {
        assert_eq!(imported(&[("page.html", page.as_bytes())]).0, expected);
    }
    for (page, expected) in [
        (
            "<html><head><title>ChatGPT - Figs</title></head></html>",
            "the saved page of a conversation of ChatGPT",
        ),
        (
            "<html><head><title>Thistles | Claude</title></head></html>",
            "the saved page of a conversation of Claude.ai",
        ),
        (
            "<!-- saved from url=(0030)https://gemini.google.com/share/a --><html></html>",
            "the saved page of a conversation of the Gemini app",
        ),
        (
            "<html><meta property=\"og:url\" content=\"https://grok.com/share/a\"></html>",
            "the saved page of a conversation of Grok",
        ),
        (
            "<html><title>Claude Monet</title></html>",
            "a web page, in which no conversation is found",
        ),
        (
            "<html><div class=\"outer-cell\"><div class=\"content-cell\">Prompted</div></div>Gemini Apps</html>",
            "chats of the Gemini app",
        ),
        ("<html><script>var jsonData = [];</script></html>", "the web page of ChatGPT's export"),
    ] {
        is_named("share.html", page.as_bytes(), expected);
    }
    // The page of an export has the same conversations once more.
    let page = format!("<html><script>var jsonData = {chat};</script></html>");
    let (texts, report) =
        imported(&[("chat.html", page.as_bytes()), ("conversations.json", chat.as_bytes())]);
    assert_eq!((texts.len(), report.tally.conversations), (2, 1));
}

#[test]
fn transcripts_of_other_programs_are_named() {
    let message = json!({"role": "user", "content": [{"type": "text", "text": "said"}]});
    let parts = json!({"role": "user", "parts": [{"text": "said"}]});
    let of_claude = |session: &str, message: &Value| {
        json!({"type": "user", "uuid": "u", "parentUuid": null, "sessionId": session,
            "timestamp": "2026-08-20T10:00:00Z", "message": message})
    };
    let billed = json!({"role": "assistant", "content": "said", "usage": {"credits": 1}});
    for (program, record) in [
        ("Qwen Code", of_claude("s", &parts)),
        ("iFlow", of_claude("session-0a", &message)),
        ("Qoder", of_claude("s", &billed)),
        ("Gemini CLI", json!({"sessionId": "s", "startTime": "t", "lastUpdated": "t"})),
        ("Gemini CLI", json!({"id": "m", "type": "gemini", "content": "said"})),
        ("Cursor", json!({"role": "user", "message": message})),
        ("GitHub Copilot", json!({"type": "session.start", "data": {}, "id": "e"})),
        ("GitHub Copilot", json!({"kind": 0, "v": {"requests": []}})),
        ("GitHub Copilot", json!({"kind": 2, "k": ["requests"], "v": []})),
        ("GitHub Copilot", json!({"resourceSpans": [{"resource": "vs-copilot"}]})),
        ("Gemini CLI", json!({"$set": {"messages": []}})),
        ("Grok Build", json!({"type": "user", "content": [], "prompt_index": 0})),
        ("Grok Build", json!({"type": "assistant", "content": "said", "model_id": "grok-4.5"})),
        ("Kimi Code", json!({"type": "context.append_message", "message": {}})),
        ("OpenCode", json!({"id": "msg_1", "sessionID": "ses_1", "role": "user"})),
        ("Antigravity", json!({"source": "MODEL", "created_at": "t", "content": "said"})),
        ("Grok Build", json!({"timestamp": 1, "params": {"update": {"sessionUpdate": "x"}}})),
        ("Kimi Code", json!({"type": "metadata", "protocol_version": "1.4"})),
        ("Goose", json!({"id": "s", "working_dir": "/x", "message_count": 2})),
        ("Pi", json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/x"})),
    ] {
        let error = refused("a.jsonl", format!("{record}\n").as_bytes());
        let expected = format!("a transcript of {program}, which is not read yet");
        assert!(error.contains(&expected), "{record}: {error}");
    }
    for (program, record) in [
        (
            "Claude Code",
            json!({"display": "dig", "timestamp": 1, "project": "/x", "pastedContents": {}}),
        ),
        ("Codex", json!({"session_id": "s", "ts": 1, "text": "dig"})),
    ] {
        let error = refused("history.jsonl", format!("{record}\n").as_bytes());
        let expected = format!("{program}'s list of typed prompts, which is not read yet");
        assert!(error.contains(&expected) && error.contains("only there"), "{record}: {error}");
    }
    let home = Home::new();
    home.write("a.jsonl", format!("{}\n", of_claude("s", &parts)));
    let report = home.sync();
    assert!(report.failures[0].contains("a transcript of Qwen Code"), "{:?}", report.failures);
    assert_eq!(home.sync().failures, [""; 0], "it is said once");
}

#[test]
fn exports_of_other_services_are_named() {
    for (name, service, object) in [
        (
            "prod-grok-backend.json",
            "Grok",
            json!({"conversations": [{"conversation": {"id": "c"},
            "responses": [{"response": {"message": "said"}}]}]}),
        ),
        (
            "chat-export-1.json",
            "Open WebUI",
            json!([{"id": "c", "title": "T",
            "chat": {"history": {"messages": {}}}}]),
        ),
        ("a.json", "LibreChat", json!({"conversationId": "c", "endpoint": "e", "messages": []})),
        (
            "chat-1.json",
            "Le Chat",
            json!([{"id": "m", "chatId": "c", "role": "user",
            "content": "said"}]),
        ),
        (
            "MyActivity.json",
            "the Gemini app",
            json!([{"header": "Gemini Apps", "title": "T",
            "time": "t", "products": ["Gemini Apps"]}]),
        ),
        ("a.json", "GitHub Copilot", json!({"requests": [], "responderUsername": "r"})),
        ("a.json", "OpenCode", json!({"id": "msg_1", "sessionID": "ses_1", "role": "user"})),
        ("a.json", "OpenCode", json!({"info": {"id": "ses_1", "projectID": "p"}, "messages": []})),
        (
            "a.json",
            "Cline",
            json!([{"role": "user", "content": [{"type": "text", "text": "<task>said</task>"}]}]),
        ),
        ("a.json", "Cline", json!([{"ts": 1, "type": "say", "say": "text", "text": "said"}])),
        ("a.json", "Cline", json!([{"id": "1", "ts": 1, "task": "said", "tokensIn": 1}])),
        ("a.json", "Grok Build", json!({"info": {"id": "s", "cwd": "/x"}, "generated_title": "T"})),
        ("a.json", "Kimi Code", json!({"workDir": "/x", "agents": {}, "title": "T"})),
        ("api_conversation_history.json", "Cline", json!([{"role": "user", "content": "said"}])),
    ] {
        is_named(name, object.to_string().as_bytes(), &format!("chats of {service}"));
    }
    let error = refused("webui.db", b"SQLite format 3\0");
    assert!(error.contains("Open WebUI"), "{error}");
}
