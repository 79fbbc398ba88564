//! Reads every message once, for ranking without an index.

use std::collections::HashMap;

use rusqlite::{Row, params_from_iter, types::Value};

use super::{Database, Result, functions, rows};
use verbatim_base::model::{Hit, Instant};
use verbatim_text::content;

/// A filter for the messages that a scan reads.
#[derive(Clone, Copy, Debug)]
pub struct ScanFilter<'a> {
    /// Roles; empty for all.
    pub roles: &'a [String],
    /// The earliest time, inclusive.
    pub since: Option<Instant>,
    /// The latest time, inclusive.
    pub until: Option<Instant>,
}

/// A message of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScannedMessage<'a> {
    /// The place of the message, for [`fetch`].
    pub place: ScanPlace,
    /// The id of the conversation, as text.
    pub conversation: &'a str,
    /// The time of the message; `None` if the stored value is not a valid time.
    pub time: Option<Instant>,
    /// The shown text, which may not be valid UTF-8; empty for NULL.
    pub text: &'a [u8],
}

/// The place of a message in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScanPlace {
    number: u64,
    /// The row ids of the message and its conversation, if the tables have them.
    keys: Option<(i64, i64)>,
}

impl ScanPlace {
    /// Returns a place that is only a number, for scans of stores other than SQLite.
    pub fn numbered(number: u64) -> ScanPlace {
        ScanPlace { number, keys: None }
    }

    /// Returns the number of the message in its scan; a database counts from 0.
    pub fn number(self) -> u64 {
        self.number
    }
}

/// Calls `each` with every message that passes a filter, in no particular order.
pub fn scan(
    database: &Database,
    filter: ScanFilter<'_>,
    each: &mut dyn FnMut(ScannedMessage<'_>),
) -> Result<()> {
    let layout = database.layout();
    let keys = layout.message_key.zip(layout.conversation_key);
    let keys = keys.map_or("NULL, NULL".to_owned(), |(message, of)| format!("m.{message}, c.{of}"));
    let content = rows::CONTENT;
    let columns = format!("{keys}, m.create_time, CAST(m.conversation_id AS TEXT), {content}");
    let failed = |error| database.error(error);
    let mut number = 0;
    run(database, &columns, filter, &mut |row| {
        let keys: (Option<i64>, Option<i64>) =
            (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
        let bytes = |column| -> Result<&[u8]> {
            let bytes = row.get_ref(column).map(|value| value.as_bytes_or_null());
            Ok(bytes.map_err(failed)?.ok().flatten().unwrap_or_default())
        };
        let stored = bytes(4)?;
        let decoded = match layout.parts {
            true => content::decode_parts(&String::from_utf8_lossy(stored)),
            false => None,
        };
        each(ScannedMessage {
            place: ScanPlace { number, keys: keys.0.zip(keys.1) },
            conversation: &String::from_utf8_lossy(bytes(3)?),
            time: functions::instant(row.get_ref(2).map_err(failed)?),
            text: decoded.as_deref().map_or(stored, str::as_bytes),
        });
        number += 1;
        Ok(true)
    })
}

/// Returns the messages at given places of a [`scan`] with the same filter, in the order of `places`.
/// Shortens a very long text to a part around the offset that `find` returns.
pub fn fetch(
    database: &Database,
    filter: ScanFilter<'_>,
    places: &[ScanPlace],
    find: &dyn Fn(&str) -> usize,
) -> Result<Vec<Hit<'static>>> {
    let failed = |error| database.error(error);
    let layout = database.layout();
    let columns = rows::columns(layout);
    let kept = |row: &Row<'_>| -> Result<Hit<'static>> {
        let hit = rows::hit(row, layout.parts).map_err(failed)?;
        Ok(hit.into_owned_around(find))
    };
    let mut found: HashMap<ScanPlace, Hit<'static>> = HashMap::new();
    if let Some((message, conversation)) = layout.message_key.zip(layout.conversation_key) {
        let sql = format!(
            "SELECT {columns} FROM messages AS m, conversations AS c \
             WHERE m.{message} = ?1 AND c.{conversation} = ?2"
        );
        let mut statement = database.connection().prepare(&sql).map_err(failed)?;
        for place in places {
            let Some(keys) = place.keys else { continue };
            let mut row = statement.query(keys).map_err(failed)?;
            if let Some(row) = row.next().map_err(failed)? {
                found.insert(*place, kept(row)?);
            }
        }
    } else {
        let wanted: HashMap<u64, ScanPlace> =
            places.iter().map(|place| (place.number, *place)).collect();
        let mut number = 0;
        run(database, &columns, filter, &mut |row| {
            if let Some(place) = wanted.get(&number) {
                found.insert(*place, kept(row)?);
            }
            number += 1;
            Ok(found.len() < wanted.len())
        })?;
    }
    Ok(places.iter().filter_map(|place| found.remove(place)).collect())
}

/// Reads columns of the messages that pass a filter, until `each` returns false.
fn run(
    database: &Database,
    columns: &str,
    filter: ScanFilter<'_>,
    each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
) -> Result<()> {
    let mut values = Vec::new();
    let mut bind = |value: Value| {
        values.push(value);
        format!("?{}", values.len())
    };
    let mut filters = vec!["c.id = m.conversation_id".to_owned()];
    if !filter.roles.is_empty() {
        let roles: Vec<String> =
            filter.roles.iter().map(|role| bind(Value::Text(role.clone()))).collect();
        filters.push(format!("coalesce(CAST(m.role AS TEXT), '') IN ({})", roles.join(", ")));
    }
    for (edge, comparison) in [(filter.since, ">="), (filter.until, "<=")] {
        if let Some(instant) = edge {
            let key = bind(Value::Blob(functions::key(instant).to_vec()));
            filters.push(format!("verbatim_instant(m.create_time) {comparison} {key}"));
        }
    }
    let sql = format!(
        "SELECT {columns} FROM messages AS m, conversations AS c WHERE {}",
        filters.join(" AND ")
    );
    let failed = |error| database.error(error);
    let mut statement = database.connection().prepare(&sql).map_err(failed)?;
    let mut rows = statement.query(params_from_iter(&values)).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if !each(row)? {
            break;
        }
    }
    Ok(())
}

