//! Finds where words begin and end, as Unicode's UAX #29 says, in scripts whose characters are easy to
//! classify. For other scripts, the crate `unicode-segmentation` has to read the whole line.
//!
//! Invariant: if [`is_boundary`] gives an answer, it is the answer of `unicode-segmentation`, for the
//! classes of the characters themselves and for those of their folded forms.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The beginning or the end of the text.
    Edge,
    Letter,
    Digit,
    /// `_`, which joins letters and digits.
    Joiner,
    BetweenLetters,
    BetweenDigits,
    BetweenBoth,
    Space,
    Return,
    LineFeed,
    Other,
    Unknown,
}

const ASCII: [Class; 128] = {
    let mut classes = [Class::Other; 128];
    let mut code = 0;
    while code < classes.len() {
        classes[code] = match code as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'_' => Class::Joiner,
            b':' => Class::BetweenLetters,
            b',' | b';' => Class::BetweenDigits,
            b'.' | b'\'' => Class::BetweenBoth,
            b' ' => Class::Space,
            b'\r' => Class::Return,
            b'\n' => Class::LineFeed,
            _ => Class::Other,
        };
        code += 1;
    }
    classes
};

impl Class {
    #[inline]
    pub(super) fn from_char(character: char) -> Class {
        match character {
            '\0'..='\x7F' => ASCII[character as usize],
            '×' | '÷' => Class::Other,
            // Accented Latin, Cyrillic, syllables of Hangul.
            '\u{C0}'..='\u{24F}'
            | '\u{400}'..='\u{481}'
            | '\u{48A}'..='\u{52F}'
            | '\u{AC00}'..='\u{D7A3}' => Class::Letter,
            // Hiragana, Han.
            '\u{3041}'..='\u{3096}' | '\u{4E00}'..='\u{9FFF}' => Class::Other,
            _ => Class::Unknown,
        }
    }

    pub(super) fn may_join(self) -> bool {
        matches!(self, Class::BetweenLetters | Class::BetweenDigits | Class::BetweenBoth)
    }

    /// Returns whether there is never a boundary between two characters of such classes.
    #[inline]
    pub(super) fn is_of_word(self) -> bool {
        matches!(self, Class::Letter | Class::Digit | Class::Joiner)
    }
}

/// Returns whether there is a boundary between two characters; `None` if it depends on more than their
/// neighbours. `before` and `after` have the two classes on each side, in the order of the text.
#[inline]
pub(super) fn is_boundary(before: [Class; 2], after: [Class; 2]) -> Option<bool> {
    use Class::{
        BetweenBoth, BetweenDigits, BetweenLetters, Digit, Edge, Letter, LineFeed, Return, Space,
        Unknown,
    };
    let [[before_that, one], [other, after_that]] = [before, after];
    match (one, other) {
        (Edge, _) | (_, Edge) => Some(true),
        (Unknown, _) | (_, Unknown) => None,
        _ if one.is_of_word() && other.is_of_word() => Some(false),
        (Space, Space) | (Return, LineFeed) => Some(false),
        (Letter, BetweenLetters | BetweenBoth) => is_not(after_that, Letter),
        (Digit, BetweenDigits | BetweenBoth) => is_not(after_that, Digit),
        (BetweenLetters | BetweenBoth, Letter) => is_not(before_that, Letter),
        (BetweenDigits | BetweenBoth, Digit) => is_not(before_that, Digit),
        _ => Some(true),
    }
}

#[inline]
fn is_not(class: Class, wanted: Class) -> Option<bool> {
    if class == Class::Unknown { None } else { Some(class != wanted) }
}

/// Returns whether there is a boundary at a place of a text; `None` if it depends on more than its
/// neighbours. `outside` is the class for characters beyond the ends of the text.
#[inline]
pub(super) fn is_boundary_at(text: &str, place: usize, outside: Class) -> Option<bool> {
    let mut before = text[..place].chars().rev().map(Class::from_char);
    let mut after = text[place..].chars().map(Class::from_char);
    let one = before.next().unwrap_or(outside);
    let before_that = before.next().unwrap_or(outside);
    let other = after.next().unwrap_or(outside);
    is_boundary([before_that, one], [other, after.next().unwrap_or(outside)])
}

