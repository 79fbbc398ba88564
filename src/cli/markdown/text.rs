//! Text in several styles, wrapped to columns.

use std::ops::Range;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::look::{Look, MATCH};
use verbatim_text::terminal::harmless;

pub(super) type Mark<'a> = &'a dyn Fn(&str) -> Vec<Range<usize>>;

#[derive(Clone, Debug, Default)]
pub(super) struct StyledText {
    plain: String,
    /// The styles of the text, in order, each with the offset of its end.
    runs: Vec<(usize, Style)>,
    links: Vec<(Range<usize>, String)>,
}

impl StyledText {
    /// Adds text without the characters that control a terminal.
    pub(super) fn push(&mut self, text: &str, style: Style) {
        self.plain.push_str(&harmless(text));
        match self.runs.last_mut() {
            Some((end, last)) if *last == style => *end = self.plain.len(),
            _ => self.runs.push((self.plain.len(), style)),
        }
    }

    pub(super) fn append(&mut self, other: &StyledText) {
        let at = self.plain.len();
        self.plain.push_str(&other.plain);
        self.runs.extend(other.runs.iter().map(|(end, style)| (at + end, *style)));
        let moved = |(range, address): &(Range<usize>, String)| {
            (at + range.start..at + range.end, address.clone())
        };
        self.links.extend(other.links.iter().map(moved));
    }

    pub(super) fn link(&mut self, from: usize, address: String) {
        // A link inside the new link is removed: an image gets the address of the link around it.
        self.links.truncate(self.links.partition_point(|(range, _)| range.start < from));
        self.links.push((from..self.plain.len(), address));
    }

    pub(super) fn plain(&self) -> &str {
        &self.plain
    }

    pub(super) fn len(&self) -> usize {
        self.plain.len()
    }

    pub(super) fn since(&self, from: usize) -> &str {
        &self.plain[from..]
    }

    pub(super) fn is_blank(&self) -> bool {
        self.plain.trim().is_empty()
    }

    /// Returns the ranges of the lines. Each line is at most `columns` wide. A line can also be broken before
    /// and after characters that are two columns wide, as in Chinese. Unless `breaks_words` is set, longer
    /// words, such as paths, stay whole, so that they can be copied.
    pub(super) fn wrapped(&self, columns: usize, breaks_words: bool) -> Vec<Range<usize>> {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in self.plain.trim_end().split('\n') {
            wrap(line, start, columns, breaks_words, &mut lines);
            start += line.len() + 1;
        }
        lines
    }

    pub(super) fn styled(&self, part: Range<usize>, marks: &[Range<usize>], look: Look) -> String {
        let mut shown = String::new();
        let mut at = part.start;
        // Styles, links and marks are in order, so one pass from the first relevant entry is enough.
        let mut runs =
            self.runs[self.runs.partition_point(|(end, _)| *end <= at)..].iter().peekable();
        let mut marks = marks[marks.partition_point(|mark| mark.end <= at)..].iter().peekable();
        let first = self.links.partition_point(|(range, _)| range.end <= at);
        let mut links = self.links[first..].iter().peekable();
        while at < part.end {
            while runs.next_if(|(end, _)| *end <= at).is_some() {}
            while marks.next_if(|mark| mark.end <= at).is_some() {}
            let (mut end, mut style) = match runs.peek() {
                Some((end, style)) => ((*end).min(part.end), *style),
                None => (part.end, Style::new()),
            };
            match marks.peek() {
                Some(mark) if mark.start <= at => (end, style) = (end.min(mark.end), MATCH),
                Some(mark) => end = end.min(mark.start),
                None => {}
            }
            while links.next_if(|(range, _)| range.end <= at).is_some() {}
            let next = links.peek();
            let link = next.filter(|(range, _)| range.start <= at);
            end = next.map_or(end, |(range, _)| {
                end.min(if range.start <= at { range.end } else { range.start })
            });
            let piece = look.styled(style, &self.plain[at..end]);
            shown.push_str(&look.linked(&piece, link.map(|(_, address)| address.as_str())));
            at = end;
        }
        shown
    }
}

pub(super) fn plain_width(text: &str) -> usize {
    text.width()
}

/// Adds the ranges of one line, which begins at `offset`.
fn wrap(
    line: &str,
    offset: usize,
    columns: usize,
    breaks_words: bool,
    lines: &mut Vec<Range<usize>>,
) {
    let (mut start, mut width) = (0, 0);
    // The last possible line break: the end of the line and the start of the next line.
    let mut gap: Option<(usize, usize)> = None;
    for (at, c) in line.char_indices() {
        let of_char = c.width().unwrap_or(0);
        if of_char == 2 && at > start {
            gap = Some((at, at));
        }
        if width + of_char > columns && c != ' ' && (breaks_words || gap.is_some()) {
            let (end, next) = gap.take().unwrap_or((at, at));
            lines.push(offset + start..offset + end);
            start = next;
            width = line[start..at].width();
        }
        width += of_char;
        if c == ' ' {
            let is_same_gap = gap.is_some_and(|(_, next)| next == at);
            let end = gap.filter(|_| is_same_gap).map_or(at, |(end, _)| end);
            // White space at the beginning of a line is indentation, not a line break.
            gap = (!line[start..end].trim().is_empty()).then_some((end, at + 1));
        } else if of_char == 2 {
            let next = at + c.len_utf8();
            gap = Some((next, next));
        }
    }
    let end = line.trim_end().len().max(start);
    lines.push(offset + start..offset + end);
}
