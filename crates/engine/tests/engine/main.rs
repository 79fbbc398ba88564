//! The engine over databases that change.

#[path = "../../../../tests/shared/build_vectors.rs"]
mod build_vectors;
#[path = "../../../../tests/shared/cases.rs"]
mod cases;
#[path = "../../../../tests/shared/corpus.rs"]
mod corpus;
mod index;
mod open;
#[path = "../../../../tests/shared/pieces.rs"]
mod pieces;
mod provider;
mod refresh;
mod summaries;
