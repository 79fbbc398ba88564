//! The screen of a terminal with one line that can still change.

use unicode_width::UnicodeWidthChar;

use super::control::Control;

/// The most columns by which a sequence moves the cursor beyond the end of its line.
const COLUMNS: usize = 400;

/// The length from which on a line is not the line of a terminal, in bytes or in columns. Nothing in it is
/// overwritten.
const LONG: usize = 8 << 10;

const TAB: usize = 8;

#[derive(Debug)]
pub(super) struct TerminalScreen {
    text: String,
    /// The place in `text` where the line begins.
    start: usize,
    /// The line, if the cursor has moved in it. Otherwise the line is the end of `text`.
    line: Option<TerminalLine>,
    is_long: bool,
    saved: Option<usize>,
    /// The number of characters that sequences may still add.
    budget: usize,
}

#[derive(Debug, Default)]
struct TerminalLine {
    /// A character with its marks for each column. A column that belongs to the character before it is empty.
    cells: Vec<String>,
    column: usize,
}

impl TerminalScreen {
    pub(super) fn new(length: usize) -> TerminalScreen {
        TerminalScreen {
            text: String::with_capacity(length),
            start: 0,
            line: None,
            is_long: false,
            saved: None,
            budget: length + (LONG << 1),
        }
    }

