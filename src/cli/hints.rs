//! The hints of a search that finds nothing: other searches that find something.

use super::patterns::arguments_of;
use verbatim_answer::{filters::Filters, readings::described, words::quoted};
use verbatim_engine::{QueryReading, Scope};
use verbatim_text::shell;

/// Returns a hint: what another search finds, and its command.
pub(super) fn line(reading: &QueryReading, filters: &Filters) -> String {
    let QueryReading { request, scope, .. } = reading;
    let mut words = vec!["verbatim".to_owned(), "search".to_owned()];
    if *scope != Scope::default() {
        let given = filters.given();
        words.extend(given.flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]));
    }
    words.extend(arguments_of(request));
    let command: Vec<String> = words.iter().map(|word| shell::quoted(word)).collect();
    format!("{}: {}", described(reading, quoted), command.join(" "))
}
