//! Writes the manual pages to a folder: `cargo run --example man -- FOLDER`.

use std::{env, fs, path::PathBuf};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).context("no folder for the pages is given")?);
    let failed = || format!("{}: cannot write the manual pages", folder.display());
    fs::create_dir_all(&folder).with_context(failed)?;
    clap_mangen::generate_to(verbatim_search::cli::command(), &folder).with_context(failed)
}
