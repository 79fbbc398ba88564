//! `verbatim reindex`

use std::{
    io::Write,
    time::{Duration, Instant},
};

use indicatif::{HumanBytes, HumanCount, ProgressBar};

use super::{archives, environment::Environment, error::Error, output::FOUND, progress};
use crate::{
    engine::{Engine, Enriched, Progress, Reindex, Reindexed, Resources, SourceKind},
    model::Stop,
};

/// The length of the progress bar. Reading takes the first nine tenths: about its share of the time.
const STEPS: u64 = 10_000;

/// The memory that a search uses to build what is missing.
const MEMORY_OF_A_SEARCH: usize = 1 << 30;

/// Build the indexes that make searches fast
///
/// Searches work without indexes, by reading every message, and while indexes are being built. The
/// database has an index, and so have the transcripts of coding agents and recorded threads, if
/// there are any. An up-to-date index is left alone.
///
///     verbatim reindex
///     verbatim reindex --db export.db --memory 512M
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Build every index anew, even if it is up to date
    #[arg(long)]
    full: bool,

    /// Use at most this much memory and 128M beside it, such as 512M or 2G
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    memory: usize,

    /// Threads to use [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

/// Builds the indexes and writes their sizes and times to `out`.
pub(super) fn run(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let threads = args
        .threads
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let options =
        Reindex { resources: Resources { memory: args.memory, threads }, full: args.full };
    if let Some(report) = archives::sync(engine, environment).filter(|report| report.read > 0) {
        writeln!(out, "{report}")?;
    }
    let sources = engine.sources();
    let has_export = sources.iter().any(|source| source.kind == SourceKind::Export);
    if !has_export && (sources.is_empty() || engine.config().db.is_some()) {
        // The error says which database is missing.
        engine.config().export_database()?;
    }
    for source in &sources {
        let bar = bar(environment);
        let result = engine
            .upkeep()
            .reindex_source(source, options, &Stop::never(), &mut |step| show(&bar, step));
        bar.finish_and_clear();
        if sources.len() > 1 {
            write!(out, "{}: ", source.kind.name())?;
        }
        write_result(result?, out)?;
    }
    enrich(engine, options.resources, environment, out)?;
    Ok(FOUND)
}

/// Makes what ranking needs and the sources lack, with a bar on a terminal. What cannot be made is
/// said with the answer.
pub(super) fn complete(engine: &Engine, environment: &Environment) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let resources = Resources { memory: MEMORY_OF_A_SEARCH, threads };
    for source in engine.sources() {
        let template = "indexing [{bar:30}] {percent:>3} % {eta_precise} left";
        let bar = progress::bar(environment, STEPS, template);
        let mut show = |share: f64| bar.set_position((STEPS as f64 * share) as u64);
        drop(engine.upkeep().complete(&source, resources, &Stop::never(), &mut show));
        bar.finish_and_clear();
    }
}

fn bar(environment: &Environment) -> ProgressBar {
    let template = "{msg:8} [{bar:30}] {percent:>3} % {prefix} {eta_precise} left";
    let bar = progress::bar(environment, STEPS, template);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn write_result(result: Reindexed, out: &mut dyn Write) -> std::io::Result<()> {
    match result {
        Reindexed::Current { messages } => writeln!(
            out,
            "the index of {} messages is up to date; --full builds it anew",
            HumanCount(messages.into())
        )?,
        Reindexed::Refreshed { added, removed, took } => writeln!(
            out,
            "refreshed the index in {:.1} s: {} messages added, {} removed (a changed message counts as both)",
            took.as_secs_f64(),
            HumanCount(added.into()),
            HumanCount(removed.into())
        )?,
        Reindexed::Built { size, conversations, took, folder } => {
            let ratio = |bytes: u64| bytes as f64 / size.text_bytes.max(1) as f64;
            writeln!(
                out,
                "indexed {} messages of {} conversations, {} of text, in {:.1} s ({:.1} MB/s)\n\
                 index {} ({:.2} × the text), sidecar {} ({:.2} ×)\n{}",
                HumanCount(size.messages.into()),
                HumanCount(conversations as u64),
                HumanBytes(size.text_bytes),
                took.as_secs_f64(),
                size.text_bytes as f64 / 1e6 / took.as_secs_f64().max(1e-3),
                HumanBytes(size.index_bytes),
                ratio(size.index_bytes),
                HumanBytes(size.store_bytes),
                ratio(size.store_bytes),
                folder.display()
            )?;
        }
    }
    Ok(())
}

/// Builds the word and vector indexes of messages that have none; ranked search needs them.
fn enrich(
    engine: &Engine,
    resources: Resources,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut failed = None;
    for source in engine.sources() {
        let template = "ranking  [{bar:30}] {percent:>3} % {eta_precise} left";
        let bar = progress::bar(environment, STEPS, template);
        let start = Instant::now();
        let made =
            engine.upkeep().enrich(&source, resources, &Stop::never(), &mut |done, total| {
                bar.set_position(STEPS * done / total.max(1));
            });
        bar.finish_and_clear();
        let made = made.unwrap_or_else(|error| {
            failed.get_or_insert(error);
            Enriched::default()
        });
        if made != Enriched::default() {
            writeln!(
                out,
                "indexed the words of {} messages and the vectors of {} in {:.1} s",
                HumanCount(made.words.into()),
                HumanCount(made.vectors.into()),
                start.elapsed().as_secs_f64()
            )?;
        }
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn show(bar: &ProgressBar, step: Progress) {
    match step {
        Progress::Ordering => bar.set_message("ordering"),
        Progress::Reading { done, total, bytes } => {
            bar.set_message("reading");
            bar.set_position(STEPS * 9 / 10 * done / total.max(1));
            let seconds = bar.elapsed().as_secs_f64().max(1e-3);
            bar.set_prefix(format!(
                "{:.0} messages/s, {:.1} MB/s,",
                done as f64 / seconds,
                bytes as f64 / 1e6 / seconds
            ));
        }
        Progress::Writing(share) => {
            bar.set_message("writing");
            bar.set_position(STEPS * 9 / 10 + (STEPS as f64 / 10.0 * share) as u64);
        }
    }
}

/// Parses a number of bytes with an optional K, M or G.
fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']) {
        Some(digits) => match text.as_bytes()[digits.len()].to_ascii_uppercase() {
            b'K' => (digits, 1 << 10),
            b'M' => (digits, 1 << 20),
            _ => (digits, 1 << 30),
        },
        None => (text, 1),
    };
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    size.filter(|size| *size >= 16 << 20)
        .ok_or_else(|| "a size of 16M or more, such as 512M or 2G".to_owned())
}
