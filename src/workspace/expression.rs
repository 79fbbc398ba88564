//! Compiles regular expressions as `rg -i` does, within bounds of memory.
//!
//! An expression costs at most about 64 MB: up to 12 MB to parse it, and up to three times the compiled
//! program to make that. Many at once cost little more, because they take turns.

use std::{
    sync::{Mutex, MutexGuard, TryLockError},
    thread,
    time::Duration,
};

use grep::regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ParserBuilder;

use super::Error;
use crate::{model::Stop, text::snippet};

/// The most characters of an error in an expression.
const MAX_EXPLANATION: usize = 1000;

/// The longest expression in bytes.
const MAX_PATTERN_BYTES: usize = 10_000;

/// The most classes (`[a-z]`, `\w`) in an expression. `\pL` takes 40 kB when it is parsed.
const MAX_CLASSES: usize = 300;

/// The largest compiled expression in bytes. `\w{100}` takes 6 MB, a thousand names take 1 MB.
const MAX_PROGRAM_BYTES: usize = 12 << 20;

/// A compiled expression that is larger is large: such expressions are searched one at a time.
const LARGE_PROGRAM_BYTES: usize = 4 << 20;

/// The most memory of each thread for the states of an expression that were met.
const MAX_STATES_BYTES: usize = 1 << 20;

/// Held while an expression is compiled, so that many at once take no more memory than one.
static COMPILING: Mutex<()> = Mutex::new(());

/// Held while a large expression is searched.
static LARGE: Mutex<()> = Mutex::new(());

/// How long a search waits before it asks again whether it is its turn.
const WAIT: Duration = Duration::from_millis(5);

/// A compiled expression.
pub(super) struct Expression {
    pub(super) matcher: RegexMatcher,
    /// The turn of a large expression.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Expression {
    /// Compiles a pattern; waits until no other one is compiled and, if this one is large, until no
    /// other large one is searched.
    pub(super) fn new(pattern: &str, stop: &Stop) -> Result<Expression, Error> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(Error::Long { bytes: pattern.len(), most: MAX_PATTERN_BYTES });
        }
        if classes(pattern) > MAX_CLASSES {
            return Err(Error::Large { most: MAX_PROGRAM_BYTES });
        }
        match compiled(pattern, LARGE_PROGRAM_BYTES, stop) {
            Err(Error::Large { .. }) => {}
            small => return Ok(Expression { matcher: small?, _turn: None }),
        }
        let turn = locked(&LARGE, stop)?;
        let matcher = compiled(pattern, MAX_PROGRAM_BYTES, stop)?;
        Ok(Expression { matcher, _turn: Some(turn) })
    }
}

/// Returns how many classes a pattern has at most.
fn classes(pattern: &str) -> usize {
    let pairs = pattern.as_bytes().windows(2);
    pairs.filter(|two| two[0] == b'[' || two[0] == b'\\' && two[1].is_ascii_alphabetic()).count()
}

/// Waits for a lock, but not longer than until the stop.
fn locked(lock: &'static Mutex<()>, stop: &Stop) -> Result<MutexGuard<'static, ()>, Error> {
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
    let _alone = locked(&COMPILING, stop)?;
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
        .map_err(|error| match error.to_string() {
            text if text.contains("size limit") => Error::Large { most },
            text => Error::Pattern(explained(pattern, text)),
        })
}

/// Returns where a pattern is wrong.
fn explained(pattern: &str, error: String) -> String {
    let own = ParserBuilder::new().utf8(false).build().parse(pattern);
    let text = own.map_or_else(|own| own.to_string(), |_| error);
    // The message repeats the pattern, which may be very long.
    match snippet::cut(&text, MAX_EXPLANATION) {
        Some(start) => format!("{start}…"),
        None => text,
    }
}
