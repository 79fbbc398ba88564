//! Matches a text that is read in pieces, because it is too long for memory.

use super::{matcher::Matcher, up_to};

const LONGEST_CHARACTER: usize = 4;

/// A matcher for a text that is read in pieces.
#[derive(Debug)]
pub struct PieceMatcher<'m> {
    matcher: &'m Matcher,
    /// The end of the text so far. An incomplete match can only begin in it.
    rest: String,
    /// The maximum length in bytes of a match, or of a part of the match between two `%`.
    longest: usize,
    found: usize,
}

impl<'m> PieceMatcher<'m> {
    /// Returns a matcher of pieces. `text` is the text that `matcher` looks for. Returns `None` if the
    /// matcher needs the whole text at once.
    pub fn new(matcher: &'m Matcher, text: &str) -> Option<PieceMatcher<'m>> {
        let longest = text.chars().count() * LONGEST_CHARACTER;
        let is_possible = matches!(matcher, Matcher::Like(_) | Matcher::Literal(_));
        is_possible.then(|| PieceMatcher { matcher, rest: String::new(), longest, found: 0 })
    }

    /// Matches the next piece. The text must not contain NUL.
    pub fn push(&mut self, piece: &str) {
        if self.matches() {
            return;
        }
        self.rest.push_str(piece);
        let text = self.rest.as_bytes();
        let mut from = 0;
        match self.matcher {
            Matcher::Like(pattern) => {
                while let Some(end) = pattern.find_segment(self.found, text, from) {
                    from = end;
                    self.found += 1;
                }
            }
            matcher => self.found = usize::from(matcher.matches(text)),
        }
        let start = from.max(self.rest.len().saturating_sub(self.longest));
        self.rest.drain(..up_to(&self.rest, start).len());
    }

    /// Returns whether the text so far matches.
    pub fn matches(&self) -> bool {
        match self.matcher {
            Matcher::Like(pattern) => self.found == pattern.segments(),
            _ => self.found > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matcher::Matchers;
    use verbatim_base::model::{Matching, Request};

    proptest! {
        #[test]
        fn pieces_match_as_the_whole_does(
            text in "[abAB éÉ中]{0,40}",
            pattern in "[ab_%éÉ中]{0,6}",
            size in 1_usize..8,
            case_sensitive: bool,
        ) {
            for matching in [Matching::Like, Matching::Literal] {
                let text_of = |text: &str| text.to_owned();
                let request = Request { text: text_of(&pattern), matching, case_sensitive, ..Request::default() };
                let matchers = Matchers::of(&request).unwrap();
                let Some(matcher) = matchers.any.first() else { continue };
                let mut pieces = PieceMatcher::new(matcher, &pattern).unwrap();
                let characters: Vec<char> = text.chars().collect();
                for piece in characters.chunks(size) {
                    pieces.push(&piece.iter().collect::<String>());
                }
                prop_assert_eq!(pieces.matches(), matcher.matches(text.as_bytes()));
            }
        }
    }
}
