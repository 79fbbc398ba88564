//! Matching of text as Verbatim promises it, and everything that is computed from a text alone.
//!
//! - matching: [`like`] (SQLite's `LIKE`, byte for byte), [`literal`], [`expression`] (regular expressions),
//!   [`whole_word`], [`loose`] (what looks equal), [`rendered`] (copied text); [`matcher`] chooses one of them
//!   for a request
//! - for indexes: [`grams`] cuts texts into n-grams and queries into grams that each match must hold,
//!   [`pattern`] parses wildcards, [`fold`] maps all cases of a letter to one form
//! - for ranking: [`words`] (tokens and stems), [`summary`], [`query`], [`spelling`]
//! - for people: [`date`], [`excerpt`], [`snippet`], [`content`] (JSON parts), [`parts`] (blocks of an answer),
//!   [`amount`], [`shell`], [`terminal`], [`screen`] (texts without escape sequences), [`address`]
//!
//! ```
//! use verbatim_text::like::LikePattern;
//!
//! let pattern = LikePattern::parse("100_%off", false);
//! assert!(pattern.matches(b"now 100% or more OFF"));
//! assert!(!pattern.matches(b"100off"));
//! ```
//!
//! Invariant: nothing here reads a file, a clock or the environment. It uses `verbatim-base` for plain data.

pub mod address;
pub mod amount;
pub mod content;
pub mod date;
pub mod excerpt;
pub mod expression;
mod feasible;
mod finder;
pub mod fold;
pub mod grams;
pub mod hash;
pub mod like;
pub mod literal;
pub mod loose;
pub mod matcher;
pub mod months;
mod normal;
pub mod parts;
pub mod pattern;
pub mod query;
pub mod rendered;
pub mod run_query;
pub mod screen;
pub mod shell;
pub mod snippet;
pub mod spelling;
pub mod summary;
pub mod terminal;
pub mod whole_word;
mod word_break;
pub mod words;

use std::borrow::Cow;

/// Puts the spans of `text` into brackets, for tests. The spans must be in order.
#[cfg(test)]
fn bracketed(text: &str, spans: Vec<std::ops::Range<usize>>) -> String {
    let mut bracketed = text.to_owned();
    for span in spans.into_iter().rev() {
        bracketed.insert(span.end, ']');
        bracketed.insert(span.start, '[');
    }
    bracketed
}

/// Returns the beginning of a text, at most `bytes` bytes long.
pub fn up_to(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns bytes as text, with U+FFFD for invalid UTF-8.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
