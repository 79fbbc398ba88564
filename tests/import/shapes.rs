//! What a program says that is not known: it is read where it has a text, and counted by name.

use serde_json::{Value, json};
use verbatim_engine::import::Report;

use crate::formats::{
    attachment, chatgpt, imported, of_claude, rollout, session, transcript, user,
};
use crate::transcripts::Home;
use crate::user::User;

fn unknown(report: &Report) -> String {
    let kinds = report.tally.unknown.iter().map(|(kind, count)| format!("{kind} {count}"));
    kinds.collect::<Vec<_>>().join(", ")
}

fn completed(item: Value) -> (&'static str, Value) {
    ("event_msg", json!({"type": "item_completed", "item": item}))
}

fn item(item: Value) -> (&'static str, Value) {
    ("response_item", item)
}

fn event(event: Value) -> (&'static str, Value) {
    ("event_msg", event)
}

#[test]
fn items_of_turns_are_read_once() {
    let text = |text: &str| json!([{"type": "Text", "text": text}]);
    let asked = json!([{"type": "text", "text": "Which quince?"}, {"type": "local_image", "path": "/x/q.png"}]);
    let asked_item = json!([{"type": "input_text", "text": "Which quince?"}, {"type": "input_image", "image_url": "x"}]);
    let command = |id: &str, script: &str, output: &str| {
        json!({"type": "CommandExecution", "id": id, "command": ["bash", "-lc", script],
            "source": "agent", "status": "completed", "aggregatedOutput": output})
    };
    let search = json!({"type": "search", "query": "quince"});
    let records = [
        completed(json!({"type": "UserMessage", "id": "1", "content": asked})),
        item(json!({"type": "message", "role": "user", "content": asked_item})),
        completed(command("c1", "ls", "only here")),
        item(
            json!({"type": "function_call", "name": "shell", "call_id": "c2", "arguments": "{\"command\":\"cat\"}"}),
        ),
        completed(command("c2", "cat", "twice")),
        item(json!({"type": "function_call_output", "call_id": "c2", "output": "twice"})),
        event(
            json!({"type": "exec_command_end", "call_id": "c3", "command": ["bash", "-lc", "who"],
            "source": "user_shell", "aggregated_output": "kim"}),
        ),
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text":
            "<user_shell_command>\n<command>\nwho\n</command>\n<result>\nExit code: 0\nkim\n</result>\n</user_shell_command>"}]})),
        completed(json!({"type": "McpToolCall", "id": "m1", "server": "garden", "tool": "dig",
            "arguments": {"bed": 3}, "status": "failed", "error": {"message": "spade broken"}})),
        completed(json!({"type": "FileChange", "id": "f1",
            "changes": {"/x/a.rs": {"update": {"unified_diff": "-a\n+b"}}}})),
        event(
            json!({"type": "web_search_end", "call_id": "w", "query": "quince", "action": search}),
        ),
        item(json!({"type": "web_search_call", "status": "completed", "action": search})),
        completed(
            json!({"type": "Reasoning", "id": "r", "summary_text": ["Comparing"], "raw_content": []}),
        ),
        completed(json!({"type": "AgentMessage", "id": "3", "content": text("The Portuguese.")})),
        item(
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Comparing"}]}),
        ),
        item(json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "The Portuguese."}]})),
        event(json!({"type": "error", "message": "usage limit"})),
        event(json!({"type": "error", "message": "usage limit"})),
        event(
            json!({"type": "thread_goal_updated", "goal": {"objective": "ripen", "status": "active"}}),
        ),
        event(
            json!({"type": "thread_goal_updated", "goal": {"objective": "ripen", "status": "done"}}),
        ),
    ];
    let expected = [
        "user: Which quince?\n[image]\n[file: /x/q.png]",
        "assistant: [tool: exec_command]\ncommand: ls",
        "tool: only here",
        "assistant: [tool: shell]\ncommand: cat",
        "tool: twice",
        "user: ! who\nkim",
        "assistant: [tool: mcp__garden__dig]\nbed: 3",
        "tool: message: spade broken",
        "assistant: [tool: apply_patch]\npath: /x/a.rs\nunified_diff:\n-a\n+b",
        "assistant: [tool: web_search]\nquery: quince",
        "assistant: [thinking]\nComparing\n\nThe Portuguese.",
        "system: [error]\nusage limit",
        "user: /goal ripen",
    ];
    assert_eq!(transcript(&rollout(&records)), expected);
    let (_, report) = imported(&[("a.jsonl", rollout(&records).as_bytes())]);
    assert_eq!(unknown(&report), "");
    // The items of the model may come after the events.
    let late = [
        completed(command("c1", "ls", "said")),
        item(json!({"type": "function_call", "name": "shell", "call_id": "c1", "arguments": "{}"})),
        item(json!({"type": "function_call_output", "call_id": "c1", "output": "said"})),
    ];
    let expected = ["assistant: [tool: exec_command]\ncommand: ls", "tool: said"];
    assert_eq!(transcript(&rollout(&late)), expected);
    // An event that is not known takes nothing from the items of its call.
    let asked = [
        event(json!({"type": "novel_request", "call_id": "c1", "question": "Which?"})),
        item(json!({"type": "function_call", "name": "ask", "call_id": "c1", "arguments": "{}"})),
        item(json!({"type": "function_call_output", "call_id": "c1", "output": "This."})),
    ];
    assert_eq!(
        transcript(&rollout(&asked)),
        ["system: Which?", "assistant: [tool: ask]", "tool: This."]
    );
}

