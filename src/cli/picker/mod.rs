//! The picker: a full-screen search that shows results while the user types.
//!
//! The threads of [`search`] search and read, [`state`] handles keys, and [`view`] draws. A key
//! never waits for a search: a new search stops the search before it. The old results stay until
//! new results arrive.

mod asked;
mod screen;
mod search;
mod state;
mod view;

use std::io::{self, Write};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use crossterm::event;

use self::asked::{PickerContext, TypedText};
use self::screen::{Screen, restore};
use self::search::{PickerAnswer, PickerTarget, Worker};
use self::state::{Action, Picker};
use self::view::PickerView;
use super::commands::open;
use super::error::{Error, Result};
use super::settings::environment::Environment;
use super::terminal::output::harmless;
use verbatim_answer::conversation::conversation;
pub(super) use verbatim_answer::marks::Marks;
use verbatim_base::call::Call;
use verbatim_engine::{self as engine, Engine};
use verbatim_text::up_to;

/// The maximum time that the screen waits for the results of a key before it is drawn.
const PATIENCE: Duration = Duration::from_millis(8);

/// The time between two checks for keys during a search, and between two checks for signals otherwise.
const BUSY: Duration = Duration::from_millis(4);
const IDLE: Duration = Duration::from_millis(250);

/// The maximum number of bytes to copy. Terminals ignore commands that are much longer.
const MOST_COPIED: usize = 72 << 10;

const NOT_RESUMABLE: &str =
    "only sessions of Claude Code and Codex whose files exist can be resumed";

/// The reason why the picker gave the terminal back.
#[derive(Debug)]
pub(super) enum Picked {
    Nothing,
    NoChats,
    /// The user chose a conversation. `word` names the conversation and maybe a message, and `marks`
    /// are the texts to mark there.
    Show {
        word: String,
        marks: Arc<Marks>,
    },
    /// The user wants to resume a session with this command.
    Resume(String),
}

/// Starts the picker; returns `None` if there are no chats.
pub(super) fn start<'a>(
    engine: &'a Arc<Engine>,
    environment: &Environment,
) -> Result<Option<Loop<'a>>> {
    if engine.sources().is_empty() {
        return match engine.config().export_store() {
            Ok(_) | Err(engine::Error::NoDatabase { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        };
    }
    Loop::start(engine, environment).map(Some).map_err(Error::Terminal)
}

pub(super) struct Loop<'a> {
    engine: &'a Arc<Engine>,
    picker: Picker,
    view: PickerView,
    searches: Worker<TypedText>,
    previews: Worker<PickerTarget>,
    is_reading: bool,
    is_changed: bool,
    answers: mpsc::Receiver<(u64, PickerAnswer)>,
    screen: Screen,
}

