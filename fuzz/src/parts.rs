//! The JSON of message parts: nothing makes the decoder panic, and mended surrogates need no mending.
//!
//! Input: the stored content.

use verbatim_text::content::{decode_parts, mend_surrogates};

pub(super) fn run(data: &[u8]) {
    let stored = String::from_utf8_lossy(data);
    let decoded = decode_parts(&stored);
    let mended = mend_surrogates(&stored);
    assert_eq!(mend_surrogates(&mended), mended);
    assert_eq!(decode_parts(&mended), decoded, "{stored:?}");
}
