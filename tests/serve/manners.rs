//! The protocol beyond calling tools: resources, prompts, logging, progress, cursors.

use std::path::Path;

use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use verbatim_base::call::Call;
use verbatim_engine::{Config, Engine};
use verbatim_server::tools::{self, Options};

use crate::calls::sampled;
use crate::corpus::{SCHEMA, folder, folder_with};
use crate::mcp::spawned;
use crate::schema;

/// A client that stores the server's notifications.
struct Listener(mpsc::UnboundedSender<(&'static str, Value)>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        note: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(("progress", serde_json::to_value(note).unwrap()));
    }

    #[expect(deprecated, reason = "older revisions know no other way")]
    async fn on_logging_message(
        &self,
        note: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(("log", serde_json::to_value(note).unwrap()));
    }
}

/// A client with its server.
struct Client {
    running: RunningService<RoleClient, Listener>,
    _child: tokio::process::Child,
}

impl std::ops::Deref for Client {
    type Target = RunningService<RoleClient, Listener>;

    fn deref(&self) -> &Self::Target {
        &self.running
    }
}

fn program(db: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_verbatim"));
    let home = db.parent().unwrap().join("home");
    command.env_clear().arg("serve").arg("--home").arg(home).arg("--db").arg(db);
    command
}

async fn connect(
    command: tokio::process::Command,
) -> (Client, mpsc::UnboundedReceiver<(&'static str, Value)>) {
    let (send, heard) = mpsc::unbounded_channel();
    let (child, pipes) = spawned(command);
    (Client { running: Listener(send).serve(pipes).await.unwrap(), _child: child }, heard)
}

fn block_on<F: Future>(work: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

#[test]
fn all_tools_together_cost_a_model_little() {
    let mut total = 0;
    for tool in tools::ALL {
        let described = json!({"name": tool.name, "description": tool.description,
            "inputSchema": (tool.schema)(), "outputSchema": tool.output_schema.map(|schema| schema())});
        total += described.to_string().len();
        for schema in [Some((tool.schema)()), tool.output_schema.map(|schema| schema())] {
            let Some(schema) = schema.map(Value::Object) else { continue };
            schema::assert_valid(&schema);
            assert_eq!(schema["type"], "object");
        }
        // By its contract, `manage_conversation` ignores extra fields.
        let strict = (tool.name != "manage_conversation").then_some(&json!(false));
        assert_eq!((tool.schema)().get("additionalProperties"), strict, "{}", tool.name);
    }
    // About 3.5 bytes per token.
    assert!(total * 2 / 7 < 3000, "{} tokens", total * 2 / 7);
}

#[test]
fn conversations_are_resources() {
    let (_home, db) = sampled();
    block_on(async {
        let (client, _) = connect(program(&db)).await;
        let listed = client.list_resources(None).await.unwrap();
        assert_eq!((listed.resources.len(), listed.next_cursor), (4, None));
        let first = &listed.resources[0];
        assert_eq!(first.uri, "verbatim://conversation/550e8400-e29b-41d4-a716-446655440000");
        assert_eq!(first.title.as_deref(), Some("Database Migration Planning"));
        assert_eq!(
            first.description.as_deref(),
            Some("7 messages from 2025-12-01 09:00 UTC on, export")
        );
        let annotations = first.annotations.as_ref().unwrap();
        assert_eq!(annotations.last_modified.as_deref(), Some("2025-12-01T09:06:00Z"));
        assert_eq!(listed.resources[3].uri, "verbatim://conversation/no%23title");
        for (resource, part) in
            listed.resources.iter().zip(["PostgreSQL", "REST API", "カフェ", "a # in its id"])
        {
            let read =
                client.read_resource(ReadResourceRequestParams::new(&resource.uri)).await.unwrap();
            let [ResourceContents::TextResourceContents { uri, mime_type, text, .. }] =
                &read.contents[..]
            else {
                panic!("{read:?}")
            };
            assert_eq!((uri, mime_type.as_deref()), (&resource.uri, Some("text/markdown")));
            assert!(text.starts_with("# Conversation: ") && text.contains(part), "{text}");
        }
        let uri = "verbatim://conversation/550E8400-E29B-41D4-A716-446655440000";
        let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
        assert!(format!("{read:?}").contains("PostgreSQL"), "an id in capitals: {read:?}");
        for uri in [
            "verbatim://conversation/nothing",
            "verbatim://conversation/550e8400",
            "verbatim://conversation/",
            "file:///etc/passwd",
            "x",
        ] {
            let error = client
                .read_resource(ReadResourceRequestParams::new(uri))
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("there is no resource {uri:?}")), "{error}");
        }
        let templates = client.list_all_resource_templates().await.unwrap();
        assert_eq!(templates[0].uri_template, "verbatim://conversation/{id}");
        client.running.cancel().await.unwrap();
    });
}

