//! The right answers, each by one SQL statement that SQLite runs.

use rusqlite::{Connection, OptionalExtension, Row, params, types::ValueRef};
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_engine::Scope;

use crate::database::Database;

/// The answers of SQLite for a database.
pub(crate) struct Oracle {
    connection: Connection,
    position: &'static str,
}

/// A row of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) turns: u32,
    pub(crate) begun: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

impl Oracle {
    /// Opens a database for queries. A temporary table gives SQLite the instants of messages and their
    /// decoded texts, which the database does not have.
    pub(crate) fn of(database: &Database) -> Oracle {
        let connection = database.connect();
        connection
            .execute_batch("CREATE TEMP TABLE known (message INTEGER PRIMARY KEY, at, decoded)")
            .expect("a table");
        for known in &database.known {
            connection
                .execute(
                    "INSERT INTO known VALUES (?1, ?2, ?3)",
                    params![known.rowid, known.instant, known.decoded],
                )
                .expect("a row");
        }
        let position = if database.has_positions { "m.position" } else { "NULL" };
        Oracle { connection, position }
    }

    /// Returns the messages that `LIKE` finds, newest first.
    pub(crate) fn search(&self, request: &Request) -> Vec<Hit<'static>> {
        let like = if request.case_sensitive { "ON" } else { "OFF" };
        let pragma = format!("PRAGMA case_sensitive_like = {like}");
        self.connection.execute_batch(&pragma).expect("a known pragma");
        let roles = one_of("m.role", &request.roles);
        let sql = format!(
            "SELECT CAST(m.id AS TEXT), CAST(m.conversation_id AS TEXT), CAST(c.title AS TEXT),
                 CAST(m.role AS TEXT), k.at, {position},
                 CASE WHEN ?2 OR k.decoded IS NULL THEN CAST(m.content AS TEXT) ELSE k.decoded END
             FROM messages m JOIN conversations c ON c.id = m.conversation_id
                 JOIN known k ON k.message = m.rowid
             WHERE (?1 = '' OR m.content LIKE '%' || ?1 || '%' OR c.title LIKE '%' || ?1 || '%'
                     OR NOT ?2 AND k.decoded LIKE '%' || ?1 || '%')
                 AND (?3 IS NULL OR k.at >= ?3) AND (?4 IS NULL OR k.at <= ?4) AND {roles}
             ORDER BY k.at DESC NULLS LAST, {position} DESC, m.rowid DESC LIMIT ?5",
            position = self.position,
        );
        let limit = request.limit.map_or(-1, |limit| limit as i64);
        let (since, until) = (request.since.map(nanos), request.until.map(nanos));
        let values = params![request.text, request.raw_content, since, until, limit];
        self.hits(&sql, values)
    }

    /// Returns the messages of a conversation in reading order.
    pub(crate) fn read(&self, id: &str, raw_content: bool) -> Vec<Hit<'static>> {
        let sql = format!(
            "SELECT CAST(m.id AS TEXT), CAST(m.conversation_id AS TEXT), CAST(c.title AS TEXT),
                 CAST(m.role AS TEXT), k.at, {position},
                 CASE WHEN ?2 OR k.decoded IS NULL THEN CAST(m.content AS TEXT) ELSE k.decoded END
             FROM messages m JOIN conversations c ON c.id = m.conversation_id
                 JOIN known k ON k.message = m.rowid
             WHERE c.id = ?1 ORDER BY {position}, k.at, m.rowid",
            position = self.position,
        );
        self.hits(&sql, params![id, raw_content])
    }

    fn hits(&self, sql: &str, values: impl rusqlite::Params) -> Vec<Hit<'static>> {
        let mut statement = self.connection.prepare(sql).expect("a statement");
        let hits = statement.query_map(values, |row| {
            let position = match row.get_ref(5)? {
                ValueRef::Integer(position) => Some(position),
                _ => None,
            };
            Ok(Hit {
                message_id: text(row, 0)?.into(),
                conversation_id: text(row, 1)?.into(),
                title: text(row, 2)?.into(),
                role: text(row, 3)?.into(),
                time: row.get::<_, Option<i64>>(4)?.map(instant),
                content: text(row, 6)?.into(),
                position,
            })
        });
        hits.expect("an answer").collect::<Result<_, _>>().expect("rows")
    }

    /// Returns the conversations in a scope, latest activity first.
    pub(crate) fn list(&self, scope: &Scope) -> Vec<Listed> {
        let roles = one_of("coalesce(CAST(m.role AS TEXT), '')", &scope.roles);
        let origins = origins(scope);
        let sql = format!(
            "SELECT CAST(c.id AS TEXT), CAST(c.title AS TEXT), count(*), min(k.at), max(k.at)
             FROM messages m JOIN conversations c ON c.id = m.conversation_id
                 JOIN known k ON k.message = m.rowid
             WHERE (?1 IS NULL OR c.id = ?1) AND {origins}
                 AND (?6 IS NULL OR c.id IN (SELECT value FROM json_each(?6)))
             GROUP BY c.id
             HAVING (?2 IS NULL OR max(k.at) >= ?2) AND (?3 IS NULL OR min(k.at) <= ?3)
                 AND total({roles}) > 0
             ORDER BY max(k.at) DESC NULLS LAST, c.id"
        );
        let mut statement = self.connection.prepare(&sql).expect("a statement");
        let (since, until) = (scope.since.map(nanos), scope.until.map(nanos));
        let ids = ids(scope);
        let values = params![scope.conversation, since, until, scope.project, scope.session, ids];
        let listed = statement.query_map(values, |row| {
            Ok(Listed {
                id: text(row, 0)?,
                title: text(row, 1)?,
                turns: row.get(2)?,
                begun: row.get::<_, Option<i64>>(3)?.map(instant),
                last: row.get::<_, Option<i64>>(4)?.map(instant),
            })
        });
        listed.expect("an answer").collect::<Result<_, _>>().expect("rows")
    }

    /// Returns the conversation, the role, the instant and the model of every message in a scope that
    /// has a conversation. `verbatim_messages` names the models.
    pub(crate) fn messages(&self, scope: &Scope) -> Vec<(String, String, Option<Instant>, String)> {
        let roles = one_of("coalesce(CAST(m.role AS TEXT), '')", &scope.roles);
        let has = "SELECT count(*) FROM sqlite_schema WHERE name = 'verbatim_messages'";
        let model = match self.number(has) {
            Some(0) | None => "NULL",
            Some(_) => "(SELECT model FROM verbatim_messages WHERE message_id = m.id)",
        };
        let origins = origins(scope);
        let sql = format!(
            "SELECT CAST(c.id AS TEXT), CAST(m.role AS TEXT), k.at, {model}
             FROM messages m JOIN conversations c ON c.id = m.conversation_id
                 JOIN known k ON k.message = m.rowid
             WHERE (?1 IS NULL OR c.id = ?1) AND (?2 IS NULL OR k.at >= ?2)
                 AND (?3 IS NULL OR k.at <= ?3) AND {origins} AND {roles}
                 AND (?6 IS NULL OR c.id IN (SELECT value FROM json_each(?6)))"
        );
        let mut statement = self.connection.prepare(&sql).expect("a statement");
        let (since, until) = (scope.since.map(nanos), scope.until.map(nanos));
        let ids = ids(scope);
        let values = params![scope.conversation, since, until, scope.project, scope.session, ids];
        let rows = statement.query_map(values, |row| {
            let time = row.get::<_, Option<i64>>(2)?.map(instant);
            Ok((text(row, 0)?, text(row, 1)?, time, text(row, 3)?))
        });
        rows.expect("an answer").collect::<Result<_, _>>().expect("rows")
    }

    /// Returns the number that a query gives.
    pub(crate) fn number(&self, sql: &str) -> Option<i64> {
        let number = self.connection.query_row(sql, [], |row| row.get(0)).optional();
        number.expect("an answer").flatten()
    }
}

