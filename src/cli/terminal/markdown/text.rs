//! Text in several styles, wrapped to columns.

use std::{ops::Range, rc::Rc};

use anstyle::Style;

use crate::cli::terminal::layout::{LineLayout, MATCH};
use crate::cli::terminal::wrap::{self, LongWords};
use verbatim_text::terminal::harmless;

pub(super) type Mark<'a> = &'a dyn Fn(&str) -> Vec<Range<usize>>;

#[derive(Debug, Default)]
pub(super) struct StyledText {
    plain: String,
    runs: Vec<StyledRun>,
}

#[derive(Clone, Debug)]
struct StyledRun {
    end: usize,
    style: Style,
    link: Option<Rc<str>>,
}

impl StyledText {
    /// Adds text without the characters that control a terminal.
    pub(super) fn push(&mut self, text: &str, style: Style) {
        self.push_linked(text, style, None);
    }

    pub(super) fn push_linked(&mut self, text: &str, style: Style, link: Option<Rc<str>>) {
        self.plain.push_str(&harmless(text));
        let end = self.plain.len();
        match self.runs.last_mut() {
            Some(last) if last.style == style && last.link == link => last.end = end,
            _ => self.runs.push(StyledRun { end, style, link }),
        }
    }

    pub(super) fn append(&mut self, other: &StyledText) {
        let at = self.plain.len();
        self.plain.push_str(&other.plain);
        self.runs
            .extend(other.runs.iter().map(|run| StyledRun { end: at + run.end, ..run.clone() }));
    }

    pub(super) fn plain(&self) -> &str {
        &self.plain
    }

    pub(super) fn is_blank(&self) -> bool {
        self.plain.trim().is_empty()
    }

    /// Returns the ranges of the lines, each at most `columns` wide.
    pub(super) fn wrapped(&self, columns: usize, words: LongWords) -> Vec<Range<usize>> {
        wrap::lines(self.plain.trim_end(), columns, words)
    }

    pub(super) fn styled(
        &self,
        part: Range<usize>,
        marks: &[Range<usize>],
        layout: LineLayout,
    ) -> String {
        let mut shown = String::new();
        let mut at = part.start;
        let mut marks = marks[marks.partition_point(|mark| mark.end <= at)..].iter().peekable();
        for run in &self.runs[self.runs.partition_point(|run| run.end <= at)..] {
            if at >= part.end {
                break;
            }
            let run_end = run.end.min(part.end);
            while at < run_end {
                while marks.next_if(|mark| mark.end <= at).is_some() {}
                let (end, style) = match marks.peek() {
                    Some(mark) if mark.start <= at => (mark.end, MATCH),
                    Some(mark) => (mark.start, run.style),
                    None => (run_end, run.style),
                };
                let end = end.min(run_end);
                let piece = layout.styled(style, &self.plain[at..end]);
                shown.push_str(&layout.linked(&piece, run.link.as_deref()));
                at = end;
            }
        }
        shown
    }
}
