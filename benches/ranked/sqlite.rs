//! The ranking that SQLite offers: FTS5's BM25, and sqlite-vec.

#![allow(unsafe_code)]

use std::{fs, path::Path};

use anyhow::Result;
use rusqlite::{Connection, ffi, params};

/// A database that has the same messages twice: words in FTS5, vectors in sqlite-vec.
pub(crate) struct Sqlite {
    connection: Connection,
}

/// A kind of table in the database.
#[derive(Clone, Copy)]
pub(crate) enum Table {
    /// FTS5 with English stemming, without the texts.
    Words,
    /// sqlite-vec, float32.
    Floats,
    /// sqlite-vec, int8.
    Bytes,
}

impl Sqlite {
    /// Begins an empty database.
    pub(crate) fn create(path: &Path) -> Result<Sqlite> {
        // SAFETY: the function has the signature that SQLite expects of an extension's entry; the
        // crate declares it without its parameters.
        unsafe {
            let entry = sqlite_vec::sqlite3_vec_init as *const ();
            ffi::sqlite3_auto_extension(Some(std::mem::transmute::<
                *const (),
                unsafe extern "C" fn(
                    *mut ffi::sqlite3,
                    *mut *mut std::ffi::c_char,
                    *const ffi::sqlite3_api_routines,
                ) -> std::ffi::c_int,
            >(entry)));
        }
        let _ = fs::remove_file(path);
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000;
             CREATE VIRTUAL TABLE words USING fts5(content, content = '', tokenize = 'porter unicode61');
             CREATE VIRTUAL TABLE floats USING vec0(v float[256] distance_metric=cosine);
             CREATE VIRTUAL TABLE bytes USING vec0(v int8[256] distance_metric=cosine);",
        )?;
        Ok(Sqlite { connection })
    }

    /// Fills a table, in one transaction; rows are numbered from 0.
    pub(crate) fn fill<T: rusqlite::ToSql>(
        &mut self,
        table: Table,
        rows: impl Iterator<Item = T>,
    ) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare(match table {
                Table::Words => "INSERT INTO words(rowid, content) VALUES (?, ?)",
                Table::Floats => "INSERT INTO floats(rowid, v) VALUES (?, ?)",
                Table::Bytes => "INSERT INTO bytes(rowid, v) VALUES (?, vec_int8(?))",
            })?;
            for (number, row) in rows.enumerate() {
                insert.execute(params![number as i64, row])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Returns the numbers of the `k` best rows for a question.
    pub(crate) fn best(
        &self,
        table: Table,
        question: &dyn rusqlite::ToSql,
        k: usize,
    ) -> Result<Vec<u32>> {
        let mut select = self.connection.prepare_cached(match table {
            Table::Words => "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
            Table::Floats => "SELECT rowid FROM floats WHERE v MATCH ? AND k = ? ORDER BY distance",
            Table::Bytes => {
                "SELECT rowid FROM bytes WHERE v MATCH vec_int8(?) AND k = ? ORDER BY distance"
            }
        })?;
        let rows = select.query_map(params![question, k as i64], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Bytes of the tables whose names begin with a word.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(self.connection.query_row(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
            [],
            |row| row.get::<_, i64>(0),
        )? as u64)
    }
}
