//! Finds a literal text without wildcards. Letters match in any case, unless the search is case-sensitive.
//!
//! A text matches if the folded text contains the folded needle ([`super::fold`]). Bytes that are not UTF-8
//! count as U+FFFD, because they are shown so. A NUL is an ordinary character.
//!
//! Most letters have the same length in each case, so a match has a known length, and a search for two of its
//! bytes finds it. Other letters (`K` for `k`, `ſ` for `s`, `ẞ` for `ß`) are rare: a text with one is folded
//! character by character.
//!
//! Invariant: [`LiteralPattern::matches`] is true exactly if [`LiteralPattern::first_spans`] returns spans.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use memchr::memmem::Finder;

use super::finder::{ByteProbe, Literal, find_probed};
use super::fold::{cases, fold};

/// A matcher for a text without wildcards.
#[derive(Debug)]
pub struct LiteralPattern {
    quick: QuickSearch,
    folded: Vec<char>,
    /// The failure function of Knuth, Morris and Pratt: for each number of matching characters, the length of
    /// the longest proper suffix that is also a prefix.
    failure: Vec<usize>,
    /// Finders for other cases of the letters that have another number of bytes.
    odd_cases: Vec<Finder<'static>>,
}

/// A search for matches in which every character has its usual number of bytes.
#[derive(Debug)]
enum QuickSearch {
    /// No non-ASCII letter has another case of the same length, or the search is case-sensitive.
    Plain(Literal),
    /// For all other texts: the number of bytes, and the two bytes to probe first.
    Probed { length: usize, first: ByteProbe, second: ByteProbe },
}

impl LiteralPattern {
    /// Prepares a search for a text, in any letter case unless `case_sensitive` is set.
    pub fn new(text: &str, case_sensitive: bool) -> LiteralPattern {
        if case_sensitive {
            return LiteralPattern {
                quick: QuickSearch::Plain(Literal::new(text, true)),
                folded: Vec::new(),
                failure: Vec::new(),
                odd_cases: Vec::new(),
            };
        }
        let folded: Vec<char> = text.chars().map(fold).collect();
        LiteralPattern {
            quick: QuickSearch::new(&folded),
            failure: failure_function(&folded),
            odd_cases: odd_cases(&folded),
            folded,
        }
    }

    /// Returns whether the pattern occurs in `text`, which should be UTF-8.
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        self.quick.find(text, &self.folded).is_some()
            || self.has_odd_case(text)
                && str::from_utf8(text).is_ok_and(|text| self.find_folded(text).is_some())
    }

    /// Returns the byte spans of the first `most` matches in a text. They do not overlap.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        if most > 0 {
            self.find_all(text, |span| {
                let end = span.end;
                spans.push(span);
                if spans.len() < most { ControlFlow::Continue(end) } else { ControlFlow::Break(()) }
            });
        }
        spans
    }

    /// Calls `each` with matches until `each` breaks. `each` returns where the next match may begin.
    pub(super) fn find_all(
        &self,
        text: &str,
        mut each: impl FnMut(Range<usize>) -> ControlFlow<(), usize>,
    ) {
        let is_odd = self.has_odd_case(text.as_bytes());
        let mut from = 0;
        loop {
            let rest = &text[from..];
            let found = if is_odd {
                self.find_folded(rest)
            } else {
                self.quick.find(rest.as_bytes(), &self.folded)
            };
            let Some(span) = found.filter(|span| !span.is_empty()) else { return };
            match each(from + span.start..from + span.end) {
                ControlFlow::Continue(next) => from = next,
                ControlFlow::Break(()) => return,
            }
        }
    }

    fn has_odd_case(&self, text: &[u8]) -> bool {
        self.odd_cases.iter().any(|case| case.find(text).is_some())
    }

    fn find_folded(&self, text: &str) -> Option<Range<usize>> {
        let mut matched = 0;
        for (at, character) in text.char_indices() {
            let folded = fold(character);
            while matched > 0 && self.folded[matched] != folded {
                matched = self.failure[matched - 1];
            }
            matched += usize::from(self.folded[matched] == folded);
            if matched == self.folded.len() {
                let end = at + character.len_utf8();
                let start = text[..end].char_indices().rev().nth(matched - 1)?.0;
                return Some(start..end);
            }
        }
        None
    }
}

impl QuickSearch {
    fn new(folded: &[char]) -> QuickSearch {
        let text: String = folded.iter().collect();
        if folded.iter().all(|c| c.is_ascii() || cases_of_same_length(*c).count() == 1) {
            return QuickSearch::Plain(Literal::new(&text, false));
        }
        let mut probes = Vec::with_capacity(text.len());
        for character in folded {
            let cases: Vec<String> = cases_of_same_length(*character).map(String::from).collect();
            for place in 0..character.len_utf8() {
                let bytes: Vec<u8> = cases.iter().map(|case| case.as_bytes()[place]).collect();
                probes.push(ByteProbe::any_of(probes.len(), &bytes));
            }
        }
        // There are at least two probes, because a non-ASCII letter has at least two bytes.
        probes.select_nth_unstable_by_key(1, |probe| (probe.frequency(), probe.place));
        probes[..2].sort_unstable_by_key(|probe| probe.place);
        QuickSearch::Probed { length: text.len(), first: probes[0], second: probes[1] }
    }

