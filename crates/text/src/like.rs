//! SQLite's `LIKE '%…%'`, outside SQLite.
//!
//! The semantics are those of SQLite with default settings (<https://www.sqlite.org/lang_expr.html#like>,
//! `patternCompare` in `func.c`). `%` matches any characters, and `_` exactly one. ASCII letters match in
//! either case, and all other characters match only themselves. A text ends at its first NUL.
//!
//! Invariant: for every text, [`LikePattern::matches`] returns the same result as SQLite's `LIKE`. Property
//! tests compare the two.

use std::ops::Range;

/// The maximum length in bytes of a pattern for SQLite's LIKE, including a `%` at each end.
pub const MOST_PATTERN_BYTES: usize = 50_000;

use memchr::memchr;

use super::finder::{Literal, frequency, lowered};
use super::pattern::Pattern;

/// A matcher for `LIKE '%' || text || '%'`: finds the text anywhere in another text.
#[derive(Debug)]
pub struct LikePattern {
    /// The pattern's segments between `%`. Each segment has a fixed number of characters. So taking the
    /// leftmost match of each segment in turn finds every matching text.
    segments: Vec<LikeSegment>,
    /// The pattern's characters, to match texts that are not regular ([`is_regular`]).
    characters: Vec<u32>,
    case_sensitive: bool,
}

/// A part of a pattern between two `%`: characters and `_`.
#[derive(Debug)]
struct LikeSegment {
    before: Vec<Atom>,
    /// The run that is probably rarest; `None` if the segment has only `_`.
    anchor: Option<Literal>,
    after: Vec<Atom>,
}

/// An element of a segment before or after its anchor.
#[derive(Debug)]
enum Atom {
    /// `_`: any one character.
    Any,
    /// Literal bytes, which may be none, in lower case unless the pattern is case-sensitive.
    Bytes(Vec<u8>),
}

impl LikePattern {
    /// Parses the text of a query, in which `%` and `_` are wildcards.
    pub fn parse(text: &str, case_sensitive: bool) -> LikePattern {
        LikePattern::new(&Pattern::parse(text), case_sensitive)
    }

    /// Prepares a parsed pattern for matching.
    pub fn new(pattern: &Pattern<'_>, case_sensitive: bool) -> LikePattern {
        let segments = pattern.segments.iter();
        let characters = pattern.text.chars();
        LikePattern {
            segments: segments
                .map(|segment| LikeSegment::new(&segment.runs, case_sensitive))
                .collect(),
            characters: characters.map(|c| fold_character(c as u32, case_sensitive)).collect(),
            case_sensitive,
        }
    }

    /// Returns whether the pattern matches every text: it is empty or has only `%`.
    pub fn matches_all(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns whether every match has as many characters as the pattern, because the pattern has no `%`.
    pub fn is_of_one_length(&self) -> bool {
        self.segments.len() == 1
    }

    /// Returns whether the pattern matches somewhere in a regular text ([`is_regular`]).
    pub fn matches(&self, text: &[u8]) -> bool {
        let mut from = 0;
        for segment in &self.segments {
            match segment.find(text, from, self.case_sensitive) {
                Some((_, end)) => from = end,
                None => return false,
            }
        }
        true
    }

    /// Returns whether the pattern matches somewhere in `text`, which may be any bytes, decoded as in SQLite.
    pub fn matches_irregular(&self, text: &[u8]) -> bool {
        // The pattern begins and ends with `%`. So this matches greedily, and on failure goes back to the
        // last `%`.
        let mut rest = Characters(text);
        let mut next = 0;
        let mut retry_rest = rest;
        let mut retry_next = 0;
        while next < self.characters.len() {
            let wanted = self.characters[next];
            if wanted == u32::from('%') {
                next += 1;
                retry_rest = rest;
                retry_next = next;
                continue;
            }
            let Some(character) = rest.next() else { return false };
            if wanted == u32::from('_') || wanted == fold_character(character, self.case_sensitive)
            {
                next += 1;
            } else {
                retry_rest.next();
                rest = retry_rest;
                next = retry_next;
            }
        }
        true
    }

    /// Returns the byte spans of all matches in a text; see [`LikePattern::first_spans`].
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        self.first_spans(text, usize::MAX)
    }

