//! Progress bars on standard error.

use indicatif::{ProgressBar, ProgressStyle};

use super::environment::Environment;

/// Returns a progress bar; a hidden one if standard error is no terminal.
pub(super) fn bar(environment: &Environment, length: u64, template: &str) -> ProgressBar {
    let bar = match environment.progress {
        true => ProgressBar::new(length),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.expect("templates are constants that indicatif takes"));
    bar
}
