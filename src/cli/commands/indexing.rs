//! Indexing with progress lines, and its report.

use std::cell::RefCell;
use std::io::{self, Write};
use std::thread;

use super::background;
use crate::cli::settings::engine_config::PlaceArgs;
use crate::cli::settings::environment::Environment;
use crate::cli::settings::settings_file;
use crate::cli::settings::values::parse_size;
use crate::cli::terminal::output::{complain, grouped};
use crate::cli::terminal::progress::{Step, bytes, duration};
use verbatim_base::call::Call;
use verbatim_engine::{
    ArchiveReport, Completing, Encoded, Engine, EnrichProgress, EnrichStage, Enriched,
    Error as EngineError, IndexStep, Indexed, MAX_IN_PASSING, Mode, Progress, Question, Reindexed,
    Resources, SourceKind,
};

/// The shares of the indexing time after which the messages are sorted, read, and written to the
/// index. The rest of the time is for the files of ranked search.
const SORTED: f64 = 0.2;
const READ: f64 = 0.4;
const WRITTEN: f64 = 0.45;

const MEMORY: usize = 1 << 30;

/// Returns what indexing may use, as the configuration file says.
pub(super) fn resources(environment: &Environment) -> Resources {
    let memory = environment.setting(&settings_file::MEMORY).text();
    let memory = memory.and_then(|text| parse_size(&text).ok());
    let threads = environment.setting(&settings_file::THREADS).text();
    let threads = threads.and_then(|text| text.parse().ok());
    let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    Resources { memory: memory.unwrap_or(MEMORY), threads }
}

/// Indexes before an exact search what needs it and takes only seconds. A terminal shows a progress bar. Without
/// the index the search finds the same, so an error is not reported.
pub(crate) fn index_in_passing(engine: &Engine, environment: &Environment) {
    let lines = IndexLines::new(environment);
    let resources = resources(environment);
    drop(engine.upkeep().index_in_passing(resources, &Call::default(), &mut |kind, now| {
        lines.show(&IndexStep::Building(kind, Completing::Index(now)));
    }));
}

/// Makes the missing files that ranking the sources of a question needs. A terminal shows a progress bar.
/// Errors are reported later, with the answer. What takes long is left to a process in the background.
pub(crate) fn complete(
    engine: &Engine,
    question: &Question,
    places: &PlaceArgs,
    environment: &Environment,
) {
    let resources = resources(environment);
    let kinds = &question.scope.sources;
    let mut is_left = false;
    for source in engine.sources() {
        if !kinds.is_empty() && !kinds.contains(&source.kind) {
            continue;
        }
        let lines = IndexLines::new(environment);
        let call = Call::default();
        drop(engine.upkeep().complete(&source, resources, &call, &mut |now| {
            lines.show(&IndexStep::Building(source.kind, now));
        }));
        if question.mode == Mode::Text {
            continue;
        }
        if source.encoded(&call).missing() <= MAX_IN_PASSING {
            drop(source.encode(resources.threads, &call, &|_| ()));
        } else {
            is_left |= !source.is_being_encoded(&call);
        }
    }
    if is_left {
        background::reindex(places.db.as_deref(), places, environment);
    }
}

/// The progress line of indexing on a terminal. Each work has a line of its own, which begins when something is to
/// be done; a line that is not finished is removed.
pub(super) struct IndexLines<'a> {
    environment: &'a Environment,
    line: RefCell<Option<IndexLine>>,
}

#[derive(Clone, Copy, PartialEq)]
enum LineOf {
    Transcripts,
    Index(SourceKind),
    Vectors(SourceKind),
}

struct IndexLine {
    of: LineOf,
    step: Step,
    /// The number of messages that were read for the index.
    messages: u64,
    /// The share of the work that the index of texts took, and not the files of ranked search.
    before: f64,
    /// The number of vectors that were made before.
    first: Option<u64>,
}

