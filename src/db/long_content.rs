//! Contents that are too long for memory, read piece by piece.
//!
//! SQLite gives a text of a row as one buffer. Its incremental I/O reads the pages that hold the text
//! instead.

use std::{
    io::{self, Read, Seek, SeekFrom},
    string::FromUtf8Error,
};

use rusqlite::blob::Blob;

use super::{Database, Error, long_column::LONGEST_WHOLE};
use crate::text::pieces::PieceMatcher;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// A `content` that is too long to be read in one piece.
#[derive(Clone, Copy, Debug)]
pub struct LongContent<'d> {
    database: &'d Database,
    key: i64,
    length: u64,
}

impl<'d> LongContent<'d> {
    /// Returns the content of a row if it is too long to be read in one piece.
    pub(super) fn of(
        database: &'d Database,
        key: i64,
        length: Option<i64>,
    ) -> Option<LongContent<'d>> {
        let length = u64::try_from(length?).ok()?;
        (length > LONGEST_WHOLE as u64).then_some(LongContent { database, key, length })
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Calls `each` with the pieces of the content in order, until it fails.
    pub fn read<E: From<Error>>(
        &self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut blob = self.open()?;
        let mut piece = vec![0; PIECE];
        loop {
            match blob.read(&mut piece).map_err(|error| self.failed(error))? {
                0 => return Ok(()),
                read => each(&piece[..read])?,
            }
            if self.database.is_stopped() {
                return Err(Error::Stopped.into());
            }
        }
    }

    /// Returns some bytes of the content.
    pub fn bytes_at(&self, start: u64, count: usize) -> Result<Vec<u8>, Error> {
        let mut blob = self.open()?;
        let mut bytes = Vec::new();
        let read = blob.seek(SeekFrom::Start(start.min(self.length)));
        read.and_then(|_| blob.take(count as u64).read_to_end(&mut bytes))
            .map_err(|error| self.failed(error))?;
        Ok(bytes)
    }

    /// Returns the whole content as text, with U+FFFD for invalid UTF-8. It is in memory once.
    pub(super) fn text(&self) -> Result<String, Error> {
        let mut bytes = Vec::with_capacity(self.length as usize);
        self.read(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok::<(), Error>(())
        })?;
        let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        Ok(String::from_utf8(bytes).unwrap_or_else(lossy))
    }

    /// Returns for each matcher whether the content matches, as SQLite would say. `None` if that cannot
    /// be told from pieces: the content is not UTF-8 or has a NUL, or `may_be_parts` and it may be JSON
    /// parts.
    pub(super) fn matches(
        &self,
        mut matchers: Vec<PieceMatcher<'_>>,
        may_be_parts: bool,
    ) -> Result<Option<Vec<bool>>, Error> {
        let (mut rest, mut is_plain, mut is_begun) = (Vec::new(), true, !may_be_parts);
        self.read(&mut |piece| {
            if !is_begun && let Some(first) = piece.iter().find(|it| !it.is_ascii_whitespace()) {
                (is_begun, is_plain) = (true, *first != b'[');
            }
            rest.extend_from_slice(piece);
            let text = match std::str::from_utf8(&rest) {
                Ok(text) => text,
                // The character continues in the next piece.
                Err(error) if error.error_len().is_none() => {
                    std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default()
                }
                Err(_) => {
                    is_plain = false;
                    ""
                }
            };
            is_plain &= memchr::memchr(0, text.as_bytes()).is_none();
            if is_plain {
                matchers.iter_mut().for_each(|matcher| matcher.push(text));
            }
            let taken = if is_plain { text.len() } else { rest.len() };
            rest.drain(..taken);
            Ok::<(), Error>(())
        })?;
        let is_known = is_plain && is_begun && rest.is_empty();
        Ok(is_known.then(|| matchers.iter().map(PieceMatcher::matches).collect()))
    }

    /// Returns whether the content has exactly these bytes.
    pub fn equals(&self, bytes: &[u8]) -> Result<bool, Error> {
        let mut rest = bytes;
        let mut is_same = self.length == bytes.len() as u64;
        if is_same {
            self.read(&mut |piece| {
                is_same &= rest.starts_with(piece);
                rest = rest.get(piece.len()..).unwrap_or_default();
                Ok::<(), Error>(())
            })?;
        }
        Ok(is_same)
    }

    fn open(&self) -> Result<Blob<'_>, Error> {
        let opened =
            self.database.connection().blob_open("main", "messages", "content", self.key, true);
        opened.map_err(|error| self.database.error(error))
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Io { path: self.database.path().to_owned(), source: error }
    }
}
