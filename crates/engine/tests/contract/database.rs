//! Databases for the tests, and the facts that SQLite cannot know: the instants that stored times
//! denote, and the text of JSON parts.

use std::path::PathBuf;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params};
use tempfile::TempDir;
use verbatim_engine::{Config, Engine, Source, SourceKind};

/// A value of a column. Texts may be invalid UTF-8.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.as_bytes().to_vec())
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Integer(number) => ValueRef::Integer(*number),
            Cell::Real(number) => ValueRef::Real(*number),
            Cell::Text(bytes) => ValueRef::Text(bytes),
            Cell::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Stored times, and the instants that they denote in nanoseconds since 1970.
pub(crate) fn times() -> Vec<(Cell, Option<i64>)> {
    const SECOND: i64 = 1_000_000_000;
    vec![
        ("1700000000".into(), Some(1_700_000_000 * SECOND)),
        (Cell::Integer(1_700_000_000), Some(1_700_000_000 * SECOND)),
        (Cell::Real(1_700_000_000.5), Some(1_700_000_000 * SECOND + 500_000_000)),
        ("1700000000.5".into(), Some(1_700_000_000 * SECOND + 500_000_000)),
        ("1700000000.000001".into(), Some(1_700_000_000 * SECOND + 1_000)),
        ("2023-11-14T22:13:20Z".into(), Some(1_700_000_000 * SECOND)),
        ("2023-11-15 00:13:20.5+02:00".into(), Some(1_700_000_000 * SECOND + 500_000_000)),
        ("2023-11-15".into(), Some(1_700_006_400 * SECOND)),
        ("1e9".into(), Some(1_000_000_000 * SECOND)),
        (Cell::Real(-1.5), Some(-SECOND * 3 / 2)),
        (Cell::Integer(-5), Some(-5 * SECOND)),
        (Cell::Integer(0), Some(0)),
        ("4000000000".into(), Some(4_000_000_000 * SECOND)),
        ("soon".into(), None),
        ("".into(), None),
        (Cell::Null, None),
        (Cell::Blob(b"1700000000".to_vec()), None),
        (Cell::Text(vec![0xff, b'1']), None),
    ]
}

/// A message to be stored.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The number of its conversation; no conversation has the highest number.
    pub(crate) conversation: usize,
    pub(crate) role: Cell,
    pub(crate) content: Content,
    /// Its place in [`times`].
    pub(crate) time: usize,
    pub(crate) position: Option<i64>,
}

impl Message {
    /// Returns the first message of the first conversation, by the user.
    pub(crate) fn of(content: Content) -> Message {
        Message { conversation: 0, role: "user".into(), content, time: 0, position: Some(0) }
    }

    /// Returns the same of a stored content.
    pub(crate) fn stored(content: impl Into<Cell>) -> Message {
        Message::of(Content::Stored(content.into()))
    }
}

/// A content to be stored.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Stored(Cell),
    /// Parts of a message as ChatGPT's exports have them; `None` for a part without text.
    Parts(Vec<Option<String>>),
}

impl Content {
    fn stored(&self) -> Cell {
        let Content::Parts(parts) = self else {
            let Content::Stored(cell) = self else { unreachable!("there are two kinds") };
            return cell.clone();
        };
        let json = |(number, part): (usize, &Option<String>)| match part {
            None => serde_json::json!({ "type": "image" }),
            Some(text) if number % 3 == 2 => serde_json::json!({ "text": text }),
            Some(text) => serde_json::json!(text),
        };
        let parts: Vec<_> = parts.iter().enumerate().map(json).collect();
        Cell::Text(serde_json::Value::from(parts).to_string().into_bytes())
    }

    fn decoded(&self) -> Option<String> {
        let Content::Parts(parts) = self else { return None };
        let texts: Vec<&str> = parts.iter().filter_map(|part| part.as_deref()).collect();
        Some(texts.join("\n"))
    }
}

/// The way to make the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// The tables of our own importers.
    Typed,
    /// Columns without types, so that values keep theirs.
    Untyped,
    /// Columns without types and no position.
    WithoutPositions,
    /// Roles that SQLite compares without regard to case.
    NoCaseRoles,
    /// Roles that SQLite compares without the spaces at their ends.
    TrimmedRoles,
    /// Roles that become numbers if they look like numbers.
    NumericRoles,
}

impl Schema {
    fn sql(self) -> String {
        let with_roles = |kind: &str| {
            format!(
                "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
                 CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role {kind},
                     content TEXT, create_time TEXT, position INTEGER);"
            )
        };
        let plain = match self {
            Schema::NoCaseRoles => return with_roles("TEXT COLLATE NOCASE"),
            Schema::TrimmedRoles => return with_roles("TEXT COLLATE RTRIM"),
            Schema::NumericRoles => return with_roles("NUMERIC"),
            Schema::Typed => {
                "CREATE TABLE conversations (id TEXT PRIMARY KEY, create_time TEXT,
                     update_time TEXT, title TEXT);
                 CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL,
                     role TEXT, content TEXT, create_time TEXT, update_time TEXT,
                     position INTEGER);
                 CREATE INDEX messages_by_conversation ON messages (conversation_id);"
            }
            Schema::Untyped => {
                "CREATE TABLE conversations (id TEXT PRIMARY KEY, title);
                 CREATE TABLE messages (id, conversation_id TEXT, role, content, create_time,
                     position);"
            }
            Schema::WithoutPositions => {
                "CREATE TABLE conversations (id TEXT PRIMARY KEY, title);
                 CREATE TABLE messages (id, conversation_id TEXT, role, content, create_time);"
            }
        };
        plain.to_owned()
    }
}

