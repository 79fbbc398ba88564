//! Draws the picker.

use ratatui_core::{
    layout::{Position, Rect},
    style::{Color, Modifier, Style},
    terminal::Frame,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{
    super::{
        look::beginning,
        output::{counted, grouped},
    },
    search::{FoundConversation, FoundMessage, MarkedText, Preview},
    state::{Focus, ListRow, Picker},
};
use verbatim_engine::{Count, filters::ALL};
use verbatim_text::excerpt::{self, columns};

/// The minimum size of a terminal for the picker.
const LEAST_WIDTH: u16 = 12;
const LEAST_HEIGHT: u16 = 5;

/// The maximum number of lines for a message below the list.
const MOST_STATUS: usize = 4;

/// The minimum width at which the list shows times, and the count of results has a word beside it.
const DATED: usize = 30;

/// The minimum width of a list that shows ids.
const NAMED: usize = 40;

/// The minimum width of a screen that shows the preview beside the list.
const WIDE: u16 = 100;

/// The minimum width of a list that shows roles and sources.
const ROOMY: usize = 50;

const ROLE_WIDTH: usize = 10;

/// The number of lines above the match in the preview.
const LEAD: usize = 3;

/// The columns that the heading of a conversation leaves for its title, unless the title is shorter.
const LEAST_TITLE: usize = 20;

/// The maximum number of lines above the list for what the results are.
const MOST_HEAD: usize = 3;

const KEYS: [(&str, &str); 13] = [
    ("↑ ↓, ^P ^N", "choose; PgUp and PgDn by pages"),
    ("Enter", "show the message in its conversation"),
    ("Tab", "read the preview: arrows scroll, q goes back"),
    ("^T", "exact text, or the best by words and meaning"),
    ("Alt-C", "letter case: as typed, matters, ignored"),
    ("Alt-W", "only whole words"),
    ("Alt-E", "a regular expression"),
    ("^O", "open the conversation on its service's site"),
    ("^R", "print the command that resumes the session"),
    ("^Y", "copy the message"),
    ("^U ^W", "delete the text, or its last word"),
    ("F1, ?", "these keys; ? only if no text is typed"),
    ("Esc, ^C", "leave"),
];

const EXAMPLES: &str = "project:shop service:codex role:user since:7d until:2025";

const PROMPT: &str = "> ";

const ELLIPSIS: &str = "…";

#[derive(Debug)]
pub(super) struct PickerView {
    styles: Styles,
    wrapped: Option<WrappedPreview>,
}

#[derive(Clone, Copy, Debug)]
struct Styles {
    mark: Style,
    heading: Style,
    dim: Style,
    chosen: Style,
    warning: Style,
}

#[derive(Debug)]
struct WrappedPreview {
    preview: u64,
    width: usize,
    lines: Vec<Line<'static>>,
    /// The line of the first match in the chosen message; the message's heading if nothing matches.
    focus: usize,
}

impl PickerView {
    /// Returns a view. Without colours, the view marks text by its style only, such as bold or reversed.
    pub(super) fn new(colours: bool) -> PickerView {
        let plain = Style::new();
        let (mark, heading, warning) = match colours {
            true => (plain.fg(Color::Red), plain.fg(Color::Green), plain.fg(Color::Yellow)),
            false => (plain.add_modifier(Modifier::UNDERLINED), plain, plain),
        };
        let styles = Styles {
            mark: mark.add_modifier(Modifier::BOLD),
            heading: heading.add_modifier(Modifier::BOLD),
            dim: plain.add_modifier(Modifier::DIM),
            chosen: plain.add_modifier(Modifier::REVERSED),
            warning,
        };
        PickerView { styles, wrapped: None }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, picker: &mut Picker) {
        let area = frame.area();
        if area.width < LEAST_WIDTH || area.height < LEAST_HEIGHT {
            let text = format!("needs {LEAST_WIDTH} columns and {LEAST_HEIGHT} lines; Esc leaves");
            for (y, start) in (0..area.height).zip((0..).step_by(usize::from(area.width.max(1)))) {
                let part: String = text.chars().skip(start).take(area.width.into()).collect();
                frame.buffer_mut().set_string(0, y, part, Style::new());
            }
            return;
        }
        let line = |y: u16| Rect { x: 0, y, width: area.width, height: 1 };
        let room = usize::from(area.height - LEAST_HEIGHT) + 1;
        let status = self.status(picker, area.width, MOST_STATUS.min(room));
        let height = area.height - 2 - status.len() as u16;
        let body = Rect { x: 0, y: 2, width: area.width, height };
        picker.measured.height = body.height.into();
        self.draw_input(frame, line(0), picker);
        let rule = self.rule(picker, area.width.into());
        frame.buffer_mut().set_line(0, 1, &rule, area.width);
        if let Some(top) = picker.help {
            picker.measured.help_end = self.draw_keys(frame, body, top);
        } else if area.width >= WIDE && !picker.is_zoomed {
            let width = area.width * 9 / 20;
            let preview = Rect { x: width + 2, width: area.width - width - 2, ..body };
            self.draw_list(frame, Rect { width: width - 1, ..body }, picker);
            for y in body.y..body.bottom() {
                frame.buffer_mut().set_string(width, y, "│", self.styles.dim);
            }
            self.draw_preview(frame, preview, picker);
        } else if picker.focus == Focus::Preview {
            self.draw_preview(frame, body, picker);
        } else {
            self.draw_list(frame, body, picker);
        }
        for (text, y) in status.iter().zip(body.bottom()..) {
            frame.buffer_mut().set_line(0, y, text, area.width);
        }
    }

    /// Returns the line below the typed text: how the text is searched, and the filters.
    fn rule(&self, picker: &Picker, width: usize) -> Line<'static> {
        let state = picker.last_asked().state();
        let filters = picker.results.filters.iter().map(String::as_str);
        let state = state.into_iter().chain(filters).collect::<Vec<_>>().join(" · ");
        let mut line = fit(vec![Span::styled(format!("── {state} "), self.styles.dim)], width);
        let rest = "─".repeat(width.saturating_sub(line.width()));
        line.push_span(Span::styled(rest, self.styles.dim));
        line
    }

    /// Draws the list of keys; returns the maximum of its first visible line.
    fn draw_keys(&self, frame: &mut Frame<'_>, area: Rect, top: usize) -> usize {
        let is_narrow = usize::from(area.width) < ROOMY + ROLE_WIDTH;
        let key = |(key, does): (&str, &str)| match is_narrow {
            true => format!("{key}: {does}\n"),
            false => format!("{key}{}{does}\n", " ".repeat(15 - key.width())),
        };
        let others = ALL.iter().filter(|filter| !EXAMPLES.contains(filter.name));
        let others: String = others.map(|filter| format!("{}: ", filter.name)).collect();
        let text = format!(
            "{}\nIn the text, the filters of `verbatim search`:\n{EXAMPLES}\n{others}in:\"A title\"\n\
             A filter that names nothing is searched as text.",
            KEYS.map(key).concat()
        );
        let text = MarkedText { text, marks: Vec::new() };
        let lines = wrap_text(&text, area.width.into());
        let end = lines.len().saturating_sub(area.height.into());
        for (line, y) in lines.into_iter().skip(top.min(end)).zip(area.y..area.bottom()) {
            frame.buffer_mut().set_string(area.x, y, line.text, Style::new());
        }
        end
    }

    fn draw_input(&self, frame: &mut Frame<'_>, area: Rect, picker: &Picker) {
        let most = usize::from(area.width) / 2;
        let counts = counts(picker);
        let fits = |count: &&String| count.width() <= most && usize::from(area.width) >= DATED;
        let shortest = counts.last().cloned().unwrap_or_default();
        let count = counts.iter().find(fits).cloned().unwrap_or(shortest);
        let count_width = count.width().min(most);
        let room = usize::from(area.width) - PROMPT.width() - count_width - 2;
        let scroll = picker.input.visual_scroll(room);
        let shown = from_column(picker.input.value(), scroll);
        let buffer = frame.buffer_mut();
        buffer.set_string(0, area.y, PROMPT, self.styles.heading);
        buffer.set_stringn(PROMPT.width() as u16, area.y, shown, room, Style::new());
        let x = area.width - count_width as u16;
        buffer.set_stringn(x, area.y, count, count_width, self.styles.dim);
        if picker.focus == Focus::List {
            let column = picker.input.visual_cursor().max(scroll) - scroll + PROMPT.width();
            frame.set_cursor_position(Position::new(column as u16, area.y));
        }
    }

    fn draw_list(&self, frame: &mut Frame<'_>, mut area: Rect, picker: &mut Picker) {
        let head = picker.results.head.clone().unwrap_or_else(|| {
            let is_empty = picker.rows.is_empty() && !picker.is_searching;
            if is_empty { "nothing was found".to_owned() } else { String::new() }
        });
        if !head.is_empty() {
            let most = MOST_HEAD.min(usize::from(area.height) - 1);
            for line in wrapped(&head, area.width.into(), most, self.styles.dim) {
                frame.buffer_mut().set_line(area.x, area.y, &line, area.width);
                area = Rect { y: area.y + 1, height: area.height - 1, ..area };
            }
        }
        let height = usize::from(area.height);
        let chosen = picker.chosen_row();
        if let Some(chosen) = chosen {
            // The heading stays visible above the first message of a conversation.
            let first = chosen - usize::from(picker.rows[chosen].message == Some(0) && height > 1);
            picker.top = picker.top.clamp((chosen + 1).saturating_sub(height), first);
        }
        let rows = picker.rows.iter().enumerate().skip(picker.top).take(height);
        for ((number, row), y) in rows.zip(area.y..) {
            let width = usize::from(area.width);
            let line = self.row(picker, row, width);
            frame.buffer_mut().set_line(area.x, y, &line, area.width);
            if chosen == Some(number) {
                let row = Rect { y, height: 1, ..area };
                frame.buffer_mut().set_style(row, self.styles.chosen);
            }
        }
    }

    fn row(&self, picker: &Picker, row: &ListRow, width: usize) -> Line<'static> {
        let conversation = &picker.results.conversations[row.conversation];
        match row.message {
            None => self.heading(conversation, width),
            Some(message) => self.message(&conversation.messages[message], width),
        }
    }

    fn heading(&self, conversation: &FoundConversation, width: usize) -> Line<'static> {
        let FoundConversation { title, place, time, short_id, .. } = conversation;
        let shown = [(ROOMY, place), (DATED, time), (NAMED, short_id)];
        let shown = shown.into_iter().filter(|(least, fact)| width >= *least && !fact.is_empty());
        let mut facts: Vec<String> = shown.map(|(_, fact)| fact.clone()).collect();
        let columns = |facts: &[String]| facts.iter().map(|fact| fact.width() + 2).sum::<usize>();
        let least = title.text.width().min(LEAST_TITLE);
        // The place is the longest, and says least.
        if let Some(over) = (columns(&facts) + least).checked_sub(width + 1)
            && width >= ROOMY
        {
            let room = place.width().saturating_sub(over + 1);
            facts[0] = fit(vec![Span::raw(facts[0].clone())], room).to_string();
        }
        let facts: String = facts.iter().map(|fact| format!("  {fact}")).collect();
        let room = width.saturating_sub(facts.width());
        let mut line = fit(self.marked(title, self.styles.heading), room);
        let gap = room.saturating_sub(line.width());
        line.push_span(Span::styled(format!("{}{facts}", " ".repeat(gap)), self.styles.dim));
        line
    }

    fn message(&self, message: &FoundMessage, width: usize) -> Line<'static> {
        let number = message.number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        let mut spans = vec![Span::styled(format!("{number:>3}  "), self.styles.dim)];
        if width >= ROOMY {
            let role = fit(vec![Span::raw(message.role.clone())], ROLE_WIDTH);
            let gap = " ".repeat(ROLE_WIDTH + 1 - role.width());
            spans.push(Span::styled(format!("{role}{gap}"), self.styles.dim));
        }
        let used: usize = spans.iter().map(Span::width).sum();
        let room = width.saturating_sub(used);
        let line = beginning(&message.line.text, &message.line.marks, room);
        spans.extend(self.marked(&MarkedText::of(&line), Style::new()));
        fit(spans, width)
    }

    fn marked(&self, text: &MarkedText, style: Style) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let mut at = 0;
        for mark in &text.marks {
            spans.push(Span::styled(text.text[at..mark.start].to_owned(), style));
            spans.push(Span::styled(text.text[mark.clone()].to_owned(), self.styles.mark));
            at = mark.end;
        }
        spans.push(Span::styled(text.text[at..].to_owned(), style));
        spans
    }

    fn draw_preview(&mut self, frame: &mut Frame<'_>, area: Rect, picker: &mut Picker) {
        let Some(preview) = &picker.preview else { return };
        let width = usize::from(area.width);
        let known = self.wrapped.as_ref();
        if known.is_none_or(|known| (known.preview, known.width) != (picker.previews, width)) {
            self.wrapped = Some(self.wrap(preview, picker.previews, width));
        }
        let Some(wrapped) = &self.wrapped else { return };
        let height = usize::from(area.height);
        let end = wrapped.lines.len().saturating_sub(height);
        let lead = LEAD.min(height / 2);
        let top = picker.scroll.unwrap_or(wrapped.focus.saturating_sub(lead)).min(end);
        picker.measured.preview_top = top;
        picker.measured.preview_end = end;
        for (line, y) in wrapped.lines.iter().skip(top).take(height).zip(area.y..) {
            frame.buffer_mut().set_line(area.x, y, line, area.width);
        }
    }

    fn wrap(&self, preview: &Preview, number: u64, width: usize) -> WrappedPreview {
        let mut lines = Vec::new();
        let mut focus = 0;
        for message in &preview.messages {
            let style = if message.is_chosen { self.styles.heading } else { self.styles.dim };
            let heading = lines.len();
            lines.push(fit(vec![Span::styled(message.heading.clone(), style)], width));
            let wrapped = wrap_text(&message.text, width);
            if message.is_chosen {
                let matched = wrapped.iter().position(|line| !line.marks.is_empty());
                focus = matched.map_or(heading, |line| heading + 1 + line);
            }
            lines.extend(wrapped.iter().map(|line| Line::from(self.marked(line, Style::new()))));
            lines.push(Line::default());
        }
        WrappedPreview { preview: number, width, lines, focus }
    }

    /// Returns the message about the last key, or an error of the search, or the keys, on at most
    /// `most` lines.
    fn status(&self, picker: &Picker, width: u16, most: usize) -> Vec<Line<'static>> {
        let (text, style) = match (&picker.notice, &picker.results.problem) {
            (Some(notice), _) => (notice.as_str(), self.styles.warning),
            (None, Some(problem)) => (problem.as_str(), self.styles.warning),
            (None, None) => (keys(picker, width), self.styles.dim),
        };
        wrapped(text, width.into(), most, style)
    }
}

