//! Progress on standard error: one line for each step.

use std::cell::Cell;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use unicode_width::UnicodeWidthStr;

use super::{echo::Hidden, waiting, wrap::wrapped};
use crate::cli::settings::environment::Environment;

use verbatim_text::amount::grouped;

pub(crate) use verbatim_text::amount::{bytes, duration};

/// The number of units in the bar of a [`Step`].
const STEPS: u64 = 10_000;

/// The widths of a step's name and of its bar. A narrow terminal has no room for a bar.
const NAME: usize = 11;
const BAR: usize = 20;
const LEAST_FOR_BAR: usize = 60;

/// The time between two redraws, so that the elapsed time stays current.
const TICK: Duration = Duration::from_millis(200);

/// The time and the share of work after which the remaining time is shown; earlier it would be a guess.
const KNOWN_AFTER: Duration = Duration::from_secs(2);
const KNOWN_FROM: f64 = 0.25;

const LEAST_LEFT: Duration = Duration::from_secs(1);

/// The ends of the template of a step's line. The first one shows the elapsed time, until the remaining
/// time is known. Long lines are cut.
const UNKNOWN: &str = "{elapsed}  {wide_msg}";
const KNOWN: &str = "{wide_msg}";

/// The characters of a bar: for done work, for the end of the done part, and for remaining work.
const CELLS: &str = "██░";

/// A step of the work. A terminal shows a line with a name, a bar and the progress.
#[derive(Debug)]
pub(crate) struct Step {
    bar: ProgressBar,
    columns: Option<usize>,
    begun: Instant,
    is_known: Cell<bool>,
    _hidden: Option<Hidden>,
}

impl Step {
    pub(crate) fn begin(environment: &Environment, name: &str) -> Step {
        waiting::clear();
        let columns = environment.columns;
        let hidden = environment.progress.then(Hidden::begin);
        // Without a terminal, nothing is shown.
        let bar = match hidden {
            Some(_) => ProgressBar::new(STEPS),
            None => ProgressBar::hidden(),
        };
        bar.set_style(style(columns, UNKNOWN));
        bar.set_prefix(name.to_owned());
        if environment.progress {
            bar.enable_steady_tick(TICK);
        }
        Step { bar, columns, begun: Instant::now(), is_known: Cell::new(false), _hidden: hidden }
    }

    pub(crate) fn count(&self, done: usize, total: usize) {
        let text = format!("{} of {}", grouped(done as u64), grouped(total as u64));
        self.show(done as f64 / total.max(1) as f64, &text);
    }

    pub(crate) fn rename(&self, name: &str) {
        self.bar.set_prefix(name.to_owned());
    }

    /// Shows the progress of the step, from 0 to 1, and a text. The bar never becomes shorter.
    pub(crate) fn show(&self, share: f64, text: &str) {
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
            self.bar.set_style(style(self.columns, KNOWN));
        }
        // The remaining time comes before the text, because the end of a long line is cut.
        let left = Duration::from_secs_f64(passed.as_secs_f64() * (1.0 - share).max(0.0) / share);
        self.bar.set_message(format!("{} left  {text}", duration(left.max(LEAST_LEFT))));
    }

    /// Ends the step, and leaves a line with a text, and with a full bar if there is room for one.
    pub(crate) fn finish(self, text: &str) {
        if !self.bar.is_hidden() {
            let name = self.bar.prefix();
            self.bar.finish_and_clear();
            let bar = format!("{}  ", "█".repeat(BAR));
            let width = NAME + 1 + BAR + 2 + text.width();
            let bar = if self.columns.is_some_and(|columns| width > columns) { "" } else { &bar };
            let line = wrapped(&format!("{name:NAME$} {bar}{text}"), self.columns, NAME + 1);
            // The line ends with a line break, so that the next output begins on a new line.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    pub(crate) fn clear(self) {
        self.bar.finish_and_clear();
    }
}

fn style(columns: Option<usize>, end: &str) -> ProgressStyle {
    let share = if columns.is_some_and(|columns| columns < LEAST_FOR_BAR) {
        "{percent:>3} % ".to_owned()
    } else {
        format!("{{bar:{BAR}}}")
    };
    let style = ProgressStyle::with_template(&format!("{{prefix:{NAME}}} {share} {end}"));
    style.expect("templates are constants that indicatif takes").progress_chars(CELLS)
}
