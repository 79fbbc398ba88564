//! Progress on standard error: one line for each step.

use std::{
    cell::Cell,
    io::{self, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{environment::Environment, waiting};

pub(super) use crate::text::amount::bytes;

/// The number of units in the bar of a [`Step`].
const STEPS: u64 = 10_000;

/// The bar of a finished step.
const FULL: &str = "████████████████████";

/// The time between two redraws, so that the elapsed time stays current.
const TICK: Duration = Duration::from_millis(200);

/// The time and the share of work after which the remaining time is shown; earlier it would be a guess.
const KNOWN_AFTER: Duration = Duration::from_secs(2);
const KNOWN_FROM: f64 = 0.25;

/// The shortest remaining time that is shown.
const LEAST_LEFT: Duration = Duration::from_secs(1);

/// The templates of a step's line. The first template shows the elapsed time, until the remaining
/// time is known. Long lines are cut.
const UNKNOWN: &str = "{prefix:11} {bar:20} {elapsed}  {wide_msg}";
const KNOWN: &str = "{prefix:11} {bar:20} {wide_msg}";

/// The characters of a bar: for done work, for the end of the done part, and for remaining work.
const CELLS: &str = "██░";

/// Returns a progress bar; a hidden bar if standard error is not a terminal.
pub(super) fn bar(environment: &Environment, length: u64, template: &str) -> ProgressBar {
    waiting::end();
    let bar = match environment.progress {
        true => ProgressBar::new(length),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.expect("templates are constants that indicatif takes"));
    bar
}

/// A step of the work. A terminal shows a line with a name, a bar and the progress.
#[derive(Debug)]
pub(super) struct Step {
    bar: ProgressBar,
    begun: Instant,
    /// Whether the remaining time is shown.
    is_known: Cell<bool>,
}

impl Step {
    pub(super) fn begin(environment: &Environment, name: &str) -> Step {
        let bar = bar(environment, STEPS, UNKNOWN);
        bar.set_style(bar.style().progress_chars(CELLS));
        bar.set_prefix(name.to_owned());
        if environment.progress {
            bar.enable_steady_tick(TICK);
        }
        Step { bar, begun: Instant::now(), is_known: Cell::new(false) }
    }

    pub(super) fn rename(&self, name: &str) {
        self.bar.set_prefix(name.to_owned());
    }

    /// Shows the progress of the step, from 0 to 1, and a text. The bar never becomes shorter.
    pub(super) fn show(&self, share: f64, text: &str) {
        if self.bar.is_hidden() {
            return;
        }
        let position = (STEPS as f64 * share.clamp(0.0, 1.0)) as u64;
        self.bar.set_position(position.max(self.bar.position()));
        let passed = self.begun.elapsed();
        if passed < KNOWN_AFTER || share < KNOWN_FROM {
            self.bar.set_message(text.to_owned());
            return;
        }
        if !self.is_known.replace(true) {
            let style = ProgressStyle::with_template(KNOWN);
            let style = style.expect("templates are constants that indicatif takes");
            self.bar.set_style(style.progress_chars(CELLS));
        }
        // The remaining time comes before the text, because the end of a long line is cut.
        let left = Duration::from_secs_f64(passed.as_secs_f64() * (1.0 - share).max(0.0) / share);
        self.bar.set_message(format!("{} left  {text}", duration(left.max(LEAST_LEFT))));
    }

    /// Ends the step, and leaves a line with a full bar and a text.
    pub(super) fn finish(self, text: &str) {
        let (is_hidden, name) = (self.bar.is_hidden(), self.bar.prefix());
        self.clear();
        if !is_hidden {
            // The line ends with a line break, so that the next output begins on a new line.
            let _ = writeln!(io::stderr(), "{name:11} {FULL}  {text}");
        }
    }

    /// Ends the step, and removes its line.
    pub(super) fn clear(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns a duration for people: `0.4 s`, `41 s`, `3 min 5 s`, `1 h 2 min`.
pub(super) fn duration(length: Duration) -> String {
    let seconds = length.as_secs_f64();
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 2.0 => format!("{:.1} s", seconds.max(0.1)),
        0..120 => format!("{whole} s"),
        120..7_200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}
