//! The files of a segment.

#[path = "../../../../tests/shared/build_vectors.rs"]
mod build_vectors;
#[path = "../../../../tests/shared/cases.rs"]
mod cases;
mod vectors;
