//! How fast is an exact search, end to end with rows, beside what SQLite does by itself?
//!
//! Generates a corpus (or takes a database), puts the same queries of many kinds to plain LIKE,
//! LIKE with an index on time, FTS5's trigrams as they are and tuned, and Verbatim by turns, compares their answers, and
//! writes `benches/results/search.md` and `search.svg`. See `cargo bench -- --help`.

mod chart;
mod classes;
mod corpus;
mod haystack;
mod hunt;
mod measure;
mod modes;
mod ours;
mod race;
mod refresh;
mod report;
mod sqlite;
mod stage;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use crate::classes::{Class, Literal};
use crate::haystack::Source;
use crate::measure::{anonymous, cost};
use crate::modes::{MODE_SIDES, Ripgrep, Scan};
use crate::ours::Ours;
use crate::race::{Heat, Racer, heat};
use crate::report::{Corpus, Growth, LIKE, Machine, OURS, Results, SIDES};
use crate::sqlite::{Baseline, Sqlite};
use crate::stage::Stage;
use verbatim_base::model::Request;

/// How many times as many messages the growth is measured over.
const GROWTH: usize = 10;

/// Measures exact search beside plain LIKE, LIKE with an index on time, and FTS5
#[derive(Parser)]
#[command(name = "search", disable_help_subcommand = true)]
struct Args {
    /// How many messages to generate
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    messages: usize,

    /// Measure a copy of this canonical database instead of generated messages
    #[arg(long, value_name = "PATH", conflicts_with = "messages")]
    db: Option<PathBuf>,

    /// Seconds that each side may spend on one kind of query, three literals at least
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,

    /// How many random patterns to try in search of slow ones
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    patterns: usize,

    /// Where to write search.md and search.svg
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results"), hide_default_value = true)]
    out: PathBuf,

    /// Where to keep databases between runs [default: target/bench]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    /// Build the baselines' indexes anew even where an earlier run left them
    #[arg(long)]
    rebuild: bool,

    /// Measure instead what refreshing an index costs after a hundredth of the messages changed, and how
    /// fast it is then; writes refresh.md
    #[arg(long)]
    refresh: bool,

    /// Write the report of the last run again, without measuring
    #[arg(long)]
    report_only: bool,

    /// Given by cargo bench; without it, all is run once at a tiny size
    #[arg(long, hide = true)]
    bench: bool,

    #[command(subcommand)]
    child: Option<Child>,
}

/// The commands that run in a separate process, so that memory and time are measured for them alone.
#[derive(Subcommand)]
#[command(hide = true)]
enum Child {
    #[command(hide = true)]
    BuildBaseline { baseline: Baseline, database: PathBuf },
    #[command(hide = true)]
    OptimizeBaseline { baseline: Baseline, database: PathBuf },
    #[command(hide = true)]
    BuildOurs { database: PathBuf, index: PathBuf, threads: usize },
    #[command(hide = true)]
    RefreshOurs { database: PathBuf, index: PathBuf, threads: usize },
    /// Answers one query
    #[command(hide = true)]
    First { database: PathBuf, index: PathBuf, text: String },
    /// Answers many queries
    #[command(hide = true)]
    Serve { database: PathBuf, index: PathBuf, literals: PathBuf },
}

fn main() -> Result<()> {
    let mut args = Args::parse();
    if let Some(child) = &args.child {
        return run_child(child);
    }
    let mut work = args
        .work
        .clone()
        .unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench"));
    if !args.bench {
        work.push("smoke");
        args.messages = 500;
        args.seconds = 0.1;
        args.patterns = 50;
        args.out.clone_from(&work);
    }
    fs::create_dir_all(&work)?;
    if args.refresh {
        let report = refresh::measure(&work, args.messages, args.seconds)?;
        let path = args.out.join("refresh.md");
        fs::create_dir_all(&args.out)?;
        fs::write(&path, report).with_context(|| format!("writing {}", path.display()))?;
        say(format_args!("wrote {}", path.display()));
        return Ok(());
    }
    let last = work.join("last-run.json");
    let results: Results = if args.report_only {
        let json = fs::read_to_string(&last)
            .with_context(|| format!("{}: no run to report", last.display()))?;
        serde_json::from_str(&json)?
    } else {
        let results = run(&args, &work)?;
        fs::write(&last, serde_json::to_string_pretty(&results)?)?;
        results
    };
    fs::create_dir_all(&args.out)?;
    for (name, text) in
        [("search.md", report::markdown(&results)), ("search.svg", chart::svg(&results))]
    {
        let path = args.out.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        say(format_args!("wrote {}", path.display()));
    }
    let wrong = results.wrong_answers();
    if !wrong.is_empty() {
        bail!("answers differ from LIKE's:\n{}", wrong.join("\n"));
    }
    Ok(())
}

