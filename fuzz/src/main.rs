//! The fuzz targets, in one binary, so that they are linked once. `VERBATIM_FUZZ` names the target that
//! runs; `fuzz/run` sets it.

#![no_main]

use std::{env, sync::LazyLock};

use libfuzzer_sys::fuzz_target;

mod arguments;
mod citations;
mod clients;
mod compressed;
mod damage;
mod database;
mod date;
mod export;
mod expression;
mod like;
mod lines;
mod literal;
mod package;
mod parts;
mod provider;
mod sidecars;
mod snapshot;
mod stores;
mod transcript;
mod vector_cache;
mod words;

/// What a target does with an input. It panics if it finds a fault.
type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("arguments", arguments::run),
    ("citations", citations::run),
    ("clients", clients::run),
    ("compressed", compressed::run),
    ("database", database::run),
    ("date", date::run),
    ("export", export::run),
    ("expression", expression::run),
    ("like", like::run),
    ("lines", lines::run),
    ("literal", literal::run),
    ("package", package::run),
    ("parts", parts::run),
    ("provider", provider::run),
    ("sidecars", sidecars::run),
    ("snapshot", snapshot::run),
    ("stores", stores::run),
    ("transcript", transcript::run),
    ("vector_cache", vector_cache::run),
    ("words", words::run),
];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let wanted = env::var("VERBATIM_FUZZ").unwrap_or_default();
    let target = TARGETS.iter().find(|(name, _)| *name == wanted);
    target.unwrap_or_else(|| panic!("VERBATIM_FUZZ names no fuzz target: {wanted:?}")).1
});

fuzz_target!(|data: &[u8]| TARGET(data));
