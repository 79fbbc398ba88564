//! Keeps all derived files current: transcript store, indexes, terms and vectors.

pub(crate) mod diff;
pub(crate) mod encode;
pub(crate) mod enrich;
pub(crate) mod events;
pub(crate) mod follow;
pub(crate) mod home;
pub(crate) mod index_all;
pub(crate) mod maintainer;
pub(crate) mod merge;
pub(crate) mod refresh;
pub(crate) mod transcripts;

use std::time::{Duration, Instant};
use std::{fs, path::PathBuf, sync::Arc, thread};

use self::enrich::EnrichOptions;
use self::index_all::{Completing, IndexReport, IndexStep, IndexWork};
use self::maintainer::Maintainer;
use self::refresh::{Progress, Reindex, Reindexed};
use self::transcripts::{ArchiveProgress, ArchiveReport};
use super::error::{Error, Result};
use super::source::{FallbackReason, Source, SourceKind, Sources};
use verbatim_base::call::Call;
use verbatim_index::Resources;

/// Wait between two checks whether another process has finished its build.
const ELSEWHERE: Duration = Duration::from_millis(100);

/// Time during which a refresh is tried again while other programs write to the database.
const PATIENCE: Duration = Duration::from_secs(10);

/// The size in bytes of a transcript store from which an exact search needs an index.
const WORTH_AN_INDEX: u64 = 4 << 20;

/// The maximum size in bytes of a transcript store whose first index a search builds in passing. That takes
/// seconds.
const MAX_IN_PASSING: u64 = 128 << 20;

/// How an index that is missing or not current gets built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexNeed {
    /// The source is so small that searches need no index.
    Small,
    /// The next search in the terminal builds the index.
    BySearch,
    /// A command or a server builds the index.
    ByCommand,
}

impl IndexNeed {
    /// Returns how the index of a source gets built, from the size of its database in bytes.
    pub fn new(kind: SourceKind, bytes: u64, why: &FallbackReason) -> IndexNeed {
        match why {
            FallbackReason::Moved => IndexNeed::BySearch,
            FallbackReason::NoIndex | FallbackReason::Stale if kind == SourceKind::Archive => {
                match bytes {
                    ..WORTH_AN_INDEX => IndexNeed::Small,
                    MAX_IN_PASSING.. if *why == FallbackReason::NoIndex => IndexNeed::ByCommand,
                    _ => IndexNeed::BySearch,
                }
            }
            _ => IndexNeed::ByCommand,
        }
    }
}

/// Access to the work that keeps an engine's indexes and transcript store current.
#[derive(Clone, Copy, Debug)]
pub struct Upkeep<'a> {
    pub(super) sources: &'a Arc<Sources>,
}

impl Upkeep<'_> {
    /// Returns a maintainer, which keeps the indexes current in the background.
    pub fn maintainer(&self) -> Maintainer {
        Maintainer::new(Arc::clone(self.sources))
    }

    /// Refreshes the index of the export, unless it is current. It is an error if there is no export, or
    /// if another process is building the index.
    pub fn reindex(
        &self,
        options: Reindex,
        call: &Call,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed> {
        self.sources.export()?.reindex(options, call, progress)
    }

    /// Updates the transcript store and refreshes the indexes of all sources, with the files for ranking and, at
    /// last, the vectors by the sentence encoder.
    pub fn index_all(
        &self,
        options: Reindex,
        call: &Call,
        progress: &dyn Fn(IndexStep<'_>),
    ) -> IndexReport {
        let sources = self.sources;
        IndexWork { sources, options, is_after_import: false, call, tell: progress }.run()
    }

    /// Does the same as [`Upkeep::index_all`], as after an import: waits for another process that builds the same
    /// index, and leaves the vectors by the sentence encoder to the background if it would take long to make them.
    pub fn index_after_import(
        &self,
        resources: Resources,
        call: &Call,
        progress: &dyn Fn(IndexStep<'_>),
    ) -> IndexReport {
        let options = Reindex { resources, full: false };
        let sources = self.sources;
        IndexWork { sources, options, is_after_import: true, call, tell: progress }.run()
    }

    /// Builds all files that ranking a source needs: the index, the terms and, with the built-in model,
    /// the vectors. If another process builds them, waits for it.
    pub fn complete(
        &self,
        source: &Source,
        resources: Resources,
        call: &Call,
        progress: &mut dyn FnMut(Completing),
    ) -> Result<()> {
        if source.database().is_none() {
            // An import into a cluster builds the index with terms and vectors.
            return Ok(());
        }
        let options = Reindex { resources, full: false };
        let begun = Instant::now();
        while let Err(error) =
            source.reindex(options, call, &mut |step| progress(Completing::Index(step)))
        {
            let is_elsewhere = matches!(error, Error::Indexing { .. });
            let may_wait = begun.elapsed() < PATIENCE && !call.stop.requested();
            if !(is_elsewhere || error.is_contention() && may_wait) {
                return Err(error);
            }
            thread::sleep(ELSEWHERE);
        }
        let is_built_in = source.model().is_built_in();
        while enrich::is_lacking(source, is_built_in, call) {
            let Some(_writing) = source.index_dir()?.lock()? else {
                thread::sleep(ELSEWHERE);
                continue;
            };
            let options =
                EnrichOptions { with_vectors: is_built_in, ..EnrichOptions::all(resources) };
            enrich::enrich(source, options, call, &mut |step| {
                progress(Completing::Ranking(step));
            })?;
            break;
        }
        Ok(())
    }

    /// Builds or refreshes indexes, without the files for ranking, if a search needs them and the work is short:
    /// that of the transcripts, and those of databases that were moved or copied with their indexes. Does nothing
    /// while another process writes or builds an index.
    pub fn index_in_passing(
        &self,
        resources: Resources,
        call: &Call,
        progress: &mut dyn FnMut(SourceKind, Progress),
    ) -> Result<()> {
        if self.sources.config().leave_indexes {
            return Ok(());
        }
        for source in self.sources.present() {
            let Some(path) = source.database() else { continue };
            let Err(why) = source.current_index(call) else { continue };
            let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
            if IndexNeed::new(source.kind, bytes, &why) != IndexNeed::BySearch {
                continue;
            }
            let options = Reindex { resources, full: false };
            match source.reindex(options, call, &mut |now| progress(source.kind, now)) {
                Err(Error::Indexing { .. }) => {}
                Err(error) if error.is_contention() => {}
                result => drop(result?),
            }
        }
        Ok(())
    }

    /// Updates the transcript store from the files of the transcripts.
    pub fn sync_transcripts(
        &self,
        call: &Call,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<ArchiveReport> {
        Ok(transcripts::sync(&self.sources.current_config(), &mut None, call, progress)?)
    }

    /// Returns the folders in which a change may concern a source, whether they exist or not.
    pub fn watched_folders(&self) -> Vec<PathBuf> {
        maintainer::watched_folders(self.sources.config())
    }
}
