//! Reports which parts of the transcripts could not be read.

use std::collections::{BTreeMap, BTreeSet};
use std::{io, path::Path};

use super::{archive_walk::walk_archives, pass::FOREIGN, report::ArchiveReport};
use crate::{config::Config, error::Result};
use verbatim_base::{call::Call, files};
use verbatim_chats::db;
use verbatim_chats::import::transcript::{HELPERS_LEFT_OUT, TranscriptReader};
use verbatim_text::amount::counted;

#[derive(Default)]
struct UnreadParts {
    parts: u64,
    files: u64,
    first: String,
}

impl UnreadParts {
    fn add(&mut self, parts: u64, path: &str) {
        if parts == 0 {
            return;
        }
        if self.files == 0 {
            // File names may contain line breaks.
            self.first = path.replace(['\n', '\r'], " ");
        }
        self.parts += parts;
        self.files += 1;
    }

    /// Returns a sentence about the files, if there are any. `say` gets the numbers of parts and of files.
    fn said(&self, say: impl Fn(u64, String) -> String) -> Option<String> {
        if self.files == 0 {
            return None;
        }
        let said = say(self.parts, counted(self.files, "file"));
        Some(format!("{said}; the first is {}", self.first))
    }
}

/// Returns the parts of a configuration's transcripts that could not be read, one sentence each: lines,
/// content of unknown types, files and folders.
pub(crate) fn unread_parts(config: &Config, call: &Call) -> Result<Vec<String>> {
    let database = config.archive_database();
    let roots = config.searched_roots();
    let [mut broken, mut not_utf8, mut unknown, mut foreign, mut others, mut helpers] =
        <[UnreadParts; 6]>::default();
    let mut programs = BTreeSet::new();
    let mut kinds = BTreeMap::<String, u64>::new();
    let files = db::read_tables(&database, call, db::reading_states)?;
    for file in files.values().filter(|file| file.is_shown) {
        if let Some(roots) = &roots
            && !roots.iter().any(|root| Path::new(&file.path).starts_with(root))
        {
            continue;
        }
        let Some(reader) = TranscriptReader::restore(&file.reader) else { continue };
        broken.add(reader.malformed(), &file.path);
        not_utf8.add(reader.not_utf8(), &file.path);
        unknown.add(reader.unknown().len() as u64, &file.path);
        helpers.add(reader.helpers(), &file.path);
        match reader.foreign() {
            Some(what) => {
                others.add(1, &file.path);
                programs.insert(what);
            }
            None => foreign.add(u64::from(reader.is_unrecognised()), &file.path),
        }
        for (kind, count) in reader.unknown() {
            *kinds.entry(kind.clone()).or_default() += count;
        }
    }
    let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
    let kinds = kinds.join(", ");
    let programs = programs.into_iter().collect::<Vec<_>>().join("; ");
    let mut said: Vec<String> = [
        broken.said(|parts, files| format!("{} in {files} cannot be read", counted(parts, "line"))),
        not_utf8.said(|parts, files| {
            format!("{} in {files}: bytes that are not UTF-8 were replaced by U+FFFD", counted(parts, "line"))
        }),
        unknown.said(|_, files| {
            format!("of content of types that we do not know, only the text is kept, in {files}: {kinds}")
        }),
        foreign.said(|_, files| format!("{files}: {FOREIGN}")),
        others.said(|_, files| format!("{files}: {programs}")),
        helpers.said(|_, files| format!("{files}: {HELPERS_LEFT_OUT}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut unread = ArchiveReport::default();
    for found in walk_archives(config, &mut unread).transcripts {
        let is_read = files.get(&found.name).is_some_and(|file| file.stamp == found.stamp);
        if !is_read
            && let Err(error) = files::open(&found.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            unread.fail(&found.path, &error);
        }
    }
    if let Some(failure) = unread.failures.first() {
        let failed = match unread.failed {
            1 => "1 file or folder is".to_owned(),
            failed => format!("{failed} files and folders are"),
        };
        said.push(format!("{failed} not read; the first is {failure}"));
    }
    Ok(said)
}
