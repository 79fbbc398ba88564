//! Reads contents that are too long for memory, piece by piece.
//!
//! Usually SQLite returns a text as one buffer. This module uses SQLite's incremental I/O, which reads a text
//! page by page.

use std::{
    collections::HashMap,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use rusqlite::blob::Blob;

use super::{
    Database, Error, Result,
    long_column::{self, LONGEST_WHOLE},
};
use verbatim_base::{long_text::LongText, model::Hit};
use verbatim_text::{content, matcher::Matcher, pieces::PieceMatcher};

const PIECE: usize = 1 << 20;

/// A `content` that is too long to be read in one piece.
#[derive(Clone, Copy, Debug)]
pub struct LongContent<'d> {
    database: &'d Database,
    key: i64,
    length: u64,
}

/// The texts of a content that is too long for memory, in mapped files.
#[derive(Debug)]
pub struct LongTexts {
    /// The text as stored in the database.
    pub stored: LongText,
    /// The text of JSON parts, if the content is in that form.
    pub decoded: Option<LongText>,
}

impl LongTexts {
    pub(crate) fn into_shown(self) -> LongText {
        self.decoded.unwrap_or(self.stored)
    }
}

/// The contents that are too long for memory, by the number of the hit.
#[derive(Debug, Default)]
pub struct LongContents(HashMap<usize, LongText>);

impl LongContents {
    /// Keeps the content of the hit with this number.
    pub(super) fn keep(&mut self, number: usize, content: Option<LongText>) {
        self.0.extend(content.map(|content| (number, content)));
    }

    /// Replaces the content of the hit, if a long content is kept for the hit.
    pub fn complete<'a>(&'a self, number: usize, hit: Hit<'a>) -> Hit<'a> {
        match self.0.get(&number) {
            Some(long) => Hit { content: long.text(), ..hit },
            None => hit,
        }
    }
}

impl<'d> LongContent<'d> {
    /// Returns whether contents of a database can be read piece by piece.
    pub(super) fn are_readable(database: &Database) -> Result<bool> {
        Ok(database.layout().message_key.is_some() && database.query(long_column::is_readable)?)
    }

    /// Returns the content of a row if it is too long to be read in one piece.
    pub(super) fn if_long(database: &'d Database, key: i64, length: Option<i64>) -> Option<Self> {
        let length = u64::try_from(length?).ok()?;
        (length > LONGEST_WHOLE as u64).then_some(LongContent { database, key, length })
    }

    /// Returns the length of the stored content in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Calls `each` with the pieces of the content in order, until `each` fails.
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

    /// Returns up to `count` bytes of the content from `start` on.
    pub fn bytes_at(&self, start: u64, count: usize) -> Result<Vec<u8>> {
        let mut blob = self.open()?;
        let mut bytes = Vec::new();
        let read = blob.seek(SeekFrom::Start(start.min(self.length)));
        read.and_then(|_| blob.take(count as u64).read_to_end(&mut bytes))
            .map_err(|error| self.failed(error))?;
        Ok(bytes)
    }

    /// Copies the content to files on the disk of `folder`, or to temporary files. `parts` tells whether to
    /// decode JSON parts.
    pub fn texts(&self, parts: bool, folder: Option<&Path>) -> Result<LongTexts> {
        let failed = |source| match folder {
            Some(folder) => Error::Io { path: folder.to_owned(), source },
            None => Error::Spill(source),
        };
        let stored = LongText::write(folder, failed, |out| {
            self.read(&mut |piece| out.write_all(piece).map_err(failed))
        })?;
        if !parts {
            return Ok(LongTexts { stored, decoded: None });
        }
        let valid = match std::str::from_utf8(&stored) {
            Ok(_) => None,
            Err(_) => Some(LongText::write(folder, failed, |out| {
                for chunk in stored.utf8_chunks() {
                    let mark = if chunk.invalid().is_empty() { "" } else { "\u{FFFD}" };
                    write!(out, "{}{mark}", chunk.valid()).map_err(failed)?;
                }
                Ok(())
            })?),
        };
        let text = std::str::from_utf8(valid.as_ref().unwrap_or(&stored)).unwrap_or_default();
        let mut is_parts = false;
        let decoded = LongText::write(folder, failed, |out| {
            is_parts = content::write_parts(text, out).map_err(failed)?;
            Ok(())
        })?;
        Ok(LongTexts { stored, decoded: is_parts.then_some(decoded) })
    }

    /// Returns for each matcher whether the content matches, as SQLite or `verbatim_matches` would. The
    /// matchers look for `texts`. `parts` tells whether to decode JSON parts.
    pub(super) fn matches(
        &self,
        matchers: &[Matcher],
        texts: &[&str],
        parts: bool,
    ) -> Result<Vec<bool>> {
        let pieces = matchers.iter().zip(texts);
        let pieces: Option<Vec<_>> =
            pieces.map(|(matcher, text)| PieceMatcher::new(matcher, text)).collect();
        let known = pieces.map(|pieces| self.match_pieces(pieces, parts)).transpose()?;
        if let Some(known) = known.flatten() {
            return Ok(known);
        }
        let LongTexts { stored, decoded } = self.texts(parts, None)?;
        let any_matches = |matcher: &Matcher| match (&decoded, matcher.matches_stored_parts()) {
            (Some(decoded), false) => matcher.matches_bytes(decoded),
            (Some(decoded), true) => {
                matcher.matches_bytes(&stored) || matcher.matches_bytes(decoded)
            }
            (None, _) => matcher.matches_bytes(&stored),
        };
        Ok(matchers.iter().map(any_matches).collect())
    }

    /// Returns for each matcher whether the content matches. Returns `None` if reading in pieces is not
    /// enough: the content is not UTF-8, has a NUL, or may be JSON parts.
    fn match_pieces(
        &self,
        mut matchers: Vec<PieceMatcher<'_>>,
        may_be_parts: bool,
    ) -> Result<Option<Vec<bool>>> {
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
    pub fn equals(&self, bytes: &[u8]) -> Result<bool> {
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

    fn open(&self) -> Result<Blob<'_>> {
        let opened =
            self.database.connection().blob_open("main", "messages", "content", self.key, true);
        opened.map_err(|error| self.database.error(error))
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Io { path: self.database.path().to_owned(), source: error }
    }
}
