//! Transcripts of coding agents, brought up to date before a command looks at them.

use std::{io, io::Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::Environment;
use crate::{
    engine::{ArchiveReport, Engine},
    model::Stop,
};

/// Mirrors what was added to the transcripts; nothing that goes wrong with that is in the way of
/// the command.
pub(super) fn mirror(engine: &Engine, environment: &Environment) -> Option<ArchiveReport> {
    let bar = if environment.progress { ProgressBar::new(0) } else { ProgressBar::hidden() };
    let style = "transcripts [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a template of known parts"));
    let result = engine.sync_transcripts(&Stop::never(), &|progress| {
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
            let untold = report.failed - report.failures.len() as u64;
            if untold > 0 {
                let _ = writeln!(log, "verbatim: and {untold} more cannot be read");
            }
            Some(report)
        }
        Err(error) => {
            let _ = writeln!(log, "verbatim: {error}");
            None
        }
    }
}
