//! Removes indexes, so that they lose the texts of conversations that are gone.

use std::path::Path;

use crate::config::Config;
use crate::error::{Error, Result};
use verbatim_chats::db::{self, Probe};
use verbatim_index::{IndexDir, KeptVectors};

/// Removes the index of a database, with all files that contain text of its conversations. If `keeps_vectors` is
/// set, vectors stay until the index is built again, which takes over those of texts that it has and removes the
/// others.
///
/// Removes the indexes too that no program asks: one of them may be of this database, in an earlier place.
pub(crate) fn wipe_indexes(
    config: &Config,
    database: &Path,
    keeps_vectors: bool,
    wait: &mut dyn FnMut(&Path) -> bool,
) -> Result<()> {
    let probe = Probe::new(database)?;
    let index = config.index_folder();
    wipe(&IndexDir::for_database(&index, probe.real()), wait)?;
    if !keeps_vectors {
        forget_vectors(config, database)?;
    }
    for stray in IndexDir::strays(&index) {
        wipe(&stray, wait)?;
        KeptVectors::remove(stray.folder());
    }
    Ok(())
}

/// Removes the vectors that [`wipe_indexes`] kept.
pub(crate) fn forget_vectors(config: &Config, database: &Path) -> Result<()> {
    let probe = Probe::new(database)?;
    KeptVectors::remove(IndexDir::for_database(&config.index_folder(), probe.real()).folder());
    Ok(())
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
