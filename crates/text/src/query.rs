//! Parses a question that a person typed: words, `"required phrases"` and `-excluded words`.

use super::{
    fold::fold,
    normal::{is_stop_word, is_unspaced, normal},
};

/// A question that a person typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The question without quotation marks and without the excluded words.
    pub text: String,
    /// The folded phrases that a text must contain. Any white space may be between the words of a phrase.
    pub phrases: Vec<String>,
    /// The folded phrases that a text must not contain.
    pub excluded: Vec<String>,
    /// Whether the question consists of only phrases.
    pub is_all_quoted: bool,
    /// Whether the phrases are quoted within a sentence. In this case other texts are found too, but texts
    /// with the phrases come first.
    pub is_sentence: bool,
}

impl Query {
    /// Parses a question. `"quoted"` text is required. `-"quoted"` text and a `-word` of three or more
    /// letters are excluded.
    ///
    /// There are no syntax errors: all other text counts as words. If the whole question would be excluded,
    /// all of its text counts as words.
    pub fn parse(text: &str) -> Query {
        let mut query = Query::default();
        let mut rest = text;
        let mut at_start = true;
        let mut outside = String::new();
        while let Some(character) = rest.chars().next() {
            let after = &rest[character.len_utf8()..];
            let minus = at_start && character == '-';
            let is_quote = |c: char| matches!(c, '"' | '\u{201C}' | '\u{201D}');
            let opening = if minus { after } else { rest };
            let quotation = opening.strip_prefix(is_quote).filter(|_| at_start);
            if let Some((inner, after)) = quotation.and_then(|text| text.split_once(is_quote)) {
                let phrase = phrase_of(inner);
                rest = after;
                if !phrase.is_empty() {
                    if minus {
                        query.excluded.push(phrase);
                    } else {
                        query.text.push_str(inner);
                        query.phrases.push(phrase);
                    }
                }
                query.text.push(' ');
                at_start = true;
                continue;
            }
            if minus && after.starts_with(char::is_alphabetic) {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                let word = after[..end].trim_end_matches(|c: char| c.is_ascii_punctuation());
                // Short words such as `-x` and `-rf` are more likely options of a command.
                if word.len() > 2 {
                    query.excluded.push(phrase_of(word));
                    rest = &after[end..];
                    continue;
                }
            }
            query.text.push(character);
            outside.push(character);
            at_start = character.is_whitespace() || character == '(';
            rest = after;
        }
        if query.text.trim().is_empty() && !query.excluded.is_empty() {
            return Query { text: text.to_owned(), ..Query::default() };
        }
        query.text = query.text.trim().to_owned();
        if !query.phrases.is_empty() {
            query.is_all_quoted = !outside.contains(char::is_alphanumeric);
            let words = outside.split(|c: char| !c.is_alphanumeric() && c != '\'');
            let count = words.filter(|word| is_stop_word(&normal(word))).count();
            query.is_sentence = count > 1 || outside.trim_end().ends_with(['?', '？']);
        }
        query
    }

    /// Returns whether a text contains every required phrase and no excluded one.
    pub fn allows(&self, text: &str) -> bool {
        if self.phrases.is_empty() && self.excluded.is_empty() {
            return true;
        }
        let text = normal_spaces(text);
        self.phrases.iter().all(|phrase| is_phrase_in(phrase, &text))
            && !self.excluded.iter().any(|phrase| is_phrase_in(phrase, &text))
    }
}

/// Returns the words of a phrase, folded.
fn phrase_of(text: &str) -> String {
    normal_spaces(text).trim().to_owned()
}

/// Returns whether a text with [`normal_spaces`] contains the phrase as whole words.
fn is_phrase_in(phrase: &str, text: &str) -> bool {
    let joins = |a: Option<char>, b: Option<char>| {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c));
        letter(a) && letter(b)
    };
    let (first, last) = (phrase.chars().next(), phrase.chars().next_back());
    text.match_indices(phrase).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !joins(before, first) && !joins(last, after)
    })
}

/// Returns the folded text, with one space for each sequence of white space.
fn normal_spaces(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if character.is_whitespace() => {
                if !normal.ends_with(' ') {
                    normal.push(' ');
                }
            }
            '\u{2019}' => normal.push('\''),
            _ => normal.push(fold(character)),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_no_syntax_errors() {
        let phrases = |phrases: &[String]| phrases.join("|");
        for (text, expected, must, must_not) in [
            ("plain words", "plain words", "", ""),
            ("a \"Quoted  Phrase\" b", "a Quoted  Phrase  b", "quoted phrase", ""),
            ("dog -cat well-known -5 --flag", "dog  well-known -5 --flag", "", "cat"),
            ("why rm -rf (-s, watch) -bad, -日本", "why rm -rf (-s, watch)", "", "bad|日本"),
            ("x -\"bad thing\"", "x", "", "bad thing"),
            ("an \"open quote", "an \"open quote", "", ""),
            ("-only", "-only", "", ""),
            ("\"\" )( AND OR * ~ ^ title:x \\", ")( AND OR * ~ ^ title:x \\", "", ""),
            ("“curly quotes”", "curly quotes", "curly quotes", ""),
        ] {
            let query = Query::parse(text);
            assert_eq!(query.text, expected, "{text}");
            assert_eq!(phrases(&query.phrases), must, "{text}");
            assert_eq!(phrases(&query.excluded), must_not, "{text}");
        }
    }

    #[test]
    fn sentences_quote() {
        for (text, is_sentence, is_all_quoted) in [
            ("\"borrow checker\"", false, true),
            ("\"borrow checker\" lifetimes -async", false, false),
            ("what did we say about the \"borrow checker\"", true, false),
            ("Who wrote \"Dune\"?", true, false),
            ("“质”这个字有什么含义？", true, false),
            ("what did we say about it?", false, false),
        ] {
            let query = Query::parse(text);
            let found = (query.is_sentence, query.is_all_quoted);
            assert_eq!(found, (is_sentence, is_all_quoted), "{text}");
        }
    }

    #[test]
    fn phrases_hold_whole_words() {
        let allows = |query: &str, text: &str| Query::parse(query).allows(text);
        assert!(allows("\"borrow checker\"", "The Borrow\n  CHECKER."));
        assert!(!allows("\"cat\"", "concatenate"));
        assert!(allows("\"cat\"", "my_cat.rs"));
        assert!(allows("\"日本\"", "在日本的"));
        assert!(!allows("x -cat", "a Cat, here"));
        assert!(allows("x -cat", "category"));
        assert!(allows("\"Λόγος\"", "Ο ΛΌΓΟΣ."));
        assert!(allows("\"STRAẞE\"", "die Straße"));
        assert!(!allows("\"100%\"", "100 or 1000"));
    }
}