#[test]
fn long_lists_have_cursors() {
    let (_home, db) = folder_with("a.db");
    let connection = crate::corpus::database(&db, &[]);
    connection
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO conversations SELECT 'c' || i, i, i, 'Talk ' || i FROM n;
             INSERT INTO messages SELECT 'm' || id, id, 'user', title, create_time, NULL, 0 FROM conversations
             WHERE id LIKE 'c%' AND id <> 'conv-0001';",
        )
        .unwrap();
    drop(connection);
    block_on(async {
        let (client, _) = connect(program(&db)).await;
        let all = client.list_all_resources().await.unwrap();
        assert_eq!(all.len(), 200, "the most recent ones");
        let titles: Vec<_> = all.iter().map(|one| one.title.clone().unwrap()).collect();
        let expected: Vec<_> = (101..=300).rev().map(|n| format!("Talk {n}")).collect();
        assert_eq!(titles, expected);
        for cursor in ["x", "7", "-1", "100000"] {
            let page = PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned()));
            let error = client.list_resources(Some(page.clone())).await.unwrap_err().to_string();
            assert!(error.contains("list again without a cursor"), "{error}");
            assert!(client.list_tools(Some(page)).await.is_err());
        }
        client.running.cancel().await.unwrap();
    });
}

#[test]
fn prompts_say_how_to_look() {
    let (_home, db) = sampled();
    block_on(async {
        let (client, _) = connect(program(&db)).await;
        let listed = client.list_all_prompts().await.unwrap();
        let golden = serde_json::to_string_pretty(&listed).unwrap() + "\n";
        crate::golden::golden("mcp/prompts.json", &golden);
        let get = |name: &str, arguments: Value| {
            let arguments = arguments.as_object().unwrap().clone();
            client.get_prompt(GetPromptRequestParams::new(name).with_arguments(arguments))
        };
        let mut texts = String::new();
        for prompt in &listed {
            let got = get(&prompt.name, json!({"topic": "the borrow checker", "project": "web"}))
                .await
                .unwrap();
            let message = serde_json::to_value(&got.messages[0]).unwrap();
            assert_eq!(message["role"], "user");
            texts += &format!(
                "# {}\n\n{}\n\n",
                prompt.name,
                message["content"]["text"].as_str().unwrap()
            );
        }
        crate::golden::golden("mcp/prompts.md", &texts);
        for (name, arguments, problem) in [
            ("recall", json!({}), "needs an argument \"topic\""),
            ("recall", json!({"topic": " "}), "needs an argument \"topic\""),
            ("recall", json!({"topic": 5}), "topic takes a text"),
            ("recall", json!({"topic": "x", "colour": "red"}), "no argument \"colour\""),
            ("sing", json!({"topic": "x"}), "there is no prompt \"sing\""),
        ] {
            let error = get(name, arguments).await.unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        client.running.cancel().await.unwrap();
        // With fewer tools, prompts name only the tools that are offered.
        let mut command = program(&db);
        command.args(["--tools", "conversation_search"]);
        let (client, _) = connect(command).await;
        let arguments = json!({"topic": "x"}).as_object().unwrap().clone();
        let prompt =
            client.get_prompt(GetPromptRequestParams::new("recall").with_arguments(arguments));
        let got = serde_json::to_string(&prompt.await.unwrap()).unwrap();
        assert!(got.contains("`conversation_search`") && !got.contains("`read`"), "{got}");
        client.running.cancel().await.unwrap();
    });
}

#[test]
#[expect(deprecated, reason = "older revisions know no other way")]
fn clients_hear_what_they_want_to_hear() {
    use rmcp::model::{LoggingLevel, SetLevelRequestParams};

    let (_home, db) = folder_with("a.db");
    std::fs::write(&db, "no database").unwrap();
    block_on(async {
        let (client, mut heard) = connect(program(&db)).await;
        let capabilities = client.peer_info().unwrap().capabilities.clone();
        let capabilities = serde_json::to_value(capabilities).unwrap();
        for name in ["tools", "resources", "prompts", "logging"] {
            assert!(capabilities[name].is_object(), "{name}: {capabilities}");
        }
        let call = || client.call_tool(CallToolRequestParams::new("conversation_search"));
        call().await.unwrap();
        assert!(heard.try_recv().is_err(), "nobody asked");
        client.set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await.unwrap();
        call().await.unwrap();
        let (kind, note) = heard.recv().await.unwrap();
        assert_eq!(kind, "log");
        assert_eq!(note["level"], "error");
        assert_eq!(note["logger"], "verbatim");
        assert!(note["data"].as_str().unwrap().contains("not an SQLite database"), "{note}");
        client.set_level(SetLevelRequestParams::new(LoggingLevel::Emergency)).await.unwrap();
        call().await.unwrap();
        client.set_level(SetLevelRequestParams::new(LoggingLevel::Debug)).await.unwrap();
        call().await.unwrap();
        let mut levels = [heard.recv().await.unwrap(), heard.recv().await.unwrap()]
            .map(|(_, note)| note["level"].as_str().unwrap().to_owned());
        // A client handles notifications concurrently.
        levels.sort();
        assert_eq!(levels, ["debug", "error"], "one call was silent");
        client.running.cancel().await.unwrap();
    });
}

#[test]
fn long_work_gives_signs_of_life() {
    use rmcp::model::{ClientRequest, Request};
    use rmcp::service::PeerRequestOptions;

    let (_home, db) = folder_with("a.db");
    crate::mcp::large(&db);
    block_on(async {
        let (client, mut heard) = connect(program(&db)).await;
        let call = CallToolRequestParams::new("conversation_search")
            .with_arguments(crate::mcp::slow().as_object().cloned().unwrap());
        let request = ClientRequest::CallToolRequest(Request::new(call));
        // The client puts a progress token into every request.
        let handle = client
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .unwrap();
        let mut last = 0.0;
        for _ in 0..2 {
            let (kind, note) = heard.recv().await.unwrap();
            let progress = note["progress"].as_f64().unwrap();
            assert!(kind == "progress" && progress > last, "{note}");
            assert!(
                note["message"].as_str().unwrap().starts_with("conversation_search: at work for ")
            );
            last = progress;
        }
        handle.cancel(None).await.unwrap();
        client.running.cancel().await.unwrap();
    });
}

/// Returns the approximate number of tokens of a text for a model: at most one for every 3.5 ASCII
/// characters, and one for every three bytes of other scripts.
fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    (ascii * 2).div_ceil(7) + (text.len() - ascii).div_ceil(3)
}

