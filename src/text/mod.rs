//! Pure functions over text.
//!
//! Invariant: nothing here reads a file, a clock or the environment.

pub mod content;
pub mod date;
pub mod expression;
mod finder;
pub mod fold;
pub mod grams;
pub mod hash;
pub mod like;
pub mod literal;
pub mod loose;
pub mod matcher;
mod normal;
pub mod pattern;
pub mod query;
pub mod run_query;
pub mod shell;
pub mod snippet;
pub mod summary;
pub(crate) mod terminal;
pub mod whole_word;
pub mod words;
