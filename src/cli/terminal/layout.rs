//! Formats conversations and messages for a terminal: headings, and lines that are cut around a match.

use std::io::{self, Write};
use std::ops::Range;

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use unicode_width::UnicodeWidthStr;

use super::{output::harmless, wrap::wrapped};
use crate::cli::settings::environment::Environment;
pub(crate) use verbatim_text::excerpt::Piece;
use verbatim_text::excerpt::{self, ExcerptPart, Room};

/// The width of a line if the output is not a terminal.
const COLUMNS: usize = 100;

const FEWEST_COLUMNS: usize = 16;

/// Below this width, the facts about a conversation have a line of their own, below its title.
const LEAST_FOR_FACTS: usize = 60;

/// Below this width, the lines of messages have no roles.
const LEAST_FOR_ROLES: usize = 40;

/// The width that other text on the line must leave for a title, unless the title is shorter.
pub(crate) const LEAST_TITLE: usize = 20;

/// The width that other text on the line must leave for a place, unless the place is shorter.
const LEAST_PLACE: usize = 11;

/// The widths of a time and of a count in a list.
const TIME: usize = 15;
const COUNT: usize = 6;

/// The width of the longest common role.
pub(crate) const ROLE: usize = 9;

pub(super) const MATCH: Style = AnsiColor::Red.on_default().bold();
pub(crate) const TITLE: Style = AnsiColor::Green.on_default().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

#[derive(Clone, Copy, Debug)]
pub(crate) struct LineLayout {
    pub(crate) columns: usize,
    /// Whether lines must fit into the columns. In a pipe, they may be longer.
    pub(crate) is_cut: bool,
    pub(crate) colours: bool,
    pub(crate) links: bool,
}

/// A line of a list.
pub(crate) struct ListEntry<'a> {
    pub(crate) id: &'a str,
    /// Where the id leads on a terminal with links.
    pub(crate) link: Option<&'a str>,
    /// The columns between the id and the facts, so that the facts of all lines begin in one column.
    pub(crate) gap: usize,
    pub(crate) time: &'a str,
    pub(crate) count: &'a str,
    pub(crate) title: &'a str,
    pub(crate) place: &'a str,
}

impl LineLayout {
    pub(crate) fn of(environment: &Environment) -> LineLayout {
        let columns = environment.columns.unwrap_or(COLUMNS).max(FEWEST_COLUMNS);
        let is_cut = environment.columns.is_some();
        LineLayout { columns, is_cut, colours: environment.colours, links: environment.shows_links }
    }

