//! The hints of a search that finds nothing: other searches that find something.

use super::{filters::FilterArgs, patterns::arguments_of};
use verbatim_answer::{readings::described, words::quoted};
use verbatim_engine::{QueryReading, Scope};
use verbatim_text::shell;

/// Returns a hint: what another search finds, and its command.
pub(super) fn line(reading: &QueryReading, filters: &FilterArgs) -> String {
    let QueryReading { request, scope, .. } = reading;
    let mut words = vec!["verbatim".to_owned(), "search".to_owned()];
    if *scope != Scope::default() {
        words.extend(filters.arguments());
    }
    words.extend(arguments_of(request));
    let command: Vec<String> = words.iter().map(|word| shell::quoted(word)).collect();
    format!("{}: {}", described(reading, quoted), command.join(" "))
}
