//! The request of a page, parsed from its address: the text, the filters and the view.

use verbatim_answer::asked::{Asked, LetterCase, TextMatching};
use verbatim_answer::filters::{Filters, SINCE, UNTIL};
use verbatim_answer::{readings, typed::TypedQuery};
use verbatim_engine::{self as engine, Mode, ReadingKind};
use verbatim_text::address::encoded;

/// The value of the project filter for conversations without a project. No project has this name,
/// because a project has the name of a folder.
pub(crate) const NO_PROJECT: &str = "/";

/// The number of pages of a search. For the conversations after them, the dates can be set.
pub(super) const MOST_PAGES: usize = 50;

/// The names of dates in addresses.
const DATES: [(&str, &str); 2] = [(SINCE, "from"), (UNTIL, "to")];

const HOURS_OF_WEEK: i64 = 7 * 24;

/// The kind of search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// Finds messages that contain the text, in any letter case.
    #[default]
    Exact,
    /// Finds the best messages for the text, by words and by meaning.
    Meaning,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Exact => "exact",
            Way::Meaning => "meaning",
        }
    }
}

/// How an exact search reads its text: the values of `match` in an address.
const READINGS: [(&str, ReadingKind); 3] = [
    ("words", ReadingKind::Words),
    ("fold", ReadingKind::AnyAccents),
    ("regex", ReadingKind::Expression),
];

/// The value of `match` in an address for a text that is found as it was typed, with its quotation marks and filters.
const AS_TYPED: &str = "text";

/// The parts of messages that a conversation shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ShownParts {
    #[default]
    All,
    /// Prompts and answers.
    Text,
    Thinking,
    /// Tool calls and their results.
    Tools,
}

impl ShownParts {
    pub(crate) const EACH: [ShownParts; 4] =
        [ShownParts::All, ShownParts::Text, ShownParts::Thinking, ShownParts::Tools];

    /// Returns the value of `view` in an address; empty for the default.
    pub(super) fn name(self) -> &'static str {
        match self {
            ShownParts::All => "",
            ShownParts::Text => "text",
            ShownParts::Thinking => "thinking",
            ShownParts::Tools => "tools",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            ShownParts::All => "Everything",
            ShownParts::Text => "Prompts and answers",
            ShownParts::Thinking => "Thinking",
            ShownParts::Tools => "Tools",
        }
    }
}

/// The request of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageQuery {
    /// The text as the user typed it.
    pub(crate) q: String,
    /// What the text was read as, if it does not only stand for itself; see `scope::read`.
    pub(crate) typed: Option<Box<TypedQuery>>,
    /// Whether the text is found as it was typed, and not read.
    pub(crate) is_as_typed: bool,
    pub(crate) way: Way,
    /// How an exact search reads the text; `None` as one text.
    pub(crate) reading: Option<ReadingKind>,
    /// Whether letter case matters in an exact search.
    pub(crate) is_case_sensitive: bool,
    /// Whether an exact search finds its text only as whole words.
    pub(crate) is_word: bool,
    /// Whether the oldest messages come first in an exact search.
    pub(crate) is_oldest: bool,
    pub(crate) filters: Filters,
    /// The only wanted hour of the week, counted from Monday 0:00.
    pub(crate) hour: Option<i64>,
    /// Whether only starred conversations are requested.
    pub(crate) starred: bool,
    /// Whether only hidden conversations are requested. Other results leave out hidden conversations.
    pub(crate) hidden: bool,
    /// The search text inside one conversation.
    pub(crate) find: String,
    pub(crate) view: ShownParts,
    /// The chosen match of the chosen message, from 0; a number that is too high chooses the last one.
    pub(crate) hit: usize,
    /// The page of the results, from 0.
    pub(crate) page: usize,
}

pub(crate) fn fields(query: &str) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned()
}

/// Adds a field to a query string, unless its value is empty.
fn add(query: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        let sign = if query.is_empty() { "" } else { "&" };
        query.extend([sign, name, "=", &encoded(value)]);
    }
}