fn run_child(child: &Child) -> Result<()> {
    let figures = match child {
        Child::BuildBaseline { baseline, database } => {
            serde_json::to_string(&cost(|| baseline.build(database))?)?
        }
        Child::OptimizeBaseline { baseline, database } => {
            serde_json::to_string(&cost(|| baseline.optimize(database))?)?
        }
        Child::BuildOurs { database, index, threads } => {
            serde_json::to_string(&cost(|| ours::build(database, index, *threads, true))?)?
        }
        Child::RefreshOurs { database, index, threads } => {
            serde_json::to_string(&cost(|| ours::build(database, index, *threads, false))?)?
        }
        Child::First { database, index, text } => {
            let literal = Literal { text: text.clone(), ..Literal::default() };
            Ours::open(database, index).ask(&literal.request())?.len().to_string()
        }
        Child::Serve { database, index, literals } => {
            let literals: Vec<Literal> = serde_json::from_str(&fs::read_to_string(literals)?)?;
            let ours = Ours::open(database, index);
            for literal in literals {
                ours.ask(&literal.request())?;
            }
            serde_json::to_string(&anonymous())?
        }
    };
    writeln!(io::stdout(), "{figures}")?;
    Ok(())
}

fn run(args: &Args, work: &Path) -> Result<Results> {
    let machine = Machine::this();
    let stage = match &args.db {
        Some(path) => Stage::copy(work, path)?,
        None => Stage::generate(work, args.messages)?,
    };
    say(format_args!("sampling literals from {}", stage.database().display()));
    let source = Source::read(stage.database())?;
    let classes = classes::sample(&source);
    let like = stage.baseline(Baseline::Like, args.rebuild)?;
    let time_index = stage.baseline(Baseline::TimeIndex, args.rebuild)?;
    let fts5 = stage.baseline(Baseline::Fts5, args.rebuild)?;
    let tuned = stage.baseline(Baseline::Fts5Tuned, args.rebuild)?;
    let ours = stage.ours()?;

    let sides: [Box<dyn Racer>; SIDES.len()] = [
        Box::new(Sqlite::open(Baseline::Like, &like.database)?),
        Box::new(Sqlite::open(Baseline::TimeIndex, &time_index.database)?),
        Box::new(Sqlite::open(Baseline::Fts5, &fts5.database)?),
        Box::new(Sqlite::open(Baseline::Fts5Tuned, &tuned.database)?),
        stage.open_ours(),
    ];
    let heats = run_classes(&classes, &sides, args.seconds)?;
    let everything = Request { raw_content: true, ..Request::default() };
    let scan = Rc::new(Scan::new(sides[LIKE].ask(&everything)?));
    let of_modes: [Box<dyn Racer>; MODE_SIDES.len()] =
        [Box::new(scan.clone()), Box::new(Ripgrep::new(&scan)), stage.open_ours()];
    let modes = run_classes(&modes::classes(&classes, &source), &of_modes, args.seconds)?;
    drop(of_modes);

    say(format_args!("trying {} patterns", args.patterns));
    let hunt = hunt::hunt(&source, args.patterns, &*sides[OURS], &*sides[LIKE], &scan)?;
    drop(scan);
    let literals: Vec<&Literal> = classes.iter().flat_map(|class| &class.literals).collect();
    let serving = stage.serving(&literals)?;
    let first_answer = stage.first_answer(&literals)?;
    let corpus = Corpus::of(&source, args.db.is_none());
    drop(source);
    let growth = if args.bench && args.db.is_none() {
        Some(growth(work, args, &stage, &classes)?)
    } else {
        None
    };
    Ok(Results {
        machine,
        corpus,
        baselines: vec![like, time_index, fts5, tuned],
        ours,
        heats,
        modes,
        growth,
        hunt,
        first_answer,
        serving,
    })
}

/// Measures our index alone, over these messages and over a tenth as many.
fn growth(work: &Path, args: &Args, stage: &Stage, classes: &[Class]) -> Result<Growth> {
    say(format_args!("ours alone"));
    let many = run_classes(classes, &[stage.open_ours()], args.seconds)?;
    let messages = args.messages / GROWTH;
    let stage = Stage::generate(work, messages)?;
    let classes = classes::sample(&Source::read(stage.database())?);
    stage.ours()?;
    let few = run_classes(&classes, &[stage.open_ours()], args.seconds)?;
    Ok(Growth { messages, few, many })
}

fn run_classes(classes: &[Class], sides: &[Box<dyn Racer>], seconds: f64) -> Result<Vec<Heat>> {
    let mut heats = Vec::new();
    for class in classes {
        let start = Instant::now();
        let heat = heat(class, sides, seconds).with_context(|| class.name)?;
        let medians: Vec<String> = (heat.figures.iter())
            .map(|figures| figures.as_ref().map_or("-".to_owned(), |f| report::time(f.median)))
            .collect();
        say(format_args!(
            "{}: {} literals, {} ({:.0} s)",
            class.name,
            class.literals.len(),
            medians.join(", "),
            start.elapsed().as_secs_f64()
        ));
        heats.push(heat);
    }
    Ok(heats)
}

/// Prints the progress.
fn say(what: std::fmt::Arguments<'_>) {
    eprintln!("{what}");
}
