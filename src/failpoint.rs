//! Places where a test ends the program, as a crash or a kill would: debug builds only.
//!
//! Each change to files that others see passes some of them. They are numbered as they are passed,
//! so that a test which kills at 1, 2, 3 … until nothing is killed any more has tried every step.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

/// How many have been passed, and at which the program ends; 0 for none.
#[cfg(debug_assertions)]
static PASSED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Ends the process at the place with this number, counted from 1 in the order they are passed.
#[cfg(debug_assertions)]
pub fn arm(number: u64) {
    PASSED[1].store(number, Ordering::Relaxed);
}

/// Passes a place, where the process ends if it was told so: at once, nothing is tidied up.
#[cfg(debug_assertions)]
pub(crate) fn pass(place: &str) {
    let passed = PASSED[0].fetch_add(1, Ordering::Relaxed) + 1;
    if PASSED[1].load(Ordering::Relaxed) == passed {
        eprintln!("failpoint {passed}: {place}");
        std::process::abort();
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
pub(crate) fn pass(_: &str) {}
