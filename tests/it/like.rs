//! Compares our `LIKE` with SQLite's, over any bytes.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{select, subsequence},
};
use rusqlite::{Connection, params};
use verbatim_search::text::{
    grams::{CommonGrams, GramTokenizer, query_grams, wildcard_gaps},
    like::{LikePattern, is_regular},
    pattern::Pattern,
};

/// Pieces of the tests' texts and patterns: several scripts, and the hard cases of LIKE, UTF-8 and
/// letter case.
pub(crate) const PIECES: &[&str] = &[
    "a",
    "b",
    "A",
    "B",
    "ab",
    "the",
    "The ",
    "ing ",
    " ",
    "%",
    "_",
    "%%",
    "__",
    "a%",
    "_a",
    "\\",
    "'",
    "\"",
    "\u{FFFD}",
    "\u{FFFE}",
    "\u{FFFF}",
    "é",
    "É",
    "ß",
    "ẞ",
    "ſ",
    "\u{212A}",
    "K",
    "k",
    "s",
    "İ",
    "i\u{307}",
    "ı",
    "я",
    "Я",
    "привет",
    "日",
    "本",
    "日本語",
    "ガ",
    "カ\u{3099}",
    "한국",
    "한",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "ไทย",
    "😀",
    "👩\u{200D}💻",
    "🇫🇷",
    "e\u{301}",
    "\u{FFFD}",
    "\u{FFFE}",
    "\u{FFFF}",
    "\u{10FFFF}",
    "\n",
    "\t",
    "\r\n",
    "\u{A0}",
    "\u{7F}",
    "\u{80}",
    "0",
    "9",
    "e4f1",
    "-",
];

/// Bytes that are not UTF-8, or that SQLite decodes in its own way.
const BROKEN: &[&[u8]] = &[
    b"\x00",
    b"\x80",
    b"\xBF",
    b"\xC0\x80",
    b"\xC1\x81",
    b"\xE0\x80\x80",
    b"\xED\xA0\x80",
    b"\xF0\x80",
    b"\xF8\x88\x80\x80\x80",
    b"\xFC\x84\x80\x80\x80\x80",
    b"\xFE",
    b"\xFF",
    b"\xC3",
    b"\xE6\x97",
    b"\xF4\x90\x80\x80",
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

/// Generates a text, and a pattern that is likely to match it: a piece of it with wildcards.
fn text_and_pattern() -> impl Strategy<Value = (String, String)> {
    (
        text(),
        any::<prop::sample::Index>(),
        0..12usize,
        vec((any::<prop::sample::Index>(), 0..4usize), 0..4),
    )
        .prop_map(|(text, start, length, changes)| {
            let characters: Vec<char> = text.chars().collect();
            let start = if characters.is_empty() { 0 } else { start.index(characters.len()) };
            let mut pattern: Vec<char> =
                characters.iter().copied().skip(start).take(length).collect();
            for (at, change) in changes {
                if pattern.is_empty() {
                    break;
                }
                let at = at.index(pattern.len());
                match change {
                    0 => pattern[at] = '_',
                    1 => pattern[at] = '%',
                    2 => pattern.insert(at, '%'),
                    _ => {
                        pattern[at] = if pattern[at].is_ascii_lowercase() {
                            pattern[at].to_ascii_uppercase()
                        } else {
                            pattern[at].to_ascii_lowercase()
                        }
                    }
                }
            }
            (text, pattern.into_iter().collect())
        })
}

fn sqlite_like(connection: &Connection, text: &[u8], pattern: &str, case_sensitive: bool) -> bool {
    connection.pragma_update(None, "case_sensitive_like", case_sensitive).expect("a known pragma");
    // CAST keeps the bytes unchanged. A TEXT column holds invalid UTF-8 in the same way.
    connection
        .query_row(
            "SELECT CAST(?1 AS TEXT) LIKE ?2",
            params![text, format!("%{pattern}%")],
            |row| row.get(0),
        )
        .expect("LIKE answers")
}

proptest! {
    #![proptest_config(crate::config(4_000))]

    #[test]
    fn regular_texts_match_as_in_sqlite((text, pattern) in text_and_pattern(), sensitive: bool) {
        let expected = sqlite_like(&connection(), text.as_bytes(), &pattern, sensitive);
        let parsed = LikePattern::parse(&pattern, sensitive);
        if is_regular(text.as_bytes()) {
            prop_assert_eq!(parsed.matches(text.as_bytes()), expected);
        }
        prop_assert_eq!(parsed.matches_irregular(text.as_bytes()), expected);
        if is_regular(text.as_bytes()) && pattern.chars().any(|c| !"%_".contains(c)) {
            prop_assert_eq!(!parsed.spans(&text).is_empty(), expected);
        }
    }

    #[test]
    fn any_bytes_match_as_in_sqlite(text in bytes(), pattern in text(), sensitive: bool) {
        let expected = sqlite_like(&connection(), &text, &pattern, sensitive);
        let parsed = LikePattern::parse(&pattern, sensitive);
        prop_assert_eq!(parsed.matches_irregular(&text), expected);
        if is_regular(&text) {
            prop_assert_eq!(parsed.matches(&text), expected);
        }
    }

    #[test]
    fn short_patterns_match_any_bytes_as_in_sqlite(
        text in bytes(),
        pattern in subsequence(PIECES, 1..4).prop_map(|pieces| pieces.concat()),
    ) {
        let expected = sqlite_like(&connection(), &text, &pattern, false);
        prop_assert_eq!(LikePattern::parse(&pattern, false).matches_irregular(&text), expected);
    }

    /// The index never misses a match: with any set of common grams, a matching text holds the grams
    /// of its pattern, and the grams of each gap with some character in it.
    #[test]
    fn a_text_holds_the_grams_of_patterns_that_match_it(
        (text, pattern) in text_and_pattern(),
        others in vec(text(), 0..30),
    ) {
        prop_assume!(is_regular(text.as_bytes()));
        prop_assume!(LikePattern::parse(&pattern, false).matches(text.as_bytes()));
        let sample = others.iter().map(String::as_str).filter(|text| is_regular(text.as_bytes()));
        for common in [CommonGrams::of_sample(sample), CommonGrams::from_packed(&[])] {
            let mut held = Vec::new();
            GramTokenizer::default().cut(&text, &common, |gram| held.push(gram));
            for gram in query_grams(&Pattern::parse(&pattern), &common) {
                prop_assert!(held.contains(&gram), "{} of {:?} in {:?}", gram, pattern, text);
            }
            for gap in wildcard_gaps(&Pattern::parse(&pattern)) {
                let can_be = |character| {
                    gap.filled(character, &common).iter().all(|gram| held.contains(gram))
                };
                let fillings = text.chars().map(|c| c.to_ascii_lowercase());
                prop_assert!(fillings.into_iter().any(can_be), "{gap:?} in {text:?}");
            }
        }
    }
}

fn connection() -> Connection {
    Connection::open_in_memory().expect("a database in memory")
}
