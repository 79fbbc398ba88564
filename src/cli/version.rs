//! The command `verbatim version`.

use std::io::Write;

use serde_json::json;

use super::{
    error::Result,
    output::{FOUND, json_line},
};

/// Print the version, and the commit and the date that it was built from
///
///     verbatim version
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Print one JSON object: version, commit, date
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<u8> {
    let whole = verbatim_engine::VERSION;
    if !args.json {
        writeln!(out, "verbatim {whole}")?;
        return Ok(FOUND);
    }
    // The version of a build with a known commit looks like `0.1.0 (1a2b3c4 2026-11-22)`.
    let (version, built) = whole.split_once(" (").unwrap_or((whole, ""));
    let (commit, date) = built.trim_end_matches(')').split_once(' ').unzip();
    json_line(out, &json!({"version": version, "commit": commit, "date": date}))?;
    Ok(FOUND)
}
