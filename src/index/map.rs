//! Files mapped into memory, read-only.

#![allow(unsafe_code)]

use std::{fs::File, io, ops::Deref, path::Path};

use memmap2::Mmap;

/// The bytes of a file; the operating system reads and drops them as it sees fit.
#[derive(Debug)]
pub(super) struct Mapped {
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl Mapped {
    pub(super) fn open(path: &Path) -> io::Result<Mapped> {
        Mapped::of_file(&File::open(path)?)
    }

    pub(super) fn of_file(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped { map: None });
        }
        // SAFETY: files of the index are written once, under a name that is never used again, and
        // only then opened; nothing of ours changes or shortens them afterwards.
        let map = unsafe { Mmap::map(file)? };
        Ok(Mapped { map: Some(map) })
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
