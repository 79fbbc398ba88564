//! A small export for the unit tests of the crates that search.

use std::fs;

use tempfile::TempDir;

use rusqlite::Connection;
use verbatim_base::call::Call;
use verbatim_engine::{Config, Engine, Reindex, Resources};

/// An export in a folder of its own.
pub(crate) struct TestExport {
    pub(crate) engine: Engine,
    pub(crate) connection: Connection,
    _home: TempDir,
}

impl TestExport {
    /// Creates an export with one conversation for each text. A conversation's id is its number.
    pub(crate) fn of(texts: &[&str]) -> TestExport {
        let home = tempfile::tempdir().expect("folders can be made");
        fs::create_dir(home.path().join("db")).expect("folders can be made");
        let connection = Connection::open(home.path().join("db/a.db")).expect("it can be made");
        let schema = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
            CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
                content TEXT, create_time);";
        connection.execute_batch(schema).expect("the schema is sound");
        let config = Config { home: home.path().to_owned(), ..Config::default() };
        let export = TestExport { engine: Engine::new(config), connection, _home: home };
        texts.iter().zip(0..).for_each(|(text, number)| export.add(number, text));
        export
    }

    /// Creates an export like [`TestExport::of`], and its index.
    pub(crate) fn indexed(texts: &[&str]) -> TestExport {
        let export = TestExport::of(texts);
        export.reindex();
        export
    }

    pub(crate) fn reindex(&self) {
        let resources = Resources { memory: 64 << 20, threads: 1 };
        let options = Reindex { resources, full: false };
        let done = self.engine.upkeep().reindex(options, &Call::default(), &mut |_| ());
        done.expect("it can be indexed");
    }

    /// Returns an engine with a transcript that contains a text, and with an export that cannot be read.
    #[allow(dead_code, reason = "not every crate needs it")]
    pub(crate) fn with_broken_export(&self, text: &str) -> Engine {
        let (home, transcripts) = (self._home.path(), self._home.path().join("transcripts"));
        fs::create_dir_all(transcripts.join("shop")).expect("folders can be made");
        let line = serde_json::json!({
            "type": "user", "uuid": "u1", "sessionId": "session", "cwd": "/shop",
            "timestamp": "2025-10-30T11:00:00Z", "message": {"role": "user", "content": text},
        });
        fs::write(transcripts.join("shop/deadbeef.jsonl"), format!("{line}\n")).expect("a file");
        let db = home.join("broken.db");
        fs::write(&db, "no database, but long enough to be looked at").expect("a file");
        let config = self.engine.config().clone();
        let engine =
            Engine::new(Config { db: Some(db.into()), archives: vec![transcripts], ..config });
        engine.upkeep().sync_transcripts(&Default::default(), &|_| {}).expect("they are read");
        engine
    }

    /// Adds a conversation with one message.
    pub(crate) fn add(&self, number: u32, text: &str) {
        let sql = "INSERT INTO conversations VALUES (?1, 'Title ' || ?1)";
        self.connection.execute(sql, [number]).expect("a new id");
        let sql = "INSERT INTO messages VALUES ('m' || ?1, ?1, 'user', ?2, 1700000000 + ?1)";
        self.connection.execute(sql, (number, text)).expect("a new id");
    }
}
