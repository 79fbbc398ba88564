//! The state of the picker, which keys change. The state does not depend on a terminal.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::{Input, InputRequest, backend::crossterm::to_input_request};

use super::{
    super::output::harmless,
    asked::Asked,
    search::{PickerTarget, Preview, Results},
};
use verbatim_engine::Count;

/// The number of lines that stay visible when the user scrolls by a page.
const OVERLAP: usize = 1;

#[derive(Debug, Default)]
pub(super) struct Picker {
    pub(super) input: Input,
    pub(super) focus: Focus,
    /// Whether the conversations are shown in a pager, and not in the preview.
    pub(super) has_pager: bool,
    pub(super) is_zoomed: bool,
    pub(super) results: Results,
    pub(super) rows: Vec<ListRow>,
    /// The rows that can be chosen, and the place of the chosen row among them.
    choices: Vec<usize>,
    chosen: usize,
    pub(super) top: usize,
    pub(super) is_searching: bool,
    pub(super) preview: Option<Preview>,
    pub(super) previews: u64,
    /// The first visible line of the preview; `None` to show the match.
    pub(super) scroll: Option<usize>,
    pub(super) notice: Option<String>,
    pub(super) measured: Measured,
    /// The first visible line of the list of keys; `None` if the list is not shown.
    pub(super) help: Option<usize>,
    asked: Asked,
    needs_preview: bool,
    /// The action that is performed when new results arrive.
    waiting: Option<Action>,
}

/// Sizes that are known only after the screen was drawn. Keys that scroll need them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// The number of visible lines of the list and of the preview.
    pub(super) height: usize,
    /// The first visible line of the preview, and the maximum of that line.
    pub(super) preview_top: usize,
    pub(super) preview_end: usize,
    /// The maximum of the first visible line of the list of keys.
    pub(super) help_end: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    /// Letters are text, and arrows choose a row.
    #[default]
    List,
    /// Letters are commands, and arrows scroll.
    Preview,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListRow {
    pub(super) conversation: usize,
    /// The message; `None` for the heading of the conversation.
    pub(super) message: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Search,
    Show,
    Open,
    Resume,
    Copy,
    Leave,
}

