//! The status: which sources there are, and whether their indexes are current.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use std::{fmt, fs};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{
    config::{Config, StoreAddress},
    decisions::{forgotten::ForgottenId, list},
    error::{Error, Result},
    source::{FallbackReason, Scope, Source, SourceKind, Sources, size_of},
    upkeep::{encode::Encoded, maintainer, transcripts},
};
use verbatim_base::{call::Call, files, model::Instant};
use verbatim_chats::{db, import::Export};
use verbatim_index::{Activity, IndexDir, Last, Snapshot, TermIndex, Vectors};
use verbatim_text::{amount::grouped, date};

/// Time limit for counting a database without a current index.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The status of the home folder and all sources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// The home folder.
    pub home: PathBuf,
    /// The index folder.
    pub index: PathBuf,
    /// The working folder's `db/`, if the searched database is in it.
    pub local: Option<PathBuf>,
    /// Why there is no export, if there is none.
    pub missing: Option<String>,
    /// The projects and folders that are left out.
    pub exclude: Vec<String>,
    /// Conversations in the list of forgotten ones; null if it cannot be read.
    #[serde(serialize_with = "as_number")]
    #[schemars(with = "Option<usize>")]
    pub forgotten: Result<usize, String>,
    /// Exports in `db/` that were not imported.
    pub not_imported: Vec<PathBuf>,
    /// The databases that are searched.
    pub sources: Vec<SourceStatus>,
}

/// The status of a source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceStatus {
    /// `export`, `archive` or `threads`.
    pub source: &'static str,
    /// Its path.
    #[schemars(with = "String")]
    pub database: StoreAddress,
    /// Other databases in its folder, which are not searched.
    pub passed_over: Vec<PathBuf>,
    /// The size of the database.
    pub bytes: u64,
    /// When it was last written to.
    #[serde(serialize_with = "as_iso")]
    #[schemars(with = "Option<String>")]
    pub changed: Option<u64>,
    /// Null if counting takes too long.
    pub conversations: Option<u64>,
    /// Null if counting takes too long.
    pub messages: Option<u64>,
    /// Conversations whose transcripts are gone, or in folders that are not followed.
    pub kept: usize,
    /// What could not be read of the transcripts, a sentence each.
    #[serde(rename = "partly_read")]
    pub unread_parts: Vec<String>,
    /// Conversations that `exclude` leaves out; null if they cannot be counted.
    #[serde(serialize_with = "as_number")]
    #[schemars(with = "Option<usize>")]
    pub excluded: Result<usize, String>,
    /// The time of the first message.
    pub first: Option<String>,
    /// The time of the last message.
    pub last: Option<String>,
    /// Why the database cannot be read.
    pub error: Option<String>,
    /// What helps if the database cannot be read.
    #[serde(skip)]
    pub mend: Option<&'static str>,
    /// Why SQLite answers and not the index; null if the index does.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "Option<String>")]
    pub by_like: Option<FallbackReason>,
    /// The index.
    pub generation: Option<SnapshotStatus>,
    /// The last refresh of the index.
    pub refreshed: Option<RefreshStatus>,
    /// The process that is refreshing the index now.
    pub at_work: Option<ActivityStatus>,
}

/// The last build, refresh or merge of an index. Times are in seconds since 1970.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefreshStatus {
    /// When.
    #[serde(serialize_with = "as_iso")]
    #[schemars(with = "Option<String>")]
    pub at: u64,
    /// `built`, `refreshed` or `merged`.
    pub what: String,
    /// Seconds.
    pub took: f64,
    /// Seconds of CPU time.
    pub cpu: Option<f64>,
    /// Messages that were read.
    pub messages: u64,
}

/// The process that is refreshing an index.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivityStatus {
    /// Its id; 0 if that is not known.
    pub process: u32,
    /// Since when.
    #[serde(serialize_with = "as_iso")]
    #[schemars(with = "Option<String>")]
    pub since: u64,
}

fn as_text<S: Serializer>(
    reason: &Option<FallbackReason>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    reason.as_ref().map(ToString::to_string).serialize(serializer)
}

/// Serializes a time in seconds since 1970 as ISO 8601.
fn as_iso<S: Serializer>(
    time: &(impl Copy + Into<Option<u64>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let instant = (*time).into().map(|time| Instant { seconds: time.cast_signed(), nanos: 0 });
    instant.and_then(date::to_iso).serialize(serializer)
}

/// Serializes an unknown number as null.
fn as_number<S: Serializer>(
    number: &Result<usize, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    number.as_ref().ok().serialize(serializer)
}

/// The index of a source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SnapshotStatus {
    /// The name of its folder.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// Whether it holds the current state of the database.
    pub current: bool,
    /// Messages in it.
    pub messages: u32,
    /// For each part how many messages it holds, and how many of them are gone.
    pub parts: Vec<(u32, u32)>,
    /// Bytes of text in it.
    pub text_bytes: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// What it has for questions: `words`, `vectors`.
    pub derived: Vec<String>,
    /// How far the sentence model has read the messages; null without this model.
    pub meaning: Option<MeaningStatus>,
}

