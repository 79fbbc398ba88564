//! Wraps long lines between words, so that a terminal does not break them within words.

use std::io::{self, Write};
use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns a line, wrapped to `columns`. Its further lines begin with `indent` spaces. Commands in backquotes
/// and long words such as paths stay whole, so that they can be pasted.
pub(crate) fn wrapped(line: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns else { return line.to_owned() };
    let indent = indent.min(columns / 3);
    let text = line.trim_start_matches(' ');
    let mut taken = line.len() - text.len();
    let mut wrapped = " ".repeat(taken);
    let mut is_in_command = false;
    let words = text.split(|c| {
        is_in_command ^= c == '`';
        c == ' ' && !is_in_command
    });
    for (number, word) in words.enumerate() {
        let width = word.width();
        let is_over = taken + 1 + width > columns;
        // This word is longer than a line, so the terminal breaks it.
        if number > 0 && is_over && (indent + width <= columns || taken + 1 >= columns) {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push_str(&format!("\n{:indent$}", ""));
            taken = indent;
        } else if number > 0 {
            wrapped.push(' ');
            taken += 1;
        }
        wrapped.push_str(word);
        taken = match taken + width {
            taken if taken > columns => taken % columns,
            taken => taken,
        };
    }
    wrapped
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LongWords {
    /// It goes on in the next line.
    Broken,
    /// It stays whole, so that a path can be copied.
    Whole,
}

/// Returns the ranges of the lines of a text, each at most `columns` wide. A line can also be broken before
/// and after characters that are two columns wide, as in Chinese.
pub(super) fn lines(text: &str, columns: usize, words: LongWords) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut offset = 0;
    for line in text.split('\n') {
        let mut start = 0;
        let mut width = 0;
        // The last possible line break: the end of the line and the start of the next line.
        let mut gap: Option<Range<usize>> = None;
        for (at, c) in line.char_indices() {
            let of_char = c.width().unwrap_or(0);
            if of_char == 2 && at > start {
                gap = Some(at..at);
            }
            let may_break = words == LongWords::Broken || gap.is_some();
            if width + of_char > columns && c != ' ' && may_break {
                let gap = gap.take().unwrap_or(at..at);
                lines.push(offset + start..offset + gap.start);
                start = gap.end;
                width = line[start..at].width();
            }
            width += of_char;
            if c == ' ' {
                let end = gap.filter(|gap| gap.end == at).map_or(at, |gap| gap.start);
                // White space at the beginning of a line is indentation, not a line break.
                gap = (!line[start..end].trim().is_empty()).then_some(end..at + 1);
            } else if of_char == 2 {
                let next = at + c.len_utf8();
                gap = Some(next..next);
            }
        }
        let end = line.trim_end().len().max(start);
        lines.push(offset + start..offset + end);
        offset += line.len() + 1;
    }
    lines
}

/// The beginning of a line of advice. A path in it may be for a file, in which `~` means nothing.
const ADVICE: &str = "->";

/// A writer that wraps lines, and writes `~/` for the folder of the user. The further lines of a wrapped
/// line begin with `indent` spaces, or with two more spaces than the line itself if that is more.
pub(crate) struct Wrapped<'a> {
    out: &'a mut dyn Write,
    columns: Option<usize>,
    indent: usize,
    /// The folder of the user, with a slash at its end.
    user: Option<String>,
    line: Vec<u8>,
}

impl<'a> Wrapped<'a> {
    /// Returns a writer that wraps at columns; `None` changes nothing.
    pub(crate) fn new(
        out: &'a mut dyn Write,
        columns: Option<usize>,
        indent: usize,
        user: Option<String>,
    ) -> Wrapped<'a> {
        Wrapped { out, columns, indent, user, line: Vec::new() }
    }
}

/// Returns a line with `~/` for the folder of the user, where a shell reads that too.
pub(crate) fn shortened(line: &str, user: Option<&str>) -> String {
    match user {
        Some(user) if !line.trim_start().starts_with(ADVICE) => {
            [" ", "("].iter().fold(line.to_owned(), |line, before| {
                line.replace(&format!("{before}{user}"), &format!("{before}~/"))
            })
        }
        _ => line.to_owned(),
    }
}

impl Write for Wrapped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.columns.is_none() {
            return self.out.write(bytes);
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.line).into_owned();
                let own = line.len() - line.trim_start_matches(' ').len();
                let line = shortened(line.trim_end(), self.user.as_deref());
                let line = wrapped(&line, self.columns, self.indent.max(own + 2));
                writeln!(self.out, "{line}")?;
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&std::mem::take(&mut self.line))?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words_and_not_in_commands() {
        let wrap = |text: &str, columns| wrapped(text, Some(columns), 4);
        assert_eq!(wrap("  one two three", 10), "  one two\n   three");
        assert_eq!(wrap("in /a/very/long/path it is", 12), "in /a/very/long/path it\n    is");
        assert_eq!(wrap("type `verbatim import` now", 21), "type\n    `verbatim import`\n    now");
        assert_eq!(wrap("日本 日本", 6), "日本\n  日本");
        assert_eq!(wrap("one two  three", 8), "one two\n  three");
        assert_eq!(wrapped("one two", None, 4), "one two");
        let mut out = Vec::new();
        let mut writer = Wrapped::new(&mut out, Some(10), 0, Some("/home/me/".to_owned()));
        for bytes in
            b"  one two three\n (/home/me/a)\n '/home/me/'\n-> /home/me/\nfour five six".chunks(3)
        {
            writer.write_all(bytes).unwrap();
        }
        writer.flush().unwrap();
        let expected = "  one two\n   three\n (~/a)\n '/home/me/'\n-> /home/me/\nfour five six";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
