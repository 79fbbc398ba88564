//! The scalar SQL functions that this crate adds to SQLite.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use verbatim_base::model::Instant;
use verbatim_text::{content, date, matcher::Matcher};

/// Adds `verbatim_instant(time)` and `verbatim_text(content)` to a connection.
///
/// `verbatim_instant` returns a BLOB that sorts like the time. `verbatim_text` returns the text of JSON
/// parts. Both return NULL if the argument is not a time, or not JSON parts.
pub(super) fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("verbatim_instant", 1, flags, |context| {
        Ok(instant(context.get_raw(0)).map(|instant| key(instant).to_vec()))
    })?;
    connection.create_scalar_function("verbatim_text", 1, flags, |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                content::decode_parts(&String::from_utf8_lossy(bytes))
                    .map_or(Value::Null, Value::Text)
            }
            _ => Value::Null,
        })
    })
}

pub(super) fn count_instants(connection: &Connection, calls: &Arc<AtomicU64>) -> Result<()> {
    let calls = Arc::clone(calls);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("verbatim_instant", 1, flags, move |context| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(instant(context.get_raw(0)).map(|instant| key(instant).to_vec()))
    })
}

/// Adds `verbatim_matches(number, text)` to a connection. The function returns whether the matcher with this
/// number matches a text. NULL counts as an empty text.
pub(super) fn add_matches(connection: &Connection, matchers: Vec<Matcher>) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("verbatim_matches", 2, flags, move |context| {
        let matcher = usize::try_from(context.get::<i64>(0)?).ok();
        let matcher = matcher.and_then(|number| matchers.get(number));
        Ok(matcher.is_some_and(|matcher| match context.get_raw(1) {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => matcher.matches_irregular(bytes),
            ValueRef::Null => matcher.matches_irregular(b""),
            ValueRef::Integer(_) | ValueRef::Real(_) => false,
        }))
    })
}

/// Adds the SQL function `verbatim_left_out(conversation)` to a connection. The function returns 1 for the
/// conversations in `ids`, and 0 for others.
pub(super) fn add_left_out(connection: &Connection, ids: HashSet<String>) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("verbatim_left_out", 1, flags, move |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                ids.contains(&*String::from_utf8_lossy(bytes))
            }
            _ => ids.contains(""),
        })
    })
}

/// Parses a stored time: seconds as a number or as text, or ISO 8601.
pub(super) fn instant(time: ValueRef<'_>) -> Option<Instant> {
    match time {
        ValueRef::Integer(seconds) => Some(Instant { seconds, nanos: 0 }),
        ValueRef::Real(seconds) => date::from_number(seconds),
        ValueRef::Text(bytes) => date::from_stored(std::str::from_utf8(bytes).ok()?),
        ValueRef::Blob(_) | ValueRef::Null => None,
    }
}

pub(super) fn key(instant: Instant) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&(instant.seconds ^ i64::MIN).to_be_bytes());
    key[8..].copy_from_slice(&instant.nanos.to_be_bytes());
    key
}

pub(super) fn from_key(value: ValueRef<'_>) -> Option<Instant> {
    let ValueRef::Blob(bytes) = value else { return None };
    let (seconds, nanos) = bytes.split_at_checked(8)?;
    let seconds = i64::from_be_bytes(seconds.try_into().ok()?) ^ i64::MIN;
    Some(Instant { seconds, nanos: u32::from_be_bytes(nanos.try_into().ok()?) })
}
