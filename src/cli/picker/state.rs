//! The state of the picker, which keys change. The state does not depend on a terminal.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::{Input, InputRequest, backend::crossterm::to_input_request};

use super::asked::TypedText;
use super::search::{PickerTarget, Preview, Results};
use crate::cli::terminal::output::harmless;
use verbatim_engine::Count;
use verbatim_text::screen;

#[derive(Debug, Default)]
pub(super) struct Picker {
    pub(super) input: Input,
    pub(super) results: Results,
    pub(super) rows: Vec<ListRow>,
    /// The rows that can be chosen, and the place of the chosen row among them.
    choices: Vec<usize>,
    chosen: usize,
    /// The first visible row, and the number of visible rows at the last drawing.
    pub(super) top: usize,
    pub(super) page: usize,
    pub(super) is_searching: bool,
    pub(super) preview: Preview,
    /// The number of pages of the preview that were read.
    pub(super) pages_read: usize,
    pub(super) notice: Option<String>,
    pub(super) lists_keys: bool,
    /// What was searched last.
    pub(super) asked: TypedText,
    needs_preview: bool,
    /// The action that is performed when new results arrive.
    waiting: Option<Action>,
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
                self.waiting = None;
                // What is copied from a terminal may have colours.
                for c in screen::shown(text).chars() {
                    self.insert(if c.is_whitespace() { ' ' } else { c });
                }
                self.change_search(self.asked.is_ranked)
            }
            _ => None,
        }
    }

    fn press(&mut self, key: KeyEvent, event: &Event) -> Option<Action> {
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        // Any other key closes the list of keys, and does what it does without the list.
        if std::mem::take(&mut self.lists_keys)
            && matches!(key.code, KeyCode::Esc | KeyCode::Enter | KeyCode::F(1))
        {
            return None;
        }
        match key.code {
            KeyCode::F(1) => self.lists_keys = true,
            KeyCode::Char('t') if is_control => {
                let is_ranked = !self.asked.is_ranked;
                return self.change_search(is_ranked);
            }
            KeyCode::Esc => return Some(Action::Leave),
            KeyCode::Char('c') if is_control => return Some(Action::Leave),
            KeyCode::Enter => return self.action_on_choice(Action::Show),
            KeyCode::Char('o') if is_control => return self.action_on_choice(Action::Open),
            KeyCode::Char('r') if is_control => return self.action_on_choice(Action::Resume),
            KeyCode::Char('y') if is_control => return self.action_on_choice(Action::Copy),
            KeyCode::Char('n') if is_control => self.choose(1),
            KeyCode::Char('p') if is_control => self.choose(-1),
            KeyCode::Tab => self.pages_read += 1,
            KeyCode::BackTab => self.pages_read = self.pages_read.saturating_sub(1),
            KeyCode::Up => self.choose(-1),
            KeyCode::Down => self.choose(1),
            KeyCode::PageUp => self.choose(-self.rows_of_page()),
            KeyCode::PageDown => self.choose(self.rows_of_page()),
            _ => {
                match to_input_request(event) {
                    Some(InputRequest::InsertChar(c)) => self.insert(c),
                    Some(edit) => drop(self.input.handle(edit)),
                    None => {}
                }
                return self.change_search(self.asked.is_ranked);
            }
        }
        None
    }

    fn insert(&mut self, c: char) {
        // Control characters cannot be shown, so they are not accepted as input.
        if harmless(c.encode_utf8(&mut [0; 4])).starts_with(c) && c != '\n' && c != '\t' {
            self.input.handle(InputRequest::InsertChar(c));
        }
    }

    /// Returns a search if the text or the way in which it is searched changed.
    fn change_search(&mut self, is_ranked: bool) -> Option<Action> {
        let asked = TypedText { typed: self.input.value().trim().to_owned(), is_ranked };
        if asked == self.asked {
            return None;
        }
        self.asked = asked;
        self.is_searching = true;
        Some(Action::Search)
    }

    /// Returns the action if a row is chosen. During a search, the action waits, because the user
    /// wants to apply the action to the new results.
    fn action_on_choice(&mut self, action: Action) -> Option<Action> {
        if self.is_searching {
            self.waiting = Some(action);
            return None;
        }
        self.target().is_some().then_some(action)
    }

    /// Returns by how many rows the choice moves by a page. One row stays visible.
    fn rows_of_page(&self) -> isize {
        self.page.saturating_sub(1).max(1) as isize
    }

    fn choose(&mut self, by: isize) {
        let last = self.choices.len().saturating_sub(1);
        let chosen = self.chosen.saturating_add_signed(by).min(last);
        if chosen != self.chosen {
            self.chosen = chosen;
            self.needs_preview = true;
        }
    }

    pub(super) fn set_count(&mut self, count: Option<Count>, more_alike: Option<String>) {
        self.results.count = count;
        self.results.more_alike = more_alike;
        self.results.is_counting = false;
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
        self.choices =
            (0..self.rows.len()).filter(|row| self.can_choose(self.rows[*row])).collect();
        self.chosen = 0;
        self.top = 0;
        self.show_preview(Preview::default());
        self.needs_preview = true;
        // Enter waits for the last results of the text.
        self.waiting.take().and_then(|action| self.action_on_choice(action))
    }

    /// Returns whether a row can be chosen. The heading above messages cannot.
    fn can_choose(&self, row: ListRow) -> bool {
        row.message.is_some() || self.results.conversations[row.conversation].messages.is_empty()
    }

    pub(super) fn show_preview(&mut self, preview: Preview) {
        self.preview = preview;
        self.pages_read = 0;
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
    use super::{super::search::FoundConversation, *};
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
            key: (SourceKind::Export, number.to_string()),
            title: Vec::new(),
            facts: Default::default(),
            messages: Vec::new(),
        };
        Results { conversations: (0..count).map(conversation).collect(), ..Results::default() }
    }

    fn chosen(picker: &Picker) -> String {
        picker.target().map_or_else(String::new, |target| target.key.1)
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
        assert_eq!(picker.asked.typed, "oÉ");
        assert_eq!(control(&mut picker, 'w'), Some(Action::Search));
        let paste = Event::Paste("two\r\nlines\u{1b}\u{202e}\0".to_owned());
        assert_eq!(picker.handle(&paste), Some(Action::Search));
        assert_eq!(picker.asked.typed, "two lines");
        assert_eq!(control(&mut picker, 'u'), Some(Action::Search));
        assert_eq!(picker.asked.typed, "");
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
        plain(&mut picker, KeyCode::Down);
        assert_eq!(plain(&mut picker, KeyCode::Esc), Some(Action::Leave));
        assert_eq!(control(&mut picker, 'c'), Some(Action::Leave));
    }

    #[test]
    fn arrows_choose_and_ask_for_a_preview_once() {
        let mut picker = Picker { page: 4, ..Picker::default() };
        picker.show_results(results(9));
        assert!(picker.wanted_preview().is_some_and(|target| target.key.1 == "0"));
        assert!(picker.wanted_preview().is_none());
        plain(&mut picker, KeyCode::Up);
        assert!(picker.wanted_preview().is_none());
        plain(&mut picker, KeyCode::Down);
        control(&mut picker, 'n');
        assert!(picker.wanted_preview().is_some_and(|target| target.key.1 == "2"));
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
        assert_eq!(picker.asked.mode_name(), "best by words and meaning");
        control(&mut picker, 't');
        assert_eq!(picker.asked.mode_name(), "exact");
        for key in [KeyCode::Esc, KeyCode::Enter, KeyCode::F(1)] {
            assert_eq!((plain(&mut picker, KeyCode::F(1)), picker.lists_keys), (None, true));
            assert_eq!((plain(&mut picker, key), picker.lists_keys), (None, false));
        }
        plain(&mut picker, KeyCode::F(1));
        assert_eq!(plain(&mut picker, KeyCode::Char('?')), Some(Action::Search));
        assert_eq!((&*picker.asked.typed, picker.lists_keys), ("?", false));
        // Enter applies to the last results for the text that was typed before Enter.
        assert_eq!(plain(&mut picker, KeyCode::Enter), None);
        assert_eq!(picker.show_results(Results { is_first: true, ..results(0) }), None);
        assert_eq!(picker.show_results(results(1)), Some(Action::Show));
    }

    #[test]
    fn tab_reads_on_in_the_preview_of_the_choice() {
        let mut picker = Picker::default();
        picker.show_results(results(2));
        plain(&mut picker, KeyCode::Tab);
        plain(&mut picker, KeyCode::Tab);
        press(&mut picker, KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!((picker.pages_read, chosen(&picker)), (1, "0".to_owned()));
        plain(&mut picker, KeyCode::Down);
        picker.show_preview(Preview::default());
        assert_eq!((picker.pages_read, chosen(&picker)), (0, "1".to_owned()));
    }
}
