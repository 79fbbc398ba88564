//! Lists of conversations, read from the database and not from an index.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{OptionalExtension, Row, params_from_iter, types::Value};
use serde::{Deserialize, Serialize};

use super::{Database, Result, functions, rows, tally::has_columns};
use verbatim_base::model::{Instant, Origin, Provenance};

/// The maximum number of ids in a statement. If more rows are wanted, all rows are read.
const MAX_NAMED: usize = 500;

/// A conversation with messages, as an entry of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// The id of the conversation, as text; empty for NULL.
    pub id: String,
    /// The title of the conversation; empty for NULL.
    pub title: String,
    /// The number of messages of the conversation.
    pub turns: u32,
    /// The time of the conversation's first message.
    pub begun: Option<Instant>,
    /// The time of the conversation's last message.
    pub last: Option<Instant>,
}

/// Returns every conversation that has messages, latest activity first. If `roles` is not empty, returns only
/// conversations with a message of one of these roles.
pub fn outline(database: &Database, roles: &[String]) -> Result<Vec<Outline>> {
    let placeholders = vec!["?"; roles.len()].join(", ");
    let having = match roles {
        [] => String::new(),
        // NULL counts as an empty role, as everywhere but in exact search.
        _ => format!("HAVING total(coalesce(CAST(m.role AS TEXT), '') IN ({placeholders})) > 0"),
    };
    let sql = format!(
        "SELECT CAST(c.id AS TEXT), CAST(c.title AS TEXT), count(*), \
         min(verbatim_instant(m.create_time)), max(verbatim_instant(m.create_time)) AS last \
         FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id \
         GROUP BY c.id {having} ORDER BY last DESC NULLS LAST, c.id"
    );
    database.query(|connection| {
        connection
            .prepare(&sql)?
            .query_map(params_from_iter(roles), |row: &Row<'_>| {
                let turns: i64 = row.get(2)?;
                Ok(Outline {
                    id: rows::text(row, 0)?,
                    title: rows::text(row, 1)?,
                    turns: u32::try_from(turns).unwrap_or(u32::MAX),
                    begun: functions::from_key(row.get_ref(3)?),
                    last: functions::from_key(row.get_ref(4)?),
                })
            })?
            .collect()
    })
}

/// Returns the rows of `conversations` whose ids `is_wanted` accepts, without their messages. Takes the times
/// from the row, if the table has columns for them.
pub fn conversation_rows(
    database: &Database,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Outline>> {
    database.query(|connection| {
        let mut statement = connection.prepare("SELECT id, CAST(id AS TEXT) FROM conversations")?;
        let mut found = statement.query([])?;
        let mut wanted: Vec<Value> = Vec::new();
        while let Some(row) = found.next()? {
            if is_wanted(&rows::lent_text(row, 1)?) {
                wanted.push(row.get(0)?);
            }
        }
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // `IN` never finds NULL.
        let mut which = String::new();
        if wanted.len() <= MAX_NAMED && !wanted.contains(&Value::Null) {
            which = format!("WHERE id IN ({})", vec!["?"; wanted.len()].join(", "));
        } else {
            wanted.clear();
        }
        let mut times = ["create_time", "update_time"];
        for time in &mut times {
            if !has_columns(connection, "conversations", &[time])? {
                *time = "NULL";
            }
        }
        let [begun, last] = times;
        let mut statement = connection.prepare(&format!(
            "SELECT CAST(id AS TEXT), CAST(title AS TEXT), verbatim_instant({begun}), verbatim_instant({last}) \
             FROM conversations {which}"
        ))?;
        let mut found = statement.query(params_from_iter(wanted))?;
        let mut outlines = Vec::new();
        while let Some(row) = found.next()? {
            let id = rows::text(row, 0)?;
            if !is_wanted(&id) {
                continue;
            }
            let begun = functions::from_key(row.get_ref(2)?);
            let last = functions::from_key(row.get_ref(3)?).or(begun);
            let title = rows::text(row, 1)?;
            outlines.push(Outline { id, title, turns: 0, begun: begun.or(last), last });
        }
        Ok(outlines)
    })
}

/// The conversation of the last file whose messages the files of a conversation leave out. An agent's file may
/// repeat messages of the session that started the agent, which it does not continue; nor does the later state of a
/// file, whose id begins with that of the earlier one. Of two conversations, only the one that was read later
/// continues the other.
const CONTINUES: &str = "CASE WHEN t.conversation_id LIKE '%/agent-%' THEN NULL ELSE
    (SELECT e.conversation_id FROM verbatim_files AS f
         JOIN verbatim_repeats AS r ON r.file = f.id JOIN verbatim_files AS e ON e.id = r.repeated
         JOIN conversations AS c ON c.id = e.conversation_id
     WHERE f.conversation_id = t.conversation_id AND e.conversation_id NOT LIKE '%/agent-%'
         AND substr(t.conversation_id || '/', 1, length(e.conversation_id) + 1)
             <> e.conversation_id || '/'
         AND (SELECT min(id) FROM verbatim_files WHERE conversation_id = e.conversation_id)
             < (SELECT min(id) FROM verbatim_files WHERE conversation_id = t.conversation_id)
     ORDER BY e.id DESC LIMIT 1) END";

/// The time since when all files of a conversation are gone.
const GONE: &str = "(SELECT CASE WHEN count(*) = count(gone) THEN max(gone) END
    FROM verbatim_files WHERE conversation_id = t.conversation_id)";

