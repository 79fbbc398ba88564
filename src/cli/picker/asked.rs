//! What the picker is asked: the typed text with its filters, and the way in which the text is searched.

use std::ops::Range;

use super::super::{environment::Environment, error::Result, search::Args};
use verbatim_answer::filters::names;
use verbatim_base::model::Stop;
use verbatim_engine::{self as engine, Engine, Mode, Scope};

/// The typed text, and the way in which it is searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) typed: String,
    /// Whether the text is a question, and the messages that answer it best are shown.
    pub(super) is_ranked: bool,
    pub(super) case: LetterCase,
    pub(super) is_word: bool,
    pub(super) is_expression: bool,
}

/// Whether the case of letters matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LetterCase {
    /// As `verbatim search` decides: if the text has a capital letter.
    #[default]
    Smart,
    Matters,
    Ignored,
}

/// A request that was typed, in the form that `verbatim search` takes.
pub(super) struct TypedSearch {
    pub(super) args: Args,
    pub(super) scope: Scope,
    /// The text without the filters.
    pub(super) text: String,
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

impl LetterCase {
    pub(super) fn next(self) -> LetterCase {
        match self {
            LetterCase::Smart => LetterCase::Matters,
            LetterCase::Matters => LetterCase::Ignored,
            LetterCase::Ignored => LetterCase::Smart,
        }
    }
}

impl Asked {
    /// Returns what differs from a usual search, and the mode.
    pub(super) fn state(&self) -> Vec<&'static str> {
        if self.is_ranked {
            return vec!["best by words and meaning"];
        }
        let case = match self.case {
            LetterCase::Smart => None,
            LetterCase::Matters => Some("letter case matters"),
            LetterCase::Ignored => Some("any letter case"),
        };
        let word = self.is_word.then_some("whole words");
        let expression = self.is_expression.then_some("expression");
        [Some("exact"), expression, word, case].into_iter().flatten().collect()
    }

    /// Resolves the filters. A filter that names nothing known is text.
    pub(super) fn resolve(
        &self,
        engine: &Engine,
        environment: &Environment,
        stop: &Stop,
    ) -> Result<TypedSearch> {
        let filters = filters(&self.typed);
        let of = |filters: &[&TypedFilter<'_>]| self.with(filters, (engine, environment), stop);
        let all: Vec<&TypedFilter<'_>> = filters.iter().collect();
        let error = match of(&all) {
            Err(error) if !all.is_empty() => error,
            resolved => return resolved,
        };
        let known: Vec<&TypedFilter<'_>> =
            all.into_iter().filter(|filter| of(&[filter]).is_ok()).collect();
        let resolved = of(&known).or_else(|_| of(&[]))?;
        let error = error.to_string();
        let error = error.trim_start_matches("error: ").lines().next().unwrap_or_default();
        Ok(TypedSearch { problem: Some(format!("{error}; searched as text")), ..resolved })
    }

    fn with(
        &self,
        filters: &[&TypedFilter<'_>],
        (engine, environment): (&Engine, &Environment),
        stop: &Stop,
    ) -> Result<TypedSearch> {
        let text = without(&self.typed, filters);
        let flags = [
            (self.is_ranked, "--mode=both"),
            (!self.is_ranked && self.is_word, "--word"),
            (!self.is_ranked && self.case == LetterCase::Matters, "--case-sensitive"),
            (!self.is_ranked && self.case == LetterCase::Ignored, "--ignore-case"),
        ];
        let flags = flags.into_iter().filter(|(is_on, _)| *is_on);
        let mut words: Vec<String> = flags.map(|(_, flag)| flag.to_owned()).collect();
        words.extend(filters.iter().map(|filter| format!("--{}={}", filter.name, filter.value)));
        match self.is_expression && !self.is_ranked && !text.is_empty() {
            true => words.push(format!("--regexp={text}")),
            false => words.extend(["--".to_owned(), text.clone()]),
        }
        let args = Args::parsed(words)?;
        let scope = args.scope(engine, environment.clock(), stop)?;
        let filters = filters.iter().map(|filter| self.typed[filter.place.clone()].to_owned());
        Ok(TypedSearch { args, scope, text, filters: filters.collect(), problem: None })
    }
}

impl TypedSearch {
    /// Returns the mode of ranked search; `None` for exact search.
    pub(super) fn mode(&self) -> Option<Mode> {
        self.args.ranks().then_some(Mode::Both)
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
    let quoted = text.strip_prefix('"').and_then(|rest| {
        let ends = rest.match_indices('"').map(|(end, _)| end);
        let is_end = |end: &usize| rest[end + 1..].chars().next().is_none_or(char::is_whitespace);
        Some(&rest[..ends.into_iter().find(is_end)?])
    });
    match quoted {
        Some(quoted) => (quoted, quoted.len() + 2),
        None => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            (&text[..end], end)
        }
    }
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