/// Returns the ids and titles of all conversations, with or without messages.
pub fn titles(database: &Database) -> Result<Vec<(String, String)>> {
    database.query(|connection| {
        let sql = "SELECT CAST(id AS TEXT), CAST(title AS TEXT) FROM conversations";
        let title = |row: &Row<'_>| Ok((rows::text(row, 0)?, rows::text(row, 1)?));
        connection.prepare(sql)?.query_map([], title)?.collect()
    })
}

/// The title of a conversation and the ids, positions and times of its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skeleton {
    /// The title of the conversation; empty for NULL.
    pub title: String,
    /// The messages in reading order: id, position, time.
    pub messages: Vec<(String, Option<i64>, Option<Instant>)>,
}

/// Returns the skeletons of some conversations, by id, with one pass over the messages.
pub fn skeletons(database: &Database, ids: &[&str]) -> Result<HashMap<String, Skeleton>> {
    let layout = database.layout();
    let position = if layout.position { "m.position" } else { "NULL" };
    let last = layout.message_key.unwrap_or("id");
    let sql = format!(
        "SELECT CAST(m.conversation_id AS TEXT), CAST(c.title AS TEXT), CAST(m.id AS TEXT), \
         {position} AS position, m.create_time \
         FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id \
         WHERE m.conversation_id IN ({}) \
         ORDER BY {position}, verbatim_instant(m.create_time), m.{last}",
        vec!["?"; ids.len()].join(", ")
    );
    database.query(|connection| {
        let mut statement = connection.prepare(&sql)?;
        let mut found = statement.query(params_from_iter(ids))?;
        let mut skeletons: HashMap<String, Skeleton> = HashMap::new();
        while let Some(row) = found.next()? {
            let skeleton = skeletons.entry(rows::text(row, 0)?).or_default();
            if skeleton.messages.is_empty() {
                skeleton.title = rows::text(row, 1)?;
            }
            let position = row.get_ref(3)?.as_i64().ok();
            let time = functions::instant(row.get_ref(4)?);
            skeleton.messages.push((rows::text(row, 2)?, position, time));
        }
        Ok(skeletons)
    })
}
