//! The status: which sources there are, and whether their indexes are current.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, Serializer, ser::Error as _};

use crate::{
    config::{Config, StoreAddress},
    decisions::{forgotten::ForgottenId, list},
    error::Result,
    source::{FallbackReason, Scope, Source, SourceKind, Sources, size_of},
    upkeep::{encode::Encoded, maintainer, transcripts},
};
use verbatim_base::{
    call::Call,
    model::{Instant, Origin},
};
use verbatim_chats::{db, import::Export};
use verbatim_index::{Activity, IndexDir, Last, SegmentRef, Snapshot, TermIndex, Vectors};
use verbatim_text::{amount::grouped, date};

/// Time limit for counting a database without a current index.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The status of the home folder and all sources.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The home folder.
    pub home: PathBuf,
    /// The folder of the indexes.
    pub index: PathBuf,
    /// The sources whose databases exist.
    pub sources: Vec<SourceStatus>,
    /// The reason why there is no export, if there is none.
    pub missing: Option<String>,
    /// The working folder's `db/`, if the searched database is in it.
    pub local: Option<PathBuf>,
    /// The projects and folders that the user excludes.
    pub exclude: Vec<String>,
    /// The number of forgotten conversations, or why it is not known.
    #[serde(serialize_with = "as_number")]
    pub forgotten: Result<usize, String>,
    /// Exports in `db/` that are newer than the searched database and were not imported.
    pub not_imported: Vec<PathBuf>,
}

/// The status of a source.
#[derive(Clone, Debug, Serialize)]
pub struct SourceStatus {
    /// The kind of the source: `export`, `archive` or `threads`.
    pub source: &'static str,
    /// The place where the source is stored.
    pub database: StoreAddress,
    /// Other databases in `db/`, which are not searched. Empty if the user named the database.
    pub passed_over: Vec<PathBuf>,
    /// The size of the database and its write-ahead log, in bytes.
    pub bytes: u64,
    /// The time when the database was last written to, in seconds since 1970.
    #[serde(serialize_with = "as_iso")]
    pub changed: Option<u64>,
    /// The number of conversations of the source, if they could be counted in time.
    pub conversations: Option<u64>,
    /// The number of messages of the source, if they could be counted in time.
    pub messages: Option<u64>,
    /// The number of stored conversations whose transcript files are gone.
    pub kept: usize,
    /// The parts of transcripts that could not be read, one sentence each.
    #[serde(rename = "partly_read")]
    pub unread_parts: Vec<String>,
    /// The time of the first message, in ISO 8601.
    pub first: Option<String>,
    /// The time of the last message, in ISO 8601.
    pub last: Option<String>,
    /// The number of conversations in excluded projects and folders, which no answer shows; or why the
    /// number is not known.
    #[serde(serialize_with = "as_number")]
    pub excluded: Result<usize, String>,
    /// The reason why the database cannot be read, if it cannot.
    pub error: Option<String>,
    /// The index of the source, if there is one.
    pub generation: Option<SnapshotStatus>,
    /// The reason why `LIKE` answers and not the index; `None` if the index answers.
    #[serde(serialize_with = "as_text")]
    pub by_like: Option<FallbackReason>,
    /// The process that is refreshing the index now.
    #[serde(serialize_with = "with_iso")]
    pub at_work: Option<Activity>,
    /// The last build, refresh or merge of the index; `None` if there is no record of it.
    #[serde(serialize_with = "with_iso")]
    pub refreshed: Option<Last>,
}

fn as_text<S: Serializer>(
    reason: &Option<FallbackReason>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    reason.as_ref().map(ToString::to_string).serialize(serializer)
}

/// Serializes a time in seconds since 1970 as ISO 8601.
fn as_iso<S: Serializer>(time: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    let instant = time.map(|time| Instant { seconds: time.cast_signed(), nanos: 0 });
    instant.and_then(date::to_iso).serialize(serializer)
}

/// Serializes the times of a process's work as ISO 8601.
fn with_iso<S: Serializer>(
    work: &Option<impl Serialize>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut work = serde_json::to_value(work).map_err(S::Error::custom)?;
    for key in ["at", "since"] {
        if let Some(time) = work.get_mut(key) {
            *time =
                as_iso(&time.as_u64(), serde_json::value::Serializer).map_err(S::Error::custom)?;
        }
    }
    work.serialize(serializer)
}

/// Serializes an unknown number as null.
fn as_number<S: Serializer>(
    number: &Result<usize, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    number.as_ref().ok().serialize(serializer)
}

/// The index of a source.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotStatus {
    /// The name of the index's folder.
    pub name: String,
    pub folder: PathBuf,
    /// Whether the index holds the current state of the database.
    pub current: bool,
    pub messages: u32,
    /// For each segment, the number of its messages, and how many of them are deleted.
    pub parts: Vec<(u32, u32)>,
    pub text_bytes: u64,
    /// The size of the index's files, with terms and vectors, in bytes.
    pub bytes: u64,
    /// The additional files that all segments have: `words`, `vectors`.
    pub derived: Vec<String>,
    /// How far the sentence encoder has read the messages; `None` without an encoder.
    pub meaning: Option<MeaningStatus>,
}

