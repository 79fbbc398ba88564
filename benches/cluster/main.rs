//! Exact search on a cluster of OpenSearch or Elasticsearch: the load, each kind of query beside SQLite's
//! LIKE and a `wildcard` field, and many clients at the same time.
//!
//! The cluster must run already; `tests/cluster/` shows how one is started from Maven Central.
//! `cargo bench --bench cluster -- --hosts 127.0.0.1:9201,127.0.0.1:9202 --db chats.db`

#[path = "../search/classes.rs"]
#[allow(dead_code, reason = "only patterns of LIKE are raced here")]
mod classes;
#[path = "../search/corpus/mod.rs"]
mod corpus;
#[path = "../search/haystack.rs"]
#[allow(dead_code, reason = "only the race of files scans it")]
mod haystack;
mod load;
#[path = "../search/measure.rs"]
#[allow(dead_code, reason = "nothing here is built in a process of its own")]
mod measure;
#[path = "../search/race.rs"]
#[allow(dead_code, reason = "this race goes by the clock on the wall, as the cluster is elsewhere")]
mod race;
#[path = "../search/sqlite.rs"]
#[allow(dead_code, reason = "only LIKE takes part")]
mod sqlite;
mod wildcard;

use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{Config, Engine, SearchPlan};
use verbatim_search::Branches;

use self::classes::{Class, Literal};
use self::haystack::Source;
use self::measure::{median, percentile};
use self::race::{Racer, describe};
use self::sqlite::{Baseline, Sqlite};
use self::wildcard::Wildcard;

/// The name of the index that is measured.
const INDEX: &str = "verbatim-bench";

/// How often a query is put to the cluster, after the rounds that warm it.
const ROUNDS: usize = 5;

/// Rounds of all queries before the measurement, because a virtual machine compiles frequent code late.
const WARMING: usize = 3;

/// The number of queries of a kind for the slow sides.
const FEW: usize = 6;

/// Measures exact search on a cluster
#[derive(Debug, Parser)]
struct Args {
    /// The hosts of a cluster without TLS, separated by commas
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,

    /// The canonical database that is imported; without it, messages are generated
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,

    /// How many messages to generate
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    messages: usize,

    /// Where generated databases are kept
    #[arg(long, value_name = "DIR", default_value = "target/bench-cluster")]
    folder: PathBuf,

    /// Seconds of many clients at a time
    #[arg(long, value_name = "S", default_value_t = 120)]
    seconds: u64,

    /// How many clients ask at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: usize,

    /// Measure the index that an earlier run imported
    #[arg(long)]
    keep: bool,

    /// Leave out LIKE and the `wildcard` field
    #[arg(long)]
    alone: bool,

