//! Where words begin and end: the one definition of a whole word, which is that of `\b` in an expression.
//!
//! At an end of a text that is a letter, a digit or `_` (`\w`), no other such character may follow. At any other
//! end, nothing is asked. Scripts that put no spaces between words would have sentences for words, so a text of
//! them may begin and end anywhere; only Katakana, in which foreign words are written, ends where Katakana ends.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use super::normal::is_unspaced;

/// Returns whether a character belongs to words, as `\w` does.
#[inline]
fn is_of_word(character: char) -> bool {
    match character {
        '\0'..='\x7F' => character.is_ascii_alphanumeric() || character == '_',
        _ => regex_syntax::is_word_character(character),
    }
}

/// Returns whether a word goes on from `inside`, at an end of a text, to `outside`.
#[inline]
fn goes_on(inside: char, outside: char) -> bool {
    if inside.is_ascii() {
        return is_of_word(inside) && is_of_word(outside);
    }
    if is_katakana(inside) {
        return is_katakana(outside);
    }
    !is_without_spaces(inside) && is_of_word(inside) && is_of_word(outside)
}

/// Returns whether the script of a character has no spaces. Korean has them, although `is_unspaced` counts it.
fn is_without_spaces(character: char) -> bool {
    let is_korean = matches!(character, '\u{1100}'..='\u{11FF}' | '\u{3131}'..='\u{318F}'
        | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7FF}');
    is_unspaced(character) && !is_korean
}

fn is_katakana(character: char) -> bool {
    matches!(character, '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{FF66}'..='\u{FF9F}')
}

/// Returns whether a whole word may begin at a place of a text; `at_edge` at the beginning of the text.
#[inline]
pub(super) fn may_begin(text: &str, place: usize, at_edge: Option<bool>) -> Option<bool> {
    let Some(inside) = text[place..].chars().next() else { return at_edge };
    match text[..place].chars().next_back() {
        Some(outside) => Some(!goes_on(inside, outside)),
        None => at_edge,
    }
}

/// Returns whether a whole word may end at a place of a text; `at_edge` at the end of the text. A mark belongs to the
/// character before it.
#[inline]
pub(super) fn may_end(text: &str, place: usize, at_edge: Option<bool>) -> Option<bool> {
    let Some(inside) = text[..place].chars().next_back() else { return at_edge };
    match text[place..].chars().next() {
        Some(outside) if outside.is_ascii() => Some(!goes_on(inside, outside)),
        Some(outside) => Some(!goes_on(inside, outside) && !is_combining_mark(outside)),
        None => at_edge,
    }
}

/// Returns whether a character is in the runs that the index knows as words: letters of ASCII, accented Latin,
/// Cyrillic and Hangul, digits of ASCII, and `_`.
///
/// Invariant: words go on between two such characters.
#[inline]
pub(super) fn is_of_run(character: char) -> bool {
    match character {
        '\0'..='\x7F' => character.is_ascii_alphanumeric() || character == '_',
        '×' | '÷' => false,
        _ => {
            matches!(character, '\u{C0}'..='\u{24F}' | '\u{400}'..='\u{481}' | '\u{48A}'..='\u{52F}'
            | '\u{AC00}'..='\u{D7A3}')
        }
    }
}

/// Calls `each` with every longest run of characters of [`is_of_run`].
#[inline]
pub(super) fn runs<C: Copy + Into<char>>(text: &[C], mut each: impl FnMut(Range<usize>)) {
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let length = rest.iter().take_while(|character| is_of_run((**character).into())).count();
        if length > 0 {
            each(start..start + length);
        }
        start += length + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::fold;

    #[test]
    fn words_go_on_within_runs() {
        let all = || ('\0'..=char::MAX).filter(|character| is_of_run(fold(*character)));
        for character in all() {
            assert!(is_of_word(character) && goes_on(character, 'a'), "{character:?}");
            assert!(goes_on('a', character), "{character:?}");
        }
        assert!(all().count() > 11_000);
    }

    #[test]
    fn the_characters_of_words_are_those_of_expressions() {
        let expression = regex::Regex::new(r"\w").unwrap();
        for character in '\0'..=char::MAX {
            let is_match = expression.is_match(character.encode_utf8(&mut [0; 4]));
            assert_eq!(is_of_word(character), is_match, "{character:?}");
        }
    }

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        for (text, expected) in [
            ("t don't d'or _a_ t.", "t don t d or _a_ t"),
            ("3.14 1a 1,a", "3 14 1a 1 a"),
            ("e\u{301}t éñ日я", "e t éñ я"),
            ("", ""),
        ] {
            let characters: Vec<char> = text.chars().collect();
            let mut found: Vec<String> = Vec::new();
            runs(&characters, |run| found.push(characters[run].iter().collect()));
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
