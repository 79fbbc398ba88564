//! Copies new transcripts of coding agents into the transcript store before a command reads them.

use std::cell::OnceCell;

use super::{
    engine_config,
    environment::Environment,
    output::{complain, counted},
    progress::{Step, bytes},
};
use verbatim_base::model::Stop;
use verbatim_engine::{ArchiveReport, Engine};

/// Synchronises the transcripts before a command that reads. If their store is new, says what was copied.
pub(super) fn sync_for_reading(engine: &Engine, environment: &Environment) {
    let home = &engine.config().home;
    let is_new = !engine.config().archive_database().exists();
    let Some(report) = sync(engine, environment, &Stop::never()) else { return };
    if is_new && report.read > 0 {
        complain(&format!(
            "copied {} of coding agents into {}, {}; docs/transcripts.md says what for",
            counted(report.read as usize, "transcript"),
            engine_config::short(home, environment),
            bytes(report.bytes)
        ));
    }
}

/// Synchronises the transcripts. An error is reported, and the command continues without the new transcripts.
pub(super) fn sync(
    engine: &Engine,
    environment: &Environment,
    stop: &Stop,
) -> Option<ArchiveReport> {
    // The progress bar begins with the first transcript that changed.
    let step = OnceCell::new();
    let result = engine.upkeep().sync_transcripts(stop, &|progress| {
        let step = step.get_or_init(|| Step::begin(environment, "Transcripts"));
        let share = progress.done as f64 / progress.total.max(1) as f64;
        step.show(share, &format!("{} of {}", bytes(progress.done), bytes(progress.total)));
    });
    if let Some(step) = step.into_inner() {
        step.clear();
    }
    match result {
        Ok(report) => {
            for failure in &report.failures {
                complain(&failure.to_string());
            }
            let unnamed = report.failed - report.failures.len() as u64;
            if unnamed > 0 {
                complain(&format!("and {unnamed} more cannot be read"));
            }
            Some(report)
        }
        // The command itself reports that it was stopped.
        Err(error) if error.is_stopped() => None,
        Err(error) => {
            complain(&error.to_string());
            None
        }
    }
}