#[test]
fn what_codex_writes_that_is_not_known_is_read_or_counted() {
    let message = |role: &str, content: Value| {
        item(json!({"type": "message", "role": role, "content": content}))
    };
    let records = [
        completed(json!({"type": "Hologram", "frames": [{"text": "holo"}]})),
        completed(json!({"type": "Gyro", "angle": 3})),
        event(json!({"type": "novel", "payload": {"content": [{"text": "deep"}]}})),
        event(json!({"type": "bare", "n": 3})),
        event(json!({"type": "token_count", "info": {"text": "no"}})),
        ("new_record", json!({"message": "of a record"})),
        ("event_msg", json!("a string")),
        event(
            json!({"type": "agent_message", "message": [{"type": "text", "text": "in an array"}]}),
        ),
        message("critic", json!([{"type": "output_text", "text": "of a critic"}])),
        message("assistant", json!([{"type": "output_text", "text": {"value": "in an object"}}])),
        message("assistant", json!([{"type": "scent", "caption": "of a block"}])),
        message("assistant", json!("alone")),
    ];
    let content = rollout(&records);
    let expected = [
        "system: holo",
        "system: deep",
        "system: of a record",
        "system: a string",
        "assistant: in an array",
        "system: of a critic",
        "assistant: in an object",
        "assistant: of a block",
        "assistant: alone",
    ];
    assert_eq!(transcript(&content), expected);
    let (_, report) = imported(&[("a.jsonl", content.as_bytes())]);
    let counted = "bare 1, event_msg 1, item_completed/Gyro 1, item_completed/Hologram 1, message/critic 1, \
                   new_record 1, novel 1, output_text 1, scent 1";
    assert_eq!(unknown(&report), counted);
}

