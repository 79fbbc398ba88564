//! The request for the messages with a question's words, for sources without an index.

use std::cmp::Reverse;

use verbatim_base::model::{Matching, Request};
use verbatim_text::query::Query;
use verbatim_text::words::{Token, Tokenizer, is_character, tokens};

/// Maximum number of words that are searched for: the longest, because they are the rarest.
const MOST_WORDS: usize = 16;

/// Length in letters up to which a word often occurs within other words.
const SHORT_WORD: usize = 3;

/// How many of the words a message must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedWords {
    All,
    /// One of them. Short words only count if there are no longer ones.
    Any,
}

/// The request for the messages with the words of a concept.
pub(super) struct WordRequest {
    /// The request; `None` if the concept has no words to search for.
    pub(super) request: Option<Request>,
    /// What the text of each message must have, and must not have; `None` if nothing.
    pub(super) required: Option<Query>,
}

impl WordRequest {
    pub(super) fn new(concept: &str, words: WantedWords) -> WordRequest {
        let query = Query::parse(concept);
        // What a sentence quotes is words like the others.
        let is_quoted = !query.is_sentence || query.is_all_quoted;
        let phrases = if is_quoted { query.phrases } else { Vec::new() };
        let mut texts = words_of(if is_quoted { &query.outside } else { &query.text });
        texts.sort_by_key(|word| Reverse(word.chars().count()));
        texts.truncate(MOST_WORDS);
        let mut request = Request { matching: Matching::Literal, ..Request::default() };
        if words == WantedWords::Any {
            let longest = texts.first().map_or(0, |word| word.chars().count());
            texts.retain(|word| {
                longest <= SHORT_WORD || !word.is_ascii() || word.len() > SHORT_WORD
            });
            request.or = texts.split_off(texts.len().min(1));
        }
        // Every text with a phrase has each part of it.
        let parts = phrases.iter().filter_map(|it| it.split([' ', '\'']).max_by_key(|it| it.len()));
        let parts = parts.filter(|part| !part.is_empty()).map(str::to_owned);
        let mut texts = texts.into_iter().chain(parts);
        request.text = texts.next().unwrap_or_default();
        request.and = texts.collect();
        let required = Query {
            phrases,
            excluded: query.excluded,
            excluded_phrases: query.excluded_phrases,
            ..Query::default()
        };
        WordRequest {
            request: (!request.text.is_empty()).then_some(request),
            required: (!required.phrases.is_empty() || required.excludes()).then_some(required),
        }
    }
}

/// Returns the content words of a text, each once. A word is replaced by its stem if it begins with the stem.
fn words_of(text: &str) -> Vec<String> {
    let tokenizer = Tokenizer::default();
    let mut words: Vec<String> = Vec::new();
    tokens(text, |token| match token {
        Token::Word(word) => {
            if let Some(stem) = tokenizer.question(word).into_iter().next() {
                let word = word.to_lowercase();
                let is_start = word.starts_with(&stem) && stem.chars().count() > SHORT_WORD;
                words.push(if is_start { stem } else { word });
            }
        }
        Token::Run(run) => {
            let terms = tokenizer.question(run);
            let is_single = terms.len() == 1;
            words.extend(terms.into_iter().filter(|term| is_single || !is_character(term)));
        }
    });
    let mut seen = std::collections::HashSet::new();
    words.retain(|word| seen.insert(word.clone()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_searched_for_without_an_index() {
        let parts = |request: WordRequest| {
            let Some(Request { text, or, and, .. }) = request.request else {
                return [String::new(), String::new(), String::new()];
            };
            [text, or.join("|"), and.join("|")]
        };
        for (concept, all, any) in [
            ("how do turtles swim?", ["turtl", "", "swim"], ["turtl", "swim", ""]),
            ("the AI law", ["law", "", "ai"], ["law", "ai", ""]),
            ("the turtle is at sea", ["turtl", "", "sea"], ["turtl", "", ""]),
            ("reef \"sea  turtle\" -bay", ["reef", "", "turtle"], ["reef", "", "turtle"]),
            ("what did the \"sea turtle\" do?", ["turtl", "", "sea"], ["turtl", "", ""]),
            ("\"sea turtle\"", ["turtle", "", ""], ["turtle", "", ""]),
            ("東京タワー", ["東京", "", "京タ|タワ|ワー"], ["東京", "京タ|タワ|ワー", ""]),
            ("the", ["", "", ""], ["", "", ""]),
        ] {
            assert_eq!(parts(WordRequest::new(concept, WantedWords::All)), all, "{concept}");
            assert_eq!(parts(WordRequest::new(concept, WantedWords::Any)), any, "{concept}");
        }
        let required =
            WordRequest::new("reef \"sea turtle\" -bay", WantedWords::All).required.unwrap();
        assert!(required.allows("The sea\nturtle of the reef, embayed"));
        assert!(!required.allows("the sea turtle in the bay"));
        assert!(!required.allows("a turtle in the sea"));
        assert!(WordRequest::new("reef turtle", WantedWords::All).required.is_none());
    }
}