    #[inline]
    fn find(&self, text: &[u8], folded: &[char]) -> Option<Range<usize>> {
        match self {
            QuickSearch::Plain(literal) => {
                literal.find(text).map(|start| start..start + literal.len())
            }
            QuickSearch::Probed { length, first, second } => {
                let start = find_probed(text, *length, *first, *second, |start| {
                    folds_to(&text[start..start + length], folded)
                })?;
                Some(start..start + length)
            }
        }
    }
}

fn folds_to(mut bytes: &[u8], folded: &[char]) -> bool {
    folded.iter().all(|folded| {
        let length = folded.len_utf8();
        let Some((character, rest)) = bytes.split_at_checked(length) else { return false };
        bytes = rest;
        str::from_utf8(character).is_ok_and(|text| text.chars().map(fold).eq([*folded]))
    })
}

fn cases_of_same_length(folded: char) -> impl Iterator<Item = char> {
    cases(folded).filter(move |case| case.len_utf8() == folded.len_utf8())
}

/// Returns finders for the cases of letters that take more or fewer bytes than the folded letter.
///
/// In one script, such cases often share their first bytes, so one finder serves several cases.
fn odd_cases(folded: &[char]) -> Vec<Finder<'static>> {
    /// The number of shared first bytes that are searched. All such cases have at least two bytes.
    const BEGINNING: usize = 2;

    let mut letters = folded.to_vec();
    letters.sort_unstable();
    letters.dedup();
    let mut by_beginning: BTreeMap<[u8; BEGINNING], Vec<String>> = BTreeMap::new();
    for letter in letters {
        for case in cases(letter).filter(|case| case.len_utf8() != letter.len_utf8()) {
            let case = case.to_string();
            if let Some(beginning) = case.as_bytes().first_chunk() {
                by_beginning.entry(*beginning).or_default().push(case);
            }
        }
    }
    let finders = by_beginning.iter().map(|(beginning, cases)| match &cases[..] {
        [case] => Finder::new(case).into_owned(),
        _ => Finder::new(beginning).into_owned(),
    });
    finders.collect()
}

/// Returns the failure function of a needle; see the field `failure`.
pub(super) fn failure_function(folded: &[char]) -> Vec<usize> {
    let mut failure = vec![0; folded.len()];
    let mut matched = 0;
    for at in 1..folded.len() {
        while matched > 0 && folded[matched] != folded[at] {
            matched = failure[matched - 1];
        }
        matched += usize::from(folded[matched] == folded[at]);
        failure[at] = matched;
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bracketed;

    #[test]
    fn cases_without_wildcards() {
        for (text, query, expected) in [
            ("100 or 100% sure", "100%", "100 or [100%] sure"),
            ("user-id user_id USER_ID", "User_Id", "user-id [user_id] [USER_ID]"),
            ("the Café, CAFÉ and cafe", "cAFÉ", "the [Café], [CAFÉ] and cafe"),
            ("ПРИВЕТ, Привет", "привет", "[ПРИВЕТ], [Привет]"),
            ("λόγος ΛΌΓΟΣ λόγοσ", "Λόγοσ", "[λόγος] [ΛΌΓΟΣ] [λόγοσ]"),
            ("a\u{212A}b AKB", "akb", "[a\u{212A}b] [AKB]"),
            ("\u{17F}et SET", "set", "[\u{17F}et] [SET]"),
            ("Straße STRASSE STRAẞE", "straße", "[Straße] STRASSE [STRAẞE]"),
            ("İi Iı", "i", "İ[i] [I]ı"),
            ("𐐀𐐨", "𐐨", "[𐐀][𐐨]"),
            ("ᲀода ВОДА", "вода", "[ᲀода] [ВОДА]"),
            ("日本語 本", "本", "日[本]語 [本]"),
            ("a\0B", "\0b", "a[\0B]"),
            ("aaa", "aa", "[aa]a"),
            ("ks\u{212A}s\u{17F}K", "KSK", "[ks\u{212A}]s\u{17F}K"),
            ("aaſsb", "asb", "aaſsb"),
            ("ababac Ababaſ", "abaS", "ababac Ab[abaſ]"),
            ("abc", "", "abc"),
        ] {
            let pattern = LiteralPattern::new(query, false);
            let spans = pattern.first_spans(text, usize::MAX);
            assert_eq!(bracketed(text, spans), expected, "{query:?}");
        }
        let sensitive = LiteralPattern::new("É_", true);
        assert!(sensitive.matches("xÉ_".as_bytes()) && !sensitive.matches("xé_ Éa".as_bytes()));
    }

    /// The texts to find are single letters, so both bytes that a search probes are bytes of one
    /// letter.
    #[test]
    fn every_letter_in_every_case() {
        for letter in ('\0'..=char::MAX).filter(|letter| fold(*letter) != *letter).map(fold) {
            let pattern = LiteralPattern::new(&letter.to_string(), false);
            for case in cases(letter) {
                let text = format!("-.{case}?");
                let span = 2..2 + case.len_utf8();
                assert_eq!(pattern.first_spans(&text, 1).first(), Some(&span), "{letter} {case}");
                assert!(pattern.matches(text.as_bytes()), "{letter} {case}");
            }
        }
    }
}
