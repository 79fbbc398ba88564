//! Citation markers in any text: a text without its markers is never longer.
//!
//! Input: the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use verbatim_search::import::citations::{Author, strip};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for author in [Author::Model, Author::Tool] {
        let plain = strip(&text, author);
        assert!(plain.len() <= text.len(), "{text:?} as {plain:?}");
    }
});
