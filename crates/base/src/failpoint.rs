//! Failpoints: places in the code of debug builds where a test can end the program as a crash does.
//!
//! Each step that changes a file for other processes passes a failpoint. The failpoints are
//! numbered in the order in which they are passed. A test ends the program at failpoint 1, at 2 and
//! so on, until a run reaches its end. Then the test has tried every step.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(debug_assertions)]
static PASSED: AtomicU64 = AtomicU64::new(0);

#[cfg(debug_assertions)]
static ARMED: AtomicU64 = AtomicU64::new(0);

/// Chooses the failpoint where the program ends, counted from 1.
#[cfg(debug_assertions)]
pub fn arm(number: u64) {
    ARMED.store(number, Ordering::Relaxed);
}

/// Passes a failpoint. At the chosen failpoint, the process ends at once and cleans nothing up.
#[cfg(debug_assertions)]
pub fn pass(place: &str) {
    let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    if ARMED.load(Ordering::Relaxed) == passed {
        eprintln!("failpoint {passed}: {place}");
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
pub fn pass(_: &str) {}
