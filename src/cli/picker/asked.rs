//! What the picker is asked: the typed text with its filters, and whether it is a question.

use std::{ops::Range, sync::Arc};

use super::super::{environment::Environment, patterns::Patterns};
use verbatim_answer::filters::{FilterError, Filters, names};
use verbatim_base::model::{Request, Stop};
use verbatim_engine::{self as engine, Engine, Scope};

/// What the picker searches, and how it shows times.
pub(super) struct PickerContext {
    pub(super) engine: Arc<Engine>,
    pub(super) environment: Environment,
}

/// The typed text, and the way in which it is searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) typed: String,
    /// Whether the text is a question, and the messages that answer it best are shown.
    pub(super) is_ranked: bool,
}

/// What the typed text means.
pub(super) struct TypedSearch {
    /// The text without the filters.
    pub(super) text: String,
    /// The exact search of the text, as `verbatim search` makes it.
    pub(super) request: Request,
    pub(super) scope: Scope,
    /// The filters as they were typed.
    pub(super) filters: Vec<String>,
    /// The reason why a filter is searched as text.
    pub(super) problem: Option<String>,
}

/// A filter in the typed text.
struct TypedFilter<'t> {
    name: &'t str,
    value: &'t str,
    place: Range<usize>,
}

impl Asked {
    /// Returns the way in which the text is searched.
    pub(super) fn way(&self) -> &'static str {
        if self.is_ranked { "best by words and meaning" } else { "exact" }
    }

    /// Resolves the filters. A filter that names nothing known is text.
    pub(super) fn resolve(
        &self,
        context: &PickerContext,
        stop: &Stop,
    ) -> Result<TypedSearch, FilterError> {
        let filters = filters(&self.typed);
        let all: Vec<&TypedFilter<'_>> = filters.iter().collect();
        let error = match self.with(&all, context, stop) {
            Err(error) if !all.is_empty() => error,
            resolved => return resolved,
        };
        let mut known = all;
        known.retain(|filter| self.with(&[filter], context, stop).is_ok());
        let resolved = self.with(&known, context, stop);
        let resolved = resolved.or_else(|_| self.with(&[], context, stop))?;
        let error = error.to_string();
        let error = error.lines().next().unwrap_or_default();
        Ok(TypedSearch { problem: Some(format!("{error}; searched as text")), ..resolved })
    }

    fn with(
        &self,
        filters: &[&TypedFilter<'_>],
        context: &PickerContext,
        stop: &Stop,
    ) -> Result<TypedSearch, FilterError> {
        let PickerContext { engine, environment } = context;
        let text = without(&self.typed, filters);
        let mut given = Filters::default();
        for filter in filters {
            given.add(filter.name, filter.value);
        }
        let (scope, _) = given.scope(engine, environment.clock(), stop)?;
        let request = Patterns::of(&text).request();
        let filters = filters.iter().map(|filter| self.typed[filter.place.clone()].to_owned());
        Ok(TypedSearch { text, request, scope, filters: filters.collect(), problem: None })
    }
}

/// Returns the filters in a text. Text in quotation marks has none.
fn filters(typed: &str) -> Vec<TypedFilter<'_>> {
    let mut filters = Vec::new();
    let mut start = 0;
    while let Some(word) = typed[start..].find(|c: char| !c.is_whitespace()) {
        start += word;
        let rest = &typed[start..];
        let name =
            names().find(|name| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')));
        let from = name.map_or(0, |name| name.len() + 1);
        let (value, length) = value(&rest[from..]);
        let place = start..start + from + length;
        start = place.end;
        let Some(name) = name.filter(|_| !engine::trimmed(value).is_empty()) else { continue };
        filters.push(TypedFilter { name, value, place });
    }
    filters
}

/// Returns the value at the beginning of a text, and its length with its quotation marks.
fn value(text: &str) -> (&str, usize) {
    if let Some(rest) = text.strip_prefix('"') {
        for (end, _) in rest.match_indices('"') {
            if rest[end + 1..].chars().next().is_none_or(char::is_whitespace) {
                return (&rest[..end], end + 2);
            }
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], end)
}

fn without(typed: &str, filters: &[&TypedFilter<'_>]) -> String {
    let mut parts = Vec::new();
    let mut at = 0;
    for filter in filters {
        parts.push(&typed[at..filter.place.start]);
        at = filter.place.end;
    }
    parts.push(&typed[at..]);
    let parts = parts.into_iter().map(engine::trimmed).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_words_of_their_own() {
        for (typed, expected, text) in [
            ("tomato  sun", vec![], "tomato  sun"),
            ("tomato project:shop sun", vec![("project", "shop")], "tomato sun"),
            ("since:7d role:user", vec![("since", "7d"), ("role", "user")], ""),
            ("since:\"last week\" x", vec![("since", "last week")], "x"),
            ("in:\"a b", vec![("in", "\"a")], "b"),
            ("\"see project:shop\" role:user", vec![("role", "user")], "\"see project:shop\""),
            ("project: shop", vec![], "project: shop"),
            ("project:\" \" shop", vec![], "project:\" \" shop"),
            ("a/project:shop https://x xproject:y", vec![], "a/project:shop https://x xproject:y"),
        ] {
            let found = filters(typed);
            let named: Vec<_> = found.iter().map(|filter| (filter.name, filter.value)).collect();
            assert_eq!(named, expected, "{typed}");
            assert_eq!(without(typed, &found.iter().collect::<Vec<_>>()), text, "{typed}");
        }
    }
}
