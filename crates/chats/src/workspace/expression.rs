//! Compiles regular expressions as `rg -i` does, with memory limits.
//!
//! The limits are the same for all expressions: see [`verbatim_text::expression`].

use std::{
    sync::{Mutex, MutexGuard, TryLockError},
    thread,
    time::Duration,
};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::Error;
use verbatim_base::call::Stop;
use verbatim_text::expression::{COMPILING, ExpressionError, MAX_PROGRAM_BYTES, check_size};

/// The size in bytes above which a compiled expression counts as large. Large expressions are
/// searched one at a time.
const LARGE_PROGRAM_BYTES: usize = 4 << 20;

/// The memory limit of each thread for the cached states of the lazy DFA.
const MAX_STATES_BYTES: usize = 1 << 20;

/// The lock that each search with a large expression holds.
static LARGE: Mutex<()> = Mutex::new(());

const WAIT: Duration = Duration::from_millis(5);

pub(super) struct Expression {
    pub(super) matcher: RegexMatcher,
    /// The lock that a large expression holds while it is searched.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Expression {
    /// Compiles a pattern. Waits until no other pattern is compiled; a large expression also waits
    /// until no other large expression is searched.
    pub(super) fn new(pattern: &str, stop: &Stop) -> Result<Expression, Error> {
        check_size(pattern).map_err(Error::from_expression)?;
        match compiled(pattern, LARGE_PROGRAM_BYTES, stop) {
            Err(Error::Large { .. }) => {}
            small => return Ok(Expression { matcher: small?, _turn: None }),
        }
        let turn = wait_for_lock(&LARGE, stop)?;
        let matcher = compiled(pattern, MAX_PROGRAM_BYTES, stop)?;
        Ok(Expression { matcher, _turn: Some(turn) })
    }
}

/// Waits for a lock, at most until the stop is requested.
fn wait_for_lock(lock: &'static Mutex<()>, stop: &Stop) -> Result<MutexGuard<'static, ()>, Error> {
    loop {
        match lock.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(guard)) => return Ok(guard.into_inner()),
            Err(TryLockError::WouldBlock) if stop.requested() => return Err(Error::Stopped),
            Err(TryLockError::WouldBlock) => thread::sleep(WAIT),
        }
    }
}

fn compiled(pattern: &str, most: usize, stop: &Stop) -> Result<RegexMatcher, Error> {
    let _alone = wait_for_lock(&COMPILING, stop)?;
    RegexMatcherBuilder::new()
        .size_limit(most)
        .dfa_size_limit(MAX_STATES_BYTES)
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .case_insensitive(true)
        .line_terminator(Some(b'\n'))
        .dot_matches_new_line(false)
        .ban_byte(Some(b'\0'))
        .build(pattern)
        .map_err(|error| {
            let error = ExpressionError::from_compiler(pattern, &error.to_string(), most);
            Error::from_expression(error)
        })
}
