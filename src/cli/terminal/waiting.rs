//! A line on standard error that is shown while a command has no output yet.
//!
//! Every other output first removes the line: text on standard output, messages and progress bars.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::echo::Hidden;
use crate::cli::settings::environment::Environment;

use verbatim_base::lock::lock;

/// The delay before the line is shown. A command that is faster shows no line.
const AFTER: Duration = Duration::from_millis(60);

const TICK: Duration = Duration::from_millis(250);

const LINE: &str = "{wide_msg} {elapsed}";

static LINE_SHOWN: Mutex<Option<(ProgressBar, Option<Hidden>)>> = Mutex::new(None);
static IS_WAITING: AtomicBool = AtomicBool::new(false);

pub(crate) struct Waiting;

impl Waiting {
    /// Shows a line about the command's work if the command takes a moment. Shows nothing if
    /// standard error is not a terminal.
    pub(crate) fn begin(environment: &Environment, text: &'static str) -> Waiting {
        if environment.progress {
            show(text);
        }
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        clear();
    }
}

pub(crate) fn show(text: impl Into<String>) {
    clear();
    let bar = ProgressBar::new_spinner().with_message(text.into());
    let style = ProgressStyle::with_template(LINE);
    bar.set_style(style.expect("templates are constants that indicatif takes"));
    *lock(&LINE_SHOWN) = Some((bar.clone(), None));
    IS_WAITING.store(true, Ordering::Release);
    thread::spawn(move || {
        thread::sleep(AFTER);
        // The lock is held here, so that nothing is drawn after another thread removed the line.
        let mut line = lock(&LINE_SHOWN);
        if let (Some((_, hidden)), false) = (&mut *line, bar.is_finished()) {
            *hidden = Some(Hidden::begin());
            bar.enable_steady_tick(TICK);
        }
    });
}

pub(crate) fn clear() {
    if IS_WAITING.swap(false, Ordering::AcqRel) {
        let mut line = lock(&LINE_SHOWN);
        if let Some((bar, _)) = line.take() {
            bar.finish_and_clear();
        }
    }
}

/// A writer that removes the waiting line before each write.
pub(crate) struct EndsWaiting<'a>(pub(crate) &'a mut dyn Write);

impl Write for EndsWaiting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        clear();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_written_ends_it() {
        show("searching");
        assert!(lock(&LINE_SHOWN).is_some());
        let mut out = Vec::new();
        EndsWaiting(&mut out).write_all(b"found").unwrap();
        assert!(lock(&LINE_SHOWN).is_none());
        drop(Waiting::begin(&Environment::default(), "not on a terminal"));
        assert!(lock(&LINE_SHOWN).is_none());
        let waiting = Waiting::begin(
            &Environment { progress: true, ..Environment::default() },
            "until it is dropped",
        );
        assert!(lock(&LINE_SHOWN).is_some());
        drop(waiting);
        assert!(lock(&LINE_SHOWN).is_none());
    }
}
