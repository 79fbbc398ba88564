//! The exact search by SQLite's own `LIKE`, or by a function that matches texts in other ways: the
//! oracle for every faster search.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, ErrorCode, ToSql, limits::Limit, params_from_iter, types::Value};

use super::{
    Database, Error, Hits, functions,
    long_column::{self, LONGEST_WHOLE},
    long_content::LongContent,
    rows,
};
use crate::{
    model::{Matching, Request},
    text::{
        content,
        matcher::{Matchers, texts},
        pieces::PieceMatcher,
    },
};

/// The longest content in bytes that SQLite may hold in memory to match it. Tests use a small value to run
/// faster.
const MOST_IN_MEMORY: i32 = if cfg!(test) { 5 << 20 } else { 32 << 20 };

/// Returns the messages that match, newest first.
///
/// If times are equal, the higher `position` comes first, then the higher rowid. The texts are
/// taken unchanged; see [`crate::engine`] for trimming and limits. All hits are read before this
/// returns, so no writer waits while they are used.
pub fn search(database: &Database, request: &Request) -> Result<Hits, Error> {
    search_without(database, request, HashSet::new())
}

/// Searches as [`search`] does, but leaves out some conversations. Their messages do not count for the
/// limit.
pub(crate) fn search_without(
    database: &Database,
    request: &Request,
    left_out: HashSet<String>,
) -> Result<Hits, Error> {
    let failed = |error| database.error(error);
    let connection = database.connection();
    let layout = database.layout();
    if request.matching != Matching::Like {
        let Matchers { any, all, none } = Matchers::of(request)?;
        let matchers = any.into_iter().chain(all).chain(none).collect();
        functions::add_matches(connection, matchers).map_err(failed)?;
    } else if request.case_sensitive {
        connection.execute_batch("PRAGMA case_sensitive_like = ON").map_err(failed)?;
    }
    let keys = layout.message_key.zip(layout.conversation_key);
    let is_shown = match left_out.is_empty() {
        true => "",
        false => "NOT verbatim_left_out(CAST(m.conversation_id AS TEXT))",
    };
    functions::add_left_out(connection, left_out).map_err(failed)?;
    let parts = layout.parts && !request.raw_content;
    let mut hits = Hits::default();
    let Some((message_key, conversation_key)) = keys else {
        let (sql, values) = statement(database, request, keys, is_shown, false);
        let mut statement = connection.prepare(&sql).map_err(failed)?;
        let mut found = statement.query(params_from_iter(values)).map_err(failed)?;
        while let Some(row) = found.next().map_err(failed)? {
            hits.push(rows::hit(row, parts).map_err(failed)?)?;
        }
        return Ok(hits);
    };
    let by_pieces = long_column::is_readable(connection).map_err(failed)?;
    let ids = found(database, request, (message_key, conversation_key), is_shown, by_pieces)?;
    let fetch = format!(
        "SELECT {} FROM messages AS m, conversations AS c \
         WHERE m.{message_key} = ?1 AND c.{conversation_key} = ?2",
        rows::short_columns(layout, by_pieces)
    );
    let mut fetch = connection.prepare(&fetch).map_err(failed)?;
    for ids in ids {
        let mut row = fetch.query(ids).map_err(failed)?;
        if let Some(row) = row.next().map_err(failed)? {
            let mut hit = rows::hit(row, parts).map_err(failed)?;
            if let Some(long) = LongContent::of(database, ids[0], row.get(7).map_err(failed)?) {
                let text = long.text()?;
                let decoded = if parts { content::decode_parts(&text) } else { None };
                hit.content = decoded.unwrap_or(text).into();
            }
            hits.push(hit)?;
        }
    }
    Ok(hits)
}

/// Returns the keys of the hits as [`keys`] does. Contents that are too long for memory are matched piece
/// by piece, if SQLite can read them so.
fn found(
    database: &Database,
    request: &Request,
    keys: (&str, &str),
    is_shown: &str,
    by_pieces: bool,
) -> Result<Vec<[i64; 2]>, Error> {
    let connection = database.connection();
    let failed = |error| database.error(error);
    let (sql, values) = statement(database, request, Some(keys), is_shown, false);
    if !by_pieces {
        return pairs(connection, &sql, values).map_err(failed);
    }
    let limit = connection.limit(Limit::SQLITE_LIMIT_LENGTH).map_err(failed)?;
    let set = |limit| connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit).map_err(failed);
    set(MOST_IN_MEMORY)?;
    let found = pairs(connection, &sql, values);
    set(limit)?;
    match found {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::TooBig) => {
            let known = matched_by_pieces(database, request, keys.0)?;
            functions::add_long(connection, known).map_err(failed)?;
            let (sql, values) = statement(database, request, Some(keys), is_shown, true);
            pairs(connection, &sql, values).map_err(failed)
        }
        found => found.map_err(failed),
    }
}

