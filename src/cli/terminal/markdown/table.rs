//! Formats Markdown tables for a terminal.

use anstyle::Style;
use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

use super::text::{Mark, StyledText};
use crate::cli::terminal::layout::{DIM, LineLayout};
use crate::cli::terminal::wrap::LongWords;

const BETWEEN: &str = " │ ";
const CROSSING: &str = "─┼─";

/// A table; the first row is its head.
#[derive(Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<StyledText>>,
}

impl Table {
    /// Returns the lines of the table. If the table is too wide, each cell gets a line of its own,
    /// after the name of its column.
    pub(super) fn lines(&self, columns: usize, layout: LineLayout, mark: Mark<'_>) -> Vec<String> {
        let mut widths = vec![0; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.plain().width().max(*width);
            }
        }
        let total = widths.iter().sum::<usize>() + BETWEEN.width() * widths.len().saturating_sub(1);
        let mut cells = self.rows.iter().flatten();
        if total > columns || cells.any(|cell| cell.plain().trim().contains('\n')) {
            return self.lines_by_cell(columns, layout, mark);
        }
        let mut lines = Vec::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(&self.alignments);
            let cells: Vec<String> = cells
                .map(|((cell, width), alignment)| aligned(cell, *width, *alignment, layout, mark))
                .collect();
            lines.push(cells.join(&layout.styled(DIM, BETWEEN)).trim_end().to_owned());
        }
        let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        lines.insert(lines.len().min(1), layout.styled(DIM, &rules.join(CROSSING)));
        lines
    }

    fn lines_by_cell(&self, columns: usize, layout: LineLayout, mark: Mark<'_>) -> Vec<String> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for (name, cell) in head.iter().zip(row).filter(|(_, cell)| !cell.is_blank()) {
                let mut line = StyledText::default();
                if !name.is_blank() {
                    let style = if layout.colours { Style::new().bold() } else { Style::new() };
                    line.push(&format!("{}: ", name.plain().trim()), style);
                }
                line.append(cell);
                let marks = mark(line.plain());
                let parts = line.wrapped(columns, LongWords::Broken);
                lines.extend(parts.into_iter().map(|part| line.styled(part, &marks, layout)));
            }
        }
        lines
    }
}

/// Returns a cell as wide as its column.
fn aligned(
    cell: &StyledText,
    width: usize,
    alignment: Alignment,
    layout: LineLayout,
    mark: Mark<'_>,
) -> String {
    let room = width.saturating_sub(cell.plain().width());
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => room / 2,
        Alignment::Right => room,
    };
    let text = cell.styled(0..cell.plain().len(), &mark(cell.plain()), layout);
    format!("{}{text}{}", " ".repeat(before), " ".repeat(room - before))
}