#[test]
fn what_claude_code_writes_that_is_not_known_is_read_or_counted() {
    let answer = |id: &str, content: Value| json!({"type": "assistant", "message": {"id": id, "role": "assistant", "content": content}});
    let result = |results: Value, more: Value| json!({"type": "user", "message": {"content": results}, "toolUseResult": more});
    let of_tool = |text: &str| json!({"type": "tool_result", "tool_use_id": "t", "content": text});
    let records = [
        user("asked"),
        answer("1", json!([{"type": "text", "text": {"value": "object"}}])),
        answer("2", json!([{"type": "text", "text": ["in", "array"]}])),
        answer("3", json!({"type": "text", "text": "no list"})),
        answer("4", json!([[{"type": "text", "text": "nested"}]])),
        answer("5", json!([{"type": "hologram", "caption": "holo"}])),
        answer("6", json!([{"type": "gyro", "n": 4}])),
        answer("7", json!([{"type": "thinking", "thinking": {"text": "thought"}}])),
        json!({"type": "assistant", "message": {"id": "8", "text": "no content"}}),
        json!({"type": "user", "content": "no message"}),
        result(json!([of_tool("")]), json!({"stdout": "only there"})),
        result(json!([of_tool("short")]), json!("Error: a longer reason")),
        result(
            json!([of_tool("one"), of_tool("two")]),
            json!([{"type": "text", "text": "three of it"}]),
        ),
        result(json!([of_tool("first\n...")]), json!({"stdout": "first\nsecond\nthird"})),
        result(
            json!([of_tool("1→let a = 1;")]),
            json!({"type": "text", "file": {"content": "let a = 1;"}}),
        ),
        json!({"type": "system", "content": "without a kind"}),
        json!({"type": "system", "subtype": "informational", "content": "told"}),
        json!({"type": "system", "subtype": "novel", "content": "new words"}),
        json!({"type": "system", "subtype": "bare", "n": 1}),
        json!({"type": "system", "subtype": "turn_duration", "durationMs": 1}),
        json!({"type": "system", "subtype": "api_error", "error": {"formatted": "529 Busy"}}),
        attachment(json!({"type": "shared_clipboard", "content": "clipped"})),
        attachment(json!({"type": "new_model_note", "content": "for the model"})),
        attachment(json!({"type": "skill_listing", "content": "skills"})),
        json!({"type": "brand-new", "data": {"items": [{"content": "deep"}]}}),
        json!({"type": "cost-state", "cost": 3}),
    ];
    let content = session(&records);
    let expected = [
        "user: asked",
        "assistant: value: object",
        "assistant: in\narray",
        "assistant: no list",
        "assistant: nested",
        "assistant: holo",
        "assistant: [thinking]\nthought",
        "assistant: no content",
        "user: no message",
        "tool: only there",
        "tool: short\na longer reason",
        "tool: one\n\ntwo\nthree of it",
        "tool: first\n...\nfirst\nsecond\nthird",
        "tool: 1→let a = 1;",
        "system: without a kind",
        "system: told",
        "system: new words",
        "system: [error]\n529 Busy",
        "system: clipped",
        "system: deep",
    ];
    assert_eq!(transcript(&content), expected);
    let (_, report) = imported(&[("a.jsonl", content.as_bytes())]);
    let counted = "assistant without content 1, attachment/new_model_note 1, attachment/shared_clipboard 1, \
                   brand-new 1, gyro 1, hologram 1, system/bare 1, system/novel 1, text 2, thinking 1";
    assert_eq!(unknown(&report), counted);
}

#[test]
fn contents_of_every_shape_are_read_or_counted() {
    let of_gpt = |content: Value| json!({"author": {"role": "assistant"}, "content": content});
    let text = |parts: Value| of_gpt(json!({"content_type": "text", "parts": parts}));
    let (texts, report) = imported(&[(
        "conversations.json",
        &chatgpt(&[
            text(json!({"0": "object"})),
            text(json!([["nested"]])),
            of_gpt(json!({"content_type": "text", "value": "other"})),
            of_gpt(json!({"content_type": "code", "text": {"source": "code"}})),
            of_gpt(json!({"content_type": "execution_output", "text": 5})),
            of_gpt(json!({"content_type": "gyro", "n": 3})),
            text(json!([{"content_type": "scent", "caption": "part"}])),
            text(json!([{"content_type": "smell", "n": 1}])),
            json!({"author": {"role": "user"}, "text": "no content"}),
            json!("no object"),
        ]),
    )]);
    let expected = [
        "assistant: object",
        "assistant: nested",
        "assistant: other",
        "assistant: code",
        "assistant: 5",
        "assistant: part",
        "user: no content",
        "system: no object",
    ];
    assert_eq!(texts, expected);
    assert_eq!(
        unknown(&report),
        "a message without content 2, code 1, gyro 1, scent 1, smell 1, text 2"
    );
    let says = |content: Value| json!({"uuid": content.to_string(), "sender": "human", "content": content});
    let (texts, report) = of_claude(&json!([{"uuid": "c", "name": "n", "chat_messages": [
        says(json!([{"type": "text", "text": {"value": "object"}}])),
        says(json!("a string")),
        says(json!({"type": "text", "text": "no list"})),
        says(json!([[{"type": "text", "text": "nested"}]])),
        says(json!([{"type": "hologram", "caption": "holo"}, {"type": "gyro", "n": 3}])),
        {"uuid": "t", "sender": "human", "text": ["array"]},
        "no object",
    ]}]));
    let expected = [
        "user: object",
        "user: a string",
        "user: no list",
        "user: nested",
        "user: holo",
        "user: array",
        "system: no object",
    ];
    assert_eq!(texts, expected);
    assert_eq!(unknown(&report), "a message that is no object 1, gyro 1, hologram 1, text 1");
}

