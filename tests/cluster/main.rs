//! The contract suite against a cluster of three nodes, with SQLite as the oracle, and what happens
//! when nodes are killed.
//!
//! Java 21 or later and Maven are needed; without them, the tests say that they were left out.

#[path = "../../crates/engine/tests/contract/counts.rs"]
mod counts;
#[path = "../../crates/engine/tests/contract/database.rs"]
#[allow(dead_code, reason = "only the readers of files need some of it")]
mod database;
#[path = "../../crates/engine/tests/contract/exact.rs"]
mod exact;
mod faces;
mod fake;
mod faults;
#[path = "../../crates/engine/tests/contract/generated.rs"]
mod generated;
mod imports;
#[path = "../../crates/engine/tests/contract/lists.rs"]
mod lists;
#[path = "../../crates/engine/tests/contract/literal.rs"]
mod literal;
#[path = "../../crates/engine/tests/contract/matching.rs"]
mod matching;
mod nodes;
#[path = "../../crates/engine/tests/contract/oracle.rs"]
mod oracle;
#[path = "../shared/pieces.rs"]
mod pieces;
#[path = "../shared/program.rs"]
mod program;
mod ranked;
#[path = "../../crates/engine/tests/contract/ranking.rs"]
mod ranking;
#[path = "../../crates/engine/tests/contract/reading.rs"]
mod reading;
mod relay;
mod secure;
#[path = "../../crates/engine/tests/contract/sinks.rs"]
mod sinks;
#[path = "../../crates/engine/tests/contract/suite.rs"]
#[allow(dead_code, reason = "only the readers of files need some of it")]
mod suite;
mod upkeep;
mod writers;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use verbatim_base::call::Call;
use verbatim_base::model::{Instant, Request};
use verbatim_engine::{
    Config, Counts, Engine, Error, Listing, Messages, Reader, Scope, SearchPlan, Sink, SourceKind,
    scoring::Scorer,
};
use verbatim_search::Branches;

use database::Database;
use nodes::{AllNodes, Nodes, nodes};
pub(crate) use suite::{Damage, Subject, config, hits, reindex};

/// The share of the usual cases of property tests that run here: each case is an import.
pub(crate) const SHARE: f64 = 0.2;

/// The reader of a cluster into which the database was imported.
struct Clustered;

/// The reader of a cluster if there is one and the database can be imported into it.
pub(crate) fn subjects_of(database: &Database) -> Vec<&'static dyn Subject> {
    let is_export = database.kind == SourceKind::Export;
    let is_bytewise = || {
        let sql = "SELECT sql FROM sqlite_schema WHERE name = 'messages'";
        let sql: String = database.connect().query_row(sql, [], |row| row.get(0)).expect("a table");
        !["NOCASE", "RTRIM", "NUMERIC"].iter().any(|word| sql.contains(word))
    };
    match is_export && is_bytewise() && nodes().is_some() {
        true => vec![&Clustered],
        false => Vec::new(),
    }
}

impl Subject for Clustered {
    fn name(&self) -> &'static str {
        "ClusterReader"
    }

    fn open(&self, database: &Database) -> Arc<dyn Reader> {
        let nodes = nodes().expect("a cluster");
        let index = new_name();
        let all = AllNodes::enter();
        import(nodes, &database.path(), &index);
        let reader = reader(nodes, &index);
        Arc::new(Guarded { nodes, index, reader, _all: all })
    }

    fn can_rank(&self) -> bool {
        true
    }
}

/// Returns a new name for an index.
fn new_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Imports a database or an export.
fn import(nodes: &Nodes, path: &Path, index: &str) {
    let target = nodes.address(index);
    let sources = [path.to_owned()];
    verbatim_engine::import::import(&sources, &target, Branches::Shown, &|_| {})
        .expect("an import");
}

/// Returns an engine that asks an index.
fn engine(nodes: &Nodes, index: &str) -> Engine {
    Engine::new(Config {
        db: Some(nodes.address(index).into()),
        home: std::env::temp_dir().join("verbatim-no-home"),
        ..Config::default()
    })
}

fn reader(nodes: &Nodes, index: &str) -> Arc<dyn Reader> {
    engine(nodes, index).sources().remove(0).reader(&Call::default())
}

/// A reader that keeps nodes from being killed, and removes its index at the end.
struct Guarded {
    nodes: &'static Nodes,
    index: String,
    reader: Arc<dyn Reader>,
    _all: AllNodes,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.nodes.remove(&self.index);
    }
}

impl Reader for Guarded {
    fn search(
        &self,
        request: &Request,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan, Error> {
        self.reader.search(request, call, sink)
    }

    fn list(&self, scope: &Scope, call: &Call) -> Result<Box<dyn Listing>, Error> {
        self.reader.list(scope, call)
    }

    fn read(
        &self,
        id: &str,
        raw_content: bool,
        call: &Call,
    ) -> Result<Option<Box<dyn Messages>>, Error> {
        self.reader.read(id, raw_content, call)
    }

    fn count(
        &self,
        scope: &Scope,
        day: &dyn Fn(Instant) -> i64,
        call: &Call,
    ) -> Result<Counts, Error> {
        self.reader.count(scope, day, call)
    }

    fn span(&self, call: &Call) -> Result<Option<(Instant, Instant)>, Error> {
        self.reader.span(call)
    }

    fn scorer(&self, scope: &Scope, call: &Call) -> Result<Option<Box<dyn Scorer>>, Error> {
        self.reader.scorer(scope, call)
    }
}
