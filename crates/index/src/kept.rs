//! Files that are derived from a snapshot as a whole, and kept beside it.
//!
//! ```text
//! SNAPSHOT/NAME/
//!     manifest    format, checksum of the snapshot's manifest, and a record of the file
//!     data
//! ```
//!
//! The first process that needs such a file makes it. A file that is absent, damaged, of another format or of
//! another snapshot is made again. It goes with its snapshot.
//!
//! Invariant: a kept file that opens without an error has the bytes that were kept.

use std::{io, ops::Deref};

use serde::{Deserialize, Serialize};

use super::artifact::{
    FileRecord, OpenFile, Unfinished, damaged, read_manifest, unreadable, write_file,
};
use super::{Result, Snapshot, write_error};
use verbatim_base::map_faults::Mapped;

const DATA: &str = "data";

#[derive(Debug, Serialize, Deserialize)]
struct KeptManifest {
    format: u32,
    snapshot: u32,
    file: FileRecord,
}

/// A file that was kept with a snapshot, mapped into memory.
#[derive(Debug)]
pub struct KeptFile {
    file: OpenFile,
    bytes: Mapped,
}

impl KeptFile {
    /// Returns whether the file is unchanged since it was opened. Costs one system call.
    pub fn is_intact(&self) -> bool {
        self.file.is_intact()
    }
}

impl Deref for KeptFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Snapshot {
    /// Opens the file that was kept under a name.
    pub fn kept(&self, name: &str, format: u32) -> Result<KeptFile> {
        let folder = self.folder().join(name);
        let manifest: KeptManifest = read_manifest(&folder, format, None)?;
        if manifest.snapshot != self.manifest_checksum() || manifest.file.name != DATA {
            return Err(damaged(&folder, "it is of another snapshot"));
        }
        let file = manifest.file.open(&folder)?;
        let bytes = file.map().map_err(unreadable(&folder))?;
        Ok(KeptFile { file, bytes })
    }

    /// Keeps bytes under a name, in the place of those kept before.
    pub fn keep(&self, name: &str, format: u32, bytes: &[u8]) -> Result<()> {
        self.write_kept(name, format, bytes).map_err(write_error(&self.folder().join(name)))
    }

    fn write_kept(&self, name: &str, format: u32, bytes: &[u8]) -> io::Result<()> {
        let unfinished = Unfinished::begin(self.folder(), name)?;
        let written = write_file(unfinished.folder(), DATA, bytes)?;
        let file = FileRecord::sync(unfinished.folder(), written)?;
        unfinished.publish(&KeptManifest { format, snapshot: self.manifest_checksum(), file })
    }
}