#[test]
fn cited_words_and_summaries_of_claude_are_text() {
    let cited = json!([{"title": "T", "url": "https://e.org/x", "cited_text": "first line\nsecond line"},
        {"title": "T", "url": "https://e.org/x", "cited_text": "more"}]);
    let (texts, _) =
        of_claude(&json!([{"uuid": "c", "name": "n", "summary": " Docks against thistles. ",
        "chat_messages": [{"uuid": "m", "sender": "assistant",
            "content": [{"type": "text", "text": "Answer.", "citations": cited}]}]}]));
    let expected = [
        "assistant: Answer.\n\n[sources]\n- T https://e.org/x\nfirst line\nsecond line\nmore",
        "system: [summary of the conversation]\nDocks against thistles.",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn long_results_in_files_are_text() {
    let preview = "<persisted-output>\nOutput too large (61KB). Full output saved to: \
                   /home/kim/.claude/projects/p/a/tool-results/toolu_1.txt\n\nPreview:\nday 1\n</persisted-output>";
    let other =
        "Error: too long. Output has been saved to C:\\x\\tool-results\\mcp-2.json.\nFormat: JSON";
    let gone = "Full output saved to: /x/tool-results/gone.txt";
    let of_tool = |text: &str| json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": text}]}});
    let content = session(&[of_tool(preview), of_tool(other), of_tool(gone), user(preview)]);
    let expected = [
        "tool: day 1\nday 31".to_owned(),
        format!("tool: {other}\n\nwatered"),
        format!("tool: {gone}"),
        format!("user: {preview}"),
    ];
    let files = [
        ("p/a.jsonl", content.as_bytes()),
        ("p/a/tool-results/toolu_1.txt", b"day 1\nday 31\n"),
        ("p/a/tool-results/mcp-2.json", b"[{\"type\": \"text\", \"text\": \"watered\"}]"),
    ];
    assert_eq!(imported(&files).0, expected);
    let home = Home::new();
    for (name, content) in files {
        home.write(name, String::from_utf8_lossy(content).as_ref());
    }
    home.sync();
    let database = home.engine.config().archive_database();
    assert_eq!(crate::formats::messages(&database), expected);
    // A file that was rewritten has the same texts, so nothing of an earlier one is kept.
    home.write(
        "p/a.jsonl",
        format!("{}\n{content}", "{\"type\":\"mode\",\"sessionId\":\"session\"}"),
    );
    home.sync();
    assert_eq!(crate::formats::messages(&database), expected);
}

#[test]
fn long_results_in_a_zip_are_text() {
    let saved = "Full output saved to: /home/kim/.claude/projects/p/a/tool-results/x.json";
    let result = json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": saved}]}});
    let mut prompt = user("dream");
    prompt["isSidechain"] = json!(true);
    prompt["agentId"] = json!("aauto-dream-1a2b3c");
    let zip = crate::exports::zip_of(&[
        ("p/a.jsonl", session(&[result]).as_bytes()),
        ("p/a/tool-results/x.json", b"[{\"type\": \"text\", \"text\": \"watered\"}]"),
        ("p/a/subagents/agent-aauto-dream-1a2b3c.jsonl", session(&[prompt]).as_bytes()),
    ]);
    let (texts, report) = imported(&[("all.zip", &zip)]);
    assert_eq!(texts, [format!("tool: {saved}\n\nwatered")]);
    assert!(crate::formats::left_out(&report).starts_with("helpers of agents"), "{report:?}");
}

#[test]
fn pictures_without_content_are_named() {
    let user = User::new();
    let picture = |data: Value| {
        let source = json!({"type": "base64", "media_type": "image/png", "data": data});
        json!({"type": "user", "message": {"content": [{"type": "text", "text": "Look."},
            {"type": "image", "source": source}]}})
    };
    let whole = "iVBOR\nw0KGgo=";
    let content = session(&[
        picture(json!("[redacted]")),
        picture(json!("")),
        picture(json!("https://e.org/a.png")),
        picture(json!(null)),
        picture(json!(whole)),
    ]);
    let file = user.write("a.jsonl", content);
    let said = user.run(&["import", &file.to_string_lossy()]);
    said.ends(0);
    for expected in [
        "cannot be read, and not kept: 4 files: message 1 of “Look.” (",
        "message 2 of “Look.” (the transcript has nothing of its content)",
        "message 3 of “Look.” (the transcript has an address",
        "message 4 of “Look.”",
    ] {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
}

#[test]
fn a_home_with_nothing_but_unread_records_says_so() {
    let user = User::new();
    let record = json!({"type": "user", "message": {"content": [{"type": "gyro", "n": 3}]}});
    user.write(".claude/projects/p/a.jsonl", session(&[record]));
    for command in [&["list"][..], &["search", "x"], &["stats"], &["status"]] {
        let said = user.run(command);
        let all = format!("{}{}", said.out, said.errors);
        assert!(all.contains("not read: ") && all.contains("gyro (1)"), "{command:?}: {all}");
    }
    let status: Value = serde_json::from_str(&user.run(&["status", "--json"]).out).unwrap();
    assert!(status.to_string().contains("gyro (1)"), "{status}");
}

#[test]
fn a_file_without_a_known_record_is_named() {
    let user = User::new();
    let record = json!({"type": "new_envelope", "body": "words of a later version"});
    user.write(
        ".codex/sessions/2026/05/01/rollout-a.jsonl",
        session(std::slice::from_ref(&record)),
    );
    user.write(".claude/projects/p/b.jsonl", session(&[record]));
    user.write(".claude/projects/p/c.jsonl", session(&[crate::formats::user("known")]));
    let journal = json!({"type": "started", "key": "k", "agentId": "a1b2c3"});
    user.write(".claude/projects/p/journal.jsonl", session(&[journal]));
    let listed = user.run(&["list"]).errors;
    let named = listed.matches("has no record of an agent that we know").count();
    assert_eq!(named, 2, "{listed}");
    for command in [&["status"], &["doctor"]] {
        let said = user.run(command);
        let all = format!("{}{}", said.out, said.errors);
        assert!(
            all.contains("2 files: has no record of an agent that we know"),
            "{command:?}: {all}"
        );
    }
}

#[test]
fn what_comes_before_the_first_known_record_is_read() {
    let early = json!({"type": "session-header", "text": "words of a header"});
    let bare = json!({"text": "words without a type"});
    for known in [
        session(&[user("asked")]),
        rollout(&[item(json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "asked"}]}))]),
    ] {
        let content = session(&[early.clone(), bare.clone()]) + &known;
        let (texts, report) = imported(&[("a.jsonl", content.as_bytes())]);
        assert_eq!(
            texts,
            ["system: words of a header", "system: words without a type", "user: asked"]
        );
        assert_eq!(unknown(&report), "(no type) 1, session-header 1");
        // Where the reading is interrupted makes no difference.
        let home = Home::new();
        for end in [10, content.find("asked").unwrap(), content.len()] {
            home.write("a.jsonl", &content[..end]);
            home.sync();
        }
        assert_eq!(crate::formats::messages(&home.engine.config().archive_database()), texts);
    }
}