/// Returns a condition on a column; without values, the condition is always true.
fn one_of(column: &str, values: &[String]) -> String {
    if values.is_empty() {
        return "1".to_owned();
    }
    let quoted = values.iter().map(|value| {
        let value = value.replace('\'', "''").replace('\0', "' || char(0) || '");
        format!("'{value}'")
    });
    format!("{column} IN ({})", quoted.collect::<Vec<_>>().join(", "))
}

/// Returns the condition that a conversation comes from the project and the session of a scope.
fn origins(scope: &Scope) -> &'static str {
    match scope.project.is_some() || scope.session.is_some() {
        true => {
            "c.id IN (SELECT conversation_id FROM verbatim_transcripts
                 WHERE (?4 IS NULL OR project = ?4) AND (?5 IS NULL OR session = ?5))"
        }
        false => "?4 IS NULL AND ?5 IS NULL",
    }
}

/// Returns the conversations that a scope names, as a list in JSON.
fn ids(scope: &Scope) -> Option<String> {
    let ids = scope.conversations.as_ref()?;
    Some(serde_json::json!(ids.values().next()).to_string())
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        _ => String::new(),
    })
}

fn nanos(instant: Instant) -> i64 {
    instant.seconds * 1_000_000_000 + i64::from(instant.nanos)
}

/// Returns the instant of nanoseconds since 1970.
pub(crate) fn instant(nanos: i64) -> Instant {
    Instant {
        seconds: nanos.div_euclid(1_000_000_000),
        nanos: nanos.rem_euclid(1_000_000_000) as u32,
    }
}
