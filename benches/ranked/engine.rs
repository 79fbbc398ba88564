//! What users get: the engine, from a question to its answer with passages.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use verbatim_base::call::Call;
use verbatim_engine::{Config, Engine, Mode, Question, Reindex, Resources};

/// The memory that `verbatim reindex` uses unless told otherwise.
const MEMORY: usize = 1 << 30;

/// The number of messages in an answer, as in `verbatim search`.
const LIMIT: usize = 10;

pub(crate) const MODES: [(&str, Mode); 3] =
    [("text", Mode::Text), ("vector", Mode::Vector), ("both", Mode::Both)];

pub(crate) struct Ours {
    engine: Engine,
}

impl Ours {
    /// Opens the engine with everything that ranking needs, built in `home` by one thread.
    pub(crate) fn build(database: &Path, home: &Path) -> Result<Ours> {
        let db = Some(database.into());
        let config = Config { db, home: home.to_owned(), ..Config::default() };
        Ok(Ours { engine: index(config, Resources { memory: MEMORY, threads: 1 })? })
    }

    /// Answers a question; returns how many messages that took.
    pub(crate) fn ask(&self, text: &str, mode: Mode) -> Result<usize> {
        let question =
            Question { concepts: vec![text.to_owned()], mode, limit: LIMIT, ..Question::default() };
        let ranking = self.engine.rank(&question, &Call::default())?;
        ensure!(ranking.notes().is_empty(), "{text}: {:?}", ranking.notes());
        Ok(ranking.items.len())
    }
}

/// Builds the indexes of a database, with words and the vectors of the built-in model.
pub(crate) fn index(config: Config, resources: Resources) -> Result<Engine> {
    let engine = Engine::new(config);
    let never = Call::default();
    engine.upkeep().reindex(Reindex { resources, full: false }, &never, &mut |_| ())?;
    for source in engine.sources() {
        source.enrich(resources, &never, &mut |_| ())?;
    }
    Ok(engine)
}

/// Returns the bytes of all files below a folder that are in folders whose names begin with `name`.
pub(crate) fn bytes_of(folder: &Path, name: &str) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_named = entry.file_name().to_string_lossy().starts_with(name);
        match entry.file_type()?.is_dir() {
            // An empty name matches everything.
            true => sum += bytes_of(&entry.path(), if is_named { "" } else { name })?,
            false if name.is_empty() => sum += entry.metadata()?.len(),
            false => {}
        }
    }
    Ok(sum)
}
