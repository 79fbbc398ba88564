//! A new database under a temporary name. Some parts of it are written late.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use rusqlite::{Connection, params_from_iter};

use crate::db::{schema, temporary::TemporaryDatabase};

/// The number of bytes of [`Details`] rows that are sorted at once: about 150,000 rows.
const DETAIL_BYTES: usize = 16 << 20;

const ROWS_AT_ONCE: usize = 16;

/// The maximum number of message ids whose hashes are kept: 38 MB of hashes.
const MOST_IDS: usize = 3_500_000;

/// A database that has a temporary name until it is complete.
#[derive(Debug)]
pub(super) struct FreshDatabase {
    pub(super) file: TemporaryDatabase,
    /// Whether all details and the indexes of `messages` are written, so that conversations can be looked up.
    is_complete: bool,
    late: LateParts,
}

#[derive(Debug)]
pub(super) struct LateParts {
    details: RefCell<Details>,
    /// The hashes of the ids in `messages`; `None` once the table has its primary key.
    ids: RefCell<Option<HashSet<u64>>>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Details {
    rows: Vec<DetailRow>,
    texts: String,
}

#[derive(Debug)]
struct DetailRow {
    /// The first bytes of the first column. They are enough to sort most rows.
    first: u64,
    /// The start of the columns in the texts, and their lengths.
    start: usize,
    lengths: [Option<usize>; 3],
}

impl Details {
    fn push(&mut self, columns: [Option<&str>; 3]) {
        let mut first = [0; 8];
        for (byte, of_id) in first.iter_mut().zip(columns[0].unwrap_or_default().bytes()) {
            *byte = of_id;
        }
        let lengths = columns.map(|column| column.map(str::len));
        let start = self.texts.len();
        columns.into_iter().flatten().for_each(|column| self.texts.push_str(column));
        self.rows.push(DetailRow { first: u64::from_be_bytes(first), start, lengths });
    }

    fn columns(&self, row: &DetailRow) -> [Option<&str>; 3] {
        let mut rest = &self.texts[row.start..];
        row.lengths.map(|length| {
            let (column, after) = rest.split_at(length?);
            rest = after;
            Some(column)
        })
    }

    fn sorted(&mut self) -> Vec<DetailRow> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by(|one, other| {
            one.first
                .cmp(&other.first)
                .then_with(|| self.columns(one)[0].cmp(&self.columns(other)[0]))
        });
        rows
    }
}

impl LateParts {
    fn new() -> LateParts {
        let details = RefCell::default();
        let ids = RefCell::new(Some(HashSet::new()));
        LateParts { details, ids, hasher: RandomState::new() }
    }

    /// Adds the id of a new message. Returns true if the hashes show that the id is unused. If they do not,
    /// adds the primary key and returns false.
    pub(super) fn is_new(&self, connection: &Connection, id: &str) -> rusqlite::Result<bool> {
        let mut ids = self.ids.borrow_mut();
        let Some(known) = ids.as_mut() else { return Ok(false) };
        if known.len() < MOST_IDS && known.insert(self.hasher.hash_one(id)) {
            return Ok(true);
        }
        *ids = None;
        schema::add_key(connection)?;
        Ok(false)
    }

    pub(super) fn add_details(
        &self,
        connection: &Connection,
        message: &str,
        export: Option<&str>,
        model: Option<&str>,
    ) -> rusqlite::Result<()> {
        let mut details = self.details.borrow_mut();
        details.push([Some(message), export, model]);
        let bytes = details.texts.len() + size_of_val(details.rows.as_slice());
        drop(details);
        if bytes < DETAIL_BYTES { Ok(()) } else { self.write_details(connection) }
    }

    fn write_details(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut details = self.details.take();
        for rows in details.sorted().chunks(ROWS_AT_ONCE) {
            let values = vec!["(?, ?, ?)"; rows.len()].join(", ");
            let sql = format!(
                "INSERT INTO verbatim_messages (message_id, export_id, model) VALUES {values}"
            );
            let columns = rows.iter().flat_map(|row| details.columns(row));
            connection.prepare_cached(&sql)?.execute(params_from_iter(columns))?;
        }
        Ok(())
    }
}

impl FreshDatabase {
    pub(super) fn new(file: TemporaryDatabase) -> FreshDatabase {
        FreshDatabase { file, is_complete: false, late: LateParts::new() }
    }

    /// Returns the parts that are written late; `None` once everything is written at once.
    pub(super) fn late(&self) -> Option<&LateParts> {
        (!self.is_complete).then_some(&self.late)
    }

    /// Writes the details and creates the indexes, so that conversations can be looked up.
    pub(super) fn complete(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if !self.is_complete {
            self.late.write_details(connection)?;
            if self.late.ids.take().is_some() {
                schema::add_key(connection)?;
            }
            schema::index(connection)?;
            self.is_complete = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{schema::SchemaState, writer::Writer};
    use verbatim_base::model::{Conversation, Message};

    fn column(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_new_database_is_as_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let usual = Connection::open_in_memory().unwrap();
        schema::create(&usual, SchemaState::Empty).unwrap();
        // In some databases, two conversations have a message with the same id.
        for (name, ids, stored) in [
            ("apart.db", ["b", "c"], "a b c d"),
            ("same.db", ["a", "c"], "a c d two/a"),
            ("later.db", ["b", "a"], "a b d two/a"),
        ] {
            let path = folder.path().join(name);
            let mut writer = Writer::open(&path).unwrap();
            for (id, messages) in [("one", vec!["a"]), ("two", ids.to_vec()), ("three", vec!["d"])]
            {
                let model = Some("m".to_owned());
                let message = |id: &&str| Message {
                    id: (*id).to_owned(),
                    content: format!("text {id}"),
                    model: model.clone(),
                    ..Message::default()
                };
                let messages = messages.iter().map(message).collect();
                let conversation =
                    Conversation { id: id.to_owned(), messages, ..Conversation::default() };
                writer.put("chatgpt", &conversation).unwrap();
            }
            writer.finish().unwrap();
            let made = Connection::open(&path).unwrap();
            let schema = "SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_schema \
                          ORDER BY 1";
            assert_eq!(column(&made, schema), column(&usual, schema), "{name}");
            assert_eq!(column(&made, "PRAGMA integrity_check"), ["ok"], "{name}");
            let ids = "SELECT id FROM messages ORDER BY id";
            assert_eq!(column(&made, ids).join(" "), stored, "{name}");
            let ids = "SELECT message_id FROM verbatim_messages ORDER BY message_id";
            assert_eq!(column(&made, ids).join(" "), stored, "{name}");
            let again = made.execute("INSERT INTO messages SELECT * FROM messages LIMIT 1", []);
            assert!(again.is_err(), "{name}: an id is there twice");
        }
    }
}
