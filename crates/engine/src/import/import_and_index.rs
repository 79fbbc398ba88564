//! An import with all that follows it, up to indexes that searches can use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::conversation::forget::Forgetter;
use crate::import::{Error, ImportProgress, Report, Target, import_until};
use crate::upkeep::index_all::{IndexReport, IndexStep};
use crate::{config::Config, decisions::Decisions, source::Sources, upkeep::Upkeep};
use verbatim_base::call::Call;
use verbatim_chats::import::Branches;
use verbatim_index::Resources;

/// How to import and index.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Which branches of conversations to import.
    pub branches: Branches,
    /// The memory and threads to use for the index.
    pub resources: Resources,
    /// Called when the import has waited a while for another program that writes to the database.
    pub on_wait: Option<fn()>,
}

/// A step of an import.
#[derive(Debug)]
pub enum ImportStep<'a> {
    /// An export is read.
    Reading(ImportProgress),
    /// Everything is imported, and indexing begins.
    Imported(&'a Report),
    /// The sources are indexed.
    Indexing(IndexStep<'a>),
}

/// What an import did.
#[derive(Debug)]
pub struct ImportOutcome {
    /// What was imported, and what was left out.
    pub report: Report,
    /// What was indexed; `None` if the import was stopped before, or if there is nothing to index here: a cluster
    /// has its own index.
    pub index: Option<IndexReport>,
    /// The sources of the configuration, with the target of the import as the database.
    pub sources: Arc<Sources>,
}

/// Imports exports into the database of a configuration, forgets again what was forgotten meanwhile, and indexes
/// all sources.
pub(crate) fn import_and_index(
    sources: &Sources,
    exports: &[PathBuf],
    options: ImportOptions,
    call: &Call,
    progress: &dyn Fn(ImportStep<'_>),
) -> Result<ImportOutcome, Error> {
    let config = sources.current_config();
    let target = config.import_store();
    let decisions = Decisions::of(&config)?;
    let into = Target::new(&config, &target, &decisions, options.on_wait);
    let report = import_until(exports, &into, options.branches, call, &|now| {
        progress(ImportStep::Reading(now));
    })?;
    let is_here = target.path().is_some_and(Path::is_file);
    let searched = Sources::new(Config { db: Some(target), ..Config::clone(&config) });
    let mut imported = ImportOutcome { report, index: None, sources: Arc::new(searched) };
    if imported.report.stopped {
        return Ok(imported);
    }
    progress(ImportStep::Imported(&imported.report));
    // The import may have written a conversation again that the user forgot in the meantime.
    Forgetter::new(&imported.sources).forget_imported_again(&decisions, options.resources, call)?;
    if is_here && !config.leave_indexes {
        let upkeep = Upkeep { sources: &imported.sources };
        let mut index = upkeep.index_after_import(options.resources, call, &|step| {
            progress(ImportStep::Indexing(step));
        });
        if let Some(left) = &mut index.left {
            // The maintainer of a server makes them.
            left.is_under_way |= sources.upkeep_state().is_running();
        }
        imported.index = Some(index);
    }
    Ok(imported)
}
