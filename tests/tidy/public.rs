//! The library's public face: the names that `src/lib.rs` exports, and no more.

use crate::{code::exported_names, golden::golden};

/// The most public names: a reader of the documentation should see all of them.
const MAX_NAMES: usize = 80;

#[test]
fn the_public_names_are_few_and_known() {
    let names = exported_names(include_str!("../../src/lib.rs"));
    assert!(names.len() <= MAX_NAMES, "{} public names", names.len());
    golden("public.txt", &(names.into_iter().collect::<Vec<_>>().join("\n") + "\n"));
}
