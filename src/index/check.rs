//! Looks at every byte of a index directory, and at what lies there besides.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::{
    Error,
    directory::{CommitId, IndexDir, is_ours},
    segment::{self, read_manifest},
    snapshot::Manifest,
};
use crate::model::Stop;

impl IndexDir {
    /// Takes the checksum of every file that a snapshot and its parts consist of, also of those
    /// that are trusted when they are opened; returns the bytes read.
    ///
    /// For what is derived from a part its own reader answers.
    pub fn check(&self, current: &CommitId, stop: &Stop) -> Result<u64, Error> {
        let folder = self.folder().join(current.name());
        let manifest: Manifest = read_manifest(&folder, current.manifest_checksum())?;
        let mut bytes = 0;
        for (name, checksum, dead) in manifest.parts() {
            let part = self.folder().join(name);
            for file in read_manifest::<segment::Manifest>(&part, checksum)?.files() {
                bytes += file.check(&part, stop)?;
            }
            if let Some(file) = dead {
                bytes += file.check(&folder, stop)?;
            }
        }
        Ok(bytes)
    }

    /// Returns what lies here and is of no use to the snapshot in use; nothing while a process
    /// writes, which may be about to use it.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let mut used = BTreeSet::new();
        if let Some(current) = self.current() {
            let folder = self.folder().join(current.name());
            let Ok(manifest) = read_manifest::<Manifest>(&folder, current.manifest_checksum())
            else {
                return Vec::new();
            };
            used.extend(manifest.part_names());
            used.insert(current.name().to_owned());
        }
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
