//! The JSON of message parts: the decoder of long contents writes what the usual one returns, also where
//! it is no JSON.
//!
//! Input: the stored content.

use verbatim_text::content::{decode_parts, mend_surrogates, write_parts};

pub(super) fn run(data: &[u8]) {
    let stored = String::from_utf8_lossy(data);
    let mut written = Vec::new();
    let is_parts = write_parts(&stored, &mut written).expect("memory can be written");
    let decoded = decode_parts(&stored);
    assert_eq!(is_parts, decoded.is_some(), "{stored:?}");
    if let Some(decoded) = decoded {
        assert_eq!(written, decoded.as_bytes(), "{stored:?}");
    }
    let mended = mend_surrogates(&stored);
    assert_eq!(mend_surrogates(&mended), mended);
}