    /// Given by cargo bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// The index, asked through the library as every command does.
pub(crate) struct Ours {
    engine: Engine,
}

impl Ours {
    fn open(address: &Path) -> Ours {
        let home = std::env::temp_dir().join("verbatim-no-home");
        Ours {
            engine: Engine::new(Config {
                db: Some(address.to_owned().into()),
                home,
                ..Config::default()
            }),
        }
    }
}

impl Racer for Ours {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let mut hits = Vec::new();
        let answered = self.engine.exact(request, &Call::default(), &mut |hit| {
            hits.push(hit);
            ControlFlow::Continue(())
        })?;
        match answered {
            SearchPlan::ByCluster { .. } => Ok(hits),
            other => bail!("the cluster did not answer: {other:?}"),
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let Some(hosts) = &args.hosts else {
        say(format_args!("left out: --hosts names no cluster"));
        return Ok(());
    };
    fs::create_dir_all(&args.folder)?;
    let database = match &args.db {
        Some(path) => path.clone(),
        None => corpus::database(&args.folder, args.messages)?,
    };
    let address = PathBuf::from(format!("opensearch+http://{hosts}/{INDEX}"));
    let cluster = ClusterRest::new(hosts)?;
    if !args.keep {
        cluster.ask("DELETE", &format!("{INDEX}-v*"), None)?;
        import(&database, &address, &cluster)?;
    }
    let source = Source::read(&database)?;
    let classes = classes::sample(&source);
    drop(source);
    let ours = Ours::open(&address);
    let mut slow: Vec<(&str, Box<dyn Racer>)> = Vec::new();
    if !args.alone {
        slow.push(("LIKE", Box::new(Sqlite::open(Baseline::Like, &database)?)));
        slow.push(("wildcard", Box::new(Wildcard::open(&cluster, &database, args.keep)?)));
    }
    race(&classes, &ours, &slow)?;
    load::run(&address, &classes, args.clients, args.seconds)
}

/// Imports a database; prints the speed of the import and the size of the index.
fn import(database: &Path, address: &Path, cluster: &ClusterRest) -> Result<()> {
    let (messages, bytes) = size_of(database)?;
    let (before, begun) = (cluster.cpu()?, Instant::now());
    let own = cpu_time::ProcessTime::now();
    verbatim_engine::import::import(&[database.to_owned()], address, Branches::Shown, &|_| {})?;
    let (seconds, own) = (begun.elapsed().as_secs_f64(), own.elapsed().as_secs_f64());
    let cpu = cluster.cpu()? - before;
    let rate = messages as f64 / seconds;
    print(format_args!(
        "import: {messages} messages of {:.1} MB in {seconds:.1} s, {rate:.0} a second; CPU time {own:.1} s \
         here and {cpu:.1} s in the cluster: {:.0} a second on two free cores",
        bytes as f64 / 1e6,
        2.0 * messages as f64 / (own + cpu),
    ))?;
    let stats = cluster.ask("GET", &format!("{INDEX}/_stats/store"), None)?;
    let primaries = stats["_all"]["primaries"]["store"]["size_in_bytes"].as_u64().unwrap_or(0);
    let all = stats["_all"]["total"]["store"]["size_in_bytes"].as_u64().unwrap_or(0);
    print(format_args!(
        "disk: {:.1} MB, {:.2} times the text; {:.1} MB with the copies",
        primaries as f64 / 1e6,
        primaries as f64 / bytes as f64,
        all as f64 / 1e6,
    ))
}

/// Returns how many messages a database has, and the bytes of their texts.
fn size_of(database: &Path) -> Result<(i64, i64)> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let sql = "SELECT count(*), sum(length(CAST(content AS BLOB))) FROM messages";
    Ok(connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Runs the queries of each kind on all sides by turns. Prints a row for each kind: the median, the 95th
/// percentile and the slowest query's median, in milliseconds of wall-clock time.
fn race(classes: &[Class], ours: &Ours, slow: &[(&str, Box<dyn Racer>)]) -> Result<()> {
    for _ in 0..WARMING {
        for literal in classes.iter().flat_map(|class| &class.literals) {
            ours.ask(&literal.request())?;
        }
    }
    let names: Vec<String> = slow.iter().map(|(name, _)| format!(" {name} |")).collect();
    print(format_args!(
        "\n| kind | queries | median | 95 % | slowest | which |{}",
        names.concat()
    ))?;
    print(format_args!("|-|-|-|-|-|-|{}", "-|".repeat(slow.len())))?;
    for class in classes.iter().filter(|class| !class.literals.is_empty()) {
        let mut times = Vec::new();
        let mut slowest = (0.0, String::new());
        let mut others: Vec<Vec<f64>> = slow.iter().map(|_| Vec::new()).collect();
        for (number, literal) in class.literals.iter().enumerate() {
            let mut answers = Vec::new();
            if number < FEW {
                for ((name, side), times) in slow.iter().zip(&mut others) {
                    let (took, answer) = timed(&**side, literal)?;
                    times.push(took);
                    answers.push((name, answer));
                }
            }
            let mut own = Vec::new();
            for _ in 0..ROUNDS {
                let (took, answer) = timed(ours, literal)?;
                own.push(took);
                for (name, expected) in answers.iter().filter(|(name, _)| **name == "LIKE") {
                    if *expected != answer {
                        bail!("{:?} is answered otherwise than by {name}", describe(literal));
                    }
                }
            }
            let middle = median(own.clone());
            if middle > slowest.0 {
                slowest = (middle, describe(literal));
            }
            times.extend(own);
        }
        let others: Vec<String> =
            others.into_iter().map(|times| format!(" {:.0} |", median(times))).collect();
        print(format_args!(
            "| {} | {} | {:.1} | {:.1} | {:.1} | `{}` |{}",
            class.name,
            class.literals.len(),
            median(times.clone()),
            percentile(95, times),
            slowest.0,
            slowest.1,
            others.concat()
        ))?;
    }
    Ok(())
}

/// Returns how many milliseconds an answer takes, and the answer.
fn timed(side: &dyn Racer, literal: &Literal) -> Result<(f64, Vec<Hit<'static>>)> {
    let begun = Instant::now();
    let answer = side.ask(&literal.request())?;
    Ok((begun.elapsed().as_secs_f64() * 1e3, answer))
}

/// Sends the requests that the library does not send.
#[derive(Clone)]
pub(crate) struct ClusterRest {
    root: String,
    agent: ureq::Agent,
}

impl ClusterRest {
    fn new(hosts: &str) -> Result<ClusterRest> {
        let host = hosts.split(',').next().context("a host")?;
        let agent =
            ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        Ok(ClusterRest { root: format!("http://{host}"), agent })
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<String>) -> Result<Value> {
        let kind = if path.contains("_bulk") { "x-ndjson" } else { "json" };
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}/{path}", self.root))
            .header("content-type", format!("application/{kind}"))
            .body(body.unwrap_or_default())?;
        let request = self.agent.configure_request(request).allow_non_standard_methods(true);
        let mut answer = self.agent.run(request.build())?;
        let text = answer.body_mut().with_config().limit(1 << 30).read_to_string()?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns the seconds of CPU time that the processes of the nodes have taken.
    fn cpu(&self) -> Result<f64> {
        let stats = self.ask("GET", "_nodes/stats/process", None)?;
        let nodes = stats["nodes"].as_object().context("nodes")?;
        // Nodes in one process each report the time of the whole process.
        let millis =
            nodes.values().filter_map(|it| it["process"]["cpu"]["total_in_millis"].as_u64());
        Ok(millis.max().unwrap_or(0) as f64 / 1e3)
    }
}

/// Prints a line of the results.
pub(crate) fn print(what: std::fmt::Arguments<'_>) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{what}")?;
    Ok(out.flush()?)
}

fn say(what: std::fmt::Arguments<'_>) {
    eprintln!("{what}");
}
