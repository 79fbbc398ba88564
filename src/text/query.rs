//! A question as a person types it: words, `"what must be there"` and `-what must not`.

use super::normal::{is_stop_word, is_unspaced, normal};

/// A question as a person types it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What is asked, without what is excluded; quotation marks left out.
    pub text: String,
    /// What must be there as it stands.
    pub phrases: Vec<Phrase>,
    /// What must not be there.
    pub excluded: Vec<Phrase>,
    /// Whether nothing but what must be there is asked.
    pub is_all_quoted: bool,
    /// Whether a sentence stands around what is quoted: then that is part of what is said, and to be
    /// found first rather than alone.
    pub is_sentence: bool,
}

impl Query {
    /// Reads a question: `"quoted"` text must be there, a `-word` of three letters or more or
    /// `-"quoted"` must not.
    ///
    /// Nothing is an error: what is neither is words. Where all is excluded, nothing is.
    pub fn parse(text: &str) -> Query {
        let mut query = Query::default();
        let mut rest = text;
        let mut at_start = true;
        let mut outside = String::new();
        while let Some(character) = rest.chars().next() {
            let after = &rest[character.len_utf8()..];
            let minus = at_start && character == '-';
            let quoted = if minus { after } else { rest };
            let is_quote = |c: char| matches!(c, '"' | '\u{201C}' | '\u{201D}');
            let opens = (at_start || minus) && quoted.starts_with(is_quote);
            let inner = opens.then(|| {
                let inner = &quoted[quoted.chars().next().map_or(0, char::len_utf8)..];
                inner.find(is_quote).map(|end| inner.split_at(end))
            });
            if let Some((inner, closing)) = inner.flatten() {
                let phrase = Phrase::new(inner);
                rest = &closing[closing.chars().next().map_or(0, char::len_utf8)..];
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
                // `-x` and `-rf` are rather options of a command that is asked about.
                if word.len() > 2 {
                    query.excluded.push(Phrase::new(word));
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

    /// Whether a text has every phrase and nothing that is excluded.
    pub fn allows(&self, text: &str) -> bool {
        if self.phrases.is_empty() && self.excluded.is_empty() {
            return true;
        }
        let text = even(text);
        self.phrases.iter().all(|phrase| phrase.is_in(&text))
            && !self.excluded.iter().any(|phrase| phrase.is_in(&text))
    }
}

/// Words that stand together: in any case, with any white space between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase(String);

impl Phrase {
    fn new(text: &str) -> Phrase {
        Phrase(even(text).trim().to_owned())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The phrase in lower case.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether it stands in a text that is [`even`], not as a part of longer words.
    fn is_in(&self, text: &str) -> bool {
        let joins = |a: Option<char>, b: Option<char>| {
            let letter =
                |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c));
            letter(a) && letter(b)
        };
        let (first, last) = (self.0.chars().next(), self.0.chars().next_back());
        text.match_indices(&self.0).any(|(at, found)| {
            let before = text[..at].chars().next_back();
            let after = text[at + found.len()..].chars().next();
            !joins(before, first) && !joins(last, after)
        })
    }
}

/// Returns a text in lower case, with one space for any white space.
fn even(text: &str) -> String {
    let mut even = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if character.is_whitespace() => {
                if !even.ends_with(' ') {
                    even.push(' ');
                }
            }
            '\u{2019}' => even.push('\''),
            _ if character.is_ascii() => even.push(character.to_ascii_lowercase()),
            _ => even.extend(character.to_lowercase()),
        }
    }
    even
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_no_syntax_errors() {
        let phrases = |phrases: &[Phrase]| {
            phrases.iter().map(|phrase| phrase.0.clone()).collect::<Vec<_>>().join("|")
        };
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
    }
}
