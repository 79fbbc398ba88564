//! Synchronising the transcripts of coding agents before a command reads them.

use super::{environment::Environment, output::complain, progress};
use crate::{
    engine::{ArchiveReport, Engine},
    model::Stop,
};

/// Synchronises the transcripts. An error is reported, and the command goes on.
pub(super) fn sync(
    engine: &Engine,
    environment: &Environment,
    stop: &Stop,
) -> Option<ArchiveReport> {
    let template = "transcripts [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let bar = progress::bar(environment, 0, template);
    let result = engine.upkeep().sync_transcripts(stop, &|progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
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
        // Whoever stopped it says so.
        Err(error) if error.is_stopped() => None,
        Err(error) => {
            complain(&error.to_string());
            None
        }
    }
}
