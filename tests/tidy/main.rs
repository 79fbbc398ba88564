//! The sources, and what the documents say of the program.

mod code;
#[path = "../shared/golden.rs"]
mod golden;
mod map;
mod public;
mod tidy;
