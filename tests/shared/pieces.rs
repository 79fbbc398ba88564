//! Random texts and bytes, made of pieces.

use proptest::{collection::vec, prelude::*, sample::select};

/// Pieces of the tests' texts and patterns: several scripts, and the hard cases of LIKE, UTF-8 and
/// letter case.
#[rustfmt::skip]
pub(crate) const PIECES: &[&str] = &[
    "a", "b", "A", "B", "ab", "the", "The ", "ing ", " ", "%", "_", "%%", "__", "a%", "_a",
    "\\", "'", "\"", "\u{FFFD}", "\u{FFFE}", "\u{FFFF}", "é", "É", "ß", "ẞ", "ſ", "\u{212A}",
    "K", "k", "s", "İ", "i\u{307}", "ı", "я", "Я", "привет", "Вᲀ", "в", "Σ", "σ", "ς", "θϑϴ",
    "Ω\u{2126}ω", "Å\u{212B}å", "µμ", "ǄǅǆÉé", "Հայ", "հԱՅ", "Ქა", "ქᲐ", "Ꭰꭰ", "Ᏸᏸ", "𐐀𐐨",
    "𞤀𞤢", "Ａａ", "ﬀﬅﬆ", "ȺⱥɐⱯ", "日", "本", "日本語", "ガ", "カ\u{3099}", "한국", "한", "שלום", "مرحبا",
    "नमस्ते", "ไทย", "😀", "👩\u{200D}💻", "🇫🇷", "e\u{301}", "\u{FFFD}", "\u{FFFE}", "\u{FFFF}",
    "\u{10FFFF}", "\n", "\t", "\r\n", "\u{A0}", "\u{7F}", "\u{80}", "0", "9", "e4f1", "-",
];

/// Bytes that are not UTF-8, or that SQLite decodes in its own way.
#[rustfmt::skip]
const BROKEN: &[&[u8]] = &[
    b"\x00", b"\x80", b"\xBF", b"\xC0\x80", b"\xC1\x81", b"\xE0\x80\x80", b"\xED\xA0\x80",
    b"\xF0\x80", b"\xF8\x88\x80\x80\x80", b"\xFC\x84\x80\x80\x80\x80", b"\xFE", b"\xFF",
    b"\xC3", b"\xE6\x97", b"\xF4\x90\x80\x80",
];

pub(crate) fn text() -> impl Strategy<Value = String> {
    vec(select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => select(BROKEN).prop_map(<[u8]>::to_vec),
    ];
    vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}
