//! The modes beyond LIKE: the text itself, by case, without accents, as words, and regular expressions,
//! beside a scan of all rows in memory and ripgrep's engine over one file of all texts.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, thread};

use anyhow::Result;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkMatch};
use regex::RegexBuilder;
use verbatim_base::model::{Hit, Matching, Request};
use verbatim_text::loose::loose;

use crate::classes::{self, Class, Literal, Mode};
use crate::haystack::Source;
use crate::race::Racer;

/// The sides, in the order in which figures are kept.
pub(crate) const MODE_SIDES: [&str; 3] = ["scan", "ripgrep", "Verbatim"];

/// The place of our index among these sides.
pub(crate) const OURS_IN_MODES: usize = 2;

/// How the names of the classes of whole words end.
pub(crate) const WORDS: &str = "whole word";

/// Runs that are in most texts, but seldom as whole words.
const SHORT_WORDS: [&str; 12] =
    ["t", "i", "s", "z", "th", "er", "ing", "ion", "tion", "e a", "t s", "/s"];

/// Words with the marks that are next to them.
const MARKED_WORDS: [&str; 12] =
    ["i'", "it.", "s'", "a,", "is?", "the:", "(a", "\"in", "no!", "to-", "you're", "e.g."];

/// Expressions that match no text.
const IMPOSSIBLE: [&str; 6] = ["$a", r"a\bb", "a^b", r"the\B ", r"e$\w", r"[a&&b]e"];

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
pub(crate) fn classes(like: &[Class], source: &Source) -> Vec<Class> {
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
    let begun = words.iter().map(|word| format!(r"\b{}\w*", regex::escape(word)));
    let mut classes = vec![
        of("literal", Mode::Literal, plain()),
        of("fold", Mode::Fold, plain()),
        of(WORDS, Mode::Word, plain()),
        of("short whole word", Mode::Word, SHORT_WORDS.map(str::to_owned).into()),
        of("mark on a whole word", Mode::Word, MARKED_WORDS.map(str::to_owned).into()),
        of("regex with a literal", Mode::Regex, expressions.collect()),
        of("regex without", Mode::Regex, WITHOUT_LITERALS.map(str::to_owned).into()),
        of(r"\bWORD\w*", Mode::Regex, begun.collect()),
        of("regex that cannot match", Mode::Regex, IMPOSSIBLE.map(str::to_owned).into()),
    ];
    classes.extend(classes::capitals(source));
    classes
}

/// Returns the text of a request as an expression; `None` if no expression means the same.
fn expression(request: &Request) -> Option<String> {
    match request.matching {
        _ if request.ignore_accents => None,
        Matching::Regex => Some(request.text.clone()),
        Matching::Word => {
            Some(format!(r"\b{{start-half}}{}\b{{end-half}}", regex::escape(&request.text)))
        }
        Matching::Literal => Some(regex::escape(&request.text)),
        Matching::Like => Some(format!("(?s:{})", classes::as_expression(&request.text))),
    }
}

/// Decides whether a text matches.
type Decider = Box<dyn Fn(&str) -> bool>;

fn decider(request: &Request) -> Result<Decider> {
    Ok(match expression(request) {
        Some(expression) => {
            let expression = RegexBuilder::new(&expression)
                .case_insensitive(!request.case_sensitive)
                .multi_line(true)
                .build()?;
            Box::new(move |text| expression.is_match(text))
        }
        None => {
            let wanted = loose(&request.text, true);
            Box::new(move |text| loose(text, true).contains(&wanted))
        }
    })
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

    /// Does the same with all cores: each takes the next rows until all have found enough.
    pub(crate) fn in_parallel(&self, request: &Request) -> Result<()> {
        /// How many rows a core takes at a time.
        const BLOCK: usize = 1_000;

        let most = request.limit.unwrap_or(usize::MAX);
        let (blocks, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let core = || -> Result<()> {
            let wanted = decider(request)?;
            while found.load(Ordering::Relaxed) < most
                && let Some(rows) =
                    self.rows.chunks(BLOCK).nth(blocks.fetch_add(1, Ordering::Relaxed))
            {
                let hits = rows.iter().filter(|row| wanted(&row.content) || wanted(&row.title));
                found.fetch_add(hits.count(), Ordering::Relaxed);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let cores: Vec<_> = (0..cores).map(|_| scope.spawn(core)).collect();
            cores.into_iter().try_for_each(|core| core.join().expect("a scan does not panic"))
        })
    }
}

impl Racer for Rc<Scan> {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let wanted = decider(request)?;
        let hits = self.rows.iter().filter(|row| wanted(&row.content) || wanted(&row.title));
        Ok(hits.take(request.limit.unwrap_or(usize::MAX)).cloned().collect())
    }
}

/// Searches one file of all texts, the newest first, as `rg -m` does; it is in memory.
pub(crate) struct Ripgrep {
    text: Vec<u8>,
}

impl Ripgrep {
    /// Takes the texts of a scan.
    pub(crate) fn new(scan: &Scan) -> Ripgrep {
        let mut text = Vec::new();
        for row in &scan.rows {
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
