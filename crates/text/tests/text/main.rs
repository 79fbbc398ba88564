//! Patterns and literals against SQLite and slow oracles; excerpts of any text.

#[path = "../../../../tests/shared/cases.rs"]
mod cases;
mod excerpt;
mod like;
mod literal;
#[path = "../../../../tests/shared/pieces.rs"]
mod pieces;
