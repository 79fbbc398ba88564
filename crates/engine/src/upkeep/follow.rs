//! Follows the transcripts of coding agents in the background. Each poll reads the appended text.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::events::UpkeepEvent;
use super::transcripts::{Settled, sync};
use crate::config::Config;
use verbatim_base::call::Call;

/// The pause after a poll, as a multiple of the poll's duration.
const PAUSE_FACTOR: u32 = 4;

/// The longest pause. New text in a transcript must be found within two seconds.
const LONGEST_PAUSE: Duration = Duration::from_millis(800);

/// Maximum number of watched folders. The last changed ones are taken, and others are noticed later.
const MOST_WATCHED: usize = 2_000;

const MAX_FOLDER_DEPTH: usize = 12;

/// The state of following transcripts, kept between polls.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    not_before: Option<Instant>,
    /// The last synchronisation that left nothing to do.
    settled: Option<Settled>,
    /// The failures reported last, so that they are not reported again.
    reported: String,
    has_reported_messages: bool,
}

impl Follower {
    /// Synchronises the transcript store. Returns the wait until the next poll; `None` to wait for a
    /// file event.
    pub(crate) fn poll(
        &mut self,
        config: &Config,
        call: &Call,
        tell: &mut dyn FnMut(UpkeepEvent),
    ) -> Option<Duration> {
        // Without a folder, nothing is to be done before a file event.
        config.archives_now().next()?;
        let begun = Instant::now();
        if let Some(at) = self.not_before.filter(|at| *at > begun) {
            return Some(at - begun);
        }
        let work = AssertUnwindSafe(|| sync(config, &mut self.settled, call, &|_| {}));
        let (reason, next) = match catch_unwind(work) {
            Ok(Ok(report)) => {
                let next = report.elsewhere.then_some(LONGEST_PAUSE);
                let reason = report.failures.join("\n");
                // An agent adds messages every other second, so only the first added messages are reported.
                if !std::mem::replace(&mut self.has_reported_messages, true) && report.messages > 0
                {
                    tell(UpkeepEvent::Synced(Box::new(report)));
                }
                (reason, next)
            }
            Ok(Err(error)) => (error.to_string(), Some(LONGEST_PAUSE)),
            Err(_) => ("reading the transcripts failed; please report this".to_owned(), None),
        };
        if self.reported != reason {
            self.reported.clone_from(&reason);
            for reason in reason.lines() {
                tell(UpkeepEvent::NotSynced { reason: reason.to_owned() });
            }
        }
        let pause = (begun.elapsed() * PAUSE_FACTOR).min(LONGEST_PAUSE);
        self.not_before = Some(Instant::now() + pause);
        next
    }
}

/// Returns the folders in archives in which a transcript may grow or appear.
pub(crate) fn folders<'a>(archives: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<(Option<SystemTime>, PathBuf)> = Vec::new();
    for archive in archives {
        // The watcher also waits for an archive that does not exist yet.
        found.push((Some(SystemTime::now()), archive.clone()));
        walk(archive, MAX_FOLDER_DEPTH, &mut found);
    }
    found.sort_by(|a, b| b.cmp(a));
    found.truncate(MOST_WATCHED);
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
