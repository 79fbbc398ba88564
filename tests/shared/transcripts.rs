//! Transcripts of coding agents, and homes with an archive of them.
#![allow(dead_code, reason = "not every binary needs it")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::{ArchiveReport, Config, Engine, SourceKind};

use crate::corpus::folder;

/// A home with an archive.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
    pub(crate) engine: Engine,
}

impl Home {
    pub(crate) fn new() -> Home {
        let folder = folder();
        fs::create_dir(folder.path().join("archive")).expect("folders can be made");
        Home { engine: engine(folder.path()), folder }
    }

    /// A home that forgets the transcripts that are deleted.
    pub(crate) fn forgetful() -> Home {
        let home = Home::new();
        let config = Config { forget_deleted: true, ..home.engine.config().clone() };
        Home { engine: Engine::new(config), ..home }
    }

    /// The path of a transcript in the archive.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join("archive").join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("folders can be made");
        path
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("files can be written");
        path
    }

    pub(crate) fn append(&self, name: &str, content: impl AsRef<[u8]>) {
        let mut file = File::options().append(true).open(self.path(name)).expect("it is there");
        file.write_all(content.as_ref()).expect("files can be written");
    }

    #[track_caller]
    pub(crate) fn sync(&self) -> ArchiveReport {
        self.engine
            .upkeep()
            .sync_transcripts(&Call::default(), &|_| {})
            .expect("transcripts can be synchronised")
    }

    /// Synchronises the store, and returns its content.
    #[track_caller]
    pub(crate) fn synced(&self) -> String {
        self.sync();
        self.held()
    }

    pub(crate) fn held(&self) -> String {
        dump(&self.engine.config().archive_database(), self.folder.path())
    }

    /// The files that the conversations of the store are from.
    pub(crate) fn origins(&self) -> Vec<PathBuf> {
        let store = Connection::open(self.engine.config().archive_database()).unwrap();
        let mut files = store.prepare("SELECT file FROM verbatim_transcripts").unwrap();
        let files = files.query_map([], |row| row.get::<_, String>(0)).unwrap();
        files.map(|file| file.unwrap().into()).collect()
    }

    /// The texts of the messages that hold a text.
    pub(crate) fn found(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let sources = self.engine.sources();
        let Some(source) = sources.iter().find(|source| source.kind == SourceKind::Archive) else {
            return found;
        };
        let request = Request { text: text.to_owned(), ..Request::default() };
        source
            .exact(&request, &Call::default(), &mut |hit| {
                // The title may hold the text instead.
                if hit.content.to_lowercase().contains(&text.to_lowercase()) {
                    found.push(hit.content.into_owned());
                }
                std::ops::ControlFlow::Continue(())
            })
            .expect("the store can be searched");
        found
    }
}

pub(crate) fn engine(home: &Path) -> Engine {
    Engine::new(Config {
        home: home.to_owned(),
        archives: vec![home.join("archive")],
        ..Config::default()
    })
}

/// The content of a store, without the paths of this machine.
fn dump(database: &Path, home: &Path) -> String {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("there is a store");
    let mut lines = Vec::new();
    for sql in [
        "SELECT c.id, c.title, c.create_time, c.update_time, v.source, v.model, t.file, t.session,
             t.project, t.folder, t.branch
         FROM conversations c JOIN verbatim_conversations v ON v.conversation_id = c.id
             JOIN verbatim_transcripts t ON t.conversation_id = c.id ORDER BY c.id",
        "SELECT conversation_id, position, id, role, create_time, content FROM messages
         ORDER BY conversation_id, position, rowid",
    ] {
        let mut statement = connection.prepare(sql).expect("the tables are there");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("it can be read");
        while let Some(row) = rows.next().expect("it can be read") {
            let cell = |column| match row.get::<_, rusqlite::types::Value>(column) {
                Ok(rusqlite::types::Value::Null) | Err(_) => "-".to_owned(),
                Ok(rusqlite::types::Value::Integer(number)) => number.to_string(),
                Ok(rusqlite::types::Value::Real(number)) => number.to_string(),
                Ok(rusqlite::types::Value::Text(text)) => format!("{text:?}"),
                Ok(rusqlite::types::Value::Blob(_)) => "blob".to_owned(),
            };
            lines.push((0..columns).map(cell).collect::<Vec<_>>().join(" "));
        }
        lines.push(String::new());
    }
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    lines.join("\n").replace(&*home.to_string_lossy(), "HOME")
}

/// Copies a folder of the golden files into an archive.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folders can be made");
    for entry in fs::read_dir(from).expect("it is there").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).expect("files can be copied");
        }
    }
}

pub(crate) fn goldens(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/archives").join(kind)
}

/// A line of a transcript of Claude Code.
pub(crate) fn line(number: u32, kind: &str, content: &str) -> String {
    let message = match kind {
        "assistant" => serde_json::json!({
            "id": format!("msg_{number}"), "role": kind, "model": "m",
            "content": [{"type": "text", "text": content}],
        }),
        _ => serde_json::json!({"role": kind, "content": content}),
    };
    serde_json::json!({
        "type": kind, "uuid": format!("uuid-{number}"), "sessionId": "session",
        "timestamp": format!("2025-10-30T11:{:02}:{:02}Z", number / 60 % 60, number % 60),
        "cwd": "/home/ann/code", "message": message,
    })
    .to_string()
        + "\n"
}

/// A transcript of Codex, whose messages have no ids; the session may name a parent.
pub(crate) fn rollout(session: &str, parent: Option<&str>, texts: &[&str]) -> String {
    let record = |kind: &str, payload: serde_json::Value| {
        let time = format!("2026-05-01T10:00:{:02}Z", session.len());
        serde_json::json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n"
    };
    let meta = serde_json::json!({"id": session, "cwd": "/x", "forked_from_id": parent});
    let messages = texts.iter().map(|text| {
        let content = [serde_json::json!({"type": "input_text", "text": text})];
        record(
            "response_item",
            serde_json::json!({"type": "message", "role": "user", "content": content}),
        )
    });
    record("session_meta", meta) + &messages.collect::<String>()
}