/// The facts about a message that SQLite cannot know.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) rowid: i64,
    pub(crate) instant: Option<i64>,
    pub(crate) decoded: Option<String>,
}

/// A database in a folder that is removed at the end of the test.
pub(crate) struct Database {
    folder: TempDir,
    pub(crate) kind: SourceKind,
    pub(crate) has_positions: bool,
    pub(crate) known: Vec<Known>,
}

impl Database {
    /// Creates an empty database that is a source of this kind.
    pub(crate) fn new(kind: SourceKind, schema: Schema) -> Database {
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        std::fs::create_dir(folder.path().join("index")).expect("folders can be made");
        let has_positions = schema != Schema::WithoutPositions;
        let database = Database { folder, kind, has_positions, known: Vec::new() };
        database.connect().execute_batch(&schema.sql()).expect("the schema is sound");
        database
    }

    /// Creates a database of conversations with these titles and of messages. A conversation
    /// without messages is added.
    pub(crate) fn of(schema: Schema, titles: &[Cell], messages: &[Message]) -> Database {
        let mut database = Database::new(SourceKind::Export, schema);
        let connection = database.connect();
        connection.execute_batch("BEGIN").expect("a transaction");
        let empty = Cell::from("the other thing without messages");
        for (number, title) in titles.iter().chain([&empty]).enumerate() {
            // The conversation without messages is c9; the conversation of the highest number is missing.
            let id = if number == titles.len() { "c9".to_owned() } else { format!("c{number}") };
            let sql = "INSERT INTO conversations (id, title) VALUES (?1, ?2)";
            connection.execute(sql, params![id, title]).expect("a conversation");
        }
        for message in messages {
            database.insert(&connection, message);
        }
        connection.execute_batch("COMMIT").expect("a commit");
        database.forget_parts(messages);
        database
    }

    fn insert(&mut self, connection: &Connection, message: &Message) {
        let rowid = self.known.len() as i64 + 1;
        let id = match rowid % 2 {
            0 => format!("message-{rowid}"),
            _ => format!("0123abcd-0000-4000-8000-{rowid:012x}"),
        };
        let (time, instant) = times().swap_remove(message.time);
        let conversation = format!("c{}", message.conversation);
        let sql = "INSERT INTO messages (rowid, id, conversation_id, role, content, create_time)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (role, content) = (&message.role, message.content.stored());
        connection
            .execute(sql, params![rowid, id, conversation, role, content, time])
            .expect("a message");
        if self.has_positions {
            let sql = "UPDATE messages SET position = ?2 WHERE rowid = ?1";
            connection.execute(sql, params![rowid, message.position]).expect("a position");
        }
        let decoded = message.content.decoded();
        self.known.push(Known { rowid, instant, decoded });
    }

    /// Contents count as parts only if at least half of the contents that are not empty are parts.
    fn forget_parts(&mut self, messages: &[Message]) {
        let is_text = |message: &&Message| match message.content.stored() {
            Cell::Text(bytes) | Cell::Blob(bytes) => !bytes.is_empty(),
            Cell::Integer(_) | Cell::Real(_) => false,
            Cell::Null => false,
        };
        let texts = messages.iter().filter(is_text).count();
        let parts = self.known.iter().filter(|known| known.decoded.is_some()).count();
        if parts * 2 < texts {
            self.known.iter_mut().for_each(|known| known.decoded = None);
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self.kind {
            SourceKind::Export => self.folder.path().join("chats.db"),
            SourceKind::Archive => self.folder.path().join("transcripts.db"),
            SourceKind::Threads => self.folder.path().join("threads.db"),
        }
    }

    pub(crate) fn connect(&self) -> Connection {
        let connection = Connection::open(self.path()).expect("a database can be made");
        connection.execute_batch("PRAGMA synchronous = OFF").expect("a known pragma");
        connection.busy_timeout(std::time::Duration::from_secs(20)).expect("a timeout");
        connection
    }

    pub(crate) fn engine(&self) -> Engine {
        let db = (self.kind == SourceKind::Export).then(|| self.path().into());
        Engine::new(Config { db, home: self.folder.path().to_owned(), ..Config::default() })
    }

    /// Returns the source of a new engine.
    pub(crate) fn source(&self) -> Source {
        self.engine().sources().pop().expect("the database is a source")
    }

    /// The folder of the index, without the database of the transcript store.
    pub(crate) fn index_folder(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.folder.path().join("index")).expect("a folder");
        let mut folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        folders.next().expect("an index")
    }
}
