//! The `verbatim` program.

fn main() {}
