//! Databases of our own whose rows were changed: recorded threads, and copied transcripts. Each
//! question gets an answer or an error, and what goes on works or says why it does not.
//!
//! Input: a byte that chooses the database. Then changes with a NUL after each: the column, the kind
//! of value, the value, which all its rows get.

use std::{
    fs::{self, File},
    ops::ControlFlow,
    path::Path,
    time::UNIX_EPOCH,
};

use rusqlite::{Connection, types::Value};
use tempfile::TempDir;
use verbatim_base::{
    call::Call,
    model::{Instant, Request},
};
use verbatim_chats::db::threads::{Save, Start, Thread};
use verbatim_engine::{Config, Engine, Memory, Scope};

const CLAUDE: &str = include_str!(
    "../../tests/golden/archives/claude/-home-ann-code-parser/5f0c9a52-0000-4000-8000-000000000001.jsonl"
);
const CODEX: &str = include_str!(
    "../../tests/golden/archives/codex/2025/09/24/rollout-2025-09-24T19-22-20-01997e76-0000-7000-8000-000000000001.jsonl"
);

/// The most turns that are asked for.
const LIMIT: usize = 10;

struct Original {
    folder: TempDir,
    threads: Vec<u8>,
    transcripts: Vec<u8>,
}

thread_local! {
    static ORIGINAL: Original = original();
}

fn config(folder: &Path) -> Config {
    Config {
        home: folder.join("home"),
        archives: vec![folder.join("archives")],
        leave_indexes: true,
        ..Config::default()
    }
}

fn original() -> Original {
    let folder = tempfile::tempdir().expect("a folder");
    let archives = folder.path().join("archives");
    fs::create_dir(&archives).expect("a folder");
    for (name, content) in [("claude.jsonl", CLAUDE), ("codex.jsonl", CODEX)] {
        fs::write(archives.join(name), content).expect("a transcript");
    }
    let config = config(folder.path());
    let engine = Engine::new(config.clone());
    go_on(&engine);
    engine.close();
    drop(engine);
    let threads = fs::read(config.threads_database()).expect("the threads");
    let transcripts = fs::read(config.archive_database()).expect("the transcripts");
    Original { folder, threads, transcripts }
}

/// Writes to both databases.
fn go_on(engine: &Engine) {
    drop(engine.upkeep().sync_transcripts(&Call::default(), &|_| {}));
    let memory = engine.memory();
    let start = Start { topic: "A topic", user: "ann", platform: Some("web"), turn: None };
    if let Ok(started) = memory.start_thread(&start, &Call::default()) {
        let continuation = &started.thread.continuation;
        drop(memory.continue_thread(continuation, "user", "a text", &Call::default()));
    }
    let turns = [("user".to_owned(), "a turn".to_owned())];
    let save = Save { key: Some("key"), title: Some("Saved"), summary: "A summary", turns: &turns };
    drop(memory.save_conversation(&save));
}

/// Sets the times of the databases back: a reader waits for what was written a moment ago.
fn set_back(config: &Config) {
    for database in [config.threads_database(), config.archive_database()] {
        for path in [database.with_extension("db-wal"), database] {
            if let Ok(file) = File::options().write(true).open(path) {
                file.set_modified(UNIX_EPOCH).expect("its time");
            }
        }
    }
}

/// Returns the threads whose ids begin with a digit, as all that are recorded do.
fn threads(memory: &Memory) -> Vec<Thread> {
    let digits = (0..16).map(|digit| format!("{digit:x}"));
    digits.flat_map(|digit| memory.threads_named(&digit).unwrap_or_default()).collect()
}

fn ask(engine: &Engine) {
    set_back(engine.config());
    let memory = engine.memory();
    for thread in threads(memory) {
        if let Ok((turns, _)) = memory.thread_history(&thread.id, LIMIT) {
            assert!(turns.len() <= LIMIT);
        }
        drop(memory.continue_thread(&thread.continuation, "user", "more", &Call::default()));
    }
    drop(memory.thread_analytics());
    drop(memory.threads_named("a"));
    drop(memory.thread_keyed("key"));
    let request = Request { text: "te".to_owned(), ..Request::default() };
    let call = Call::default();
    drop(engine.exact(&request, &call, &mut |_| ControlFlow::Continue(())));
    for source in engine.sources() {
        let reader = source.reader(&call);
        drop(reader.count(&Scope::default(), &Instant::day, &call));
    }
    for listing in
        engine.list(&Scope::default(), 0..LIMIT, &call).map(|it| it.abouts).unwrap_or_default()
    {
        drop(engine.find(&call).session(listing.source, &listing.id, false));
    }
}

/// Returns a value: a number, a text or bytes.
fn value(kind: u8, bytes: &[u8]) -> Value {
    let number = || std::str::from_utf8(bytes).ok()?.parse().ok();
    match kind % 5 {
        0 => Value::Null,
        1 => Value::Integer(number().unwrap_or(i64::MIN)),
        2 => Value::Real(
            std::str::from_utf8(bytes).ok().and_then(|it| it.parse().ok()).unwrap_or(1e300),
        ),
        3 => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => Value::Blob(bytes.to_owned()),
    }
}

fn change(database: &Path, changes: &[u8]) {
    let connection = Connection::open(database).expect("a database");
    let sql = "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
               WHERE t.type = 'table' ORDER BY t.name, c.cid";
    let mut statement = connection.prepare(sql).expect("a query");
    let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let columns: Vec<(String, String)> = columns.and_then(Iterator::collect).expect("the columns");
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF")
        .expect("a setting");
    for change in changes.split(|byte| *byte == 0).take(8) {
        let [column, kind, bytes @ ..] = change else { continue };
        let (table, column) = &columns[usize::from(*column) % columns.len()];
        let sql = format!("UPDATE OR IGNORE {table} SET {column} = ?1");
        // A table may not take the value.
        drop(connection.execute(&sql, [value(*kind, bytes)]));
    }
}

pub(super) fn run(data: &[u8]) {
    let Some((which, changes)) = data.split_first() else { return };
    ORIGINAL.with(|original| {
        let config = config(original.folder.path());
        drop(fs::remove_dir_all(&config.home));
        fs::create_dir_all(config.index_folder()).expect("a folder");
        let of_threads = config.threads_database();
        let of_transcripts = config.archive_database();
        fs::write(&of_threads, &original.threads).expect("the threads");
        fs::write(&of_transcripts, &original.transcripts).expect("the transcripts");
        change(if which & 1 == 0 { &of_threads } else { &of_transcripts }, changes);
        let engine = Engine::new(config);
        ask(&engine);
        go_on(&engine);
        ask(&engine);
        for thread in threads(engine.memory()) {
            drop(engine.memory().delete_thread(&thread.id));
        }
    });
}
