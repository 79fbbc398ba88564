//! Synchronising the transcripts of coding agents before a command reads them.

use std::{io, io::Write};

use super::{environment::Environment, progress};
use crate::{
    engine::{ArchiveReport, Engine},
    model::Stop,
};

/// Synchronises the transcripts. An error is reported, and the command goes on.
pub(super) fn sync(engine: &Engine, environment: &Environment) -> Option<ArchiveReport> {
    let template = "transcripts [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let bar = progress::bar(environment, 0, template);
    let result = engine.upkeep().sync_transcripts(&Stop::never(), &|progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    let mut log = io::stderr();
    match result {
        Ok(report) => {
            for failure in &report.failures {
                let _ = writeln!(log, "verbatim: {failure}");
            }
            let unnamed = report.failed - report.failures.len() as u64;
            if unnamed > 0 {
                let _ = writeln!(log, "verbatim: and {unnamed} more cannot be read");
            }
            Some(report)
        }
        Err(error) => {
            let _ = writeln!(log, "verbatim: {error}");
            None
        }
    }
}