/// How far the sentence encoder has read the messages of an index, and what its vectors count for.
#[derive(Clone, Debug, Serialize)]
pub struct MeaningStatus {
    /// The name of the encoder.
    pub model: &'static str,
    /// The number of messages whose vectors are made: the newest ones.
    pub made: u64,
    /// The number of all messages.
    pub total: u64,
    /// The share of vectors in ranked search, from 0 to 1, if the words of the best messages cover a question.
    pub vector_share: f64,
}

impl MeaningStatus {
    fn read(source: &Source, share: f32, call: &Call) -> Option<MeaningStatus> {
        let model = source.model().sentence_encoder()?.name();
        let Encoded { made, total } = source.encoded(call);
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
        let (made, total) = (grouped(self.made), grouped(self.total));
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
        generation: None,
        by_like: None,
        at_work: None,
        refreshed: None,
    };
    let Some(path) = source.database() else {
        count_by_reader(&mut status, source, call);
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
    let Ok(index_dir) = source.index_dir() else { return status };
    status.at_work = index_dir.activity();
    status.refreshed = index_dir.last();
    let is_current = current.is_ok();
    if let Some(snapshot) = current.ok().or_else(|| source.latest_index(call)) {
        let model = source.model().name();
        let mut generation = described(&snapshot, &index_dir, model, is_current);
        generation.meaning = MeaningStatus::read(source, share, call);
        status.generation = Some(generation);
    }
    count(&mut status, source, path, call);
    if source.kind == SourceKind::Archive {
        let said = transcripts::unread_parts(config, call);
        status.unread_parts = said.unwrap_or_else(|error| vec![error.to_string()]);
    }
    status
}

/// Returns the number of excluded conversations of a source, whether they are stored or not.
pub(crate) fn excluded(config: &Config, source: &Source, call: &Call) -> Result<usize> {
    if !source.may_exclude() {
        return Ok(0);
    }
    let stored = source.excluded(call)?.len();
    let forgotten: Vec<ForgottenId> = list::read(config)?;
    let not_stored = source.store().not_stored(source, call)?;
    let is_excluded = |id: &&String| !forgotten.iter().any(|known| known.id == **id);
    Ok(stored + not_stored.iter().filter(is_excluded).count())
}

/// Counts the conversations and messages of a source that is not in a database, with a time limit.
fn count_by_reader(status: &mut SourceStatus, source: &Source, call: &Call) {
    let in_time = call.within(MAX_WAIT);
    let reader = source.reader(&in_time);
    let counted = reader
        .count(&Scope::default(), &Instant::day, &in_time)
        .and_then(|counts| Ok((counts, reader.span(&in_time)?)));
    match counted {
        Ok((counts, span)) => {
            status.conversations = Some(counts.conversations.len() as u64);
            status.messages = Some(counts.conversations.values().sum());
            let iso = |end: Option<Instant>| end.and_then(date::to_iso);
            status.first = iso(span.map(|(first, _)| first));
            status.last = iso(span.map(|(_, last)| last));
        }
        Err(error) if error.is_stopped() => {}
        Err(error) => status.error = Some(error.to_string()),
    }
}

/// Counts the conversations and messages of a source, for a limited time.
fn count(status: &mut SourceStatus, source: &Source, path: &Path, call: &Call) {
    let in_time = call.within(MAX_WAIT);
    match source.fact("counts", &in_time, || Ok(db::read(path, &in_time, db::counts)?)) {
        Ok((conversations, messages)) => {
            status.conversations = Some(conversations);
            status.messages = Some(messages);
        }
        Err(error) if error.is_stopped() => {}
        Err(error) => status.error = Some(error.to_string()),
    }
    let has_origins = source.kind.has_origins();
    let origins = has_origins.then(|| db::read_tables(path, &in_time, db::origins).ok()).flatten();
    let is_kept = |origin: &&Origin| origin.gone.is_some();
    status.kept = origins.map_or(0, |origins| origins.values().filter(is_kept).count());
    // Like the counts, the span includes messages that answers leave out.
    let span = source.whole_reader(&in_time).span(&in_time).ok().flatten();
    let iso = |end: Option<Instant>| end.and_then(date::to_iso);
    status.first = iso(span.map(|(first, _)| first));
    status.last = iso(span.map(|(_, last)| last));
}

fn described(
    snapshot: &Snapshot,
    index_dir: &IndexDir,
    model: &str,
    current: bool,
) -> SnapshotStatus {
    let segments = snapshot.segments();
    let has_terms = |segment: &SegmentRef<'_>| {
        TermIndex::open(segment.folder, segment.doc_ids.len() as u32).is_ok()
    };
    let has_vectors = |segment: &SegmentRef<'_>| {
        Vectors::open(segment.folder, model, segment.doc_ids.len() as u32).is_some()
    };
    let mut derived = Vec::new();
    if !segments.is_empty() && segments.iter().all(has_terms) {
        derived.push("words".to_owned());
    }
    if !segments.is_empty() && segments.iter().all(has_vectors) {
        derived.push("vectors".to_owned());
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

/// Returns the time since `moment`, which is in seconds since 1970.
pub fn ago(moment: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(moment))
}
