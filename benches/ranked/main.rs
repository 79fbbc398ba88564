//! How soon is a question answered, by words, by meaning and by both, beside sqlite-vec and FTS5's BM25?
//!
//! Generates the corpus of the other benchmark, embeds and indexes it on one core, puts the same
//! questions to each side by turns, and writes `benches/results/ranked.md`. See `cargo bench -- --help`.
//!
//! With questions whose answers are known, measures how good the ranking is instead (docs/evaluation.md).

#[path = "../search/corpus/mod.rs"]
mod corpus;
mod engine;
mod evaluation;
#[allow(dead_code)]
#[path = "../search/measure.rs"]
mod measure;
mod quality;
mod questions;
mod report;
mod sqlite;

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use rusqlite::{Connection, OpenFlags};
use verbatim_base::call::Call;
use verbatim_embed::{Model, Texts};
use verbatim_index::{VectorBuilder, VectorOptions};

use crate::engine::{MODES, Ours, bytes_of};
use crate::measure::cpu_micros;
use crate::sqlite::{Sqlite, Table};

/// The number of results that SQLite returns: as many as the engine fuses from words and vectors.
const K: usize = 200;

/// The longest of short messages, in bytes.
const SHORT: usize = 200;

/// Measures embedding and ranking beside sqlite-vec and FTS5, or how good the ranking is
#[derive(Parser)]
#[command(name = "ranked")]
struct Args {
    /// How many messages to generate
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "100000,1000000")]
    messages: Vec<usize>,

    /// How many questions of each kind to ask of each side
    #[arg(long, value_name = "N", default_value_t = 12)]
    questions: usize,

    /// Where to write ranked.md
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results"), hide_default_value = true)]
    out: PathBuf,

    /// Where to keep databases between runs [default: target/bench]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    #[command(flatten)]
    evaluation: evaluation::EvaluationArgs,

    /// Given by cargo bench; without it, all is run once at a tiny size
    #[arg(long, hide = true)]
    bench: bool,
}

/// The measurements of one corpus.
#[derive(Debug)]
struct Figures {
    messages: usize,
    /// The average size of a text, in bytes.
    text: f64,
    /// The messages, MB and short messages that one core embeds in a second.
    speed: [f64; 3],
    /// Seconds of CPU to build the indexes: ours in all, FTS5, sqlite-vec's floats and bytes.
    build: [f64; 4],
    /// Bytes a message: our words and vectors, FTS5, sqlite-vec's floats and bytes.
    size: [f64; 5],
    /// Milliseconds of CPU of each question: by kind, then by side.
    times: Vec<[Vec<f64>; SIDES.len()]>,
    /// The recall of the ten nearest vectors by float32: of our vectors, and of sqlite-vec's int8 vectors.
    recall: [f64; 2],
}

/// The sides of the benchmark: our engine in each mode, and SQLite.
const SIDES: [&str; 6] =
    ["text", "vector", "both", "FTS5's BM25", "sqlite-vec, float32", "sqlite-vec, int8"];

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(queries) = &args.evaluation.queries {
        return evaluation::run(&args.evaluation, queries);
    }
    let work = args.work.clone().unwrap_or_else(|| {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let usual = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target"));
        target.unwrap_or_else(usual).join("bench")
    });
    fs::create_dir_all(&work)?;
    if !args.bench {
        // `cargo test --benches` only checks that the benchmark works.
        let figures = measure(&work, 300, 3)?;
        anyhow::ensure!(figures.recall[0] > 0.5, "{figures:?}");
        return Ok(());
    }
    let mut all = Vec::new();
    for messages in &args.messages {
        all.push(measure(&work, *messages, args.questions)?);
    }
    let path = args.out.join("ranked.md");
    fs::write(&path, report::report(&all))
        .with_context(|| format!("writing {}", path.display()))?;
    writeln!(io::stderr(), "{}", path.display())?;
    Ok(())
}

