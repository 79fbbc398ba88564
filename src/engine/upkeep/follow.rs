//! Follows the transcripts of coding agents in the background: each look mirrors what was added.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crate::engine::{ArchiveReport, Engine, UpkeepEvent};
use crate::model::Stop;

/// The rest after a look, in times of what it took, and the longest: what is appended to a
/// transcript is to be found within two seconds.
const REST: (u32, Duration) = (4, Duration::from_millis(800));

/// Folders that are watched, those changed last first; in others changes are noticed later.
const WATCHED: usize = 2_000;

/// How deep folders are looked for.
const DEPTH: usize = 12;

/// What is known from look to look.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    not_before: Option<Instant>,
    /// What was said last, so as not to say it again.
    said: String,
    has_told: bool,
}

impl Follower {
    /// Mirrors what is new; returns after how long there is reason to look again, `None` if only a
    /// change is one.
    pub(crate) fn look(
        &mut self,
        engine: &Engine,
        stop: &Stop,
        tell: &mut dyn FnMut(UpkeepEvent),
    ) -> Option<Duration> {
        if engine.config().archives.is_empty() {
            return None;
        }
        let begun = Instant::now();
        if let Some(at) = self.not_before.filter(|at| *at > begun) {
            return Some(at - begun);
        }
        let work = AssertUnwindSafe(|| engine.sync_transcripts(stop, &|_| {}));
        let (reason, next) = match catch_unwind(work) {
            Ok(Ok(report)) => {
                let next = report.elsewhere.then_some(REST.1);
                let reason = report.failures.join("\n");
                // What an agent at work adds every other second is no news.
                if !std::mem::replace(&mut self.has_told, true) && report.messages > 0 {
                    tell(UpkeepEvent::Mirrored(Box::new(report)));
                }
                (reason, next)
            }
            Ok(Err(error)) => (error.to_string(), Some(REST.1)),
            Err(_) => ("reading the transcripts failed; please report this".to_owned(), None),
        };
        if self.said != reason {
            self.said.clone_from(&reason);
            for reason in reason.lines() {
                tell(UpkeepEvent::NotMirrored { reason: reason.to_owned() });
            }
        }
        self.not_before = Some(Instant::now() + (begun.elapsed() * REST.0).min(REST.1));
        next
    }
}

/// Returns the folders of archives in which a transcript may grow or begin.
pub(crate) fn folders(archives: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<(Option<SystemTime>, PathBuf)> = Vec::new();
    for archive in archives {
        // One that is not there yet is watched for where it would be.
        found.push((Some(SystemTime::now()), archive.clone()));
        walk(archive, DEPTH, &mut found);
    }
    found.sort_by(|a, b| b.cmp(a));
    found.truncate(WATCHED);
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<(Option<SystemTime>, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            if depth > 0 {
                walk(&entry.path(), depth - 1, found);
            }
            found.push((modified, entry.path()));
        }
    }
}

impl std::fmt::Display for ArchiveReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {} transcripts read, {} messages added in {:.1} s",
            self.read,
            self.files,
            self.messages,
            self.took.as_secs_f64()
        )?;
        if self.removed > 0 {
            write!(f, ", {} gone", self.removed)?;
        }
        if self.malformed > 0 {
            write!(f, ", {} lines cannot be read", self.malformed)?;
        }
        Ok(())
    }
}
