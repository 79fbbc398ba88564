//! Finds a text only where it is a whole word, or several; `word_break` has the definition.

use std::ops::{ControlFlow, Range};

use super::literal::LiteralPattern;
use super::loose::LoosePattern;
use super::word_break::{is_of_run, may_begin, may_end};

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
            match [may_begin(text, span.start, None), may_end(text, span.end, None)] {
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
        let mut spans: Vec<Range<usize>> = Vec::new();
        match &self.0 {
            _ if most == 0 => {}
            Inner::Literal(pattern) => pattern.find_all(text, |span| {
                if !is_whole(text, &span) {
                    return ControlFlow::Continue(next_start(text, span.start));
                }
                let end = span.end;
                spans.push(span);
                if spans.len() < most { ControlFlow::Continue(end) } else { ControlFlow::Break(()) }
            }),
            Inner::Loose(pattern) => pattern.find_all(text, |found| {
                let is_after = spans.last().is_none_or(|last| last.end <= found.span.start);
                if found.is_whole && is_after && is_whole(text, &found.span) {
                    spans.push(found.span);
                }
                if spans.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }),
        }
        spans
    }
}

/// Returns whether a part of a text is a whole word, or several.
fn is_whole(text: &str, span: &Range<usize>) -> bool {
    let ends = [may_begin(text, span.start, Some(true)), may_end(text, span.end, Some(true))];
    ends == [Some(true); 2]
}

/// Returns the next place where a match may begin, if the match at `start` is no whole word.
fn next_start(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let run = rest.find(|character| !is_of_run(character)).unwrap_or(rest.len());
    start + run.max(rest.chars().next().map_or(0, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bracketed;

    #[test]
    fn long_words_of_one_letter_are_read_once() {
        // The text is two long words of one repeated letter, with a match at the very end.
        for letter in ["a", "é"] {
            let text = letter.repeat(300_000) + " " + &letter.repeat(20_000);
            let pattern = WordPattern::new(&letter.repeat(20_000), false);
            let found = pattern.first_spans(&text, 2);
            let expected = 300_000 * letter.len() + 1..text.len();
            assert_eq!(found, vec![expected]);
        }
    }

    #[test]
    fn a_part_may_tell_whether_the_text_has_words() {
        for (part, query, expected) in [
            ("to the t x", "t", Some(true)),
            ("to the t x", "to", None),
            ("to the t x", "x", None),
            ("at _t tt", "t", Some(false)),
            ("at don't be", "t", Some(true)),
            ("at \u{301}t or", "t", Some(false)),
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
            ("don't do n't", "don", "[don]'t do n't"),
            ("user_id user id", "user", "user_id [user] id"),
            ("a.b a b ab", "a", "[a].b [a] b ab"),
            (
                "slog.Error(err) `x::Error` MyError",
                "error",
                "slog.[Error](err) `x::[Error]` MyError",
            ),
            // An end that is no letter asks for nothing.
            ("C++ C++17 aC++", "C++", "[C++] [C++]17 aC++"),
            (
                "f(.gitignore) a.gitignore b.gitignores",
                ".gitignore",
                "f([.gitignore]) a[.gitignore] b.gitignores",
            ),
            ("Ελένη ΕΛΈΝΗΣ", "ελένη", "[Ελένη] ΕΛΈΝΗΣ"),
            ("서울 서울에서", "서울", "[서울] 서울에서"),
            ("使用Error处理 Error", "Error", "使用Error处理 [Error]"),
            ("ไทยภาษาไทย", "ไทย", "[ไทย]ภาษา[ไทย]"),
            ("หี หิ", "ห", "หี หิ"),
            ("aa aaa", "aa", "[aa] aaa"),
            ("日本語", "本", "日[本]語"),
            ("カタカナ カタを", "カタ", "カタカナ [カタ]を"),
            ("one two\r\nthree", "two", "one [two]\r\nthree"),
            ("one\ntwo\nthree", "one two", "one\ntwo\nthree"),
            ("x\ny\nz", "y\nz", "x\n[y\nz]"),
            ("naïve Naïveté", "naïve", "[naïve] Naïveté"),
            ("3.14 3 14 33", "3", "[3].14 [3] 14 33"),
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

    #[test]
    fn a_whole_word_is_what_an_expression_finds_between_boundaries() {
        let texts = [
            include_str!("../README.md"),
            include_str!("whole_word.rs"),
            include_str!("grams.rs"),
            include_str!("words.rs"),
            "使用Error处理 café_x cafe\u{301} t\u{200D}t ２x x２ ﬁx naïvex Error() slog.Error(err) don't é.x x.é",
        ];
        let part = regex::Regex::new(r"[A-Za-z0-9_](?:[^\n]{0,9}[A-Za-z0-9_])?").unwrap();
        for text in texts {
            let mut parts: Vec<&str> = part.find_iter(text).map(|it| it.as_str()).collect();
            parts.extend(text.split(|c: char| !c.is_ascii_alphanumeric()));
            parts.retain(|part| !part.is_empty());
            parts.sort_unstable();
            parts.dedup();
            for part in parts {
                let expression = format!(r"\b{}\b", regex::escape(part));
                let expression = regex::Regex::new(&expression).unwrap();
                let expected: Vec<_> = expression.find_iter(text).map(|it| it.range()).collect();
                let spans = WordPattern::new(part, true).first_spans(text, usize::MAX);
                assert_eq!(spans, expected, "{part}");
            }
        }
    }
}
