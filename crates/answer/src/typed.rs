//! A typed text as a question: filters such as `project:shop`, "phrases" and the texts after a minus.
//!
//! An exact search finds a text as it is, with all its signs. So only what hardly means itself is read: the name of
//! a filter with a value that it accepts, and a text of nothing but phrases in quotation marks. A face offers the
//! search for the text as it was typed, which is [`Asked::of`].

use std::ops::Range;

use super::asked::Asked;
use super::clock::Clock;
use super::filters::{FilterError, names};
use verbatim_base::call::Call;
use verbatim_engine::{Engine, Mode, Scope, trimmed};

/// The signs around a phrase.
const QUOTES: [(char, char); 5] = [('"', '"'), ('“', '”'), ('„', '“'), ('”', '”'), ('«', '»')];

/// What a typed text means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedQuery {
    /// The texts and the filters.
    pub asked: Asked,
    /// The messages that the filters accept.
    pub scope: Scope,
    /// The filters as they were typed.
    pub filters: Vec<String>,
    /// The reason why a filter is searched as text.
    pub problem: Option<String>,
}

impl TypedQuery {
    /// Reads a typed text. A filter that names nothing known is text. In a search with a `mode`, which knows
    /// phrases itself, only filters are read.
    ///
    /// Fails if the sources cannot be read.
    pub fn read(
        typed: &str,
        mode: Option<Mode>,
        engine: &Engine,
        clock: Clock,
        call: &Call,
        place: PlaceFilter,
    ) -> Result<TypedQuery, FilterError> {
        let filters = typed_filters(typed, place);
        let mut known: Vec<&TypedFilter> = filters.iter().collect();
        let mut asked = Asked::from_typed(typed, &known, mode);
        let mut scope = asked.filters.scope(engine, clock, call);
        let mut problem = None;
        if let (Err(error), false) = (&scope, known.is_empty()) {
            let error = error.to_string();
            let error = error.lines().next().unwrap_or_default();
            problem = Some(format!("{error}; searched as text"));
            known.retain(|filter| {
                let alone = Asked::from_typed(typed, &[filter], mode);
                alone.filters.scope(engine, clock, call).is_ok()
            });
            asked = Asked::from_typed(typed, &known, mode);
            scope = asked.filters.scope(engine, clock, call);
            if scope.is_err() {
                known.clear();
                asked = Asked::from_typed(typed, &known, mode);
                scope = asked.filters.scope(engine, clock, call);
            }
        }
        let filters = known.iter().map(|filter| typed[filter.place.clone()].to_owned());
        Ok(TypedQuery { asked, scope: scope?.0, filters: filters.collect(), problem })
    }

    /// Returns whether the text was read, and does not only stand for itself.
    pub fn is_read(&self, typed: &str) -> bool {
        self.asked != Asked { mode: self.asked.mode, ..Asked::of(trimmed(typed)) }
    }
}

/// Returns a filter with its value where the person is: a face that knows the working folder makes a folder of `.`.
pub type PlaceFilter = fn(name: &'static str, value: &str) -> (&'static str, String);

/// The [`PlaceFilter`] of a face that knows no working folder.
pub fn as_it_is(name: &'static str, value: &str) -> (&'static str, String) {
    (name, value.to_owned())
}

/// A filter in a typed text, such as `project:shop`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TypedFilter {
    name: &'static str,
    /// The value, without its quotation marks.
    value: String,
    /// The bytes of the filter in the text.
    place: Range<usize>,
}

