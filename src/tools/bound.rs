//! How much of a model's context an answer takes.

use crate::text::snippet;

/// Tokens that an answer takes at most, whatever is asked for.
pub(super) const MOST: usize = 20_000;

/// Tokens kept free for what frames the pieces of an answer.
pub(super) const FRAME: usize = 500;

/// Returns about how many tokens a model makes of a text, rather too many than too few: one of
/// 3.5 characters of ASCII, and one of any other character.
pub(super) fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    (ascii * 2).div_ceil(7) + others
}

/// Returns the beginning of a text that takes at most `most` tokens; `None` where that is all of it.
pub(super) fn cut(text: &str, most: usize) -> Option<&str> {
    // Of a text this short it need not be counted.
    if text.len() * 2 <= most * 7 && text.is_ascii() || tokens(text) <= most {
        return None;
    }
    let mut sevenths = 0;
    for (at, character) in text.char_indices() {
        sevenths += if character.is_ascii() { 2 } else { 7 };
        if sevenths > most * 7 {
            return Some(&text[..at]);
        }
    }
    None
}

/// Returns a text on one line, cut to some characters with a mark.
pub(super) fn line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match snippet::cut(&line, most) {
        Some(start) => format!("{start}…"),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_scripts() {
        for (text, expected) in [("", 0), ("a", 1), ("abcdefg", 2), ("日本語", 3), ("aé", 2)] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn cuts() {
        assert_eq!(cut("abcdefg", 2), None);
        assert_eq!(cut("abcdefgh", 2), Some("abcdefg"));
        assert_eq!(cut("日本語", 3), None);
        assert_eq!(cut("日本語", 2), Some("日本"));
        assert_eq!(cut("日本語", 0), Some(""));
        let long = "é and e ".repeat(9999);
        let start = cut(&long, 100).expect("cut");
        assert!(tokens(start) <= 100 && tokens(start) >= 99);
        assert_eq!(line(" a\n b\tc ", 3), "a b…");
    }
}
