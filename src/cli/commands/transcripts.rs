//! Copies new transcripts of coding agents into the transcript store before a command reads them.

use super::indexing::IndexLines;
use crate::cli::settings::engine_config;
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::output::{complain, counted};
use crate::cli::terminal::progress::bytes;
use verbatim_base::call::Call;
use verbatim_engine::{ArchiveReport, Engine, IndexStep};

/// Synchronises the transcripts before a command that reads. If their store is new, says what was copied.
pub(crate) fn sync_for_reading(engine: &Engine, environment: &Environment) {
    let home = &engine.config().home;
    let is_new = !engine.config().archive_database().exists();
    let Some(report) = sync(engine, environment, &Call::default()) else { return };
    if is_new && report.read > 0 {
        complain(&format!(
            "copied {} of coding agents into {}, {}; docs/transcripts.md says what for",
            counted(report.read as usize, "transcript"),
            engine_config::short(home, environment),
            bytes(report.bytes)
        ));
    }
}

/// Synchronises the transcripts, with a progress line that begins with the first transcript that changed. An error is
/// reported, and the command continues without the new transcripts.
pub(crate) fn sync(
    engine: &Engine,
    environment: &Environment,
    call: &Call,
) -> Option<ArchiveReport> {
    let lines = IndexLines::new(environment);
    let read =
        engine.upkeep().sync_transcripts(call, &|now| lines.show(&IndexStep::Transcripts(now)));
    lines.show(&IndexStep::TranscriptsRead(&read));
    read.ok()
}