/// How far the sentence encoder has read the messages of an index, and what its vectors count for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeaningStatus {
    /// The name of the model.
    pub model: &'static str,
    /// Messages whose vectors are made, the newest ones.
    pub made: u64,
    /// All messages in the index.
    pub total: u64,
    /// The share of vectors in ranked search, from 0 to 1.
    pub vector_share: f64,
}

impl MeaningStatus {
    fn read(source: &Source, share: f32, call: &Call) -> Option<MeaningStatus> {
        let model = source.model().sentence_encoder()?.name();
        let Encoded { made, total } = source.visible_encoded(call);
        let vector_share = (f64::from(share) * 100.0).round() / 100.0;
        Some(MeaningStatus { model, made, total, vector_share })
    }

    /// Returns whether all vectors are made.
    pub fn is_complete(&self) -> bool {
        self.made >= self.total
    }
}

impl fmt::Display for MeaningStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100 * self.made / self.total.max(1);
        let made = grouped(self.made);
        let total = grouped(self.total);
        write!(f, "{made} of {total} messages ({percent} %), the newest first")
    }
}

/// Returns the status. It takes milliseconds if the indexes are current.
pub fn status(sources: &Sources, call: &Call) -> Status {
    let config = &*sources.current_config();
    let present = sources.present();
    Status {
        home: config.home.clone(),
        index: config.index_folder(),
        exclude: config.exclude.clone(),
        forgotten: list::read::<ForgottenId>(config)
            .map(|list| list.len())
            .map_err(|error| error.to_string()),
        local: config.local_folder().map(Path::to_owned),
        missing: config.export_store().err().map(|error| error.to_string()),
        not_imported: maintainer::unimported(config, &present)
            .filter(|path| Export::open_outer(path).is_ok())
            .collect(),
        sources: present
            .iter()
            .map(|source| status_of(config, source, sources.vector_share(), call))
            .collect(),
    }
}

fn status_of(config: &Config, source: &Source, share: f32, call: &Call) -> SourceStatus {
    let mut status = SourceStatus {
        source: source.kind.name(),
        database: source.address(),
        passed_over: match source.kind {
            SourceKind::Export => config.passed_over().into_iter().map(|(path, _)| path).collect(),
            _ => Vec::new(),
        },
        bytes: 0,
        changed: None,
        conversations: None,
        messages: None,
        kept: 0,
        unread_parts: Vec::new(),
        first: None,
        last: None,
        excluded: excluded(config, source, call).map_err(|error| error.to_string()),
        error: None,
        mend: None,
        generation: None,
        by_like: None,
        at_work: None,
        refreshed: None,
    };
    let Some(path) = source.database() else {
        count(&mut status, source, call);
        return status;
    };
    for file in [path.to_owned(), db::beside(path, "-wal")] {
        let Ok(metadata) = fs::metadata(&file) else { continue };
        status.bytes += metadata.len();
        let since = metadata.modified().unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH);
        status.changed = status.changed.max(since.ok().map(|since| since.as_secs()));
    }
    let current = source.current_index(call);
    status.by_like = current.as_ref().err().cloned();
    let index_dir = match source.index_dir() {
        Ok(index_dir) => index_dir,
        Err(error) => {
            status.mend = Some(mend_of(&error, source.kind, path));
            status.error = Some(error.to_string());
            return status;
        }
    };
    status.at_work =
        index_dir.activity().map(|Activity { process, since }| ActivityStatus { process, since });
    status.refreshed = index_dir.last().map(|Last { at, what, took, cpu, messages }| {
        RefreshStatus { at, what, took, cpu, messages }
    });
    let is_current = current.is_ok();
    if let Some(snapshot) = current.ok().or_else(|| source.latest_index(call)) {
        let model = source.model().name();
        let mut generation = described(&snapshot, &index_dir, model, is_current);
        generation.meaning = MeaningStatus::read(source, share, call);
        status.generation = Some(generation);
    }
    count(&mut status, source, call);
    if source.kind == SourceKind::Archive {
        let origins = db::read_tables(path, &call.within(MAX_WAIT), db::origins);
        let roots = config.archive_roots();
        status.kept = origins.map_or(0, |origins| {
            let kept = origins.values().filter(|origin| {
                let file = origin.file.as_deref().map(Path::new);
                origin.gone.is_some()
                    || file.is_some_and(|file| !roots.iter().any(|root| file.starts_with(root)))
            });
            kept.count()
        });
        let parts = transcripts::unread_parts(config, call);
        status.unread_parts = parts.unwrap_or_else(|error| vec![error.to_string()]);
    }
    status
}

