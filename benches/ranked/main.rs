//! How fast are texts embedded, and the nearest found, beside sqlite-vec and FTS5's BM25?
//!
//! Generates the corpus of the other benchmark, embeds it on one core, puts the same questions to
//! each side by turns, and writes `benches/results/ranked.md`. See `cargo bench -- --help`.

#[path = "../search/corpus/mod.rs"]
mod corpus;
#[allow(dead_code)]
#[path = "../search/measure.rs"]
mod measure;
mod sqlite;

use std::{
    borrow::Cow,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::{Context, Result};
use clap::Parser;
use rusqlite::{Connection, OpenFlags};
use verbatim_search::{
    embed::{Model, Options, Texts, Vectors},
    model::Stop,
};

use crate::{
    measure::{cpu_micros, median},
    sqlite::{Sqlite, Table},
};

/// The best asked for: as many as are weighed when words and vectors are fused.
const K: usize = 200;

/// The longest of short messages, in bytes.
const SHORT: usize = 200;

/// Measures embedding and the search for the nearest beside sqlite-vec and FTS5
#[derive(Parser)]
#[command(name = "ranked")]
struct Args {
    /// How many messages to generate
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "100000,1000000")]
    messages: Vec<usize>,

    /// How many questions to ask of each side
    #[arg(long, value_name = "N", default_value_t = 50)]
    questions: usize,

    /// Where to write ranked.md
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results"), hide_default_value = true)]
    out: PathBuf,

    /// Where to keep databases between runs [default: target/bench]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    /// Given by cargo bench; without it, all is run once at a tiny size
    #[arg(long, hide = true)]
    bench: bool,
}

/// What was measured of one corpus.
#[derive(Debug)]
struct Figures {
    messages: usize,
    /// Of the text, in bytes a message.
    text: f64,
    /// Embedded in a second of one core: messages, MB, and short messages.
    speed: [f64; 3],
    /// Seconds of CPU to build: our vectors, FTS5, sqlite-vec's floats and bytes.
    build: [f64; 4],
    /// Bytes a message, likewise.
    size: [f64; 4],
    /// Median milliseconds of CPU of a question: embedding it, then of each side.
    query: [f64; 5],
    /// The share of the ten nearest by float32 among our ten, and among sqlite-vec's by int8.
    recall: [f64; 2],
}

fn main() -> Result<()> {
    let args = Args::parse();
    let work = args.work.clone().unwrap_or_else(|| {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let usual = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target"));
        target.unwrap_or_else(usual).join("bench")
    });
    fs::create_dir_all(&work)?;
    if !args.bench {
        // `cargo test --benches`: see that it works.
        let figures = measure(&work, 300, 3)?;
        anyhow::ensure!(figures.recall[0] > 0.5, "{figures:?}");
        return Ok(());
    }
    let mut all = Vec::new();
    for messages in &args.messages {
        all.push(measure(&work, *messages, args.questions)?);
    }
    let path = args.out.join("ranked.md");
    fs::write(&path, report(&all)).with_context(|| format!("writing {}", path.display()))?;
    writeln!(io::stderr(), "{}", path.display())?;
    Ok(())
}

