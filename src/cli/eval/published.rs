//! Reads an evaluation from the files of a published set, whose form is recognised by its contents.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{beam, corpus::EvalSet, error::Error, locomo, longmemeval};

/// The number of bytes by which the form of a file is recognised. LongMemEval's first histories are longer
/// than this, but they come after their ids.
const BEGINNING: u64 = 64 << 10;

/// Reads the questions and messages of a file of LongMemEval or LoCoMo, of a folder of BEAM, or of a folder
/// with files of LoCoMo's form.
pub(super) fn read(path: &Path) -> Result<EvalSet, Error> {
    let failed = |error| Error::Read { path: path.to_owned(), error };
    let mut set = EvalSet::default();
    if !path.is_dir() {
        match recognised(path).map_err(failed)? {
            None => return Err(Error::NoCorpus { path: path.to_owned() }),
            Some(PublishedForm::LongMemEval) => longmemeval::read(path, &mut set)?,
            Some(PublishedForm::Locomo) => read_locomo(path, &mut set)?,
        }
        return Ok(set);
    }
    let chats = beam::chats(path);
    for chat in &chats {
        beam::read(chat, &mut set)?;
    }
    if chats.is_empty() {
        for file in json_files(path).map_err(failed)? {
            read_locomo(&file, &mut set)?;
        }
    }
    if set.corpus.messages() == 0 {
        let what = "no chats of BEAM, and no files of LoCoMo's form";
        return Err(Error::Empty { path: path.to_owned(), what });
    }
    Ok(set)
}

enum PublishedForm {
    LongMemEval,
    Locomo,
}

/// Returns the form of a file; `None` if it is none of these.
fn recognised(path: &Path) -> io::Result<Option<PublishedForm>> {
    let mut beginning = Vec::new();
    File::open(path)?.take(BEGINNING).read_to_end(&mut beginning)?;
    let beginning = String::from_utf8_lossy(&beginning);
    let has = |key: &str| beginning.contains(&format!("\"{key}\""));
    Ok(if has("haystack_session_ids") || has("haystack_sessions") {
        Some(PublishedForm::LongMemEval)
    } else if has("evidence") || has("dia_id") {
        Some(PublishedForm::Locomo)
    } else {
        None
    })
}

fn read_locomo(path: &Path, set: &mut EvalSet) -> Result<(), Error> {
    let failed = |error| Error::Read { path: path.to_owned(), error };
    locomo::read(path, &fs::read_to_string(path).map_err(failed)?, set)
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
