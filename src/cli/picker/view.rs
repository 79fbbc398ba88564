//! Draws the picker: the typed text, the list, and the preview below it.

use ratatui_core::layout::{Constraint, Layout, Position, Rect};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span, Text};
use ratatui_widgets::paragraph::{Paragraph, Wrap};
use unicode_width::UnicodeWidthStr;

use super::search::{FoundConversation, FoundMessage, PreviewMessage};
use super::state::Picker;
use crate::cli::terminal::layout::{LEAST_TITLE, LineLayout, around_match, fitted, width};
use crate::cli::terminal::output::{counted, grouped};
use verbatim_engine::{Count, filters::ALL};
use verbatim_text::excerpt::Piece;

/// The maximum number of lines for a message below the list.
const MOST_STATUS: u16 = 4;

/// The maximum number of lines above the list for what the results are.
const MOST_HEAD: u16 = 3;

/// The minimum number of lines for a list with a preview below it.
const LEAST_FOR_PREVIEW: u16 = 12;

const KEYS: [(&str, &str); 9] = [
    ("↑ ↓, ^P ^N", "choose; PgUp and PgDn by pages"),
    ("Enter", "show the message in its conversation"),
    ("Esc, ^C", "leave"),
    ("Tab", "read on in the preview; Shift-Tab goes back"),
    ("^T", "exact text, or the best by words and meaning"),
    ("^O", "open the conversation on its service's site"),
    ("^R", "print the command that resumes the session"),
    ("^Y", "copy the message"),
    ("^U ^W", "delete the text, or its last word"),
];

/// The columns of the keys in the list of keys.
const KEY: usize = 12;

const EXAMPLES: &str = "project:shop service:codex role:user since:7d until:2025";

const PROMPT: &str = "> ";

const WRAP: Wrap = Wrap { trim: false };

#[derive(Clone, Copy, Debug)]
pub(super) struct PickerView {
    mark: Style,
    heading: Style,
    dim: Style,
    chosen: Style,
    warning: Style,
}

impl PickerView {
    /// Returns a view. Without colours, the view marks text by its style only, such as bold or reversed.
    pub(super) fn new(colours: bool) -> PickerView {
        let plain = Style::new();
        let view = PickerView {
            mark: plain.add_modifier(Modifier::BOLD),
            heading: plain.add_modifier(Modifier::BOLD),
            dim: plain.add_modifier(Modifier::DIM),
            chosen: plain.add_modifier(Modifier::REVERSED),
            warning: plain,
        };
        if !colours {
            return PickerView { mark: view.mark.add_modifier(Modifier::UNDERLINED), ..view };
        }
        PickerView {
            mark: view.mark.fg(Color::Red),
            heading: view.heading.fg(Color::Green),
            warning: plain.fg(Color::Yellow),
            ..view
        }
    }

    pub(super) fn draw(self, frame: &mut Frame<'_>, picker: &mut Picker) {
        let status = self.status(picker, frame.area().width);
        let below = height_of(&status, frame.area(), MOST_STATUS);
        let line = Constraint::Length(1);
        let lines = [line, line, Constraint::Fill(1), Constraint::Length(below)];
        let [input, rule, body, below] = Layout::vertical(lines).areas(frame.area());
        self.draw_input(frame, input, picker);
        frame.render_widget(self.rule(picker, rule.width), rule);
        frame.render_widget(status, below);
        if picker.lists_keys {
            frame.render_widget(keys(), body);
        } else if body.height < LEAST_FOR_PREVIEW {
            self.draw_list(frame, body, picker);
        } else {
            let lines = [Constraint::Fill(1), Constraint::Length(1), Constraint::Fill(1)];
            let [list, line, preview] = Layout::vertical(lines).areas(body);
            self.draw_list(frame, list, picker);
            let dashes = "─".repeat(line.width.into());
            frame.render_widget(Line::styled(dashes, self.dim), line);
            self.draw_preview(frame, preview, picker);
        }
    }