fn wrapped(text: &str, width: usize, most: usize, style: Style) -> Vec<Line<'static>> {
    let text = MarkedText { text: text.to_owned(), marks: Vec::new() };
    let mut lines: Vec<String> =
        wrap_text(&text, width).into_iter().map(|line| line.text).collect();
    let rest = lines.split_off(lines.len().min(most.max(1)) - 1).concat();
    let lines = lines.into_iter().chain([rest]);
    lines.map(|line| fit(vec![Span::styled(line, style)], width)).collect()
}

fn keys(picker: &Picker, width: u16) -> &'static str {
    let (all, few) = match picker.focus {
        _ if picker.help.is_some() => ("↑↓ scroll  Esc closes this list", "Esc closes this list"),
        Focus::Preview if picker.is_zoomed => (
            "↑↓ scroll  q: back to the results  Enter print the whole conversation",
            "q: back to the results",
        ),
        Focus::List if picker.last_asked().is_ranked => (
            "↑↓ choose  Enter show  ^T exact  ^O open  Tab preview  F1 keys  Esc leave",
            "Enter show  F1 keys  Esc leave",
        ),
        Focus::List => (
            "↑↓ choose  Enter show  ^T ranked  ^O open  Tab preview  F1 keys  Esc leave",
            "Enter show  F1 keys  Esc leave",
        ),
        Focus::Preview => (
            "↑↓ scroll  Enter show  o open  r resume  y copy  Tab back  F1 keys  Esc leave",
            "y copy  Tab back  F1 keys",
        ),
    };
    if all.width() <= width.into() { all } else { few }
}

