//! What there is, and how current what is derived from it is.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

use crate::engine::{Engine, Source, SourceKind, upkeep::maintainer};
use crate::{
    db::{self, Probe},
    import::Export,
    index::{Activity, IndexDir, Last, Snapshot},
    model::{Instant, Stop},
};

/// How long a database without a current index is counted for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What there is.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The home folder.
    pub home: PathBuf,
    /// The folder of what is derived.
    pub index: PathBuf,
    /// The sources that are there.
    pub sources: Vec<SourceStatus>,
    /// FallbackReason there is no export, where there is none.
    pub missing: Option<String>,
    /// Exports in `db/` that came after the database searched, and were not imported.
    pub not_imported: Vec<PathBuf>,
}

/// One source.
#[derive(Clone, Debug, Serialize)]
pub struct SourceStatus {
    /// Which one: `export`, `archive` or `threads`.
    pub source: &'static str,
    /// Its database.
    pub database: PathBuf,
    /// Other databases in `db/`, which are passed over; only of an export that was not named.
    pub passed_over: Vec<PathBuf>,
    /// The bytes of the database and its log.
    pub bytes: u64,
    /// When it was written to last, in seconds since 1970.
    pub changed: Option<u64>,
    /// Conversations in it, where they could be counted in time.
    pub conversations: Option<u64>,
    /// Messages in it.
    pub messages: Option<u64>,
    /// When the first message was written, ISO 8601.
    pub first: Option<String>,
    /// When the last message was written.
    pub last: Option<String>,
    /// FallbackReason it cannot be read, where it cannot.
    pub error: Option<String>,
    /// Its index; `None` where there is none.
    pub generation: Option<SnapshotStatus>,
    /// What keeps the index from answering; `None` where it answers.
    pub by_like: Option<String>,
    /// The process that refreshes the index at this moment.
    pub at_work: Option<Activity>,
    /// The last refresh.
    pub refreshed: Option<Last>,
}

/// The index of a source.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotStatus {
    /// The name of its folder.
    pub name: String,
    /// The folder of all snapshots.
    pub folder: PathBuf,
    /// Whether it mirrors the database as it is now.
    pub current: bool,
    /// Messages in it.
    pub messages: u32,
    /// For each part how many messages it holds, and how many of them are in the database no more.
    pub parts: Vec<(u32, u32)>,
    /// Bytes of text in it.
    pub text_bytes: u64,
    /// Bytes of its files, what is derived from its parts included.
    pub bytes: u64,
    /// What its parts have beside the grams: `words`, `vectors`; only what all of them have.
    pub derived: Vec<String>,
}

impl Engine {
    /// Returns what there is. Where the index is current, that takes milliseconds.
    pub fn status(&self, stop: &Stop) -> Status {
        let config = self.config();
        let sources = self.sources();
        Status {
            home: config.home.clone(),
            index: config.index_folder(),
            missing: self.database().err().map(|error| error.to_string()),
            not_imported: maintainer::beside(self, &sources)
                .filter(|path| Export::open(path).is_ok())
                .collect(),
            sources: sources.iter().map(|source| self.status_of(source, stop)).collect(),
        }
    }

    fn status_of(&self, source: &Source, stop: &Stop) -> SourceStatus {
        let path = &source.path;
        let mut status = SourceStatus {
            source: source.kind.name(),
            database: path.clone(),
            passed_over: self.passed_over(source),
            bytes: 0,
            changed: None,
            conversations: None,
            messages: None,
            first: None,
            last: None,
            error: None,
            generation: None,
            by_like: None,
            at_work: None,
            refreshed: None,
        };
        for file in [path.clone(), suffixed(path, "-wal")] {
            let Ok(metadata) = fs::metadata(&file) else { continue };
            status.bytes += metadata.len();
            let since = metadata.modified().unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH);
            status.changed = status.changed.max(since.ok().map(|since| since.as_secs()));
        }
        let mirror = self.current_index(source);
        status.by_like = mirror.as_ref().err().map(ToString::to_string);
        let Ok(probe) = Probe::of(path) else { return status };
        let index_dir = IndexDir::of(&self.config().index_folder(), probe.real());
        status.at_work = index_dir.activity();
        status.refreshed = index_dir.last();
        let stale = || index_dir.open(&index_dir.current()?).ok();
        if let Some(generation) = mirror.clone().ok().or_else(stale) {
            status.generation = Some(described(&generation, &index_dir, mirror.is_ok()));
        }
        self.count(&mut status, mirror.ok().as_deref(), stop);
        status
    }

    /// Counts what is in a source: by its index if that is current, else by reading, for so long.
    fn count(&self, status: &mut SourceStatus, index: Option<&Snapshot>, stop: &Stop) {
        let until = stop.within(PATIENCE);
        let counted = db::read(&status.database, &until, db::counts);
        match counted {
            Ok((conversations, messages)) => {
                status.conversations = Some(conversations);
                status.messages = Some(messages);
            }
            Err(db::Error::Stopped) => {}
            Err(error) => status.error = Some(error.to_string()),
        }
        let span = match index {
            Some(generation) => span(generation),
            None => db::read(&status.database, &until, db::span).ok().flatten(),
        };
        let iso = |end: Option<Instant>| end.and_then(crate::text::date::to_iso);
        status.first = iso(span.map(|(first, _)| first));
        status.last = iso(span.map(|(_, last)| last));
    }

    /// The databases in `db/` that are not searched.
    fn passed_over(&self, source: &Source) -> Vec<PathBuf> {
        if source.kind != SourceKind::Export || self.config().db.is_some() {
            return Vec::new();
        }
        let entries = fs::read_dir(self.config().db_folder()).into_iter().flatten().flatten();
        let mut others: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|name| name == "db"))
            .filter(|path| *path != source.path && path.is_file())
            .collect();
        others.sort();
        others
    }
}

fn described(generation: &Snapshot, index_dir: &IndexDir, current: bool) -> SnapshotStatus {
    let parts = generation.parts();
    let folders: Vec<&Path> = parts.iter().map(|part| part.folder).collect();
    let derived = ["words", "vectors"].into_iter().filter(|name| {
        let has = |folder: &&Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.any(|entry| entry.starts_with(name))
        };
        !folders.is_empty() && folders.iter().all(has)
    });
    SnapshotStatus {
        name: generation.name().to_owned(),
        folder: index_dir.folder().to_owned(),
        current,
        messages: generation.messages(),
        parts: generation.sizes(),
        text_bytes: generation.text_bytes(),
        bytes: folders.iter().map(|folder| size_of(folder)).sum(),
        derived: derived.map(str::to_owned).collect(),
    }
}

/// The times of the first message and of the last. Within a part the newest comes first, and those
/// without a time last.
fn span(generation: &Snapshot) -> Option<(Instant, Instant)> {
    let time = |doc_id: u32| generation.is_live(doc_id).then(|| generation.time(doc_id)).flatten();
    let of_part = |part: crate::index::SegmentRef<'_>| {
        let last = part.doc_ids.clone().find_map(time)?;
        Some((part.doc_ids.rev().find_map(time)?, last))
    };
    let spans = generation.parts().into_iter().filter_map(of_part);
    spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

/// The bytes of every file below a folder.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Returns the path with something after its name.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// How long ago a moment was that is given in seconds since 1970.
pub fn ago(moment: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(moment))
}