fn measure(work: &std::path::Path, messages: usize, questions: usize) -> Result<Figures> {
    let tell = |what: &str| writeln!(io::stderr(), "{messages} messages: {what}");
    tell("the corpus")?;
    let corpus = corpus::database(work, messages)?;
    let connection = Connection::open_with_flags(corpus, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut select = connection.prepare("SELECT content FROM messages ORDER BY rowid")?;
    let texts = select.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let bytes: usize = texts.iter().map(String::len).sum();
    let count = texts.len() as f64;

    tell("embedding")?;
    let (model, never) = (Model::built_in(), Stop::never());
    model.encode(&["The model is read from memory when it is first asked."], &never)?;
    let all: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (vectors, micros) = cpu_micros(|| model.encode(&all, &never));
    let vectors = vectors?;
    let short: Vec<&str> = all.iter().copied().filter(|text| text.len() <= SHORT).collect();
    let (_, short_micros) = cpu_micros(|| model.encode(&short, &never));
    let speed =
        [count / micros * 1e6, bytes as f64 / micros, short.len() as f64 / short_micros * 1e6];

    tell("our vectors")?;
    let part = tempfile::tempdir_in(work)?;
    let text = |slot: u32| Cow::Borrowed(all[slot as usize]);
    let source = Texts { count: all.len() as u32, text: &text };
    let (ours, micros) = cpu_micros(|| {
        let options = Options::default();
        Vectors::build(part.path(), &model, &source, options, &never, &mut |_| ())
    });
    let ours = ours?;
    let mut build = [micros / 1e6, 0.0, 0.0, 0.0];
    let mut size = [ours.bytes() as f64 / count, 0.0, 0.0, 0.0];

    let mut sqlite = Sqlite::create(&part.path().join("sqlite.db"))?;
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
        size[at + 1] = (after - before) as f64 / count;
        before = after;
    }

    tell("questions")?;
    let mut times: [Vec<f64>; 5] = Default::default();
    let (mut found, mut wanted) = ([0; 2], 0);
    // Each question is the beginning of a message, in its order of words.
    let askable: Vec<&&str> =
        all.iter().filter(|text| text.is_ascii() && text.split(' ').count() >= 8).collect();
    for text in askable.iter().step_by((askable.len() / questions).max(1)).take(questions) {
        let words: Vec<&str> = text.split_whitespace().take(8).collect();
        let (vector, micros) = cpu_micros(|| model.encode_query(&words.join(" "), &never));
        times[0].push(micros / 1e3);
        let vector = vector?;
        let (best, micros) = cpu_micros(|| ours.top_k(&vector, K, |_| true));
        times[1].push(micros / 1e3);
        let best: Vec<u32> = best?.into_iter().map(|scored| scored.slot).collect();
        let quoted: Vec<String> =
            words.iter().map(|word| format!("\"{}\"", word.replace('"', ""))).collect();
        let questions: [(Table, Box<dyn rusqlite::ToSql>); 3] = [
            (Table::Words, Box::new(quoted.join(" OR "))),
            (Table::Floats, Box::new(floats(&vector))),
            (Table::Bytes, Box::new(rounded(&vector))),
        ];
        let mut answers = Vec::new();
        for (at, (table, question)) in questions.iter().enumerate() {
            let (answer, micros) = cpu_micros(|| sqlite.best(*table, question.as_ref(), K));
            times[at + 2].push(micros / 1e3);
            answers.push(answer?);
        }
        let truth = &answers[1][..answers[1].len().min(10)];
        wanted += truth.len();
        for (side, answer) in [&best, &answers[2]].into_iter().enumerate() {
            found[side] +=
                truth.iter().filter(|one| answer.iter().take(10).any(|x| x == *one)).count();
        }
    }
    let recall = found.map(|found| found as f64 / wanted.max(1) as f64);
    let text = bytes as f64 / count;
    let query = times.map(median);
    Ok(Figures { messages: all.len(), text, speed, build, size, query, recall })
}

fn floats(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// As int8 by the scale that suits every component of the built-in model.
fn rounded(vector: &[f32]) -> Vec<u8> {
    vector.iter().map(|number| (number * 381.0).round().clamp(-127.0, 127.0) as i8 as u8).collect()
}

fn report(all: &[Figures]) -> String {
    let mut out = String::from(
        "# Ranking: embedding, and finding the nearest\n\n\
         Written by `cargo bench --bench ranked`. Everything on one core, times are of CPU. The corpus is that of\n\
         [search.md](search.md); a question is the first eight words of a message, and asks for the best 200. Vectors are\n\
         of the built-in model, 256 numbers. FTS5 stems (`porter`), keeps no text, and ranks by `bm25`, its words\n\
         joined by OR; sqlite-vec compares all, by cosine.\n",
    );
    for figures in all {
        let Figures { messages, text, speed, build, size, query, recall } = figures;
        write!(
            out,
            "\n## {messages} messages, {text:.0} bytes each\n\n\
             Embedded in a second: {:.0} messages, {:.1} MB; of messages up to {SHORT} bytes, {:.0}.\n\n\
             | | Verbatim's vectors | sqlite-vec, float32 | sqlite-vec, int8 | FTS5's BM25 |\n|-|--:|--:|--:|--:|\n",
            speed[0], speed[1], speed[2]
        )
        .expect("a String takes all");
        let rows = [
            ("built in, s (ours: embedding too)", [build[0], build[2], build[3], build[1]], 1),
            ("bytes a message", [size[0], size[2], size[3], size[1]], 0),
            ("a question, median ms", [query[1], query[3], query[4], query[2]], 2),
        ];
        for (name, values, digits) in rows {
            let values: Vec<String> =
                values.iter().map(|value| format!("{value:.digits$}")).collect();
            writeln!(out, "| {name} | {} |", values.join(" | ")).expect("a String takes all");
        }
        writeln!(
            out,
            "| of the ten nearest by float32 | {:.3} | 1 | {:.3} | |\n\nEmbedding the question: {:.3} ms.",
            recall[0], recall[1], query[0]
        )
        .expect("a String takes all");
    }
    out
}
