//! Ours: the engine that Verbatim's tools and commands ask, over an index built beforehand.

use std::path::Path;

use anyhow::{Result, bail};
use verbatim_search::model::{Hit, Request};

use crate::race::Racer;

/// Whether the engine is there to be measured.
pub(crate) const READY: bool = false;

/// Builds the index of `database` in the folder `index` with `threads` threads.
pub(crate) fn build(_database: &Path, _index: &Path, _threads: usize) -> Result<()> {
    bail!("no engine yet")
}

pub(crate) struct Ours {}

impl Ours {
    pub(crate) fn open(_database: &Path, _index: &Path) -> Result<Ours> {
        bail!("no engine yet")
    }
}

impl Racer for Ours {
    fn ask(&self, _request: &Request) -> Result<Vec<Hit>> {
        bail!("no engine yet")
    }
}