impl Picker {
    pub(super) fn handle(&mut self, event: &Event) -> Option<Action> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.notice = None;
                self.waiting = None;
                self.press(*key, event)
            }
            Event::Paste(text) => {
                self.go_back();
                self.waiting = None;
                for c in text.chars() {
                    self.insert(if c.is_whitespace() { ' ' } else { c });
                }
                self.search()
            }
            _ => None,
        }
    }

    fn press(&mut self, key: KeyEvent, event: &Event) -> Option<Action> {
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        let is_alt = key.modifiers == KeyModifiers::ALT;
        if let Some(top) = self.help.take() {
            match key.code {
                KeyCode::Up => self.help = Some(top.saturating_sub(1)),
                KeyCode::Down => self.help = Some((top + 1).min(self.measured.help_end)),
                KeyCode::Esc | KeyCode::Enter | KeyCode::F(1) | KeyCode::Char('?') => {}
                // Any other key closes the list, and does what it does without the list.
                _ => return self.press(key, event),
            }
            return None;
        }
        match key.code {
            KeyCode::F(1) => self.help = Some(0),
            KeyCode::Char('?') if self.input.value().is_empty() || self.focus == Focus::Preview => {
                self.help = Some(0);
            }
            KeyCode::Char('t') if is_control => {
                return self.change_search(|asked| asked.is_ranked = !asked.is_ranked);
            }
            KeyCode::Char('c') if is_alt => {
                return self.change_search(|asked| asked.case = asked.case.next());
            }
            KeyCode::Char('w') if is_alt => {
                return self.change_search(|asked| asked.is_word = !asked.is_word);
            }
            KeyCode::Char('e') if is_alt => {
                return self.change_search(|asked| asked.is_expression = !asked.is_expression);
            }
            KeyCode::Esc if self.is_zoomed => self.go_back(),
            KeyCode::Esc => return Some(Action::Leave),
            KeyCode::Char('c') if is_control => return Some(Action::Leave),
            KeyCode::Enter => return self.at_target(Action::Show),
            KeyCode::Char('o') if is_control => return self.at_target(Action::Open),
            KeyCode::Char('r') if is_control => return self.at_target(Action::Resume),
            KeyCode::Char('y') if is_control => return self.at_target(Action::Copy),
            KeyCode::Char('n') if is_control => self.choose(1),
            KeyCode::Char('p') if is_control => self.choose(-1),
            KeyCode::Tab | KeyCode::BackTab => match self.focus {
                Focus::List if self.target().is_some() => self.focus = Focus::Preview,
                _ => self.go_back(),
            },
            _ if self.focus == Focus::Preview => return self.read(key.code),
            KeyCode::Up => self.choose(-1),
            KeyCode::Down => self.choose(1),
            KeyCode::PageUp => self.choose(-self.page()),
            KeyCode::PageDown => self.choose(self.page()),
            _ => {
                match to_input_request(event) {
                    Some(InputRequest::InsertChar(c)) => self.insert(c),
                    Some(edit) => drop(self.input.handle(edit)),
                    None => {}
                }
                return self.search();
            }
        }
        None
    }

    /// Handles a key while the preview has the focus.
    fn read(&mut self, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Char('o') => return self.at_target(Action::Open),
            KeyCode::Char('r') => return self.at_target(Action::Resume),
            KeyCode::Char('y') => return self.at_target(Action::Copy),
            KeyCode::Char('/' | 'q') => self.go_back(),
            KeyCode::Up | KeyCode::Char('k') => self.scroll_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-self.page()),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(self.page()),
            KeyCode::Home => self.scroll = Some(0),
            KeyCode::End => self.scroll = Some(self.measured.preview_end),
            _ => {}
        }
        None
    }

    fn go_back(&mut self) {
        (self.focus, self.is_zoomed) = (Focus::List, false);
    }

    /// Shows the chosen message on the whole screen, if there is no pager for it; returns whether it does.
    pub(super) fn zoom(&mut self) -> bool {
        if self.has_pager || self.is_zoomed {
            return false;
        }
        (self.focus, self.is_zoomed) = (Focus::Preview, true);
        true
    }

    fn insert(&mut self, c: char) {
        // Control characters cannot be shown, so they are not accepted as input.
        if harmless(c.encode_utf8(&mut [0; 4])).starts_with(c) && c != '\n' && c != '\t' {
            self.input.handle(InputRequest::InsertChar(c));
        }
    }

    /// Returns a search if the text changed.
    fn search(&mut self) -> Option<Action> {
        self.change_search(|_| {})
    }

    /// Changes how the text is searched; returns a search if that or the text changed.
    fn change_search(&mut self, change: impl FnOnce(&mut Asked)) -> Option<Action> {
        let typed = self.input.value().trim().to_owned();
        let mut asked = Asked { typed, ..self.asked.clone() };
        change(&mut asked);
        if asked == self.asked {
            return None;
        }
        self.asked = asked;
        self.is_searching = true;
        Some(Action::Search)
    }

    /// Returns the action if a row is chosen. During a search, the action waits, because the user
    /// wants to apply the action to the new results.
    fn at_target(&mut self, action: Action) -> Option<Action> {
        if self.is_searching {
            self.waiting = Some(action);
            return None;
        }
        self.target().is_some().then_some(action)
    }

    fn page(&self) -> isize {
        self.measured.height.saturating_sub(OVERLAP).max(1) as isize
    }

    fn choose(&mut self, by: isize) {
        let last = self.choices.len().saturating_sub(1);
        let chosen = self.chosen.saturating_add_signed(by).min(last);
        if chosen != self.chosen {
            self.chosen = chosen;
            self.needs_preview = true;
        }
    }

    fn scroll_by(&mut self, by: isize) {
        let top = self.measured.preview_top.saturating_add_signed(by);
        self.scroll = Some(top.min(self.measured.preview_end));
    }

    pub(super) fn last_asked(&self) -> &Asked {
        &self.asked
    }

    pub(super) fn set_count(&mut self, count: Option<Count>) {
        (self.results.count, self.results.is_counting) = (count, false);
    }

    /// Shows results of the last search. Returns the action that waited for the last results.
    pub(super) fn show_results(&mut self, results: Results) -> Option<Action> {
        self.is_searching = results.is_first;
        self.results = results;
        self.rows.clear();
        for (conversation, of) in self.results.conversations.iter().enumerate() {
            let messages = (0..of.messages.len()).map(Some);
            let rows = [None].into_iter().chain(messages);
            self.rows.extend(rows.map(|message| ListRow { conversation, message }));
        }
        let is_heading = |row: &ListRow| {
            let of = &self.results.conversations[row.conversation];
            row.message.is_none() && !of.messages.is_empty()
        };
        let choices = (0..self.rows.len()).filter(|row| !is_heading(&self.rows[*row]));
        self.choices = choices.collect();
        (self.chosen, self.top) = (0, 0);
        self.preview = None;
        self.needs_preview = true;
        if self.choices.is_empty() {
            self.go_back();
        }
        // Enter waits for the last results of the text.
        self.waiting.take().and_then(|action| self.at_target(action))
    }

    pub(super) fn show_preview(&mut self, preview: Preview) {
        self.preview = Some(preview);
        self.previews += 1;
        self.scroll = None;
    }

    pub(super) fn chosen_row(&self) -> Option<usize> {
        self.choices.get(self.chosen).copied()
    }

    pub(super) fn target(&self) -> Option<PickerTarget> {
        let row = self.rows[self.chosen_row()?];
        Some(self.results.target(row.conversation, row.message))
    }

    /// Returns the target that needs a preview, only once after each choice.
    pub(super) fn wanted_preview(&mut self) -> Option<PickerTarget> {
        std::mem::take(&mut self.needs_preview).then(|| self.target()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::search::{FoundConversation, MarkedText},
        *,
    };
    use verbatim_engine::SourceKind;

    fn press(picker: &mut Picker, code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
        picker.handle(&Event::Key(KeyEvent::new(code, modifiers)))
    }

    fn plain(picker: &mut Picker, code: KeyCode) -> Option<Action> {
        press(picker, code, KeyModifiers::NONE)
    }

    fn control(picker: &mut Picker, letter: char) -> Option<Action> {
        press(picker, KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn results(count: usize) -> Results {
        let conversation = |number: usize| FoundConversation {
            source: SourceKind::Export,
            id: number.to_string(),
            short_id: number.to_string(),
            place: "export".to_owned(),
            title: MarkedText::default(),
            time: String::new(),
            messages: Vec::new(),
        };
        Results { conversations: (0..count).map(conversation).collect(), ..Results::default() }
    }

    fn chosen(picker: &Picker) -> String {
        picker.target().map_or_else(String::new, |target| target.id)
    }

    #[test]
    fn letters_search_at_once() {
        let mut picker = Picker::default();
        assert_eq!(plain(&mut picker, KeyCode::Char('o')), Some(Action::Search));
        assert_eq!(
            press(&mut picker, KeyCode::Char('É'), KeyModifiers::SHIFT),
            Some(Action::Search)
        );
        assert!(picker.is_searching);
        assert_eq!(plain(&mut picker, KeyCode::Char(' ')), None);
        assert_eq!(plain(&mut picker, KeyCode::Left), None);
        assert_eq!(picker.last_asked().typed, "oÉ");
        assert_eq!(control(&mut picker, 'w'), Some(Action::Search));
        let paste = Event::Paste("two\r\nlines\u{1b}\u{202e}\0".to_owned());
        assert_eq!(picker.handle(&paste), Some(Action::Search));
        assert_eq!(picker.last_asked().typed, "two  lines");
        assert_eq!(control(&mut picker, 'u'), Some(Action::Search));
        assert_eq!(picker.last_asked().typed, "");
        assert_eq!(picker.handle(&Event::Resize(10, 10)), None);
    }

    #[test]
    fn keys_that_need_a_choice_wait_for_one() {
        let mut picker = Picker::default();
        for letter in ['o', 'r', 'y'] {
            assert_eq!(control(&mut picker, letter), None);
        }
        assert_eq!(plain(&mut picker, KeyCode::Enter), None);
        plain(&mut picker, KeyCode::Tab);
        assert_eq!(picker.focus, Focus::List);
        plain(&mut picker, KeyCode::Down);
        assert_eq!(plain(&mut picker, KeyCode::Esc), Some(Action::Leave));
        assert_eq!(control(&mut picker, 'c'), Some(Action::Leave));
    }

    #[test]
    fn arrows_choose_and_ask_for_a_preview_once() {
        let mut picker = Picker::default();
        picker.measured.height = 4;
        picker.show_results(results(9));
        assert!(picker.wanted_preview().is_some_and(|target| target.id == "0"));
        assert!(picker.wanted_preview().is_none());
        plain(&mut picker, KeyCode::Up);
        assert!(picker.wanted_preview().is_none());
        plain(&mut picker, KeyCode::Down);
        control(&mut picker, 'n');
        assert!(picker.wanted_preview().is_some_and(|target| target.id == "2"));
        plain(&mut picker, KeyCode::PageDown);
        assert_eq!(chosen(&picker), "5");
        plain(&mut picker, KeyCode::PageDown);
        plain(&mut picker, KeyCode::PageDown);
        assert_eq!(chosen(&picker), "8");
        control(&mut picker, 'p');
        plain(&mut picker, KeyCode::PageUp);
        assert_eq!(chosen(&picker), "4");
        assert_eq!(plain(&mut picker, KeyCode::Enter), Some(Action::Show));
        assert_eq!(control(&mut picker, 'y'), Some(Action::Copy));
        picker.show_results(results(0));
        assert_eq!(chosen(&picker), "");
        assert!(picker.wanted_preview().is_none());
    }

    #[test]
    fn keys_change_the_search_and_list_the_keys() {
        let mut picker = Picker::default();
        assert_eq!(control(&mut picker, 't'), Some(Action::Search));
        assert_eq!(picker.last_asked().state(), ["best by words and meaning"]);
        control(&mut picker, 't');
        for letter in ['c', 'w', 'e'] {
            let key = KeyCode::Char(letter);
            assert_eq!(press(&mut picker, key, KeyModifiers::ALT), Some(Action::Search));
        }
        let state = ["exact", "expression", "whole words", "letter case matters"];
        assert_eq!(picker.last_asked().state(), state);
        picker.measured.help_end = 1;
        for key in [KeyCode::Char('?'), KeyCode::F(1)] {
            assert_eq!((plain(&mut picker, key), picker.help), (None, Some(0)));
            plain(&mut picker, KeyCode::Down);
            plain(&mut picker, KeyCode::Down);
            assert_eq!(picker.help, Some(1));
            assert_eq!((plain(&mut picker, KeyCode::Esc), picker.help), (None, None));
        }
        plain(&mut picker, KeyCode::Char('a'));
        assert_eq!(plain(&mut picker, KeyCode::Char('?')), Some(Action::Search));
        assert_eq!((&*picker.last_asked().typed, picker.help), ("a?", None));
        // Enter waits for the last results.
        plain(&mut picker, KeyCode::Enter);
        assert_eq!(picker.show_results(Results { is_first: true, ..results(0) }), None);
        assert_eq!(picker.show_results(results(1)), Some(Action::Show));
    }

    #[test]
    fn in_the_preview_letters_are_commands() {
        let mut picker = Picker::default();
        picker.show_results(results(2));
        picker.measured =
            Measured { height: 5, preview_top: 7, preview_end: 9, ..Measured::default() };
        plain(&mut picker, KeyCode::Tab);
        for (letter, action) in [('o', Action::Open), ('r', Action::Resume), ('y', Action::Copy)] {
            assert_eq!(plain(&mut picker, KeyCode::Char(letter)), Some(action));
        }
        assert_eq!(plain(&mut picker, KeyCode::Char('x')), None);
        assert_eq!(picker.last_asked().typed, "");
        plain(&mut picker, KeyCode::Down);
        assert_eq!(picker.scroll, Some(8));
        plain(&mut picker, KeyCode::PageDown);
        assert_eq!(picker.scroll, Some(9));
        plain(&mut picker, KeyCode::Home);
        assert_eq!(picker.scroll, Some(0));
        assert!(picker.zoom() && !picker.zoom());
        assert_eq!(plain(&mut picker, KeyCode::Esc), None);
        assert!(!picker.is_zoomed && picker.zoom());
        plain(&mut picker, KeyCode::Char('/'));
        assert_eq!((picker.focus, picker.is_zoomed), (Focus::List, false));
        assert_eq!(plain(&mut picker, KeyCode::Char('x')), Some(Action::Search));
        // Enter applies to the results for the text that was typed before Enter.
        assert_eq!(plain(&mut picker, KeyCode::Enter), None);
        assert_eq!(picker.show_results(results(1)), Some(Action::Show));
        plain(&mut picker, KeyCode::Tab);
        assert_eq!(picker.show_results(results(0)), None);
        assert_eq!(picker.focus, Focus::List);
    }
}
