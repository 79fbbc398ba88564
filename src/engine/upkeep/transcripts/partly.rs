//! Reports which parts of the transcripts could not be read.

use std::{collections::BTreeMap, fs::File, io, path::Path};

use super::{pass::FOREIGN, report::ArchiveReport, walk::walk};
use crate::{
    db,
    engine::{config::Config, error::Result},
    import::transcript::TranscriptReader,
    model::Stop,
    text::amount::counted,
};

/// Files of which some part could not be read.
#[derive(Default)]
struct Partly {
    files: u64,
    /// The path of the first of these files.
    first: String,
}

impl Partly {
    fn add(&mut self, path: &str) {
        if self.files == 0 {
            // File names may contain line breaks.
            self.first = path.replace(['\n', '\r'], " ");
        }
        self.files += 1;
    }
}

/// Returns the parts of a configuration's transcripts that could not be read, one sentence each: lines,
/// content of unknown types, files and folders.
pub(crate) fn partly_read(config: &Config, stop: &Stop) -> Result<Vec<String>> {
    let database = config.archive_database();
    let roots = config.archive_roots();
    let (mut broken, mut lines) = (Partly::default(), 0);
    let (mut unknown, mut kinds) = (Partly::default(), BTreeMap::<String, u64>::new());
    let mut foreign = Partly::default();
    let files = db::read_tables(&database, stop, db::reading_states)?;
    for file in files.values().filter(|file| file.is_shown) {
        let is_followed = roots.iter().any(|root| Path::new(&file.path).starts_with(root));
        let Some(reader) = TranscriptReader::restore(&file.reader).filter(|_| is_followed) else {
            continue;
        };
        if reader.malformed() > 0 {
            lines += reader.malformed();
            broken.add(&file.path);
        }
        if !reader.unknown().is_empty() {
            unknown.add(&file.path);
        }
        for (kind, count) in reader.unknown() {
            *kinds.entry(kind.clone()).or_default() += count;
        }
        if reader.is_foreign() {
            foreign.add(&file.path);
        }
    }
    let mut said = Vec::new();
    if lines > 0 {
        let Partly { files, first } = broken;
        let (lines, files) = (counted(lines, "line"), counted(files, "file"));
        said.push(format!("{lines} in {files} cannot be read; the first is {first}"));
    }
    if unknown.files > 0 {
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        let (kinds, Partly { files, first }) = (kinds.join(", "), unknown);
        let files = counted(files, "file");
        said.push(format!(
            "content of types that we do not know is in {files}: {kinds}; the first is {first}"
        ));
    }
    if foreign.files > 0 {
        let files = counted(foreign.files, "file");
        said.push(format!("{files}: {FOREIGN}; the first is {}", foreign.first));
    }
    let mut unread = ArchiveReport::default();
    for found in walk(config, &mut unread).found {
        let is_read = files.get(&found.name).is_some_and(|file| file.stamp == found.stamp);
        if !is_read
            && let Err(error) = File::open(&found.path)
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
