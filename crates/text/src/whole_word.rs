//! Finds a text only where it begins and ends at word boundaries, as defined in Unicode's UAX #29.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use unicode_segmentation::{UWordBoundIndices, UnicodeSegmentation};

use super::literal::LiteralPattern;
use super::loose::LoosePattern;
use super::word_break::{Class, is_boundary_at};

/// A matcher for a literal text as whole words.
#[derive(Debug)]
pub struct WordPattern(Inner);

#[derive(Debug)]
enum Inner {
    Literal(LiteralPattern),
    Loose(LoosePattern),
}

impl WordPattern {
    /// Prepares a search for a text, in any letter case unless `case_sensitive` is set.
    pub fn new(text: &str, case_sensitive: bool) -> WordPattern {
        WordPattern(Inner::Literal(LiteralPattern::new(text, case_sensitive)))
    }

    /// Prepares a search for a text that ignores accents and width.
    pub fn loose(text: &str, case_sensitive: bool) -> WordPattern {
        WordPattern(Inner::Loose(LoosePattern::new(text, case_sensitive)))
    }

    /// Returns whether the words occur in `text`, which should be UTF-8.
    pub fn matches(&self, text: &[u8]) -> bool {
        let is_there = match &self.0 {
            Inner::Literal(pattern) => pattern.matches(text),
            Inner::Loose(pattern) => pattern.matches(text),
        };
        is_there
            && simdutf8::basic::from_utf8(text)
                .is_ok_and(|text| !self.first_spans(text, 1).is_empty())
    }

    /// Returns whether a text has the words, decided by a part of it. If the text has them, the part must
    /// contain them. `None` if only the whole text can tell.
    pub fn matches_part(&self, part: &[u8]) -> Option<bool> {
        let (Inner::Literal(pattern), Ok(text)) = (&self.0, str::from_utf8(part)) else {
            return None;
        };
        let mut answer = Some(false);
        pattern.find_all(text, |span| {
            match [span.start, span.end].map(|place| is_boundary_at(text, place, Class::Unknown)) {
                [Some(false), _] | [_, Some(false)] => {
                    return ControlFlow::Continue(next_start(text, span.start));
                }
                [Some(true), Some(true)] => answer = Some(true),
                _ => answer = None,
            }
            ControlFlow::Break(())
        });
        answer
    }

    /// Returns the byte spans of the first `most` matches in a text. They do not overlap.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let mut boundaries = Boundaries::new(text);
        let mut spans: Vec<Range<usize>> = Vec::new();
        match &self.0 {
            _ if most == 0 => {}
            Inner::Literal(pattern) => pattern.find_all(text, |span| {
                if !boundaries.has_both(&span) {
                    return ControlFlow::Continue(boundaries.next_start_after(span.start));
                }
                let end = span.end;
                spans.push(span);
                if spans.len() < most { ControlFlow::Continue(end) } else { ControlFlow::Break(()) }
            }),
            Inner::Loose(pattern) => pattern.find_all(text, |found| {
                let is_after = spans.last().is_none_or(|last| last.end <= found.span.start);
                if found.is_whole && is_after && boundaries.has_both(&found.span) {
                    spans.push(found.span);
                }
                if spans.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }),
        }
        spans
    }
}

fn next_start(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    // There is no boundary within a run of letters and digits.
    let run = rest.find(|it| !Class::from_char(it).is_of_word()).unwrap_or(rest.len());
    start + run.max(rest.chars().next().map_or(0, char::len_utf8))
}

/// The word boundaries of a text. Those that depend on more than the characters beside them are found once
/// and only where they are needed. The text may be one line of 500 MB, so only the boundaries between the
/// beginning and the end of a match are kept.
struct Boundaries<'t> {
    text: &'t str,
    /// The place where `words` begins. It may be any start of a line, because a boundary is there.
    start: usize,
    words: UWordBoundIndices<'t>,
    /// The boundaries from the beginning of the last match to `walked`.
    seen: VecDeque<usize>,
    walked: usize,
}

