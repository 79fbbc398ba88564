//! The state of the background upkeep, so that questions can wait for it and report it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Task {
    /// No work at the moment. If work is due, it begins soon.
    #[default]
    Idle,
    /// The upkeep is building the index, or terms and vectors. `from` is the share of all work that was finished
    /// when this work began, `share` the share that is done.
    Building { begun: Instant, from: f64, share: f64 },
    /// Another process is building the index.
    Elsewhere,
    /// The work failed. It may be tried again later.
    Failed,
}

impl Task {
    /// Returns a task that begins now. `share` is the part of all work that is finished already.
    pub(crate) fn begun_at(share: f64) -> Task {
        Task::Building { begun: Instant::now(), from: share, share }
    }

    pub(crate) fn at(self, share: f64) -> Task {
        match self {
            Task::Building { begun, from, .. } => Task::Building { begun, from, share },
            other => other,
        }
    }

    /// Returns the finished percentage, and an estimate of the remaining seconds.
    pub(crate) fn progress(self) -> (Option<u8>, Option<u64>) {
        /// Minimum finished share for an estimate of the remaining time.
        const LEAST: f64 = 0.02;

        let Task::Building { begun, from, share } = self else { return (None, None) };
        let percent = (share * 100.0) as u8;
        if share - from < LEAST {
            return (Some(percent), None);
        }
        let left = begun.elapsed().mul_f64((1.0 - share).max(0.0) / (share - from));
        (Some(percent), Some(left.as_secs()))
    }
}

/// The state of the background upkeep that all sources share.
#[derive(Debug, Default)]
pub(crate) struct UpkeepState {
    maintainers: AtomicUsize,
    has_transcripts: AtomicBool,
}

impl UpkeepState {
    pub(crate) fn begin(&self) {
        self.maintainers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.maintainers.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.maintainers.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn set_transcripts_read(&self) {
        self.has_transcripts.store(true, Ordering::Relaxed);
    }

    pub(crate) fn are_transcripts_read(&self) -> bool {
        self.has_transcripts.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_done() {
        assert_eq!(Task::Idle.progress(), (None, None));
        let begun =
            Instant::now().checked_sub(Duration::from_secs(43)).unwrap_or_else(Instant::now);
        let task = Task::Building { begun, from: 0.0, share: 0.0 };
        assert_eq!(task.progress(), (Some(0), None));
        let (percent, left) = task.at(0.43).progress();
        assert_eq!(percent, Some(43));
        assert!(left.is_some_and(|left| (50..70).contains(&left)), "{left:?}");
    }
}