impl PageQuery {
    pub(crate) fn parse(encoded: &str) -> PageQuery {
        let mut query = PageQuery::default();
        for (name, value) in fields(encoded) {
            match &*name {
                "q" => query.q = value,
                "mode" if value == Way::Meaning.name() => query.way = Way::Meaning,
                "match" => {
                    let known = READINGS.iter().find(|(name, _)| *name == value);
                    query.reading = known.map(|(_, reading)| *reading);
                    query.is_as_typed = value == AS_TYPED;
                }
                "case" => query.is_case_sensitive = value == "1",
                "word" => query.is_word = value == "1",
                "sort" => query.is_oldest = value == "oldest",
                "hour" => {
                    query.hour =
                        value.parse().ok().filter(|hour| (0..HOURS_OF_WEEK).contains(hour));
                }
                "starred" => query.starred = value == "1",
                "hidden" => query.hidden = value == "1",
                "find" => query.find = value,
                "view" => {
                    let view = ShownParts::EACH.into_iter().find(|view| view.name() == value);
                    query.view = view.unwrap_or_default();
                }
                "hit" if value == "last" => query.hit = usize::MAX,
                "hit" => query.hit = value.parse::<usize>().unwrap_or(1).saturating_sub(1),
                "page" => query.page = value.parse::<usize>().unwrap_or(1).saturating_sub(1),
                name => {
                    let name =
                        DATES.iter().find(|(_, short)| *short == name).map_or(name, |it| it.0);
                    let value = value.trim();
                    let _is_filter = !value.is_empty() && query.filters.add(name, value);
                }
            }
        }
        // A search by meaning has one page of results.
        if query.way == Way::Meaning && !query.text().is_empty() {
            query.page = 0;
        }
        query
    }

    /// Returns what is asked for, without what only the page knows: its own filters, and how the words are read.
    pub(super) fn asked(&self) -> Asked {
        let is_regex = self.reading == Some(ReadingKind::Expression) && self.reads().is_some();
        let case = if self.is_case_sensitive { LetterCase::Sensitive } else { LetterCase::Ignored };
        let is_word = self.is_word;
        Asked {
            matching: TextMatching { is_regex, is_word, case, ignores_accents: false },
            mode: (self.way == Way::Meaning).then_some(Mode::Both),
            filters: self.filters.clone(),
            oldest_first: self.is_oldest,
            ..self.texts()
        }
    }

    /// Returns the texts to find.
    fn texts(&self) -> Asked {
        let Some(typed) = &self.typed else { return Asked::of(self.text()) };
        let Asked { text, or, and, not, .. } = typed.asked.clone();
        Asked { text, or, and, not, ..Asked::default() }
    }

    /// Returns the filters in the text, as they were typed.
    pub(crate) fn typed_filters(&self) -> &[String] {
        self.typed.as_ref().map_or(&[], |typed| &typed.filters)
    }

    /// Returns the names that are chosen for a filter.
    pub(super) fn chosen(&self, filter: &str) -> &[String] {
        self.filters.names.of(filter)
    }

    /// Returns the filters that choose conversations. Names of facets are whole, and the empty project stands for
    /// conversations without one.
    pub(crate) fn conversations(&self) -> Filters {
        let mut names = self.filters.names.clone();
        names.is_whole = true;
        let projects = self.chosen("project").iter();
        let projects = projects.map(|name| if name == NO_PROJECT { "" } else { name }.to_owned());
        names.set("project", projects.collect());
        Filters { names, within: self.filters.within.clone(), ..Filters::default() }
    }

    /// Returns the first and the last date, as they were typed.
    pub(super) fn dates(&self) -> [&str; 2] {
        [&self.filters.since, &self.filters.until].map(|date| date.as_deref().unwrap_or_default())
    }

    /// Returns the text to find, without white space at its ends and without filters.
    pub(crate) fn text(&self) -> &str {
        self.typed.as_ref().map_or_else(|| engine::trimmed(&self.q), |typed| &typed.asked.text)
    }

    /// Returns whether the page is after the last page of a search. A list of conversations has any number.
    pub(super) fn is_beyond(&self) -> bool {
        self.page >= MOST_PAGES && (!self.text().is_empty() || self.hour.is_some())
    }

    /// Returns the text to mark in a conversation.
    pub(crate) fn sought(&self) -> &str {
        match engine::trimmed(&self.find) {
            "" => self.text(),
            find => find,
        }
    }

    /// Returns how an exact search reads the text: the value of `match`, and words for it.
    pub(crate) fn reads(&self) -> Option<(&'static str, &'static str)> {
        let reading = self.reading.filter(|_| self.way == Way::Exact && !self.text().is_empty())?;
        let (name, _) = READINGS.iter().find(|(_, known)| *known == reading)?;
        Some((name, readings::way(reading, self.text())))
    }

