//! Removes indexes, so that they lose the texts of conversations that are gone.

use std::path::Path;

use crate::config::Config;
use crate::error::{Error, Result};
use verbatim_chats::db::{self, Probe};
use verbatim_index::IndexDir;

/// Removes the index of a database, with all files that contain text of its conversations. Removes the indexes
/// of other databases with this file name too: one of them may be this database's index from before the home
/// folder was moved. The others are built again when they are needed.
pub(crate) fn wipe_indexes(
    config: &Config,
    database: &Path,
    wait: &mut dyn FnMut(&Path) -> bool,
) -> Result<()> {
    let probe = Probe::new(database)?;
    let index_dir = IndexDir::for_database(&config.index_folder(), probe.real());
    let namesakes = index_dir.namesakes();
    namesakes.iter().chain([&index_dir]).try_for_each(|index_dir| wipe(index_dir, wait))
}

fn wipe(index_dir: &IndexDir, wait: &mut dyn FnMut(&Path) -> bool) -> Result<()> {
    if !index_dir.folder().exists() {
        return Ok(());
    }
    let writing = loop {
        match index_dir.lock()? {
            Some(writing) => break writing,
            None if wait(index_dir.folder()) => {}
            None => return Err(db::Error::Stopped.into()),
        }
    };
    if writing.wipe() {
        Ok(())
    } else {
        Err(Error::NotWiped { folder: index_dir.folder().to_owned() })
    }
}