/// Returns the number of results in several forms, the longest first.
fn counts(picker: &Picker) -> Vec<String> {
    let results = &picker.results;
    if picker.is_searching {
        return vec!["searching…".to_owned(), ELLIPSIS.to_owned()];
    }
    let (messages, chats) = (results.messages(), results.conversations.len());
    let is_of_chats = results.is_list || messages == 0 && chats > 0;
    let shown = if is_of_chats { chats } else { messages };
    let what = if is_of_chats { "chat" } else { "message" };
    if results.is_ranked && results.is_cut {
        let best = format!("the best {}", counted(shown, what));
        return vec![best, shown.to_string()];
    }
    let Some(Count { messages, conversations, titles }) = results.count else {
        let more = if results.is_cut { "+" } else { "" };
        let shown = format!("{}{more}", grouped(shown as u64));
        return vec![format!("{shown} {what}s"), shown];
    };
    let all = match (results.is_list, is_of_chats) {
        (true, _) => conversations,
        (false, true) => titles,
        (false, false) => messages,
    };
    let of = if shown < all { format!("{shown} of ") } else { String::new() };
    let short = format!("{of}{}", counted(all, what));
    let mut forms = vec![short.clone(), counted(all, what), grouped(all as u64)];
    if !is_of_chats && all > 0 {
        let long = format!("{short} in {}", counted(conversations, "conversation"));
        let by_title = (titles > 0).then(|| format!("{long}, {titles} by title"));
        forms.splice(..0, by_title.into_iter().chain([long]));
    }
    forms
}

