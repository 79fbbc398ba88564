//! Clocks, memory and the figures made of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Result;
use cpu_time::ProcessTime;
use serde::{Deserialize, Serialize};

/// The time between two measurements of memory during a build.
const WATCH: Duration = Duration::from_millis(10);

/// The time and memory of a piece of work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Seconds of wall-clock time.
    pub(crate) wall: f64,
    /// Seconds of CPU, of all threads.
    pub(crate) cpu: f64,
    /// The most memory resident at a time, in KiB, mapped files included.
    pub(crate) peak: Option<u64>,
    /// The most anonymous memory resident at a time, in KiB: without mapped files.
    pub(crate) peak_anonymous: Option<u64>,
}

/// Does `work`, alone in this process, and returns what it took.
pub(crate) fn cost(work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = anonymous();
            while !done.load(Ordering::Relaxed) {
                thread::sleep(WATCH);
                most = most.max(anonymous());
            }
            most
        });
        let (wall, cpu) = (Instant::now(), ProcessTime::now());
        let worked = work();
        let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
        done.store(true, Ordering::Relaxed);
        let peak_anonymous = watch.join().expect("looking at memory does not panic");
        worked.map(|()| Cost { wall, cpu, peak: status("VmHWM"), peak_anonymous })
    })
}

/// Returns the anonymous memory that is resident now, in KiB; `None` where the system does not say.
pub(crate) fn anonymous() -> Option<u64> {
    status("RssAnon")
}

fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Does `work` and returns its result and the microseconds of CPU it took, of all threads.
pub(crate) fn cpu_micros<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = ProcessTime::now();
    let result = work();
    (result, start.elapsed().as_secs_f64() * 1e6)
}

/// Returns the median, of a list that is not empty.
pub(crate) fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    let middle = of.len() / 2;
    if of.len() % 2 == 1 { of[middle] } else { f64::midpoint(of[middle - 1], of[middle]) }
}

/// Returns a percentile, of a list that is not empty.
pub(crate) fn percentile(percent: usize, mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[(of.len() * percent).div_ceil(100) - 1]
}
