//! Patterns and literals against SQLite and slow oracles.

#[path = "../../../../tests/shared/cases.rs"]
mod cases;
mod like;
mod literal;
#[path = "../../../../tests/shared/pieces.rs"]
mod pieces;
