//! A user's folder with everything that the documents name: exports among the downloads, the
//! transcripts of agents, clients, and programs that do nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tempfile::TempDir;

use crate::corpus::folder;
use crate::exports::zip_of;
use crate::transcripts::{copy, goldens};
use crate::user::Said;

/// The id of the conversation that the documents show.
pub(crate) const CHAT: &str = "6a41cf0e-0000-4000-8000-000000000001";

/// The id of the session that the documents resume.
const SESSION: &str = "bb32e6fc-0000-4000-8000-000000000001";

/// An export of Claude.ai that names one model for the whole conversation.
const CLAUDE: &str = r#"[{"uuid": "c1a0de00-0000-4000-8000-000000000001", "name": "Baking",
    "model": "claude-x", "created_at": "2025-01-03T10:00:00Z", "updated_at": "2025-01-03T10:01:00Z",
    "chat_messages": [
        {"uuid": "b1", "sender": "human", "created_at": "2025-01-03T10:00:00Z",
            "text": "How long does a sourdough bread proof?",
            "attachments": [{"file_name": "recipe.txt", "extracted_content": "500 g of flour"}]},
        {"uuid": "b2", "sender": "assistant", "created_at": "2025-01-03T10:00:09Z",
            "text": "Four hours at 24 degrees, or a night in the fridge."}]}]"#;

/// Programs that Verbatim starts; here they do nothing.
const PROGRAMS: [&str; 7] =
    ["xdg-open", "open", "claude", "codex", "some-browser", "some-editor", "some-pager"];

/// A user's folder.
pub(crate) struct Scene(TempDir);

impl Scene {
    /// Makes the folder; nothing is imported.
    pub(crate) fn new() -> Scene {
        let scene = Scene(folder());
        for program in PROGRAMS {
            let path = scene.write(&format!("bin/{program}"), "#!/bin/sh\nexit 0\n");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_verbatim"), scene.path("bin/verbatim")).unwrap();
        fs::create_dir_all(scene.path("work")).unwrap();
        let chat = scene.chat().to_string();
        scene.write("Downloads/chatgpt.zip", zip_of(&[("conversations.json", chat.as_bytes())]));
        let claude = [("conversations.json", CLAUDE.as_bytes()), ("users.json", b"[]")];
        scene.write("Downloads/claude.zip", zip_of(&claude));
        copy(&goldens("claude"), &scene.path(".claude/projects"));
        copy(&goldens("codex"), &scene.path(".codex/sessions"));
        scene.write(&format!(".claude/projects/-home-ann-shop/{SESSION}.jsonl"), session());
        scene.write(".cursor/mcp.json", "{}\n");
        scene
    }

    /// Makes the folder and imports what is in the downloads.
    pub(crate) fn imported() -> Scene {
        let scene = Scene::new();
        scene.run(&["import", "--yes"]).ends(0);
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Returns the program with a command, in the working folder and without a terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.prepared(env!("CARGO_BIN_EXE_verbatim").as_ref());
        command.args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&mut self.command(arguments))
    }

    /// Runs a line as a shell does.
    pub(crate) fn shell(&self, line: &str) -> Output {
        self.prepared("/bin/sh".as_ref()).args(["-c", line]).output().unwrap()
    }

    fn prepared(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.0.path()).current_dir(self.path("work"));
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()));
        command
            .env("VERBATIM_BACKGROUND", "0")
            .env("TZ", "UTC")
            .env("PAGER", "some-pager")
            .env("EDITOR", "some-editor");
        command.env("BROWSER", "some-browser").stdin(Stdio::null());
        command
    }

    /// Returns an export with the conversation that the documents show: old and recent messages.
    fn chat(&self) -> serde_json::Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let texts = [
            "How did we fix the login?",
            "The cookie had expired.",
            "What does the borrow checker do with a vector?",
            "It looks at lifetimes: two borrows that are alive at the same moment.",
            "And async?",
            "The borrow checker looks at what is alive across an await.",
            "So the borrow checker rejects it because of lifetimes?",
            "The borrow checker rejects two mutable borrows.",
        ];
        let mut mapping = serde_json::Map::new();
        for (number, text) in texts.iter().enumerate() {
            let parent = number.checked_sub(1).map(|parent| format!("m{parent}"));
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let model = (role == "assistant").then_some("gpt-4o");
            let message = json!({
                "id": format!("m{number}"), "author": {"role": role},
                "create_time": now - 600.0 + number as f64,
                "content": {"content_type": "text", "parts": [text]},
                "metadata": {"model_slug": model},
            });
            mapping.insert(
                format!("m{number}"),
                json!({"parent": parent, "children": [], "message": message}),
            );
        }
        json!([{"id": CHAT, "title": "Borrow checker and a vector", "create_time": now - 600.0,
            "update_time": now, "mapping": mapping, "current_node": "m7"}])
    }
}

/// Returns the transcript of a session in which two models answered.
fn session() -> String {
    let line = |number: u32, kind: &str, model: Option<&str>, text: &str| {
        json!({"type": kind, "uuid": format!("{SESSION}-{number}"), "sessionId": SESSION,
            "timestamp": format!("2025-11-03T10:00:{number:02}Z"), "cwd": "/home/ann/shop",
            "gitBranch": "main", "message": {"role": kind, "id": format!("msg{number}"),
            "model": model, "content": text}})
        .to_string()
    };
    [
        line(1, "user", None, "Why does the login fail?"),
        line(2, "assistant", Some("claude-opus-4-1"), "The cookie has expired."),
        line(3, "user", None, "Please fix it"),
        line(4, "assistant", Some("claude-haiku-4-5"), "Done: the login works."),
    ]
    .join("\n")
        + "\n"
}
