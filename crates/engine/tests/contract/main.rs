//! The contract of `engine::Reader`, with SQLite as the oracle. A new reader is done when it passes.
//!
//! Every test runs over [`subjects_of`]. To add a reader, implement [`Subject`] and add it there.

mod counts;
mod database;
mod exact;
mod generated;
mod lists;
mod literal;
mod matching;
mod oracle;
#[path = "../../../../tests/shared/pieces.rs"]
mod pieces;
mod ranking;
mod reading;
mod sinks;
mod suite;
mod writers;

use std::{fs, io::Write, path::Path, sync::Arc};

use rusqlite::Connection;
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::{FallbackReason, LiveReader, Reader, SearchPlan, Source};

use database::Database;
pub(crate) use suite::{Damage, RESOURCES, Subject, config, hits, reindex};

/// The share of the usual cases of property tests that are tried.
pub(crate) const SHARE: f64 = 1.0;

/// Every kind of reader that can read a database.
pub(crate) fn subjects_of(_: &Database) -> Vec<&'static dyn Subject> {
    vec![&Live, &Indexed, &Refreshed]
}

/// [`LiveReader`].
struct Live;

impl Subject for Live {
    fn name(&self) -> &'static str {
        "LiveReader"
    }

    fn open(&self, database: &Database) -> Arc<dyn Reader> {
        Arc::new(LiveReader::new(database.source(), FallbackReason::NoIndex))
    }

    fn can_rank(&self) -> bool {
        false
    }
}

/// `IndexedReader` of an index that was built at once.
struct Indexed;

impl Subject for Indexed {
    fn name(&self) -> &'static str {
        "IndexedReader"
    }

    fn open(&self, database: &Database) -> Arc<dyn Reader> {
        let source = database.source();
        reindex(&source);
        by_index(&source)
    }

    fn open_to_rank(&self, database: &Database) -> Arc<dyn Reader> {
        let source = database.source();
        reindex(&source);
        enrich(&source);
        by_index(&source)
    }

    fn can_rank(&self) -> bool {
        true
    }

    fn damage(&self, database: &Database, damage: Damage) -> bool {
        damage_files(&database.index_folder(), damage);
        true
    }
}

/// `IndexedReader` of an index that followed changes: several segments and deleted messages.
struct Refreshed;

impl Refreshed {
    /// Indexes an earlier state of the database, and then the state that it is in now.
    fn index_twice(database: &Database) -> Source {
        let connection = database.connect();
        let source = database.source();
        let columns = columns(&connection);
        let batch = |sql: &str| connection.execute_batch(sql).expect("the tables are canonical");
        batch(&format!(
            "BEGIN;
             CREATE TEMP TABLE aside AS
                 SELECT rowid AS key, * FROM messages WHERE rowid % 8 IN (1, 2);
             CREATE TEMP TABLE extra AS SELECT rowid AS key, * FROM messages WHERE rowid % 8 = 3;
             DELETE FROM messages WHERE rowid % 8 = 1;
             UPDATE messages SET content = 'an earlier text', role = 'earlier', create_time = '5'
                 WHERE rowid % 8 = 2;
             INSERT INTO messages (rowid, {columns})
                 SELECT key + 1000000, {} FROM extra;
             COMMIT;",
            columns.replacen("id", "'extra-' || id", 1)
        ));
        reindex(&source);
        batch(&format!(
            "BEGIN;
             DELETE FROM messages WHERE rowid > 1000000 OR rowid % 8 = 2;
             INSERT INTO messages (rowid, {columns}) SELECT key, {columns} FROM aside;
             COMMIT;
             DROP TABLE aside;
             DROP TABLE extra;"
        ));
        drop(connection);
        reindex(&source);
        source
    }
}

impl Subject for Refreshed {
    fn name(&self) -> &'static str {
        "IndexedReader, refreshed"
    }

    fn open(&self, database: &Database) -> Arc<dyn Reader> {
        by_index(&Refreshed::index_twice(database))
    }

    fn open_to_rank(&self, database: &Database) -> Arc<dyn Reader> {
        let source = Refreshed::index_twice(database);
        enrich(&source);
        by_index(&source)
    }

    fn can_rank(&self) -> bool {
        true
    }

    fn damage(&self, database: &Database, damage: Damage) -> bool {
        Indexed.damage(database, damage)
    }
}

/// Returns the columns of `messages`, the id first.
fn columns(connection: &Connection) -> String {
    let sql = "SELECT group_concat(name, ', ') FROM pragma_table_info('messages')";
    connection.query_row(sql, [], |row| row.get(0)).expect("a table")
}

fn enrich(source: &Source) {
    source.enrich(RESOURCES, &Call::default(), &mut |_| {}).expect("terms and vectors");
}

/// Returns the reader of a source, which must be that of its index.
fn by_index(source: &Source) -> Arc<dyn Reader> {
    let reader = source.reader(&Call::default());
    let request = Request { limit: Some(0), ..Request::default() };
    let (_, plan) = hits(&*reader, &request);
    assert!(matches!(plan, SearchPlan::ByIndex { .. }), "{plan:?}");
    reader
}

/// Changes bytes of every file in a folder in place. No file becomes shorter: a page of a map that
/// is missing would disturb the tests that run at the same time.
fn damage_files(folder: &Path, damage: Damage) {
    for entry in fs::read_dir(folder).expect("a folder of the index").flatten() {
        let path = entry.path();
        if path.is_dir() {
            damage_files(&path, damage);
            continue;
        }
        let bytes = fs::read(&path).expect("a file of the index");
        let mut damaged = bytes.clone();
        match damage {
            Damage::Bytes => damaged.iter_mut().for_each(|byte| *byte ^= 1),
            Damage::Texts => {
                for at in 0..bytes.len().saturating_sub(9) {
                    if bytes[at..].starts_with(b"the thing") {
                        damaged[at..at + 9].make_ascii_uppercase();
                    }
                }
            }
        }
        if damaged == bytes {
            continue;
        }
        let mut file = fs::File::options().write(true).open(&path).expect("a file of the index");
        file.write_all(&damaged).expect("bytes can be written");
        drop(file);
    }
}

#[test]
fn a_refreshed_index_has_several_segments() {
    let message = database::Message::stored("red");
    let database = Database::of(database::Schema::Typed, &["Colours".into()], &vec![message; 90]);
    Refreshed.open(&database);
    let entries = fs::read_dir(database.index_folder()).expect("an index").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert!(names.filter(|name| name.starts_with("segment-")).count() > 1);
}
