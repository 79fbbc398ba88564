//! `verbatim import`: exports into a canonical database.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};

use super::{
    environment::Environment,
    output::{FOUND, complain, harmless, plural},
    progress,
};
use crate::engine::{
    Branches, Engine,
    import::{self, Report},
};

/// The exit code if some of the exports could not be read, and the rest was imported.
const PARTIAL: u8 = 1;

/// Bring exported chats into the database that is searched
///
/// Takes what ChatGPT and Claude.ai send you: the zip as it is, the folder it unpacks to, or
/// conversations.json alone; and the transcripts of Claude Code and Codex, a file or a folder of
/// them. The format is detected automatically. You can import the same or a newer export again at any
/// time: new messages are added, changed ones are updated, none is deleted.
///
/// The exit code is 0 if everything was read, 1 if some of it could not be read and the rest was
/// imported, and 2 if nothing was.
///
///     verbatim import ~/Downloads/chatgpt-export.zip
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct ImportArgs {
    /// Exports and transcripts; each is a zip, a folder, a JSON or a JSONL file
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,

    /// The database to merge into
    ///
    /// Created if it does not exist. By default verbatim.db in the home folder's db/.
    #[arg(long, value_name = "DB")]
    out: Option<PathBuf>,

    /// Which versions of regenerated answers to keep
    #[arg(long, value_enum, default_value_t = BranchesArg::Shown)]
    branches: BranchesArg,
}

/// The values of `--branches`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BranchesArg {
    /// The version that the service shows
    Shown,
    /// Every version; the one that is shown comes first
    All,
}

/// An error of an import.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was imported.
    #[error(transparent)]
    Import(#[from] import::Error),
    /// The sample of the demo could not be written.
    #[error("{}: cannot write the sample: {source}; name another folder with --home", path.display())]
    Sample {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The report could not be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] io::Error),
}

/// Imports the exports and writes a report to `out`.
pub(super) fn run(
    args: &ImportArgs,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let default = || engine.config().db_folder().join("verbatim.db");
    let target = args.out.clone().unwrap_or_else(default);
    let branches = match args.branches {
        BranchesArg::Shown => Branches::Shown,
        BranchesArg::All => Branches::All,
    };
    let template = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let bar = progress::bar(environment, 0, template);
    let result = import::import(&args.sources, &target, branches, &|progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    let report = result?;
    write_report(&report, &target, out)?;
    write_next_step(engine, &target, out)?;
    Ok(if is_complete(&report) { FOUND } else { PARTIAL })
}

/// Returns whether an import read everything; says on standard error what is missing.
fn is_complete(report: &Report) -> bool {
    let missing = report.missing();
    if let Some(first) = missing.first() {
        let more = match missing.len() - 1 {
            0 => String::new(),
            more => format!("; and {more} more, which the report names"),
        };
        complain(&format!("not everything was imported: {first}{more}"));
    }
    missing.is_empty()
}

/// Writes the next step: searches may read another database, or have no index yet.
fn write_next_step(engine: &Engine, target: &Path, out: &mut dyn Write) -> io::Result<()> {
    let same = |read: &Path| read.canonicalize().ok() == target.canonicalize().ok();
    match engine.config().export_database() {
        Ok(read) if same(&read) => {
            writeln!(out, "Search it with `verbatim search`; `verbatim reindex` makes that fast.")
        }
        Ok(read) => {
            writeln!(out, "Searches read {} unless --db names another database.", read.display())
        }
        Err(_) => writeln!(out, "Search it with `verbatim search --db {}`.", target.display()),
    }
}

/// Writes what an import did.
pub(super) fn write_report(report: &Report, target: &Path, out: &mut dyn Write) -> io::Result<()> {
    let (tally, changes) = (&report.tally, &report.changes);
    let seconds = report.took.as_secs_f64();
    let megabytes = tally.bytes as f64 / 1e6;
    writeln!(
        out,
        "Read {} with {} in {seconds:.1} s ({megabytes:.1} MB, {:.0} MB/s).",
        count(tally.conversations, "conversation"),
        count(tally.messages, "message"),
        megabytes / seconds.max(1e-3),
    )?;
    writeln!(
        out,
        "  conversations: {} new, {} updated, {} unchanged",
        changes.new_conversations, changes.updated_conversations, changes.unchanged_conversations
    )?;
    writeln!(
        out,
        "  messages: {} new, {} updated, {} unchanged",
        changes.new_messages, changes.updated_messages, changes.unchanged_messages
    )?;
    if tally.empty > 0 {
        writeln!(out, "  left out: {} without text or files", count(tally.empty, "empty message"))?;
    }
    if !tally.unknown.is_empty() {
        let kinds: Vec<String> =
            tally.unknown.iter().map(|(kind, number)| format!("{kind} ({number})")).collect();
        writeln!(
            out,
            "  content of unknown types, its text kept: {}",
            harmless(&kinds.join(", "))
        )?;
    }
    if tally.malformed > 0 {
        writeln!(out, "  left out: {} that cannot be read", count(tally.malformed, "line"))?;
    }
    if tally.skipped_count > 0 {
        writeln!(out, "  skipped: {}", count(tally.skipped_count, "conversation"))?;
        for skipped in &tally.skipped {
            let name = skipped.name.as_deref().map(|name| format!(" ({})", one_line(name)));
            writeln!(
                out,
                "    {}: conversation {}{}: {}",
                harmless(&skipped.file),
                skipped.ordinal,
                harmless(&name.unwrap_or_default()),
                harmless(&skipped.reason)
            )?;
        }
        let unnamed = tally.skipped_count - tally.skipped.len() as u64;
        if unnamed > 0 {
            writeln!(out, "    and {unnamed} more")?;
        }
    }
    for damaged in &tally.damaged {
        writeln!(out, "  warning: {}", harmless(damaged))?;
    }
    for failure in &report.failures {
        writeln!(out, "  not imported: {}", harmless(&failure.to_string()))?;
    }
    writeln!(out, "Database: {}", target.display())
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", plural(number))
}

/// Returns the beginning of a title on one line.
fn one_line(title: &str) -> String {
    let line: String = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > 60 { line.chars().take(59).chain(['…']).collect() } else { line }
}
