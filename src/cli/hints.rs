//! The hints of a search that finds nothing: other searches that find something.

use super::{filters::Filters, output::counted, patterns::arguments_of};
use verbatim_base::model::Request;
use verbatim_engine::{QueryReading, ReadingKind, Scope};
use verbatim_server::tools::words::quoted;
use verbatim_text::shell;

/// Returns a hint: what another search than `before` finds, and its command.
pub(super) fn line(reading: &QueryReading, before: &Request, filters: &Filters) -> String {
    let QueryReading { request, scope, .. } = reading;
    let mut words = vec!["verbatim".to_owned(), "search".to_owned()];
    if *scope != Scope::default() {
        words.extend(filters.arguments());
    }
    words.extend(arguments_of(request, before));
    let command: Vec<String> = words.iter().map(|word| shell::quoted(word)).collect();
    format!("{}: {}", what(reading), command.join(" "))
}

/// Returns how much another search finds, and how it differs.
pub(super) fn what(reading: &QueryReading) -> String {
    let QueryReading { kind, request, count, .. } = reading;
    let (what, verb) = match count.messages {
        0 => (counted(count.titles, "conversation"), "by title"),
        messages => (counted(messages, "message"), ""),
    };
    let has = if count.messages == 1 { "has" } else { "have" };
    let texts = || {
        let all = std::iter::once(&request.text).chain(&request.and);
        all.map(|text| quoted(text)).collect::<Vec<_>>().join(" and ")
    };
    let how = match kind {
        ReadingKind::AnyScope => "without these filters".to_owned(),
        ReadingKind::AnyCase => "in any letter case".to_owned(),
        ReadingKind::AnyAccents => "with other accents or width".to_owned(),
        ReadingKind::Unquoted => "without the quotation marks".to_owned(),
        ReadingKind::Expression => "as a regular expression".to_owned(),
        ReadingKind::Either => format!("{has} one of the texts"),
        ReadingKind::AllWords if request.and.len() == 1 => format!("{has} both words"),
        ReadingKind::AllWords => format!("{has} all the words"),
        ReadingKind::AllWordsButOne | ReadingKind::Part | ReadingKind::Spelling => {
            format!("{has} {}", texts())
        }
    };
    let parts = [what, verb.to_owned(), how];
    let found: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    found.join(" ")
}