    fn draw_input(self, frame: &mut Frame<'_>, area: Rect, picker: &Picker) {
        let lengths = [Constraint::Length(PROMPT.len() as u16), Constraint::Fill(1)];
        let [prompt, field] = Layout::horizontal(lengths).areas(area);
        frame.render_widget(Span::styled(PROMPT, self.heading), prompt);
        // The cursor needs a column behind the text.
        let scroll = picker.input.visual_scroll(usize::from(field.width).saturating_sub(1));
        let text = Paragraph::new(picker.input.value()).scroll((0, scroll as u16));
        frame.render_widget(text, field);
        if !field.is_empty() {
            let column = picker.input.visual_cursor().saturating_sub(scroll) as u16;
            let x = field.x + column.min(field.width - 1);
            frame.set_cursor_position(Position::new(x, field.y));
        }
    }

    /// Returns the line below the typed text: what was found, how the text is searched, and the filters.
    fn rule(self, picker: &Picker, columns: u16) -> Line<'static> {
        let facts = [count_of(picker), picker.asked.mode_name().to_owned()].into_iter();
        let facts = facts.chain(picker.results.filters.iter().cloned());
        let facts: Vec<String> = facts.chain(picker.results.more_alike.clone()).collect();
        let line = format!("── {} ", facts.join(" · "));
        let line = fitted(&[Piece::plain(&line)], columns.into());
        let rest = "─".repeat(usize::from(columns).saturating_sub(width(&line)));
        Line::styled(format!("{}{rest}", text_of(&line)), self.dim)
    }

    fn draw_list(self, frame: &mut Frame<'_>, area: Rect, picker: &mut Picker) {
        let is_empty = picker.rows.is_empty() && !picker.is_searching;
        let head = picker.results.head.as_deref().or(is_empty.then_some("nothing was found"));
        let above = Paragraph::new(Text::styled(head.unwrap_or_default().to_owned(), self.dim));
        let above = above.wrap(WRAP);
        let lines = if head.is_some() { height_of(&above, area, MOST_HEAD) } else { 0 };
        let lengths = [Constraint::Length(lines), Constraint::Fill(1)];
        let [head, list] = Layout::vertical(lengths).areas(area);
        frame.render_widget(above, head);
        let height = usize::from(list.height);
        picker.page = height;
        let chosen = picker.chosen_row();
        if let Some(chosen) = chosen.filter(|_| height > 0) {
            // The heading stays visible above the first message of a conversation.
            let first = chosen - usize::from(picker.rows[chosen].message == Some(0) && height > 1);
            picker.top = picker.top.clamp((chosen + 1).saturating_sub(height), first);
        }
        let rows = picker.rows.iter().enumerate().skip(picker.top).take(height);
        for ((number, row), y) in rows.zip(list.y..) {
            let area = Rect { y, height: 1, ..list };
            let conversation = &picker.results.conversations[row.conversation];
            let columns = area.width.into();
            let line = match row.message {
                None => self.heading(conversation, columns),
                Some(message) => self.message(&conversation.messages[message], columns),
            };
            frame.render_widget(line, area);
            if chosen == Some(number) {
                frame.buffer_mut().set_style(area, self.chosen);
            }
        }
    }

    /// Returns the title of a conversation, with the facts that have room beside it. The last is the most
    /// important one.
    fn heading(self, conversation: &FoundConversation, columns: usize) -> Line<'static> {
        let FoundConversation { title, facts, .. } = conversation;
        let least = width(title).min(LEAST_TITLE);
        let mut facts = &facts[..];
        while columns_of(facts) + least > columns && !facts.is_empty() {
            facts = &facts[1..];
        }
        let room = columns.saturating_sub(columns_of(facts));
        let title = fitted(title, room);
        let gap = " ".repeat(room.saturating_sub(width(&title)));
        let facts: String = facts.iter().map(|fact| format!("  {fact}")).collect();
        let mut spans = self.marked(&title, self.heading);
        spans.push(Span::styled(format!("{gap}{facts}"), self.dim));
        Line::from(spans)
    }

    fn message(self, message: &FoundMessage, columns: usize) -> Line<'static> {
        let number = message.number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        let layout = LineLayout { columns, is_cut: true, colours: false, links: false };
        let start = layout.start_of_message(&number, &message.role);
        let text = around_match(&message.text, columns.saturating_sub(start.width()));
        let mut spans = vec![Span::styled(start, self.dim)];
        spans.extend(self.marked(&text, Style::new()));
        Line::from(spans)
    }

    fn marked(self, pieces: &[Piece], style: Style) -> Vec<Span<'static>> {
        let styled = pieces.iter().map(|piece| {
            Span::styled(piece.text.clone(), if piece.is_match { self.mark } else { style })
        });
        styled.collect()
    }

    fn draw_preview(self, frame: &mut Frame<'_>, area: Rect, picker: &mut Picker) {
        let mut lines = Vec::new();
        for PreviewMessage { heading, text, is_chosen } in &picker.preview {
            let style = if *is_chosen { self.heading } else { self.dim };
            lines.push(Line::styled(heading.clone(), style));
            lines.extend(self.lines(text));
            lines.push(Line::default());
        }
        let text = Paragraph::new(lines).wrap(WRAP);
        // One line stays visible.
        let page = usize::from(area.height.saturating_sub(1)).max(1);
        // After the last page comes the first one again.
        if picker.pages_read > 0 && picker.pages_read * page >= text.line_count(area.width) {
            picker.pages_read = 0;
        }
        let top = u16::try_from(picker.pages_read * page).unwrap_or(u16::MAX);
        frame.render_widget(text.scroll((top, 0)), area);
    }

    fn lines(self, text: &[Piece]) -> Vec<Line<'static>> {
        let mut lines = vec![Line::default()];
        for Piece { is_match, text } in text {
            let style = if *is_match { self.mark } else { Style::new() };
            for (number, part) in text.split('\n').enumerate() {
                if number > 0 {
                    lines.push(Line::default());
                }
                let last = lines.len() - 1;
                lines[last].push_span(Span::styled(part.to_owned(), style));
            }
        }
        lines
    }

    /// Returns the message about the last key, or an error of the search, or the keys.
    fn status(self, picker: &Picker, columns: u16) -> Paragraph<'static> {
        let message = picker.notice.as_ref().or(picker.results.problem.as_ref());
        if let Some(message) = message {
            return Paragraph::new(Text::styled(message.clone(), self.warning)).wrap(WRAP);
        }
        let keys = match (picker.lists_keys, picker.asked.is_ranked) {
            (true, _) => "Esc closes this list",
            (false, true) => {
                "Enter show  F1 keys  Esc leave  Tab read on  ^T exact  ^O open  ^Y copy"
            }
            (false, false) => {
                "Enter show  F1 keys  Esc leave  Tab read on  ^T ranked  ^O open  ^Y copy"
            }
        };
        let keys = text_of(&fitted(&[Piece::plain(keys)], columns.into()));
        Paragraph::new(Text::styled(keys, self.dim))
    }
}