#[test]
fn what_claude_code_puts_in_the_users_place_is_not_the_users() {
    let queue = |operation: &str, content: &str| json!({"type": "queue-operation", "operation": operation, "content": content});
    let said = [
        "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThe build is done",
        "Another Claude session sent a message:\n<cross-session-message from=\"a\">hi</cross-session-message>",
        "<cross-session-message from=\"a\">ho</cross-session-message>",
        "<tick>9:00</tick>",
        "<mcp-resource-update server=\"s\">plum</mcp-resource-update>",
        "<remote-review>fine</remote-review>",
        "[workflow harness - computed task]\nsort the figs",
    ];
    let mut records: Vec<Value> = said.iter().map(|text| user(text)).collect();
    let mut cron = user("water the beds");
    cron["promptSource"] = json!("scheduled");
    let mut fired = user("weed the beds");
    fired["origin"] = json!("cron");
    records.extend([
        cron,
        fired,
        queue("enqueue", said[3]),
        queue("remove", said[3]),
        user("mine"),
    ]);
    let mut expected: Vec<String> = said.iter().map(|text| format!("system: {text}")).collect();
    expected.extend(
        ["system: water the beds", "system: weed the beds", "user: mine"].map(str::to_owned),
    );
    let content = session(&records);
    assert_eq!(transcript(&content), expected);
    let home = Home::new();
    home.write("a.jsonl", content);
    home.sync();
    let page = home.engine.list(&Default::default(), 0..1, &Default::default()).unwrap();
    assert_eq!(page.abouts[0].title, "mine");
}