impl Loop<'_> {
    fn start<'a>(engine: &'a Arc<Engine>, environment: &Environment) -> io::Result<Loop<'a>> {
        let (sender, answers) = mpsc::channel();
        let view = PickerView::new(environment.colours);
        let context =
            PickerContext { engine: Arc::clone(engine), environment: environment.clone() };
        let context = Arc::new(context);
        let of_searches = Arc::clone(&context);
        let mut searches = Worker::start(sender.clone(), move |asked, call, send| {
            search::search(&of_searches, asked, call, send);
        })?;
        let previews = Worker::start(sender, move |target, call, send| {
            send(PickerAnswer::Read(search::preview(&context, target, call)));
        })?;
        let mut picker = Picker::default();
        picker.is_searching = true;
        searches.ask(TypedText::default());
        Ok(Loop {
            engine,
            picker,
            view,
            searches,
            previews,
            is_reading: false,
            is_changed: true,
            answers,
            screen: Screen::open()?,
        })
    }

    /// Runs the picker until the user chooses a conversation or leaves. If this function is called again,
    /// the picker goes on where it was.
    pub(super) fn run(&mut self) -> Result<Picked> {
        let picked = self.screen.enter().and_then(|()| self.pick());
        restore();
        picked.map_err(Error::Terminal)
    }

    /// Returns the columns and the lines of the screen.
    pub(super) fn size(&self) -> (usize, usize) {
        self.screen.size()
    }

    fn pick(&mut self) -> io::Result<Picked> {
        self.is_changed = true;
        loop {
            if let Some(picked) = self.take_answers()? {
                return Ok(picked);
            }
            if std::mem::take(&mut self.is_changed) {
                self.screen.draw(|frame| self.view.draw(frame, &mut self.picker))?;
            }
            let mut patience = if self.is_waiting() { BUSY } else { IDLE };
            while self.screen.poll(patience)? {
                let action = self.picker.handle(&event::read()?);
                if let Some(picked) = self.perform(action)? {
                    return Ok(picked);
                }
                self.is_changed = true;
                patience = Duration::ZERO;
            }
        }
    }

    fn is_waiting(&self) -> bool {
        self.picker.is_searching || self.is_reading || self.picker.results.is_counting
    }

    /// Takes the results from the threads, and waits for missing results for a short time.
    fn take_answers(&mut self) -> io::Result<Option<Picked>> {
        let end = Instant::now() + PATIENCE;
        self.ask_preview();
        while self.is_waiting() {
            let rest = end.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(rest) {
                Ok((number, PickerAnswer::Counted(count, more)))
                    if self.searches.is_newest(number) =>
                {
                    self.is_changed = true;
                    self.picker.set_count(count, more);
                }
                Ok((number, PickerAnswer::Found(results))) if self.searches.is_newest(number) => {
                    self.is_changed = true;
                    if results.is_all() && results.conversations.is_empty() {
                        return Ok(Some(Picked::NoChats));
                    }
                    let action = self.picker.show_results(results);
                    if let Some(picked) = self.perform(action)? {
                        return Ok(Some(picked));
                    }
                }
                Ok((number, PickerAnswer::Read(preview))) if self.previews.is_newest(number) => {
                    self.is_reading = false;
                    self.is_changed = true;
                    self.picker.show_preview(preview.unwrap_or_default());
                }
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => break,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the search ended"));
                }
            }
            self.ask_preview();
        }
        Ok(None)
    }

    fn ask_preview(&mut self) {
        if let Some(target) = self.picker.wanted_preview() {
            self.previews.ask(target);
            self.is_reading = true;
        }
    }

    /// Performs the action of a key. Returns the picker's result if the action ends the picker.
    fn perform(&mut self, action: Option<Action>) -> io::Result<Option<Picked>> {
        let Some(action) = action else { return Ok(None) };
        if action == Action::Leave {
            return Ok(Some(Picked::Nothing));
        }
        if action == Action::Search {
            self.searches.ask(self.picker.asked.clone());
            return Ok(None);
        }
        let Some(target) = self.picker.target() else { return Ok(None) };
        let notice = match action {
            Action::Show => {
                let (_, id) = target.key;
                let word = match target.number {
                    Some(number) => format!("{id}:{number}"),
                    None => id,
                };
                return Ok(Some(Picked::Show { word, marks: target.marks }));
            }
            Action::Resume => match conversation(self.engine, target.key, &Call::default()) {
                Ok(found) => match found.resume() {
                    Some(session) => return Ok(Some(Picked::Resume(session.to_string()))),
                    None => NOT_RESUMABLE.to_owned(),
                },
                Err(error) => error.to_string(),
            },
            Action::Open => browse(self.engine, target).unwrap_or_else(|error| error.to_string()),
            _ => self.copy(&target)?,
        };
        self.picker.notice = Some(notice);
        Ok(None)
    }

    /// Copies the text of a message to the clipboard through the terminal, which works over SSH too.
    fn copy(&self, target: &PickerTarget) -> io::Result<String> {
        let Some(text) = search::text_of(self.engine, target) else {
            return Ok("the message cannot be read".to_owned());
        };
        let copied = up_to(&text, MOST_COPIED);
        // The control sequence OSC 52 of xterm: base64 for the clipboard.
        let mut out = io::stdout();
        write!(out, "\x1b]52;c;{}\x1b\\", STANDARD.encode(copied))?;
        out.flush()?;
        Ok(if copied.len() < text.len() {
            format!("copied the first {} of {} bytes", copied.len(), text.len())
        } else {
            "copied the message".to_owned()
        })
    }
}

/// Opens a conversation on its service's site; returns a message for the user.
fn browse(engine: &Engine, target: PickerTarget) -> Result<String> {
    let found = conversation(engine, target.key, &Call::default())?;
    let Some(link) = found.link().filter(|link| open::is_web(link)) else {
        return Ok("this conversation has no link; Enter shows it".to_owned());
    };
    open::browse(link)?;
    Ok(format!("opens {}", harmless(link)))
}