impl<'t> Boundaries<'t> {
    fn new(text: &'t str) -> Boundaries<'t> {
        let words = text.split_word_bound_indices();
        Boundaries { text, start: 0, words, seen: VecDeque::from([0]), walked: 0 }
    }

    /// Returns whether a match begins and ends at a boundary. Matches come in the order in which
    /// they begin.
    fn has_both(&mut self, span: &Range<usize>) -> bool {
        match [span.start, span.end].map(|place| is_boundary_at(self.text, place, Class::Edge)) {
            [Some(false), _] | [_, Some(false)] => return false,
            [Some(true), Some(true)] => return true,
            _ => {}
        }
        if span.start > self.walked {
            let skipped = &self.text.as_bytes()[self.walked..span.start];
            if let Some(at) = memchr::memrchr(b'\n', skipped) {
                self.walked += at + 1;
                self.start = self.walked;
                self.words = self.text[self.start..].split_word_bound_indices();
                self.seen.clear();
                self.seen.push_back(self.start);
            }
        }
        while self.seen.front().is_some_and(|place| *place < span.start) && self.seen.len() > 1 {
            self.seen.pop_front();
        }
        self.walk(span.start, span.start);
        if self.seen.binary_search(&span.start).is_err() {
            return false;
        }
        self.walk(span.end, span.start);
        self.seen.binary_search(&span.end).is_ok()
    }

    /// Returns the next place where a match may begin, if the match at `start` lacks a boundary.
    fn next_start_after(&self, start: usize) -> usize {
        if let Some(next) = self.seen.get(self.seen.partition_point(|place| *place <= start)) {
            return *next;
        }
        next_start(self.text, start)
    }

    /// Computes boundaries until all boundaries from `from` to `place` are known.
    fn walk(&mut self, place: usize, from: usize) {
        while self.walked < place
            && let Some((at, word)) = self.words.next()
        {
            self.walked = self.start + at + word.len();
            if self.walked <= from {
                self.seen.clear();
            }
            self.seen.push_back(self.walked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bracketed;

    #[test]
    fn long_lines_and_repeated_letters_are_walked_once() {
        // The text is two long words of one repeated letter, with a match at the very end.
        for letter in ["a", "é"] {
            let text = letter.repeat(300_000) + " " + &letter.repeat(20_000);
            let pattern = WordPattern::new(&letter.repeat(20_000), false);
            let found = pattern.first_spans(&text, 2);
            let expected = 300_000 * letter.len() + 1..text.len();
            assert_eq!(found, vec![expected]);
        }
        let text = "ab ".repeat(1_000_000);
        let mut boundaries = Boundaries::new(&text);
        for start in (0..text.len()).step_by(300) {
            assert!(boundaries.has_both(&(start..start + 2)));
            assert!(boundaries.seen.len() < 300, "{}", boundaries.seen.len());
        }
        let mut boundaries = Boundaries::new(&text);
        assert!(boundaries.has_both(&(text.len() - 3..text.len() - 1)));
        assert!(boundaries.seen.capacity() < 300, "{}", boundaries.seen.capacity());
    }

    #[test]
    fn a_part_may_tell_whether_the_text_has_words() {
        for (part, query, expected) in [
            ("to the t x", "t", Some(true)),
            ("to the t x", "to", None),
            ("to the t x", "x", None),
            ("at don't _t tt", "t", Some(false)),
            ("at \u{301}t or", "t", None),
            ("un café noir", "CAFÉ", Some(true)),
            ("x日本語x", "本", Some(true)),
            ("cats concat", "cat", Some(false)),
            ("cats con cat", "cat", None),
        ] {
            let pattern = WordPattern::new(query, false);
            assert_eq!(pattern.matches_part(part.as_bytes()), expected, "{part}: {query}");
        }
        assert_eq!(WordPattern::loose("t", false).matches_part(b"a t b"), None);
    }

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
