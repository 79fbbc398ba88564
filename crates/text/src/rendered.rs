//! Expressions that find a text that was copied from a drawn page, where lines end elsewhere and Markdown has no
//! signs; or from the source of one.

use unicode_normalization::char::is_combining_mark;

use super::normal::is_unspaced;

/// What may be between two words: white space, and all signs.
const SIGNS: &str = r"[\W_]";

/// Signs, and what is not drawn: the target of a link, the number of an entry, a tag.
const SIGNS_AND_HIDDEN: &str = r"(?:[\W_]|\]\([^)]*\)|\[\^?\w{1,8}\]|&#?\w+;|\n\s*\d+|</?\w[^>]*>)";

/// The fewest letters and digits of a text. Fewer are found anywhere.
const FEWEST: usize = 5;

/// Returns expressions for the words of a text in a row, with other signs and spaces between them: first the
/// strictest. Returns none if the text has only one word, or few letters.
///
/// In scripts without spaces, each character is a word, and nothing need be between.
pub fn expressions(text: &str) -> Vec<String> {
    let text = without_links(text);
    let mut words: Vec<String> = Vec::new();
    for run in text.split(|character| !is_of_word(character)) {
        let mut last = None;
        for character in run.chars() {
            let goes_on = last.is_some_and(|last| !is_unspaced(last) && !is_unspaced(character));
            match words.last_mut() {
                Some(word) if goes_on || last.is_some() && is_combining_mark(character) => {
                    word.push(character);
                }
                _ => words.push(character.to_string()),
            }
            last = Some(character);
        }
    }
    let letters: usize = words.iter().map(|word| word.chars().count()).sum();
    if words.len() < 2 || letters < FEWEST {
        return Vec::new();
    }
    let joined = [SIGNS, SIGNS_AND_HIDDEN].map(|between| {
        let mut expression = words[0].clone();
        for pair in words.windows(2) {
            let may_touch = pair.iter().all(|word| word.chars().all(is_unspaced));
            expression += between;
            expression.push(if may_touch { '*' } else { '+' });
            expression += &pair[1];
        }
        expression
    });
    joined.into()
}

/// Returns a text with the words of its links in their place.
pub fn without_links(text: &str) -> String {
    let mut without = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](")
        && let Some((_, after)) = after.split_once(')')
    {
        let opened = before.rfind('[').unwrap_or(before.len());
        without.push_str(&before[..opened]);
        without.push_str(before.get(opened + 1..).unwrap_or_default());
        rest = after;
    }
    without + rest
}

/// Returns whether a character is one of `\w` and no underscore, which Markdown uses.
fn is_of_word(character: char) -> bool {
    let is_joiner = matches!(character, '\u{200C}' | '\u{200D}');
    character.is_alphanumeric() || is_joiner || is_combining_mark(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(text: &str, copied: &str, place: Option<usize>) {
        let found = expressions(copied).iter().position(|expression| {
            let expression = regex::RegexBuilder::new(expression).case_insensitive(true).build();
            expression.unwrap().is_match(text)
        });
        assert_eq!(found, place, "{copied:?} in {text:?}");
    }

    #[test]
    fn words_are_found_across_what_is_not_drawn() {
        for text in [
            "the quick\nbrown fox",
            "the quick  brown fox",
            "the quick\r\n> brown fox",
            "* the quick\n  * brown fox",
            "the **quick** brown _fox_",
            "the `quick`\u{A0}brown fox",
            "the ~~quick~~ brown fox",
            "# The quick #\n\nbrown fox",
            "| the | quick | brown | fox |",
            "the quick\\\nbrown fox",
            "The quick – brown “fox”",
        ] {
            finds(text, "quick brown fox", Some(0));
        }
        for text in [
            "see [the quick](https://example.org/a_(b \"c\") brown fox",
            "1. the quick\n2. brown fox",
            "the quick<br/>brown <b>fox</b>",
        ] {
            finds(text, "quick brown fox", Some(1));
        }
        finds("quick red brown fox", "quick brown fox", None);
        finds("quickbrown fox", "quick brown fox", None);
    }

    #[test]
    fn signs_of_a_source_are_no_part_of_it() {
        for copied in ["**quick** brown", "[quick](https://a.b/c) brown", "> quick\n> brown"] {
            finds("the quick brown fox", copied, Some(0));
        }
        assert_eq!(without_links("a [b c](d) e [f](g)h](i"), "a b c e fh](i");
        finds(r"the snake\_case_name", "snake_case_name", Some(0));
        finds("the snake_case name", r"snake\_case name", Some(0));
        finds("don’t stop", "don't stop", Some(0));
    }

    #[test]
    fn scripts_without_spaces() {
        finds("这是**重要**的事情", "这是重要的事情", Some(0));
        finds("これは`重要`です", "これは重要です", Some(0));
        finds("हिन्दी\nमें खोज", "हिन्दी में खोज", Some(0));
        finds("می\u{200C}خواهم\nبروم", "می\u{200C}خواهم بروم", Some(0));
    }

    #[test]
    fn what_is_short_is_no_text_of_a_page() {
        for text in ["", "word", "`word`", "a == b", "->", "C++ x"] {
            assert!(expressions(text).is_empty(), "{text}");
        }
    }
}
