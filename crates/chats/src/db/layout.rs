//! Detects the layout of a canonical database.

use rusqlite::{Connection, types::ValueRef};

use verbatim_text::content;

const REQUIRED: [(&str, &[&str]); 2] = [
    ("messages", &["id", "conversation_id", "role", "content", "create_time"]),
    ("conversations", &["id", "title"]),
];

pub(super) const LOOKED_FOR: &str = "messages(id, conversation_id, role, content, create_time) and \
                                     conversations(id, title), as ChatGPT Browser and verbatim import write them";

const SAMPLE: i64 = 500;

/// The properties in which canonical databases differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Whether `messages` has a `position`.
    pub position: bool,
    /// Whether `content` holds the JSON of ChatGPT's `parts` and not the text itself.
    pub parts: bool,
    /// Whether SQLite compares roles byte for byte, and a text never equals a number. This needs the
    /// collation BINARY and a column type that never converts texts to numbers.
    pub bytewise_roles: bool,
    /// SQLite's name for the rowid of `messages`; `None` for a view or a table without a rowid.
    pub message_key: Option<&'static str>,
    /// SQLite's name for the rowid of `conversations`; `None` for a view or a table without a rowid.
    pub conversation_key: Option<&'static str>,
}

/// The layout of a database, or the table or column that is missing.
pub(super) type Detected = Result<Layout, String>;

/// Detects the layout from the tables and a sample of the contents.
pub(super) fn detect(connection: &Connection) -> rusqlite::Result<Detected> {
    let mut columns = Vec::new();
    for (table, required) in REQUIRED {
        let present = column_names(connection, table)?;
        if present.is_empty() {
            return Ok(Err(format!("table \"{table}\"")));
        }
        if let Some(column) = required.iter().find(|name| !present.iter().any(|p| p == *name)) {
            return Ok(Err(format!("column \"{column}\" in table \"{table}\"")));
        }
        columns.push(present);
    }
    let message_key = rowid_name(connection, "messages", &columns[0]);
    Ok(Ok(Layout {
        position: columns[0].iter().any(|name| name == "position"),
        parts: holds_parts(connection, message_key)?,
        bytewise_roles: has_bytewise_roles(connection),
        message_key,
        conversation_key: rowid_name(connection, "conversations", &columns[1]),
    }))
}

fn column_names(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT lower(name) FROM pragma_table_xinfo(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// Returns the first of SQLite's names for the rowid that is not the name of a column.
fn rowid_name(connection: &Connection, table: &str, columns: &[String]) -> Option<&'static str> {
    ["rowid", "_rowid_", "oid"].into_iter().find(|name| {
        !columns.iter().any(|column| column == name)
            && connection.prepare(&format!("SELECT {name} FROM {table} LIMIT 0")).is_ok()
    })
}

/// Returns whether SQLite compares roles byte for byte; false for a view, whose types are unknown.
fn has_bytewise_roles(connection: &Connection) -> bool {
    let found = connection.column_metadata(None, "messages", "role");
    found.is_ok_and(|(kind, collation, ..)| {
        let kind = kind.unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        // These are SQLite's rules for the affinity of a type. INT takes precedence over all others.
        let is_text = ["CHAR", "CLOB", "TEXT", "BLOB"].iter().any(|name| kind.contains(name));
        let keeps_texts = kind.is_empty() || is_text && !kind.contains("INT");
        keeps_texts && collation.unwrap_or_default().to_bytes().eq_ignore_ascii_case(b"BINARY")
    })
}

/// Returns the least and the greatest key of a message; `None` if there are no messages.
pub(super) fn key_range(connection: &Connection, key: &str) -> rusqlite::Result<Option<[i64; 2]>> {
    // These are two subqueries, because with both in one query SQLite reads the whole table.
    let ends =
        format!("SELECT (SELECT min({key}) FROM messages), (SELECT max({key}) FROM messages)");
    connection.query_row(&ends, [], |row| {
        let first: Option<i64> = row.get(0)?;
        let last: Option<i64> = row.get(1)?;
        Ok(first.zip(last).map(<[i64; 2]>::from))
    })
}

fn count_parts(content: ValueRef<'_>, texts: &mut u32, parts: &mut u32) {
    let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = content else { return };
    if !bytes.is_empty() {
        *texts += 1;
        *parts += u32::from(content::decode_parts(&String::from_utf8_lossy(bytes)).is_some());
    }
}

fn holds_parts(connection: &Connection, key: Option<&str>) -> rusqlite::Result<bool> {
    let mut texts = 0;
    let mut parts = 0;
    let Some(key) = key else {
        let mut statement = connection.prepare("SELECT content FROM messages LIMIT ?1")?;
        let mut rows = statement.query([SAMPLE])?;
        while let Some(row) = rows.next()? {
            count_parts(row.get_ref(0)?, &mut texts, &mut parts);
        }
        return Ok(parts > 0 && parts * 2 >= texts);
    };
    let Some([first, last]) = key_range(connection, key)? else { return Ok(false) };
    let next = format!(
        "SELECT {key}, content FROM messages WHERE {key} BETWEEN ?1 AND ?2 ORDER BY {key} LIMIT 1"
    );
    let mut next = connection.prepare(&next)?;
    let mut from = first;
    for step in 1..=SAMPLE {
        let mut rows = next.query([from, last])?;
        let Some(row) = rows.next()? else { break };
        let seen: i64 = row.get(0)?;
        count_parts(row.get_ref(1)?, &mut texts, &mut parts);
        let width = i128::from(last) - i128::from(first);
        let goal = i128::from(first) + width * i128::from(step) / i128::from(SAMPLE);
        if seen == last {
            break;
        }
        from = i64::try_from(goal).unwrap_or(last).max(seen + 1);
    }
    Ok(parts > 0 && parts * 2 >= texts)
}
