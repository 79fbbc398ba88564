//! Reads the column `content`, which may be too long to be read in one piece.

use rusqlite::Connection;

pub(super) const LONGEST_WHOLE: usize = 4 << 20;

/// The number of bytes that are checked at the beginning and at the end of a content.
const ENDS: usize = 64;

/// Returns whether SQLite can read contents piece by piece, and the pieces are the bytes that `LIKE`
/// compares.
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

/// Returns SQL for two columns. The first is `shown`, or NULL if the content of the row is too long. The
/// second is the length of `content` in bytes, or NULL if contents cannot be read piece by piece.
pub(super) fn columns(shown: &str, content: &str, is_readable: bool) -> String {
    match is_readable {
        true => format!(
            "CASE WHEN octet_length({content}) > {LONGEST_WHOLE} THEN NULL ELSE {shown} END, \
             octet_length({content})"
        ),
        false => format!("{shown}, NULL"),
    }
}
