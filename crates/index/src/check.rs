//! Checks every byte of an index directory, and finds unused files in it.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::Result;
use super::directory::{CommitId, IndexDir, is_ours};
use super::segment::SegmentManifest;
use super::snapshot::SnapshotManifest;
use verbatim_base::call::Stop;

impl IndexDir {
    /// Computes the checksum of every file of a snapshot and its segments, including files that
    /// would be trusted when they are opened; returns the bytes read.
    ///
    /// Term indexes and vectors are not checked here.
    pub fn check(&self, current: &CommitId, stop: &Stop) -> Result<u64> {
        let folder = self.folder().join(current.name());
        let manifest = SnapshotManifest::read(&folder, current.manifest_checksum())?;
        let mut bytes = 0;
        for segment in manifest.segments() {
            let path = self.folder().join(&segment.name);
            for file in SegmentManifest::read(&path, segment.manifest_checksum)?.files() {
                bytes += file.check(&path, stop)?;
            }
            if let Some(file) = &segment.deleted {
                bytes += file.check(&folder, stop)?;
            }
        }
        Ok(bytes)
    }

    /// Returns the files and folders that the current snapshot does not use. Returns nothing while a process
    /// writes, because that process may be about to use them.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let used = match self.current() {
            Some(current) => match self.used_by(&current) {
                Ok(used) => used,
                Err(_) => return Vec::new(),
            },
            None => BTreeSet::new(),
        };
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let left: Vec<PathBuf> = entries
            .filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                is_ours(&name) && !used.contains(&name)
            })
            .map(|entry| entry.path())
            .collect();
        if self.activity().is_some() { Vec::new() } else { left }
    }
}