fn keys() -> Paragraph<'static> {
    let mut text = String::new();
    for (key, does) in KEYS {
        let gap = " ".repeat(KEY - key.width());
        text += &format!("{key}{gap}{does}\n");
    }
    let others = ALL.iter().filter(|filter| !EXAMPLES.contains(filter.name));
    let others: String = others.map(|filter| format!("{}: ", filter.name)).collect();
    text += &format!(
        "\nIn the text, the filters of `verbatim search`:\n{EXAMPLES}\n{others}in:\"A title\"\n\
         A filter that names nothing is searched as text."
    );
    Paragraph::new(text).wrap(WRAP)
}

/// Returns the number of lines that a text takes in an area, from 1 to `most`.
fn height_of(text: &Paragraph<'_>, area: Rect, most: u16) -> u16 {
    let count = text.line_count(area.width).min(most.into()) as u16;
    // The typed text, the line below it and a row of the list come first.
    count.min(area.height.saturating_sub(3)).max(1)
}

fn columns_of(facts: &[String]) -> usize {
    facts.iter().map(|fact| fact.width() + 2).sum()
}

fn text_of(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

fn count_of(picker: &Picker) -> String {
    let results = &picker.results;
    if picker.is_searching {
        return "searching…".to_owned();
    }
    let shown = results.messages();
    let Some(Count { messages, conversations, titles }) = results.count else {
        let more = if results.is_cut { "+" } else { "" };
        return format!("{}{more} messages", grouped(shown as u64));
    };
    if results.is_list {
        return shown_of(results.conversations.len(), conversations, "chat");
    }
    if results.is_ranked && results.is_cut {
        return format!("the best {}", counted(shown, "message"));
    }
    let mut count = String::new();
    if messages > 0 {
        let conversations = counted(conversations, "conversation");
        count = format!("{} in {conversations}", shown_of(shown, messages, "message"));
    }
    if titles > 0 {
        let comma = if messages > 0 { ", " } else { "" };
        count += &format!("{comma}{} by title", counted(titles, "conversation"));
    }
    if count.is_empty() { "nothing".to_owned() } else { count }
}

fn shown_of(shown: usize, all: usize, what: &str) -> String {
    let of = if shown < all { format!("{} of ", grouped(shown as u64)) } else { String::new() };
    format!("{of}{}", counted(all, what))
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, path::Path, sync::Arc};

    use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
    use ratatui_core::{backend::TestBackend, terminal::Terminal};

    use super::super::asked::PickerContext;
    use super::super::search::{self, PickerAnswer};
    use super::*;
    use crate::{cli::settings::environment::Environment, test_export::TestExport};
    use verbatim_base::call::Call;
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
            let asked = self.picker.asked.clone();
            search::search(&self.context, &asked, &Call::default(), &mut |answer| match answer {
                PickerAnswer::Found(results) => drop(self.picker.show_results(results)),
                PickerAnswer::Counted(count, more) => self.picker.set_count(count, more),
                PickerAnswer::Read(_) => {}
            });
            self.read();
        }

        fn read(&mut self) {
            if let Some(target) = self.picker.wanted_preview() {
                let preview = search::preview(&self.context, &target, &Call::default());
                self.picker.show_preview(preview.unwrap());
            }
        }

        /// Returns the screen as text, followed by the marked text and the chosen text.
        fn drawn(&mut self, width: u16, height: u16) -> String {
            let view = PickerView::new(true);
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| view.draw(frame, &mut self.picker)).unwrap();
            let buffer = terminal.backend().buffer();
            let mut text = String::new();
            let mut notes = String::new();
            for y in 0..height {
                let mut line = String::new();
                let mut marked = String::new();
                let mut chosen = 0;
                let mut skip = 0;
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
        golden("narrow", &screen.drawn(40, 18));
        golden("usual", &screen.drawn(80, 10));
        golden("small", &screen.drawn(20, 5));
        screen.press(KeyCode::PageDown);
        screen.press(KeyCode::Down);
        golden("further", &screen.drawn(120, 18));
        screen.press(KeyCode::Tab);
        golden("read_on", &screen.drawn(120, 18));
        screen.picker.notice = Some("copied the message".to_owned());
        screen.type_text(" of nobody");
        screen.answer();
        golden("nothing", &screen.drawn(100, 8));
        screen.picker.notice = None;
        screen.press(KeyCode::F(1));
        golden("keys", &screen.drawn(80, 24));
        golden("keys_narrow", &screen.drawn(40, 12));
    }

    #[test]
    fn any_size_is_drawn() {
        let export = export();
        let mut screen = Screen::of(&export);
        for typed in ["", "borrow checker", " of nobody"] {
            screen.type_text(typed);
            screen.answer();
            for (width, height) in
                (0..25).flat_map(|width| (0..16).map(move |lines| (width, lines)))
            {
                screen.drawn(width, height);
            }
        }
    }

    #[test]
    fn reading_on_comes_back_to_the_match() {
        let export = export();
        let mut screen = Screen::of(&export);
        screen.type_text("Why does");
        screen.answer();
        let first = screen.drawn(60, 20);
        let mut pages = vec![first.clone()];
        loop {
            screen.press(KeyCode::Tab);
            let page = screen.drawn(60, 20);
            if page == first {
                break;
            }
            assert!(!pages.contains(&page) && pages.len() < 100, "{page}");
            pages.push(page);
        }
        assert!(pages.len() > 1, "{first}");
        assert!(pages.iter().any(|page| page.contains("Answer 5")), "{first}");
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
    }

    #[test]
    fn wide_letters_are_cut_between_columns() {
        let export = export();
        let mut screen = Screen::of(&export);
        screen.type_text("カフェ");
        screen.answer();
        golden("wide_letters", &screen.drawn(101, 18));
        golden("wide_letters_narrow", &screen.drawn(30, 8));
        for width in 1..130 {
            screen.drawn(width, 16);
        }
        for text in ["\u{9b}", "not red", "family", "🍵"] {
            let mut screen = Screen::of(&export);
            screen.type_text(text);
            screen.answer();
            let drawn = screen.drawn(110, 20);
            assert!(!drawn.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{drawn}");
        }
    }

    #[test]
    fn text_without_colours_is_underlined() {
        let styles = PickerView::new(false);
        for style in [styles.mark, styles.heading, styles.dim, styles.chosen, styles.warning] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
