//! Excerpts of texts with marked matches.

use std::{borrow::Cow, ops::Range};

use maud::{Markup, html};

use crate::web::conversation::prose;
use verbatim_answer::marks::Marks;
use verbatim_base::model::{Matching, Request};
use verbatim_text::excerpt::{self, Piece, Room, columns};
use verbatim_text::parts::{ANSWER, FENCES, RESULT, THINKING, called_by};
use verbatim_text::screen;

/// The columns of an excerpt. On a phone, its first two lines hold the match.
const MESSAGE: Room = Room { all: 288, before: 48, is_filled: false, is_one_line: true };

/// The columns of an excerpt in a narrow list.
const FEW_WORDS: Room = Room { all: 80, before: 20, ..MESSAGE };

/// Markdown is read from the beginning of a line, unless the line begins farther before the excerpt, in bytes.
const FARTHEST: usize = 240;

/// The maximum number of matches to find in a text that is shown only around its first matches.
pub(crate) const FIRST_SPANS: usize = 200;

/// Returns what marks a text, in any letter case.
pub(crate) fn text_marks(text: &str) -> Marks {
    let text = text.to_owned();
    let matching = Matching::Literal;
    Marks::of(&Request { text, matching, ..Request::default() }).unwrap_or_default()
}

/// Returns a text and its first matches. Removes control sequences, unless only they contain matches.
pub(crate) fn readable<'t>(marks: &Marks, text: &'t str) -> (Cow<'t, str>, Vec<Range<usize>>) {
    let spans = marks.spans(text, FIRST_SPANS);
    let plain = screen::written(text);
    if let Cow::Borrowed(_) = plain {
        return (plain, spans);
    }
    match marks.spans(&plain, FIRST_SPANS) {
        of_plain if of_plain.is_empty() && !spans.is_empty() => (Cow::Borrowed(text), spans),
        of_plain => (plain, of_plain),
    }
}

pub(crate) fn marked(pieces: &[Piece]) -> Markup {
    html! {
        @for piece in pieces {
            @if piece.is_match { mark { (piece.text) } } @else { (piece.text) }
        }
    }
}

/// The part of a message around its first match.
pub(super) enum Excerpt {
    /// Prose, on one line and without Markdown's signs.
    Prose(Vec<Piece>),
    /// Lines of code. Each tells whether it has a part of the match.
    Code(Vec<(Vec<Piece>, bool)>),
}

impl Excerpt {
    /// Returns the part of a message around its first match; `role` is the role of the message.
    pub(super) fn of(text: &str, spans: &[Range<usize>], role: &str) -> Excerpt {
        match spans.first() {
            Some(first) if is_code(text, first.start, role) => {
                Excerpt::Code(code::lines(text, spans, first))
            }
            _ => Excerpt::Prose(prose_around(text, spans)),
        }
    }

    /// Returns a whole passage of prose.
    pub(super) fn passage(text: &str, spans: &[Range<usize>]) -> Excerpt {
        Excerpt::Prose(prose_pieces(text, 0..text.len(), spans))
    }

    pub(super) fn html(&self, id: &str) -> Markup {
        html! {
            @match self {
                Excerpt::Prose(pieces) => p.text #(id) dir="auto" { (marked(pieces)) },
                Excerpt::Code(lines) => {
                    pre.text #(id) {
                        @for (line, is_hit) in lines { span.by[!is_hit] { (marked(line)) "\n" } }
                    }
                }
            }
        }
    }
}

/// Returns the part of a text around its first match, as it was written, on one line.
pub(crate) fn around(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    cut(text, spans, MESSAGE, pieces)
}

/// Returns the part of a text around its first match, without Markdown's signs, on one line.
pub(crate) fn prose_around(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    cut(text, spans, MESSAGE, prose_pieces)
}

/// Returns the few words around the first match of a text, without Markdown's signs, on one line.
pub(crate) fn few_words(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    cut(text, spans, FEW_WORDS, prose_pieces)
}

fn cut(
    text: &str,
    spans: &[Range<usize>],
    room: Room,
    pieces: impl Fn(&str, Range<usize>, &[Range<usize>]) -> Vec<Piece>,
) -> Vec<Piece> {
    let part = excerpt::part(text, spans.first().cloned(), room, columns);
    part.framed(pieces(text, part.range.clone(), spans))
}

/// Returns whether the place in a message is code: in a block of code, in a call or in the output of a tool.
fn is_code(text: &str, place: usize, role: &str) -> bool {
    if role == "tool" {
        return true;
    }
    let may_call = !matches!(role, "user" | "system");
    let mut at = 0;
    let mut fence = None;
    let mut is_called = false;
    let mut may_be_block = true;
    let mut is_list = false;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let bare = line.trim();
        let mark = FENCES.iter().find(|mark| bare.starts_with(**mark));
        if may_call && fence.is_none() {
            is_called |= called_by(bare).is_some() || bare == RESULT;
            is_called &= ![THINKING, ANSWER].contains(&bare);
        }
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        let is_block = is_indented && may_be_block && !is_list;
        if at > place {
            return is_called
                || fence.is_some()
                || mark.is_some()
                || (is_block && !bare.is_empty());
        }
        fence = match fence {
            None => mark,
            Some(open) if Some(open) == mark => None,
            open => open,
        };
        may_be_block = bare.is_empty() || is_block;
        if !is_indented && !bare.is_empty() {
            is_list =
                bare.starts_with(['-', '*', '+']) || bare.starts_with(|c: char| c.is_ascii_digit());
        }
    }
    false
}

