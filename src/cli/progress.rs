//! Progress on standard error: a line for each step, which never wraps.

use std::{
    cell::Cell,
    io::{self, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{environment::Environment, waiting};

/// The length of the bars of [`Step`].
const STEPS: u64 = 10_000;

/// A bar of a step that is done.
const FULL: &str = "████████████████████";

/// How often a line is drawn again, so that the seconds go on while nothing else is known.
const TICK: Duration = Duration::from_millis(200);

/// From when on, and from which share on, the time left is told: before, it would be a guess.
const KNOWN_AFTER: Duration = Duration::from_secs(2);
const KNOWN_FROM: f64 = 0.25;

/// The least time left that is told.
const LEAST_LEFT: Duration = Duration::from_secs(1);

/// The lines of a step: while the time left is not known, the time that has passed is shown. What
/// does not fit is cut.
const UNKNOWN: &str = "{prefix:11} {bar:20} {elapsed}  {wide_msg}";
const KNOWN: &str = "{prefix:11} {bar:20} {wide_msg}";

/// The cells of a bar: full, full at its end, and empty.
const CELLS: &str = "██░";

/// Returns a progress bar; a hidden one if standard error is no terminal.
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

/// A step of the work. On a terminal it is a line: a name, a bar, and how far it is.
#[derive(Debug)]
pub(super) struct Step {
    bar: ProgressBar,
    begun: Instant,
    /// Whether the time left is shown.
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

    /// Shows the share of the step that is done, from 0 to 1, and a text. The bar never goes back.
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
        // Before the text, which is cut at the end of the line.
        let left = Duration::from_secs_f64(passed.as_secs_f64() * (1.0 - share).max(0.0) / share);
        self.bar.set_message(format!("{} left  {text}", duration(left.max(LEAST_LEFT))));
    }

    /// Leaves a line with a full bar and a text.
    pub(super) fn finish(self, text: &str) {
        let (is_hidden, name) = (self.bar.is_hidden(), self.bar.prefix());
        self.clear();
        if !is_hidden {
            // Its end is a real one, so that what follows is on a line of its own.
            let _ = writeln!(io::stderr(), "{name:11} {FULL}  {text}");
        }
    }

    /// Removes the line.
    pub(super) fn clear(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns a length of time as people say it: `0.4 s`, `41 s`, `3 min 5 s`, `1 h 2 min`.
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

/// Returns a number of bytes as people say it: `340 KB`, `214 MB`, `1.2 GB`.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        1_000_000..10_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
