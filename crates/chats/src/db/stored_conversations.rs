//! Reads whole conversations with all their columns, to copy them to another kind of store.

use rusqlite::types::ValueRef;

use super::{Database, Result, functions, origins, provenance, rows, search, tally};
use verbatim_base::model::{Request, StoredConversation, StoredMessage};

/// Returns the reason why searching a copy of the conversations would give other answers; `None` if a copy
/// gives the same answers.
pub fn obstacle(database: &Database) -> Result<Option<&'static str>> {
    let layout = database.layout();
    if layout.message_key.is_none() || layout.conversation_key.is_none() {
        return Ok(Some(
            "its tables are views or WITHOUT ROWID, or have columns named rowid, oid and _rowid_",
        ));
    }
    if !layout.bytewise_roles {
        return Ok(Some("its column \"role\" has a special collation or type"));
    }
    if layout.position {
        let sql = "SELECT EXISTS (SELECT 1 FROM messages \
                   WHERE typeof(position) NOT IN ('integer', 'null'))";
        if database.query(|it| it.query_row(sql, [], |row| row.get::<_, bool>(0)))? {
            return Ok(Some("some positions of its messages are not whole numbers"));
        }
    }
    Ok(None)
}

/// Calls `each` with every wanted conversation and its messages, until `each` returns false. Keeps one
/// conversation in memory at a time, and 16 bytes for each message of the database.
pub fn each_conversation(
    database: &Database,
    is_wanted: &mut dyn FnMut(&str) -> bool,
    each: &mut dyn FnMut(StoredConversation, Vec<StoredMessage>) -> bool,
) -> Result<()> {
    let layout = database.layout();
    let Some(keys) = layout.message_key.zip(layout.conversation_key) else { return Ok(()) };
    let mut pairs = search::keys(database, &Request::default(), keys.0, keys.1)?;
    pairs.sort_unstable_by_key(|[message, conversation]| (*conversation, *message));
    let origins = origins(database)?;
    let services = provenance(database, None)?;
    let models = tally::models_by_conversation(database)?;
    let connection = database.connection();
    let has_updates = connection.prepare("SELECT update_time FROM conversations LIMIT 0").is_ok();
    let updated = if has_updates { "update_time" } else { "NULL" };
    let sql = "SELECT message_id, model FROM verbatim_messages LIMIT 0";
    let model = if connection.prepare(sql).is_ok() {
        "(SELECT CAST(model AS TEXT) FROM verbatim_messages WHERE message_id = m.id)"
    } else {
        "NULL"
    };
    let position = if layout.position { "m.position" } else { "NULL" };
    database.query(|connection| {
        let mut conversation = connection.prepare(&format!(
            "SELECT CAST(id AS TEXT), CAST(title AS TEXT), {updated} FROM conversations \
             WHERE {} = ?1",
            keys.1
        ))?;
        let mut message = connection.prepare(&format!(
            "SELECT CAST(m.id AS TEXT), CAST(m.role AS TEXT), typeof(m.role) = 'text', \
                 m.create_time, {position}, CAST(m.content AS TEXT), {model} \
             FROM messages AS m WHERE m.{} = ?1",
            keys.0
        ))?;
        for pairs in pairs.chunk_by(|one, other| one[1] == other[1]) {
            let stored = conversation.query_row([pairs[0][1]], |row| {
                let id = rows::text(row, 0)?;
                Ok(StoredConversation {
                    title: bytes(row.get_ref(1)?),
                    updated: functions::instant(row.get_ref(2)?),
                    origin: origins.get(&id).cloned(),
                    provenance: services.get(&id).cloned(),
                    model: models.get(&id).and_then(|models| models.first()).cloned(),
                    id,
                })
            })?;
            if !is_wanted(&stored.id) {
                continue;
            }
            let mut messages = Vec::with_capacity(pairs.len());
            for [key, _] in pairs {
                messages
                    .push(message.query_row([key], |row| stored_message(row, *key, layout.parts))?);
            }
            if !each(stored, messages) {
                break;
            }
        }
        Ok(())
    })
}

fn stored_message(
    row: &rusqlite::Row<'_>,
    key: i64,
    is_parts: bool,
) -> rusqlite::Result<StoredMessage> {
    let content = bytes(row.get_ref(5)?);
    let text = content.as_deref().filter(|_| is_parts).map(String::from_utf8_lossy);
    let is_utf8 = row.get_ref(1)?.as_bytes_or_null()?.is_none_or(|it| str::from_utf8(it).is_ok());
    Ok(StoredMessage {
        id: rows::text(row, 0)?,
        role: rows::text(row, 1)?,
        // A BLOB, a number or bytes that are not UTF-8 never equal a text.
        has_text_role: row.get::<_, bool>(2)? && is_utf8,
        time: functions::instant(row.get_ref(3)?),
        position: row.get(4)?,
        row: key,
        decoded: text.and_then(|text| verbatim_text::content::decode_parts(&text)),
        content,
        model: Some(rows::text(row, 6)?).filter(|model| !model.is_empty()),
    })
}

fn bytes(value: ValueRef<'_>) -> Option<Vec<u8>> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
        _ => None,
    }
}
