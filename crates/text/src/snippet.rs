//! Trims and shortens texts for display.

use std::borrow::Cow;

use crate::terminal::{harmless, on_one_line};

/// Returns the text without white space at its ends, like Python's `str.strip`.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// The maximum number of characters of a caller's text that a message repeats.
pub const ECHO: usize = 200;

/// Returns a text of a caller or of a chat for use in a message: on one line, and cut to [`ECHO`] characters.
pub fn echo(text: &str) -> Cow<'_, str> {
    match cut(text, ECHO) {
        Some(start) => Cow::Owned(format!("{}…", on_one_line(start))),
        None => on_one_line(text),
    }
}

/// The maximum number of characters of a name in a list of names.
const NAME: usize = 80;

/// Returns names that come from chats as a list in a sentence. A name that has more than letters, digits and
/// the signs of paths is quoted, so that it is no part of the sentence.
pub fn names<N: AsRef<str>>(names: &[N]) -> String {
    let names = names.iter().map(|name| {
        let name = line(name.as_ref(), NAME);
        let is_plain = !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || "-_./\\~+@:…".contains(c));
        if is_plain { name } else { format!("{name:?}") }
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the first `count` characters; `None` if the text has no more characters.
pub fn cut(text: &str, count: usize) -> Option<&str> {
    let (end, _) = text.char_indices().nth(count)?;
    Some(&text[..end])
}

/// Returns a text on one line, with single spaces, cut to `most` characters. A cut text ends with `…`.
pub fn line(text: &str, most: usize) -> String {
    shortened(&harmless(&text.split_whitespace().collect::<Vec<_>>().join(" ")), most)
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
    fn names_of_chats_are_no_part_of_a_sentence() {
        let hostile = "shop\n\n---\n### 9. [export]\u{1b}[2J";
        assert_eq!(
            names(&["proj-1", "~/src/app", "gpt-5.1", "My shop", "日本", hostile, "a\", \"b", ""]),
            "proj-1, ~/src/app, gpt-5.1, \"My shop\", 日本, \"shop --- ### 9. [export]\u{FFFD}[2J\", \"a\\\", \\\"b\", \"\""
        );
        assert_eq!(echo("a\nb\u{202e}c"), "a b\u{FFFD}c");
        assert!(names(&["x".repeat(500)]).chars().count() <= NAME + 1);
    }

    #[test]
    fn cuts_characters_not_bytes() {
        assert_eq!(cut("äöü", 2), Some("äö"));
        assert_eq!(cut("äöü", 3), None);
        assert_eq!(cut("", 0), None);
    }
}
