//! Excerpts of texts with marked matches.

use std::{borrow::Cow, ops::Range};

use maud::{Markup, html};

use crate::tools::words::Words;
use verbatim_text::{literal::LiteralPattern, matcher::Matchers, screen, snippet};

/// The number of characters before and after the beginning of the first match.
const BEFORE: usize = 90;
const AFTER: usize = 200;

/// The number of characters before and after the beginning of the first match, in a narrow list.
const SHORT_BEFORE: usize = 20;
const SHORT_AFTER: usize = 60;

/// A cut word at the end of an excerpt is left out, unless it has more bytes than this.
const WORD: usize = 24;

/// The maximum number of matches to find in a text that is shown only around its first matches.
const FIRST_SPANS: usize = 200;

/// The rule for marking text.
pub(super) enum Marker {
    /// No mark.
    Nothing,
    /// A text, in any letter case.
    Text(LiteralPattern),
    /// The texts of a request.
    Texts(Matchers),
    Words(Words),
}

impl Marker {
    pub(super) fn spans(&self, text: &str) -> Vec<Range<usize>> {
        self.first_spans(text, FIRST_SPANS)
    }

    /// Returns a text and its first matches. Removes control sequences, unless only they contain matches.
    pub(super) fn readable<'t>(&self, text: &'t str) -> (Cow<'t, str>, Vec<Range<usize>>) {
        let spans = self.spans(text);
        let plain = screen::written(text);
        if let Cow::Borrowed(_) = plain {
            return (plain, spans);
        }
        match self.spans(&plain) {
            of_plain if of_plain.is_empty() && !spans.is_empty() => (Cow::Borrowed(text), spans),
            of_plain => (plain, of_plain),
        }
    }

    pub(super) fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        match self {
            Marker::Nothing => Vec::new(),
            Marker::Text(pattern) => pattern.first_spans(text, most),
            Marker::Texts(texts) => texts.first_spans(text, most),
            Marker::Words(words) => {
                let mut spans = words.spans(text);
                spans.truncate(most);
                spans
            }
        }
    }
}

/// A piece of a text, which is either a match or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextPiece {
    text: String,
    is_match: bool,
}

pub(super) fn marked(pieces: &[TextPiece]) -> Markup {
    html! {
        @for piece in pieces {
            @if piece.is_match { mark { (piece.text) } } @else { (piece.text) }
        }
    }
}

/// Returns the part of a text around its first match, on one line.
pub(super) fn around(text: &str, spans: &[Range<usize>]) -> Vec<TextPiece> {
    cut(text, spans, BEFORE, AFTER)
}

/// Returns the few words around the first match of a text, on one line.
pub(super) fn few_words(text: &str, spans: &[Range<usize>]) -> Vec<TextPiece> {
    cut(text, spans, SHORT_BEFORE, SHORT_AFTER)
}

fn cut(text: &str, spans: &[Range<usize>], before: usize, after: usize) -> Vec<TextPiece> {
    let first = match spans.first() {
        Some(span) => span.start,
        None => text.find(|c: char| !c.is_whitespace()).unwrap_or(0),
    };
    let blank = text.len() - text.trim_start().len();
    let from = back(text, first, before).max(blank.min(first));
    let end = match snippet::cut(&text[first..], after) {
        Some(part) => {
            let word = part.rfind(char::is_whitespace).filter(|at| part.len() - at <= WORD);
            let least = spans.first().map_or(0, |span| span.len());
            first + word.filter(|at| *at >= least).unwrap_or(part.len())
        }
        None => text.len(),
    };
    let mut pieces = pieces(text, from..end, spans);
    if from > blank {
        pieces.insert(0, TextPiece { text: "…".to_owned(), is_match: false });
    }
    if !text[end..].trim_end().is_empty() {
        pieces.push(TextPiece { text: "…".to_owned(), is_match: false });
    }
    pieces
}

/// Returns a whole text in pieces, on one line.
pub(super) fn whole(text: &str, spans: &[Range<usize>]) -> Vec<TextPiece> {
    pieces(text, 0..text.len(), spans)
}

/// Returns the start of the text that is shown before a match: the beginning of a line or a word,
/// at most `most` characters before the match.
fn back(text: &str, place: usize, most: usize) -> usize {
    let before = &text[..place];
    let start = before.char_indices().rev().nth(most).map_or(0, |(at, _)| at);
    if start == 0 {
        return 0;
    }
    let window = &text[start..place];
    let line = window.rfind("\n\n").map(|at| at + "\n\n".len());
    let word = || window.find(char::is_whitespace).map(|at| at + 1);
    let at = line.or_else(word).unwrap_or(0);
    start + (at..window.len()).find(|at| window.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the pieces of a part of a text; white space becomes single spaces.
fn pieces(text: &str, part: Range<usize>, spans: &[Range<usize>]) -> Vec<TextPiece> {
    let mut pieces = Vec::new();
    let mut at = part.start;
    let mut add = |range: Range<usize>, is_match| {
        let text = single_spaced(&text[range]);
        if !text.is_empty() {
            pieces.push(TextPiece { text, is_match });
        }
    };
    for span in spans {
        let (start, end) = (span.start.max(at), span.end.min(part.end));
        if start >= end {
            continue;
        }
        add(at..start, false);
        add(start..end, true);
        at = end;
    }
    add(at..part.end, false);
    pieces
}

fn single_spaced(text: &str) -> String {
    let mut single = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_whitespace() || c.is_control() {
            true if single.ends_with(' ') => {}
            true => single.push(' '),
            false => single.push(c),
        }
    }
    single
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, pattern: &str) -> String {
        let pieces = around(text, &LiteralPattern::new(pattern, false).first_spans(text, 10));
        let piece = |piece: &TextPiece| match piece.is_match {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        pieces.iter().map(piece).collect()
    }

    #[test]
    fn excerpts() {
        assert_eq!(shown("one\n\n  two Three", "three"), "one two [Three]");
        assert_eq!(shown("ÉTÉ été", "été"), "[ÉTÉ] [été]");
        let long = format!("{}needle{}", "日 ".repeat(500), "é".repeat(500));
        let cut = shown(&long, "NEEDLE");
        assert!(cut.starts_with("…日") && cut.contains("[needle]") && cut.ends_with("é…"), "{cut}");
        assert!(shown(&"x".repeat(1000), &"x".repeat(999)).ends_with("x]…"));
        assert_eq!(shown("  plain", "absent"), "plain");
        let words = shown(&format!("needle {}", "abcdef ".repeat(60)), "needle");
        assert!(words.ends_with(" abcdef…"), "{words}");
    }
}
