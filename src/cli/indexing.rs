//! Indexing with a progress line, and its report.

use std::{
    cell::OnceCell,
    io::{self, Write},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use super::{
    archives,
    arguments::parse_size,
    environment::Environment,
    output::{complain, grouped},
    progress::{Step, bytes, duration},
    settings_file,
};
use verbatim_base::{lock::lock, model::Stop};
use verbatim_engine::{
    self as engine, Completing, Encoded, Engine, EnrichOptions, EnrichProgress, EnrichStage,
    Enriched, Error as EngineError, MAX_IN_PASSING, Mode, Progress, Question, Reindex, Reindexed,
    Resources, Source, SourceKind,
};

/// The shares of the indexing time after which the messages are sorted, read, and written to the
/// index. The rest of the time is for the files of ranked search.
const SORTED: f64 = 0.2;
const READ: f64 = 0.4;
const WRITTEN: f64 = 0.45;

const MEMORY: usize = 1 << 30;

/// How long an import waits for another process that builds the same index, and the pause between two tries.
const MOST_WAITING: Duration = Duration::from_secs(120);
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The number of messages whose vectors by the sentence encoder an import makes before it ends.
pub(super) const MOST_ENCODED: u64 = 2_000;

/// How long to try again while other programs change the database during each attempt.
const MOST_CHANGING: Duration = Duration::from_secs(20);

/// Returns what indexing may use, as the configuration file says.
pub(super) fn resources(environment: &Environment) -> Resources {
    let memory = environment.setting(&settings_file::MEMORY).text();
    let memory = memory.and_then(|text| parse_size(&text).ok());
    let threads = environment.setting(&settings_file::THREADS).text();
    let threads = threads.and_then(|text| text.parse().ok());
    let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    Resources { memory: memory.unwrap_or(MEMORY), threads }
}

#[derive(Debug)]
pub(super) struct Indexed {
    kind: SourceKind,
    messages: u64,
    result: Reindexed,
    enriched: Enriched,
    took: Duration,
    /// The size of the index in bytes, including words and vectors.
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct AllIndexed {
    /// Whether the database has an index.
    pub(super) has_export: bool,
    pub(super) failed: Option<EngineError>,
    pub(super) meaning: Encoded,
}

/// Indexes every source with the default limits, for an import. Leaves the vectors of the sentence encoder to
/// others if it would take long to make them.
pub(super) fn index_all(engine: &Engine, environment: &Environment, stop: &Stop) -> AllIndexed {
    archives::sync(engine, environment, stop);
    let options = Reindex { resources: resources(environment), full: false };
    let mut has_export = false;
    let mut failed = None;
    for source in engine.sources() {
        match index_in_turn(&source, options, environment, stop) {
            Ok((_, failure)) => {
                failed = failed.or(failure);
                has_export |= source.kind == SourceKind::Export;
            }
            // The agents, and a server that follows them, write all the time. The server indexes it too.
            Err(error) if source.kind == SourceKind::Archive && error.is_contention() => {
                complain(
                    "coding agents write right now, so their newest messages are not indexed yet; \
                     searches find them all the same",
                );
            }
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    let meaning = meaning(engine, stop);
    if failed.is_some() || meaning.missing() > MOST_ENCODED || stop.requested() {
        return AllIndexed { has_export, failed, meaning };
    }
    for source in engine.sources() {
        if let Err(error) = encode(&source, options.resources.threads, environment, stop) {
            failed = failed.or(Some(error));
        }
    }
    AllIndexed { has_export, failed, meaning: self::meaning(engine, stop) }
}

fn meaning(engine: &Engine, stop: &Stop) -> Encoded {
    engine.sources().iter().fold(Encoded::default(), |sum, source| {
        let Encoded { made, total } = source.encoded(stop);
        Encoded { made: sum.made + made, total: sum.total + total }
    })
}

/// Makes the vectors by the sentence encoder that messages of a source lack, with a progress line. All
/// searches work without them.
pub(super) fn encode(
    source: &Source,
    threads: usize,
    environment: &Environment,
    stop: &Stop,
) -> Result<(), EngineError> {
    let first = source.encoded(stop).made;
    let what = kind_of_messages(source.kind);
    // The progress bar begins only if something is missing.
    let step = Mutex::new(None);
    let made = source.encode(threads, stop, &|now: Encoded| {
        let mut step = lock(&step);
        let step = step.get_or_insert_with(|| Step::begin(environment, "Indexing"));
        let (done, all) = (now.made.saturating_sub(first), now.total.saturating_sub(first));
        let (made, total) = (grouped(now.made), grouped(now.total));
        let text = format!("meaning: {made} of {total} {what}, the newest first");
        step.show(done as f64 / all.max(1) as f64, &text);
    });
    match (step.into_inner().ok().flatten(), &made) {
        (Some(step), Ok(made)) => step.finish(&format!("meaning: {} {what}", grouped(*made))),
        (Some(step), Err(_)) => step.clear(),
        (None, _) => {}
    }
    made.map(drop)
}

/// Does the same as [`index_when_steady`]. If another process builds the same index, such as the server of an
/// AI client, waits for its end.
fn index_in_turn(
    source: &Source,
    options: Reindex,
    environment: &Environment,
    stop: &Stop,
) -> Result<(Indexed, Option<EngineError>), EngineError> {
    let mut is_told = false;
    let is_built_elsewhere = |error: &EngineError| {
        let is_built_elsewhere = matches!(error, EngineError::Indexing { .. });
        if is_built_elsewhere && !std::mem::replace(&mut is_told, true) {
            complain("waiting for another process that builds the same index");
        }
        is_built_elsewhere
    };
    let attempt = || index_when_steady(source, options, environment, stop);
    tried_again(MOST_WAITING, stop, is_built_elsewhere, attempt)
}

/// Does the same as [`index`]. If other programs change the database during the attempt, tries again.
pub(super) fn index_when_steady(
    source: &Source,
    options: Reindex,
    environment: &Environment,
    stop: &Stop,
) -> Result<(Indexed, Option<EngineError>), EngineError> {
    let attempt = || index(source, options, environment, stop);
    tried_again(MOST_CHANGING, stop, EngineError::is_contention, attempt)
}

/// Repeats an attempt for a time, as long as its error passes.
fn tried_again<T>(
    most: Duration,
    stop: &Stop,
    mut passes: impl FnMut(&EngineError) -> bool,
    mut attempt: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if begun.elapsed() < most && !stop.requested() && passes(&error) => {
                thread::sleep(RETRY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// Indexes the transcripts before an exact search, if the search needs it and it takes only seconds. A
/// terminal shows a progress bar. Without the index the search finds the same, so an error is not reported.
pub(super) fn index_in_passing(engine: &Engine, environment: &Environment) {
    let resources = resources(environment);
    let step = OnceCell::new();
    let mut messages = 0;
    let what = kind_of_messages(SourceKind::Archive);
    drop(engine.upkeep().index_transcripts_in_passing(resources, &Stop::never(), &mut |now| {
        let step = step.get_or_init(|| Step::begin(environment, "Indexing"));
        show(step, now, what, &mut messages);
    }));
    if let Some(step) = step.into_inner() {
        step.clear();
    }
}

/// Makes the missing files that ranking the sources of a question needs. A terminal shows a progress bar.
/// Errors are reported later, with the answer.
pub(super) fn complete(engine: &Engine, question: &Question, environment: &Environment) {
    let resources = resources(environment);
    let kinds = &question.scope.sources;
    let is_asked = |source: &Source| kinds.is_empty() || kinds.contains(&source.kind);
    for source in engine.sources().into_iter().filter(is_asked) {
        // The progress bar begins only if something is missing.
        let mut step = None;
        let (mut messages, mut done_before) = (0, 0.0);
        let what = kind_of_messages(source.kind);
        let mut show = |progress: Completing| {
            let step = step.get_or_insert_with(|| Step::begin(environment, "Indexing"));
            match progress {
                Completing::Index(progress) => {
                    done_before = WRITTEN;
                    show(step, progress, what, &mut messages);
                }
                Completing::Ranking(progress) => show_ranking(step, progress, done_before),
            }
        };
        let stop = Stop::never();
        drop(engine.upkeep().complete(&source, resources, &stop, &mut show));
        if question.mode != Mode::Text && source.encoded(&stop).missing() <= MAX_IN_PASSING {
            drop(source.encode(resources.threads, &stop, &|_| ()));
        }
        if let Some(step) = step {
            step.clear();
        }
    }
}

/// Builds the index of a source, with its words and vectors. An error of words or vectors is
/// returned together with the result, because exact search does not need them.
fn index(
    source: &Source,
    options: Reindex,
    environment: &Environment,
    stop: &Stop,
) -> Result<(Indexed, Option<EngineError>), EngineError> {
    let begun = Instant::now();
    let step = Step::begin(environment, "Indexing");
    let what = kind_of_messages(source.kind);
    let mut total = 0;
    let result = source.reindex(options, stop, &mut |progress| {
        show(&step, progress, what, &mut total);
    })?;
    let mut show = |progress| show_ranking(&step, progress, WRITTEN);
    let all = EnrichOptions::all(options.resources);
    let enriched = engine::enrich(source, all, stop, &mut show);
    let (enriched, failed) = match enriched {
        Ok(enriched) => (enriched, None),
        Err(error) if error.is_stopped() => return Err(error),
        Err(error) => (Enriched::default(), Some(error)),
    };
    let (messages, bytes) = engine::indexed(source, stop);
    step.finish(&format!("{} {what}", grouped(messages)));
    let took = begun.elapsed();
    Ok((Indexed { kind: source.kind, messages, result, enriched, took, bytes }, failed))
}

fn kind_of_messages(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Export => "messages",
        SourceKind::Archive => "messages of coding agents",
        SourceKind::Threads => "messages of threads",
    }
}

/// Shows the progress of the files of ranked search. `before` is the share of the work before this step.
fn show_ranking(step: &Step, progress: EnrichProgress, before: f64) {
    let stage = match progress.stage {
        EnrichStage::Words => "words",
        EnrichStage::Vectors => "vectors",
        EnrichStage::Groups => "groups of vectors",
    };
    let (done, total) = (grouped(progress.done), grouped(progress.total));
    let text = format!("{stage}: {done} of {total} messages");
    step.show(before + (1.0 - before) * progress.share(), &text);
}

fn show(step: &Step, progress: Progress, what: &str, messages: &mut u64) {
    match progress {
        Progress::Comparing => step.show(0.0, "looking for changes"),
        Progress::Ordering { done, total } => {
            let share = done as f64 / total.max(1) as f64;
            let text = format!("sorting: {} of {} {what}", grouped(done), grouped(total));
            step.show(SORTED * share, if total == 0 { "sorting" } else { &text });
        }
        Progress::Reading { done, total, .. } => {
            *messages = total;
            let share = done as f64 / total.max(1) as f64;
            let text = format!("{} of {} {what}", grouped(done), grouped(total));
            step.show(SORTED + (READ - SORTED) * share, &text);
        }
        Progress::Writing(share) => {
            let text = format!("{} {what}", grouped(*messages));
            step.show(READ + (WRITTEN - READ) * share, &text);
        }
    }
}

/// Writes a line about an index.
pub(super) fn write_result(indexed: &Indexed, out: &mut dyn Write) -> io::Result<()> {
    let Indexed { kind, messages, result, enriched, took, .. } = indexed;
    let count = format!("{} {}", grouped(*messages), kind_of_messages(*kind));
    let took = duration(*took);
    match result {
        Reindexed::Current { .. } if *enriched == Enriched::default() => {
            writeln!(out, "the index is up to date: {count}")
        }
        Reindexed::Current { .. } => {
            writeln!(out, "{count} indexed for questions in {took}")
        }
        Reindexed::Refreshed { added, removed, .. } => {
            let gone = match removed {
                0 => String::new(),
                removed => format!(", {} removed or replaced", grouped(*removed)),
            };
            let added = grouped(*added);
            writeln!(out, "index updated in {took}: {added} messages added{gone}, {count} in all")
        }
        // For a cluster, the size of the index is not known here and is 0.
        Reindexed::Built { .. } if indexed.bytes == 0 => {
            writeln!(out, "{count} indexed in {took}")
        }
        Reindexed::Built { .. } => writeln!(
            out,
            "{count} indexed in {took}; searches are instant now ({})",
            bytes(indexed.bytes)
        ),
    }
}