/// Returns a whole text in pieces, on one line.
pub(crate) fn whole(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    pieces(text, 0..text.len(), spans)
}

/// Returns the pieces of a part of a text on one line, without control characters.
fn pieces(text: &str, part: Range<usize>, spans: &[Range<usize>]) -> Vec<Piece> {
    on_one_line(excerpt::pieces(text, part, spans, false))
}

fn on_one_line(mut pieces: Vec<Piece>) -> Vec<Piece> {
    for piece in &mut pieces {
        piece.text = piece.text.replace(char::is_control, " ");
    }
    excerpt::on_one_line(pieces)
}

/// Returns the pieces of a part of a text without Markdown's signs. If a match contains a sign, the pieces are
/// as they were written.
fn prose_pieces(text: &str, part: Range<usize>, spans: &[Range<usize>]) -> Vec<Piece> {
    let line = text[..part.start].rfind('\n').map_or(0, |at| at + 1);
    let start = if part.start - line > FARTHEST { part.start } else { line };
    let visible = prose::visible(&text[start..part.end]).into_iter().filter_map(|range| {
        let range = (range.start + start).max(part.start)..range.end + start;
        (!range.is_empty()).then_some(range)
    });
    let visible: Vec<Range<usize>> = visible.collect();
    if visible.is_empty() {
        return pieces(text, part, spans);
    }
    for span in spans.iter().filter(|span| span.start < part.end && span.end > part.start) {
        let shown = span.start.max(part.start)..span.end.min(part.end);
        if !visible.iter().any(|range| range.start <= shown.start && shown.end <= range.end) {
            return pieces(text, part, spans);
        }
    }
    let mut shown = Vec::new();
    let mut end = visible[0].start;
    for range in visible {
        if prose::separates(&text[end..range.start]) {
            shown.push(Piece::plain(" "));
        }
        end = range.end;
        shown.extend(excerpt::pieces(text, range, spans, false));
    }
    on_one_line(shown)
}

/// Excerpts of code.
mod code {
    use std::ops::Range;

    use verbatim_text::excerpt::{self, Piece, Room, columns};

    /// The maximum number of lines of a match.
    const MOST_LINES: usize = 3;

    /// The columns of a line.
    const LINE: Room = Room { all: 120, before: 40, is_filled: true, is_one_line: false };

    /// Returns the lines of a match with one line before and after, without what all the lines begin with:
    /// line numbers and white space.
    pub(super) fn lines(
        text: &str,
        spans: &[Range<usize>],
        first: &Range<usize>,
    ) -> Vec<(Vec<Piece>, bool)> {
        let start = text[..first.start].rfind('\n').map_or(0, |at| at + 1);
        let before = text[..start].trim_end_matches('\n');
        let mut at = if before.len() + 1 == start {
            before.rfind('\n').map_or(0, |at| at + 1)
        } else {
            start
        };
        let mut lines = Vec::new();
        let mut hits = 0;
        for line in text[at..].split('\n') {
            let range = at..at + line.trim_end_matches('\r').len();
            at += line.len() + 1;
            let is_hit = range.end >= first.start && range.start < first.end.max(first.start + 1);
            if is_hit && hits == MOST_LINES {
                break;
            }
            hits += usize::from(is_hit);
            let is_before = hits == 0;
            if is_hit || !line.trim().is_empty() {
                lines.push((range, is_hit));
            }
            if !is_hit && !is_before {
                break;
            }
        }
        let mut hits = lines.iter().filter(|(_, is_hit)| *is_hit);
        if hits.all(|(line, _)| numbered(&text[line.clone()]).is_some()) {
            without_starts(text, &mut lines, spans, &|line| numbered(line).unwrap_or(0));
        }
        let indented: Vec<&str> = lines.iter().map(|(line, _)| &text[line.clone()]).collect();
        let blanks = indented.iter().map(|line| line.len() - line.trim_start().len());
        let least = blanks.min().unwrap_or(0);
        let first_start = indented.first().map(|line| line.get(..least));
        if indented.iter().all(|line| Some(line.get(..least)) == first_start) {
            without_starts(text, &mut lines, spans, &|_| least);
        }
        lines.into_iter().map(|(line, is_hit)| (cut(text, line, spans), is_hit)).collect()
    }

    /// Removes the beginnings of lines, unless a match has a part of one.
    fn without_starts(
        text: &str,
        lines: &mut [(Range<usize>, bool)],
        spans: &[Range<usize>],
        length: &dyn Fn(&str) -> usize,
    ) {
        let ends = lines.iter().map(|(line, _)| line.start + length(&text[line.clone()]));
        let ends: Vec<usize> = ends.collect();
        for ((line, _), end) in lines.iter().zip(&ends) {
            if spans.iter().any(|span| span.start < *end && line.start < span.end) {
                return;
            }
        }
        for ((line, _), end) in lines.iter_mut().zip(ends) {
            line.start = end;
        }
    }

