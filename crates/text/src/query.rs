//! Parses a question that a person typed: words, `"required phrases"` and `-excluded words`.

use std::{cmp::Reverse, collections::HashSet};

use super::fold::fold;
use super::normal::{is_stop_word, is_unspaced, normal};
use verbatim_base::model::{Matching, Request};

const QUOTES: [char; 3] = ['"', '\u{201C}', '\u{201D}'];

/// A question that a person typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The question without quotation marks and without the excluded words.
    pub text: String,
    /// The part of the question outside of quotation marks.
    pub outside: String,
    /// The folded texts that a text must contain. A space in one stands for any white space.
    pub phrases: Vec<String>,
    /// The folded words that a text must not contain as whole words.
    pub excluded: Vec<String>,
    /// The folded texts that a text must not contain. A space in one stands for any white space.
    pub excluded_phrases: Vec<String>,
    /// Whether the question consists of only phrases.
    pub is_all_quoted: bool,
    /// Whether the phrases are quoted within a sentence. In this case other texts are found too, but texts
    /// with the phrases come first.
    pub is_sentence: bool,
}

impl Query {
    /// Parses a question. `"quoted"` text is required, also as a part of a word. `-"quoted"` text and a
    /// whole `-word` of three or more letters are excluded.
    ///
    /// There are no syntax errors: all other text counts as words. If the whole question would be excluded,
    /// all of its text counts as words.
    pub fn parse(text: &str) -> Query {
        let mut query = Query::default();
        let mut rest = text;
        let mut at_start = true;
        while let Some(character) = rest.chars().next() {
            let after = &rest[character.len_utf8()..];
            let minus = at_start && character == '-';
            let opening = if minus { after } else { rest };
            let quotation = opening.strip_prefix(QUOTES).filter(|_| at_start);
            if let Some((inner, after)) = quotation.and_then(|text| text.split_once(QUOTES)) {
                let phrase = normalise_phrase(inner);
                rest = after;
                if !phrase.trim().is_empty() {
                    if minus {
                        query.excluded_phrases.push(phrase);
                    } else {
                        query.text.push_str(inner);
                        query.phrases.push(phrase);
                    }
                }
                query.text.push(' ');
                query.outside.push(' ');
                at_start = true;
                continue;
            }
            if minus && after.starts_with(char::is_alphabetic) {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                let word = after[..end].trim_end_matches(|c: char| c.is_ascii_punctuation());
                // Short words such as `-x` and `-rf` are more likely options of a command.
                if word.len() > 2 {
                    query.excluded.push(normalise_phrase(word));
                    rest = &after[end..];
                    continue;
                }
            }
            query.text.push(character);
            query.outside.push(character);
            at_start = character.is_whitespace() || character == '(';
            rest = after;
        }
        if query.text.trim().is_empty() && query.excludes() {
            let text = text.to_owned();
            return Query { outside: text.clone(), text, ..Query::default() };
        }
        query.text = query.text.trim().to_owned();
        for pieces in [&mut query.phrases, &mut query.excluded, &mut query.excluded_phrases] {
            let mut known = HashSet::new();
            pieces.retain(|piece| known.insert(piece.clone()));
        }
        if !query.phrases.is_empty() {
            query.is_all_quoted = !query.outside.contains(char::is_alphanumeric);
            let words = query.outside.split(|c: char| !c.is_alphanumeric() && c != '\'');
            let count = words.filter(|word| is_stop_word(&normal(word))).count();
            query.is_sentence = count > 1 || query.outside.trim_end().ends_with(['?', '？']);
        }
        query
    }

    /// Returns the number of texts that must be looked for in messages as they are.
    pub fn pieces(&self) -> usize {
        self.phrases.len() + self.excluded.len() + self.excluded_phrases.len()
    }

    /// Returns whether the question excludes anything.
    pub fn excludes(&self) -> bool {
        !self.excluded.is_empty() || !self.excluded_phrases.is_empty()
    }

    /// Returns whether a text contains every required phrase, and nothing that is excluded.
    pub fn allows(&self, text: &str) -> bool {
        if self.phrases.is_empty() && !self.excludes() {
            return true;
        }
        let text = normalise_phrase(text);
        self.phrases.iter().all(|phrase| text.contains(phrase))
            && !self.excluded_phrases.iter().any(|phrase| text.contains(phrase))
            && !self.excluded.iter().any(|word| is_word_in(word, &text))
    }
}

/// An exact search for messages with a phrase.
#[derive(Clone, Debug)]
pub struct PhraseSearch {
    /// What to search for.
    pub request: Request,
    /// What each found text must still be checked for.
    pub required: Option<Query>,
}

impl PhraseSearch {
    /// Returns the search for a phrase of a [`Query`].
    pub fn quoted(phrase: &str) -> PhraseSearch {
        let (request, is_exact) = phrase_request(phrase);
        let required = Query { phrases: vec![phrase.to_owned()], ..Query::default() };
        PhraseSearch { request, required: if is_exact { None } else { Some(required) } }
    }

