//! One call of the program: what ends its work, how long it waits for other programs, and which indexes
//! it reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two checks whether waiting work should end.
const POLL: Duration = Duration::from_millis(20);

/// A flag that ends long work, because the work was cancelled or its time is over.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// Returns a stop without a time limit. Only [`Stop::request`] requests it.
    pub fn never() -> Stop {
        Stop::default()
    }

    /// Returns a stop that is requested when this stop is requested, or once `timeout` has passed.
    pub fn within(&self, timeout: Duration) -> Stop {
        let end = Instant::now().checked_add(timeout);
        let deadline = [self.deadline, end].into_iter().flatten().min();
        Stop { flag: Arc::clone(&self.flag), deadline }
    }

    /// Requests the end of the work that holds a clone of this stop.
    pub fn request(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Returns whether the work should end now.
    pub fn requested(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Fails with `error` if the work should end now.
    pub fn check<E>(&self, error: E) -> Result<(), E> {
        if self.requested() { Err(error) } else { Ok(()) }
    }

    /// Waits for a time. Fails with `error` if the work should end before.
    pub fn pause<E>(&self, pause: Duration, error: E) -> Result<(), E> {
        let begun = Instant::now();
        while begun.elapsed() < pause {
            if self.requested() {
                return Err(error);
            }
            thread::sleep(POLL.min(pause));
        }
        Ok(())
    }

    /// Runs work that cannot be cancelled, such as a request to a server, in another thread. Fails with
    /// `error` if the work should end before it has a result. Returns `None` if it panics.
    pub fn wait_for<T: Send + 'static, E>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        error: E,
    ) -> Result<Option<T>, E> {
        let (sender, receiver) = mpsc::channel();
        // The receiver is gone if the work was stopped.
        thread::spawn(move || sender.send(work()));
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(result) => return Ok(Some(result)),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
                Err(mpsc::RecvTimeoutError::Timeout) if self.requested() => return Err(error),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Requests a stop when it is dropped. This happens when nobody waits for the work any more.
pub struct StopOnDrop(pub Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// One call: a command, a request of a client, a step of upkeep. The default has no limits.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Ends the work of the call.
    pub stop: Stop,
    /// Which indexes the call reads.
    pub freshness: Freshness,
    lock_wait: LockWait,
}

/// Which indexes a call reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// Those that are current at each use: each use compares an index with its database.
    #[default]
    EachUse,
    /// Those that are current when the call first uses them. They count as current for the whole call,
    /// which has this number.
    Once(u64),
    /// None, because reading an index failed.
    NoIndex,
}

/// How long a call waits for locks of other programs.
#[derive(Clone, Debug, Default)]
struct LockWait {
    /// The microseconds that are left for all locks; `None` for the usual wait at each lock.
    left: Option<Arc<AtomicU64>>,
}

impl Call {
    /// Returns this call with a limit of its time.
    pub fn within(&self, timeout: Duration) -> Call {
        Call { stop: self.stop.within(timeout), ..self.clone() }
    }

    /// Returns this call if it only reads: each index is compared with its database only once.
    pub fn reading(&self) -> Call {
        static LAST: AtomicU64 = AtomicU64::new(0);

        let freshness = match self.freshness {
            Freshness::EachUse => Freshness::Once(LAST.fetch_add(1, Ordering::Relaxed)),
            known => known,
        };
        Call { freshness, ..self.clone() }
    }

    /// Returns this call without indexes.
    pub fn without_indexes(&self) -> Call {
        Call { freshness: Freshness::NoIndex, ..self.clone() }
    }

    /// Returns this call for work that waits for locks of other programs for at most `most` in sum. Keeps
    /// the limit that the call has already.
    pub fn waiting_for_locks(&self, most: Duration) -> Call {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        let left = self.lock_wait.left.clone().or_else(|| Some(Arc::new(AtomicU64::new(most))));
        Call { lock_wait: LockWait { left }, ..self.clone() }
    }

    /// Counts a wait for a lock. Returns whether the work may wait longer, after it waited `so_far` for
    /// this lock; `usual` is the limit for one lock if the call has no limit for all of them.
    pub fn may_wait_for_lock(&self, pause: Duration, so_far: Duration, usual: Duration) -> bool {
        let Some(left) = &self.lock_wait.left else { return so_far < usual };
        let pause = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(pause))
        });
        before.is_ok_and(|before| before > pause)
    }
}

impl From<Stop> for Call {
    fn from(stop: Stop) -> Call {
        Call { stop, ..Call::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_waited_for_until_a_stop() {
        let second = Duration::from_secs(1);
        assert_eq!(Stop::never().wait_for(|| 1, ()), Ok(Some(1)));
        let broken: fn() -> u8 = || std::panic::resume_unwind(Box::new(()));
        assert_eq!(Stop::never().wait_for(broken, ()), Ok(None));
        let begun = Instant::now();
        let stop = Stop::never().within(POLL);
        assert_eq!(stop.wait_for(move || thread::sleep(60 * second), "stopped"), Err("stopped"));
        assert_eq!(stop.pause(60 * second, "stopped"), Err("stopped"));
        assert_eq!(Stop::never().pause(POLL, "stopped"), Ok(()));
        assert!(begun.elapsed() < 30 * second);
    }

    #[test]
    fn a_call_keeps_its_first_limits() {
        let second = Duration::from_secs(1);
        let call = Call::default();
        assert!(call.may_wait_for_lock(second, second, 2 * second));
        let short = call.waiting_for_locks(second).waiting_for_locks(60 * second);
        assert!(!short.may_wait_for_lock(2 * second, Duration::ZERO, 60 * second));
        let reading = call.reading();
        assert_ne!(reading.freshness, call.reading().freshness);
        assert_eq!(reading.within(second).reading().freshness, reading.freshness);
        assert_eq!(reading.without_indexes().reading().freshness, Freshness::NoIndex);
    }
}
