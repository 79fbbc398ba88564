//! Compares literal search with regular expressions that ignore case, text by text.

use proptest::{collection::vec, prelude::*, sample::select};
use verbatim_text::grams::{CommonGrams, Gram, GramTokenizer, capital_grams, query_grams};
use verbatim_text::like::is_regular;
use verbatim_text::literal::LiteralPattern;
use verbatim_text::loose;
use verbatim_text::matcher::Matcher;
use verbatim_text::pattern::Pattern;
use verbatim_text::run_query::RunQuery;

use crate::pieces::bytes;

/// Letters of which several differ only by case, some of them with another length in
/// UTF-8, and a few other characters.
const LETTERS: &str = "aAbBkK\u{212A}sSſiIİıßẞéÉÅå\u{212B}σςΣιΙ\u{1FBE}\u{345}θΘϑϴωΩ\u{2126}вВᲀяЯԱաᲐაꭰᎠᏰᏸ𐐀𐐨𞤀𞤢ȺⱥＡａǆǅǄﬅﬆᾳᾼµμ 日%_\\.\u{301}\u{2122}😀'’ʼŉ\"”-–—\u{AD}\u{200D}æœ…";

fn text(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let letters: Vec<char> = LETTERS.chars().collect();
    // Few letters at a time, so that parts of a text are like others.
    (vec(select(letters), 1..6), vec(any::<prop::sample::Index>(), length)).prop_map(
        |(letters, places)| {
            places.iter().map(|place| letters[place.index(letters.len())]).collect()
        },
    )
}

/// A text, and a piece of it in other letter cases.
fn text_and_piece() -> impl Strategy<Value = (String, String)> {
    (text(1..200), any::<prop::sample::Index>(), 1..9usize, vec(0..4usize, 9)).prop_map(
        |(text, start, length, changes)| {
            let characters: Vec<char> = text.chars().collect();
            let start = if characters.is_empty() { 0 } else { start.index(characters.len()) };
            let piece = characters.iter().skip(start).take(length).zip(changes);
            let piece = piece.map(|(character, change)| {
                let (mut upper, mut lower) = (character.to_uppercase(), character.to_lowercase());
                match change {
                    0 if upper.len() == 1 => upper.next().expect("one character"),
                    1 if lower.len() == 1 => lower.next().expect("one character"),
                    _ => *character,
                }
            });
            (text.clone(), piece.collect())
        },
    )
}

fn regex(text: &str, case_sensitive: bool) -> regex::Regex {
    let mut builder = regex::RegexBuilder::new(&regex::escape(text));
    builder.case_insensitive(!case_sensitive).build().expect("an escaped text is an expression")
}

fn compare(text: &str, piece: &str) -> Result<(), TestCaseError> {
    for case_sensitive in [false, true] {
        let pattern = LiteralPattern::new(piece, case_sensitive);
        let expected: Vec<_> =
            regex(piece, case_sensitive).find_iter(text).map(|found| found.range()).collect();
        prop_assert_eq!(pattern.matches(text.as_bytes()), !expected.is_empty());
        prop_assert_eq!(pattern.first_spans(text, usize::MAX), expected);
    }
    Ok(())
}

/// Returns whether these grams of a text are enough for a query.
fn holds(held: &[Gram], query: &RunQuery, common: &CommonGrams) -> bool {
    match query {
        RunQuery::All(parts) => parts.iter().all(|part| holds(held, part, common)),
        RunQuery::OneOf(parts) => parts.iter().any(|part| holds(held, part, common)),
        run => run.grams(common).iter().all(|gram| held.contains(gram)),
    }
}

proptest! {
    #![proptest_config(crate::cases::config(2_000))]

    #[test]
    fn texts_match_as_by_expressions((text, piece) in text_and_piece()) {
        compare(&text, &piece)?;
    }

    #[test]
    fn other_texts_match_as_by_expressions(text in text(0..300), piece in text(1..4)) {
        compare(&text, &piece)?;
    }

    #[test]
    fn any_bytes_match_as_they_are_shown(bytes in bytes(), piece in text(1..3)) {
        let expected = regex(&piece, false).is_match(&String::from_utf8_lossy(&bytes));
        let matcher = Matcher::Literal(LiteralPattern::new(&piece, false));
        prop_assert_eq!(matcher.matches_irregular(&bytes), expected);
    }

    /// The index never misses a match: with any set of common grams, a text holds the grams of its parts.
    #[test]
    fn a_text_holds_the_grams_of_its_pieces(
        (text, piece) in text_and_piece(),
        others in vec(text(0..60), 0..30),
    ) {
        prop_assume!(is_regular(text.as_bytes()));
        prop_assume!(regex(&piece, false).is_match(&text));
        for common in [
            CommonGrams::from_sample(others.iter().map(String::as_str)),
            CommonGrams::from_packed(&[]),
        ] {
            let mut held = Vec::new();
            GramTokenizer::default().tokenize(&text, &common, |gram| held.push(gram));
            for gram in query_grams(&Pattern::literal(&piece), &common) {
                prop_assert!(held.contains(&gram), "{} of {:?} in {:?}", gram, piece, text);
            }
            if text.contains(&piece) {
                for gram in capital_grams(&piece) {
                    prop_assert!(held.contains(&gram), "{} of {:?} in {:?}", gram, piece, text);
                }
            }
            let (text, piece) = (text.as_str(), loose::loose(&piece, true));
            if !loose::loose(text, true).contains(&piece) {
                continue;
            }
            let windows = loose::windows(text, |window| {
                GramTokenizer::default().tokenize(window, &common, |gram| held.push(gram));
                Ok::<(), ()>(())
            });
            prop_assert_eq!(windows, Ok(()));
            let query = RunQuery::from_loose(&piece);
            prop_assert!(holds(&held, &query, &common), "loose {} in {:?}", query, text);
        }
    }
}