    /// Returns words for the way in which an exact search reads its text; empty for the usual way.
    pub(super) fn how(&self) -> String {
        let is_exact = self.way == Way::Exact && !self.text().is_empty();
        let flags =
            [(self.is_word, "as whole words"), (self.is_case_sensitive, "in this letter case")];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set && is_exact);
        let words = flags.map(|(_, words)| words);
        self.reads().map(|(_, words)| words).into_iter().chain(words).collect::<Vec<_>>().join(", ")
    }

    /// Returns the text and how it is read, without filters.
    pub(crate) fn bare(&self) -> PageQuery {
        let filters = self.typed_filters().iter();
        let q = filters.fold(self.q.clone(), |q, filter| q.replacen(filter, "", 1));
        PageQuery {
            q: engine::trimmed(&q).to_owned(),
            typed: None,
            filters: Filters::default(),
            hour: None,
            starred: false,
            hidden: false,
            find: String::new(),
            view: ShownParts::All,
            hit: 0,
            page: 0,
            ..self.clone()
        }
    }

    pub(crate) fn has_filters(&self) -> bool {
        let is_flagged = self.starred || self.hidden;
        self.filters != Filters::default()
            || !self.typed_filters().is_empty()
            || self.hour.is_some()
            || is_flagged
    }

    pub(crate) fn to_query_string(&self) -> String {
        let mut out = String::new();
        add(&mut out, "q", &self.q);
        add(&mut out, "mode", if self.way == Way::Meaning { self.way.name() } else { "" });
        let as_typed = if self.is_as_typed && !self.text().is_empty() { AS_TYPED } else { "" };
        add(&mut out, "match", self.reads().map_or(as_typed, |(name, _)| name));
        add(&mut out, "case", if self.is_case_sensitive { "1" } else { "" });
        add(&mut out, "word", if self.is_word { "1" } else { "" });
        add(&mut out, "sort", if self.is_oldest { "oldest" } else { "" });
        for (name, value) in self.filters.given() {
            add(&mut out, DATES.iter().find(|it| it.0 == name).map_or(name, |it| it.1), value);
        }
        add(&mut out, "hour", &self.hour.map_or(String::new(), |hour| hour.to_string()));
        add(&mut out, "starred", if self.starred { "1" } else { "" });
        add(&mut out, "hidden", if self.hidden { "1" } else { "" });
        add(&mut out, "find", &self.find);
        add(&mut out, "view", self.view.name());
        match self.hit {
            0 => {}
            usize::MAX => add(&mut out, "hit", "last"),
            hit => add(&mut out, "hit", &(hit + 1).to_string()),
        }
        if self.page > 0 {
            add(&mut out, "page", &(self.page + 1).to_string());
        }
        out
    }

    pub(crate) fn address(&self) -> String {
        let search =
            PageQuery { find: String::new(), view: ShownParts::All, hit: 0, ..self.clone() };
        match search.to_query_string() {
            query if query.is_empty() => "/".to_owned(),
            query => format!("/?{query}"),
        }
    }

    /// Returns the query string that keeps the text marked on a conversation's page.
    pub(crate) fn marks(&self) -> String {
        match self.to_query_string() {
            _ if self.sought().is_empty() && self.view == ShownParts::All => String::new(),
            query => format!("?{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_everything() {
        let query = "q=a+b%26%3D%e6%97%a5&mode=meaning&starred=1&hidden=1&service=chatgpt&source=codex&project=-\
                     &model=gpt-4o&role=user&from=2025-06&to=30d&page=3&unknown=1&&flag";
        let query = PageQuery::parse(query);
        assert_eq!((query.q.as_str(), query.way, query.page), ("a b&=日", Way::Meaning, 0));
        assert_eq!(query.chosen("service"), ["chatgpt", "codex"]);
        assert!(query.starred && query.hidden);
        assert_eq!(PageQuery::parse(&query.to_query_string()), query);
        assert_eq!(
            PageQuery::parse("q=a&page=3&since=7d&until=2025").to_query_string(),
            "q=a&from=7d&to=2025&page=3"
        );
        assert_eq!(PageQuery::default().address(), "/");
        for hit in ["q=a&hit=3", "q=a&hit=last"] {
            assert_eq!(
                (PageQuery::parse(hit).to_query_string(), PageQuery::parse(hit).address()),
                (hit.into(), "/?q=a".into())
            );
        }
        assert_eq!(PageQuery::parse("source=codex").to_query_string(), "service=codex");
        let read = "q=tomato+sun&match=words&service=codex";
        assert_eq!(PageQuery::parse(read).to_query_string(), read.replace('+', "%20"));
        assert_eq!(PageQuery::parse("match=words").to_query_string(), "");
        assert_eq!(PageQuery::parse("q=%ff%zz").q, "\u{fffd}%zz");
    }
}
