//! The canonical tables, and the tables that this program adds.

use rusqlite::{Connection, params};

use verbatim_base::model::Origin;

/// The version of the added tables, stored in `verbatim_meta`.
pub(super) const SCHEMA_VERSION: i64 = 3;

/// The canonical table of conversations, as ChatGPT Browser defines it.
const CONVERSATIONS: &str = "CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    create_time TEXT,
    update_time TEXT,
    title TEXT
)";

/// The canonical table of messages, as ChatGPT Browser defines it.
const MESSAGES: &str = "CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    role TEXT,
    content TEXT,
    create_time TEXT,
    update_time TEXT,
    position INTEGER NOT NULL,
    FOREIGN KEY (conversation_id) REFERENCES conversations(id)
)";

const BY_CONVERSATION: &str =
    "CREATE INDEX idx_messages_conversation_id ON messages(conversation_id);";

/// The tables for data that the canonical tables have no columns for. A conversation or message without such
/// data has no row in these tables, for example if another program wrote it.
const OURS: &str = "
CREATE TABLE verbatim_meta (
    name TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;
CREATE TABLE verbatim_conversations (
    conversation_id TEXT PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE,
    source TEXT NOT NULL,       -- chatgpt, claude, claude_code or codex
    model TEXT,
    link TEXT,
    archived INTEGER NOT NULL,
    starred INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE verbatim_messages (
    message_id TEXT PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
    export_id TEXT,             -- the export's own id, where messages.id is another
    model TEXT
) WITHOUT ROWID;
CREATE TABLE verbatim_attachments (
    message_id TEXT NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    number INTEGER NOT NULL,    -- from 1
    name TEXT NOT NULL,
    PRIMARY KEY (message_id, number)
) WITHOUT ROWID;
CREATE TABLE verbatim_imports (
    id INTEGER PRIMARY KEY,
    time TEXT NOT NULL,         -- seconds since 1970
    path TEXT NOT NULL,
    conversations INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    new_conversations INTEGER NOT NULL,
    new_messages INTEGER NOT NULL,
    updated_conversations INTEGER NOT NULL,
    updated_messages INTEGER NOT NULL,
    skipped INTEGER NOT NULL
);
CREATE TABLE verbatim_transcripts ( -- the origins of coding agents' conversations
    conversation_id TEXT PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE,
    file TEXT NOT NULL,
    session TEXT,
    project TEXT,
    folder TEXT,                -- the working folders, one a line, the first one first
    branch TEXT
) WITHOUT ROWID;
CREATE TABLE verbatim_branches ( -- the messages on branches that the service does not show
    message_id TEXT PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
    follows TEXT NOT NULL       -- the export's id of the message before; empty for none
) WITHOUT ROWID;
";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SchemaState {
    #[default]
    Empty,
    /// The canonical tables, written by another program.
    Canonical,
    /// The canonical tables and the added tables of this version.
    Ours,
    /// The canonical tables and the added tables of another version.
    OtherVersion(i64),
}

const COLUMNS: [(&str, &[&str]); 2] = [
    ("conversations", &["id", "create_time", "update_time", "title"]),
    (
        "messages",
        &["id", "conversation_id", "role", "content", "create_time", "update_time", "position"],
    ),
];

/// Detects which tables a database has. The inner error names the missing table or column.
pub(super) fn find(connection: &Connection) -> rusqlite::Result<Result<SchemaState, String>> {
    let tables: i64 =
        connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(Ok(SchemaState::Empty));
    }
    for (table, required) in COLUMNS {
        let mut statement = connection.prepare(
            "SELECT lower(name), pk FROM pragma_table_info(?1)
             WHERE EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND lower(name) = ?1)",
        )?;
        let columns: Vec<(String, i64)> = statement
            .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        if columns.is_empty() {
            return Ok(Err(format!("it has no table \"{table}\"")));
        }
        for name in required {
            if !columns.iter().any(|(column, _)| column == name) {
                return Ok(Err(format!("its table \"{table}\" has no column \"{name}\"")));
            }
        }
        if columns.iter().filter(|(_, key)| *key > 0).ne([&("id".to_owned(), 1)]) {
            return Ok(Err(format!("\"id\" is not the primary key of its table \"{table}\"")));
        }
    }
    let ours: i64 = connection.query_one(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'verbatim_meta'",
        [],
        |row| row.get(0),
    )?;
    if ours == 0 {
        return Ok(Ok(SchemaState::Canonical));
    }
    let version: i64 = connection.query_one(
        "SELECT CAST(coalesce(max(value), 0) AS INTEGER) FROM verbatim_meta WHERE name = 'schema'",
        [],
        |row| row.get(0),
    )?;
    Ok(Ok(match version {
        SCHEMA_VERSION => SchemaState::Ours,
        _ => SchemaState::OtherVersion(version),
    }))
}

/// Creates the missing tables and the index of the messages, inside the transaction of the caller.
pub(super) fn create(connection: &Connection, found: SchemaState) -> rusqlite::Result<()> {
    if found == SchemaState::Empty {
        connection.execute_batch(CONVERSATIONS)?;
        connection.execute_batch(MESSAGES)?;
    }
    create_ours(connection, found)?;
    index(connection)
}

/// Creates all tables in an empty database, but `messages` without its primary key and index. SQLite adds
/// rows without a key several times faster, because ids come in random order. `add_key` sorts all ids once.
pub(super) fn create_without_key(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(CONVERSATIONS)?;
    connection.execute_batch(&MESSAGES.replacen("id TEXT PRIMARY KEY", "id TEXT", 1))?;
    create_ours(connection, SchemaState::Empty)
}

/// Adds the primary key that [`create_without_key`] left out. All ids must be unique.
///
/// To SQLite, the index of a primary key is a unique index with a reserved name and without SQL text. The
/// renamed index becomes the key when SQLite reads the changed schema.
pub(super) fn add_key(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE UNIQUE INDEX new_key ON messages(id);
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET name = 'sqlite_autoindex_messages_1', sql = NULL
             WHERE name = 'new_key';",
    )?;
    connection.execute("UPDATE sqlite_schema SET sql = ?1 WHERE name = 'messages'", [MESSAGES])?;
    connection.execute_batch("PRAGMA writable_schema = RESET")
}

/// Creates the index of messages by conversation, if it is missing.
pub(super) fn index(connection: &Connection) -> rusqlite::Result<()> {
    let indexed: i64 = connection.query_one(
        "SELECT count(*) FROM pragma_index_list('messages') AS list, pragma_index_info(list.name) AS info
         WHERE info.seqno = 0 AND info.name = 'conversation_id'",
        [],
        |row| row.get(0),
    )?;
    if indexed == 0 {
        connection.execute_batch(BY_CONVERSATION)?;
    }
    Ok(())
}

/// Creates the missing tables among those that this program adds.
fn create_ours(connection: &Connection, found: SchemaState) -> rusqlite::Result<()> {
    if matches!(found, SchemaState::Empty | SchemaState::Canonical) {
        connection.execute_batch(OURS)?;
        let sql = "INSERT INTO verbatim_meta (name, value) VALUES ('schema', ?1)";
        connection.execute(sql, [SCHEMA_VERSION])?;
    }
    Ok(())
}

pub(super) fn set_origin(
    connection: &Connection,
    conversation: &str,
    origin: &Origin,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO verbatim_transcripts
                 (conversation_id, file, session, project, folder, branch)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            conversation,
            origin.file.as_deref().unwrap_or_default(),
            origin.session,
            origin.project,
            origin.folder_lines(),
            origin.branch
        ])?;
    Ok(())
}
