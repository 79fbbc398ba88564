//! Texts that are too long for memory, in files.

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io::{self, BufWriter, Write},
    ops::Deref,
    path::Path,
    str,
};

use crate::{map_faults::Mapped, private};

const BUFFER: usize = 1 << 18;

/// A text in a mapped file without a name. The system can drop its pages from memory at any time.
pub struct LongText(Mapped);

impl fmt::Debug for LongText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LongText").field(&self.0.len()).finish()
    }
}

impl LongText {
    /// Makes a text from the bytes that `write` writes to a file in `folder`, or else to a
    /// temporary file. `failed` converts an error of the file into the caller's error type.
    pub fn write<E>(
        folder: Option<&Path>,
        failed: impl Fn(io::Error) -> E,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<LongText, E> {
        let file: io::Result<File> =
            folder.map_or_else(private::large_temporary_file, tempfile::tempfile_in);
        let mut out = BufWriter::with_capacity(BUFFER, file.map_err(&failed)?);
        write(&mut out)?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        Ok(LongText(Mapped::new(&file).map_err(failed)?))
    }

    /// Returns the text with U+FFFD for invalid UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        // `from_utf8` checks valid text several times faster than `from_utf8_lossy`.
        str::from_utf8(self).map_or_else(|_| String::from_utf8_lossy(self), Cow::Borrowed)
    }
}

impl Deref for LongText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