/// Returns the origins of the conversations of coding agents, by conversation id.
pub fn origins(database: &Database) -> Result<HashMap<String, Origin>> {
    database.query(|connection| {
        let columns = ["conversation_id", "file", "session", "project", "folder", "branch"];
        let mut origins = HashMap::new();
        if !has_columns(connection, "verbatim_transcripts", &columns)? {
            return Ok(origins);
        }
        let mut gone = "NULL";
        let mut continues = "NULL";
        if has_columns(connection, "verbatim_files", &["gone"])? {
            gone = GONE;
            continues = CONTINUES;
        }
        let mut statement = connection.prepare(&format!(
            "SELECT t.conversation_id, t.file, t.session, t.project, t.folder, t.branch, {gone}, \
             {continues} FROM verbatim_transcripts AS t"
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let origin = Origin {
                file: row.get(1)?,
                session: row.get(2)?,
                project: row.get(3)?,
                branch: row.get(5)?,
                gone: functions::instant(row.get_ref(6)?),
                continues: row.get(7)?,
                ..Origin::default()
            };
            let folders: Option<String> = row.get(4)?;
            origins.insert(row.get(0)?, origin.with_folder_lines(folders.as_deref()));
        }
        take_from_sessions(&mut origins);
        Ok(origins)
    })
}

/// Gives agents whose transcripts name no folder the folders, the project and the branch of their sessions.
fn take_from_sessions(origins: &mut HashMap<String, Origin>) {
    let without_folder = origins.iter().filter(|(_, origin)| origin.folder.is_none());
    let taken: Vec<(String, Origin)> = without_folder
        .filter_map(|(id, origin)| {
            let session = origins.get(origin.session.as_ref()?)?;
            session.folder.as_ref()?;
            let Origin { folder, later_folders, project, .. } = session.clone();
            let branch = origin.branch.clone().or(session.branch.clone());
            Some((id.clone(), Origin { folder, later_folders, project, branch, ..origin.clone() }))
        })
        .collect();
    origins.extend(taken);
}

/// Returns the known conversations of a transcript store that are not stored: the store has an entry for
/// their files, but no conversations.
pub fn not_stored(database: &Database) -> Result<Vec<String>> {
    database.query(|connection| {
        if !connection.table_exists(None, "verbatim_files")? {
            return Ok(Vec::new());
        }
        let sql = "SELECT conversation_id FROM verbatim_files AS f
                   WHERE conversation_id IS NOT NULL AND NOT EXISTS
                       (SELECT 1 FROM conversations AS c WHERE c.id = f.conversation_id)";
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    })
}

/// Returns the saved state of the reader of a conversation's transcript.
pub fn reader_state(database: &Database, conversation: &str) -> Result<Option<String>> {
    database.query(|connection| {
        if !connection.table_exists(None, "verbatim_files")? {
            return Ok(None);
        }
        let sql = "SELECT f.reader FROM verbatim_transcripts AS t
                       JOIN verbatim_files AS f ON f.path = t.file WHERE t.conversation_id = ?1";
        connection.query_row(sql, [conversation], |row| row.get(0)).optional()
    })
}

/// The state of reading a transcript's file.
pub struct ReadingState {
    pub path: String,
    /// Identity, size and times of the file.
    pub stamp: String,
    /// The saved state of the reader.
    pub reader: String,
    /// Whether the conversation is stored, and can be searched.
    pub is_shown: bool,
}

/// Returns the reading states of a transcript store's files, by path.
pub fn reading_states(database: &Database) -> Result<BTreeMap<String, ReadingState>> {
    database.query(|connection| {
        let sql = "SELECT path, stamp, reader, conversation_id IS NULL OR EXISTS
                       (SELECT 1 FROM conversations AS c WHERE c.id = f.conversation_id)
                   FROM verbatim_files AS f";
        connection
            .prepare(sql)?
            .query_map([], |row| {
                let path: String = row.get(0)?;
                let stamp = row.get(1)?;
                let reader = row.get(2)?;
                let is_shown = row.get(3)?;
                Ok((path.clone(), ReadingState { path, stamp, reader, is_shown }))
            })?
            .collect()
    })
}

/// Returns the file and the time of the last change of each transcript, by conversation id.
pub fn last_changes(database: &Database) -> Result<HashMap<String, (String, Option<Instant>)>> {
    database.query(|connection| {
        if !has_columns(connection, "verbatim_transcripts", &["conversation_id", "file"])? {
            return Ok(HashMap::new());
        }
        let sql = "SELECT t.conversation_id, t.file, c.update_time FROM verbatim_transcripts AS t \
                   JOIN conversations AS c ON c.id = t.conversation_id";
        connection
            .prepare(sql)?
            .query_map([], |row| {
                let last = functions::instant(row.get_ref(2)?);
                Ok((rows::text(row, 0)?, (rows::text(row, 1)?, last)))
            })?
            .collect()
    })
}

/// Returns the services of some or all conversations, by conversation id; empty if the database does not
/// name services.
pub fn provenance(
    database: &Database,
    ids: Option<&[&str]>,
) -> Result<HashMap<String, Provenance>> {
    database.query(|connection| {
        let table = "verbatim_conversations";
        let mut found = HashMap::new();
        if !has_columns(connection, table, &["conversation_id", "source", "link"])? {
            return Ok(found);
        }
        let model = if has_columns(connection, table, &["model"])? { "model" } else { "''" };
        let all = format!("SELECT conversation_id, source, link, {model} FROM {table}");
        match ids {
            None => {
                let mut statement = connection.prepare(&all)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    add_provenance(&mut found, row)?;
                }
            }
            Some(ids) => {
                let mut statement =
                    connection.prepare(&format!("{all} WHERE conversation_id = ?1"))?;
                for id in ids {
                    let mut rows = statement.query([id])?;
                    while let Some(row) = rows.next()? {
                        add_provenance(&mut found, row)?;
                    }
                }
            }
        }
        Ok(found)
    })
}

fn add_provenance(found: &mut HashMap<String, Provenance>, row: &Row<'_>) -> rusqlite::Result<()> {
    let provenance = Provenance {
        service: rows::text(row, 1)?.replace('_', "-"),
        link: Some(rows::text(row, 2)?).filter(|link| !link.is_empty()),
        model: Some(rows::text(row, 3)?).filter(|model| !model.is_empty()),
    };
    found.insert(rows::text(row, 0)?, provenance);
    Ok(())
}
