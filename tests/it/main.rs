//! Every integration test in one binary, because linking tantivy takes long.

mod archives;
mod attachments;
mod browser;
mod capture;
mod cli;
mod clients;
mod completions;
mod compressed;
#[cfg(unix)]
mod config;
mod corpus;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod damage;
#[cfg(unix)]
mod docs;
#[cfg(unix)]
mod export;
#[cfg(unix)]
mod filters;
mod formats;
mod hammer;
#[cfg(unix)]
mod havoc;
mod home;
#[cfg(unix)]
mod http;
#[cfg(unix)]
mod http_clients;
#[cfg(target_os = "linux")]
mod http_load;
mod import;
mod index;
#[cfg(target_os = "linux")]
mod json;
mod kept;
#[cfg(unix)]
mod letta;
mod like;
mod lists;
mod literal;
mod manners;
mod mcp;
#[cfg(target_os = "linux")]
mod memory;
mod migration;
mod newcomer;
mod notes;
mod open;
mod page;
mod page_changes;
mod page_files;
mod picker;
mod pictures;
mod pieces;
#[cfg(unix)]
mod private;
#[cfg(unix)]
mod program;
mod promises;
mod provider;
mod public;
mod query_conversations;
mod ranked;
mod read;
mod refresh;
#[cfg(unix)]
mod scene;
mod search;
mod search_tool;
mod soak;
mod status;
mod summaries;
mod threads;
mod tidy;
mod transcript_files;
mod vectors;
mod watch;
mod withheld;
mod workspace;
mod writers;

/// Tries a property on `usual` cases, times `VERBATIM_CASES` (0.2, 10). The cases are the same each time,
/// unless `VERBATIM_SEED` has another value.
fn config(usual: u32) -> proptest::test_runner::Config {
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

/// Compares a text with a file of `tests/golden/`; with `UPDATE=1` writes the file.
#[track_caller]
fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("folders can be made");
        std::fs::write(&path, text).expect("golden files can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(text == expected, "{} differs; UPDATE=1 rewrites it:\n{text}", path.display());
}
