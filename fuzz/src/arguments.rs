//! Calls tools with any arguments: each returns an answer, or an error with a message.
//!
//! Input: a byte that selects the tool, a byte of options, the arguments as JSON.

use std::{cell::RefCell, fs, time::Duration};

use serde_json::{Map, Value};
use tempfile::TempDir;
use verbatim_base::call::Call;
use verbatim_chats::import::Branches;
use verbatim_engine::{Config, Engine, Reindex, import};
use verbatim_index::Resources;
use verbatim_server::tools::{self, Options};

/// Calls after which the home folder is replaced by a new one.
const CALLS_PER_HOME: u32 = 2_000;

const EXPORT: &str = include_str!("../../tests/golden/import/claude.json");

thread_local! {
    static HOME: RefCell<Option<(TempDir, Engine, u32)>> = const { RefCell::new(None) };
}

fn home() -> (TempDir, Engine, u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let export = folder.path().join("conversations.json");
    fs::write(&export, EXPORT).expect("an export");
    let db = folder.path().join("db");
    fs::create_dir(&db).expect("a folder");
    import::import(&[export], &db.join("chats.db"), Branches::All, &|_| {}).expect("an import");
    let engine = Engine::new(Config { home: folder.path().to_owned(), ..Config::default() });
    let resources = Resources { memory: 16 << 20, threads: 1 };
    let options = Reindex { resources, full: true };
    engine.upkeep().reindex(options, &Call::default(), &mut |_| {}).expect("an index");
    (folder, engine, 0)
}

pub(super) fn run(data: &[u8]) {
    let [tool, bits, json @ ..] = data else { return };
    let Ok(arguments) = serde_json::from_slice::<Map<String, Value>>(json) else { return };
    HOME.with_borrow_mut(|held| {
        let (_, engine, calls) = held.get_or_insert_with(home);
        let tool = &tools::ALL[usize::from(*tool) % tools::ALL.len()];
        let options = Options {
            case_sensitive: bits & 1 != 0,
            raw_content: bits & 2 != 0,
            ..Options::default()
        };
        let call = Call::default().within(Duration::from_secs(20));
        let answer = tool.call(engine, &options, &arguments, &call);
        assert!(!answer.text.is_empty(), "{}: {answer:?}", tool.name);
        assert_eq!(answer.log, None, "{}: {answer:?}", tool.name);
        *calls += 1;
        if *calls == CALLS_PER_HOME {
            *held = None;
        }
    });
}
