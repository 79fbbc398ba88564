//! Formats Markdown tables for a terminal.

use anstyle::Style;
use pulldown_cmark::Alignment;

use super::text::{Mark, StyledText, plain_width};
use crate::cli::look::{DIM, Look};

const BETWEEN: &str = " │ ";

/// A table; the first row is its head.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<StyledText>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(StyledText::default());
        }
    }

    pub(super) fn cell(&mut self) -> &mut StyledText {
        if self.rows.is_empty() {
            self.begin_row();
        }
        let at = self.rows.len() - 1;
        if self.rows[at].is_empty() {
            self.begin_cell();
        }
        let row = &mut self.rows[at];
        let last = row.len() - 1;
        &mut row[last]
    }

    /// Returns the lines of the table. If the table is too wide, each cell gets a line of its own,
    /// after the name of its column.
    pub(super) fn lines(&self, columns: usize, look: Look, mark: Mark<'_>) -> Vec<String> {
        let widths: Vec<usize> = (0..self.alignments.len())
            .map(|at| self.rows.iter().filter_map(|row| row.get(at)).map(width).max().unwrap_or(0))
            .collect();
        let total =
            widths.iter().sum::<usize>() + plain_width(BETWEEN) * widths.len().saturating_sub(1);
        let is_on_one_line =
            self.rows.iter().flatten().all(|cell| !cell.plain().trim().contains('\n'));
        if total > columns || !is_on_one_line {
            return self.lines_by_cell(columns, look, mark);
        }
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).zip(&self.alignments);
            let cells: Vec<String> = cells
                .map(|((cell, width), alignment)| {
                    aligned(&styled_cell(cell, look, mark), self::width(cell), *width, *alignment)
                })
                .collect();
            lines.push(cells.join(&look.styled(DIM, BETWEEN)).trim_end().to_owned());
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(look.styled(DIM, &rules.join("─┼─")));
            }
        }
        lines
    }

    fn lines_by_cell(&self, columns: usize, look: Look, mark: Mark<'_>) -> Vec<String> {
        let (head, rows) =
            self.rows.split_first().map_or((&[][..], &[][..]), |(head, rows)| (head, rows));
        let mut lines = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_blank()) {
                let mut line = StyledText::default();
                if let Some(name) = head.get(at).filter(|name| !name.is_blank()) {
                    let style = if look.colours { Style::new().bold() } else { Style::new() };
                    line.push(&format!("{}: ", name.plain().trim()), style);
                }
                line.append(cell);
                let marks = mark(line.plain());
                lines.extend(
                    line.wrapped(columns, true).into_iter().map(|it| line.styled(it, &marks, look)),
                );
            }
        }
        lines
    }
}

fn width(cell: &StyledText) -> usize {
    plain_width(cell.plain())
}

fn styled_cell(cell: &StyledText, look: Look, mark: Mark<'_>) -> String {
    cell.styled(0..cell.len(), &mark(cell.plain()), look)
}

fn aligned(text: &str, taken: usize, width: usize, alignment: Alignment) -> String {
    let room = width.saturating_sub(taken);
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => room / 2,
        Alignment::Right => room,
    };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(room - before))
}
