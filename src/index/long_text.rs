//! Texts that are too long for memory, in files.

use std::{
    fs::File,
    io::{BufWriter, Write},
    ops::Deref,
    path::Path,
};

use super::{Error, artifact::Mapped};

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// A text in a mapped file without a name. The system can drop its pages from memory at any time.
pub struct LongText(Mapped);

impl std::fmt::Debug for LongText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LongText").field(&self.0.len()).finish()
    }
}

impl LongText {
    /// Makes a text of the bytes that `write` writes. The file is on the disk of `folder`.
    pub fn write<E: From<Error>>(
        folder: &Path,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<LongText, E> {
        let failed = |error| Error::Write { path: folder.to_owned(), error };
        let file: File = tempfile::tempfile_in(folder).map_err(failed)?;
        let mut out = BufWriter::with_capacity(BUFFER, file);
        write(&mut out)?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        Ok(LongText(Mapped::new(&file).map_err(failed)?))
    }
}

impl Deref for LongText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