    /// Returns the byte spans of consecutive matches in a text without overlaps. Stops after `most` spans,
    /// but completes the last match.
    ///
    /// Each match gives one span for each segment between the `%`. A pattern of wildcards alone has
    /// no spans.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let text = match memchr(0, text.as_bytes()) {
            Some(nul) => &text.as_bytes()[..nul],
            None => text.as_bytes(),
        };
        let mut spans = Vec::new();
        let mut from = 0;
        'matches: while spans.len() < most
            && self.segments.iter().any(|segment| segment.anchor.is_some())
        {
            let whole_matches = spans.len();
            for segment in &self.segments {
                let Some((start, end)) = segment.find(text, from, self.case_sensitive) else {
                    spans.truncate(whole_matches);
                    break 'matches;
                };
                spans.push(start..end);
                from = end;
            }
        }
        spans
    }
}

impl LikeSegment {
    fn new(runs: &[&str], case_sensitive: bool) -> LikeSegment {
        let place = (0..runs.len())
            .filter(|place| !runs[*place].is_empty())
            .max_by_key(|place| -> u32 {
                runs[*place].bytes().map(|byte| 255 - u32::from(frequency(byte))).sum()
            })
            .unwrap_or_default();
        let anchor = runs[place];
        let mut before = Vec::new();
        for run in &runs[..place] {
            before.extend([Atom::Bytes(lowered(run, case_sensitive)), Atom::Any]);
        }
        let mut after = Vec::new();
        for run in &runs[place + 1..] {
            after.extend([Atom::Any, Atom::Bytes(lowered(run, case_sensitive))]);
        }
        let has_anchor = !anchor.is_empty();
        let anchor = if has_anchor { Some(Literal::new(anchor, case_sensitive)) } else { None };
        LikeSegment { before, anchor, after }
    }

    fn find(&self, text: &[u8], from: usize, case_sensitive: bool) -> Option<(usize, usize)> {
        let Some(anchor) = &self.anchor else {
            return Some((from, forward(text, from, &self.after, case_sensitive)?));
        };
        let mut search = from;
        loop {
            let at = search + anchor.find(&text[search..])?;
            if let Some(start) = backward(text, from, at, &self.before, case_sensitive)
                && let Some(end) = forward(text, at + anchor.len(), &self.after, case_sensitive)
            {
                return Some((start, end));
            }
            search = at + 1;
        }
    }
}

fn forward(text: &[u8], mut at: usize, atoms: &[Atom], case_sensitive: bool) -> Option<usize> {
    for atom in atoms {
        match atom {
            Atom::Any => at += character_len(*text.get(at)?),
            Atom::Bytes(bytes) => {
                let end = at + bytes.len();
                if !equal(text.get(at..end)?, bytes, case_sensitive) {
                    return None;
                }
                at = end;
            }
        }
    }
    Some(at)
}

/// Matches atoms backwards from `at`; returns the start of the match, which is at least `floor`.
fn backward(
    text: &[u8],
    floor: usize,
    mut at: usize,
    atoms: &[Atom],
    case_sensitive: bool,
) -> Option<usize> {
    for atom in atoms.iter().rev() {
        match atom {
            Atom::Any => {
                if at == floor {
                    return None;
                }
                at -= 1;
                while text[at] & 0xC0 == 0x80 {
                    at -= 1;
                }
            }
            Atom::Bytes(bytes) => {
                let start = at.checked_sub(bytes.len()).filter(|start| *start >= floor)?;
                if !equal(&text[start..at], bytes, case_sensitive) {
                    return None;
                }
                at = start;
            }
        }
    }
    Some(at)
}

