//! Where a text matches a question.

use std::{fmt, ops::Range};

use super::words::Words;
use verbatim_base::model::Request;
use verbatim_engine::{Error, IndexError, Result};
use verbatim_text::matcher::Matchers;

/// What is marked in texts.
#[derive(Default)]
pub enum Marks {
    /// Nothing.
    #[default]
    None,
    /// The texts of an exact search.
    Texts(Matchers),
    /// The words of a question.
    Words(Words),
}

impl Marks {
    /// Returns the marks of an exact search. Fails if a text is no expression, or too long.
    pub fn of(request: &Request) -> Result<Marks> {
        let matchers = Matchers::of(request);
        Ok(Marks::Texts(matchers.map_err(|error| Error::from(IndexError::from(error)))?))
    }

    /// Returns whether only a title matches, and not the content below it.
    pub fn has_only_title(&self, content: &str, title: &str) -> bool {
        match self {
            Marks::Texts(matchers) => matchers.has_only_title(content, title),
            words => words.spans(content, 1).is_empty() && !words.spans(title, 1).is_empty(),
        }
    }

    /// Returns the ranges of the first matches in a text, at most `most`.
    pub fn spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        match self {
            Marks::None => Vec::new(),
            Marks::Texts(matchers) => matchers.first_spans(text, most),
            Marks::Words(words) => {
                let mut spans = words.spans(text);
                spans.truncate(most);
                spans
            }
        }
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Marks")
    }
}
