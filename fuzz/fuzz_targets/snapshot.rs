//! An index whose files were changed is not used: the answer is that of `LIKE`.
//!
//! Input: a byte that chooses the search text. Then seven bytes per change: two choose a file, four a
//! place in it, and one the kind of change.

#![no_main]

use std::{
    fs, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use libfuzzer_sys::fuzz_target;
use rusqlite::Connection;
use tempfile::TempDir;
use verbatim_search::{
    engine::{Config, Engine, Reindex},
    index::Resources,
    model::{Hit, Request, Stop},
};

const TEXTS: [&str; 6] = ["the", "rare 7", "", "q_x", "%", "和"];

struct Original {
    folder: TempDir,
    files: Vec<PathBuf>,
    answers: Vec<Vec<Hit<'static>>>,
}

thread_local! {
    static ORIGINAL: Original = original();
}

fn engine(folder: &Path, index: &str) -> Engine {
    let db = Some(folder.join("chats.db"));
    Engine::new(Config {
        db,
        home: folder.to_owned(),
        index: Some(folder.join(index)),
        ..Config::default()
    })
}

fn ask(engine: &Engine, text: &str) -> Vec<Hit<'static>> {
    let mut hits = Vec::new();
    let request = Request { text: text.to_owned(), ..Request::default() };
    let plan = engine.exact(&request, &Stop::never(), &mut |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    });
    plan.expect("an answer");
    hits
}

fn original() -> Original {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = Connection::open(folder.path().join("chats.db")).expect("a database");
    connection
        .execute_batch(
            "CREATE TABLE conversations (id TEXT PRIMARY KEY, create_time TEXT, update_time TEXT, title TEXT);
             CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT,
                 content TEXT, create_time TEXT, update_time TEXT, position INTEGER NOT NULL);
             INSERT INTO conversations VALUES ('c', '1', '1', 'The title');
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
             INSERT INTO messages SELECT 'm' || i, 'c', 'user',
                 'the other thing, rare ' || i % 9 || ' q' || i || 'x 和平', i, NULL, i FROM n",
        )
        .expect("messages");
    drop(connection);
    let engine = engine(folder.path(), "index");
    let resources = Resources { memory: 16 << 20, threads: 1 };
    let options = Reindex { resources, full: true };
    engine.upkeep().reindex(options, &Stop::never(), &mut |_| {}).expect("an index");
    let answers =
        TEXTS.iter().map(|text| ask(&self::engine(folder.path(), "none"), text)).collect();
    let mut files = Vec::new();
    collect(&folder.path().join("index"), &mut files).expect("the index");
    files.sort();
    Original { folder, files, answers }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let Some((text, changes)) = data.split_first() else { return };
    ORIGINAL.with(|original| {
        let root = original.folder.path().join("index");
        let copy = original.folder.path().join("copy");
        drop(fs::remove_dir_all(&copy));
        let place =
            |file: &PathBuf| copy.join(file.strip_prefix(&root).expect("a file of the index"));
        for file in &original.files {
            let to = place(file);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            // The fuzzer's clock interrupts system calls.
            while let Err(error) = fs::copy(file, &to) {
                assert_eq!(error.kind(), io::ErrorKind::Interrupted, "{error}");
            }
        }
        for change in changes.chunks_exact(7).take(8) {
            let number = usize::from(u16::from_le_bytes([change[0], change[1]]));
            let file = place(&original.files[number % original.files.len()]);
            let Ok(mut bytes) = fs::read(&file) else { continue };
            let at = u32::from_le_bytes([change[2], change[3], change[4], change[5]]) as usize;
            let at = at % (bytes.len() + 1);
            match change[6] {
                0 => bytes.truncate(at),
                1 => drop(fs::remove_file(&file)),
                2 => bytes.extend_from_within(at..),
                mask if at < bytes.len() => bytes[at] ^= mask,
                _ => {}
            }
            if change[6] != 1 {
                fs::write(&file, bytes).expect("a changed file");
            }
        }
        let number = usize::from(*text) % TEXTS.len();
        let found = ask(&engine(original.folder.path(), "copy"), TEXTS[number]);
        assert_eq!(found, original.answers[number], "{:?}", TEXTS[number]);
    });
});
