//! Every integration test in one binary: linking tantivy once is enough.

mod corpus;
mod import;
mod index;
mod like;
mod open;

/// Tries a property on `usual` cases, times `VERBATIM_CASES`, the same ones each time.
fn config(usual: u32) -> proptest::test_runner::Config {
    let factor = std::env::var("VERBATIM_CASES").ok().and_then(|factor| factor.parse().ok());
    proptest::test_runner::Config {
        cases: usual * factor.unwrap_or(1),
        failure_persistence: None,
        ..Default::default()
    }
}
