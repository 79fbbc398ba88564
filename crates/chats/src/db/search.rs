//! The exact search by SQLite's own `LIKE`, or by an SQL function for other kinds of matching. Every faster
//! search must return the same hits.

use std::collections::HashSet;

use rusqlite::{Connection, Row, ToSql, params_from_iter, types::Value};

use super::{Database, Layout, Result, functions, rows};
use verbatim_base::model::{Hit, Matching, Request};
use verbatim_text::matcher::{Matchers, texts};

/// Returns the messages that match, newest first.
///
/// If times are equal, the higher `position` comes first, then the higher rowid. Searches the texts
/// unchanged; see `verbatim-engine` for trimming and limits. Reads all hits before it returns, so no writer
/// waits while the caller uses the hits.
pub fn search(database: &Database, request: &Request) -> Result<Vec<Hit<'static>>> {
    search_without(database, request, HashSet::new())
}

/// Works like [`search`], but leaves out the conversations in `left_out`. Their messages do not count for the
/// limit.
pub fn search_without(
    database: &Database,
    request: &Request,
    left_out: HashSet<String>,
) -> Result<Vec<Hit<'static>>> {
    let layout = database.layout();
    let columns = rows::columns(layout);
    let matchers = match request.matching {
        Matching::Like => Vec::new(),
        _ => {
            let Matchers { any, all, none } = Matchers::of(request)?;
            any.into_iter().chain(all).chain(none).collect()
        }
    };
    let condition = if left_out.is_empty() {
        ""
    } else {
        "NOT verbatim_left_out(CAST(m.conversation_id AS TEXT))"
    };
    let parts = layout.parts && !request.raw_content;
    database.query(|connection| {
        if request.matching != Matching::Like {
            functions::add_matches(connection, matchers)?;
        } else if request.case_sensitive {
            connection.execute_batch("PRAGMA case_sensitive_like = ON")?;
        }
        functions::add_left_out(connection, left_out)?;
        let mut hits = Vec::new();
        let Some(keys) = layout.message_key.zip(layout.conversation_key) else {
            let (sql, values) = statement(layout, request, Selected::Columns(&columns), condition);
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                hits.push(rows::hit(row, parts)?);
            }
            return Ok(hits);
        };
        let (sql, values) = statement(layout, request, Selected::Keys(keys), condition);
        let ids = pairs(connection, &sql, values)?;
        let (message_key, conversation_key) = keys;
        let fetch = format!(
            "SELECT {columns} FROM messages AS m, conversations AS c \
             WHERE m.{message_key} = ?1 AND c.{conversation_key} = ?2"
        );
        let mut fetch = connection.prepare(&fetch)?;
        for ids in ids {
            let mut rows = fetch.query(ids)?;
            if let Some(row) = rows.next()? {
                hits.push(rows::hit(row, parts)?);
            }
        }
        Ok(hits)
    })
}

pub(super) fn keys(
    database: &Database,
    request: &Request,
    message_key: &str,
    conversation_key: &str,
) -> Result<Vec<[i64; 2]>> {
    let keys = Selected::Keys((message_key, conversation_key));
    let (sql, values) = statement(database.layout(), request, keys, "");
    database.query(|connection| pairs(connection, &sql, values))
}