#[test]
fn what_a_stream_repeats_is_read_once() {
    let of = |uuid: &str, blocks: Value| json!({"type": "assistant", "uuid": uuid, "message": {"id": "m", "role": "assistant", "content": blocks}});
    let text = json!({"type": "text", "text": "a plum"});
    let longer = json!({"type": "text", "text": "and a fig, ripe"});
    let tool = json!({"type": "tool_use", "id": "t1", "name": "Dig", "input": {"bed": 3}});
    let result = |uuid: &str| {
        let block = json!({"type": "tool_result", "tool_use_id": "t1", "content": "dug"});
        json!({"type": "user", "uuid": uuid, "message": {"content": [block]}, "toolUseResult": {"stdout": "dug"}})
    };
    let mut replay = user("asked");
    replay["isReplay"] = json!(true);
    let records = [
        user("asked"),
        replay,
        json!({"type": "stream_event", "event": {"delta": {"text": "a pl"}}}),
        of("1", json!([text])),
        of("2", json!([tool])),
        of("3", json!([text, tool])),
        of("4", json!([text, tool, {"type": "text", "text": "and a fig"}])),
        of("5", json!([text, tool, longer])),
        result("6"),
        result("7"),
        user("asked"),
    ];
    let said = transcript(&session(&records));
    assert_eq!(said.len(), 4, "{said:?}");
    for once in ["a plum", "Dig", "and a fig, ripe"] {
        assert_eq!(said[1].matches(once).count(), 1, "{said:?}");
    }
    assert_eq!([&*said[2], &*said[3]], ["tool: dug", "user: asked"]);
}

#[test]
fn the_outcome_of_a_run_is_read_if_nothing_else_says_it() {
    let result = |more: Value| {
        let mut record = json!({"type": "result", "uuid": format!("{}", more)});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    let answer = json!({"type": "assistant", "message": {"id": "1", "role": "assistant", "content": [{"type": "text", "text": "a fig"}]}});
    let records = [
        user("asked"),
        answer,
        result(json!({"subtype": "success", "is_error": false, "result": "a fig"})),
        result(json!({"subtype": "success", "is_error": false, "result": "a plum"})),
        result(
            json!({"subtype": "error_max_turns", "is_error": true, "errors": ["Reached 3 turns"]}),
        ),
        result(json!({"key": "k", "agentId": "a1", "result": "of a workflow"})),
    ];
    let expected = [
        "user: asked",
        "assistant: a fig",
        "assistant: a plum",
        "system: [error]\nReached 3 turns",
    ];
    assert_eq!(transcript(&session(&records)), expected);
}

#[test]
fn what_only_the_events_of_codex_say_is_read() {
    let plan = json!({"plan": [{"step": "dig the bed", "status": "pending"}]});
    let said = |role: &str, text: &str| {
        item(json!({"type": "message", "role": role,
        "content": [{"type": if role == "user" { "input_text" } else { "output_text" }, "text": text}]}))
    };
    let compacted = |text: &str| {
        (
            "compacted",
            json!({"message": "", "replacement_history": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "asked"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]}),
        )
    };
    let mut planned = plan.clone();
    planned["type"] = json!("plan_update");
    let records = [
        said("user", "asked"),
        event(
            json!({"type": "mcp_startup_complete", "ready": ["a"], "failed": [{"server": "b", "error": "no port"}]}),
        ),
        item(
            json!({"type": "function_call", "name": "update_plan", "call_id": "c", "arguments": plan.to_string()}),
        ),
        event(planned.clone()),
        event(
            json!({"type": "hook_completed", "run": {"status_message": null, "entries": [{"kind": "warning", "text": "mind the wasps"}]}}),
        ),
        said("assistant", "a fig\nand more"),
        event(json!({"type": "task_complete", "last_agent_message": "a fig\nand more"})),
        event(json!({"type": "task_complete", "last_agent_message": "only here"})),
        event(json!({"type": "task_complete", "last_agent_message": null})),
        event(json!({"type": "turn_aborted", "reason": "interrupted"})),
        event(json!({"type": "turn_aborted", "reason": "replaced"})),
        compacted("figs were asked for"),
        compacted("asked"),
    ];
    let said = transcript(&rollout(&records));
    assert_eq!(said.len(), 8, "{said:#?}");
    assert!(said[2].contains("update_plan") && said[2].contains("dig the bed"), "{said:#?}");
    let others = [
        "user: asked",
        "system: [error]\nb: no port",
        &said[2],
        "system: mind the wasps",
        "assistant: a fig\nand more",
        "assistant: only here",
        "system: [interrupted]",
        "system: [summary of the conversation so far]\nfigs were asked for",
    ];
    assert_eq!(said, others);
    planned["plan"][0]["step"] = json!("weed the bed");
    assert_eq!(transcript(&rollout(&[event(planned)])).len(), 1);
}

