//! Imports exports into a canonical database.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    db::writer::{self, Changes, Writer},
    import::{self, Branches, Export, ImportTally},
};

/// An error of an import.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An export cannot be read.
    #[error(transparent)]
    Export(#[from] import::Error),
    /// The database cannot be written.
    #[error(transparent)]
    Database(#[from] writer::Error),
}

/// The result of an import.
#[derive(Debug, Default)]
pub struct Report {
    /// Counts of the conversations and messages read from the exports.
    pub tally: ImportTally,
    /// The changes to the database.
    pub changes: Changes,
    /// The exports that could not be read.
    pub failures: Vec<import::Error>,
    /// The duration of the import.
    pub took: Duration,
}

impl Report {
    /// Returns what the exports hold that could not be read, a sentence each; nothing if all of
    /// them was read.
    pub(crate) fn missing(&self) -> Vec<String> {
        let ImportTally { damaged, skipped_count, malformed, .. } = &self.tally;
        let mut missing: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        missing.extend(damaged.iter().cloned());
        let counted = [
            (skipped_count, "of the conversations could not be read"),
            (malformed, "of the lines could not be read"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| **count > 0);
        missing.extend(counted.map(|(count, what)| format!("{count} {what}")));
        missing
    }
}

/// The progress of an import.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read in all.
    pub total: u64,
}

/// Merges the exports at `sources` into the database at `target`, in this order.
///
/// An export that cannot be read is reported, and the others are imported. It is an error only if
/// no export can be read. If there is no database, it is created with the first conversation.
pub fn import(
    sources: &[PathBuf],
    target: &Path,
    branches: Branches,
    progress: &dyn Fn(Progress),
) -> Result<Report, Error> {
    let begun = Instant::now();
    let mut report = Report::default();
    let mut writer = Writer::open(target)?;
    let mut exports = Vec::new();
    for source in sources {
        match Export::open(source) {
            Ok(export) => exports.push((source, export)),
            Err(error) => report.failures.push(error),
        }
    }
    let total = exports.iter().map(|(_, export)| export.size()).sum();
    let done = Cell::new(0);
    let advance = |bytes: u64| {
        done.set(done.get() + bytes);
        progress(Progress { done: done.get(), total });
    };
    for (source, export) in exports {
        let tally = &mut report.tally;
        let before = (tally.conversations, tally.messages, tally.skipped_count);
        let read = export.read(branches, tally, &advance, &mut |format, conversation| {
            writer.put(format.name(), &conversation).map_err(Error::from)
        });
        match read {
            Ok(()) => {}
            Err(Error::Export(error)) => report.failures.push(error),
            Err(error) => return Err(error),
        }
        writer.note(
            &source.to_string_lossy(),
            tally.conversations - before.0,
            tally.messages - before.1,
            tally.skipped_count - before.2,
        )?;
    }
    report.changes = writer.finish()?;
    report.took = begun.elapsed();
    if report.tally.conversations == 0 && !report.failures.is_empty() {
        return Err(report.failures.swap_remove(0).into());
    }
    Ok(report)
}