/// Returns for each long content which texts of a request it matches, if pieces of the content are enough
/// to know.
fn matched_by_pieces(
    database: &Database,
    request: &Request,
    key: &str,
) -> Result<HashMap<i64, Vec<bool>>, Error> {
    let failed = |error| database.error(error);
    let Matchers { any, all, none } = Matchers::of(request)?;
    let matchers: Vec<_> = any.into_iter().chain(all).chain(none).collect();
    let texts = texts(request).concat();
    let sql = format!(
        "SELECT {key}, octet_length(content) FROM messages WHERE octet_length(content) > {LONGEST_WHOLE}"
    );
    let mut known = HashMap::new();
    let mut statement = database.connection().prepare(&sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let (key, length): (i64, i64) = row.try_into().map_err(failed)?;
        let Some(long) = LongContent::of(database, key, Some(length)) else { continue };
        let pieces: Option<Vec<_>> = matchers
            .iter()
            .zip(&texts)
            .map(|(matcher, text)| PieceMatcher::new(matcher, text))
            .collect();
        let may_be_parts = database.layout().parts && !request.raw_content;
        let matches = pieces.map(|pieces| long.matches(pieces, may_be_parts)).transpose()?;
        known.extend(matches.flatten().map(|matches| (key, matches)));
    }
    Ok(known)
}

/// Returns the keys of the messages that match and of their conversations, in result order.
pub(super) fn keys(
    database: &Database,
    request: &Request,
    keys: (&str, &str),
) -> Result<Vec<[i64; 2]>, Error> {
    let (sql, values) = statement(database, request, Some(keys), "", false);
    pairs(database.connection(), &sql, values).map_err(|error| database.error(error))
}

fn pairs(
    connection: &Connection,
    sql: &str,
    values: Vec<Box<dyn ToSql>>,
) -> rusqlite::Result<Vec<[i64; 2]>> {
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query(params_from_iter(values))?;
    let mut pairs = Vec::new();
    while let Some(row) = found.next()? {
        pairs.push([row.get(0)?, row.get(1)?]);
    }
    Ok(pairs)
}

