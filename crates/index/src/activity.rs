//! Files that tell people which process writes to an index directory, and what the last refresh cost.
//!
//! ```text
//! INDEX/NAME-HASH/
//!     activity        the process that holds the lock, and since when
//!     last            the last refresh and its cost
//! ```
//!
//! No decision depends on these files. Only the lock decides who writes. The system releases the lock when
//! the process dies; the file `activity` is then out of date.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, process};

use serde::{Deserialize, Serialize};

use super::artifact;
use verbatim_base::{files, private};

const ACTIVITY: &str = "activity";
const LAST: &str = "last";

/// A process that writes to an index directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The id of the process that holds the lock.
    pub process: u32,
    /// The time when the process took the lock, in seconds since 1970.
    pub since: u64,
}

impl Activity {
    /// Reads which process holds the lock. The process id is 0 if the file cannot be read.
    pub(super) fn read(folder: &Path) -> Activity {
        read(&folder.join(ACTIVITY)).unwrap_or(Activity { process: 0, since: 0 })
    }

    pub(super) fn begin(folder: &Path) {
        write(folder, ACTIVITY, &Activity { process: process::id(), since: now() });
    }

    pub(super) fn end(folder: &Path) {
        drop(fs::remove_file(folder.join(ACTIVITY)));
    }
}

/// The last refresh of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Last {
    /// The time when the work was done, in seconds since 1970.
    pub at: u64,
    /// The kind of work: `built`, `refreshed` or `merged`.
    pub what: String,
    /// The duration of the work in seconds.
    pub took: f64,
    /// The CPU time of the process during the work in seconds, if the system reports it.
    pub cpu: Option<f64>,
    /// Messages that were read into the index.
    pub messages: u64,
}

impl Last {
    pub(super) fn read(folder: &Path) -> Option<Last> {
        read(&folder.join(LAST))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    clock: Instant,
    cpu: Option<Duration>,
}

impl Begun {
    pub(super) fn now() -> Begun {
        Begun { clock: Instant::now(), cpu: cpu_time() }
    }

    /// Records a refresh that began at these times and ends now.
    pub(super) fn record(self, folder: &Path, what: &str, messages: u64) {
        let cpu = cpu_time().zip(self.cpu);
        let cpu = cpu.map(|(now, begun)| now.saturating_sub(begun).as_secs_f64());
        let took = self.clock.elapsed().as_secs_f64();
        write(folder, LAST, &Last { at: now(), what: what.to_owned(), took, cpu, messages });
    }
}

fn cpu_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // In `/proc/self/stat` the program's name is in parentheses and may contain spaces. User and system time
    // are the 12th and 13th numbers after the name, in hundredths of a second.
    let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = numbers.next()?.parse::<u64>().ok()? + numbers.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&files::read(path).ok()?).ok()
}

/// Replaces a file in one step, so that no reader sees half of it. Ignores errors.
fn write(folder: &Path, name: &str, note: &impl Serialize) {
    let Ok(bytes) = serde_json::to_vec(note) else { return };
    if let Ok(file) = artifact::write_beside(folder, &bytes) {
        drop(private::replace(file.into_temp_path(), &folder.join(name)));
    }
}
