//! The matcher of a request: of a `LIKE` pattern, or of a text that stands for itself.

use std::ops::Range;

use super::{like::LikePattern, literal::LiteralPattern, pattern::Pattern};
use crate::model::Request;

/// The matcher of a request's text.
#[derive(Debug)]
pub enum Matcher {
    /// `LIKE '%text%'`.
    Like(LikePattern),
    /// The text itself.
    Literal(LiteralPattern),
}

impl Matcher {
    /// Prepares the text of a request for matching; returns it also parsed, for its grams.
    pub fn of(request: &Request) -> (Matcher, Pattern<'_>) {
        let text = &request.text;
        if request.literal {
            let literal = LiteralPattern::new(text, request.case_sensitive);
            return (Matcher::Literal(literal), Pattern::literal(text));
        }
        let pattern = Pattern::parse(text);
        (Matcher::Like(LikePattern::new(&pattern, request.case_sensitive)), pattern)
    }

    /// Returns whether every text matches.
    pub fn matches_all(&self) -> bool {
        matches!(self, Matcher::Like(pattern) if pattern.matches_all())
    }

    /// Returns the byte spans of the first `most` matches in a text.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        match self {
            Matcher::Like(pattern) => pattern.first_spans(text, most),
            Matcher::Literal(pattern) => pattern.first_spans(text, most),
        }
    }

    /// Returns whether JSON parts also match as they are stored, not only by the text they hold.
    pub fn matches_stored_parts(&self) -> bool {
        matches!(self, Matcher::Like(_))
    }

    /// Returns whether a text matches that is [`super::like::is_regular`].
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Matcher::Like(pattern) => pattern.matches(text),
            Matcher::Literal(pattern) => pattern.matches(text),
        }
    }

    /// Returns whether any bytes match.
    pub fn matches_irregular(&self, text: &[u8]) -> bool {
        match self {
            Matcher::Like(pattern) => pattern.matches_irregular(text),
            Matcher::Literal(pattern) => pattern.matches_irregular(text),
        }
    }
}
