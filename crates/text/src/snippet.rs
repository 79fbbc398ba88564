//! Trims and shortens texts for display.

use std::borrow::Cow;

/// Returns the text without white space at its ends, like Python's `str.strip`.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// The maximum number of characters of a caller's text that a message repeats.
pub const ECHO: usize = 200;

/// Returns a caller's text for use in a message, cut to [`ECHO`] characters.
pub fn echo(text: &str) -> Cow<'_, str> {
    match cut(text, ECHO) {
        Some(start) => Cow::Owned(format!("{start}…")),
        None => Cow::Borrowed(text),
    }
}

/// Returns the first `count` characters; `None` if the text has no more characters.
pub fn cut(text: &str, count: usize) -> Option<&str> {
    let (end, _) = text.char_indices().nth(count)?;
    Some(&text[..end])
}

/// Returns a text on one line, cut to `most` characters. A cut text ends with `…`.
pub fn line(text: &str, most: usize) -> String {
    shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Returns a text cut to `most` characters. A cut text ends with `…`.
pub fn shortened(text: &str, most: usize) -> String {
    match cut(text, most) {
        Some(start) => format!("{start}…"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_as_python_does() {
        assert_eq!(trim("\u{1f} \u{85}\u{3000}a b\u{200b}\n"), "a b\u{200b}");
    }

    #[test]
    fn cuts_characters_not_bytes() {
        assert_eq!(cut("äöü", 2), Some("äö"));
        assert_eq!(cut("äöü", 3), None);
        assert_eq!(cut("", 0), None);
    }
}