/// Makes a home folder with more text than fits into any answer; returns its engine and the path of
/// its longest conversation.
fn verbose_home(home: &Path, word: &str) -> (Engine, String) {
    let db = home.join("chats.db");
    let connection = rusqlite::Connection::open(&db).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let text = |bytes: usize| format!("needle {word} ").repeat(bytes / (word.len() + 8));
    for conversation in 0..30 {
        let title = format!("{conversation} {}", text(900));
        let row = [format!("long-{conversation:04}"), title];
        connection.execute("INSERT INTO conversations VALUES (?1, '1', '1', ?2)", row).unwrap();
        for position in 0..if conversation == 0 { 60 } else { 3 } {
            let role = if position % 2 == 0 { "user" } else { "assistant" };
            let row = rusqlite::params![
                format!("{conversation}-{position}"),
                format!("long-{conversation:04}"),
                role,
                format!("{position} {}", text(7000)),
                position
            ];
            let sql = "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, 1700000000 + ?5, NULL, ?5)";
            connection.execute(sql, row).unwrap();
        }
    }
    let notes = home.join("notes");
    let folder = notes.join("plan/2025-11-10/001-a");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.md"), format!("{}\n", text(7000)).repeat(20)).unwrap();
    let path = format!("{}#long-0000", db.display());
    let config = Config {
        db: Some(db.into()),
        home: home.to_owned(),
        workspaces: vec![notes],
        ..Config::default()
    };
    (Engine::new(config), path)
}