/// Returns the statement that finds the hits in order, and its values. `condition` is one more condition,
/// or empty; `asks_long` says whether the statement may call `verbatim_long` for contents that are too
/// long for memory.
fn statement(
    database: &Database,
    request: &Request,
    keys: Option<(&str, &str)>,
    condition: &str,
    asks_long: bool,
) -> (String, Vec<Box<dyn ToSql>>) {
    let layout = database.layout();
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    let mut bind = |value: Value| {
        values.push(Box::new(value));
        format!("?{}", values.len())
    };
    // Cheap conditions come first: SQLite evaluates them in this order.
    let mut filters = vec!["c.id = m.conversation_id".to_owned()];
    if !request.roles.is_empty() {
        let roles: Vec<String> =
            request.roles.iter().map(|role| bind(Value::Text(role.clone()))).collect();
        // The column's own collation and affinity count, as in any other SQL.
        filters.push(format!("m.role IN ({})", roles.join(", ")));
    }
    for (edge, comparison) in [(request.since, ">="), (request.until, "<=")] {
        if let Some(instant) = edge {
            let key = bind(Value::Blob(functions::key(instant).to_vec()));
            filters.push(format!("verbatim_instant(m.create_time) {comparison} {key}"));
        }
    }
    let shown = (layout.parts && !request.raw_content).then_some("verbatim_text(m.content)");
    let [any, all, none] = texts(request);
    let mut number = 0;
    let key = keys.filter(|_| asks_long).map(|(message, _)| message);
    let of_content = |matches: String, number: usize| match key {
        Some(key) => format!(
            "CASE WHEN octet_length(m.content) > {LONGEST_WHOLE} \
             THEN coalesce(verbatim_long(m.{key}, {number}), {matches}) ELSE {matches} END"
        ),
        None => matches,
    };
    let mut matching = |text: &str| {
        number += 1;
        if request.matching == Matching::Like {
            let pattern = bind(Value::Text(format!("%{text}%")));
            let shown = shown.map(|shown| format!(" OR {shown} LIKE {pattern}"));
            let shown = shown.unwrap_or_default();
            let content = of_content(format!("(m.content LIKE {pattern}{shown})"), number - 1);
            return format!("({content} OR c.title LIKE {pattern})");
        }
        let content = "CAST(m.content AS TEXT)".to_owned();
        let content =
            shown.map_or(content.clone(), |shown| format!("coalesce({shown}, {content})"));
        let matches = |text: &str| format!("verbatim_matches({}, {text})", number - 1);
        let content = of_content(matches(&content), number - 1);
        format!("({content} OR {})", matches("CAST(c.title AS TEXT)"))
    };
    let any: Vec<String> = any.into_iter().map(&mut matching).collect();
    if !any.is_empty() {
        filters.push(format!("({})", any.join(" OR ")));
    }
    filters.extend(all.into_iter().map(&mut matching));
    // Without `coalesce`, NULL would drop messages that do not match an excluded text.
    filters.extend(none.into_iter().map(|text| format!("NOT coalesce({}, 0)", matching(text))));
    filters.extend(Some(condition.to_owned()).filter(|condition| !condition.is_empty()));
    let (selected, last) = match keys {
        Some((message, conversation)) => (
            format!("m.{message}, c.{conversation}"),
            format!("m.{message} DESC, c.{conversation} DESC"),
        ),
        None => (rows::columns(layout), "m.id DESC".to_owned()),
    };
    let position = if layout.position { "m.position DESC, " } else { "" };
    // Always with a LIMIT: otherwise SQLite sorts in a single step that cannot be stopped.
    let limit = request.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
    let limit = bind(Value::Integer(limit));
    let sql = format!(
        "SELECT {selected} FROM messages AS m JOIN conversations AS c ON {} \
         ORDER BY verbatim_instant(m.create_time) DESC NULLS LAST, {position}{last} LIMIT {limit}",
        filters.join(" AND ")
    );
    (sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{db, model::Stop};

    /// The length of a content that is too long to be matched in memory.
    const LONG: usize = MOST_IN_MEMORY as usize + 10;

    #[test]
    fn long_contents_match_as_in_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chats.db");
        let connection = Connection::open(&path).unwrap();
        let schema = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
             CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT, content,
                 create_time TEXT, position INTEGER);
             INSERT INTO conversations VALUES ('c', 'red title');
             INSERT INTO conversations VALUES ('d', NULL);";
        connection.execute_batch(schema).unwrap();
        let long = |needle: &[u8]| {
            let mut text = "é".repeat(LONG / 2).into_bytes();
            // The needle lies across two pieces.
            text.splice((1 << 20) - 2..(1 << 20) - 2, needle.iter().copied());
            text
        };
        let insert = |id: &str, conversation: &str, content: Value| {
            let sql = "INSERT INTO messages VALUES (?1, ?2, 'user', ?3, '1', 1)";
            connection.execute(sql, (id, conversation, content)).unwrap();
        };
        let text = |needle: &str| Value::Text(String::from_utf8(long(needle.as_bytes())).unwrap());
        insert("plain", "d", text("A Needle中"));
        insert("other", "d", text("nothing"));
        insert("titled", "c", text("nothing"));
        insert("blob", "d", Value::Blob(long(b"a needle")));
        insert("nul", "d", Value::Blob(long(b"a\0needle")));
        insert("invalid", "d", Value::Blob(long(b"a\xFFneedle")));
        insert("short", "d", Value::Text("a needle".to_owned()));
        drop(connection);
        let database = db::open(&path, &Stop::never()).unwrap();
        let known = |text: &str| {
            let request = Request { text: text.to_owned(), ..Request::default() };
            matched_by_pieces(&database, &request, "rowid").unwrap()
        };
        let expected = [(1, vec![true]), (2, vec![false]), (3, vec![false]), (4, vec![true])];
        assert_eq!(known("a needle"), HashMap::from(expected));
        for (request, plain) in [
            ("a needle", "content LIKE '%a needle%' OR title LIKE '%a needle%'"),
            ("e%l_é", "content LIKE '%e%l_é%' OR title LIKE '%e%l_é%'"),
            ("RED", "content LIKE '%RED%' OR title LIKE '%RED%'"),
            ("é_needle", "content LIKE '%é_needle%' OR title LIKE '%é_needle%'"),
            ("", "1"),
        ] {
            let request = Request { text: request.to_owned(), ..Request::default() };
            let mut hits = Vec::new();
            search(&database, &request)
                .unwrap()
                .hand_over(&mut |hit| {
                    hits.push((hit.message_id.into_owned(), hit.content.len()));
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
            let sql = format!(
                "SELECT m.id, CAST(content AS TEXT) FROM messages m JOIN conversations c
                     ON c.id = conversation_id WHERE {plain} ORDER BY m.rowid DESC"
            );
            let mut statement = database.connection().prepare(&sql).unwrap();
            let expected = statement.query_map([], |row| {
                let content = String::from_utf8_lossy(row.get_ref(1)?.as_bytes()?).len();
                Ok((row.get(0)?, content))
            });
            let expected: Vec<(String, usize)> = expected.unwrap().map(Result::unwrap).collect();
            assert_eq!(hits, expected, "{request:?}");
        }
    }
}