impl IndexLines<'_> {
    pub(super) fn new(environment: &Environment) -> IndexLines<'_> {
        IndexLines { environment, line: RefCell::default() }
    }

    pub(super) fn show(&self, step: &IndexStep<'_>) {
        match step {
            IndexStep::Transcripts(now) => self.draw(LineOf::Transcripts, |line| {
                let share = now.done as f64 / now.total.max(1) as f64;
                line.step.show(share, &format!("{} of {}", bytes(now.done), bytes(now.total)));
            }),
            IndexStep::TranscriptsRead(read) => {
                self.clear();
                complain_of_transcripts(read);
            }
            IndexStep::Waiting => {
                self.clear();
                complain("waiting for another process that builds the same index");
            }
            IndexStep::Unsteady => {
                self.clear();
                complain(
                    "coding agents write right now, so their newest messages are not indexed yet; \
                     searches find them all the same",
                );
            }
            IndexStep::Building(kind, now) => {
                let what = kind_of_messages(*kind);
                self.draw(LineOf::Index(*kind), |line| match now {
                    Completing::Index(now) => line.show_index(*now, what),
                    Completing::Ranking(now) => line.show_ranking(*now),
                });
            }
            IndexStep::Indexed(one) => {
                self.draw(LineOf::Index(one.kind), |_| ());
                self.finish(&format!("{} {}", grouped(one.messages), kind_of_messages(one.kind)));
            }
            IndexStep::Encoding(kind, now) => {
                let what = kind_of_messages(*kind);
                self.draw(LineOf::Vectors(*kind), |line| line.show_vectors(*now, what));
            }
            IndexStep::VectorsMade(kind, made) => {
                self.finish(&format!("meaning: {} {}", grouped(*made), kind_of_messages(*kind)));
            }
            IndexStep::Searchable | IndexStep::VectorsElsewhere => self.clear(),
        }
    }

    fn draw(&self, of: LineOf, show: impl FnOnce(&mut IndexLine)) {
        let mut line = self.line.borrow_mut();
        if line.as_ref().is_none_or(|line| line.of != of) {
            // The earlier line must be gone before another one begins.
            drop(line.take());
            let name = if of == LineOf::Transcripts { "Transcripts" } else { "Indexing" };
            let step = Step::begin(self.environment, name);
            *line = Some(IndexLine { of, step, messages: 0, before: 0.0, first: None });
        }
        line.as_mut().map(show);
    }

    /// Ends the line, if there is one, and leaves it on the terminal.
    fn finish(&self, text: &str) {
        if let Some(line) = self.line.take() {
            line.step.finish(text);
        }
    }

    pub(super) fn clear(&self) {
        if let Some(line) = self.line.take() {
            line.step.clear();
        }
    }
}

impl IndexLine {
    fn show_index(&mut self, progress: Progress, what: &str) {
        self.before = WRITTEN;
        match progress {
            Progress::Comparing => self.step.show(0.0, "looking for changes"),
            Progress::Ordering { done, total } => {
                let share = done as f64 / total.max(1) as f64;
                let text = format!("sorting: {} of {} {what}", grouped(done), grouped(total));
                self.step.show(SORTED * share, if total == 0 { "sorting" } else { &text });
            }
            Progress::Reading { done, total, .. } => {
                self.messages = total;
                let share = done as f64 / total.max(1) as f64;
                let text = format!("{} of {} {what}", grouped(done), grouped(total));
                self.step.show(SORTED + (READ - SORTED) * share, &text);
            }
            Progress::Writing(share) => {
                let text = format!("{} {what}", grouped(self.messages));
                self.step.show(READ + (WRITTEN - READ) * share, &text);
            }
        }
    }

    fn show_ranking(&self, progress: EnrichProgress) {
        let stage = match progress.stage {
            EnrichStage::Words => "words",
            EnrichStage::Vectors => "vectors",
            EnrichStage::Groups => "groups of vectors",
        };
        let total = grouped(progress.total);
        let text = format!("{stage}: {} of {total} messages", grouped(progress.done));
        self.step.show(self.before + (1.0 - self.before) * progress.share(), &text);
    }

    fn show_vectors(&mut self, now: Encoded, what: &str) {
        let first = *self.first.get_or_insert(now.made);
        let done = now.made.saturating_sub(first);
        let all = now.total.saturating_sub(first);
        let total = grouped(now.total);
        let text = format!("meaning: {} of {total} {what}, the newest first", grouped(now.made));
        self.step.show(done as f64 / all.max(1) as f64, &text);
    }
}

/// Reports what could not be read of the transcripts. The command itself reports that it was stopped.
fn complain_of_transcripts(read: &Result<ArchiveReport, EngineError>) {
    match read {
        Ok(report) => {
            for failure in &report.failures {
                complain(failure);
            }
            let unnamed = report.failed - report.failures.len() as u64;
            if unnamed > 0 {
                complain(&format!("and {unnamed} more cannot be read"));
            }
        }
        Err(error) if error.is_stopped() => {}
        Err(error) => complain(&error.to_string()),
    }
}

fn kind_of_messages(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Export => "messages",
        SourceKind::Archive => "messages of coding agents",
        SourceKind::Threads => "messages of threads",
    }
}

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
