//! Reports on the databases and indexes: their contents, sizes and faults.

pub(crate) mod doctor;
pub(crate) mod finding;
mod sample;
pub(crate) mod statistics;
pub(crate) mod status;

use std::collections::BTreeMap;

use super::{
    error::Error,
    source::{Source, Sources, Store},
};
use crate::model::{Instant, Stop};

/// Reports on folders, databases and indexes.
pub(crate) struct Reports<'a> {
    pub(super) sources: &'a Sources,
}

impl Reports<'_> {
    /// Returns the sources with their sizes, and whether their indexes are current.
    pub(crate) fn status(&self, stop: &Stop) -> status::Status {
        status::status(self.sources, stop)
    }

    /// Returns the number of messages in a source's index, and its size in bytes with terms and
    /// vectors.
    pub(crate) fn indexed(&self, source: &Source, stop: &Stop) -> (u64, u64) {
        if let Store::Cluster { cluster, .. } = source.store() {
            let Ok(view) = cluster.view(stop) else { return (0, 0) };
            let messages = view.conversations().iter().map(|it| it.turns as u64);
            return (messages.sum(), 0);
        }
        let Some(snapshot) = source.latest_index(stop) else { return (0, 0) };
        let segments = snapshot.segments();
        let bytes = segments.iter().map(|segment| status::size_of(segment.folder)).sum();
        (snapshot.messages().into(), bytes)
    }

    /// Counts the messages that have a time by the number that `of` gives it.
    pub(crate) fn counted_by(
        &self,
        of: &dyn Fn(Instant) -> i64,
        stop: &Stop,
    ) -> Result<BTreeMap<i64, u64>, Error> {
        statistics::counted_by(self.sources, of, stop)
    }

    /// Checks folders, databases and indexes. If `full` is set, checks everything without a time limit.
    /// Calls `begin` before each slow check, with its description.
    pub(crate) fn examine(
        &self,
        full: bool,
        stop: &Stop,
        begin: &mut dyn FnMut(&str),
        report: &mut dyn FnMut(finding::Finding),
    ) {
        doctor::examine(self.sources, full, stop, begin, report);
    }
}
