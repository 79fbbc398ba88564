//! Citation markers in any text: a text without its markers is never longer.
//!
//! Input: the text.

use verbatim_chats::import::citations::{Author, strip};

pub(super) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for author in [Author::Model, Author::Tool] {
        let plain = strip(&text, author);
        assert!(plain.len() <= text.len(), "{text:?} as {plain:?}");
    }
}
