//! Reports about a database: counts, time span, damage, samples of messages.

use rusqlite::{Connection, OptionalExtension};

use super::schema::{self, SchemaState};
use super::{Database, Result, functions, layout, threads, transcripts};
use verbatim_base::model::Instant;

const MOST_FAULTS: u32 = 5;

const CHECKED_KIB: i64 = 64 << 10;

/// Returns the number of conversations with messages, and the number of messages. Conversations without
/// messages are in no list.
pub fn counts(database: &Database) -> Result<(u64, u64)> {
    let sql = "SELECT (SELECT count(*) FROM conversations
                       WHERE id IN (SELECT conversation_id FROM messages)),
                      (SELECT count(*) FROM messages)";
    database.query(|connection| {
        connection.query_row(sql, [], |row| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(1)?.unsigned_abs()))
        })
    })
}

/// Returns the earliest and the latest time of a message that has a conversation. Reads every message.
pub fn span(database: &Database) -> Result<Option<(Instant, Instant)>> {
    let earliest = extreme_time(database, "min")?;
    Ok(earliest.zip(extreme_time(database, "max")?))
}

fn extreme_time(database: &Database, aggregate: &str) -> Result<Option<Instant>> {
    let sql = format!(
        "SELECT m.create_time, {aggregate}(verbatim_instant(m.create_time)) AS instant \
         FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id"
    );
    let time = database.query(|connection| {
        connection.query_row(&sql, [], |row| Ok(functions::instant(row.get_ref(0)?))).optional()
    })?;
    Ok(time.flatten())
}

/// Returns the faults that SQLite finds in the file; with `full`, also compares indexes with tables.
pub fn faults(database: &Database, full: bool) -> Result<Vec<String>> {
    let check = if full { "integrity_check" } else { "quick_check" };
    let mut faults: Vec<String> = database.query(|connection| {
        enlarge_cache(connection)?;
        let sql = format!("PRAGMA {check}({MOST_FAULTS})");
        connection.prepare(&sql)?.query_map([], |row| row.get(0))?.collect()
    })?;
    faults.retain(|fault| fault != "ok");
    Ok(faults)
}

/// Enlarges SQLite's page cache, because a check reads pages in random order.
fn enlarge_cache(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -CHECKED_KIB)
}

/// Returns the keys of up to `count` messages, spread over the whole table.
pub fn sample_keys(database: &Database, count: usize) -> Result<Vec<i64>> {
    let Some(key) = database.layout().message_key else { return Ok(Vec::new()) };
    database.query(|connection| {
        let Some([first, last]) = layout::key_range(connection, key)? else {
            return Ok(Vec::new());
        };
        let sql = format!("SELECT {key} FROM messages WHERE {key} >= ?1 ORDER BY {key} LIMIT 1");
        let mut next = connection.prepare(&sql)?;
        let mut keys = Vec::new();
        let width = i128::from(last) - i128::from(first);
        for number in 0..count as i128 {
            let from = i128::from(first) + width * number / (count.max(2) - 1) as i128;
            let found: Option<i64> = next.query_row([from as i64], |row| row.get(0)).optional()?;
            keys.extend(found);
        }
        keys.dedup();
        Ok(keys)
    })
}

/// Returns how many messages belong to a conversation that does not exist. No search finds them.
pub fn strays(database: &Database) -> Result<u64> {
    let sql = "SELECT count(*) FROM messages AS m \
               WHERE NOT EXISTS (SELECT 1 FROM conversations AS c WHERE c.id = m.conversation_id)";
    database.query(|connection| {
        enlarge_cache(connection)?;
        connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
    })
}

/// The databases that this program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnDatabase {
    /// A database that imports write.
    Imported,
    /// The transcript store.
    Transcripts,
    /// The database of threads.
    Threads,
}

/// Returns why this program cannot write to a database of its own, which it can read; `None` if it can, and for
/// databases of other programs.
pub fn why_not_written(database: &Database, own: OwnDatabase) -> Result<Option<String>> {
    database.query(|connection| match own {
        OwnDatabase::Threads => threads::obstacle(connection),
        OwnDatabase::Transcripts => transcripts::obstacle(connection),
        OwnDatabase::Imported => Ok(match schema::find(connection)? {
            Ok(SchemaState::OtherVersion(version)) => {
                Some(threads::other_version("schema", version, schema::SCHEMA_VERSION))
            }
            _ => None,
        }),
    })
}

/// Returns whether `verbatim import` has written to a database.
pub fn is_imported(database: &Database) -> Result<bool> {
    database.query(|connection| connection.table_exists(None, "verbatim_imports"))
}

/// Returns the titles of the `most` imported conversations that changed last. Leaves out conversations of
/// coding agents, because the user may have excluded them.
pub fn newest_titles(database: &Database, most: usize) -> Result<Vec<String>> {
    database.query(|connection| {
        let sql = "SELECT title FROM conversations WHERE typeof(title) = 'text'
                       AND id NOT IN (SELECT conversation_id FROM verbatim_transcripts)
                   ORDER BY CAST(update_time AS REAL) DESC, id LIMIT ?1";
        connection.prepare(sql)?.query_map([most as i64], |row| row.get(0))?.collect()
    })
}

/// Returns the imports into a database: the path of the export, and the time in seconds since 1970.
pub fn imports(database: &Database) -> Result<Vec<(String, f64)>> {
    if !is_imported(database)? {
        return Ok(Vec::new());
    }
    database.query(|connection| {
        let sql = "SELECT path, CAST(time AS REAL) FROM verbatim_imports";
        connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    })
}