    pub(crate) fn coloured(self, choice: ColorChoice) -> LineLayout {
        let colours = match choice {
            ColorChoice::Auto => self.colours,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        LineLayout { colours, ..self }
    }

    /// Returns the columns to wrap lines at; `None` if the output is not a terminal.
    pub(crate) fn wrap_columns(self) -> Option<usize> {
        self.is_cut.then_some(self.columns)
    }

    pub(crate) fn styled(self, style: Style, text: &str) -> String {
        if self.colours && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Returns a note below an answer, wrapped to the width.
    pub(crate) fn note(self, text: &str) -> String {
        self.styled(DIM, &wrapped(text, Some(self.columns), 2))
    }

    /// Returns the pieces as one text, with coloured matches.
    pub(crate) fn joined(self, pieces: &[Piece], style: Style) -> String {
        let styled = pieces
            .iter()
            .map(|piece| self.styled(if piece.is_match { MATCH } else { style }, &piece.text));
        styled.collect()
    }

    /// Returns a text as a link to an address, if the terminal supports links.
    pub(crate) fn linked(self, text: &str, address: Option<&str>) -> String {
        match address {
            // Other characters could control the terminal.
            Some(address) if self.links && address.chars().all(|c| c.is_ascii_graphic()) => {
                format!("\u{1b}]8;;{address}\u{1b}\\{text}\u{1b}]8;;\u{1b}\\")
            }
            _ => text.to_owned(),
        }
    }

    /// Writes the heading of a conversation: its title, and facts at the right edge, the most important
    /// one last. On a narrow terminal the facts are on the next line, the most important one first.
    pub(crate) fn heading(
        self,
        out: &mut dyn Write,
        title: &[Piece],
        [place, facts @ ..]: &[String; 3],
        link: Option<&str>,
    ) -> io::Result<()> {
        let [time, id] = facts;
        let after = format!("{time}  {id}");
        match self.beside(title, place, 2 + after.width()) {
            Some((title, place)) => {
                let shown = self.linked(&self.joined(&title, TITLE), link);
                self.aligned(out, &shown, width(&title), &format!("{place}  {after}"))
            }
            None => {
                let title = fitted(title, self.columns);
                writeln!(out, "{}", self.linked(&self.joined(&title, TITLE), link))?;
                self.below(out, &[id, time, place])
            }
        }
    }

    /// Writes a line of a list: an id, facts, a title, and a place at the right edge. On a narrow terminal
    /// the facts and the place are on the next line.
    pub(crate) fn entry(self, out: &mut dyn Write, entry: &ListEntry<'_>) -> io::Result<()> {
        let ListEntry { id, link, gap, time, count, title, place } = *entry;
        let shown_id = self.linked(id, link);
        let facts = format!("{:gap$}  {}  {count:>COUNT$}  ", "", padded(time, TIME));
        let title = [Piece::plain(title)];
        let start = id.width() + facts.width();
        match self.beside(&title, place, start) {
            Some((title, place)) => {
                let facts = self.styled(DIM, &facts);
                let line = format!("{shown_id}{facts}{}", self.joined(&title, Style::new()));
                self.aligned(out, &line, start + width(&title), &place)
            }
            None => {
                let room = self.columns.saturating_sub(id.width() + 2);
                let title = if room > 0 { fitted(&title, room) } else { Vec::new() };
                writeln!(out, "{shown_id}  {}", self.joined(&title, Style::new()))?;
                self.below(out, &[time, count, place])
            }
        }
    }

    /// Cuts a title and a place, so that they fit on one line with `others` columns of other text; in a
    /// pipe, cuts nothing. Returns `None` if the line is too narrow.
    fn beside(self, title: &[Piece], place: &str, others: usize) -> Option<(Vec<Piece>, String)> {
        if !self.is_cut {
            return Some((title.to_vec(), place.to_owned()));
        }
        let room = self.columns.checked_sub(others + 2)?;
        let least = width(title).min(LEAST_TITLE);
        let most = room.checked_sub(least)?.min(self.columns * 2 / 5);
        if self.columns < LEAST_FOR_FACTS || most < place.width().min(LEAST_PLACE) {
            return None;
        }
        let place = self.joined(&fitted(&[Piece::plain(place)], most), Style::new());
        Some((fitted(title, room - place.width()), place))
    }

    /// Writes a line with a text that is `columns` wide, and a text at the right edge.
    fn aligned(
        self,
        out: &mut dyn Write,
        text: &str,
        columns: usize,
        right: &str,
    ) -> io::Result<()> {
        let gap = self.columns.saturating_sub(columns + right.width()).max(2);
        writeln!(out, "{text}{:gap$}{}", "", self.styled(DIM, right))
    }

    /// Writes facts on an indented line, cut to the width.
    fn below(self, out: &mut dyn Write, facts: &[&str]) -> io::Result<()> {
        let facts = fitted(&[Piece::plain(&facts.join("  "))], self.columns.saturating_sub(2));
        writeln!(out, "  {}", self.joined(&facts, DIM))
    }

    /// Returns the columns for the text of a message below a heading.
    pub(crate) fn columns_of_message(self) -> usize {
        self.columns.saturating_sub(self.start_of_message("", "").width())
    }

    pub(crate) fn start_of_message(self, number: &str, role: &str) -> String {
        if self.columns < LEAST_FOR_ROLES {
            format!("{number:>3}  ")
        } else {
            format!("{number:>3}  {}  ", padded(role, ROLE))
        }
    }

    /// Writes a message below a heading: its number, its role and a part of its text.
    pub(crate) fn message(
        self,
        out: &mut dyn Write,
        number: &str,
        role: &str,
        text: &[Piece],
    ) -> io::Result<()> {
        let start = self.start_of_message(number, role);
        let text = around_match(text, self.columns.saturating_sub(start.width()));
        let text = self.joined(&text, Style::new());
        writeln!(out, "{}{text}", self.styled(DIM, &start))
    }
}

/// Returns a text, padded with spaces to a width of `columns`.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

pub(crate) fn width(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.text.width()).sum()
}

/// Returns the beginning of the pieces, cut to a width of `columns`; the part with the first match if the
/// beginning does not show it.
pub(crate) fn fitted(pieces: &[Piece], columns: usize) -> Vec<Piece> {
    if width(pieces) <= columns {
        return pieces.to_vec();
    }
    let (text, spans) = text_and_spans(pieces);
    beginning(&text, &spans, columns)
}

/// Returns the pieces, cut to a width of `columns` so that the first match stays visible.
pub(crate) fn around_match(pieces: &[Piece], columns: usize) -> Vec<Piece> {
    if width(pieces) <= columns {
        return pieces.to_vec();
    }
    let (text, spans) = text_and_spans(pieces);
    excerpt(&text, &spans, columns)
}

fn text_and_spans(pieces: &[Piece]) -> (String, Vec<Range<usize>>) {
    let mut text = String::new();
    let mut spans = Vec::new();
    for piece in pieces {
        let start = text.len();
        text.push_str(&piece.text);
        spans.extend(piece.is_match.then_some(start..text.len()));
    }
    (text, spans)
}

/// Returns the part of a text around its first match, on one line that is at most `columns` wide.
pub(crate) fn excerpt(text: &str, spans: &[Range<usize>], columns: usize) -> Vec<Piece> {
    shown(text, spans, &part_of_line(text, spans.first(), columns))
}

/// Returns the beginning of a text, on one line that is at most `columns` wide; the part around the first
/// match if the beginning does not show it.
pub(crate) fn beginning(text: &str, spans: &[Range<usize>], columns: usize) -> Vec<Piece> {
    let start = part_of_line(text, None, columns);
    let beyond = spans.first().filter(|first| first.end > start.range.end);
    let part = if beyond.is_some() { part_of_line(text, beyond, columns) } else { start };
    shown(text, spans, &part)
}

fn part_of_line(text: &str, found: Option<&Range<usize>>, columns: usize) -> ExcerptPart {
    excerpt::part(text, found.cloned(), Room::line(columns), excerpt::columns)
}

/// Returns the pieces of a part of a text, without control characters of the terminal.
fn shown(text: &str, spans: &[Range<usize>], part: &ExcerptPart) -> Vec<Piece> {
    let mut pieces = part.framed(excerpt::pieces(text, part.range.clone(), spans, true));
    for piece in &mut pieces {
        piece.text = harmless(&piece.text);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, word: &str, columns: usize) -> String {
        let spans: Vec<Range<usize>> =
            text.match_indices(word).map(|(at, word)| at..at + word.len()).collect();
        let pieces = excerpt(text, &spans, columns);
        assert!(width(&pieces) <= columns, "{pieces:?}");
        let marked = |piece: Piece| match piece.is_match {
            true => format!("[{}]", piece.text),
            false => piece.text,
        };
        pieces.into_iter().map(marked).collect()
    }

    #[test]
    fn a_text_is_cut_around_its_match_to_the_columns_that_there_are() {
        let long = format!("{} needle {}", "before ".repeat(50), "after ".repeat(50));
        assert_eq!(shown(&long, "needle", 40), "…before [needle] after after after…");
        assert_eq!(shown("\u{1b}[31mred", "red", 40), "\u{FFFD}[31m[red]");
        let needle = 351..357;
        let pieces = excerpt(&long, std::slice::from_ref(&needle), 40);
        let cut: String = around_match(&pieces, 20).into_iter().map(|piece| piece.text).collect();
        assert_eq!(cut, "…needle after…");
    }

    #[test]
    fn a_title_is_cut_at_its_end_unless_its_match_is_there() {
        let title = "A long title about needles";
        let cut = |span| -> String {
            beginning(title, &[span], 16).into_iter().map(|piece| piece.text).collect()
        };
        assert_eq!(cut(2..6), "A long title…");
        assert_eq!(cut(19..26), "…about needles");
    }

    #[test]
    fn in_a_pipe_nothing_is_cut() {
        let layout = LineLayout { columns: 100, is_cut: false, colours: false, links: false };
        let (id, title, place) = ("i".repeat(90), "t".repeat(120), "codex · project@branch");
        let mut out = Vec::new();
        let entry = ListEntry {
            id: &id,
            link: None,
            gap: 0,
            time: "today",
            count: "12",
            title: &title,
            place,
        };
        layout.entry(&mut out, &entry).unwrap();
        let facts = [place.to_owned(), "today".to_owned(), id.clone()];
        layout.heading(&mut out, &[Piece::plain(&title)], &facts, None).unwrap();
        let out = String::from_utf8(out).unwrap();
        let is_whole = |line: &str| [&*id, &*title, place].iter().all(|it| line.contains(it));
        assert!(out.lines().count() == 2 && out.lines().all(is_whole), "{out}");
    }

    #[test]
    fn links_only_where_the_terminal_shows_them() {
        let layout = LineLayout { columns: 80, is_cut: true, colours: false, links: true };
        let link = Some("https://chatgpt.com/c/1");
        assert_eq!(
            layout.linked("a", link),
            "\u{1b}]8;;https://chatgpt.com/c/1\u{1b}\\a\u{1b}]8;;\u{1b}\\"
        );
        assert_eq!(layout.linked("a", Some("https://x/\u{1b}[2J")), "a");
        assert_eq!(LineLayout { links: false, ..layout }.linked("a", link), "a");
    }
}
