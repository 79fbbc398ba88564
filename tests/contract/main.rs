//! The contract of `engine::Reader`, with SQLite as the oracle. A new reader is done when it passes.
//!
//! Every test runs over [`subjects`]. To add a reader, implement [`Subject`] and add a line there.

mod counts;
mod database;
mod exact;
mod generated;
mod lists;
mod literal;
mod matching;
mod oracle;
mod ranking;
mod reading;
mod sinks;
mod writers;

use std::{fs, io::Write, path::Path, sync::Arc};

use rusqlite::Connection;
use verbatim_search::{
    engine::{Engine, FallbackReason, LiveReader, Reader, Reindex, Rendered, SearchPlan, Source},
    index::Resources,
    model::{Hit, Request, Stop},
};

use database::Database;

/// What an index may use in these tests.
pub(crate) const RESOURCES: Resources = Resources { memory: 64 << 20, threads: 1 };

/// What happens to files that are being read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    /// Every byte changes.
    Bytes,
    /// The texts change, and the structure stays whole: nothing but a check of the files shows it.
    Texts,
}

/// A kind of reader under test.
pub(crate) trait Subject: Sync {
    /// The name in messages.
    fn name(&self) -> &'static str;

    /// Returns a reader of the state that the database is in now.
    fn open(&self, database: &Database) -> Arc<dyn Reader>;

    /// Does as [`Subject::open`] does, once everything that ranking needs has been made.
    fn open_to_rank(&self, database: &Database) -> Arc<dyn Reader> {
        self.open(database)
    }

    /// Whether readers have a scorer.
    fn can_rank(&self) -> bool;

    /// Damages the files that an open reader reads, other than the database; returns whether it
    /// reads any.
    fn damage(&self, _: &Database, _: Damage) -> bool {
        false
    }
}

/// Every kind of reader.
pub(crate) fn subjects() -> [&'static dyn Subject; 3] {
    [&Live, &Indexed, &Refreshed]
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
        let (engine, source) = (database.engine(), database.source());
        reindex(&engine, &source);
        by_index(&source)
    }

    fn open_to_rank(&self, database: &Database) -> Arc<dyn Reader> {
        let (engine, source) = (database.engine(), database.source());
        reindex(&engine, &source);
        enrich(&engine, &source);
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
    fn index_twice(database: &Database) -> (Engine, Source) {
        let connection = database.connect();
        let (engine, source) = (database.engine(), database.source());
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
        reindex(&engine, &source);
        batch(&format!(
            "BEGIN;
             DELETE FROM messages WHERE rowid > 1000000 OR rowid % 8 = 2;
             INSERT INTO messages (rowid, {columns}) SELECT key, {columns} FROM aside;
             COMMIT;
             DROP TABLE aside;
             DROP TABLE extra;"
        ));
        drop(connection);
        reindex(&engine, &source);
        (engine, source)
    }
}

impl Subject for Refreshed {
    fn name(&self) -> &'static str {
        "IndexedReader, refreshed"
    }

    fn open(&self, database: &Database) -> Arc<dyn Reader> {
        by_index(&Refreshed::index_twice(database).1)
    }

    fn open_to_rank(&self, database: &Database) -> Arc<dyn Reader> {
        let (engine, source) = Refreshed::index_twice(database);
        enrich(&engine, &source);
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

/// Brings the index of a source up to date.
pub(crate) fn reindex(engine: &Engine, source: &Source) {
    let options = Reindex { resources: RESOURCES, full: false };
    engine.upkeep().reindex_source(source, options, &Stop::never(), &mut |_| {}).expect("an index");
}

fn enrich(engine: &Engine, source: &Source) {
    engine
        .upkeep()
        .enrich(source, RESOURCES, &Stop::never(), &mut |_, _| {})
        .expect("terms and vectors");
}

/// Returns the reader of a source, which must be that of its index.
fn by_index(source: &Source) -> Arc<dyn Reader> {
    let reader = source.reader(&Stop::never());
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

/// Returns the hits of a request, and how they were found.
pub(crate) fn hits(reader: &dyn Reader, request: &Request) -> (Vec<Hit<'static>>, SearchPlan) {
    let mut found = Vec::new();
    let mut sink = Rendered::new(
        |hit: Hit<'_>| Some(hit.into_owned()),
        |hit| {
            found.push(hit);
            std::ops::ControlFlow::Continue(())
        },
    );
    let plan = reader.search(request, &Stop::never(), &mut sink).expect("an answer");
    (found, plan)
}

/// Tries a property on `usual` cases, times `VERBATIM_CASES`; the same cases each time, unless
/// `VERBATIM_SEED` says otherwise.
pub(crate) fn config(usual: u32) -> proptest::test_runner::Config {
    fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
        std::env::var(name).ok()?.parse().ok()
    }
    let cases = f64::from(usual) * number("VERBATIM_CASES").unwrap_or(1.0);
    let seed = number("VERBATIM_SEED").unwrap_or(1);
    proptest::test_runner::Config {
        cases: cases.ceil() as u32,
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Default::default()
    }
}

#[test]
fn a_refreshed_index_has_several_segments() {
    let message = database::Message {
        conversation: 0,
        role: "user".into(),
        content: database::Content::Stored("red".into()),
        time: 0,
        position: Some(0),
    };
    let database = Database::of(database::Schema::Typed, &["Colours".into()], &vec![message; 90]);
    Refreshed.open(&database);
    let entries = fs::read_dir(database.index_folder()).expect("an index").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert!(names.filter(|name| name.starts_with("segment-")).count() > 1);
}