#[test]
fn texts_in_fields_of_other_names_are_kept() {
    let records = [
        completed(
            json!({"type": "ExitedReviewMode", "id": "r 1", "review": "Review finds a wasp"}),
        ),
        completed(
            json!({"type": "Melody", "cwd": "/my folder", "verses": [{"tune": "a tune of chard"}]}),
        ),
        event(json!({"type": "harvest", "yield": "nine baskets", "path": "/my folder/a"})),
    ];
    let expected =
        ["system: Review finds a wasp", "system: a tune of chard", "system: nine baskets"];
    assert_eq!(transcript(&rollout(&records)), expected);
    let record = json!({"type": "harvest", "version": "1 beta", "of": {"yield": "nine baskets"}});
    assert_eq!(transcript(&session(&[user("asked"), record]))[1..], ["system: nine baskets"]);
}

#[test]
fn messages_of_other_shapes_in_exports_are_kept() {
    let of = |text: &str, metadata: Value| {
        json!({"author": {"role": "user"}, "metadata": metadata,
        "content": {"content_type": "text", "parts": [text]}})
    };
    let hidden = json!({"is_visually_hidden_from_conversation": true});
    let export = chatgpt(&[json!("a bare text"), of("hidden", hidden), of("asked", json!({}))]);
    let (texts, _) = imported(&[("conversations.json", &export)]);
    assert_eq!(texts, ["system: a bare text", "system: hidden", "user: asked"]);
    let (texts, report) = of_claude(&json!([{"uuid": "c", "name": "n", "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "asked"},
        "a bare text",
        {"uuid": "2", "sender": "assistant", "text": "", "error": {"message": "The garden is closed"}},
        {"uuid": "3", "sender": "assistant", "content": [], "novelty": "new words"},
        {"uuid": "4", "sender": "assistant", "content": [], "created_at": "2026-05-01T10:00:00Z"}]}]));
    let expected = [
        "user: asked",
        "system: a bare text",
        "assistant: The garden is closed",
        "assistant: new words",
    ];
    assert_eq!(texts, expected);
    assert_eq!(unknown(&report), "a message that is no object 1, a message without content 2");
}

/// Takes a second: the line is written and read twice.
#[test]
fn a_first_line_that_is_too_long_is_counted_everywhere() {
    let long = format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "x".repeat(129 << 20));
    let content = long + &session(&[user("after it")]);
    let home = Home::new();
    home.write("a.jsonl", &content);
    let report = home.sync();
    let (texts, imported) = imported(&[("a.jsonl", content.as_bytes())]);
    assert_eq!(texts, ["user: after it"]);
    assert_eq!((report.malformed, imported.tally.malformed), (1, 1));
    let database = home.engine.config().archive_database();
    assert_eq!(crate::formats::messages(&database), texts);
}
