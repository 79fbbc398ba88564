//! The exact search by SQLite's own `LIKE`, or by a function that matches texts in other ways: the
//! oracle for every faster search.

use std::collections::HashSet;

use rusqlite::{Connection, ToSql, params_from_iter, types::Value};

use super::{Database, Error, Hits, functions, rows};
use crate::{
    model::{Matching, Request},
    text::matcher::{Matchers, texts},
};

/// Returns the messages that match, newest first.
///
/// If times are equal, the higher `position` comes first, then the higher rowid. The texts are
/// taken unchanged; see [`crate::engine`] for trimming and limits. All hits are read before this
/// returns, so no writer waits while they are used.
pub fn search(database: &Database, request: &Request) -> Result<Hits, Error> {
    search_without(database, request, HashSet::new())
}

/// Does as [`search`] does, without the messages of some conversations; these do not count for the
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
    let (sql, values) = statement(database, request, keys, is_shown);
    let parts = layout.parts && !request.raw_content;
    let mut hits = Hits::default();
    let Some((message_key, conversation_key)) = keys else {
        let mut statement = connection.prepare(&sql).map_err(failed)?;
        let mut found = statement.query(params_from_iter(values)).map_err(failed)?;
        while let Some(row) = found.next().map_err(failed)? {
            hits.push(rows::hit(row, parts).map_err(failed)?)?;
        }
        return Ok(hits);
    };
    let ids = pairs(connection, &sql, values).map_err(failed)?;
    let fetch = format!(
        "SELECT {} FROM messages AS m, conversations AS c \
         WHERE m.{message_key} = ?1 AND c.{conversation_key} = ?2",
        rows::columns(layout)
    );
    let mut fetch = connection.prepare(&fetch).map_err(failed)?;
    for ids in ids {
        let mut row = fetch.query(ids).map_err(failed)?;
        if let Some(row) = row.next().map_err(failed)? {
            hits.push(rows::hit(row, parts).map_err(failed)?)?;
        }
    }
    Ok(hits)
}

/// Returns the keys of the messages that match and of their conversations, in result order.
pub(super) fn keys(
    database: &Database,
    request: &Request,
    keys: (&str, &str),
) -> Result<Vec<[i64; 2]>, Error> {
    let (sql, values) = statement(database, request, Some(keys), "");
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

/// Returns the statement that finds the hits in order, and its values; `condition` is one more that
/// they meet, unless it is empty.
fn statement(
    database: &Database,
    request: &Request,
    keys: Option<(&str, &str)>,
    condition: &str,
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
    let mut matching = |text: &str| {
        number += 1;
        if request.matching == Matching::Like {
            let pattern = bind(Value::Text(format!("%{text}%")));
            let shown = shown.map(|shown| format!(" OR {shown} LIKE {pattern}"));
            let shown = shown.unwrap_or_default();
            return format!("(m.content LIKE {pattern} OR c.title LIKE {pattern}{shown})");
        }
        let content = "CAST(m.content AS TEXT)".to_owned();
        let content =
            shown.map_or(content.clone(), |shown| format!("coalesce({shown}, {content})"));
        let matches = |text: &str| format!("verbatim_matches({}, {text})", number - 1);
        format!("({} OR {})", matches(&content), matches("CAST(c.title AS TEXT)"))
    };
    let any: Vec<String> = any.into_iter().map(&mut matching).collect();
    if !any.is_empty() {
        filters.push(format!("({})", any.join(" OR ")));
    }
    filters.extend(all.into_iter().map(&mut matching));
    // Without `coalesce`, a NULL would leave out what does not match.
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