/// Returns the filters in a typed text. Text in quotation marks has none.
fn typed_filters(typed: &str, place_filter: PlaceFilter) -> Vec<TypedFilter> {
    let mut filters = Vec::new();
    let mut start = 0;
    while let Some(word) = typed[start..].find(|c: char| !c.is_whitespace()) {
        start += word;
        let rest = &typed[start..];
        let before_colon = rest.split_once(':').map_or("", |(word, _)| word);
        let name = names().find(|name| name.eq_ignore_ascii_case(before_colon));
        let from = name.map_or(0, |name| name.len() + 1);
        let (value, length) = typed_value(&rest[from..]);
        let place = start..start + from + length;
        start = place.end;
        let Some(name) = name.filter(|_| !trimmed(value).is_empty()) else { continue };
        let (name, value) = place_filter(name, value);
        filters.push(TypedFilter { name, value, place });
    }
    filters
}

/// Returns the value at the beginning of a text, and its length with its quotation marks.
fn typed_value(text: &str) -> (&str, usize) {
    if let Some((quoted, length)) = quoted(text) {
        return (quoted, length);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], end)
}

/// Returns the text in the quotation marks at the beginning of a text, and its length with them. The last mark ends
/// a word.
fn quoted(text: &str) -> Option<(&str, usize)> {
    let (open, close) = QUOTES.into_iter().find_map(|(open, close)| {
        let rest = text.strip_prefix(open)?;
        let mut ends = rest.match_indices(close);
        let end = ends.find(|(end, sign)| {
            rest[end + sign.len()..].chars().next().is_none_or(char::is_whitespace)
        });
        end.map(|(end, sign)| (open.len_utf8()..open.len_utf8() + end, sign.len()))
    })?;
    let length = open.end + close;
    Some((&text[open], length))
}

/// The phrases of a text that has nothing else.
#[derive(Default)]
struct Phrases {
    with: Vec<String>,
    without: Vec<String>,
    /// The number of `OR`s between the phrases.
    ors: usize,
}

impl Phrases {
    /// Returns the phrases of a text; `None` if it has no phrase, or other words than those with a minus before
    /// them, or several alternatives and something else.
    fn of(text: &str) -> Option<Phrases> {
        let mut phrases = Phrases::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let bare = rest.strip_prefix('-');
            let part = bare.unwrap_or(rest);
            let (words, length) = match (quoted(part), bare) {
                (Some(phrase), _) => phrase,
                (None, Some(_)) => typed_value(part),
                (None, None) if part.starts_with("OR ") && !phrases.with.is_empty() => {
                    phrases.ors += 1;
                    rest = part["OR ".len()..].trim_start();
                    continue;
                }
                (None, None) => return None,
            };
            if trimmed(words).is_empty() {
                return None;
            }
            let list = if bare.is_some() { &mut phrases.without } else { &mut phrases.with };
            list.push(trimmed(words).to_owned());
            rest = part[length..].trim_start();
        }
        let is_all_or = phrases.ors + 1 == phrases.with.len();
        (is_all_or || phrases.ors == 0 && !phrases.with.is_empty()).then_some(phrases)
    }
}

