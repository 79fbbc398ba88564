//! Compares our `LIKE` with SQLite's, over any bytes.

use proptest::{collection::vec, prelude::*, sample::subsequence};
use rusqlite::{Connection, params};
use verbatim_text::grams::{CommonGrams, GramTokenizer, query_grams, wildcard_gaps};
use verbatim_text::like::{LikePattern, is_regular};
use verbatim_text::pattern::Pattern;

use crate::pieces::{PIECES, bytes, text};

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
    #![proptest_config(crate::cases::config(4_000))]

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
        for common in [CommonGrams::from_sample(sample), CommonGrams::from_packed(&[])] {
            let mut held = Vec::new();
            GramTokenizer::default().tokenize(&text, &common, |gram| held.push(gram));
            for gram in query_grams(&Pattern::parse(&pattern), &common) {
                prop_assert!(held.contains(&gram), "{} of {:?} in {:?}", gram, pattern, text);
            }
            for gap in wildcard_gaps(&Pattern::parse(&pattern)) {
                let can_be = |character| {
                    gap.grams_filled_with(character, &common).iter().all(|gram| held.contains(gram))
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
