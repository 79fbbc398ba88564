//! Threads, recorded as the tool `manage_conversation` does.

use std::path::Path;

use verbatim_base::call::Call;
use verbatim_engine::{Config, Engine, Start};

/// Records a thread in a home folder, with a first turn if one is given; returns its id.
pub(crate) fn record(home: &Path, topic: &str, turn: Option<&str>) -> String {
    let engine = Engine::new(Config { home: home.to_owned(), ..Config::default() });
    let turn = turn.map(|text| ("user", text));
    let start = Start { topic, user: "default", platform: None, turn };
    let recorded = engine.memory().start_thread(&start, &Call::default());
    recorded.expect("a thread can be recorded").thread.id
}
