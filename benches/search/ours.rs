//! Our side: the engine that Verbatim's tools and commands use, with an index built beforehand.

use std::{ops::ControlFlow, path::Path};

use anyhow::{Result, bail};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{Config, Engine, Reindex, SearchPlan};
use verbatim_index::Resources;

use crate::race::Racer;

/// The memory that `verbatim reindex` uses unless told otherwise.
pub(crate) const MEMORY: usize = 1 << 30;

/// Builds or refreshes the index of `database` in the folder `index` with `threads` threads.
pub(crate) fn build(database: &Path, index: &Path, threads: usize, full: bool) -> Result<()> {
    let options = Reindex { resources: Resources { memory: MEMORY, threads }, full };
    Ours::open(database, index).engine.upkeep().reindex(options, &Call::default(), &mut |_| {})?;
    Ok(())
}

pub(crate) struct Ours {
    engine: Engine,
}

impl Ours {
    pub(crate) fn open(database: &Path, index: &Path) -> Ours {
        let home = index.to_owned();
        let (db, index) = (Some(database.into()), Some(index.to_owned()));
        Ours { engine: Engine::new(Config { db, home, index, ..Config::default() }) }
    }
}

impl Racer for Ours {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let mut hits = Vec::new();
        let answered = self.engine.exact(request, &Call::default(), &mut |hit| {
            hits.push(hit);
            ControlFlow::Continue(())
        })?;
        match answered {
            SearchPlan::ByIndex { .. } => Ok(hits),
            SearchPlan::ByLike { why, .. } => bail!("the index did not answer: {why:?}"),
            SearchPlan::ByCluster { .. } => bail!("a cluster answered"),
        }
    }
}