impl Asked {
    /// Returns the question of a typed text with some of its filters; the others are text.
    fn from_typed(typed: &str, filters: &[&TypedFilter], mode: Option<Mode>) -> Asked {
        let mut asked = Asked { mode, ..Asked::default() };
        let mut parts = Vec::new();
        let mut at = 0;
        for filter in filters {
            parts.push(&typed[at..filter.place.start]);
            at = filter.place.end;
            let _is_filter = asked.filters.add(filter.name, &filter.value);
        }
        parts.push(&typed[at..]);
        let parts = parts.into_iter().map(trimmed).filter(|part| !part.is_empty());
        asked.text = parts.collect::<Vec<_>>().join(" ");
        if let Some(Phrases { mut with, without, ors }) =
            Phrases::of(&asked.text).filter(|_| mode.is_none())
        {
            asked.text = with.remove(0);
            let others = if ors > 0 { &mut asked.or } else { &mut asked.and };
            *others = with;
            asked.not = without;
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;

    #[test]
    fn filters_are_words_of_their_own() {
        for (typed, expected, text) in [
            ("tomato  sun", vec![], "tomato  sun"),
            ("tomato project:shop sun", vec![("project", "shop")], "tomato sun"),
            ("since:7d Role:user", vec![("since", "7d"), ("role", "user")], ""),
            ("since:\"last week\" x", vec![("since", "last week")], "x"),
            ("since:“last week” x", vec![("since", "last week")], "x"),
            ("in:\"a b", vec![("in", "\"a")], "b"),
            ("x \"see project:shop\" role:user", vec![("role", "user")], "x \"see project:shop\""),
            ("project: shop", vec![], "project: shop"),
            ("project:\" \" shop", vec![], "project:\" \" shop"),
            ("a/project:shop https://x xproject:y", vec![], "a/project:shop https://x xproject:y"),
        ] {
            let found = typed_filters(typed, as_it_is);
            let named: Vec<_> =
                found.iter().map(|filter| (filter.name, filter.value.as_str())).collect();
            assert_eq!(named, expected, "{typed}");
            let asked = Asked::from_typed(typed, &found.iter().collect::<Vec<_>>(), None);
            assert_eq!(asked.text, text, "{typed}");
        }
    }

    #[test]
    fn a_text_of_phrases_is_read() {
        for (typed, text, and, or, not) in [
            ("\"red sun\"", "red sun", "", "", ""),
            ("“red sun” „blue“", "red sun", "blue", "", ""),
            ("«red» -blue -\"dark green\"", "red", "", "", "blue|dark green"),
            ("-blue \"red\"", "red", "", "", "blue"),
            ("\"red\" OR \"blue\"", "red", "", "blue", ""),
            ("\"a\"b c\"", "a\"b c", "", "", ""),
            // These are texts of code, or of people who write.
            ("\"red\": 1", "\"red\": 1", "", "", ""),
            ("say \"red\"", "say \"red\"", "", "", ""),
            ("git commit -m", "git commit -m", "", "", ""),
            ("-m", "-m", "", "", ""),
            ("\"a\" OR", "\"a\" OR", "", "", ""),
            ("\"a\" OR \"b\" \"c\"", "\"a\" OR \"b\" \"c\"", "", "", ""),
            ("\"\"", "\"\"", "", "", ""),
            ("\" \"", "\" \"", "", "", ""),
            ("it's `a` 'b'", "it's `a` 'b'", "", "", ""),
        ] {
            let asked = Asked::from_typed(typed, &[], None);
            let lists = [&asked.and, &asked.or, &asked.not].map(|texts| texts.join("|"));
            let found = (&*asked.text, lists.each_ref().map(String::as_str));
            assert_eq!(found, (text, [and, or, not]), "{typed}");
            assert_eq!(Asked::from_typed(typed, &[], Some(Mode::Both)).text, typed);
        }
    }

    #[test]
    fn a_filter_holds_if_its_value_is_accepted() {
        let export = TestExport::indexed(&["red", "blue"]);
        let read = |typed: &str| {
            let (clock, call) = (Clock::new(false), Call::default());
            TypedQuery::read(typed, None, &export.engine, clock, &call, as_it_is).unwrap()
        };
        let typed = "\"red\" role:user since:2020";
        let query = read(typed);
        assert_eq!(
            (&*query.asked.text, query.filters.join(" ")),
            ("red", "role:user since:2020".to_owned())
        );
        assert!(query.is_read(typed) && query.problem.is_none() && query.scope.since.is_some());
        for (typed, text) in [
            ("red role:nobody since:2020", "red role:nobody"),
            ("since:soon", "since:soon"),
            ("since:2021 until:2020", "since:2021 until:2020"),
        ] {
            let query = read(typed);
            assert_eq!(query.asked.text, text);
            assert!(query.problem.is_some_and(|why| why.ends_with("; searched as text")));
        }
        for typed in ["red", " red  sun ", "https://red role: x", "say \"red\""] {
            let query = read(typed);
            assert!(!query.is_read(typed) && query.problem.is_none(), "{typed}");
        }
    }
}
