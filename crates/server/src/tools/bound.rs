//! Limits on the size of an answer, in tokens of a model.

use std::ops::Range;

use verbatim_text::excerpt::{self, ELLIPSIS, Room};
use verbatim_text::terminal::is_break;
use verbatim_text::{snippet, up_to};

/// The maximum number of tokens of an answer, as [`tokens`] estimates them.
pub(super) const MOST_TOKENS: usize = 20_000;

/// The maximum size of an answer in bytes, for tools that count bytes: three bytes for each token.
pub(super) const MOST_ANSWER_BYTES: usize = 60_000;

/// The number of tokens reserved for the text around the parts of an answer.
pub(super) const FRAME: usize = 500;

/// Returns an upper estimate of a text's tokens: one for every 3.5 ASCII characters, and one for each
/// other character.
pub(super) fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    (ascii * 2).div_ceil(7) + others
}

/// Returns the beginning of a text with at most `most` tokens; `None` if the whole text fits.
pub(super) fn cut(text: &str, most: usize) -> Option<&str> {
    // A short ASCII text fits without counting its tokens.
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

/// The prefix of each line of a quoted text.
pub(super) const QUOTE: &str = "> ";

/// Returns a text of a conversation with [`QUOTE`] before each line, so that no line can be
/// mistaken for a line of the answer. Nothing else changes, so the original text can be restored.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + text.len() / 32 + QUOTE.len());
    quoted.push_str(QUOTE);
    let mut start = 0;
    for end in breaks(text) {
        if !(text[..end].ends_with('\r') && text[end..].starts_with('\n')) {
            quoted.push_str(&text[start..end]);
            quoted.push_str(QUOTE);
            start = end;
        }
    }
    quoted + &text[start..]
}

/// Returns the end of each line break of a text.
fn breaks(text: &str) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            // The first bytes of all line breaks. Characters with other first bytes are skipped quickly.
            let mut bytes = text.as_bytes()[from..].iter();
            let at = from + bytes.position(|byte| matches!(byte, 0x0A..=0x0D | 0xC2 | 0xE2))?;
            let character = text[at..].chars().next()?;
            from = at + character.len_utf8();
            if is_break(character) {
                return Some(from);
            }
        }
    })
}

/// Returns the beginning of a text that has at most `most` tokens as a quoted text, and its number
/// of tokens.
pub(super) fn quoted_start(text: &str, most: usize) -> (&str, usize) {
    let mut sevenths = 2 * QUOTE.len();
    // A token covers at most four bytes, so a text of more than `4 * most` bytes cannot fit.
    // Counting bytes is faster than decoding characters.
    if text.len() <= 4 * most {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let others = text.chars().count() - ascii;
        let all = sevenths + 2 * ascii + 7 * others + 2 * QUOTE.len() * breaks(text).count();
        if all <= most * 7 {
            return (text, all.div_ceil(7));
        }
    }
    for (at, character) in text.char_indices() {
        let before = sevenths;
        sevenths += if character.is_ascii() { 2 } else { 7 };
        sevenths += if is_break(character) { 2 * QUOTE.len() } else { 0 };
        if sevenths > most * 7 {
            return (&text[..at], before.div_ceil(7));
        }
    }
    (text, sevenths.div_ceil(7))
}

pub(super) use snippet::line;

/// Returns a part of a text on one line around the place with most of some spans. The part is as wide as
/// `most` letters of English, for which a model needs about a quarter as many tokens.
pub(super) fn around(text: &str, spans: &[Range<usize>], most: usize) -> String {
    let best = spans.iter().rev().max_by_key(|first| {
        spans.iter().filter(|it| first.start <= it.start && it.end <= first.start + most).count()
    });
    let found = match best {
        Some(best) => Some(best.clone()),
        // The middle of a passage that was cut out of a message is the part that matched.
        None if text.starts_with(ELLIPSIS) => {
            let middle = up_to(text, text.len() / 2).len();
            Some(middle..middle)
        }
        None => None,
    };
    excerpt::text_around(text, found, Room::line(most * weight("a")), weight)
}

/// Returns the width of a text: half the letters of an English word take a token, and a Chinese character
/// takes a whole one.
fn weight(text: &str) -> usize {
    let weights = text.chars().map(|character| match character {
        '\0'..='\x7F' => 2,
        '\u{80}'..='\u{2E7F}' => 4,
        _ => 7,
    });
    weights.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts_and_their_tokens() {
        let text = "a\r\nb\rc\n\nd\u{85}é\u{2028}中\u{2029}£\u{b}\u{c}😀 end";
        let expected =
            "> a\r\n> b\r> c\n> \n> d\u{85}> é\u{2028}> 中\u{2029}> £\u{b}> \u{c}> 😀 end";
        assert_eq!(quoted(text), expected);
        let sevenths = |text: &str| -> usize {
            let of = |c: char| if c.is_ascii() { 2 } else { 7 } + if is_break(c) { 4 } else { 0 };
            4 + text.chars().map(of).sum::<usize>()
        };
        for most in 0..40 {
            let fits = |end: &usize| sevenths(&text[..*end]) <= most * 7;
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            let Some(end) = ends.take_while(fits).last() else { continue };
            let expected = (&text[..end], sevenths(&text[..end]).div_ceil(7));
            assert_eq!(quoted_start(text, most), expected, "{most}");
        }
    }

    #[test]
    fn tokens_of_scripts() {
        for (text, expected) in [("", 0), ("a", 1), ("abcdefg", 2), ("日本語", 3), ("aé", 2)] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn the_part_with_most_spans() {
        let text = format!(
            "{}the red boat sails, {}red boat red sail{}",
            "to ".repeat(40),
            "go ".repeat(60),
            " on".repeat(40)
        );
        let spans: Vec<Range<usize>> = ["red", "boat", "sail"]
            .iter()
            .flat_map(|word| text.match_indices(word).map(|(at, word)| at..at + word.len()))
            .collect();
        let part = around(&text, &spans, 60);
        assert!(part.contains("red boat red sail") && part.chars().count() <= 62, "{part}");
        assert!(part.starts_with("…go ") && part.ends_with("on…"), "{part}");
        assert_eq!(around("a short text", &[], 60), "a short text");
        let part = around(&text, &[], 60);
        assert!(part.starts_with("to to") && part.ends_with("to…"), "{part}");
        // The middle is within a character.
        assert!(around(&format!("…a{}…", "é".repeat(150)), &[], 60).starts_with("…é"));
        let part = around(&format!("…{}middle{}…", "一".repeat(99), "二".repeat(99)), &[], 60);
        assert!(part.contains("middle") && part.chars().count() < 24, "{part}");
    }

    #[test]
    fn every_line_is_quoted() {
        for (text, expected) in [
            ("", "> "),
            ("a", "> a"),
            (
                "a\n\n**User:**\r\nb\rc\u{2028}d\n",
                "> a\n> \n> **User:**\r\n> b\r> c\u{2028}> d\n> ",
            ),
        ] {
            assert_eq!(quoted(text), expected);
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