/// Calls `each` with every run of letters, digits and `_`, and with the run and the mark after it, if such
/// marks join letters or digits. The second argument tells whether there may be boundaries at both ends.
#[inline]
pub(super) fn runs<C: Copy + Into<char>>(
    text: &[C],
    mut each: impl FnMut(Range<usize>, &dyn Fn() -> bool),
) {
    let mut start = 0;
    while start < text.len() {
        if !class_at(text, start).is_of_word() {
            start += 1;
            continue;
        }
        let mut end = start + 1;
        while end < text.len() && class_at(text, end).is_of_word() {
            end += 1;
        }
        each(start..end, &|| may_end_at(text, start) && may_end_at(text, end));
        if class_at(text, end).may_join() {
            each(start..end + 1, &|| may_end_at(text, start) && may_end_at(text, end + 1));
        }
        start = end;
    }
}

#[inline]
fn class_at<C: Copy + Into<char>>(text: &[C], place: usize) -> Class {
    text.get(place).map_or(Class::Edge, |character| Class::from_char((*character).into()))
}

fn may_end_at<C: Copy + Into<char>>(text: &[C], place: usize) -> bool {
    // Places before the text wrap around to large numbers.
    let before = [place.wrapping_sub(2), place.wrapping_sub(1)].map(|at| class_at(text, at));
    is_boundary(before, [place, place + 1].map(|at| class_at(text, at))) != Some(false)
}

#[cfg(test)]
mod tests {
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;
    use crate::fold::fold;

    #[track_caller]
    fn agrees(text: &str) {
        let starts: Vec<usize> = text.split_word_bound_indices().map(|(start, _)| start).collect();
        for (place, _) in text.char_indices() {
            if let Some(known) = is_boundary_at(text, place, Class::Edge) {
                assert_eq!(known, starts.contains(&place), "{text:?} at {place}");
            }
        }
    }

    #[test]
    fn boundaries_are_those_of_unicode() {
        for one in '\0'..='\x7F' {
            for other in '\0'..='\x7F' {
                agrees(&format!("a{one}{other}1"));
            }
        }
        // One character of each class, and marks, emoji, letters of Hebrew and of Katakana.
        let some: Vec<char> =
            "a1_:,.' \r\n-\téж한あ日\u{301}\u{200D}\u{AD}\u{1F469}\u{1F1E9}שカ\"".chars().collect();
        for number in 0..some.len().pow(4) {
            let places = (0..4).map(|digit| number / some.len().pow(digit) % some.len());
            agrees(&places.map(|place| some[place]).collect::<String>());
        }
    }

    #[test]
    fn folded_characters_have_the_class_of_their_cases() {
        for character in '\0'..=char::MAX {
            let class = Class::from_char(fold(character));
            if class == Class::Unknown {
                continue;
            }
            for text in ["{}{}", "a{}", "{}a", "1{}", "{}1", "a'{}", "{}'a", "-{}-"] {
                let text = text.replace("{}", &character.to_string());
                let folded: String = text.chars().map(fold).collect();
                let places = text.char_indices().zip(folded.char_indices());
                let starts: Vec<usize> =
                    text.split_word_bound_indices().map(|(start, _)| start).collect();
                for ((place, _), (folded_place, _)) in places {
                    let known = is_boundary_at(&folded, folded_place, Class::Edge);
                    let expected = starts.contains(&place);
                    assert!(known.is_none_or(|known| known == expected), "{text:?} at {place}");
                }
            }
        }
    }

    #[test]
    fn runs_may_be_words() {
        for (text, expected) in [
            ("t don't d'or _a_ t.", "t don- don'- t- d- d'- or- _a_ t t."),
            ("3.14 3. a.b 1a 1,a", "3- 3.- 14- 3 3. a- a.- b- 1a 1 1, a"),
            ("e\u{301}t éñ", "e t éñ"),
        ] {
            let characters: Vec<char> = text.chars().collect();
            let mut found = Vec::new();
            runs(&characters, |run, may_be_word| {
                let word: String = characters[run].iter().collect();
                found.push(if may_be_word() { word } else { word + "-" });
            });
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