fn character_len(lead: u8) -> usize {
    match lead {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

fn equal(text: &[u8], folded: &[u8], case_sensitive: bool) -> bool {
    if case_sensitive { text == folded } else { text.eq_ignore_ascii_case(folded) }
}

fn fold_character(character: u32, case_sensitive: bool) -> u32 {
    match u8::try_from(character) {
        Ok(byte) if !case_sensitive => u32::from(byte.to_ascii_lowercase()),
        _ => character,
    }
}

/// Returns whether SQLite reads the text unchanged: it is UTF-8 and has no NUL.
pub fn is_regular(text: &[u8]) -> bool {
    memchr(0, text).is_none() && std::str::from_utf8(text).is_ok()
}

/// The characters of a text up to its first NUL, decoded like SQLite's `sqlite3Utf8Read`.
#[derive(Clone, Copy)]
struct Characters<'a>(&'a [u8]);

impl Iterator for Characters<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (&lead, mut rest) = self.0.split_first()?;
        let mut character = match lead {
            0 => return None,
            1..0xC0 => {
                self.0 = rest;
                return Some(u32::from(lead));
            }
            0xC0..0xE0 => u32::from(lead & 0x1F),
            0xE0..0xF0 => u32::from(lead & 0x0F),
            0xF0..0xF8 => u32::from(lead & 0x07),
            0xF8..0xFC => u32::from(lead & 0x03),
            0xFC..0xFE => u32::from(lead & 0x01),
            0xFE.. => 0,
        };
        while let Some((&byte, after)) = rest.split_first()
            && byte & 0xC0 == 0x80
        {
            character = (character << 6).wrapping_add(u32::from(byte & 0x3F));
            rest = after;
        }
        self.0 = rest;
        let is_replaced = character < 0x80 || character & 0xFFFF_F800 == 0xD800;
        Some(if is_replaced { 0xFFFD } else { character })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bracketed;

    fn like(pattern: &str, text: &str) -> bool {
        let pattern = LikePattern::parse(pattern, false);
        let fast = pattern.matches(text.as_bytes());
        assert_eq!(fast, pattern.matches_irregular(text.as_bytes()));
        fast
    }

    #[test]
    fn wildcards_and_case() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("%", "", true),
            ("_", "", false),
            ("_", "é", true),
            ("__", "é", false),
            ("ABC", "xabcx", true),
            ("É", "é", false),
            ("\u{17F}", "s", false),
            ("\u{212A}", "k", false),
            ("a%c", "abc", true),
            ("a%c", "ca", false),
            ("a%%c", "ac", true),
            ("a_c", "aéc", true),
            ("a_c", "ac", false),
            ("_a_", "bab", true),
            ("_a_", "ab", false),
            ("_aab", "aaab", true),
            ("%_a", "aa", true),
            ("日_語", "日本語", true),
            ("aab", "aaab", true),
            ("ing_the%_x", "doing the x", true),
            ("ing_the%_x", "doing thex", false),
            ("ing_the%_x", "doing the", false),
        ] {
            assert_eq!(like(pattern, text), expected, "{pattern:?} in {text:?}");
        }
    }

    #[test]
    fn spans_of_matches() {
        for (text, query, expected) in [
            ("abcABC", "b", "a[b]cA[B]C"),
            ("caf\u{e9} caf\u{c9}", "f\u{e9}", "ca[f\u{e9}] caf\u{c9}"),
            ("one two one", "o_e", "[one] two [one]"),
            ("one two one two", "n%w", "o[n]e t[w]o o[n]e t[w]o"),
            ("one two", "w%n", "one two"),
            ("aaa", "aa", "[aa]a"),
            ("a\0a", "a", "[a]\0a"),
            ("abc", "%_%", "abc"),
            ("abc", "", "abc"),
            ("日本語", "本_", "日[本語]"),
        ] {
            assert_eq!(marked(text, query, false), expected, "{query:?}");
        }
        assert_eq!(marked("abcABC", "B", true), "abcA[B]C");
    }

    fn marked(text: &str, query: &str, case_sensitive: bool) -> String {
        bracketed(text, LikePattern::parse(query, case_sensitive).spans(text))
    }
}
