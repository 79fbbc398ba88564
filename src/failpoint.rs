//! Failpoints: places where a test ends the program like a crash. They exist in debug builds only.
//!
//! Every change to files that other processes see passes some failpoints. They are numbered in the order
//! they are passed. A test kills at 1, 2, 3 and so on until the program is no longer killed; then it has
//! tried every step.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of failpoints that were passed.
#[cfg(debug_assertions)]
static PASSED: AtomicU64 = AtomicU64::new(0);

/// The number of the failpoint where the program ends; 0 for none.
#[cfg(debug_assertions)]
static ARMED: AtomicU64 = AtomicU64::new(0);

/// Chooses the failpoint where the program ends, counted from 1.
#[cfg(debug_assertions)]
pub fn arm(number: u64) {
    ARMED.store(number, Ordering::Relaxed);
}

/// Passes a failpoint. If it is the chosen one, the process ends at once and cleans nothing up.
#[cfg(debug_assertions)]
pub(crate) fn pass(place: &str) {
    let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    if ARMED.load(Ordering::Relaxed) == passed {
        eprintln!("failpoint {passed}: {place}");
        std::process::abort();
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
pub(crate) fn pass(_: &str) {}
