//! How good is the ranking? Questions with known answers: the share of the answers among the first 5 and 10
//! (recall), and how near the top they are (MRR, nDCG).

pub(crate) mod beam;
pub(crate) mod corpus;
pub(crate) mod figures;
pub(crate) mod lines;
pub(crate) mod locomo;
pub(crate) mod longmemeval;
pub(crate) mod published;

use std::{fs, path::Path};

use anyhow::{Context, Result};

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Returns the error of a file that does not have the form of its set.
fn wrong_form(path: &Path, form: &str, reason: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{}: not a file of {form}: {reason}", path.display())
}
