//! Reads the questions and messages of a published set, whose form is recognised by its contents.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::{beam, corpus::EvalSet, locomo, longmemeval};

/// The number of bytes by which the form of a file is recognised. LongMemEval's first histories are longer
/// than this, but they come after their ids.
const BEGINNING: u64 = 64 << 10;

/// Reads a file of LongMemEval or LoCoMo, a folder of BEAM, or a folder with files of LoCoMo's form.
pub(crate) fn read(path: &Path) -> Result<EvalSet> {
    let mut set = EvalSet::default();
    if !path.is_dir() {
        let beginning = beginning(path).with_context(|| path.display().to_string())?;
        if has_one(&beginning, ["haystack_session_ids", "haystack_sessions"]) {
            longmemeval::read(path, &mut set)?;
        } else if has_one(&beginning, ["evidence", "dia_id"]) {
            locomo::read(path, &mut set)?;
        } else {
            bail!("{}: has no messages; name their file with --corpus", path.display());
        }
        return Ok(set);
    }
    let chats = beam::chats(path);
    for chat in &chats {
        beam::read(chat, &mut set)?;
    }
    if chats.is_empty() {
        for file in json_files(path).with_context(|| path.display().to_string())? {
            locomo::read(&file, &mut set)?;
        }
    }
    let has_messages = set.corpus.messages() > 0;
    ensure!(has_messages, "{}: no chats of BEAM, and no files of LoCoMo's form", path.display());
    Ok(set)
}

fn beginning(path: &Path) -> io::Result<String> {
    let mut beginning = Vec::new();
    File::open(path)?.take(BEGINNING).read_to_end(&mut beginning)?;
    Ok(String::from_utf8_lossy(&beginning).into_owned())
}

fn has_one(text: &str, keys: [&str; 2]) -> bool {
    keys.iter().any(|key| text.contains(&format!("\"{key}\"")))
}

/// Returns the `*.json` in a folder, sorted by name.
fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
