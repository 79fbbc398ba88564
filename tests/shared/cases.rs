//! How many cases a property is tried on.

/// Tries a property on `usual` cases, times `VERBATIM_CASES` (0.2, 10). The cases are the same each time,
/// unless `VERBATIM_SEED` has another value.
pub(crate) fn config(usual: u32) -> proptest::test_runner::Config {
    fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
        std::env::var(name).ok()?.parse().ok()
    }
    let cases = f64::from(usual) * number("VERBATIM_CASES").unwrap_or(1.0);
    let seed = number("VERBATIM_SEED").unwrap_or(1);
    proptest::test_runner::Config {
        cases: cases.ceil() as u32,
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Default::default()
    }
}
