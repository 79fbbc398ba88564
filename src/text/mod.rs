//! Pure functions over text.
//!
//! Invariant: nothing here reads a file, a clock or the environment.

pub mod content;
pub mod date;
pub mod grams;
pub mod like;
mod normal;
pub mod pattern;
pub mod query;
pub mod snippet;
pub mod summary;
pub mod words;
