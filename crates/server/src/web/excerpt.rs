//! Excerpts of texts with marked matches.

use std::{borrow::Cow, ops::Range};

use maud::{Markup, html};

use super::prose;
pub(super) use verbatim_answer::marks::{Marks, Piece};
use verbatim_base::model::{Matching, Request};
use verbatim_text::{
    parts::{ANSWER, FENCES, RESULT, THINKING, called_by},
    screen, snippet,
};

/// The width before the beginning of the first match, and the number of characters after it. On a phone, the
/// first two lines of an excerpt hold the match.
const BEFORE: usize = 48;
const AFTER: usize = 240;

/// The same in a narrow list.
const SHORT_BEFORE: usize = 20;
const SHORT_AFTER: usize = 60;

/// A cut word at the end of an excerpt is left out, unless it has more bytes than this.
const WORD: usize = 24;

/// The maximum number of matches to find in a text that is shown only around its first matches.
pub(super) const FIRST_SPANS: usize = 200;

/// Returns what marks a text, in any letter case.
pub(super) fn text_marks(text: &str) -> Marks {
    let (text, matching) = (text.to_owned(), Matching::Literal);
    Marks::of(&Request { text, matching, ..Request::default() }).unwrap_or_default()
}

/// Returns a text and its first matches. Removes control sequences, unless only they contain matches.
pub(super) fn readable<'t>(marks: &Marks, text: &'t str) -> (Cow<'t, str>, Vec<Range<usize>>) {
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

pub(super) fn marked(pieces: &[Piece]) -> Markup {
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
pub(super) fn around(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    cut(text, spans, [BEFORE, AFTER], pieces)
}

/// Returns the part of a text around its first match, without Markdown's signs, on one line.
pub(super) fn prose_around(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    cut(text, spans, [BEFORE, AFTER], prose_pieces)
}

/// Returns the few words around the first match of a text, without Markdown's signs, on one line.
pub(super) fn few_words(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    cut(text, spans, [SHORT_BEFORE, SHORT_AFTER], prose_pieces)
}

fn cut(
    text: &str,
    spans: &[Range<usize>],
    [before, after]: [usize; 2],
    pieces: impl Fn(&str, Range<usize>, &[Range<usize>]) -> Vec<Piece>,
) -> Vec<Piece> {
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
        pieces.insert(0, Piece::plain("…"));
    }
    if !text[end..].trim_end().is_empty() {
        pieces.push(Piece::plain("…"));
    }
    pieces
}

/// Returns whether the place in a message is code: in a block of code, in a call or in the output of a tool.
fn is_code(text: &str, place: usize, role: &str) -> bool {
    if role == "tool" {
        return true;
    }
    let may_call = !matches!(role, "user" | "system");
    let (mut at, mut fence, mut is_called) = (0, None, false);
    let (mut may_be_block, mut is_list) = (true, false);
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
pub(super) fn whole(text: &str, spans: &[Range<usize>]) -> Vec<Piece> {
    pieces(text, 0..text.len(), spans)
}

/// Returns the start of the text that is shown before a match: the beginning of a line or a word,
/// at most a width of `most` before the match.
fn back(text: &str, place: usize, most: usize) -> usize {
    // Letters from Korean on are twice as wide as Latin letters.
    let width = |c: char| if c < '\u{1100}' { 1 } else { 2 };
    let mut wider = text[..place].char_indices().rev().scan(0, |sum, (at, c)| {
        *sum += width(c);
        Some((at, *sum))
    });
    let start = wider.find(|(_, sum)| *sum > most).map_or(0, |(at, _)| at);
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
fn pieces(text: &str, part: Range<usize>, spans: &[Range<usize>]) -> Vec<Piece> {
    split(text, part, spans, single_spaced)
}

fn split(
    text: &str,
    part: Range<usize>,
    spans: &[Range<usize>],
    shown: impl Fn(&str) -> String,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = part.start;
    let mut add = |range: Range<usize>, is_match| {
        let text = shown(&text[range]);
        if !text.is_empty() {
            pieces.push(Piece { text, is_match });
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

/// Returns the pieces of a part of a text without Markdown's signs. If a match contains a sign, the pieces are
/// as they were written.
fn prose_pieces(text: &str, part: Range<usize>, spans: &[Range<usize>]) -> Vec<Piece> {
    // Markdown is read from the beginning of a line, unless it is far.
    let line = text[..part.start].rfind('\n').map_or(0, |at| at + 1);
    let start = if part.start - line > AFTER { part.start } else { line };
    let is_inside = |span: &&Range<usize>| span.start < part.end && span.end > part.start;
    let visible = prose::visible(&text[start..part.end]).into_iter().filter_map(|range| {
        let range = (range.start + start).max(part.start)..range.end + start;
        (!range.is_empty()).then_some(range)
    });
    let visible: Vec<Range<usize>> = visible.collect();
    let holds = |span: &Range<usize>| {
        let shown = span.start.max(part.start)..span.end.min(part.end);
        visible.iter().any(|range| range.start <= shown.start && shown.end <= range.end)
    };
    if visible.is_empty() || !spans.iter().filter(is_inside).all(holds) {
        return pieces(text, part, spans);
    }
    let mut shown = Vec::new();
    let mut end = visible[0].start;
    for range in visible {
        if prose::separates(&text[end..range.start]) {
            shown.push(Piece::plain(" "));
        }
        end = range.end;
        shown.extend(pieces(text, range, spans));
    }
    shown
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

/// Excerpts of code.
mod code {
    use std::ops::Range;

    use super::{Piece, split};
    use verbatim_text::snippet;

    /// The maximum number of lines of a match.
    const MOST_LINES: usize = 3;

    /// The maximum number of characters of a line, and the number of those before the match in a longer line.
    const LONGEST: usize = 120;
    const BEFORE: usize = 40;

    /// Returns the lines of a match with one line before and after, without what all the lines begin with:
    /// line numbers and white space.
    pub(super) fn lines(
        text: &str,
        spans: &[Range<usize>],
        first: &Range<usize>,
    ) -> Vec<(Vec<Piece>, bool)> {
        let start = text[..first.start].rfind('\n').map_or(0, |at| at + 1);
        let before = text[..start].trim_end_matches('\n');
        let mut at = match before.len() + 1 == start {
            true => before.rfind('\n').map_or(0, |at| at + 1),
            false => start,
        };
        let (mut lines, mut hits) = (Vec::new(), 0);
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
        let is_numbered = |(line, is_hit): &(Range<usize>, bool)| {
            !is_hit || numbered(&text[line.clone()]).is_some()
        };
        if lines.iter().all(is_numbered) {
            let number = |line: &str| numbered(line).unwrap_or(0);
            without_starts(text, &mut lines, spans, &number);
        }
        let blank = |line: &str| line.len() - line.trim_start().len();
        let indented = || lines.iter().map(|(line, _)| &text[line.clone()]);
        let least = indented().map(blank).min().unwrap_or(0);
        let mut starts = indented().map(|line| line.get(..least));
        let first_start = starts.next();
        if starts.all(|start| Some(start) == first_start) {
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
        let end = |line: &Range<usize>| line.start + length(&text[line.clone()]);
        let is_matched = |(line, _): &(Range<usize>, bool)| {
            spans.iter().any(|span| span.start < end(line) && line.start < span.end)
        };
        if !lines.iter().any(is_matched) {
            lines.iter_mut().for_each(|(line, _)| line.start = end(line));
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
        let match_start = spans.iter().find(|span| span.end > line.start && span.start < line.end);
        let match_start = match_start.map_or(line.start, |span| span.start.max(line.start));
        let mut start = line.start;
        if snippet::cut(&text[line.clone()], LONGEST).is_some() {
            let before = text[line.start..match_start].char_indices().rev().nth(BEFORE);
            start = before.map_or(line.start, |(at, _)| line.start + at);
        }
        let end = snippet::cut(&text[start..line.end], LONGEST);
        let end = end.map_or(line.end, |part| start + part.len());
        let as_written = |text: &str| text.replace(|c: char| c.is_control() && c != '\t', "");
        let mut pieces = split(text, start..end, spans, as_written);
        if start > line.start {
            pieces.insert(0, Piece::plain("…"));
        }
        if end < line.end {
            pieces.push(Piece::plain("…"));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, pattern: &str) -> String {
        let pieces = around(text, &text_marks(pattern).spans(text, 10));
        let piece = |piece: &Piece| match piece.is_match {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        pieces.iter().map(piece).collect()
    }

    fn excerpt(text: &str, pattern: &str, role: &str) -> (String, bool) {
        let spans = text_marks(pattern).spans(text, 10);
        let said = |pieces: &[Piece]| {
            let piece = |it: &Piece| {
                if it.is_match { format!("[{}]", it.text) } else { it.text.clone() }
            };
            pieces.iter().map(piece).collect::<String>()
        };
        match Excerpt::of(text, &spans, role) {
            Excerpt::Prose(pieces) => (said(&pieces), false),
            Excerpt::Code(lines) => {
                let lines: Vec<String> = lines.iter().map(|(line, _)| said(line)).collect();
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