    /// Returns the searches for a concept. A conversation contains the concept if each finds something.
    pub fn all_of(concept: &str) -> Vec<PhraseSearch> {
        let query = Query::parse(concept);
        let mut texts: Vec<&str> = if query.phrases.is_empty() && !query.excludes() {
            vec![concept]
        } else if query.phrases.is_empty() {
            vec![query.text.trim()]
        } else if query.is_all_quoted {
            Vec::new()
        } else {
            query.outside.split_whitespace().collect()
        };
        let mut known = HashSet::new();
        texts.retain(|text| !text.is_empty() && known.insert(*text));
        let texts = texts.into_iter().map(PhraseSearch::literal);
        texts.chain(query.phrases.iter().map(|phrase| PhraseSearch::quoted(phrase))).collect()
    }

    /// Returns the search for a text as it is, in any letter case.
    pub fn literal(text: &str) -> PhraseSearch {
        let text = text.to_owned();
        let request = Request { text, matching: Matching::Literal, ..Request::default() };
        PhraseSearch { request, required: None }
    }
}

/// Number of spaces and apostrophes in a phrase above which its [`phrase_request`] is not a regular expression.
const MOST_GAPS: usize = 100;

const MOST_PARTS: usize = 8;

/// Returns the exact search for a phrase of a [`Query`], and whether all texts that it finds contain the
/// phrase. A search for a very long phrase finds texts that have its longest parts.
fn phrase_request(phrase: &str) -> (Request, bool) {
    let gaps = phrase.matches([' ', '\'']).count();
    if gaps > MOST_GAPS {
        let mut parts: Vec<&str> = phrase.split([' ', '\'']).collect();
        parts.sort_by_key(|part| Reverse(part.len()));
        let mut parts = parts.into_iter().filter(|part| !part.is_empty()).map(str::to_owned);
        let text = parts.next().unwrap_or_default();
        let and = parts.take(MOST_PARTS - 1).collect();
        let matching = Matching::Literal;
        return (Request { text, and, matching, ..Request::default() }, false);
    }
    let mut text = phrase.to_owned();
    let mut matching = Matching::Literal;
    if gaps > 0 {
        text = regex::escape(phrase).replace(' ', r"\s+").replace('\'', "['\u{2019}]");
        matching = Matching::Regex;
    }
    (Request { text, matching, ..Request::default() }, true)
}

/// Returns whether a text whose white space is single spaces contains a phrase as whole words.
pub fn is_word_in(phrase: &str, text: &str) -> bool {
    text.match_indices(phrase).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let is_cut = joins(before) && joins(phrase.chars().next())
            || joins(phrase.chars().next_back()) && joins(after);
        !is_cut
    })
}

fn joins(character: Option<char>) -> bool {
    character.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c))
}

/// Returns a text as a phrase of a [`Query`]: folded, with one space for each sequence of white space.
pub fn normalise_phrase(text: &str) -> String {
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
    use crate::matcher::Matchers;

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
            ("\"a\" -bad \"a\" -bad \"b\"", "a   a   b", "a|b", "bad"),
        ] {
            let query = Query::parse(text);
            assert_eq!(query.text, expected, "{text}");
            assert_eq!(phrases(&query.phrases), must, "{text}");
            let excluded = [query.excluded, query.excluded_phrases].concat();
            assert_eq!(phrases(&excluded), must_not, "{text}");
        }
    }

    #[test]
    fn what_a_concept_requires() {
        for (concept, expected) in [
            ("React Router", &["React Router"][..]),
            ("\"JWT tokens\"", &[r"jwt\s+tokens"]),
            ("\"kens\" -Angular", &["kens"]),
            ("router the router \"JWT tokens\"", &["router", "the", r"jwt\s+tokens"]),
            ("router -Angular", &["router"]),
        ] {
            let searches = PhraseSearch::all_of(concept).into_iter();
            let texts: Vec<String> = searches.map(|it| it.request.text).collect();
            assert_eq!(texts, expected, "{concept}");
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
    fn quoted_text_is_any_part_of_a_text_and_a_minus_word_is_whole() {
        let allows = |query: &str, text: &str| Query::parse(query).allows(text);
        for (query, text, expected) in [
            ("\"borrow checker\"", "The Borrow\n  CHECKER.", true),
            ("\"cat\"", "concatenate", true),
            ("\"ood. Can y\"", "Good. Can you", true),
            ("\"ood. Can y\"", "Good, can you", false),
            ("\", (x) => {\"", "map(a, (x) => { b", true),
            ("\"日本\"", "在日本的", true),
            ("\"Λόγος\"", "Ο ΛΌΓΟΣ.", true),
            ("\"STRAẞE\"", "die Straße", true),
            ("\"it's\" \"100%\"", "it\u{2019}s 100% sure", true),
            ("\"100%\"", "100 or 1000", false),
            ("\" cat\"", "bobcat", false),
            ("x -cat", "a Cat, here", false),
            ("x -cat", "category", true),
            ("x -\"cat\"", "category", false),
        ] {
            assert_eq!(allows(query, text), expected, "{query} {text}");
            let parsed = Query::parse(query);
            if !parsed.excludes() {
                let finds = |phrase: &String| {
                    let (request, _) = phrase_request(phrase);
                    Matchers::of(&request).expect("it is valid").accept_text(text)
                };
                assert_eq!(parsed.phrases.iter().all(finds), expected, "{query} {text}");
            }
        }
        let long = "a long text ".repeat(100);
        let (request, is_exact) = phrase_request(&normalise_phrase(&long));
        assert!(!is_exact && Matchers::of(&request).expect("it is valid").accept_text(&long));
    }
}
