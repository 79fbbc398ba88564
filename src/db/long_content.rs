//! Contents that are too long for memory, read piece by piece.
//!
//! SQLite gives a text of a row as one buffer. Its incremental I/O reads the pages that hold the text
//! instead.

use std::io::{self, Read, Seek, SeekFrom};

use rusqlite::{Connection, blob::Blob};

use super::{Database, Error};

/// Contents with more bytes are read piece by piece.
pub(super) const LONGEST_WHOLE: usize = 4 << 20;

/// Bytes of either end that are looked at.
const ENDS: usize = 64;

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
    pub(super) fn new(database: &'d Database, key: i64, length: u64) -> LongContent<'d> {
        LongContent { database, key, length }
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

/// Returns whether SQLite can read the contents of a database piece by piece, as the bytes that its
/// `LIKE` reads.
pub(super) fn is_readable(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT (SELECT encoding = 'UTF-8' FROM pragma_encoding) \
               AND EXISTS (SELECT 1 FROM pragma_table_list('messages') \
                           WHERE schema = 'main' AND type = 'table' AND NOT wr) \
               AND EXISTS (SELECT 1 FROM pragma_table_xinfo('messages') \
                           WHERE lower(name) = 'content' AND hidden = 0)";
    connection.query_row(sql, [], |row| row.get(0))
}

/// Returns whether a long content begins and ends as JSON parts do.
pub(super) fn may_be_parts(connection: &Connection, key: i64) -> rusqlite::Result<bool> {
    let blob = connection.blob_open("main", "messages", "content", key, true)?;
    let end = blob.len().saturating_sub(ENDS);
    let mut ends = [[0; ENDS]; 2];
    blob.read_at_exact(&mut ends[0], 0)?;
    blob.read_at_exact(&mut ends[1], end)?;
    let first = ends[0].trim_ascii_start().strip_prefix(b"[").unwrap_or_default();
    let begins = matches!(first.trim_ascii_start().first(), Some(b'"' | b'{'));
    Ok(begins && ends[1].trim_ascii_end().ends_with(b"]"))
}

/// Returns an expression for the content as `LIKE` reads it, NULL where it is too long, and one for
/// its length if it may be too long.
pub(super) fn columns(content: &str, is_readable: bool) -> String {
    match is_readable {
        true => format!(
            "CASE WHEN octet_length({content}) > {LONGEST_WHOLE} THEN NULL \
             ELSE CAST({content} AS TEXT) END, octet_length({content})"
        ),
        false => format!("CAST({content} AS TEXT), NULL"),
    }
}