fn measure(work: &std::path::Path, messages: usize, questions: usize) -> Result<Figures> {
    let tell = |what: &str| writeln!(io::stderr(), "{messages} messages: {what}");
    tell("the corpus")?;
    let corpus = corpus::database(work, messages)?;
    let connection = Connection::open_with_flags(&corpus, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut select = connection.prepare("SELECT content FROM messages ORDER BY rowid")?;
    let texts = select.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let bytes: usize = texts.iter().map(String::len).sum();
    let count = texts.len() as f64;

    tell("embedding")?;
    let (model, never) = (Model::built_in(), Call::default());
    model.encode(&["The model is read from memory when it is first asked."], &never.stop)?;
    let all: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (vectors, micros) = cpu_micros(|| model.encode(&all, &never.stop));
    let vectors = vectors?;
    let short: Vec<&str> = all.iter().copied().filter(|text| text.len() <= SHORT).collect();
    let (_, short_micros) = cpu_micros(|| model.encode(&short, &never.stop));
    let speed =
        [count / micros * 1e6, bytes as f64 / micros, short.len() as f64 / short_micros * 1e6];

    tell("our index")?;
    let folder = tempfile::tempdir_in(work)?;
    let (ours, micros) = cpu_micros(|| Ours::build(&corpus, folder.path()));
    let ours = ours?;
    let mut build = [micros / 1e6, 0.0, 0.0, 0.0];
    let size_of = |name| bytes_of(folder.path(), name).map(|bytes| bytes as f64 / count);
    let mut size = [size_of("words")?, size_of("vectors")?, 0.0, 0.0, 0.0];
    tell("our vectors")?;
    let text = |doc_id: u32| Cow::Borrowed(all[doc_id as usize]);
    let source = Texts { count: all.len() as u32, text: &text };
    let part = tempfile::tempdir_in(work)?;
    let mut progress = |_| ();
    let encoder = model.encoder(part.path(), &source, 1, &never.stop, &mut progress)?;
    let (name, dimensions) = (model.name(), encoder.dimensions());
    // The engine takes the same options for texts of this length.
    let options = VectorOptions::codes((bytes / all.len().max(1)) as u64);
    let mut builder = VectorBuilder::begin(part.path(), name, dimensions, source.count, options)?;
    encoder.run(&mut |rows, scales| builder.add(rows, scales).map_err(anyhow::Error::from))?;
    let nearest = builder.finish(&never.stop, &mut |_| ())?;

    let mut sqlite = Sqlite::create(&folder.path().join("sqlite.db"))?;
    let mut before = sqlite.bytes()?;
    for (at, table) in [Table::Words, Table::Floats, Table::Bytes].into_iter().enumerate() {
        tell(["FTS5", "sqlite-vec, float32", "sqlite-vec, int8"][at])?;
        let (filled, micros) = cpu_micros(|| match table {
            Table::Words => sqlite.fill(table, all.iter()),
            Table::Floats => sqlite.fill(table, vectors.iter().map(|vector| floats(vector))),
            Table::Bytes => sqlite.fill(table, vectors.iter().map(|vector| rounded(vector))),
        });
        filled?;
        let after = sqlite.bytes()?;
        build[at + 1] = micros / 1e6;
        size[at + 2] = (after - before) as f64 / count;
        before = after;
    }

    tell("questions")?;
    let mut times = Vec::new();
    let (mut found, mut wanted) = ([0; 2], 0);
    for (_, mode) in MODES {
        // The first question opens the index.
        ours.ask("the first question", mode)?;
    }
    for texts in questions::questions(&all, questions) {
        let mut of_kind: [Vec<f64>; SIDES.len()] = Default::default();
        for text in texts {
            for (at, (_, mode)) in MODES.into_iter().enumerate() {
                let (answered, micros) = cpu_micros(|| ours.ask(&text, mode));
                answered?;
                of_kind[at].push(micros / 1e3);
            }
            let vector = model.encode_query(&text, &never.stop)?;
            let words: Vec<String> =
                text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
            let questions: [(Table, Box<dyn rusqlite::ToSql>); 3] = [
                (Table::Words, Box::new(words.join(" OR "))),
                (Table::Floats, Box::new(floats(&vector))),
                (Table::Bytes, Box::new(rounded(&vector))),
            ];
            let mut answers = Vec::new();
            for (at, (table, question)) in questions.iter().enumerate() {
                let (answer, micros) = cpu_micros(|| sqlite.best(*table, question.as_ref(), K));
                of_kind[MODES.len() + at].push(micros / 1e3);
                answers.push(answer?);
            }
            let best = nearest.top_k(&vector, 10, |_| true)?;
            let best: Vec<u32> = best.into_iter().map(|scored| scored.doc_id).collect();
            let truth = &answers[1][..answers[1].len().min(10)];
            wanted += truth.len();
            for (side, answer) in [&best, &answers[2]].into_iter().enumerate() {
                found[side] +=
                    truth.iter().filter(|one| answer.iter().take(10).any(|x| x == *one)).count();
            }
        }
        times.push(of_kind);
    }
    let recall = found.map(|found| found as f64 / wanted.max(1) as f64);
    let text = bytes as f64 / count;
    Ok(Figures { messages: all.len(), text, speed, build, size, times, recall })
}

fn floats(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Rounds a vector to int8, by the scale that suits every component of the built-in model.
fn rounded(vector: &[f32]) -> Vec<u8> {
    vector.iter().map(|number| (number * 381.0).round().clamp(-127.0, 127.0) as i8 as u8).collect()
}
