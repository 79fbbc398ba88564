//! The words of a question: quotes them in messages, and marks them in results.

use std::{collections::HashSet, ops::Range};

use unicode_segmentation::UnicodeSegmentation;

use verbatim_base::call::Call;
use verbatim_engine::{Engine, Error, Mode, Note, Question};
use verbatim_text::literal::LiteralPattern;
use verbatim_text::matcher::Matchers;
use verbatim_text::query::{PhraseSearch, Query};
use verbatim_text::snippet;
use verbatim_text::words::Tokenizer;

/// The maximum number of marked spans in a text, if the question's text was found inside other words.
const MOST_SPANS: usize = 100;

/// The number of messages in which the whole word of a stemmed term is looked for.
const WITH_TERM: usize = 10;

/// Returns a text in quotation marks, unless it has some, for a message.
pub fn quoted(text: &str) -> String {
    let text = snippet::echo(text);
    if text.contains('"') { text.to_string() } else { format!("\"{text}\"") }
}

/// The terms of a question, stemmed as in ranked search.
pub struct Words {
    tokenizer: Tokenizer,
    terms: HashSet<String>,
    /// The quoted texts of the question.
    phrases: Vec<Matchers>,
    /// The text of the question, if messages with this text were found in place of its words.
    text: Option<LiteralPattern>,
}

impl Words {
    /// Returns the terms of a question's concepts, without those that [`Words::heed`] adds.
    pub fn of<T: AsRef<str>>(concepts: &[T]) -> Words {
        let tokenizer = Tokenizer::default();
        let mut words = Words { tokenizer, terms: HashSet::new(), phrases: Vec::new(), text: None };
        for concept in concepts {
            words.add(&Query::parse(concept.as_ref()));
        }
        words
    }

    fn add(&mut self, query: &Query) {
        self.terms.extend(self.tokenizer.question(&query.outside));
        // Words of a sentence are found even if its quoted text is not.
        if query.is_sentence {
            self.terms.extend(self.tokenizer.question(&query.text));
        }
        let requests = query.phrases.iter().map(|phrase| PhraseSearch::quoted(phrase).request);
        self.phrases.extend(requests.filter_map(|request| Matchers::of(&request).ok()));
    }

    /// Adds the term or the text that, as a note says, was found in place of the question's words.
    pub fn heed(&mut self, note: &Note) {
        match note {
            Note::Slip { meant, .. } => {
                self.terms.extend(self.tokenizer.question(meant));
                self.terms.insert(meant.clone());
            }
            Note::WithinWords { text } | Note::NoWords { text } => {
                self.text = Some(LiteralPattern::new(text, false));
            }
            _ => {}
        }
    }

    /// Returns the first word of the texts whose stemmed term is `term`. If there is none, returns
    /// the first word with a part whose term is `term`.
    pub fn written<'t>(
        &self,
        term: &str,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Option<&'t str> {
        let mut with_part = None;
        for word in texts.into_iter().flat_map(|text| text.unicode_words()) {
            let mut parts = 0;
            let mut has_term = false;
            self.tokenizer.word(word, &mut |other| {
                parts += 1;
                has_term |= other == term;
            });
            if has_term && parts == 1 {
                return Some(word);
            }
            if has_term && with_part.is_none() {
                with_part = Some(word);
            }
        }
        with_part
    }

    /// Returns the note with words as they are written in messages. The given note may have a stemmed term.
    pub fn as_written(&self, note: &Note, engine: &Engine, call: &Call) -> Result<Note, Error> {
        let Note::Slip { word, meant } = note else { return Ok(note.clone()) };
        let concepts = vec![meant.clone()];
        let limit = WITH_TERM;
        let with_term = Question { concepts, mode: Mode::Text, limit, ..Question::default() };
        let found = engine.rank(&with_term, call)?.items;
        let passages = found.iter().map(|one| one.passage.as_str());
        Ok(Note::Slip {
            word: word.clone(),
            meant: self.written(meant, passages).unwrap_or(meant).to_lowercase(),
        })
    }

    /// Returns the spans of the question's words in a text.
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        if let Some(pattern) = &self.text {
            return pattern.first_spans(text, MOST_SPANS);
        }
        let of_phrases = self.phrases.iter();
        let mut spans: Vec<Range<usize>> =
            of_phrases.flat_map(|phrase| phrase.first_spans(text, MOST_SPANS)).collect();
        for (start, word) in text.unicode_word_indices() {
            let mut is_asked = false;
            self.tokenizer.word(word, &mut |term| is_asked |= self.terms.contains(term));
            if is_asked {
                spans.push(start..start + word.len());
            }
        }
        if !self.phrases.is_empty() {
            spans.sort_by_key(|span| span.start);
            let mut end = 0;
            spans.retain(|span| {
                let is_new = span.start >= end;
                end = if is_new { span.end } else { end };
                is_new
            });
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_form() {
        let text = "Borrowing checks: the BORROWED value.";
        let found: Vec<&str> =
            Words::of(&["how to borrow"]).spans(text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(found, ["Borrowing", "BORROWED"]);
        let found = Words::of(&["red fox", "\"the sea\""]).spans("The sea, and red foxes");
        assert_eq!(found, [0..7, 13..16, 17..22]);
        let words = Words::of(&[""]);
        assert_eq!(words.written("queri", ["no", "two queries, a query"]), Some("queries"));
        assert_eq!(words.written("queri", ["none"]), None);
        assert_eq!(words.written("queri", ["useQueryClient", "a query"]), Some("query"));
        assert_eq!(words.written("queri", ["useQueryClient", "or"]), Some("useQueryClient"));
    }
}
