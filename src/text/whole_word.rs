//! Finds a text only where it begins and ends at word boundaries, as Unicode's UAX #29 has them.

use std::ops::{ControlFlow, Range};

use unicode_segmentation::UnicodeSegmentation;

use super::{literal::LiteralPattern, loose::LoosePattern};

/// A matcher for a text that stands for itself, as whole words.
#[derive(Debug)]
pub struct WordPattern(Inner);

#[derive(Debug)]
enum Inner {
    Literal(LiteralPattern),
    Loose(LoosePattern),
}

impl WordPattern {
    /// Prepares a text for being searched for.
    pub fn new(text: &str, case_sensitive: bool) -> WordPattern {
        WordPattern(Inner::Literal(LiteralPattern::new(text, case_sensitive)))
    }

    /// Prepares a text for being searched for whatever accents and width.
    pub fn loose(text: &str, case_sensitive: bool) -> WordPattern {
        WordPattern(Inner::Loose(LoosePattern::new(text, case_sensitive)))
    }

    /// Returns whether the words are somewhere in bytes that are UTF-8.
    pub fn matches(&self, text: &[u8]) -> bool {
        let is_there = match &self.0 {
            Inner::Literal(pattern) => pattern.matches(text),
            Inner::Loose(pattern) => pattern.matches(text),
        };
        is_there && str::from_utf8(text).is_ok_and(|text| !self.first_spans(text, 1).is_empty())
    }

    /// Returns the byte spans of the first `most` matches in a text. They do not overlap.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let mut boundaries = Boundaries { text, line: 0..0, places: Vec::new() };
        let mut spans: Vec<Range<usize>> = Vec::new();
        let mut take = |span: Range<usize>| {
            let is_after = spans.last().is_none_or(|last| last.end <= span.start);
            if is_after && boundaries.has(span.start) && boundaries.has(span.end) {
                spans.push(span);
            }
            if spans.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        match &self.0 {
            _ if most == 0 => {}
            Inner::Literal(pattern) => pattern.find_all(text, take),
            Inner::Loose(pattern) => pattern.find_all(text, |found| match found.is_whole {
                true => take(found.span),
                false => ControlFlow::Continue(()),
            }),
        }
        spans
    }
}

/// The word boundaries of a text, one line at a time: there always is one behind a line feed.
struct Boundaries<'t> {
    text: &'t str,
    /// The line that was looked at last.
    line: Range<usize>,
    /// Its boundaries.
    places: Vec<usize>,
}

impl Boundaries<'_> {
    /// Returns whether there is a boundary at a place.
    fn has(&mut self, place: usize) -> bool {
        if place == 0 || place == self.text.len() {
            return true;
        }
        // The most frequent case, without a look at the line.
        if self.text.as_bytes()[place - 1..=place].iter().all(u8::is_ascii_alphanumeric) {
            return false;
        }
        if !self.line.contains(&place) {
            let start = self.text[..place].rfind('\n').map_or(0, |at| at + 1);
            let end = self.text[place..].find('\n').map_or(self.text.len(), |at| place + at + 1);
            self.line = start..end;
            let words = self.text[start..end].split_word_bound_indices();
            self.places.clear();
            self.places.extend(words.map(|(at, _)| start + at));
        }
        self.places.binary_search(&place).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::bracketed;

    #[test]
    fn words_end_at_boundaries() {
        for (text, query, expected) in [
            ("cat concat cats Cat, cat.", "cat", "[cat] concat cats [Cat], [cat]."),
            ("don't do n't", "don't", "[don't] do n't"),
            ("user_id user id", "user", "user_id [user] id"),
            ("a.b a b", "a", "a.b [a] b"),
            ("aa aaa", "aa", "[aa] aaa"),
            ("日本語", "本", "日[本]語"),
            ("カタカナ カタ", "カタ", "カタカナ [カタ]"),
            ("one two\r\nthree", "two", "one [two]\r\nthree"),
            ("one\ntwo\nthree", "one two", "one\ntwo\nthree"),
            ("x\ny\nz", "y\nz", "x\n[y\nz]"),
            ("naïve Naïveté", "naïve", "[naïve] Naïveté"),
            ("3.14 3 14", "3", "3.14 [3] 14"),
            ("ab", "", "ab"),
        ] {
            let pattern = WordPattern::new(query, false);
            let spans = pattern.first_spans(text, usize::MAX);
            assert_eq!(pattern.matches(text.as_bytes()), !spans.is_empty(), "{text}");
            assert_eq!(bracketed(text, spans), expected, "{query:?}");
        }
        let loose = WordPattern::loose("cafe", false);
        assert_eq!(loose.first_spans("cafés un Café\u{302}!", 9).first(), Some(&(10..17)));
        let letter = WordPattern::loose("f", false);
        assert_eq!(letter.first_spans("ﬁ f", 9).first(), Some(&(4..5)));
    }
}