/// Returns the text after the first `column` columns.
fn from_column(text: &str, column: usize) -> &str {
    let mut width = 0;
    for (at, letter) in text.grapheme_indices(true) {
        if width >= column {
            return &text[at..];
        }
        width += letter.width();
    }
    ""
}

/// Returns spans as a line of at most `width` columns; a cut line ends with [`ELLIPSIS`].
fn fit(spans: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let line = Line::from(spans);
    if line.width() <= width {
        return line;
    }
    let mut fitting = Line::default();
    let mut room = width.saturating_sub(1);
    for span in line.spans {
        let end = excerpt::start(&span.content, room, columns).len();
        let is_whole = end == span.content.len();
        room -= span.content[..end].width().min(room);
        fitting.push_span(Span::styled(span.content[..end].to_owned(), span.style));
        if !is_whole {
            break;
        }
    }
    if width > 0 {
        fitting.push_span(Span::raw(ELLIPSIS));
    }
    fitting
}

/// Wraps a text to lines of at most `width` columns, between words if possible.
fn wrap_text(text: &MarkedText, width: usize) -> Vec<MarkedText> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.text.trim_end().split('\n') {
        let end = start + line.len();
        loop {
            let rest = &text.text[start..end];
            let mut length = excerpt::start(rest, width, columns).len();
            if length < rest.len() {
                let space = rest[..length].rfind(' ').filter(|space| *space > 0);
                length = space.map_or(length, |space| space + 1);
            }
            // A character that is wider than the screen gets a line of its own.
            if length == 0 {
                length = rest.graphemes(true).next().map_or(0, str::len);
            }
            lines.push(part(text, start, start + length));
            start += length;
            if start >= end {
                break;
            }
        }
        start = end + 1;
    }
    lines
}