    pub(super) fn apply(&mut self, part: Control<'_>) {
        match part {
            Control::Text(text) => self.write(text),
            Control::LineEnd => self.end_line(),
            Control::Return if self.is_long => self.end_line(),
            Control::Return => self.move_to(|_| 0),
            Control::Back => self.move_to(|column| column.saturating_sub(1)),
            Control::OtherLine => self.other_line(),
            Control::Save => self.saved = self.line().map(|line| line.column),
            Control::Restore => {
                if let Some(saved) = self.saved {
                    self.move_to(|_| saved);
                }
            }
            Control::Sequence(last, numbers) => self.sequence(last, numbers),
            Control::Nothing => {}
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.text
    }

    fn sequence(&mut self, last: u8, [first, second]: [usize; 2]) {
        let count = first.clamp(1, COLUMNS);
        match last {
            b'C' | b'a' => self.move_to(|column| column + count),
            b'D' => self.move_to(|column| column.saturating_sub(count)),
            b'G' | b'`' => self.move_to(|_| count - 1),
            b'I' => self.move_to(|column| (column / TAB + count) * TAB),
            b'Z' => self.move_to(|column| (column.div_ceil(TAB)).saturating_sub(count) * TAB),
            b's' => self.apply(Control::Save),
            b'u' => self.apply(Control::Restore),
            b'A' | b'B' | b'd' | b'e' => self.other_line(),
            b'E' | b'F' => {
                self.other_line();
                self.move_to(|_| 0);
            }
            b'H' | b'f' => {
                self.other_line();
                self.move_to(|_| second.clamp(1, COLUMNS) - 1);
            }
            b'J' if first > 1 => self.other_line(),
            // The cursor is at the end of the line.
            b'K' | b'J' if first == 0 && self.line.is_none() => {}
            b'b' => self.repeat(first.max(1)),
            b'K' | b'J' | b'X' | b'P' | b'@' => {
                let allowed = count.min(self.budget);
                let Some(line) = self.line() else { return };
                match last {
                    b'K' | b'J' => line.erase_line(first),
                    b'X' => line.blank_columns(line.column, line.column + count),
                    b'P' => line.delete(count),
                    _ => {
                        line.insert(allowed);
                        self.budget -= allowed;
                    }
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, text: &str) {
        let Some(line) = &mut self.line else {
            self.text.push_str(text);
            return;
        };
        for (at, c) in text.char_indices() {
            if line.cells.len() > LONG {
                self.flush();
                self.is_long = true;
                self.text.push_str(&text[at..]);
                return;
            }
            line.write_char(c, &mut self.budget);
        }
    }

    fn repeat(&mut self, count: usize) {
        let count = count.min(COLUMNS).min(self.budget);
        let last = match &self.line {
            Some(line) => line.previous_column().and_then(|at| line.cells[at].chars().next()),
            None => self.text[self.start..].chars().next_back(),
        };
        if let Some(last) = last {
            self.budget -= count;
            self.write(&last.to_string().repeat(count));
        }
    }

    fn move_to(&mut self, column: impl Fn(usize) -> usize) {
        if let Some(line) = self.line() {
            let most = line.cells.len().max(line.column).max(COLUMNS);
            line.column = column(line.column).min(most);
        }
    }

    /// Returns the line for a change; `None` if it is too long.
    fn line(&mut self) -> Option<&mut TerminalLine> {
        if self.line.is_none() {
            if self.is_long || self.text.len() - self.start > LONG {
                self.is_long = true;
                return None;
            }
            let mut line = TerminalLine::default();
            for c in self.text[self.start..].chars() {
                line.write_char(c, &mut 0);
            }
            self.text.truncate(self.start);
            self.line = Some(line);
        }
        self.line.as_mut()
    }

    /// Writes the line to the text, without the blanks at its end, which erasing may have left.
    fn flush(&mut self) {
        if let Some(line) = self.line.take() {
            self.text.extend(line.cells);
            let end = self.text.trim_end_matches(' ').len();
            self.text.truncate(end.max(self.start));
        }
    }

    fn end_line(&mut self) {
        self.flush();
        self.text.push('\n');
        self.start = self.text.len();
        (self.is_long, self.saved) = (false, None);
    }

    /// Goes to another line in the same column. If the line is blank, it is taken as the other line.
    fn other_line(&mut self) {
        let column = match &self.line {
            Some(line) if line.cells.iter().all(|cell| cell.trim().is_empty()) => return,
            None if self.text[self.start..].trim().is_empty() => return,
            _ => self.line().map_or(0, |line| line.column),
        };
        self.end_line();
        self.line = Some(TerminalLine { column, ..TerminalLine::default() });
    }
}

impl TerminalLine {
    /// Writes a character at the cursor. Blanks before it are taken from the budget.
    fn write_char(&mut self, c: char, budget: &mut usize) {
        let gap = self.column.saturating_sub(self.cells.len()).min(*budget);
        *budget -= gap;
        self.cells.extend((0..gap).map(|_| " ".to_owned()));
        self.column = self.column.min(self.cells.len());
        if c == '\t' {
            let next = (self.column / TAB + 1) * TAB;
            if self.column == self.cells.len() {
                self.cells.push("\t".to_owned());
                self.cells.resize(next, String::new());
            }
            self.column = next;
            return;
        }
        let width = c.width().unwrap_or(1);
        if let (0, Some(before)) = (width, self.previous_column()) {
            self.cells[before].push(c);
            return;
        }
        let end = self.column + width.max(1);
        self.blank_columns(self.column, end);
        self.cells.resize(end.max(self.cells.len()), String::new());
        self.cells[self.column..end].iter_mut().for_each(String::clear);
        self.cells[self.column].push(c);
        self.column = end;
    }

    fn previous_column(&self) -> Option<usize> {
        self.cells.get(..self.column)?.iter().rposition(|cell| !cell.is_empty())
    }

    /// Replaces the characters in some columns by blanks, also those that are only partly there.
    fn blank_columns(&mut self, start: usize, end: usize) {
        let end = end.min(self.cells.len());
        if start >= end {
            return;
        }
        let start = self.cells[..=start].iter().rposition(|cell| !cell.is_empty()).unwrap_or(start);
        let more = self.cells[end..].iter().take_while(|cell| cell.is_empty()).count();
        for cell in &mut self.cells[start..end + more] {
            cell.clear();
            cell.push(' ');
        }
    }

    /// Erases from the cursor (0), up to the cursor (1) or everywhere.
    fn erase_line(&mut self, part: usize) {
        match part {
            0 => {
                self.blank_columns(self.column, self.column + 1);
                self.cells.truncate(self.column);
            }
            1 => self.blank_columns(0, self.column + 1),
            _ => self.cells.clear(),
        }
    }

    fn delete(&mut self, count: usize) {
        let end = (self.column + count).min(self.cells.len());
        if self.column < end {
            self.blank_columns(self.column, end);
            self.cells.drain(self.column..end);
        }
    }

    fn insert(&mut self, count: usize) {
        if self.column < self.cells.len() {
            if self.cells[self.column].is_empty() {
                self.blank_columns(self.column, self.column + 1);
            }
            let blanks = (0..count).map(|_| " ".to_owned());
            self.cells.splice(self.column..self.column, blanks);
        }
    }
}
