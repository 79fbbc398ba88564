//! The modes beyond LIKE: the text itself, by case, without accents, as words, and regular expressions,
//! beside a scan of all rows in memory and ripgrep's engine over one file of all texts.

use std::io;

use anyhow::Result;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkMatch};
use regex::{Regex, RegexBuilder};
use verbatim_base::model::{Hit, Matching, Request};
use verbatim_text::loose::loose;

use crate::{
    classes::{Class, Literal, Mode},
    race::Racer,
};

/// The sides, in the order in which figures are kept.
pub(crate) const MODE_SIDES: [&str; 4] = ["scan", "ripgrep", "Verbatim, LIKE", "Verbatim"];

/// The place of our index among these sides.
pub(crate) const OURS_IN_MODES: usize = 3;

/// The class of whole words.
pub(crate) const WORDS: &str = "whole word";

/// Runs that are in most texts, but seldom as whole words.
const SHORT_WORDS: [&str; 12] =
    ["t", "i", "s", "z", "th", "er", "ing", "ion", "tion", "e a", "t s", "/s"];

/// Expressions whose literals are in few messages: `@` stands for a word.
const WITH_LITERALS: [&str; 6] =
    [r"@\s+\w+", r"\b@s?\b", r"(@|@x)[,.]", r"[a-z]+@", r"@.{0,9}the", r"(?i)@\d*\s"];

/// Expressions without a literal of three characters.
const WITHOUT_LITERALS: [&str; 12] = [
    r"[0-9]{4}-[0-9]{2}",
    r"\b[A-Z]{5}\b",
    r"[aeiou]{4}",
    r"\d+\.\d+",
    r"^\W+$",
    r"\w+@\w+\.\w\w",
    r"[^\x00-\x7F]{2}",
    r"q[^u\s]",
    r"\b\w{20,}\b",
    r"(?-i)[A-Z][a-z]+[A-Z]",
    r"x+y+z",
    r"[qxz]{3}",
];

/// Returns the classes of the modes; their texts are some of the LIKE classes' words.
pub(crate) fn classes(like: &[Class]) -> Vec<Class> {
    let words: Vec<&str> = (like.iter())
        .filter(|class| ["rare word", "word in 0.05 %", "word in 5 %"].contains(&class.name))
        .flat_map(|class| class.literals.iter().take(8).map(|literal| literal.text.as_str()))
        .collect();
    let of = |name, mode, texts: Vec<String>| Class {
        name,
        literals: texts
            .into_iter()
            .map(|text| Literal { text, mode, ..Literal::default() })
            .collect(),
    };
    let plain = || words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let expressions = words.iter().zip(WITH_LITERALS.iter().cycle());
    let expressions =
        expressions.map(|(word, expression)| expression.replace('@', &regex::escape(word)));
    vec![
        of("literal", Mode::Literal, plain()),
        of("case", Mode::Case, plain()),
        of("fold", Mode::Fold, plain()),
        of(WORDS, Mode::Word, plain()),
        of("short whole word", Mode::Word, SHORT_WORDS.map(str::to_owned).into()),
        of("regex with a literal", Mode::Regex, expressions.collect()),
        of("regex without", Mode::Regex, WITHOUT_LITERALS.map(str::to_owned).into()),
    ]
}

/// Returns the text of a request as an expression; `None` if no expression means the same.
fn expression(request: &Request) -> Option<String> {
    match request.matching {
        _ if request.ignore_accents => None,
        Matching::Regex => Some(request.text.clone()),
        Matching::Word => Some(format!(r"\b{}\b", regex::escape(&request.text))),
        Matching::Literal | Matching::Like => Some(regex::escape(&request.text)),
    }
}

/// Looks through all rows in memory, the newest first, until it has enough.
pub(crate) struct Scan {
    rows: Vec<Hit<'static>>,
}

impl Scan {
    /// Takes the rows, the newest first.
    pub(crate) fn new(rows: Vec<Hit<'static>>) -> Scan {
        Scan { rows }
    }
}

impl Racer for Scan {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let wanted: Box<dyn Fn(&str) -> bool> = match expression(request) {
            Some(expression) => {
                let expression: Regex = RegexBuilder::new(&expression)
                    .case_insensitive(!request.case_sensitive)
                    .multi_line(true)
                    .build()?;
                Box::new(move |text| expression.is_match(text))
            }
            None => {
                let wanted = loose(&request.text, true);
                Box::new(move |text| loose(text, true).contains(&wanted))
            }
        };
        let hits = self.rows.iter().filter(|row| wanted(&row.content) || wanted(&row.title));
        Ok(hits.take(request.limit.unwrap_or(usize::MAX)).cloned().collect())
    }
}

/// Searches one file of all texts, the newest first, as `rg -m` does; it is in memory.
pub(crate) struct Ripgrep {
    text: Vec<u8>,
}

impl Ripgrep {
    pub(crate) fn new(rows: &[Hit<'_>]) -> Ripgrep {
        let mut text = Vec::new();
        for row in rows {
            text.extend_from_slice(row.content.as_bytes());
            text.push(b'\n');
        }
        Ripgrep { text }
    }
}

/// Counts lines until there are enough.
struct Lines {
    left: usize,
}

impl Sink for &mut Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> io::Result<bool> {
        self.left -= 1;
        Ok(self.left > 0)
    }
}

impl Racer for Ripgrep {
    fn can(&self, request: &Request) -> bool {
        expression(request).is_some()
    }

    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let expression = expression(request).unwrap_or_default();
        let matcher: RegexMatcher = RegexMatcherBuilder::new()
            .case_insensitive(!request.case_sensitive)
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .build(&expression)?;
        let mut lines = Lines { left: request.limit.unwrap_or(usize::MAX) };
        let mut searcher = SearcherBuilder::new().line_number(false).build();
        searcher.search_slice(&matcher, &self.text, &mut lines)?;
        // Lines are not rows, so only the time is compared.
        Ok(Vec::new())
    }
}

/// Our index with the same text in a LIKE search.
pub(crate) struct ByLike(pub(crate) Box<dyn Racer>);

impl Racer for ByLike {
    fn can(&self, request: &Request) -> bool {
        request.matching != Matching::Regex
    }

    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let matching = Matching::Like;
        self.0.ask(&Request {
            matching,
            case_sensitive: false,
            ignore_accents: false,
            ..request.clone()
        })
    }
}