/// Returns the number of excluded conversations of a source, whether they are stored or not.
fn excluded(config: &Config, source: &Source, call: &Call) -> Result<usize> {
    if !source.may_exclude() {
        return Ok(0);
    }
    let stored = source.excluded(call)?.len();
    let forgotten: Vec<ForgottenId> = list::read(config)?;
    let mut not_stored = source.store().not_stored(source, call)?;
    not_stored.retain(|id| !forgotten.iter().any(|known| known.id == *id));
    Ok(stored + not_stored.len())
}

/// Counts the conversations and messages of a source, for a limited time.
fn count(status: &mut SourceStatus, source: &Source, call: &Call) {
    let in_time = call.within(MAX_WAIT);
    // Like the counts of a database, the span includes messages that answers leave out.
    let reader = match source.database() {
        Some(_) => source.whole_reader(&in_time),
        None => source.reader(&in_time),
    };
    let counted = match source.database() {
        Some(path) => source.fact("counts", &in_time, || Ok(db::read(path, &in_time, db::counts)?)),
        None => reader
            .count(&Scope::default(), &Instant::day, &in_time)
            .map(|counts| (counts.conversations.len() as u64, counts.conversations.values().sum())),
    };
    match counted {
        Ok((conversations, messages)) => {
            status.conversations = Some(conversations);
            status.messages = Some(messages);
        }
        Err(error) if error.is_stopped() => {}
        Err(error) => {
            if let (Error::Db(error), Some(path)) = (&error, source.database()) {
                status.mend = Some(mend_of(error, source.kind, path));
            }
            status.error = Some(error.to_string());
        }
    }
    if let Some((first, last)) = reader.span(&in_time).ok().flatten() {
        status.first = date::to_iso(first);
        status.last = date::to_iso(last);
    }
}

/// Returns what helps if a database cannot be read.
pub(super) fn mend_of(error: &db::Error, kind: SourceKind, path: &Path) -> &'static str {
    match error {
        db::Error::Io { source, .. } if files::is_no_file(source) => {
            "put the file back in its place, or move what is there away to begin a new one"
        }
        db::Error::NotADatabase { .. } | db::Error::NotCanonical { .. }
            if kind != SourceKind::Export =>
        {
            restored(kind)
        }
        db::Error::NotADatabase { .. } if !db::is_whole(path) => {
            "wait until it is copied, or copy it again"
        }
        db::Error::NotADatabase { .. } | db::Error::NotCanonical { .. } => {
            "verbatim import EXPORT, or name another database with --db"
        }
        db::Error::Io { .. } => "let your user read the file and its folder",
        db::Error::Busy { .. } | db::Error::Unsteady { .. } => "try again later",
        _ => restored(kind),
    }
}

/// Returns what helps if a database is damaged.
pub(super) fn restored(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Export => {
            "restore it from a backup, or import your exports into a new database"
        }
        SourceKind::Archive => {
            "restore it from a backup, or move it away; then the transcripts that are there are read again"
        }
        SourceKind::Threads => "restore it from a backup, or move it away to begin a new one",
    }
}

fn described(
    snapshot: &Snapshot,
    index_dir: &IndexDir,
    model: &str,
    current: bool,
) -> SnapshotStatus {
    let segments = snapshot.segments();
    let mut derived = Vec::new();
    if !segments.is_empty() {
        if segments
            .iter()
            .all(|part| TermIndex::open(part.folder, part.doc_ids.len() as u32).is_ok())
        {
            derived.push("words".to_owned());
        }
        if segments
            .iter()
            .all(|part| Vectors::open(part.folder, model, part.doc_ids.len() as u32).is_some())
        {
            derived.push("vectors".to_owned());
        }
    }
    SnapshotStatus {
        name: snapshot.name().to_owned(),
        folder: index_dir.folder().to_owned(),
        current,
        messages: snapshot.messages(),
        parts: snapshot.sizes(),
        text_bytes: snapshot.text_bytes(),
        bytes: segments.iter().map(|segment| size_of(segment.folder)).sum(),
        derived,
        meaning: None,
    }
}

/// Returns the number of messages in a source's index, and its size in bytes with terms and vectors.
pub fn indexed(source: &Source, call: &Call) -> (u64, u64) {
    source.store().indexed(source, call)
}

/// Returns the name of the model that searches of a source ask, and the number of messages in its index
/// that have a vector of this model. A message of which the model knows no word has none.
pub fn embedded<'a>(source: &'a Source, call: &Call) -> (&'a str, u64) {
    (source.model().name(), source.store().embedded(source, call))
}