    /// Returns the length of the number that a tool writes before a line.
    fn numbered(line: &str) -> Option<usize> {
        let number = line.trim_start_matches(' ');
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = rest.strip_prefix(['→', ':', '\t'])?;
        let is_time = rest.starts_with(':') && after.starts_with(|c: char| c.is_ascii_digit());
        (rest.len() < number.len() && !is_time).then_some(line.len() - after.len())
    }

    /// Returns the pieces of a line. A long line is cut around its first match.
    fn cut(text: &str, line: Range<usize>, spans: &[Range<usize>]) -> Vec<Piece> {
        let first = spans.iter().find(|span| span.end > line.start && span.start < line.end);
        let first = first.map(|span| {
            span.start.max(line.start) - line.start..span.end.min(line.end) - line.start
        });
        let part = excerpt::part(&text[line.clone()], first, LINE, columns);
        let shown = line.start + part.range.start..line.start + part.range.end;
        let mut pieces = excerpt::pieces(text, shown, spans, false);
        for piece in &mut pieces {
            piece.text.retain(|c| !c.is_control() || c == '\t');
        }
        part.framed(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, pattern: &str) -> String {
        let pieces = around(text, &text_marks(pattern).spans(text, 10));
        bracketed(&pieces)
    }

    fn bracketed(pieces: &[Piece]) -> String {
        let pieces = pieces.iter().map(|piece| {
            if piece.is_match { format!("[{}]", piece.text) } else { piece.text.clone() }
        });
        pieces.collect()
    }

    fn excerpt(text: &str, pattern: &str, role: &str) -> (String, bool) {
        let spans = text_marks(pattern).spans(text, 10);
        match Excerpt::of(text, &spans, role) {
            Excerpt::Prose(pieces) => (bracketed(&pieces), false),
            Excerpt::Code(lines) => {
                let lines: Vec<String> = lines.iter().map(|(line, _)| bracketed(line)).collect();
                (lines.join("\n"), true)
            }
        }
    }

    #[test]
    fn prose_has_no_signs_unless_they_are_found() {
        let prose = |text, pattern| excerpt(text, pattern, "assistant").0;
        let text = "## Steps\n\n- **Verify build:** `go build`\n- see [docs](https://a.example)";
        assert_eq!(prose(text, "verify"), "Steps [Verify] build: go build see docs");
        assert_eq!(prose(text, "verify build:"), "Steps [Verify build:] go build see docs");
        assert_eq!(
            prose(text, "**"),
            "## Steps - [**]Verify build:[**] `go build` - see [docs](https://a.example)"
        );
        assert!(prose(text, "a.example").ends_with("[docs](https://[a.example])"));
        assert_eq!(prose("| a | b |\n|---|---|\n| red | 2 |", "red"), "a b [red] 2");
        assert_eq!(prose("Use snake_case *now*", "_"), "Use snake[_]case now");
        assert_eq!(prose("*em* x", "* x"), "*em[* x]");
        assert_eq!(
            prose("[thinking]\n**Inspecting**\n\nIt is red.", "red"),
            "Inspecting It is [red]."
        );
        assert_eq!(excerpt("1. one\n\n    red", "red", "user"), ("1. one [red]".to_owned(), false));
    }

    #[test]
    fn code_has_its_lines() {
        let code = |text: &str, pattern, role| {
            let (shown, is_code) = excerpt(text, pattern, role);
            assert!(is_code, "{text}");
            shown
        };
        let text = "So:\n```rust\nfn a() {\n    if red {\n        b();\n    }\n```\nDone.";
        assert_eq!(code(text, "red", "user"), "fn a() {\n    if [red] {\n        b();");
        assert!(!excerpt(text, "done", "user").1);
        assert_eq!(code(text, "b()", "user"), "if red {\n    [b()];\n}");
        let numbered = "     9→    a\n    10→    red\n    11→  b\n    12→c";
        assert_eq!(code(numbered, "red", "tool"), "  a\n  [red]\nb");
        assert_eq!(code(numbered, "10→", "tool"), " 9→    a\n[10→]    red\n11→  b");
        assert_eq!(code("4:a\n5:red\n", "red", "tool"), "a\n[red]");
        assert_eq!(code("12:30 a\n12:31 red\n", "red", "tool"), "12:30 a\n12:31 [red]");
        assert_eq!(code("Look.\n\n    red\n", "red", "user"), "[red]");
        assert_eq!(
            code("[tool: Bash]\ncommand: red", "red", "assistant"),
            "[tool: Bash]\ncommand: [red]"
        );
        let long = format!("a\n{}red{}", "x".repeat(200), "y".repeat(200));
        let cut = code(&long, "red", "tool");
        assert!(
            cut.starts_with("a\n…x") && cut.contains("x[red]y") && cut.ends_with("y…"),
            "{cut}"
        );
        assert!(cut.chars().count() < 130, "{cut}");
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