fn part(text: &MarkedText, start: usize, end: usize) -> MarkedText {
    let first = text.marks.partition_point(|mark| mark.end <= start);
    let inside = text.marks[first..].iter().take_while(|mark| mark.start < end);
    let marks = inside.map(|mark| mark.start.max(start) - start..mark.end.min(end) - start);
    MarkedText { text: text.text[start..end].to_owned(), marks: marks.collect() }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, path::Path, sync::Arc};

    use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
    use ratatui_core::{backend::TestBackend, terminal::Terminal};

    use super::{
        super::{
            super::environment::Environment,
            search::{self, PickerContext, PickerFinding},
        },
        *,
    };
    use crate::test_export::TestExport;
    use verbatim_base::model::Stop;
    use verbatim_engine::Engine;

    /// A picker of a small export, without a thread.
    struct Screen {
        context: PickerContext,
        picker: Picker,
    }

    impl Screen {
        fn of(export: &TestExport) -> Screen {
            let engine = Arc::new(Engine::new(export.engine.config().clone()));
            let context = PickerContext { engine, environment: Environment::default() };
            let mut screen = Screen { context, picker: Picker::default() };
            screen.answer();
            screen
        }

        fn type_text(&mut self, text: &str) {
            self.picker.handle(&Event::Paste(text.to_owned()));
        }

        fn press(&mut self, code: KeyCode) {
            self.picker.handle(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
            self.read();
        }

        fn answer(&mut self) {
            let asked = self.picker.last_asked().clone();
            search::search(&self.context, &asked, &Stop::never(), &mut |answer| match answer {
                PickerFinding::Found(results) => drop(self.picker.show_results(results)),
                PickerFinding::Counted(count) => self.picker.set_count(count),
            });
            self.read();
        }

        fn read(&mut self) {
            if let Some(target) = self.picker.wanted_preview() {
                let preview = search::preview(&self.context, &target, &Stop::never());
                self.picker.show_preview(preview.unwrap());
            }
        }

        /// Returns the screen as text, followed by the marked text and the chosen text.
        fn drawn(&mut self, width: u16, height: u16) -> String {
            let mut view = PickerView::new(true);
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| view.draw(frame, &mut self.picker)).unwrap();
            let buffer = terminal.backend().buffer();
            let mut text = String::new();
            let mut notes = String::new();
            for y in 0..height {
                let (mut line, mut marked, mut chosen, mut skip) =
                    (String::new(), String::new(), 0, 0);
                for x in 0..width {
                    let cell = &buffer[(x, y)];
                    if skip > 0 {
                        skip -= 1;
                        continue;
                    }
                    skip = cell.symbol().width().saturating_sub(1);
                    line += cell.symbol();
                    chosen += usize::from(cell.modifier.contains(Modifier::REVERSED));
                    marked += if cell.fg == Color::Red { cell.symbol() } else { "|" };
                }
                writeln!(text, "{}", line.trim_end()).unwrap();
                for word in marked.split('|').filter(|word| !word.is_empty()) {
                    writeln!(notes, "line {}: {word:?} is marked", y + 1).unwrap();
                }
                if chosen > 0 {
                    writeln!(notes, "line {} is chosen", y + 1).unwrap();
                }
            }
            format!("{text}{}\n{notes}", "=".repeat(width.into()))
        }
    }

    #[track_caller]
    fn golden(name: &str, text: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/picker");
        let path = folder.join(name).with_extension("txt");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert!(text == expected, "{} differs; UPDATE=1 rewrites it:\n{text}", path.display());
    }

    fn export() -> TestExport {
        let long = format!("{}the borrow checker{}", "before ".repeat(30), " after".repeat(99));
        let export = TestExport::indexed(&[
            "Why does the borrow checker\nrefuse this?\n\n    let x = &y;",
            &long,
            "カフェはどこですか？京都のカフェに行きたいです。日本語の長い文がここに続きます。カフェ",
            "👩‍👩‍👧 a family 🍵 and tea, é",
            "\u{1b}[31mnot red\u{202e} \u{9b}1m",
        ]);
        let sql = "UPDATE conversations SET title = ?2 WHERE id = ?1";
        let title = "A very long title about the Borrow checker that goes on, and on, and on";
        export.connection.execute(sql, ("1", title)).unwrap();
        export.connection.execute(sql, ("2", "日本語の質問")).unwrap();
        let sql = "INSERT INTO messages VALUES ('r' || ?1, 0, ?2, ?3, 1700000100 + ?1)";
        for number in 0..40 {
            let role = if number % 2 == 0 { "assistant" } else { "a strange role" };
            let text = format!("Answer {number}: the Borrow Checker\n{}", "words ".repeat(25));
            export.connection.execute(sql, (number, role, text)).unwrap();
        }
        export
    }

    #[test]
    fn screens() {
        let export = export();
        let mut screen = Screen::of(&export);
        golden("all", &screen.drawn(120, 12));
        screen.type_text("borrow checker");
        golden("searching", &screen.drawn(120, 8));
        screen.answer();
        golden("results", &screen.drawn(120, 24));
        golden("narrow", &screen.drawn(40, 12));
        golden("usual", &screen.drawn(80, 10));
        golden("small", &screen.drawn(23, 4));
        screen.press(KeyCode::PageDown);
        screen.press(KeyCode::End);
        golden("further", &screen.drawn(120, 14));
        screen.press(KeyCode::Tab);
        golden("narrow_preview", &screen.drawn(60, 12));
        screen.press(KeyCode::Home);
        golden("scrolled", &screen.drawn(120, 14));
        screen.picker.notice = Some("copied the message".to_owned());
        screen.type_text(" of nobody");
        screen.answer();
        golden("nothing", &screen.drawn(100, 8));
        screen.picker.notice = None;
        screen.press(KeyCode::F(1));
        golden("keys", &screen.drawn(80, 24));
        screen.press(KeyCode::Down);
        golden("keys_narrow", &screen.drawn(40, 12));
    }

    #[test]
    fn messages_and_narrow_screens_lose_no_text() {
        let export = export();
        let mut screen = Screen::of(&export);
        let notice =
            "cannot start a browser for https://chatgpt.com/c/6650a1b2: none could be started";
        screen.picker.notice = Some(notice.to_owned());
        let drawn = screen.drawn(40, 10);
        golden("message", &drawn);
        let words = drawn.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(notice), "{drawn}");
        screen.picker.notice = Some(notice.repeat(9));
        assert!(screen.drawn(40, 5).contains("\ncannot"), "a line of the list is left");
        screen.picker.notice = None;
        screen.type_text("checker");
        screen.answer();
        golden("narrowest", &screen.drawn(20, 8));
    }

    #[test]
    fn wide_letters_are_cut_between_columns() {
        let export = export();
        let mut screen = Screen::of(&export);
        screen.type_text("カフェ");
        screen.answer();
        golden("wide_letters", &screen.drawn(101, 10));
        golden("wide_letters_narrow", &screen.drawn(30, 8));
        for width in LEAST_WIDTH..130 {
            screen.drawn(width, 9);
        }
        for text in ["\u{9b}", "not red", "family", "🍵"] {
            let mut screen = Screen::of(&export);
            screen.type_text(text);
            screen.answer();
            let drawn = screen.drawn(110, 9);
            assert!(!drawn.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{drawn}");
        }
    }

    #[test]
    fn text_without_colours_is_underlined() {
        let styles = PickerView::new(false).styles;
        for style in [styles.mark, styles.heading, styles.dim, styles.chosen, styles.warning] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }

    #[test]
    fn lines_end_between_words() {
        let mut text =
            MarkedText { text: "one two three\n\n  日本語 x\n".to_owned(), marks: Vec::new() };
        text.marks.push(4..9);
        let shown = wrap_text(&text, 6).into_iter().map(|mut line| {
            for mark in line.marks.into_iter().rev() {
                line.text.insert(mark.end, ']');
                line.text.insert(mark.start, '[');
            }
            line.text
        });
        let expected = ["one ", "[two ]", "[t]hree", "", "  ", "日本語", " x"];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }
}
