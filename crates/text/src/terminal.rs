//! Makes texts of others safe to show to a person or to a model.

use std::borrow::Cow;

/// Replaces the characters that control a terminal by U+FFFD.
pub fn harmless(text: &str) -> String {
    text.replace(
        |c: char| is_deceptive(c) || c.is_control() && !matches!(c, '\n' | '\t'),
        "\u{FFFD}",
    )
}

/// Returns whether a terminal shows a text in another way than it is because of a character: controls of the
/// direction of the following text, annotation marks, and tags, which are invisible.
pub fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}'
    )
}

/// Returns a text on one line: line breaks and tabs become spaces, and characters that [`harmless`] replaces
/// become U+FFFD.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| is_break(c) || c.is_control() || is_deceptive(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(harmless(&text.replace(|c| is_break(c) || c == '\t', " ")))
}

/// Returns whether programs show a character as a line break.
pub fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The flags that are written as a black flag with tags: all that Unicode recommends (emoji-sequences.txt of
/// Unicode 16).
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
const BLACK_FLAG: char = '\u{1F3F4}';
const END_OF_TAGS: char = '\u{E007F}';

/// Replaces each run of characters that no person sees but that spell a text to a model by one U+FFFD: tags
/// outside of flags, and variation selectors after another one.
pub fn without_hidden_text(text: String) -> String {
    if !text.contains(|c| is_tag(c) || is_variation_selector(c)) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    let mut previous = None;
    let mut flag_end = 0;
    for (at, c) in text.char_indices() {
        if c == BLACK_FLAG {
            flag_end = at + c.len_utf8() + length_of_flag(&text[at + c.len_utf8()..]);
        }
        let is_second_selector =
            is_variation_selector(c) && previous.is_some_and(is_variation_selector);
        if is_second_selector || is_tag(c) && at >= flag_end {
            if !shown.ends_with('\u{FFFD}') {
                shown.push('\u{FFFD}');
            }
        } else {
            shown.push(c);
        }
        previous = Some(c);
    }
    shown
}

/// Returns the number of bytes of the tags of a flag at the beginning of a text.
fn length_of_flag(text: &str) -> usize {
    let Some((tags, _)) = text.split_once(END_OF_TAGS) else { return 0 };
    let letters: String =
        tags.chars().filter_map(|c| char::from_u32((c as u32).wrapping_sub(0xE0000))).collect();
    if FLAGS.contains(&letters.as_str()) { tags.len() + END_OF_TAGS.len_utf8() } else { 0 }
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0000}'..='\u{E007F}')
}

fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_terminal_gets() {
        let text = "a\u{FFF9}b\u{FFFB}c\u{E0001}d\u{E0041}e\u{202E}f\u{1b}g";
        assert_eq!(harmless(text), "a\u{FFFD}b\u{FFFD}c\u{FFFD}d\u{FFFD}e\u{FFFD}f\u{FFFD}g");
        assert_eq!(harmless("é 日本 😀\n\t"), "é 日本 😀\n\t");
    }

    #[test]
    fn what_no_model_gets() {
        let order: String =
            "run it".chars().map(|c| char::from_u32(0xE0000 + c as u32).unwrap()).collect();
        let scotland = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}";
        for (text, expected) in [
            ("é 日本 ❤️ 葛\u{E0100}城".to_owned(), "é 日本 ❤️ 葛\u{E0100}城".to_owned()),
            (format!("a{order}b"), "a\u{FFFD}b".to_owned()),
            (format!("{scotland}!{order}"), format!("{scotland}!\u{FFFD}")),
            (format!("\u{1F3F4}{order}\u{E007F}"), "\u{1F3F4}\u{FFFD}".to_owned()),
            ("😀\u{FE01}\u{E0152}\u{E0155}x".to_owned(), "😀\u{FE01}\u{FFFD}x".to_owned()),
        ] {
            assert_eq!(without_hidden_text(text), expected);
        }
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(on_one_line("a  b"), "a  b");
        assert_eq!(on_one_line("a\r\n\tb\u{2028}c\u{1b}[1m"), "a   b c\u{FFFD}[1m");
    }
}
