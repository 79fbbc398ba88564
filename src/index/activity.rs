//! What is being done on a index directory, and what was done there last: for people, not for searches.
//!
//! ```text
//! INDEX/NAME-HASH/
//!     activity        who holds the lock, and since when
//!     last            the last refresh and its cost
//! ```
//!
//! Neither file decides anything. Who writes is told by the lock alone, which the system takes from
//! a process that dies; its `activity` then means nothing.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::directory::{IndexDir, LOCK, Writing};

const ACTIVITY: &str = "activity";
const LAST: &str = "last";

/// A process at work on a index directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The process.
    pub process: u32,
    /// When it took the lock, in seconds since 1970.
    pub since: u64,
}

/// The last refresh of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Last {
    /// When it was done, in seconds since 1970.
    pub at: u64,
    /// What it was: `built`, `refreshed` or `folded`.
    pub what: String,
    /// How many seconds it took.
    pub took: f64,
    /// How many seconds of CPU time the process used meanwhile, where the system tells.
    pub cpu: Option<f64>,
    /// Messages that were read into the index.
    pub messages: u64,
}

impl IndexDir {
    /// Returns who writes at this moment; `None` where nobody does.
    pub fn activity(&self) -> Option<Activity> {
        if !self.is_locked() {
            return None;
        }
        let unknown = Activity { process: 0, since: 0 };
        Some(read(&self.folder().join(ACTIVITY)).unwrap_or(unknown))
    }

    /// Returns the last refresh, where one was recorded.
    pub fn last(&self) -> Option<Last> {
        read(&self.folder().join(LAST))
    }

    /// Returns whether a process has the right to write. Takes it for some microseconds to see.
    fn is_locked(&self) -> bool {
        let Ok(file) = File::open(self.folder().join(LOCK)) else { return false };
        file.try_lock_shared().is_err()
    }
}

impl Writing {
    /// Notes that this process writes; a note that cannot be made is not missed.
    pub(super) fn announce(&self) {
        let activity = Activity { process: process::id(), since: now() };
        write(self.index_dir().folder(), ACTIVITY, &activity);
    }

    /// Records what was done since the lock was taken, for [`IndexDir::last`].
    pub fn record(&self, what: &str, messages: u64) {
        let Begun { clock, cpu } = self.begun;
        let cpu = cpu_time().zip(cpu).map(|(now, begun)| now.saturating_sub(begun).as_secs_f64());
        let took = clock.elapsed().as_secs_f64();
        let last = Last { at: now(), what: what.to_owned(), took, cpu, messages };
        write(self.index_dir().folder(), LAST, &last);
    }
}

/// When a process began to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    clock: Instant,
    cpu: Option<Duration>,
}

impl Begun {
    pub(super) fn now() -> Begun {
        Begun { clock: Instant::now(), cpu: cpu_time() }
    }
}

/// The CPU time that this process has used so far, where the system lets one read it.
fn cpu_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name stands in parentheses and may hold spaces; user and system time are the
    // 12th and 13th numbers after it, in hundredths of a second.
    let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = numbers.next()?.parse::<u64>().ok()? + numbers.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

impl Drop for Writing {
    fn drop(&mut self) {
        drop(fs::remove_file(self.index_dir().folder().join(ACTIVITY)));
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a file in one step, so that nobody reads half of it.
fn write(folder: &Path, name: &str, what: &impl Serialize) {
    let written = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix("current-").tempfile_in(folder)?;
        file.write_all(&serde_json::to_vec(what)?)?;
        file.persist(folder.join(name))?;
        Ok(())
    };
    drop(written());
}
