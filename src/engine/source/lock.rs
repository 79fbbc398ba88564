//! Takes locks, also after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose value stays usable when a thread panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