#[test]
fn answers_stay_as_short_as_the_documents_say() {
    let readme = include_str!("../../docs/mcp.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let promise = "Answers of every tool but `conversation_search` stay below 20,000 tokens";
    assert!(readme.contains(promise));
    let options = Options::default();
    for (script, word) in [("Latin", "harbour"), ("Cyrillic", "гавань"), ("Chinese", "港口港口")]
    {
        let home = folder();
        let (engine, path) = verbose_home(home.path(), word);
        let call = |name: &str, arguments: &Value| {
            let tool = tools::ALL.iter().find(|tool| tool.name == name).unwrap();
            let arguments = arguments.as_object().unwrap();
            let answer = tool.call(&engine, &options, arguments, &Call::default());
            assert!(!answer.is_error, "{name} {arguments:?}: {}", answer.text);
            answer.text
        };
        let thread: Value =
            serde_json::from_str(&call("manage_conversation", &json!({"action": "start"})))
                .unwrap();
        let mut next = thread["data"]["continuation_id"].clone();
        for _ in 0..12 {
            let query = format!("needle {word} ").repeat(1000);
            let turn = json!({"action": "continue", "continuation_id": next, "query": query});
            let answer: Value = serde_json::from_str(&call("manage_conversation", &turn)).unwrap();
            next = answer["data"]["continuation_id"].clone();
        }
        let id = &thread["data"]["thread_id"];
        let query = format!("needle {word}");
        for (name, arguments) in [
            ("query_conversations", json!({"mode": "search", "query": query})),
            (
                "query_conversations",
                json!({"mode": "search", "query": query, "searchMode": "both", "includeTranscript": true}),
            ),
            ("query_conversations", json!({"mode": "get", "sessionId": "long-0000"})),
            ("query_conversations", json!({"mode": "list"})),
            ("search", json!({"query": query})),
            ("search", json!({"query": "needle", "mode": "text", "response_format": "json"})),
            ("read", json!({"path": path})),
            ("read", json!({"path": path, "startLine": 1, "endLine": 60})),
            ("search_workspace", json!({"query": "needle"})),
            ("manage_conversation", json!({"action": "history", "thread_id": id})),
            ("manage_conversation", json!({"action": "search", "query": query})),
            (
                "manage_conversation",
                json!({"action": "continue", "continuation_id": next, "query": query}),
            ),
            ("manage_conversation", json!({"action": "analytics"})),
            ("save_conversation_context", json!({"summary": query, "sessionKey": "k"})),
            ("delete_conversation", json!({"sessionKey": "k", "confirm": true})),
        ] {
            let tokens = tokens(&call(name, &arguments));
            assert!(tokens < 20_000, "{script} {name} {arguments}: {tokens} tokens");
        }
        // The contract of this tool has no bound but these: 50 messages of 2,000 characters.
        let all = call("conversation_search", &json!({"query": "needle"}));
        assert_eq!(all.split("\n\n---\n\n").count(), 50);
        assert!(tokens(&all) > 20_000 && all.chars().count() < 50 * 3_000, "{}", tokens(&all));
    }
}