fn pairs(
    connection: &Connection,
    sql: &str,
    values: Vec<Box<dyn ToSql>>,
) -> rusqlite::Result<Vec<[i64; 2]>> {
    connection
        .prepare(sql)?
        .query_map(params_from_iter(values), |row: &Row<'_>| Ok([row.get(0)?, row.get(1)?]))?
        .collect()
}

#[derive(Clone, Copy)]
enum Selected<'a> {
    Columns(&'a str),
    Keys((&'a str, &'a str)),
}

/// Returns the SQL statement that finds the hits in order, and its values. `condition` is an additional SQL
/// condition, or empty.
fn statement(
    layout: &Layout,
    request: &Request,
    selected: Selected<'_>,
    condition: &str,
) -> (String, Vec<Box<dyn ToSql>>) {
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
        // The comparison uses the column's own collation and affinity, as every comparison in SQL does.
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
            return format!("(m.content LIKE {pattern}{shown} OR c.title LIKE {pattern})");
        }
        let content = match shown {
            Some(shown) => format!("coalesce({shown}, {})", rows::CONTENT),
            None => rows::CONTENT.to_owned(),
        };
        let matcher = number - 1;
        format!(
            "(verbatim_matches({matcher}, {content}) \
             OR verbatim_matches({matcher}, CAST(c.title AS TEXT)))"
        )
    };
    let any: Vec<String> = any.into_iter().map(&mut matching).collect();
    if !any.is_empty() {
        filters.push(format!("({})", any.join(" OR ")));
    }
    filters.extend(all.into_iter().map(&mut matching));
    // Without `coalesce`, NULL would drop messages that do not match an excluded text.
    filters.extend(none.into_iter().map(|text| format!("NOT coalesce({}, 0)", matching(text))));
    filters.extend(Some(condition.to_owned()).filter(|condition| !condition.is_empty()));
    let (selected, last) = match selected {
        Selected::Keys((message, conversation)) => (
            format!("m.{message}, c.{conversation}"),
            format!("m.{message} DESC, c.{conversation} DESC"),
        ),
        Selected::Columns(columns) => (columns.to_owned(), "m.id DESC".to_owned()),
    };
    let position = if layout.position { "m.position DESC, " } else { "" };
    // There is always a LIMIT, because without one SQLite sorts in a single step that cannot be stopped.
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
    use std::path::Path;

    use super::*;
    use crate::db;
    use verbatim_base::call::Call;

    /// The length of a long content.
    const LONG: usize = 5 << 20;

    /// Returns a long text with a needle in it.
    fn long(needle: &[u8]) -> Vec<u8> {
        let mut text = "é".repeat(LONG / 2).into_bytes();
        text.splice((1 << 20) - 2..(1 << 20) - 2, needle.iter().copied());
        text
    }

    fn text(content: Vec<u8>) -> Value {
        Value::Text(String::from_utf8(content).unwrap())
    }

    /// Returns a database of contents, each with its id and conversation.
    fn database_of(folder: &Path, rows: Vec<(&str, &str, Value)>) -> Database {
        let path = folder.join("chats.db");
        let connection = Connection::open(&path).unwrap();
        let schema = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
             CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT, content,
                 create_time TEXT, position INTEGER);
             INSERT INTO conversations VALUES ('c', 'red title');
             INSERT INTO conversations VALUES ('d', NULL);";
        connection.execute_batch(schema).unwrap();
        for row in rows {
            let sql = "INSERT INTO messages VALUES (?1, ?2, 'user', ?3, '1', 1)";
            connection.execute(sql, row).unwrap();
        }
        drop(connection);
        db::open(&path, &Call::default()).unwrap()
    }

    /// Returns the ids and contents of the hits.
    fn hits(database: &Database, request: &Request) -> Vec<(String, String)> {
        let hits = search(database, request).unwrap().into_iter();
        hits.map(|hit| (hit.message_id.into_owned(), hit.content.into_owned())).collect()
    }

    #[test]
    fn long_contents_match_as_in_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let rows = vec![
            ("plain", "d", text(long("A Needle中".as_bytes()))),
            ("other", "d", text(long(b"nothing"))),
            ("titled", "c", text(long(b"nothing"))),
            ("blob", "d", Value::Blob(long(b"a needle"))),
            ("nul", "d", Value::Blob(long(b"a\0needle"))),
            ("invalid", "d", Value::Blob(long(b"a\xFFneedle"))),
            ("short", "d", Value::Text("a needle".to_owned())),
        ];
        let database = database_of(folder.path(), rows);
        let all = "SELECT m.id, CAST(content AS TEXT) FROM messages m JOIN conversations c
                       ON c.id = conversation_id WHERE";
        let in_sql = |plain: &str| -> Vec<(String, String)> {
            let sql = format!("{all} {plain} ORDER BY m.rowid DESC");
            let mut statement = database.connection().prepare(&sql).unwrap();
            let rows = statement.query_map([], |row| {
                let content = String::from_utf8_lossy(row.get_ref(1)?.as_bytes()?).into_owned();
                Ok((row.get(0)?, content))
            });
            rows.unwrap().map(Result::unwrap).collect()
        };
        for (request, plain) in [
            ("a needle", "content LIKE '%a needle%' OR title LIKE '%a needle%'"),
            ("e%l_é", "content LIKE '%e%l_é%' OR title LIKE '%e%l_é%'"),
            ("RED", "content LIKE '%RED%' OR title LIKE '%RED%'"),
            ("é_needle", "content LIKE '%é_needle%' OR title LIKE '%é_needle%'"),
            ("a_NEEDLE", "content LIKE '%a_needle%' OR title LIKE '%a_needle%'"),
            ("", "1"),
        ] {
            let request = Request { text: request.to_owned(), ..Request::default() };
            assert!(hits(&database, &request) == in_sql(plain), "{request:?}");
        }
        let everything = in_sql("1");
        for (matching, text) in [
            (Matching::Literal, "a needle"),
            (Matching::Literal, "\u{FFFD}needle"),
            (Matching::Word, "red"),
            (Matching::Word, "needle"),
            (Matching::Regex, r"a\W+needle"),
            (Matching::Regex, "^é+nothing"),
        ] {
            let request = Request { text: text.to_owned(), matching, ..Request::default() };
            let matcher = Matchers::of(&request).unwrap().any.remove(0);
            let titled = matcher.matches(b"red title");
            let is_hit = |(id, content): &&(String, String)| {
                matcher.matches(content.as_bytes()) || id == "titled" && titled
            };
            let expected: Vec<_> = everything.iter().filter(is_hit).cloned().collect();
            assert!(hits(&database, &request) == expected, "{request:?}");
        }
        let messages = db::conversation(&database, "d", false).unwrap().into_iter();
        let read = messages.map(|hit| (hit.message_id.into_owned(), hit.content.into_owned()));
        let of_d = everything.iter().rev().filter(|(id, _)| id != "titled").cloned();
        assert!(read.eq(of_d));
    }

    #[test]
    fn a_content_that_sqlite_cannot_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let rows = vec![("long", "d", text(vec![b'x'; 5_000]))];
        let database = database_of(folder.path(), rows);
        let limit = rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH;
        database.connection().set_limit(limit, 4_000).unwrap();
        let request = Request { text: "x".to_owned(), ..Request::default() };
        let error = search(&database, &request).unwrap_err().to_string();
        assert!(error.contains("longer than SQLite can read"), "{error}");
    }

    #[test]
    fn long_json_parts_match_by_their_text() {
        let folder = tempfile::tempdir().unwrap();
        let parts = |needle: &str| {
            let long = String::from_utf8(long(needle.as_bytes())).unwrap();
            let json = serde_json::json!([long, {"text": "the end"}, {"asset": 1}]);
            Value::Text(json.to_string())
        };
        let rows = vec![
            ("one", "d", parts("a \"needle\"")),
            ("two", "d", parts("nothing")),
            ("short", "d", Value::Text(r#"["a \"needle\""]"#.to_owned())),
            ("broken", "d", Value::Text(format!("[\"needle{}", "x".repeat(LONG)))),
        ];
        let database = database_of(folder.path(), rows);
        let ids = |text: &str, matching, raw_content| {
            let text = text.to_owned();
            let request = Request { text, matching, raw_content, ..Request::default() };
            hits(&database, &request).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        let (like, regex) = (Matching::Like, Matching::Regex);
        assert_eq!(ids("a \"needle\"", like, false), ["short", "one"]);
        assert_eq!(ids("a \\\"needle", like, false), ["short", "one"]);
        assert_eq!(ids("a \"needle\"", like, true), Vec::<String>::new());
        assert_eq!(ids("a \"needle", regex, false), ["short", "one"]);
        assert_eq!(ids("needle", regex, false), ["broken", "short", "one"]);
        assert_eq!(ids("asset", regex, false), Vec::<String>::new());
        assert_eq!(ids("asset", regex, true), ["two", "one"]);
        let found = hits(&database, &Request { text: "nothing".to_owned(), ..Request::default() });
        assert!(found[0].1 == String::from_utf8(long(b"nothing")).unwrap() + "\nthe end");
    }
}
